// The operations on DLPack tensors whose output has another shape than the input.
#include "ops/dlpack_inside.h"

static void check_int32(Dl *d, const DlRows *bad) {
  if (!d->status && bad->at && bad->dtype != SOL_INT32)
    DL_FAIL(d, "%s: bad must be int32, not %s", d->op, sol_dtype_name(bad->dtype));
}

static void check_width(Dl *d, const DlRows *y, const DlRows *table, const char *name) {
  if (!d->status && y->cols != table->cols)
    DL_FAIL(d, "%s: rows of y are %lld wide, those of %s %lld", d->op, (long long)y->cols, name,
            (long long)table->cols);
}

SolStatus sol_embed_rmsnorm_dl(SolContext *ctx, const DLTensor *y, const DLTensor *embedded,
                               const DLTensor *table, const DLTensor *ids, const DLTensor *weight,
                               const DLTensor *bad, float eps, float weight_offset, SolStream stream) {
  Dl d = dl_begin(ctx, "embed_rmsnorm");
  DlRows yr = dl_rows(&d, y, "y"), e = {0};
  DlRows t = dl_rows(&d, table, "table"), i = dl_line(&d, ids, "ids", yr.rows, false);
  check_width(&d, &yr, &t, "table");
  if (embedded) {
    e = dl_rows(&d, embedded, "embedded");
    dl_same_shape(&d, &e, "embedded", &yr, "y");
    dl_same_type(&d, &t, "table", &e, "embedded");
  }
  DlRows w = dl_line(&d, weight, "weight", yr.cols, true), b = dl_line(&d, bad, "bad", 1, true);
  check_int32(&d, &b);
  SolEmbedRmsnorm a = {DL_BY_ID(yr, t, i, b),
                       DL_TENSOR(embedded, e),
                       DL_TENSOR(table, t),
                       .weight = w.at,
                       .vocab = t.rows,
                       .out_dtype = yr.dtype,
                       .weight_dtype = w.dtype,
                       .eps = eps,
                       .weight_offset = weight_offset};
  return d.status ? d.status : sol_embed_rmsnorm(ctx, &a, stream);
}

SolStatus sol_embedding_dl(SolContext *ctx, const DLTensor *y, const DLTensor *table, const DLTensor *ids,
                           const DLTensor *bad, SolStream stream) {
  Dl d = dl_begin(ctx, "embedding");
  DlRows yr = dl_rows(&d, y, "y"), t = dl_rows(&d, table, "table");
  DlRows i = dl_line(&d, ids, "ids", yr.rows, false), b = dl_line(&d, bad, "bad", 1, true);
  check_width(&d, &yr, &t, "table");
  check_int32(&d, &b);
  SolEmbedding a = {DL_BY_ID(yr, t, i, b), DL_TENSOR(table, t), .vocab = t.rows, .out_dtype = yr.dtype};
  return d.status ? d.status : sol_embedding(ctx, &a, stream);
}

SolStatus sol_gather_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *ids,
                        const DLTensor *order, const DLTensor *bad, SolStream stream) {
  Dl d = dl_begin(ctx, "gather");
  DlRows yr = dl_rows(&d, y, "y"), xr = dl_rows(&d, x, "x");
  DlRows i = dl_line(&d, ids, "ids", yr.rows, false), o = dl_line(&d, order, "order", yr.rows, true);
  DlRows b = dl_line(&d, bad, "bad", 1, true);
  check_width(&d, &yr, &xr, "x");
  dl_same_type(&d, &xr, "x", &yr, "y");
  if (order) dl_same_type(&d, &i, "ids", &o, "order");
  check_int32(&d, &b);
  SolGather a = {
      DL_BY_ID(yr, xr, i, b),
      DL_TENSOR(x, xr),
      .order = o.at,
      .rows = xr.rows,
  };
  return d.status ? d.status : sol_gather(ctx, &a, stream);
}

