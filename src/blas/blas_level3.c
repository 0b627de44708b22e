// Matrices: symm, hemm, syrk, herk, syr2k, her2k, trmm, trsm, geam, dgmm; trmv and trsv, which are trmm and trsm of one column.
#include <stdlib.h>

#include "blas/blas.h"

typedef struct Level3 {
  const char *name;
  int type, scale; // of alpha and beta
  int64_t m, n, k;
  const void *alpha, *beta;
  double flops;
  bool real_beta; // of Hermitian matrices, where alpha is complex
} Level3;

static int real_type(int type) {
  return type == BLAS_C64F ? BLAS_R64F : BLAS_R32F;
}

static int run3(const BlasHandle *h, BlasCall *c, const Level3 *l) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (l->m < 0 || l->n < 0 || l->k < 0 || !l->alpha || c->uplo < 0 || c->uplo > 1 || c->side < 0 ||
      c->side > 1)
    return BLAS_BAD_VALUE;
  if (blas_bad_trans(c->trans_a) || blas_bad_trans(c->trans_b)) return BLAS_BAD_VALUE;
  for (int i = 0; i < c->count; i++)
    if (c->operands[i].lead < (c->operands[i].rows > 1 ? c->operands[i].rows : 1) && !c->operands[i].step)
      return BLAS_BAD_VALUE;
  if (!l->m || !l->n) return BLAS_OK;
  c->name = l->name;
  c->m = l->m, c->n = l->n, c->k = l->k;
  c->alpha = blas_scalar(h, l->alpha, l->scale);
  if (l->beta) c->beta = blas_scalar(h, l->beta, l->real_beta ? real_type(l->scale) : l->scale);
  c->compute = blas_compute_of(l->type);
  c->flops = l->flops * (blas_is_complex(l->type) ? 4 : 1);
  c->dtype = blas_roof(l->type, false);
  c->tensor = c->dtype != SOL_FP32;
  BlasOperand *last = &c->operands[c->count - 1];
  last->wrote = true;
  last->scaled = l->beta != NULL;
  return blas_run(h, c);
}

static BlasProduct product_of(const BlasCall *c, const BlasView *v) {
  return (BlasProduct){.a = v[0],
                       .b = v[1],
                       .c = v[2],
                       .d = v[2],
                       .m = c->m,
                       .n = c->n,
                       .k = c->k,
                       .alpha = c->alpha.value,
                       .beta = c->beta.value,
                       .compute = c->compute};
}

// ---- symmetric and Hermitian matrices ----

static bool run_symm(const BlasCall *c, BlasView *v) {
  BlasProduct p = product_of(c, v);
  p.a.shape = c->extra ? BLAS_HERMITIAN : BLAS_SYMMETRIC;
  p.a.upper = c->uplo == 1;
  if (c->side) { // C = alpha B A + beta C
    BlasView a = p.a;
    p.a = p.b, p.b = a;
  }
  return blas_product(&p);
}

static int symm(const BlasHandle *h, const Level3 *l, int side, int uplo, int hermitian, const void *a,
                int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc) {
  int64_t of = side ? l->n : l->m;
  Level3 own = *l;
  own.k = of;
  own.flops = 2.0 * (double)l->m * (double)l->n * (double)of;
  BlasCall call = {.run = run_symm,
                   .count = 3,
                   .side = side,
                   .uplo = uplo,
                   .extra = hermitian,
                   .operands = {blas_matrix(a, l->type, of, of, lda),
                                blas_matrix(b, l->type, l->m, l->n, ldb),
                                blas_matrix(c, l->type, l->m, l->n, ldc)}};
  return l->beta ? run3(h, &call, &own) : BLAS_BAD_VALUE;
}

