// gemm in all its forms: by type, with types of their own, strided and by arrays of pointers.
#include "blas/blas.h"

enum { TF32_MATH = 3 }; // CUBLAS_TF32_TENSOR_OP_MATH

bool blas_run_product(const BlasCall *c, BlasView *v) {
  BlasProduct p = {.a = blas_op(v[0], c->trans_a),
                   .b = blas_op(v[1], c->trans_b),
                   .c = v[2],
                   .d = v[2],
                   .m = c->m,
                   .n = c->n,
                   .k = c->k,
                   .alpha = c->alpha.value,
                   .beta = c->beta.value,
                   .compute = c->compute};
  return blas_product(&p);
}

typedef struct Gemm {
  const char *name;
  int trans_a, trans_b;
  int64_t m, n, k;
  const void *alpha, *a, *b, *beta;
  void *c;
  int type_a, type_b, type_c, scale;
  int64_t lead_a, lead_b, lead_c, batch_a, batch_b, batch_c, batches;
  BlasCompute compute;
  bool list, tf32;
} Gemm;

static bool bad_sizes(const Gemm *g) {
  int64_t rows_a = g->trans_a ? g->k : g->m, rows_b = g->trans_b ? g->n : g->k;
  return blas_bad_trans(g->trans_a) || blas_bad_trans(g->trans_b) || g->m < 0 || g->n < 0 || g->k < 0 ||
         g->batches < 0 || g->lead_a < (rows_a > 1 ? rows_a : 1) || g->lead_b < (rows_b > 1 ? rows_b : 1) ||
         g->lead_c < (g->m > 1 ? g->m : 1) || !g->alpha || !g->beta;
}

static int gemm(const BlasHandle *h, const Gemm *g) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (bad_sizes(g)) return BLAS_BAD_VALUE;
  if (!blas_bytes(g->type_a) || !blas_bytes(g->type_b) || !blas_bytes(g->type_c)) return BLAS_NOT_SUPPORTED;
  if (!g->m || !g->n || !g->batches) return BLAS_OK;
  bool is_complex = blas_is_complex(g->type_c), tf32 = g->tf32 || h->math == TF32_MATH;
  BlasCall c = {.name = g->name,
                .run = blas_run_product,
                .operands = {blas_matrix(g->a, g->type_a, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k,
                                         g->lead_a),
                             blas_matrix(g->b, g->type_b, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n,
                                         g->lead_b),
                             blas_matrix(g->c, g->type_c, g->m, g->n, g->lead_c)},
                .count = 3,
                .m = g->m,
                .n = g->n,
                .k = g->k,
                .batches = g->batches,
                .alpha = blas_scalar(h, g->alpha, g->scale),
                .beta = blas_scalar(h, g->beta, g->scale),
                .trans_a = g->trans_a,
                .trans_b = g->trans_b,
                .compute = g->compute,
                .flops = 2.0 * (double)g->m * (double)g->n * (double)g->k * (is_complex ? 4 : 1),
                .dtype = blas_roof(g->type_a, tf32)};
  const int64_t batch[] = {g->batch_a, g->batch_b, g->batch_c};
  for (int i = 0; i < 3; i++) c.operands[i].batch = batch[i], c.operands[i].list = g->list;
  c.operands[2].wrote = c.operands[2].scaled = true;
  c.tensor = c.dtype != SOL_FP32;
  return blas_run(h, &c);
}

// ---- one type for all ----

static Gemm plain(const char *name, int type, BlasCompute compute, int ta, int tb, int64_t m, int64_t n,
                  int64_t k) {
  return (Gemm){.name = name,
                .trans_a = ta,
                .trans_b = tb,
                .m = m,
                .n = n,
                .k = k,
                .type_a = type,
                .type_b = type,
                .type_c = type,
                .scale = type,
                .batches = 1,
                .compute = compute};
}

