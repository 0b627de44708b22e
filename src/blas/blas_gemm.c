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

#define GEMMS(L, N, T, I, S, compute)                                                                        \
  BLAS_API int cublas##L##gemm##N##S(const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha,  \
                                     const void *a, I lda, const void *b, I ldb, const void *beta, void *c,  \
                                     I ldc) {                                                                \
    Gemm g = plain("cublas" #L "gemm", T, compute, ta, tb, m, n, k);                                         \
    g.alpha = alpha, g.a = a, g.b = b, g.beta = beta, g.c = c;                                               \
    g.lead_a = lda, g.lead_b = ldb, g.lead_c = ldc;                                                          \
    return gemm(h, &g);                                                                                      \
  }
#define BATCHED(L, T, I, S, compute)                                                                         \
  BLAS_API int cublas##L##gemmStridedBatched##S(const BlasHandle *h, int ta, int tb, I m, I n, I k,          \
                                                const void *alpha, const void *a, I lda, long long stride_a, \
                                                const void *b, I ldb, long long stride_b, const void *beta,  \
                                                void *c, I ldc, long long stride_c, I count) {               \
    Gemm g = plain("cublas" #L "gemmStridedBatched", T, compute, ta, tb, m, n, k);                           \
    g.alpha = alpha, g.a = a, g.b = b, g.beta = beta, g.c = c;                                               \
    g.lead_a = lda, g.lead_b = ldb, g.lead_c = ldc, g.batches = count;                                       \
    g.batch_a = stride_a, g.batch_b = stride_b, g.batch_c = stride_c;                                        \
    return gemm(h, &g);                                                                                      \
  }                                                                                                          \
  BLAS_API int cublas##L##gemmBatched##S(const BlasHandle *h, int ta, int tb, I m, I n, I k,                 \
                                         const void *alpha, const void *a, I lda, const void *b, I ldb,      \
                                         const void *beta, void *c, I ldc, I count) {                        \
    Gemm g = plain("cublas" #L "gemmBatched", T, compute, ta, tb, m, n, k);                                  \
    g.alpha = alpha, g.a = a, g.b = b, g.beta = beta, g.c = c;                                               \
    g.lead_a = lda, g.lead_b = ldb, g.lead_c = ldc, g.batches = count, g.list = true;                        \
    return gemm(h, &g);                                                                                      \
  }
#define GEMM_ALL(L, T, I, S)                                                                                 \
  GEMMS(L, _v2, T, I, S, blas_compute_of(T)) BATCHED(L, T, I, S, blas_compute_of(T))
BLAS_ALL(GEMM_ALL)
GEMMS(H, , BLAS_R16F, int, , BLAS_HALF)
GEMMS(H, , BLAS_R16F, int64_t, _64, BLAS_HALF)
BATCHED(H, BLAS_R16F, int, , BLAS_HALF)
BATCHED(H, BLAS_R16F, int64_t, _64, BLAS_HALF)

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
  BLAS_API int cublasSgemmEx##S(const BlasHandle *h, int ta, int tb, I m, I n, I k, const void *alpha,       \
                                const void *a, int type_a, I lda, const void *b, int type_b, I ldb,          \
                                const void *beta, void *c, int type_c, I ldc) {                              \
    Gemm g = GEMM_OF("cublasSgemmEx", 1);                                                                    \
    return typed(h, &g, 68);                                                                                 \
  }
TYPED(int, )
TYPED(int64_t, _64)
