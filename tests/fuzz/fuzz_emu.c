// Any bytes as PTX: what loads is run, each kernel on a small grid within limits, with every check on.
#include <stdlib.h>
#include <string.h>

#include "emu/emu.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BUFFER = 4096, MOST_PARAMS = 4096 };

// Every 8-byte word of the parameters is the buffer's address, so that kernels with pointers do some work.
static void run_kernel(SolEmu *emu, SolEmuKernel *kernel, uint64_t buffer) {
  uint64_t params[MOST_PARAMS / 8];
  const PtxFunction *f = sol_emu_kernel_function(kernel);
  if (f->param_size > sizeof params) return;
  for (size_t i = 0; i < sizeof params / 8; i++) params[i] = buffer;
  SolEmuLaunch launch = {.kernel = kernel,
                         .grid = {2, 1, 1},
                         .block = {48, 1, 1}, // a full warp and half a one
                         .params = params,
                         .param_bytes = f->param_size,
                         .dynamic_shared = 256,
                         .max_instructions = 2000,
                         .max_seconds = 1,
                         .checks = SOL_EMU_CHECK_INIT | SOL_EMU_CHECK_RACE | SOL_EMU_CHECK_SYNC,
                         .keep_going = f->inst_count % 2 == 0};
  SolEmuResult result = {0};
  SolError err;
  sol_emu_launch(emu, &launch, &result, &err);
  sol_emu_result_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SolEmuMachine machine = {
      .sms = 2, .workers = 1, .heap_bytes = 65536, .stack_bytes = 65536, .mem_bytes = 64 << 20};
  SolEmu *emu = NULL;
  SolEmuModule *module = NULL;
  SolError err;
  uint64_t buffer = 0;
  if (sol_emu_create(&machine, &emu, &err)) abort();
  if (!sol_emu_load(emu, &(SolPtxSource){"fuzz", (const char *)data, size}, 1, &module, &err) &&
      !sol_emu_alloc(emu, BUFFER, "buffer", &buffer, &err)) {
    SolEmuKernel *kernel;
    for (int i = 0; i < 4 && (kernel = sol_emu_kernel_at(module, i)); i++) run_kernel(emu, kernel, buffer);
  }
  sol_emu_destroy(emu);
  return 0;
}