SolStatus sol_transpose_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, SolStream stream) {
  Dl d = dl_begin(ctx, "transpose");
  DlRows yr = dl_view(&d, y, "y", 1, true), xr = dl_view(&d, x, "x", 1, true);
  dl_same_type(&d, &xr, "x", &yr, "y");
  if (!d.status && (x->ndim != y->ndim || x->ndim < 2 || x->ndim > 3))
    DL_FAIL(&d, "transpose: x has %d axes, y %d; both must have 2, or 3 with a batch", x->ndim, y->ndim);
  if (!d.status && (yr.batch != xr.batch || yr.rows != xr.cols || yr.cols != xr.rows))
    DL_FAIL(&d, "transpose: x is %lld x %lld x %lld, y %lld x %lld x %lld", (long long)xr.batch,
            (long long)xr.rows, (long long)xr.cols, (long long)yr.batch, (long long)yr.rows,
            (long long)yr.cols);
  if (!d.status && !xr.batch) return SOL_OK; // an empty batch; below, 0 would mean 1
  SolTranspose a = {DL_BATCHED(y, yr), DL_BATCHED(x, xr), .batch = xr.batch,
                    .m = xr.rows,      .n = xr.cols,      .dtype = xr.dtype};
  return d.status ? d.status : sol_transpose(ctx, &a, stream);
}

// (..., H, D): tokens are the rows, heads and their elements the columns.
static DlRows tokens_of(Dl *d, const DLTensor *t, const char *name, int64_t *heads, int64_t *width) {
  DlRows r = dl_view(d, t, name, 2, false);
  if (!d->status && t->ndim < 2) DL_FAIL(d, "%s: %s has %d axes, not (..., H, D)", d->op, name, t->ndim);
  if (d->status) return r;
  *heads = t->shape[t->ndim - 2];
  *width = t->shape[t->ndim - 1];
  return r;
}

SolStatus sol_rope_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *cos,
                      const DLTensor *sin, const DLTensor *positions, int interleaved, SolStream stream) {
  Dl d = dl_begin(ctx, "rope");
  int64_t h = 0, width = 0, y_h = 0, y_width = 0;
  DlRows yr = tokens_of(&d, y, "y", &y_h, &y_width), xr = tokens_of(&d, x, "x", &h, &width);
  dl_same_shape(&d, &yr, "y", &xr, "x");
  DlRows c = dl_rows(&d, cos, "cos"), s = dl_rows(&d, sin, "sin");
  dl_same_shape(&d, &c, "cos", &s, "sin");
  dl_same_type(&d, &c, "cos", &s, "sin");
  if (!d.status && c.rows > 1 && (c.stride != c.cols || s.stride != s.cols))
    DL_FAIL(&d, "rope: cos and sin must be dense");
  if (!d.status && (!c.rows || !c.cols))
    DL_FAIL(&d, "rope: cos and sin are empty"); // below, 0 would mean the default
  DlRows p = dl_line(&d, positions, "positions", xr.rows, true);
  if (!d.status && (h != y_h || c.cols > width / 2))
    DL_FAIL(&d, "rope: heads of x are %lld x %lld, those of y %lld x %lld, cos has rows of %lld",
            (long long)h, (long long)width, (long long)y_h, (long long)y_width, (long long)c.cols);
  SolRope a = {DL_TENSOR(y, yr),
               DL_TENSOR(x, xr),
               .cos = c.at,
               .sin = s.at,
               .positions = p.at,
               .t = xr.rows,
               .h = h,
               .d = width,
               .rotary = 2 * c.cols,
               .rows = c.rows,
               .dtype = xr.dtype,
               .out_dtype = yr.dtype,
               .weight_dtype = c.dtype,
               .id_dtype = p.dtype,
               .interleaved = interleaved};
  return d.status ? d.status : sol_rope(ctx, &a, stream);
}