// `gemm` is gemm, or gemm3m: the same product, which NVIDIA's computes with fewer multiplications.
#define GEMMS(L, gemm_, N, T, I, S, compute)                                                                 \
  BLAS_API int cublas##L##gemm_##N##S(const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha, \
                                      const void *a, I lda, const void *b, I ldb, const void *beta, void *c, \
                                      I ldc) {                                                               \
    Gemm g = plain("cublas" #L#gemm_, T, compute, ta, tb, m, n, k);                                          \
    g.alpha = alpha, g.a = a, g.b = b, g.beta = beta, g.c = c;                                               \
    g.lead_a = lda, g.lead_b = ldb, g.lead_c = ldc;                                                          \
    return gemm(h, &g);                                                                                      \
  }
#define BATCHED(L, gemm_, T, I, S, compute)                                                                  \
  BLAS_API int cublas##L##gemm_##StridedBatched##S(                                                          \
      const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha, const void *a, I lda,           \
      long long stride_a, const void *b, I ldb, long long stride_b, const void *beta, void *c, I ldc,        \
      long long stride_c, I count) {                                                                         \
    Gemm g = plain("cublas" #L#gemm_ "StridedBatched", T, compute, ta, tb, m, n, k);                         \
    g.alpha = alpha, g.a = a, g.b = b, g.beta = beta, g.c = c;                                               \
    g.lead_a = lda, g.lead_b = ldb, g.lead_c = ldc, g.batches = count;                                       \
    g.batch_a = stride_a, g.batch_b = stride_b, g.batch_c = stride_c;                                        \
    return gemm(h, &g);                                                                                      \
  }                                                                                                          \
  BLAS_API int cublas##L##gemm_##Batched##S(const BlasHandle *h, int ta, int tb, I m, I n, I k,              \
                                            const void *alpha, const void *a, I lda, const void *b, I ldb,   \
                                            const void *beta, void *c, I ldc, I count) {                     \
    Gemm g = plain("cublas" #L#gemm_ "Batched", T, compute, ta, tb, m, n, k);                                \
    g.alpha = alpha, g.a = a, g.b = b, g.beta = beta, g.c = c;                                               \
    g.lead_a = lda, g.lead_b = ldb, g.lead_c = ldc, g.batches = count, g.list = true;                        \
    return gemm(h, &g);                                                                                      \
  }
#define GEMM_ALL(L, T, I, S)                                                                                 \
  GEMMS(L, gemm, _v2, T, I, S, blas_compute_of(T)) BATCHED(L, gemm, T, I, S, blas_compute_of(T))
#define GEMM_3M(L, T, I, S)   GEMMS(L, gemm3m, , T, I, S, blas_compute_of(T))
#define GEMM_HALF(L, T, I, S) GEMMS(L, gemm, , T, I, S, BLAS_HALF) BATCHED(L, gemm, T, I, S, BLAS_HALF)
BLAS_ALL(GEMM_ALL)
BLAS_COMPLEX(GEMM_3M)
BLAS_SIZES(GEMM_HALF, H, BLAS_R16F)
BATCHED(C, gemm3m, BLAS_C32F, int, , BLAS_CFLOAT)
BATCHED(C, gemm3m, BLAS_C32F, int64_t, _64, BLAS_CFLOAT)

// ---- types of their own ----

// cublasComputeType_t: the type that products accumulate in, and that of alpha and beta.
static bool take_compute(int compute, Gemm *g) {
  bool is_complex = blas_is_complex(g->type_c);
  switch (compute) {
  case 64:
  case 65: g->compute = BLAS_HALF, g->scale = BLAS_R16F; return !is_complex;
  case 77: g->tf32 = true; // fall through
  case 68:
  case 69:
  case 74:
  case 75:
  case 78:
    g->compute = is_complex ? BLAS_CFLOAT : BLAS_FLOAT, g->scale = is_complex ? BLAS_C32F : BLAS_R32F;
    return true;
  case 70:
  case 71:
    g->compute = is_complex ? BLAS_CDOUBLE : BLAS_DOUBLE, g->scale = is_complex ? BLAS_C64F : BLAS_R64F;
    return true;
  case 72:
  case 73: g->compute = BLAS_INT, g->scale = BLAS_R32I; return g->type_c == BLAS_R32I;
  default: return false;
  }
}

static int typed(const BlasHandle *h, Gemm *g, int compute) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  return take_compute(compute, g) ? gemm(h, g) : BLAS_NOT_SUPPORTED;
}

// The Gemm of an entry's own parameters, which all have these names.
#define GEMM_OF(name, how_many)                                                                              \
  {                                                                                                          \
    name, ta, tb, m, n, k, alpha, a, b, beta, c, type_a, type_b, type_c, 0, lda, ldb, ldc,                   \
        .batches = how_many                                                                                  \
  }
#define TYPED(I, S)                                                                                          \
  BLAS_API int cublasGemmEx##S(const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha,        \
                               const void *a, int type_a, I lda, const void *b, int type_b, I ldb,           \
                               const void *beta, void *c, int type_c, I ldc, int compute, int algo) {        \
    Gemm g = GEMM_OF("cublasGemmEx", 1);                                                                     \
    (void)algo;                                                                                              \
    return typed(h, &g, compute);                                                                            \
  }                                                                                                          \
  BLAS_API int cublasGemmStridedBatchedEx##S(                                                                \
      const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha, const void *a, int type_a,      \
      I lda, long long stride_a, const void *b, int type_b, I ldb, long long stride_b, const void *beta,     \
      void *c, int type_c, I ldc, long long stride_c, I count, int compute, int algo) {                      \
    Gemm g = GEMM_OF("cublasGemmStridedBatchedEx", count);                                                   \
    g.batch_a = stride_a, g.batch_b = stride_b, g.batch_c = stride_c;                                        \
    (void)algo;                                                                                              \
    return typed(h, &g, compute);                                                                            \
  }                                                                                                          \
  BLAS_API int cublasGemmBatchedEx##S(const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha, \
                                      const void *a, int type_a, I lda, const void *b, int type_b, I ldb,    \
                                      const void *beta, void *c, int type_c, I ldc, I count, int compute,    \
                                      int algo) {                                                            \
    Gemm g = GEMM_OF("cublasGemmBatchedEx", count);                                                          \
    g.list = true;                                                                                           \
    (void)algo;                                                                                              \
    return typed(h, &g, compute);                                                                            \
  }                                                                                                          \
  SUMS_IN_FLOAT(cublasSgemmEx, I, S)                                                                         \
  SUMS_IN_FLOAT(cublasCgemmEx, I, S)                                                                         \
  SUMS_IN_FLOAT(cublasCgemm3mEx, I, S)