#define SYMM(name, T, I, S, hermitian)                                                                       \
  BLAS_API int name##S(const BlasHandle *h, int side, int uplo, I m, I n, const void *alpha, const void *a,  \
                       I lda, const void *b, I ldb, const void *beta, void *c, I ldc) {                      \
    return symm(h, &(Level3){#name, T, T, m, n, 0, alpha, beta, 0, false}, side, uplo, hermitian, a, lda, b, \
                ldb, c, ldc);                                                                                \
  }
#define SYMMS(L, T, I, S) SYMM(cublas##L##symm_v2, T, I, S, 0)
#define HEMMS(L, T, I, S) SYMM(cublas##L##hemm_v2, T, I, S, 1)
BLAS_ALL(SYMMS)
BLAS_COMPLEX(HEMMS)

// ---- C = alpha op(A) op(B)^T (+ the same with A and B exchanged) + beta C, one triangle ----

enum { OF_HERMITIAN = 1, TWICE = 2 };

static bool run_syrk(const BlasCall *c, BlasView *v) {
  BlasProduct p = product_of(c, v);
  int turned = c->extra & OF_HERMITIAN ? 2 : 1;
  p.a = blas_op(v[0], c->trans_a ? turned : 0), p.b = blas_op(v[1], c->trans_a ? 0 : turned);
  p.part = c->uplo ? BLAS_UPPER : BLAS_LOWER;
  p.real_diagonal = c->extra & OF_HERMITIAN && !(c->extra & TWICE);
  if (!blas_product(&p)) return false;
  if (!(c->extra & TWICE)) return true;
  p.a = blas_op(v[1], c->trans_a ? turned : 0), p.b = blas_op(v[0], c->trans_a ? 0 : turned);
  if (turned == 2) p.alpha = conj(p.alpha);
  p.beta = 1;
  p.real_diagonal = turned == 2;
  return blas_product(&p);
}

static int syrk(const BlasHandle *h, const Level3 *l, int uplo, int trans, int extra, const void *a,
                int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc) {
  Level3 own = *l;
  int64_t rows = trans ? l->k : l->n, columns = trans ? l->n : l->k;
  own.m = l->n;
  own.flops = (double)l->n * (double)l->n * (double)l->k * (extra & TWICE ? 2 : 1);
  BlasCall call = {.run = run_syrk,
                   .count = 3,
                   .uplo = uplo,
                   .trans_a = trans,
                   .extra = extra,
                   .operands = {blas_matrix(a, l->type, rows, columns, lda),
                                blas_matrix(b, l->type, rows, columns, ldb),
                                blas_matrix(c, l->type, l->n, l->n, ldc)}};
  call.operands[1].unread = a == b;
  return l->beta ? run3(h, &call, &own) : BLAS_BAD_VALUE;
}

#define SYRK(name, T, R, I, S, extra)                                                                        \
  BLAS_API int name##S(const BlasHandle *h, int uplo, int trans, I n, I k, const void *alpha, const void *a, \
                       I lda, const void *beta, void *c, I ldc) {                                            \
    return syrk(h, &(Level3){#name, T, R, 0, n, k, alpha, beta, 0, false}, uplo, trans, extra, a, lda, a,    \
                lda, c, ldc);                                                                                \
  }
#define SYRKX(name, T, I, S, extra)                                                                          \
  BLAS_API int name##S(const BlasHandle *h, int uplo, int trans, I n, I k, const void *alpha, const void *a, \
                       I lda, const void *b, I ldb, const void *beta, void *c, I ldc) {                      \
    Level3 l = {#name, T, T, 0, n, k, alpha, beta, 0, ((extra)&OF_HERMITIAN) != 0};                          \
    return syrk(h, &l, uplo, trans, extra, a, lda, b, ldb, c, ldc);                                          \
  }
#define SYRKS(L, T, I, S)                                                                                    \
  SYRK(cublas##L##syrk_v2, T, T, I, S, 0)                                                                    \
  SYRKX(cublas##L##syrkx, T, I, S, 0) SYRKX(cublas##L##syr2k_v2, T, I, S, TWICE)
#define HER2KS(L, T, I, S)                                                                                   \
  SYRKX(cublas##L##herkx, T, I, S, OF_HERMITIAN)                                                             \
  SYRKX(cublas##L##her2k_v2, T, I, S, OF_HERMITIAN | TWICE)
BLAS_ALL(SYRKS)
BLAS_COMPLEX(HER2KS)
SYRK(cublasCherk_v2, BLAS_C32F, BLAS_R32F, int, , OF_HERMITIAN)
SYRK(cublasCherk_v2, BLAS_C32F, BLAS_R32F, int64_t, _64, OF_HERMITIAN)
SYRK(cublasZherk_v2, BLAS_C64F, BLAS_R64F, int, , OF_HERMITIAN)
SYRK(cublasZherk_v2, BLAS_C64F, BLAS_R64F, int64_t, _64, OF_HERMITIAN)

// ---- triangular matrices ----

static BlasView triangle(const BlasCall *c, BlasView a) {
  a.shape = c->unit ? BLAS_UNIT : BLAS_TRIANGULAR;
  a.upper = c->uplo == 1;
  return blas_op(a, c->trans_a);
}

// B may be C.
static bool run_trmm(const BlasCall *c, BlasView *v) {
  BlasView a = triangle(c, v[0]), b = blas_copy_of(&v[1], c->m, c->n);
  if (!b.at) return false;
  BlasProduct p = product_of(c, v);
  p.a = c->side ? b : a, p.b = c->side ? a : b;
  bool done = blas_product(&p);
  free(b.at);
  return done;
}

// Column by column; from the first row on where A is lower.
void blas_solve(const BlasView *a, const BlasView *b, int64_t m, int64_t n, BlasNumber alpha) {
  for (int64_t j = 0; j < n; j++)
    for (int64_t s = 0; s < m; s++) {
      int64_t i = a->upper ? m - 1 - s : s;
      BlasNumber x = alpha * blas_get(b, i, j);
      for (int64_t t = 0; t < s; t++) {
        int64_t k = a->upper ? m - 1 - t : t;
        x -= blas_get(a, i, k) * blas_get(b, k, j);
      }
      blas_put(b, i, j, x / blas_get(a, i, i));
    }
}

// X A = B is A^T X^T = B^T.
static bool run_trsm(const BlasCall *c, BlasView *v) {
  BlasView a = triangle(c, v[0]), b = blas_copy_of(&v[1], c->m, c->n);
  if (!b.at) return false;
  BlasView at = blas_op(a, c->side), bt = blas_op(b, c->side);
  blas_solve(&at, &bt, c->side ? c->n : c->m, c->side ? c->m : c->n, c->alpha.value);
  blas_copy_to(&b, &v[1], c->m, c->n);
  free(b.at);
  return true;
}

static BlasCall triangular(const Level3 *l, int side, int uplo, int trans, int unit, const void *a,
                           int64_t lda, const void *b, int64_t ldb) {
  int64_t of = side ? l->n : l->m;
  return (BlasCall){
      .run = run_trsm,
      .count = 2,
      .side = side,
      .uplo = uplo,
      .trans_a = trans,
      .unit = unit,
      .operands = {blas_matrix(a, l->type, of, of, lda), blas_matrix(b, l->type, l->m, l->n, ldb)}};
}

static double triangular_flops(const Level3 *l, int side) {
  return (double)l->m * (double)l->n * (double)(side ? l->n : l->m);
}

#define TRIANGULAR(L, T, I, S)                                                                               \
  BLAS_API int cublas##L##trsm_v2##S(const BlasHandle *h, int side, int uplo, int trans, int diag, I m, I n, \
                                     const void *alpha, const void *a, I lda, void *b, I ldb) {              \
    Level3 l = {"cublas" #L "trsm", T, T, m, n, side ? n : m, alpha, NULL, 0, false};                        \
    BlasCall c = triangular(&l, side, uplo, trans, diag, a, lda, b, ldb);                                    \
    l.flops = triangular_flops(&l, side);                                                                    \
    return run3(h, &c, &l);                                                                                  \
  }                                                                                                          \
  BLAS_API int cublas##L##trsmBatched##S(const BlasHandle *h, int side, int uplo, int trans, int diag, I m,  \
                                         I n, const void *alpha, const void *a, I lda, void *b, I ldb,       \
                                         I count) {                                                          \
    Level3 l = {"cublas" #L "trsmBatched", T, T, m, n, side ? n : m, alpha, NULL, 0, false};                 \
    BlasCall c = triangular(&l, side, uplo, trans, diag, a, lda, b, ldb);                                    \
    if (count <= 0) return count ? BLAS_BAD_VALUE : BLAS_OK;                                                 \
    c.batches = count, c.operands[0].list = c.operands[1].list = true;                                       \
    l.flops = triangular_flops(&l, side);                                                                    \
    return run3(h, &c, &l);                                                                                  \
  }                                                                                                          \
  BLAS_API int cublas##L##trmm_v2##S(const BlasHandle *h, int side, int uplo, int trans, int diag, I m, I n, \
                                     const void *alpha, const void *a, I lda, const void *b, I ldb,          \
                                     void *out, I ldc) {                                                     \
    Level3 l = {"cublas" #L "trmm", T, T, m, n, side ? n : m, alpha, NULL, 0, false};                        \
    BlasCall c = triangular(&l, side, uplo, trans, diag, a, lda, b, ldb);                                    \
    c.run = run_trmm, c.count = 3, c.operands[2] = blas_matrix(out, T, m, n, ldc);                           \
    c.operands[2].unread = true;                                                                             \
    l.flops = triangular_flops(&l, side);                                                                    \
    return run3(h, &c, &l);                                                                                  \
  }
BLAS_ALL(TRIANGULAR)

static int of_vector(const BlasHandle *h, const char *name, int type, bool solves, int uplo, int trans,
                     int diag, int64_t n, const void *a, int64_t lda, void *x, int64_t step) {
  static const double one = 1;
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!step) return BLAS_BAD_VALUE;
  BlasHandle host = *h;
  host.pointers = 0;
  Level3 l = {name, type, BLAS_R64F, n, 1, n, &one, NULL, (double)n * (double)n, false};
  BlasCall c = triangular(&l, 0, uplo, trans, diag, a, lda, x, n);
  c.operands[1] = c.operands[2] = blas_vector(x, type, n, step);
  if (!solves) c.run = run_trmm, c.count = 3, c.operands[2].unread = true;
  return run3(&host, &c, &l);
}

#define OF_VECTOR(L, T, I, S)                                                                                \
  BLAS_API int cublas##L##trmv_v2##S(const BlasHandle *h, int uplo, int trans, int diag, I n, const void *a, \
                                     I lda, void *x, I incx) {                                               \
    return of_vector(h, "cublas" #L "trmv", T, false, uplo, trans, diag, n, a, lda, x, incx);                \
  }                                                                                                          \
  BLAS_API int cublas##L##trsv_v2##S(const BlasHandle *h, int uplo, int trans, int diag, I n, const void *a, \
                                     I lda, void *x, I incx) {                                               \
    return of_vector(h, "cublas" #L "trsv", T, true, uplo, trans, diag, n, a, lda, x, incx);                 \
  }
BLAS_ALL(OF_VECTOR)

// ---- element by element ----

static bool run_geam(const BlasCall *c, BlasView *v) {
  BlasView a = blas_op(v[0], c->trans_a), b = blas_op(v[1], c->trans_b);
  for (int64_t j = 0; j < c->n; j++)
    for (int64_t i = 0; i < c->m; i++) {
      BlasNumber x = c->alpha.value == 0 ? 0 : c->alpha.value * blas_get(&a, i, j);
      blas_put(&v[2], i, j, x + (c->beta.value == 0 ? 0 : c->beta.value * blas_get(&b, i, j)));
    }
  return true;
}

static bool run_dgmm(const BlasCall *c, BlasView *v) {
  for (int64_t j = 0; j < c->n; j++)
    for (int64_t i = 0; i < c->m; i++)
      blas_put(&v[2], i, j, blas_get(&v[0], i, j) * blas_get(&v[1], c->side ? j : i, 0));
  return true;
}

#define BY_ELEMENT(L, T, I, S)                                                                               \
  BLAS_API int cublas##L##geam##S(const BlasHandle *h, int ta, int tb, I m, I n, const void *alpha,          \
                                  const void *a, I lda, const void *beta, const void *b, I ldb, void *out,   \
                                  I ldc) {                                                                   \
    BlasCall c = {.run = run_geam,                                                                           \
                  .count = 3,                                                                                \
                  .trans_a = ta,                                                                             \
                  .trans_b = tb,                                                                             \
                  .operands = {blas_matrix(a, T, ta ? n : m, ta ? m : n, lda),                               \
                               blas_matrix(b, T, tb ? n : m, tb ? m : n, ldb),                               \
                               blas_matrix(out, T, m, n, ldc)}};                                             \
    c.operands[2].unread = true;                                                                             \
    if (!a) c.operands[0] = c.operands[1];                                                                   \
    if (!b) c.operands[1] = c.operands[0];                                                                   \
    Level3 l = {"cublas" #L "geam", T, T, m, n, 0, alpha, beta, 3.0 * (double)m * (double)n, false};         \
    return beta ? run3(h, &c, &l) : BLAS_BAD_VALUE;                                                          \
  }                                                                                                          \
  BLAS_API int cublas##L##dgmm##S(const BlasHandle *h, int side, I m, I n, const void *a, I lda,             \
                                  const void *x, I incx, void *out, I ldc) {                                 \
    static const double one[2] = {1, 0};                                                                     \
    BlasHandle host = blas_is_handle(h) ? *h : (BlasHandle){0};                                              \
    host.pointers = 0;                                                                                       \
    BlasCall c = {.run = run_dgmm,                                                                           \
                  .count = 3,                                                                                \
                  .side = side,                                                                              \
                  .operands = {blas_matrix(a, T, m, n, lda), blas_vector(x, T, side ? n : m, incx),          \
                               blas_matrix(out, T, m, n, ldc)}};                                             \
    c.operands[2].unread = true;                                                                             \
    Level3 l = {"cublas" #L "dgmm", T, BLAS_R64F, m, n, 0, one, NULL, (double)m * (double)n, false};         \
    return run3(&host, &c, &l);                                                                              \
  }
BLAS_ALL(BY_ELEMENT)
