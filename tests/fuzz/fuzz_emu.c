// Any bytes as PTX: what loads is run, each kernel on a small grid within limits, alone and as a cluster,
// with every check on.
#include <stdlib.h>

#include "emu/emu.h"
#include "emu/texture.h"
#include "fuzz.h"

enum { BUFFER = 4096, MOST_PARAMS = 4096, SHARED = 16384 };

typedef struct Device {
  SolEmu *emu;
  SolEmuModule *module;
  uint64_t buffer, texture, surface;
} Device;

static bool start(Device *d, const uint8_t *data, size_t size) {
  SolEmuMachine machine = {
      .sms = 2, .workers = 1, .heap_bytes = 65536, .stack_bytes = 65536, .mem_bytes = 64 << 20};
  if (sol_emu_create(&machine, &d->emu, NULL)) abort();
  if (sol_emu_load(d->emu, &(SolPtxSource){"fuzz", (const char *)data, size}, 1, &d->module, NULL) ||
      sol_emu_alloc(d->emu, BUFFER, "buffer", &d->buffer, NULL))
    return false;
  SolEmuImage image = {.address = d->buffer, .width = 16, .height = 16, .pitch = 64};
  image.bits = 32;
  image.channels = 1;
  image.kind = SOL_EMU_FLOAT;
  return !sol_emu_texture_create(d->emu, &(SolEmuTexture){.image = image}, &d->texture, NULL) &&
         !sol_emu_surface_create(d->emu, &image, &d->surface, NULL);
}

// Parameters that let kernels do some work: a texture's or a surface's handle where the name begins with t or
// s, the buffer's address for other pointers, a small number for numbers.
static void fill_params(const Device *d, const PtxFunction *f, uint8_t *params) {
  const PtxSymbol *symbols = sol_emu_ptx(d->module)->symbols;
  for (uint32_t i = 0; i < f->param_count; i++) {
    const PtxSymbol *s = &symbols[f->params[i]];
    uint64_t value = s->size < 8         ? 16
                     : s->name[0] == 't' ? d->texture
                     : s->name[0] == 's' ? d->surface
                                         : d->buffer;
    uint8_t *at = params + (s->offset - f->param_offset);
    for (uint64_t k = 0; k < s->size; k++) at[k] = (uint8_t)(value >> k % 8 * 8);
  }
}

static void ignore(void *ctx, const char *text, size_t length) {
  (void)ctx, (void)text, (void)length;
}

static void run_kernel(const Device *d, SolEmuKernel *kernel, uint32_t cluster) {
  _Alignas(16) uint8_t params[MOST_PARAMS] = {0};
  const PtxFunction *f = sol_emu_kernel_function(kernel);
  if (f->param_size > sizeof params) return;
  fill_params(d, f, params);
  SolEmuLaunch launch = {.kernel = kernel,
                         .grid = {2, 1, 1},
                         .block = {cluster ? 128 : 48, 1, 1}, // a warpgroup, or a full warp and half a one
                         .async_order = cluster,
                         .cluster = {cluster, cluster ? 1 : 0, cluster ? 1 : 0},
                         .params = params,
                         .param_bytes = f->param_size,
                         .dynamic_shared = SHARED,
                         .max_instructions = 2000,
                         .max_seconds = 1,
                         .checks = SOL_EMU_CHECK_INIT | SOL_EMU_CHECK_RACE | SOL_EMU_CHECK_SYNC,
                         .keep_going = f->inst_count % 2 == 0,
                         .observe = cluster > 0,
                         .print = ignore};
  SolEmuResult result = {0};
  SolError err;
  sol_emu_launch(d->emu, &launch, &result, &err);
  sol_emu_result_free(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Device d = {0};
  SolEmuKernel *kernel;
  if (start(&d, data, size))
    for (int i = 0; i < 4 && (kernel = sol_emu_kernel_at(d.module, i)); i++) {
      run_kernel(&d, kernel, 0);
      run_kernel(&d, kernel, 2);
    }
  sol_emu_destroy(d.emu);
  return 0;
}
