// Kernel arguments as people type them, for running a kernel without a host program:
//
//   [NAME:]TYPE[COUNT][=INIT]     a buffer: f32[8192*1024], out:f32[1Mi], ids:s32[4096]=random:128256
//   [TYPE:]VALUE                  a number; without a type, that of the kernel's parameter
//   hex:00ff12..                  raw bytes, for structures passed by value
//   @NAME[+BYTES]                 a pointer into a buffer of that name, for arrays that overlap
//
// TYPE: f16 bf16 f32 f64, u8 u16 u32 u64, s8 s16 s32 s64. COUNT: a number or a product of numbers.
// INIT: random (default; floats in [-1, 1), whole numbers in [0, 2^31) or what fits), random:N (whole numbers
// in [0, N)), iota, zero, a number for all elements, @FILE (raw bytes). A buffer whose name starts with "out"
// starts as zero. Random values are the same in every run.
#ifndef SOL_DRIVER_ARGS_H
#define SOL_DRIVER_ARGS_H

#include "driver/driver.h"

typedef enum SolArgInit { SOL_INIT_RANDOM, SOL_INIT_IOTA, SOL_INIT_VALUE, SOL_INIT_FILE } SolArgInit;

typedef struct SolKernelArg {
  char name[32]; // of a buffer; "" for none
  bool buffer;
  bool pointer;   // into the buffer `rest`, `whole` bytes from its start
  PtxType type;   // PTX_TYPE_NONE: as the parameter
  uint64_t count; // elements of a buffer
  SolArgInit init;
  double value;  // SOL_INIT_VALUE; SOL_INIT_RANDOM: the bound, 0 for none
  int64_t whole; // a number written as a whole one, exact
  bool is_whole;
  const char *rest; // in the text given: FILE's path, hex's digits, or a buffer's name
  size_t rest_length;
  uint64_t address, bytes; // of a buffer, once made; a pointer has an address alone
} SolKernelArg;

SolStatus sol_arg_parse(const char *text, size_t length, SolKernelArg *out, SolError *err);

// Fills `bytes` of memory with the buffer's initial contents (not SOL_INIT_FILE). `seed` tells buffers apart.
void sol_arg_fill(const SolKernelArg *arg, uint64_t seed, void *to);
// One element of memory as text; for printing results.
size_t sol_arg_format(PtxType type, const void *element, char *out, size_t cap);

// Writes the i-th argument into the kernel's parameter buffer (function->param_size bytes). A buffer's
// address must be known by then.
SolStatus sol_arg_pack(const PtxFunction *function, const SolPtxModule *ptx, int i, const SolKernelArg *arg,
                       void *params, SolError *err);

#endif
