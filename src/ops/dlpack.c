// DLPack tensors instead of pointers and sizes: how they are read, and the operations whose output has the
// shape of the input. The operations themselves check pointers, overlaps and types.
#include "ops/dlpack_inside.h"

_Static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24 &&
                   offsetof(DLTensor, byte_offset) == 40,
               "DLPack's ABI");

static bool is_here(const SolContext *ctx, DLDevice device) {
  enum { CPU = 1, CUDA = 2, CUDA_HOST = 3, EXTENSION = 12, CUDA_MANAGED = 13 };
  int type = (int)device.device_type;
  switch (ctx->backend) {
  case SOL_BACKEND_CPU: return type == CPU || type == CUDA_HOST;
  case SOL_BACKEND_EMU: return type == CUDA || type == EXTENSION;
  default:
    return (type == CUDA && device.device_id == ctx->device) || type == CUDA_HOST || type == CUDA_MANAGED;
  }
}

static SolDtype dtype_of(DLDataType t) {
  enum { INT = 0, FLOAT = 2, BFLOAT = 4, E4M3FN = 10 };
  static const struct {
    uint8_t code, bits;
    SolDtype dtype;
  } known[] = {{INT, 8, SOL_INT8},    {INT, 32, SOL_INT32},  {INT, 64, SOL_INT64},   {FLOAT, 16, SOL_FP16},
               {FLOAT, 32, SOL_FP32}, {FLOAT, 64, SOL_FP64}, {BFLOAT, 16, SOL_BF16}, {E4M3FN, 8, SOL_FP8}};
  for (size_t i = 0; i < SOL_COUNT(known); i++)
    if (t.code == known[i].code && t.bits == known[i].bits && t.lanes == 1) return known[i].dtype;
  return SOL_DTYPE_DEFAULT;
}

static int64_t stride_at(const DLTensor *t, int axis) {
  if (t->strides) return t->strides[axis];
  int64_t stride = 1;
  for (int k = t->ndim - 1; k > axis; k--)
    if (__builtin_mul_overflow(stride, t->shape[k], &stride)) return INT64_MAX; // collapse then fails
  return stride;
}

// Axes first..last as one: its length, and the step from one element to the next. Axes of length 1 are
// ignored.
static bool collapse(const DLTensor *t, int first, int last, int64_t *length, int64_t *step) {
  *length = 1, *step = 0;
  for (int k = last; k >= first; k--) {
    int64_t stride = stride_at(t, k), whole;
    if (t->shape[k] == 1) continue;
    if (*length == 1)
      *step = stride;
    else if (*length && (__builtin_mul_overflow(*length, *step, &whole) || stride != whole))
      return false;
    if (__builtin_mul_overflow(*length, t->shape[k], length)) return false;
  }
  return true;
}

Dl dl_begin(SolContext *ctx, const char *op) {
  Dl d = {ctx, op, SOL_OK};
  if (!ctx) DL_FAIL(&d, "%s: context must not be NULL", op);
  return d;
}

// What a tensor must be before its axes are read.
static bool usable(Dl *d, const DLTensor *t, const char *name) {
  if (d->status) return false;
  if (!t) return DL_FAIL(d, "%s: %s is NULL", d->op, name), false;
  if (t->ndim < 0 || (t->ndim && !t->shape)) return DL_FAIL(d, "%s: %s has no shape", d->op, name), false;
  for (int k = 0; k < t->ndim; k++)
    if (t->shape[k] < 0) return DL_FAIL(d, "%s: %s has a negative size", d->op, name), false;
  if (!dtype_of(t->dtype))
    return DL_FAIL(d, "%s: %s has an unsupported type (DLPack code %d, %d bits, %d lanes)", d->op, name,
                   t->dtype.code, t->dtype.bits, t->dtype.lanes),
           false;
  if (is_here(d->ctx, t->device)) return true;
  DL_FAIL(d, "%s: %s is on device %d:%d (type:number, as DLPack counts), the context runs on %s", d->op, name,
          (int)t->device.device_type, (int)t->device.device_id, sol_backend_name(d->ctx->backend));
  return false;
}

