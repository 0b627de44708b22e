// cuBLASLt: descriptors, one algorithm, and cublasLtMatmul with bias, ReLU and GELU.
//
// Descriptors keep their attributes by number. Programs may hold them in memory of their own, of the sizes that
// cublasLt.h gives: 8 words a layout or a preference, 32 a product.
#include <stdlib.h>
#include <string.h>

#include "blas/blas.h"

enum {
  COMPUTE = 0,
  SCALE = 1,
  POINTERS = 2,
  TRANS_A = 3,
  TRANS_B = 4,
  EPILOGUE = 7,
  BIAS = 8,
  SCALES_FROM = 17,
  SCALES_TO = 20,
  BIAS_TYPE = 26,
  DESC_WORDS = 31
};
enum { TYPE = 0, ORDER = 1, ROWS = 2, COLUMNS = 3, LEAD = 4, BATCHES = 5, STRIDE = 6, LAYOUT_WORDS = 8 };
enum { WITH_RELU = 2, WITH_BIAS = 4, WITH_GELU = 32 };

typedef struct LtDesc {
  uint64_t values[DESC_WORDS];
  uint64_t other; // an attribute was set that is not computed here
} LtDesc;
typedef struct LtLayout {
  uint64_t values[LAYOUT_WORDS];
} LtLayout;

// ---- descriptors ----

static int set_value(uint64_t *values, int count, int which, const void *from, size_t bytes) {
  if (which < 0 || which >= count || !from || bytes > 8) return BLAS_BAD_VALUE;
  values[which] = 0;
  memcpy(&values[which], from, bytes);
  return BLAS_OK;
}

static int get_value(const uint64_t *values, int count, int which, void *to, size_t bytes, size_t *written) {
  if (which < 0 || which >= count || (!to && bytes) || bytes > 8) return BLAS_BAD_VALUE;
  if (written) *written = bytes ? bytes : 8;
  if (bytes) memcpy(to, &values[which], bytes);
  return BLAS_OK;
}

BLAS_API int cublasLtMatmulDescInit_internal(LtDesc *desc, size_t bytes, int compute, int scale) {
  if (!desc || bytes < sizeof *desc) return BLAS_BAD_VALUE;
  *desc = (LtDesc){.values = {[COMPUTE] = (uint64_t)compute, [SCALE] = (uint64_t)scale, [EPILOGUE] = 1}};
  desc->values[BIAS_TYPE] = (uint64_t)-1;
  return BLAS_OK;
}
BLAS_API int cublasLtMatmulDescCreate(LtDesc **out, int compute, int scale) {
  if (!out) return BLAS_BAD_VALUE;
  *out = malloc(sizeof **out);
  return *out ? cublasLtMatmulDescInit_internal(*out, sizeof **out, compute, scale) : BLAS_NO_ROOM;
}
BLAS_API int cublasLtMatmulDescDestroy(LtDesc *desc) {
  free(desc);
  return BLAS_OK;
}
BLAS_API int cublasLtMatmulDescSetAttribute(LtDesc *desc, int which, const void *from, size_t bytes) {
  uint64_t value = 0;
  if (!desc || set_value(&value, 1, 0, from, bytes)) return BLAS_BAD_VALUE;
  if (which < DESC_WORDS) return set_value(desc->values, DESC_WORDS, which, from, bytes);
  desc->other |= value != 0;
  return BLAS_OK;
}
BLAS_API int cublasLtMatmulDescGetAttribute(const LtDesc *desc, int which, void *to, size_t bytes,
                                            size_t *written) {
  return desc ? get_value(desc->values, DESC_WORDS, which, to, bytes, written) : BLAS_BAD_VALUE;
}

BLAS_API int cublasLtMatrixLayoutInit_internal(LtLayout *layout, size_t bytes, int type, uint64_t rows,
                                               uint64_t columns, int64_t lead) {
  if (!layout || bytes < sizeof *layout) return BLAS_BAD_VALUE;
  *layout = (LtLayout){{(uint64_t)type, 0, rows, columns, (uint64_t)lead, 1}};
  return BLAS_OK;
}
BLAS_API int cublasLtMatrixLayoutCreate(LtLayout **out, int type, uint64_t rows, uint64_t columns,
                                        int64_t lead) {
  if (!out) return BLAS_BAD_VALUE;
  *out = malloc(sizeof **out);
  return *out ? cublasLtMatrixLayoutInit_internal(*out, sizeof **out, type, rows, columns, lead)
              : BLAS_NO_ROOM;
}
BLAS_API int cublasLtMatrixLayoutDestroy(LtLayout *layout) {
  free(layout);
  return BLAS_OK;
}
BLAS_API int cublasLtMatrixLayoutSetAttribute(LtLayout *layout, int which, const void *from, size_t bytes) {
  return layout ? set_value(layout->values, LAYOUT_WORDS, which, from, bytes) : BLAS_BAD_VALUE;
}
BLAS_API int cublasLtMatrixLayoutGetAttribute(const LtLayout *layout, int which, void *to, size_t bytes,
                                              size_t *written) {
  return layout ? get_value(layout->values, LAYOUT_WORDS, which, to, bytes, written) : BLAS_BAD_VALUE;
}

