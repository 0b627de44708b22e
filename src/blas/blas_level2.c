// A matrix and vectors: gemv, symv, hemv, ger, syr, syr2, her, her2; all are products of thin matrices.
#include "blas/blas.h"

// `scale` is the type of alpha and beta.
static int product(const BlasHandle *h, BlasCall *c, int type, int scale, const void *alpha,
                   const void *beta) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (c->m < 0 || c->n < 0 || c->k < 0 || !alpha) return BLAS_BAD_VALUE;
  if (!c->m || !c->n) return BLAS_OK;
  c->alpha = blas_scalar(h, alpha, scale);
  c->beta = beta ? blas_scalar(h, beta, scale) : (BlasScalar){.type = scale, .value = 1};
  c->count = 3;
  c->compute = blas_compute_of(type);
  c->flops = 2.0 * (double)c->m * (double)c->n * (double)c->k * (blas_is_complex(type) ? 4 : 1);
  c->dtype = blas_roof(type, false);
  c->operands[2].wrote = c->operands[2].scaled = true;
  return blas_run(h, c);
}

// ---- y = alpha op(A) x + beta y ----

static BlasCall gemv_call(const char *name, int type, int trans, int64_t m, int64_t n, const void *a,
                          int64_t lda, const void *x, int64_t incx, void *y, int64_t incy) {
  int64_t rows = trans ? n : m, columns = trans ? m : n;
  return (BlasCall){.name = name,
                    .run = blas_run_product,
                    .operands = {blas_matrix(a, type, m, n, lda), blas_vector(x, type, columns, incx),
                                 blas_vector(y, type, rows, incy)},
                    .m = rows,
                    .n = 1,
                    .k = columns,
                    .trans_a = trans};
}

static bool bad_vectors(int64_t lda, int64_t m, int64_t incx, int64_t incy) {
  return lda < (m > 1 ? m : 1) || !incx || !incy;
}

