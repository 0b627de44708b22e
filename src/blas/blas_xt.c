// cublasXt: the products whose matrices may stand in the host's memory, on one device. Sizes are size_t, which is how the
// functions with 64-bit sizes take them: each is its cuBLAS function under another name.
#include <stdlib.h>

#include "blas/blas.h"

enum { TILE = 2048 }; // cublasXt's own; what is computed does not depend on it

BLAS_API int cublasXtCreate(BlasHandle **handle) {
  int status = blas_create(handle);
  if (!status) (*handle)->tile = TILE;
  return status;
}
BLAS_API int cublasXtDestroy(BlasHandle *handle) {
  return blas_destroy(handle);
}
BLAS_API int cublasXtMaxBoards(int *boards) {
  if (!boards) return BLAS_BAD_VALUE;
  *boards = 1;
  return BLAS_OK;
}
BLAS_API int cublasXtGetNumBoards(int count, const int *devices, int *boards) {
  if (count < 1 || !devices || !boards) return BLAS_BAD_VALUE;
  for (int i = 0; i < count; i++)
    if (devices[i]) return BLAS_BAD_VALUE;
  *boards = 1;
  return BLAS_OK;
}
BLAS_API int cublasXtDeviceSelect(const BlasHandle *handle, int count, const int *devices) {
  if (!blas_is_handle(handle)) return BLAS_NO_HANDLE;
  return count == 1 && devices && !devices[0] ? BLAS_OK : BLAS_BAD_VALUE; // there is one
}
BLAS_API int cublasXtSetBlockDim(BlasHandle *handle, int tile) {
  if (!blas_is_handle(handle)) return BLAS_NO_HANDLE;
  if (tile <= 0) return BLAS_BAD_VALUE;
  handle->tile = tile;
  return BLAS_OK;
}
BLAS_API int cublasXtGetBlockDim(const BlasHandle *handle, int *tile) {
  if (!blas_is_handle(handle)) return BLAS_NO_HANDLE;
  if (!tile) return BLAS_BAD_VALUE;
  *tile = handle->tile;
  return BLAS_OK;
}
BLAS_API int cublasXtSetPinningMemMode(BlasHandle *handle, int mode) {
  if (!blas_is_handle(handle)) return BLAS_NO_HANDLE;
  if (mode < 0 || mode > 1) return BLAS_BAD_VALUE;
  handle->pins = mode;
  return BLAS_OK;
}
BLAS_API int cublasXtGetPinningMemMode(const BlasHandle *handle, int *mode) {
  if (!blas_is_handle(handle)) return BLAS_NO_HANDLE;
  if (!mode) return BLAS_BAD_VALUE;
  *mode = handle->pins;
  return BLAS_OK;
}

// Scalars are always the host's.
static BlasHandle as(const BlasHandle *handle, const char *name) {
  return blas_is_handle(handle) ? (BlasHandle){.mark = handle->mark, .billed = name} : (BlasHandle){0};
}

#define GEMM(L)                                                                                              \
  int cublas##L##gemm_v2_64(const BlasHandle *, int, int, int64_t, int64_t, int64_t, const void *,           \
                            const void *, int64_t, const void *, int64_t, const void *, void *, int64_t);    \
  BLAS_API int cublasXt##L##gemm(const BlasHandle *h, int ta, int tb, size_t m, size_t n, size_t k,          \
                                 const void *alpha, const void *a, size_t lda, const void *b, size_t ldb,    \
                                 const void *beta, void *c, size_t ldc) {                                    \
    BlasHandle own = as(h, "cublasXt" #L "gemm");                                                            \
    return cublas##L##gemm_v2_64(&own, ta, tb, (int64_t)m, (int64_t)n, (int64_t)k, alpha, a, (int64_t)lda,   \
                                 b, (int64_t)ldb, beta, c, (int64_t)ldc);                                    \
  }