DlRows dl_view(Dl *d, const DLTensor *given, const char *name, int inner, bool batched) {
  DlRows r = {0};
  if (!usable(d, given, name)) return r;
  DLTensor t = *given;
  for (int k = 0; k < t.ndim; k++)
    if (!t.shape[k]) t.strides = NULL; // empty: its strides do not matter
  int cols = t.ndim > inner ? t.ndim - inner : 0, rows = batched && cols > 1 ? cols - 1 : 0;
  int64_t step;
  if (!collapse(&t, cols, t.ndim - 1, &r.cols, &step) || (r.cols > 1 && step != 1))
    DL_FAIL(d, "%s: the last %s of %s must be contiguous", d->op, inner > 1 ? "axes" : "axis", name);
  else if (!collapse(&t, rows, cols - 1, &r.rows, &r.stride) ||
           !collapse(&t, 0, rows - 1, &r.batch, &r.batch_stride))
    DL_FAIL(d, "%s: the axes of %s before the last do not collapse into rows of one stride", d->op, name);
  else if ((r.rows > 1 && !r.stride) ||
           (r.batch > 1 && !r.batch_stride)) // elsewhere a stride of 0 means dense
    DL_FAIL(d, "%s: %s is broadcast (stride 0)", d->op, name);
  r.dtype = dtype_of(t.dtype);
  r.at = t.data ? (char *)t.data + t.byte_offset : NULL;
  return r;
}

DlRows dl_rows(Dl *d, const DLTensor *t, const char *name) {
  return dl_view(d, t, name, 1, false);
}

DlRows dl_line(Dl *d, const DLTensor *t, const char *name, int64_t length, bool optional) {
  if (!t && optional) return (DlRows){0};
  DlRows r = dl_view(d, t, name, t && t->ndim > 1 ? t->ndim : 1, false);
  if (!d->status && r.cols != length)
    DL_FAIL(d, "%s: %s has %lld elements, not %lld", d->op, name, (long long)r.cols, (long long)length);
  return r;
}

void dl_same_shape(Dl *d, const DlRows *a, const char *a_name, const DlRows *b, const char *b_name) {
  if (!d->status && (a->rows != b->rows || a->cols != b->cols))
    DL_FAIL(d, "%s: %s is %lld x %lld, %s is %lld x %lld", d->op, a_name, (long long)a->rows,
            (long long)a->cols, b_name, (long long)b->rows, (long long)b->cols);
}

void dl_same_type(Dl *d, const DlRows *a, const char *a_name, const DlRows *b, const char *b_name) {
  if (!d->status && a->dtype != b->dtype)
    DL_FAIL(d, "%s: %s is %s, %s is %s", d->op, a_name, sol_dtype_name(a->dtype), b_name,
            sol_dtype_name(b->dtype));
}

// y and x of one shape, as most operations have.
static Dl begin_pair(SolContext *ctx, const char *op, const DLTensor *y, const DLTensor *x, DlRows *yr,
                     DlRows *xr) {
  Dl d = dl_begin(ctx, op);
  *yr = dl_rows(&d, y, "y");
  *xr = dl_rows(&d, x, "x");
  dl_same_shape(&d, yr, "y", xr, "x");
  return d;
}

SolStatus sol_copy_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, SolStream stream) {
  DlRows yr, xr;
  Dl d = begin_pair(ctx, "copy", y, x, &yr, &xr);
  SolCopy a = {DL_PAIR(yr, xr), .out_dtype = yr.dtype};
  return d.status ? d.status : sol_copy(ctx, &a, stream);
}

SolStatus sol_rmsnorm_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *weight,
                         float eps, float weight_offset, SolStream stream) {
  DlRows yr, xr;
  Dl d = begin_pair(ctx, "rmsnorm", y, x, &yr, &xr);
  DlRows w = dl_line(&d, weight, "weight", xr.cols, true);
  SolRmsnorm a = {DL_PAIR(yr, xr),         .weight = w.at, .out_dtype = yr.dtype,
                  .weight_dtype = w.dtype, .eps = eps,     .weight_offset = weight_offset};
  return d.status ? d.status : sol_rmsnorm(ctx, &a, stream);
}

SolStatus sol_add_rmsnorm_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *residual,
                             const DLTensor *residual_out, const DLTensor *weight, float eps,
                             float weight_offset, SolStream stream) {
  DlRows yr, xr, out = {0};
  Dl d = begin_pair(ctx, "add_rmsnorm", y, x, &yr, &xr);
  DlRows r = dl_rows(&d, residual, "residual");
  dl_same_shape(&d, &r, "residual", &xr, "x");
  dl_same_type(&d, &xr, "x", &r, "residual");
  if (residual_out) {
    out = dl_rows(&d, residual_out, "residual_out");
    dl_same_shape(&d, &out, "residual_out", &xr, "x");
    dl_same_type(&d, &xr, "x", &out, "residual_out");
  }
  DlRows w = dl_line(&d, weight, "weight", xr.cols, true);
  SolAddRmsnorm a = {DL_PAIR(yr, xr), DL_TENSOR(residual, r),        DL_TENSOR(residual_out, out),
                     .weight = w.at,  .out_dtype = yr.dtype,         .weight_dtype = w.dtype,
                     .eps = eps,      .weight_offset = weight_offset};
  return d.status ? d.status : sol_add_rmsnorm(ctx, &a, stream);
}

