// cublasSetVector and the like: copies between host and device, with strides.
#include "blas/blas.h"

int cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                 int kind);
int cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t height, int kind, void *stream);
enum { TO_DEVICE = 1, TO_HOST = 2, MAPPING_ERROR = 11 };

typedef struct Copy {
  const void *from;
  void *to;
  int64_t rows, columns, element, from_lead, to_lead; // elements
  int kind;
} Copy;

static int copy(const Copy *c, bool async, void *stream) {
  if (c->rows < 0 || c->columns < 0 || c->element <= 0 || c->from_lead <= 0 || c->to_lead <= 0)
    return BLAS_BAD_VALUE;
  if (!c->rows || !c->columns) return BLAS_OK;
  size_t width = (size_t)(c->rows * c->element), from = (size_t)(c->from_lead * c->element);
  size_t to = (size_t)(c->to_lead * c->element), height = (size_t)c->columns;
  int error = async ? cudaMemcpy2DAsync(c->to, to, c->from, from, width, height, c->kind, stream)
                    : cudaMemcpy2D(c->to, to, c->from, from, width, height, c->kind);
  return error ? MAPPING_ERROR : BLAS_OK;
}

#define COPIES(I, S)                                                                                         \
  BLAS_API int cublasSetVector##S(I n, I size, const void *x, I incx, void *y, I incy) {                     \
    return copy(&(Copy){x, y, 1, n, size, incx, incy, TO_DEVICE}, false, NULL);                              \
  }                                                                                                          \
  BLAS_API int cublasGetVector##S(I n, I size, const void *x, I incx, void *y, I incy) {                     \
    return copy(&(Copy){x, y, 1, n, size, incx, incy, TO_HOST}, false, NULL);                                \
  }                                                                                                          \
  BLAS_API int cublasSetVectorAsync##S(I n, I size, const void *x, I incx, void *y, I incy, void *stream) {  \
    return copy(&(Copy){x, y, 1, n, size, incx, incy, TO_DEVICE}, true, stream);                             \
  }                                                                                                          \
  BLAS_API int cublasGetVectorAsync##S(I n, I size, const void *x, I incx, void *y, I incy, void *stream) {  \
    return copy(&(Copy){x, y, 1, n, size, incx, incy, TO_HOST}, true, stream);                               \
  }                                                                                                          \
  BLAS_API int cublasSetMatrix##S(I rows, I columns, I size, const void *a, I lda, void *b, I ldb) {         \
    return copy(&(Copy){a, b, rows, columns, size, lda, ldb, TO_DEVICE}, false, NULL);                       \
  }                                                                                                          \
  BLAS_API int cublasGetMatrix##S(I rows, I columns, I size, const void *a, I lda, void *b, I ldb) {         \
    return copy(&(Copy){a, b, rows, columns, size, lda, ldb, TO_HOST}, false, NULL);                         \
  }                                                                                                          \
  BLAS_API int cublasSetMatrixAsync##S(I rows, I columns, I size, const void *a, I lda, void *b, I ldb,      \
                                       void *stream) {                                                       \
    return copy(&(Copy){a, b, rows, columns, size, lda, ldb, TO_DEVICE}, true, stream);                      \
  }                                                                                                          \
  BLAS_API int cublasGetMatrixAsync##S(I rows, I columns, I size, const void *a, I lda, void *b, I ldb,      \
                                       void *stream) {                                                       \
    return copy(&(Copy){a, b, rows, columns, size, lda, ldb, TO_HOST}, true, stream);                        \
  }
COPIES(int, )
COPIES(int64_t, _64)