SolStatus sol_reduce_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *workspace,
                        SolReduction reduction, SolAxis axis, SolStream stream) {
  Dl d = dl_begin(ctx, "reduce");
  bool batch = x && x->ndim == 3 && axis == SOL_AXIS_COLUMNS;
  DlRows xr = dl_view(&d, x, "x", 1, batch), w = {0};
  int64_t columns = xr.cols * (batch ? xr.batch : 1); // a tensor in memory: that cannot overflow
  DlRows yr = dl_line(&d, y, "y",
                      axis == SOL_AXIS_ROWS      ? xr.rows
                      : axis == SOL_AXIS_COLUMNS ? columns
                                                 : 1,
                      false);
  if (!d.status && batch && !xr.batch) return SOL_OK; // below, 0 would mean 1
  if (workspace) w = dl_view(&d, workspace, "workspace", workspace->ndim, false);
  SolReduce a = {.y = yr.at,
                 DL_TENSOR(x, xr),
                 .workspace = w.at,
                 .workspace_bytes = w.cols * (ops_size(w.dtype)),
                 .m = xr.rows,
                 .n = xr.cols,
                 .dtype = xr.dtype,
                 .out_dtype = yr.dtype,
                 .reduction = reduction,
                 .axis = axis,
                 .batch = batch ? xr.batch : 0,
                 .x_batch_stride = batch ? xr.batch_stride : 0};
  return d.status ? d.status : sol_reduce(ctx, &a, stream);
}

SolStatus sol_argmax_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, SolStream stream) {
  Dl d = dl_begin(ctx, "argmax");
  DlRows xr = dl_rows(&d, x, "x"), yr = dl_line(&d, y, "y", xr.rows, false);
  SolArgmax a = {yr.at, xr.at, xr.rows, xr.cols, xr.stride, xr.dtype, yr.dtype};
  return d.status ? d.status : sol_argmax(ctx, &a, stream);
}

// (pages, page_size, H, D), dense
static DlRows cache_of(Dl *d, const DLTensor *t, const char *name, int64_t h, int64_t width) {
  DlRows r = dl_view(d, t, name, 4, false);
  if (!d->status && (t->ndim != 4 || t->shape[2] != h || t->shape[3] != width))
    DL_FAIL(d, "kv_append: %s is not (pages, page_size, %lld, %lld)", name, (long long)h, (long long)width);
  return r;
}

SolStatus sol_kv_append_dl(SolContext *ctx, const DLTensor *k_cache, const DLTensor *v_cache,
                           const DLTensor *k, const DLTensor *v, const DLTensor *slots, float k_scale,
                           float v_scale, SolStream stream) {
  Dl d = dl_begin(ctx, "kv_append");
  int64_t h = 0, width = 0, v_h = 0, v_width = 0;
  DlRows kr = tokens_of(&d, k, "k", &h, &width), vr = tokens_of(&d, v, "v", &v_h, &v_width);
  dl_same_shape(&d, &kr, "k", &vr, "v");
  dl_same_type(&d, &kr, "k", &vr, "v");
  DlRows kc = cache_of(&d, k_cache, "k_cache", h, width), vc = cache_of(&d, v_cache, "v_cache", v_h, v_width);
  dl_same_shape(&d, &kc, "k_cache", &vc, "v_cache");
  dl_same_type(&d, &kc, "k_cache", &vc, "v_cache");
  DlRows s = dl_line(&d, slots, "slots", kr.rows, false);
  if (!d.status && (h != v_h || k_cache->shape[1] != v_cache->shape[1]))
    DL_FAIL(&d, "kv_append: k and v differ in heads or pages");
  if (d.status) return d.status;
  SolKvAppend a = {.k_cache = kc.at,
                   .v_cache = vc.at,
                   DL_TENSOR(k, kr),
                   DL_TENSOR(v, vr),
                   .slots = s.at,
                   .t = kr.rows,
                   .h = h,
                   .d = width,
                   .pages = k_cache->shape[0],
                   .page_size = k_cache->shape[1],
                   .dtype = kr.dtype,
                   .kv_dtype = kc.dtype,
                   .id_dtype = s.dtype,
                   .k_scale = k_scale,
                   .v_scale = v_scale};
  return sol_kv_append(ctx, &a, stream);
}