#define RANK(entry, target)                                                                                  \
  int target(const BlasHandle *, int, int, int64_t, int64_t, const void *, const void *, int64_t,            \
             const void *, void *, int64_t);                                                                 \
  BLAS_API int entry(const BlasHandle *h, int uplo, int trans, size_t n, size_t k, const void *alpha,        \
                     const void *a, size_t lda, const void *beta, void *c, size_t ldc) {                     \
    BlasHandle own = as(h, #entry);                                                                          \
    return target(&own, uplo, trans, (int64_t)n, (int64_t)k, alpha, a, (int64_t)lda, beta, c, (int64_t)ldc); \
  }
// Of two matrices: twice the rank, or with one of them known to be symmetric (side in place of trans).
#define OF_TWO(entry, target)                                                                                \
  int target(const BlasHandle *, int, int, int64_t, int64_t, const void *, const void *, int64_t,            \
             const void *, int64_t, const void *, void *, int64_t);                                          \
  BLAS_API int entry(const BlasHandle *h, int first, int second, size_t m, size_t n, const void *alpha,      \
                     const void *a, size_t lda, const void *b, size_t ldb, const void *beta, void *c,        \
                     size_t ldc) {                                                                           \
    BlasHandle own = as(h, #entry);                                                                          \
    return target(&own, first, second, (int64_t)m, (int64_t)n, alpha, a, (int64_t)lda, b, (int64_t)ldb,      \
                  beta, c, (int64_t)ldc);                                                                    \
  }
#define TRIANGULAR(L)                                                                                        \
  int cublas##L##trsm_v2_64(const BlasHandle *, int, int, int, int, int64_t, int64_t, const void *,          \
                            const void *, int64_t, void *, int64_t);                                         \
  BLAS_API int cublasXt##L##trsm(const BlasHandle *h, int side, int uplo, int trans, int diag, size_t m,     \
                                 size_t n, const void *alpha, const void *a, size_t lda, void *b,            \
                                 size_t ldb) {                                                               \
    BlasHandle own = as(h, "cublasXt" #L "trsm");                                                            \
    return cublas##L##trsm_v2_64(&own, side, uplo, trans, diag, (int64_t)m, (int64_t)n, alpha, a,            \
                                 (int64_t)lda, b, (int64_t)ldb);                                             \
  }                                                                                                          \
  int cublas##L##trmm_v2_64(const BlasHandle *, int, int, int, int, int64_t, int64_t, const void *,          \
                            const void *, int64_t, const void *, int64_t, void *, int64_t);                  \
  BLAS_API int cublasXt##L##trmm(const BlasHandle *h, int side, int uplo, int trans, int diag, size_t m,     \
                                 size_t n, const void *alpha, const void *a, size_t lda, const void *b,      \
                                 size_t ldb, void *c, size_t ldc) {                                          \
    BlasHandle own = as(h, "cublasXt" #L "trmm");                                                            \
    return cublas##L##trmm_v2_64(&own, side, uplo, trans, diag, (int64_t)m, (int64_t)n, alpha, a,            \
                                 (int64_t)lda, b, (int64_t)ldb, c, (int64_t)ldc);                            \
  }
#define ALL(L)                                                                                               \
  GEMM(L)                                                                                                    \
  RANK(cublasXt##L##syrk, cublas##L##syrk_v2_64)                                                             \
  OF_TWO(cublasXt##L##syr2k, cublas##L##syr2k_v2_64)                                                         \
  OF_TWO(cublasXt##L##syrkx, cublas##L##syrkx_64)                                                            \
  OF_TWO(cublasXt##L##symm, cublas##L##symm_v2_64)                                                           \
  TRIANGULAR(L)
ALL(S)
ALL(D)
ALL(C)
ALL(Z)
RANK(cublasXtCherk, cublasCherk_v2_64)
RANK(cublasXtZherk, cublasZherk_v2_64)
OF_TWO(cublasXtChemm, cublasChemm_v2_64)
OF_TWO(cublasXtZhemm, cublasZhemm_v2_64)
OF_TWO(cublasXtCher2k, cublasCher2k_v2_64)
OF_TWO(cublasXtZher2k, cublasZher2k_v2_64)
OF_TWO(cublasXtCherkx, cublasCherkx_64)
OF_TWO(cublasXtZherkx, cublasZherkx_64)