BLAS_API int cublasLtMatmulPreferenceInit_internal(LtLayout *preference, size_t bytes) {
  if (!preference || bytes < sizeof *preference) return BLAS_BAD_VALUE;
  *preference = (LtLayout){{0}};
  return BLAS_OK;
}
BLAS_API int cublasLtMatmulPreferenceCreate(LtLayout **out) {
  if (!out) return BLAS_BAD_VALUE;
  *out = calloc(1, sizeof **out);
  return *out ? BLAS_OK : BLAS_NO_ROOM;
}
BLAS_API int cublasLtMatmulPreferenceDestroy(LtLayout *preference) {
  free(preference);
  return BLAS_OK;
}
BLAS_API int cublasLtMatmulPreferenceSetAttribute(LtLayout *preference, int which, const void *from,
                                                  size_t bytes) {
  (void)which; // there is one algorithm, which needs no workspace
  return preference && from && bytes ? BLAS_OK : BLAS_BAD_VALUE;
}

typedef struct LtResult { // cublasLtMatmulHeuristicResult_t
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} LtResult;

BLAS_API int cublasLtMatmulAlgoGetHeuristic(const BlasHandle *h, const LtDesc *desc, const LtLayout *a,
                                            const LtLayout *b, const LtLayout *c, const LtLayout *d,
                                            const LtLayout *preference, int wanted, LtResult *results,
                                            int *count) {
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!desc || !a || !b || !c || !d || !preference || wanted < 1 || !results || !count) return BLAS_BAD_VALUE;
  memset(results, 0, sizeof *results);
  results[0].waves = 1;
  *count = 1;
  return BLAS_OK;
}

// ---- the product ----

static bool run_matmul(const BlasCall *c, BlasView *v) {
  BlasView bias = {.type = c->bias_type, .down = 1};
  for (int i = 0; i < 4; i++)
    if (c->extra >> i & 1) v[i] = blas_op(v[i], 1); // stored by rows
  if (c->bias) {
    bias.at = __cudaSolLibraryMemory(c->name, c->bias, (size_t)c->m * blas_bytes(c->bias_type));
    if (!bias.at) return false;
  }
  BlasProduct p = {.a = blas_op(v[0], c->trans_a),
                   .b = blas_op(v[1], c->trans_b),
                   .c = v[2],
                   .d = v[3],
                   .m = c->m,
                   .n = c->n,
                   .k = c->k,
                   .alpha = c->alpha.value,
                   .beta = c->beta.value,
                   .compute = c->compute,
                   .bias = c->bias ? &bias : NULL,
                   .activation = c->activation};
  return blas_product(&p);
}

static BlasOperand operand_of(const void *at, const LtLayout *l) {
  bool by_rows = l->values[ORDER] == 1;
  BlasOperand o = blas_matrix(at, (int)l->values[TYPE], (int64_t)l->values[by_rows ? COLUMNS : ROWS],
                              (int64_t)l->values[by_rows ? ROWS : COLUMNS], (int64_t)l->values[LEAD]);
  o.batch = (int64_t)l->values[STRIDE];
  return o;
}

static bool take_compute(const LtDesc *d, bool is_complex, BlasCall *c, bool *tf32) {
  int compute = (int)d->values[COMPUTE];
  *tf32 = compute == 77;
  if (compute == 64 || compute == 65)
    c->compute = BLAS_HALF;
  else if (compute == 70 || compute == 71)
    c->compute = is_complex ? BLAS_CDOUBLE : BLAS_DOUBLE;
  else if (compute == 72 || compute == 73)
    c->compute = BLAS_INT;
  else if (compute == 68 || compute == 69 || (compute >= 74 && compute <= 78))
    c->compute = is_complex ? BLAS_CFLOAT : BLAS_FLOAT;
  else
    return false;
  return true;
}

