// Many small systems: solutions and inverses by LU factors (getrs, getri, matinv), QR factors and least squares (geqrf,
// gels). Computed in double on copies, rounded once.
#include <math.h>
#include <stdlib.h>

#include "blas/blas.h"

// ---- by LU factors ----

// One triangle of a matrix that holds two.
static BlasView triangle_of(BlasView v, bool upper, bool unit) {
  v.shape = unit ? BLAS_UNIT : BLAS_TRIANGULAR;
  v.upper = upper;
  return v;
}

static bool are_rows(const int32_t *pivots, int64_t n) {
  for (int64_t k = 0; pivots && k < n; k++)
    if (pivots[k] < 1 || pivots[k] > n) return false;
  return true;
}

static void exchange(const BlasView *b, const int32_t *pivots, int64_t n, int64_t columns, bool backwards) {
  for (int64_t s = 0; pivots && s < n; s++) {
    int64_t k = backwards ? n - 1 - s : s;
    blas_swap_rows(b, k, pivots[k] - 1, columns);
  }
}

// op(A) X = B in place, where P A = L U: L U X = P B, or U^T L^T P X = B.
static void solve_factored(const BlasView *factors, int trans, const int32_t *pivots, const BlasView *b,
                           int64_t n, int64_t columns) {
  BlasView both = blas_op(*factors, trans), lower = triangle_of(both, false, !trans),
           upper = triangle_of(both, true, trans != 0);
  if (!trans) exchange(b, pivots, n, columns, false);
  blas_solve(&lower, b, n, columns, 1);
  blas_solve(&upper, b, n, columns, 1);
  if (trans) exchange(b, pivots, n, columns, true);
}

// The same in a copy in double, so that B is rounded once.
static bool solve_into(const BlasView *factors, int trans, const int32_t *pivots, const BlasView *b,
                       int64_t n, int64_t columns) {
  BlasView x = blas_copy_of(b, n, columns);
  if (!x.at) return false;
  solve_factored(factors, trans, pivots, &x, n, columns);
  blas_copy_to(&x, b, n, columns);
  free(x.at);
  return true;
}

static void put_identity(const BlasView *v, int64_t n) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < n; i++) blas_put(v, i, j, i == j);
}

static int32_t zero_on_diagonal(const BlasView *a, int64_t n) {
  for (int64_t k = 0; k < n; k++)
    if (blas_get(a, k, k) == 0) return (int32_t)k + 1;
  return 0;
}

// The views are the factors, B, and the pivots.
static bool run_getrs(const BlasCall *c, BlasView *v) {
  const int32_t *pivots = c->count > 2 ? (const int32_t *)(void *)v[2].at : NULL;
  return are_rows(pivots, c->m) && solve_into(&v[0], c->trans_a, pivots, &v[1], c->m, c->n);
}

// The views are the factors, the inverse, an integer of the result, and the pivots.
static bool run_getri(const BlasCall *c, BlasView *v) {
  const int32_t *pivots = c->count > 3 ? (const int32_t *)(void *)v[3].at : NULL;
  int32_t info = zero_on_diagonal(&v[0], c->m);
  blas_put(&v[2], 0, 0, info);
  if (info) return true;
  put_identity(&v[1], c->m);
  return are_rows(pivots, c->m) && solve_into(&v[0], 0, pivots, &v[1], c->m, c->m);
}

static bool run_matinv(const BlasCall *c, BlasView *v) {
  BlasView a = blas_copy_of(&v[0], c->m, c->m);
  int32_t *pivots = malloc((size_t)c->m * sizeof *pivots);
  bool good = a.at && pivots;
  if (good) {
    int info = blas_factor(&a, c->m, pivots);
    blas_put(&v[2], 0, 0, info);
    if (!info) {
      put_identity(&v[1], c->m);
      good = solve_into(&a, 0, pivots, &v[1], c->m, c->m);
    }
  }
  free(pivots);
  free(a.at);
  return good;
}

// What all of them check and fill in. `multiply_adds` of one matrix.
static int run_all(const BlasHandle *h, BlasCall *c, int type, double multiply_adds, int64_t count) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (c->m < 0 || c->n < 0 || count < 0 || blas_bad_trans(c->trans_a)) return BLAS_BAD_VALUE;
  for (int i = 0; i < c->count; i++)
    if (!c->operands[i].step && c->operands[i].lead < (c->operands[i].rows > 1 ? c->operands[i].rows : 1))
      return BLAS_BAD_VALUE;
  if (!c->m || !c->n || !count) return BLAS_OK;
  c->batches = count;
  c->flops = 2 * multiply_adds * (blas_is_complex(type) ? 4 : 1);
  c->dtype = blas_roof(type, false);
  return blas_run(h, c);
}

