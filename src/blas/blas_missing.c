// What of cuBLAS is not computed: each prints its name, once, and makes the bill incomplete.
#include "blas/blas.h"

#define MISSING(entry)                                                                                       \
  BLAS_API int entry(void) {                                                                                 \
    static char warned;                                                                                      \
    __cudaSolLibraryMissing(#entry, &warned);                                                                \
    return BLAS_NOT_SUPPORTED;                                                                               \
  }
#include "blas/blas_missing.def"
#include "blas/blas_missing_lt.def"