#define SUMS_IN_FLOAT(name, I, S)                                                                            \
  BLAS_API int name##S(const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha, const void *a, \
                       int type_a, I lda, const void *b, int type_b, I ldb, const void *beta, void *c,       \
                       int type_c, I ldc) {                                                                  \
    Gemm g = GEMM_OF(#name, 1);                                                                              \
    return typed(h, &g, 68);                                                                                 \
  }
TYPED(int, )
TYPED(int64_t, _64)

// ---- groups: sizes and factors of their own, the matrices of all groups in one array of pointers ----

typedef struct Groups { // arrays of the host's, an element a group
  const int *ta, *tb;
  const void *m, *n, *k, *lda, *ldb, *ldc, *sizes; // of int, or of int64_t
  bool wide;
  const unsigned char *alpha, *beta;
  int64_t count;
} Groups;

static int64_t of_group(const Groups *g, const void *numbers, int64_t i) {
  return g->wide ? ((const int64_t *)numbers)[i] : ((const int *)numbers)[i];
}

// The pointers from a group on that `before` matrices stand before.
static const void *list_from(const void *list, int64_t before) {
  return (const unsigned char *)list + before * (int64_t)sizeof(void *);
}

static Gemm gemm_of_group(const Groups *of, const Gemm *all, int64_t i, int64_t before) {
  Gemm g = *all;
  g.trans_a = of->ta[i], g.trans_b = of->tb[i];
  g.m = of_group(of, of->m, i), g.n = of_group(of, of->n, i), g.k = of_group(of, of->k, i);
  g.lead_a = of_group(of, of->lda, i), g.lead_b = of_group(of, of->ldb, i);
  g.lead_c = of_group(of, of->ldc, i);
  g.alpha = of->alpha + (size_t)i * blas_bytes(g.scale), g.beta = of->beta + (size_t)i * blas_bytes(g.scale);
  g.a = list_from(all->a, before), g.b = list_from(all->b, before);
  g.c = (void *)(uintptr_t)list_from(all->c, before);
  g.batches = of_group(of, of->sizes, i), g.list = true;
  return g;
}

static int grouped(const BlasHandle *h, Gemm *all, const Groups *of, int compute) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (of->count < 0 || !of->ta || !of->tb || !of->m || !of->n || !of->k || !of->lda || !of->ldb || !of->ldc ||
      !of->sizes || !of->alpha || !of->beta)
    return BLAS_BAD_VALUE;
  if (!take_compute(compute, all)) return BLAS_NOT_SUPPORTED;
  int status = BLAS_OK;
  for (int64_t i = 0, before = 0; i < of->count && !status; before += of_group(of, of->sizes, i++)) {
    Gemm g = gemm_of_group(of, all, i, before);
    status = gemm(h, &g);
  }
  return status;
}

// The Groups of an entry's own parameters, which all have these names.
#define GROUPS_OF(I)                                                                                         \
  { ta, tb, m, n, k, lda, ldb, ldc, sizes, sizeof(I) == 8, alpha, beta, count }
#define GROUPED(L, T, I, S)                                                                                  \
  BLAS_API int cublas##L##gemmGroupedBatched##S(                                                             \
      const BlasHandle *h, const int *ta, const int *tb, const I *m, const I *n, const I *k,                 \
      const void *alpha, const void *a, const I *lda, const void *b, const I *ldb, const void *beta,         \
      void *c, const I *ldc, I count, const I *sizes) {                                                      \
    Groups of = GROUPS_OF(I);                                                                                \
    Gemm all = plain("cublas" #L "gemmGroupedBatched", T, BLAS_FLOAT, 0, 0, 0, 0, 0);                        \
    all.a = a, all.b = b, all.c = c;                                                                         \
    return grouped(h, &all, &of, T == BLAS_R64F ? 70 : 68);                                                  \
  }
#define GROUPED_TYPED(I, S)                                                                                  \
  BLAS_API int cublasGemmGroupedBatchedEx##S(                                                                \
      const BlasHandle *h, const int *ta, const int *tb, const I *m, const I *n, const I *k,                 \
      const void *alpha, const void *a, int type_a, const I *lda, const void *b, int type_b, const I *ldb,   \
      const void *beta, void *c, int type_c, const I *ldc, I count, const I *sizes, int compute) {           \
    Groups of = GROUPS_OF(I);                                                                                \
    Gemm all = plain("cublasGemmGroupedBatchedEx", type_c, BLAS_FLOAT, 0, 0, 0, 0, 0);                       \
    all.type_a = type_a, all.type_b = type_b, all.a = a, all.b = b, all.c = c;                               \
    return grouped(h, &all, &of, compute);                                                                   \
  }
BLAS_REAL(GROUPED)
GROUPED_TYPED(int, )
GROUPED_TYPED(int64_t, _64)