static BlasOperand listed(const void *at, int type, int64_t rows, int64_t columns, int64_t lead, bool wrote) {
  BlasOperand o = blas_matrix(at, type, rows, columns, lead);
  o.list = true, o.wrote = wrote;
  return o;
}

// `n` integers a matrix, one matrix's after another's.
static BlasOperand integers(const void *at, int64_t n, bool wrote) {
  BlasOperand o = blas_vector(at, BLAS_R32I, n, 1);
  o.batch = n, o.wrote = o.unread = wrote;
  return o;
}

static int getrs(const BlasHandle *h, const char *name, int type, int trans, int64_t n, int64_t columns,
                 const void *a, int64_t lda, const int *pivots, void *b, int64_t ldb, int *info,
                 int64_t count) {
  BlasCall c = {.name = name,
                .run = run_getrs,
                .operands = {listed(a, type, n, n, lda, false), listed(b, type, n, columns, ldb, true),
                             integers(pivots, n, false)},
                .count = pivots ? 3 : 2,
                .m = n,
                .n = columns,
                .trans_a = trans};
  int status = info ? run_all(h, &c, type, (double)n * (double)n * (double)columns, count) : BLAS_BAD_VALUE;
  if (info) *info = status == BLAS_BAD_VALUE ? -1 : 0; // of the arguments, on the host
  return status;
}

static int inverse(const BlasHandle *h, const char *name, int type, int64_t n, const void *a, int64_t lda,
                   const int *pivots, void *to, int64_t ldc, int *info, int64_t count, bool factored) {
  if (!info) return BLAS_BAD_VALUE;
  BlasCall c = {.name = name,
                .run = factored ? run_getri : run_matinv,
                .operands = {listed(a, type, n, n, lda, false), listed(to, type, n, n, ldc, true),
                             integers(info, 1, true), integers(pivots, n, false)},
                .count = pivots ? 4 : 3,
                .m = n,
                .n = n};
  c.operands[1].unread = true;
  return run_all(h, &c, type, (double)n * (double)n * (double)n, count);
}

// ---- QR factors ----

// Columns from `first` on of B less what the k-th reflection changes: I - conj(tau) v v^H, v below the diagonal of A.
static void reflect(const BlasView *a, int64_t k, int64_t m, BlasNumber tau, const BlasView *b, int64_t first,
                    int64_t columns) {
  for (int64_t j = first; j < columns; j++) {
    BlasNumber along = blas_get(b, k, j);
    for (int64_t i = k + 1; i < m; i++) along += conj(blas_get(a, i, k)) * blas_get(b, i, j);
    along *= conj(tau);
    blas_put(b, k, j, blas_get(b, k, j) - along);
    for (int64_t i = k + 1; i < m; i++) blas_put(b, i, j, blas_get(b, i, j) - blas_get(a, i, k) * along);
  }
}

// The k-th reflection of A, which stands below its diagonal then; its tau.
static BlasNumber reflection(const BlasView *a, int64_t k, int64_t m) {
  BlasNumber top = blas_get(a, k, k);
  double below = 0;
  for (int64_t i = k + 1; i < m; i++) below = hypot(below, cabs(blas_get(a, i, k)));
  if (below == 0 && cimag(top) == 0) return 0;
  double norm = -copysign(hypot(cabs(top), below), creal(top));
  for (int64_t i = k + 1; i < m; i++) blas_put(a, i, k, blas_get(a, i, k) / (top - norm));
  blas_put(a, k, k, norm);
  return (norm - top) / norm;
}

// A = Q R in place, as LAPACK has it; B becomes Q^H B where there is one.
static void factor_qr(const BlasView *a, int64_t m, int64_t n, const BlasView *taus, const BlasView *b,
                      int64_t columns) {
  for (int64_t k = 0; k < (m < n ? m : n); k++) {
    BlasNumber tau = reflection(a, k, m);
    if (taus) blas_put(taus, k, 0, tau);
    reflect(a, k, m, tau, a, k + 1, n);
    if (b) reflect(a, k, m, tau, b, 0, columns);
  }
}

// The views are A and its taus.
static bool run_geqrf(const BlasCall *c, BlasView *v) {
  BlasView a = blas_copy_of(&v[0], c->m, c->n);
  if (!a.at) return false;
  factor_qr(&a, c->m, c->n, &v[1], NULL, 0);
  blas_copy_to(&a, &v[0], c->m, c->n);
  free(a.at);
  return true;
}

