// Kernel arguments from any bytes: parsed, and what parses is filled, formatted and packed.
#include <string.h>

#include "driver/args.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SolKernelArg arg;
  SolError err;
  if (sol_arg_parse((const char *)data, size, &arg, &err)) return 0;
  static uint8_t memory[4096]; // overwritten by every input
  if (arg.buffer && arg.init != SOL_INIT_FILE && arg.bytes <= sizeof memory) {
    sol_arg_fill(&arg, size, memory);
    char text[64];
    for (uint64_t i = 0; i < arg.count; i++)
      sol_arg_format(arg.type, memory + i * (arg.bytes / arg.count), text, sizeof text);
  }
  PtxSymbol symbols[3] = {{.name = "p", .type = PTX_U64, .size = 8},
                          {.name = "n", .type = PTX_F32, .size = 4, .offset = 8},
                          {.name = "s", .type = PTX_B8, .size = 6, .offset = 12}};
  uint32_t params[3] = {0, 1, 2};
  PtxFunction function = {.name = "k", .params = params, .param_count = 3, .param_size = 18};
  SolPtxModule module = {.symbols = symbols, .symbol_count = 3};
  uint8_t buffer[18];
  for (int i = 0; i < 3; i++) sol_arg_pack(&function, &module, i, &arg, buffer, &err);
  return 0;
}
