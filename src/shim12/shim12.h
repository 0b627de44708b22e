// Entry points of CUDA 12 that differ from those of CUDA 13 in signature or structures, on those of CUDA 13.
//
// Both releases use the same names, so each function here has a C name of its own and gets the exported one from
// the assembler; of13_NAME is the function of that name in libcudart.so.13.
#ifndef SOL_SHIM12_SHIM12_H
#define SOL_SHIM12_SHIM12_H

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#define OF13(name)                                                                                           \
  extern __typeof__(name) of13_##name;                                                                       \
  __asm__(".symver of13_" #name "," #name "@libcudart.so.13")
#define ENTRY12(name, ...)                                                                                   \
  __attribute__((visibility("default"))) cudaError_t v12_##name(__VA_ARGS__) __asm__(#name);                 \
  cudaError_t v12_##name(__VA_ARGS__)

#endif