#define GEMV(L, T, I, S)                                                                                     \
  BLAS_API int cublas##L##gemv_v2##S(const BlasHandle *h, int trans, I m, I n, const void *alpha,            \
                                     const void *a, I lda, const void *x, I incx, const void *beta, void *y, \
                                     I incy) {                                                               \
    if (blas_bad_trans(trans) || bad_vectors(lda, m, incx, incy) || !beta) return BLAS_BAD_VALUE;            \
    BlasCall c = gemv_call("cublas" #L "gemv", T, trans, m, n, a, lda, x, incx, y, incy);                    \
    return product(h, &c, T, T, alpha, beta);                                                                \
  }                                                                                                          \
  GEMV_STRIDED(L, T, T, T, I, S)                                                                             \
  GEMV_BATCHED(cublas##L##gemvBatched##S, T, T, T, I)
// Many, by strides and by arrays of pointers; A and x of one type, y of another.
#define GEMV_STRIDED(L, T, Y, scale, I, S)                                                                   \
  BLAS_API int cublas##L##gemvStridedBatched##S(const BlasHandle *h, int trans, I m, I n, const void *alpha, \
                                                const void *a, I lda, long long stride_a, const void *x,     \
                                                I incx, long long stride_x, const void *beta, void *y,       \
                                                I incy, long long stride_y, I count) {                       \
    if (blas_bad_trans(trans) || bad_vectors(lda, m, incx, incy) || !beta || count < 0)                      \
      return BLAS_BAD_VALUE;                                                                                 \
    BlasCall c = gemv_call("cublas" #L "gemvStridedBatched", T, trans, m, n, a, lda, x, incx, y, incy);      \
    c.operands[0].batch = stride_a, c.operands[1].batch = stride_x, c.operands[2].batch = stride_y;          \
    c.operands[2].type = Y, c.batches = count;                                                               \
    return count ? product(h, &c, scale, scale, alpha, beta) : BLAS_OK;                                      \
  }
#define GEMV_BATCHED(entry, T, Y, scale, I)                                                                  \
  BLAS_API int entry(const BlasHandle *h, int trans, I m, I n, const void *alpha, const void *a, I lda,      \
                     const void *x, I incx, const void *beta, void *y, I incy, I count) {                    \
    if (blas_bad_trans(trans) || bad_vectors(lda, m, incx, incy) || !beta || count < 0)                      \
      return BLAS_BAD_VALUE;                                                                                 \
    BlasCall c = gemv_call(#entry, T, trans, m, n, a, lda, x, incx, y, incy);                                \
    for (int i = 0; i < 3; i++) c.operands[i].list = true;                                                   \
    c.operands[2].type = Y, c.batches = count;                                                               \
    return count ? product(h, &c, scale, scale, alpha, beta) : BLAS_OK;                                      \
  }
BLAS_ALL(GEMV)

// 16-bit A and x, sums and factors in float.
#define GEMV_MIXED(L, T, Y, I, S)                                                                            \
  GEMV_STRIDED(L, T, Y, BLAS_R32F, I, S)                                                                     \
  GEMV_BATCHED(cublas##L##gemvBatched##S, T, Y, BLAS_R32F, I)
#define GEMV_MIXEDS(L, T, Y) GEMV_MIXED(L, T, Y, int, ) GEMV_MIXED(L, T, Y, int64_t, _64)
GEMV_MIXEDS(HSH, BLAS_R16F, BLAS_R16F)
GEMV_MIXEDS(HSS, BLAS_R16F, BLAS_R32F)
GEMV_MIXEDS(TST, BLAS_R16BF, BLAS_R16BF)
GEMV_MIXEDS(TSS, BLAS_R16BF, BLAS_R32F)

static bool run_symmetric(const BlasCall *c, BlasView *v) {
  v[0].shape = c->extra ? BLAS_HERMITIAN : BLAS_SYMMETRIC;
  v[0].upper = c->uplo == 1;
  return blas_run_product(c, v);
}

#define SYMV(name, T, I, S, hermitian)                                                                       \
  BLAS_API int name##_v2##S(const BlasHandle *h, int uplo, I n, const void *alpha, const void *a, I lda,     \
                            const void *x, I incx, const void *beta, void *y, I incy) {                      \
    if (uplo < 0 || uplo > 1 || bad_vectors(lda, n, incx, incy) || !beta) return BLAS_BAD_VALUE;             \
    BlasCall c = gemv_call(#name, T, 0, n, n, a, lda, x, incx, y, incy);                                     \
    c.run = run_symmetric, c.uplo = uplo, c.extra = hermitian;                                               \
    return product(h, &c, T, T, alpha, beta);                                                                \
  }
#define SYMVS(L, T, I, S) SYMV(cublas##L##symv, T, I, S, 0)
#define HEMVS(L, T, I, S) SYMV(cublas##L##hemv, T, I, S, 1)
BLAS_ALL(SYMVS)
BLAS_COMPLEX(HEMVS)

// ---- A = alpha x y^T + A ----

static BlasCall ger_call(const char *name, int type, int trans, int64_t m, int64_t n, const void *x,
                         int64_t incx, const void *y, int64_t incy, void *a, int64_t lda) {
  return (BlasCall){.name = name,
                    .run = blas_run_product,
                    .operands = {blas_vector(x, type, m, incx), blas_vector(y, type, n, incy),
                                 blas_matrix(a, type, m, n, lda)},
                    .m = m,
                    .n = n,
                    .k = 1,
                    .trans_b = trans};
}

#define GER(name, trans, T, I, S)                                                                            \
  BLAS_API int name##_v2##S(const BlasHandle *h, I m, I n, const void *alpha, const void *x, I incx,         \
                            const void *y, I incy, void *a, I lda) {                                         \
    if (bad_vectors(lda, m, incx, incy)) return BLAS_BAD_VALUE;                                              \
    BlasCall c = ger_call(#name, T, trans, m, n, x, incx, y, incy, a, lda);                                  \
    return product(h, &c, T, T, alpha, NULL);                                                                \
  }
#define GER_REAL(L, T, I, S)    GER(cublas##L##ger, 1, T, I, S)
#define GER_COMPLEX(L, T, I, S) GER(cublas##L##geru, 1, T, I, S) GER(cublas##L##gerc, 2, T, I, S)
BLAS_REAL(GER_REAL)
BLAS_COMPLEX(GER_COMPLEX)

enum { TWICE = 1 }; // and y x^T

static bool run_triangle(const BlasCall *c, BlasView *v) {
  BlasProduct p = {.a = v[0],
                   .b = blas_op(v[1], c->trans_b),
                   .c = v[2],
                   .d = v[2],
                   .m = c->m,
                   .n = c->n,
                   .k = 1,
                   .alpha = c->alpha.value,
                   .beta = 1,
                   .compute = c->compute,
                   .part = c->uplo ? BLAS_UPPER : BLAS_LOWER,
                   .real_diagonal = c->trans_b == 2};
  if (!blas_product(&p)) return false;
  if (c->extra != TWICE) return true;
  p.a = v[1], p.b = blas_op(v[0], c->trans_b);
  if (c->trans_b == 2) p.alpha = conj(p.alpha);
  return blas_product(&p);
}

#define SYR(name, trans, T, R, I, S)                                                                         \
  BLAS_API int name##_v2##S(const BlasHandle *h, int uplo, I n, const void *alpha, const void *x, I incx,    \
                            void *a, I lda) {                                                                \
    if (uplo < 0 || uplo > 1 || bad_vectors(lda, n, incx, 1)) return BLAS_BAD_VALUE;                         \
    BlasCall c = ger_call(#name, T, trans, n, n, x, incx, x, incx, a, lda);                                  \
    c.run = run_triangle, c.uplo = uplo, c.operands[1].unread = true;                                        \
    return product(h, &c, T, R, alpha, NULL);                                                                \
  }
#define SYR2(name, trans, T, I, S)                                                                           \
  BLAS_API int name##_v2##S(const BlasHandle *h, int uplo, I n, const void *alpha, const void *x, I incx,    \
                            const void *y, I incy, void *a, I lda) {                                         \
    if (uplo < 0 || uplo > 1 || bad_vectors(lda, n, incx, incy)) return BLAS_BAD_VALUE;                      \
    BlasCall c = ger_call(#name, T, trans, n, n, x, incx, y, incy, a, lda);                                  \
    c.run = run_triangle, c.uplo = uplo, c.extra = TWICE;                                                    \
    return product(h, &c, T, T, alpha, NULL);                                                                \
  }
#define SYRS(L, T, I, S) SYR(cublas##L##syr, 1, T, T, I, S) SYR2(cublas##L##syr2, 1, T, I, S)
#define HER2(L, T, I, S) SYR2(cublas##L##her2, 2, T, I, S)
BLAS_ALL(SYRS)
BLAS_COMPLEX(HER2)
SYR(cublasCher, 2, BLAS_C32F, BLAS_R32F, int, )
SYR(cublasCher, 2, BLAS_C32F, BLAS_R32F, int64_t, _64)
SYR(cublasZher, 2, BLAS_C64F, BLAS_R64F, int, )
SYR(cublasZher, 2, BLAS_C64F, BLAS_R64F, int64_t, _64)