SolStatus sol_layernorm_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *weight,
                           const DLTensor *bias, float eps, float weight_offset, SolStream stream) {
  DlRows yr, xr;
  Dl d = begin_pair(ctx, "layernorm", y, x, &yr, &xr);
  DlRows w = dl_line(&d, weight, "weight", xr.cols, true), b = dl_line(&d, bias, "bias", xr.cols, true);
  if (weight && bias) dl_same_type(&d, &w, "weight", &b, "bias");
  SolLayernorm a = {DL_PAIR(yr, xr),
                    .weight = w.at,
                    .bias = b.at,
                    .out_dtype = yr.dtype,
                    .weight_dtype = weight ? w.dtype : b.dtype,
                    .eps = eps,
                    .weight_offset = weight_offset};
  return d.status ? d.status : sol_layernorm(ctx, &a, stream);
}

static SolStatus softmax(SolContext *ctx, const char *op, const DLTensor *y, const DLTensor *x,
                         SolStatus (*call)(SolContext *, const SolSoftmax *, SolStream), SolStream stream) {
  DlRows yr, xr;
  Dl d = begin_pair(ctx, op, y, x, &yr, &xr);
  SolSoftmax a = {DL_PAIR(yr, xr), .out_dtype = yr.dtype};
  return d.status ? d.status : call(ctx, &a, stream);
}

SolStatus sol_softmax_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, SolStream stream) {
  return softmax(ctx, "softmax", y, x, sol_softmax, stream);
}

SolStatus sol_log_softmax_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, SolStream stream) {
  return softmax(ctx, "log_softmax", y, x, sol_log_softmax, stream);
}

SolStatus sol_scale_columns_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *scale,
                               SolStream stream) {
  DlRows yr, xr;
  Dl d = begin_pair(ctx, "scale_columns", y, x, &yr, &xr);
  DlRows s = dl_line(&d, scale, "scale", xr.cols, false);
  SolScaleColumns a = {DL_PAIR(yr, xr), .scale = s.at, .out_dtype = yr.dtype, .weight_dtype = s.dtype};
  return d.status ? d.status : sol_scale_columns(ctx, &a, stream);
}

static SolStatus biased(SolContext *ctx, const char *op, const DLTensor *y, const DLTensor *x,
                        const DLTensor *bias, float scale,
                        SolStatus (*call)(SolContext *, const SolBias *, SolStream), SolStream stream) {
  DlRows yr, xr;
  Dl d = begin_pair(ctx, op, y, x, &yr, &xr);
  DlRows b = dl_line(&d, bias, "bias", xr.cols, true);
  SolBias a = {DL_PAIR(yr, xr), .bias = b.at, .out_dtype = yr.dtype, .weight_dtype = b.dtype, .scale = scale};
  return d.status ? d.status : call(ctx, &a, stream);
}

SolStatus sol_bias_relu_scale_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *bias,
                                 float scale, SolStream stream) {
  return biased(ctx, "bias_relu_scale", y, x, bias, scale, sol_bias_relu_scale, stream);
}

SolStatus sol_bias_gelu_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *bias,
                           SolStream stream) {
  return biased(ctx, "bias_gelu", y, x, bias, 0, sol_bias_gelu, stream);
}

SolStatus sol_silu_mul_dl(SolContext *ctx, const DLTensor *y, const DLTensor *gate, const DLTensor *up,
                          SolStream stream) {
  Dl d = dl_begin(ctx, "silu_mul");
  DlRows yr = dl_rows(&d, y, "y"), g = dl_rows(&d, gate, "gate"), u = dl_rows(&d, up, "up");
  dl_elementwise(&d, &yr, &g, "gate", &u, "up");
  SolSiluMul a = {DL_TENSOR(y, yr), DL_TENSOR(gate, g), DL_TENSOR(up, u),     .m = g.rows,
                  .n = g.cols,      .dtype = g.dtype,   .out_dtype = yr.dtype};
  return d.status ? d.status : sol_silu_mul(ctx, &a, stream);
}
