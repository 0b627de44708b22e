// LU factorisation of many small matrices: getrfBatched.
#include <math.h>

#include "blas/blas.h"

void blas_swap_rows(const BlasView *a, int64_t i, int64_t k, int64_t n) {
  for (int64_t j = 0; j < n && i != k; j++) {
    BlasNumber x = blas_get(a, i, j);
    blas_put(a, i, j, blas_get(a, k, j));
    blas_put(a, k, j, x);
  }
}

static int64_t largest_below(const BlasView *a, int64_t k, int64_t n) {
  int64_t best = k;
  for (int64_t i = k + 1; i < n; i++)
    if (cabs(blas_get(a, i, k)) > cabs(blas_get(a, best, k))) best = i;
  return best;
}

int blas_factor(const BlasView *a, int64_t n, int32_t *pivots) {
  int info = 0;
  for (int64_t k = 0; k < n; k++) {
    int64_t pivot = pivots ? largest_below(a, k, n) : k;
    if (pivots) pivots[k] = (int32_t)pivot + 1;
    blas_swap_rows(a, k, pivot, n);
    BlasNumber top = blas_get(a, k, k);
    if (top == 0 && !info) info = (int)k + 1;
    for (int64_t i = k + 1; i < n && top != 0; i++) {
      BlasNumber below = blas_get(a, i, k) / top;
      blas_put(a, i, k, below);
      for (int64_t j = k + 1; j < n; j++) blas_put(a, i, j, blas_get(a, i, j) - below * blas_get(a, k, j));
    }
  }
  return info;
}

// The views are A, and an integer each of the pivots and of the results, one after another from batch to batch.
static bool run_getrf(const BlasCall *c, BlasView *v) {
  int32_t *pivots = c->count > 2 ? (int32_t *)(void *)v[2].at : NULL, info = blas_factor(&v[0], c->n, pivots);
  blas_put(&v[1], 0, 0, info);
  return true;
}

static int getrf(const BlasHandle *h, const char *name, int type, int64_t n, const void *a, int64_t lda,
                 void *pivots, void *info, int64_t count) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (n < 0 || count < 0 || lda < (n > 1 ? n : 1) || !info) return BLAS_BAD_VALUE;
  if (!n || !count) return BLAS_OK;
  BlasCall c = {.name = name,
                .run = run_getrf,
                .operands = {blas_matrix(a, type, n, n, lda), blas_vector(info, BLAS_R32I, 1, 1),
                             blas_vector(pivots, BLAS_R32I, n, 1)},
                .count = pivots ? 3 : 2,
                .n = n,
                .batches = count,
                .flops = 2.0 / 3 * (double)n * (double)n * (double)n * (blas_is_complex(type) ? 4 : 1),
                .dtype = blas_roof(type, false)};
  c.operands[0].list = c.operands[0].wrote = true;
  c.operands[1].batch = 1, c.operands[2].batch = n;
  for (int i = 1; i < 3; i++) c.operands[i].wrote = c.operands[i].unread = true;
  return blas_run(h, &c);
}

#define GETRF(L, T)                                                                                          \
  BLAS_API int cublas##L##getrfBatched(const BlasHandle *h, int n, const void *a, int lda, int *pivots,      \
                                       int *info, int count) {                                               \
    return getrf(h, "cublas" #L "getrfBatched", T, n, a, lda, pivots, info, count);                          \
  }
GETRF(S, BLAS_R32F)
GETRF(D, BLAS_R64F)
GETRF(C, BLAS_C32F)
GETRF(Z, BLAS_C64F)
