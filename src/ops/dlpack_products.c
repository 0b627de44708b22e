// Matrix products and attention on DLPack tensors.
#include "ops/dlpack_inside.h"

// A matrix, or a batch of them: by rows, or by columns where the last axis but one is the contiguous one.
static DlRows matrix_of(Dl *d, const DLTensor *t, const char *name, bool *columns) {
  enum { MOST = 3 };
  if (!d->status && t && (t->ndim < 2 || t->ndim > MOST || !t->shape))
    DL_FAIL(d, "%s: %s must be (rows, columns) or (batch, rows, columns)", d->op, name);
  if (d->status || !t || !columns) return dl_view(d, t, name, 1, true);
  int last = t->ndim - 1;
  *columns = t->strides && t->strides[last] != 1 && t->strides[last - 1] == 1;
  if (!*columns) return dl_view(d, t, name, 1, true);
  int64_t shape[MOST], strides[MOST];
  memcpy(shape, t->shape, sizeof *shape * (size_t)t->ndim);
  memcpy(strides, t->strides, sizeof *strides * (size_t)t->ndim);
  shape[last] = t->shape[last - 1], strides[last] = t->strides[last - 1];
  shape[last - 1] = t->shape[last], strides[last - 1] = t->strides[last];
  DLTensor swapped = *t;
  swapped.shape = shape, swapped.strides = strides;
  DlRows r = dl_view(d, &swapped, name, 1, true);
  int64_t rows = r.rows; // as the matrix is read; the stride is from column to column
  r.rows = r.cols, r.cols = rows;
  return r;
}

static void check_size(Dl *d, const char *what, int64_t found, int64_t wanted) {
  if (!d->status && found != wanted)
    DL_FAIL(d, "%s: %s is %lld, not %lld", d->op, what, (long long)found, (long long)wanted);
}

SolStatus sol_gemm_dl(SolContext *ctx, const DLTensor *c, const DLTensor *a, const DLTensor *b,
                      const DLTensor *bias, const DLTensor *residual, float alpha, float beta,
                      SolActivation activation, SolStream stream) {
  Dl d = dl_begin(ctx, "gemm");
  bool a_columns = false, b_columns = false;
  DlRows cr = matrix_of(&d, c, "c", NULL), ar = matrix_of(&d, a, "a", &a_columns);
  DlRows br = matrix_of(&d, b, "b", &b_columns), r = {0};
  if (residual) r = matrix_of(&d, residual, "residual", NULL);
  int64_t wide = (activation == SOL_ACTIVATION_SILU_MUL ? 2 : 1) * cr.cols;
  check_size(&d, "rows of a", ar.rows, cr.rows);
  check_size(&d, "rows of b", br.rows, ar.cols);
  check_size(&d, "columns of b", br.cols, wide);
  check_size(&d, "the batch of a", ar.batch, cr.batch);
  check_size(&d, "the batch of b", br.batch, cr.batch);
  dl_same_type(&d, &ar, "a", &br, "b");
  DlRows w = dl_line(&d, bias, "bias", wide, true);
  if (residual) {
    check_size(&d, "the batch of residual", r.batch, cr.batch);
    dl_same_shape(&d, &r, "residual", &cr, "c");
    dl_same_type(&d, &r, "residual", &cr, "c");
  }
  SolGemm g = {DL_BATCHED(c, cr),
               DL_BATCHED(a, ar),
               DL_BATCHED(b, br),
               .bias = w.at,
               DL_BATCHED(residual, r),
               .batch = cr.batch,
               .m = cr.rows,
               .n = cr.cols,
               .k = ar.cols,
               .dtype = ar.dtype,
               .out_dtype = cr.dtype,
               .weight_dtype = w.dtype,
               .alpha = alpha,
               .beta = beta,
               .activation = activation,
               .a_columns = a_columns,
               .b_columns = b_columns};
  return d.status ? d.status : sol_gemm(ctx, &g, stream);
}

// (batch, tokens, heads, D)
static DlRows heads_of(Dl *d, const DLTensor *t, const char *name) {
  if (!d->status && t && (t->ndim != 4 || !t->shape))
    DL_FAIL(d, "%s: %s must be (batch, tokens, heads, D)", d->op, name);
  return dl_view(d, t, name, 2, true);
}

static void check_heads(Dl *d, const DLTensor *t, const char *name, const DlRows *r, const DLTensor *like,
                        const DlRows *like_rows) {
  if (d->status) return;
  for (int k = 0; k < 4; k++)
    if (t->shape[k] != like->shape[k]) DL_FAIL(d, "%s: %s has another shape", d->op, name);
  dl_same_type(d, r, name, like_rows, "q");
}

SolStatus sol_attention_dl(SolContext *ctx, const DLTensor *o, const DLTensor *q, const DLTensor *k,
                           const DLTensor *v, const DLTensor *lse, float scale, float soft_cap,
                           int64_t window, int causal, SolStream stream) {
  Dl d = dl_begin(ctx, "attention");
  DlRows orow = heads_of(&d, o, "o"), qr = heads_of(&d, q, "q"), kr = heads_of(&d, k, "k"),
         vr = heads_of(&d, v, "v");
  check_heads(&d, o, "o", &orow, q, &qr);
  check_heads(&d, v, "v", &vr, k, &kr);
  dl_same_type(&d, &kr, "k", &qr, "q");
  if (!d.status && (k->shape[0] != q->shape[0] || k->shape[3] != q->shape[3]))
    DL_FAIL(&d, "attention: q and k differ in their batch or in the elements of a head");
  DlRows l = {0};
  if (!d.status) l = dl_line(&d, lse, "lse", q->shape[0] * q->shape[1] * q->shape[2], true);
  if (!d.status && l.at && l.dtype != SOL_FP32) DL_FAIL(&d, "attention: lse must be fp32");
  if (d.status) return d.status;
  SolAttention a = {DL_BATCHED(o, orow),
                    DL_BATCHED(q, qr),
                    DL_BATCHED(k, kr),
                    DL_BATCHED(v, vr),
                    .lse = l.at,
                    .batch = q->shape[0],
                    .heads = q->shape[2],
                    .kv_heads = k->shape[2],
                    .queries = q->shape[1],
                    .keys = k->shape[1],
                    .d = q->shape[3],
                    .window = window,
                    .dtype = qr.dtype,
                    .scale = scale,
                    .soft_cap = soft_cap,
                    .causal = causal};
  return sol_attention(ctx, &a, stream);
}