// The views are A, the right sides that become the solutions, and an integer of the result.
static bool run_gels(const BlasCall *c, BlasView *v) {
  BlasView a = blas_copy_of(&v[0], c->m, c->n), b = blas_copy_of(&v[1], c->m, c->k);
  bool good = a.at && b.at;
  if (good) {
    factor_qr(&a, c->m, c->n, NULL, &b, c->k);
    int32_t info = zero_on_diagonal(&a, c->n);
    if (c->count > 2) blas_put(&v[2], 0, 0, info);
    if (!info) {
      BlasView r = triangle_of(a, true, false);
      blas_solve(&r, &b, c->n, c->k, 1);
      blas_copy_to(&b, &v[1], c->m, c->k);
    }
    blas_copy_to(&a, &v[0], c->m, c->n);
  }
  free(a.at);
  free(b.at);
  return good;
}

static int geqrf(const BlasHandle *h, const char *name, int type, int64_t m, int64_t n, void *a, int64_t lda,
                 void *taus, int *info, int64_t count) {
  int64_t least = m < n ? m : n;
  BlasCall c = {.name = name,
                .run = run_geqrf,
                .operands = {listed(a, type, m, n, lda, true), listed(taus, type, least, 1, least, true)},
                .count = 2,
                .m = m,
                .n = n};
  c.operands[1].unread = true;
  if (c.operands[1].lead < 1) c.operands[1].lead = 1;
  double work = (double)least * (double)least * ((double)(m > n ? m : n) - (double)least / 3);
  int status = info ? run_all(h, &c, type, work, count) : BLAS_BAD_VALUE;
  if (info) *info = status == BLAS_BAD_VALUE ? -1 : 0;
  return status;
}

static int gels(const BlasHandle *h, const char *name, int type, int trans, int64_t m, int64_t n,
                int64_t columns, void *a, int64_t lda, void *b, int64_t ldb, int *info, int *of_each,
                int64_t count) {
  if (blas_is_handle(h) && (trans || m < n)) return BLAS_NOT_SUPPORTED; // as in NVIDIA's
  BlasCall c = {.name = name,
                .run = run_gels,
                .operands = {listed(a, type, m, n, lda, true), listed(b, type, m, columns, ldb, true),
                             integers(of_each, 1, true)},
                .count = of_each ? 3 : 2,
                .m = m,
                .n = n,
                .k = columns};
  double work =
      (double)n * (double)n * ((double)m - (double)n / 3) + 2.0 * (double)m * (double)n * (double)columns;
  int status = info && columns >= 0 ? run_all(h, &c, type, work, count) : BLAS_BAD_VALUE;
  if (info) *info = status == BLAS_BAD_VALUE ? -1 : 0;
  return status;
}

#define SOLVERS(L, T)                                                                                        \
  BLAS_API int cublas##L##getrsBatched(const BlasHandle *h, int trans, int n, int columns, const void *a,    \
                                       int lda, const int *pivots, void *b, int ldb, int *info, int count) { \
    return getrs(h, "cublas" #L "getrsBatched", T, trans, n, columns, a, lda, pivots, b, ldb, info, count);  \
  }                                                                                                          \
  BLAS_API int cublas##L##getriBatched(const BlasHandle *h, int n, const void *a, int lda,                   \
                                       const int *pivots, void *to, int ldc, int *info, int count) {         \
    return inverse(h, "cublas" #L "getriBatched", T, n, a, lda, pivots, to, ldc, info, count, true);         \
  }                                                                                                          \
  BLAS_API int cublas##L##matinvBatched(const BlasHandle *h, int n, const void *a, int lda, void *to,        \
                                        int ldc, int *info, int count) {                                     \
    if (n > 32) return BLAS_BAD_VALUE; /* as in NVIDIA's */                                                  \
    return inverse(h, "cublas" #L "matinvBatched", T, n, a, lda, NULL, to, ldc, info, count, false);         \
  }                                                                                                          \
  BLAS_API int cublas##L##geqrfBatched(const BlasHandle *h, int m, int n, void *a, int lda, void *taus,      \
                                       int *info, int count) {                                               \
    return geqrf(h, "cublas" #L "geqrfBatched", T, m, n, a, lda, taus, info, count);                         \
  }                                                                                                          \
  BLAS_API int cublas##L##gelsBatched(const BlasHandle *h, int trans, int m, int n, int columns, void *a,    \
                                      int lda, void *b, int ldb, int *info, int *of_each, int count) {       \
    return gels(h, "cublas" #L "gelsBatched", T, trans, m, n, columns, a, lda, b, ldb, info, of_each,        \
                count);                                                                                      \
  }
SOLVERS(S, BLAS_R32F)
SOLVERS(D, BLAS_R64F)
SOLVERS(C, BLAS_C32F)
SOLVERS(Z, BLAS_C64F)
