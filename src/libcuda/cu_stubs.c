// Entry points of the driver that are not implemented: each prints its name, once, and fails. And the names under which
// programs that are built with a default stream per thread call those that are.
#include "libcuda/cu.h"

#define CU_MISSING(entry)                                                                                    \
  __attribute__((visibility("default"))) CUresult missing_##entry(void) __asm__(#entry);                     \
  CUresult missing_##entry(void) {                                                                           \
    static char warned;                                                                                      \
    shim_missing(#entry, &warned);                                                                           \
    return CUDA_ERROR_NOT_SUPPORTED;                                                                         \
  }

#if defined(__aarch64__)
#define JUMP   "b "
#define LINKED ""
#else
#define JUMP   "jmp "
#define LINKED "@PLT"
#endif
#define CU_ALIAS(name, other)                                                                                \
  __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ": " JUMP #other LINKED              \
          "\n.size " #name ", .-" #name "\n");

#include "libcuda/cu_missing.def"
