// What a program registers or loads: binaries, kernels, variables.
#ifndef SOL_SHIM_PROGRAMS_H
#define SOL_SHIM_PROGRAMS_H

#include "driver/driver.h"
#include "sass/sass_code.h"

#pragma GCC visibility push(default) // what the toolkit's headers declare is what this library exports
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

typedef struct ShimBinary ShimBinary;
typedef struct ShimKernel {
  struct ShimKernel *next;
  ShimBinary *binary;
  const void *stub; // NULL: none
  char *name;
  SolEmuKernel *emu; // NULL until the binary is loaded
  const PtxFunction *fn;
  int registers;          // as ptxas or, where there is no machine code, the emulator counts them
  int stack;              // bytes of a thread's, as ptxas laid it out; 0: none, or not known
  bool by_ptxas;          // registers and stack are its
  SassCode code;          // the machine code; .count 0: none that belongs to this PTX and this GPU
  SolArena arena;         // of the code
  size_t dynamic_allowed; // cudaFuncAttributeMaxDynamicSharedMemorySize
  int carveout;
  bool big_clusters; // cudaFuncAttributeNonPortableClusterSizeAllowed
} ShimKernel;

typedef struct ShimVariable {
  struct ShimVariable *next;
  ShimBinary *binary;
  const void *shadow;
  void **managed; // where the host keeps its pointer to it; NULL: not managed
  char *name;
  size_t size;
} ShimVariable;

struct ShimBinary {
  ShimBinary *next;
  const void *wrapper; // as __cudaRegisterFatBinary got it; NULL: a library's
  char *text;          // PTX of a library loaded at run time; NULL
  size_t text_length;
  const void *image;    // its fat binary; NULL
  SolEmuModule *module; // NULL until loaded
  cudaError_t failed;   // why it cannot be loaded
  ShimKernel *kernels;
  ShimVariable *variables;
  char *elf; // machine code, for registers and stack; NULL: none
  size_t elf_size;
  bool lined;      // the machine code is this GPU's, and has the lines of the PTX that is emulated
  uint32_t number; // distinguishes binaries, from 1
  void *handle[1]; // what the program gets as void **
};

cudaError_t shim_load(ShimBinary *binary);
cudaError_t shim_kernel(const void *function, ShimKernel **out); // loaded; by stub or handle
cudaError_t shim_kernel_load(ShimKernel *kernel);
ShimKernel *shim_add_kernel(ShimBinary *binary, const void *stub, const char *name);
// The device address of a variable. `symbol` is the address of its host shadow.
cudaError_t shim_symbol(const void *symbol, uint64_t *address, uint64_t *bytes);

typedef struct ShimPrograms { // of the one `shim`
  ShimBinary *binaries;
  uint32_t loaded; // binaries so far
} ShimPrograms;

#endif