// Bias and activation; false: another epilogue, scales or orders.
static bool take_epilogue(const LtDesc *d, const LtLayout *const layouts[4], BlasCall *c) {
  uint64_t epilogue = d->values[EPILOGUE];
  if (epilogue & ~(uint64_t)(1 | WITH_RELU | WITH_BIAS | WITH_GELU) || d->other || d->values[POINTERS] > 1)
    return false;
  for (int i = SCALES_FROM; i <= SCALES_TO; i++)
    if (d->values[i]) return false;
  c->activation = epilogue & WITH_RELU ? 1 : epilogue & WITH_GELU ? 2 : 0;
  c->bias = epilogue & WITH_BIAS ? (const void *)(uintptr_t)d->values[BIAS] : NULL;
  c->bias_type =
      (int32_t)d->values[BIAS_TYPE] < 0 ? (int)layouts[3]->values[TYPE] : (int)d->values[BIAS_TYPE];
  for (int i = 0; i < 4; i++) {
    if (layouts[i]->values[ORDER] > 1 || !blas_bytes((int)layouts[i]->values[TYPE])) return false;
    if (layouts[i]->values[ORDER]) c->extra |= 1 << i;
  }
  return !(epilogue & WITH_BIAS) || c->bias;
}

static bool sizes_agree(const LtDesc *d, const LtLayout *a, const LtLayout *b, const BlasCall *c) {
  bool ta = d->values[TRANS_A] != 0, tb = d->values[TRANS_B] != 0;
  return (int64_t)a->values[ta ? COLUMNS : ROWS] == c->m && (int64_t)b->values[tb ? ROWS : COLUMNS] == c->n &&
         (int64_t)b->values[tb ? COLUMNS : ROWS] == c->k;
}

BLAS_API int cublasLtMatmul(const BlasHandle *h, const LtDesc *desc, const void *alpha, const void *a,
                            const LtLayout *la, const void *b, const LtLayout *lb, const void *beta,
                            const void *c, const LtLayout *lc, void *d, const LtLayout *ld,
                            const void *algorithm, void *workspace, size_t workspace_bytes, void *stream) {
  (void)algorithm, (void)workspace, (void)workspace_bytes;
  if (!blas_is_handle(h)) return BLAS_NO_HANDLE;
  if (!desc || !alpha || !beta || !a || !b || !d || !la || !lb || !lc || !ld) return BLAS_BAD_VALUE;
  const LtLayout *const layouts[4] = {la, lb, lc, ld};
  BlasHandle own = *h;
  own.stream = stream;
  own.pointers = desc->values[POINTERS] != 0;
  bool is_complex = blas_is_complex((int)ld->values[TYPE]), tf32 = false, ta = desc->values[TRANS_A] != 0;
  BlasCall call = {
      .name = "cublasLtMatmul",
      .run = run_matmul,
      .operands = {operand_of(a, la), operand_of(b, lb), operand_of(c ? c : d, lc), operand_of(d, ld)},
      .count = 4,
      .m = (int64_t)ld->values[ROWS],
      .n = (int64_t)ld->values[COLUMNS],
      .k = (int64_t)la->values[ta ? ROWS : COLUMNS],
      .batches = (int64_t)(uint32_t)ld->values[BATCHES],
      .trans_a = (int)desc->values[TRANS_A],
      .trans_b = (int)desc->values[TRANS_B]};
  if (!sizes_agree(desc, la, lb, &call) || blas_bad_trans(call.trans_a) || blas_bad_trans(call.trans_b))
    return BLAS_BAD_VALUE;
  static char warned;
  if (!take_compute(desc, is_complex, &call, &tf32) || !take_epilogue(desc, layouts, &call) ||
      !blas_bytes((int)desc->values[SCALE])) {
    __cudaSolLibraryMissing("cublasLtMatmul with this epilogue, order or scale", &warned);
    return BLAS_NOT_SUPPORTED;
  }
  call.alpha = blas_scalar(&own, alpha, (int)desc->values[SCALE]);
  call.beta = blas_scalar(&own, beta, (int)desc->values[SCALE]);
  call.operands[2].scaled = call.operands[3].wrote = call.operands[3].unread = true;
  call.flops = 2.0 * (double)call.m * (double)call.n * (double)call.k * (is_complex ? 4 : 1);
  call.dtype = blas_roof((int)la->values[TYPE], tf32);
  call.tensor = call.dtype != SOL_FP32;
  return call.m && call.n ? blas_run(&own, &call) : BLAS_OK;
}
