// Losses, selection, quantization and group norm on DLPack tensors.
#include "ops/dlpack_inside.h"

static void check_type(Dl *d, const DlRows *r, const char *name, SolDtype a, SolDtype b) {
  if (!d->status && r->at && r->dtype != a && r->dtype != b)
    DL_FAIL(d, "%s: %s must be %s, not %s", d->op, name, sol_dtype_name(a), sol_dtype_name(r->dtype));
}

SolStatus sol_cross_entropy_dl(SolContext *ctx, const DLTensor *loss, const DLTensor *x,
                               const DLTensor *targets, const DLTensor *gradient, float scale,
                               SolStream stream) {
  Dl d = dl_begin(ctx, "cross_entropy");
  DlRows xr = dl_rows(&d, x, "x"), g = {0};
  DlRows l = dl_line(&d, loss, "loss", xr.rows, false), t = dl_line(&d, targets, "targets", xr.rows, false);
  check_type(&d, &l, "loss", SOL_FP32, SOL_FP32);
  if (gradient) {
    g = dl_rows(&d, gradient, "gradient");
    dl_same_shape(&d, &g, "gradient", &xr, "x");
    dl_same_type(&d, &xr, "x", &g, "gradient");
  }
  SolCrossEntropy a = {.loss = l.at,
                       DL_TENSOR(x, xr),
                       .targets = t.at,
                       DL_TENSOR(gradient, g),
                       .m = xr.rows,
                       .n = xr.cols,
                       .dtype = xr.dtype,
                       .id_dtype = t.dtype,
                       .scale = scale};
  return d.status ? d.status : sol_cross_entropy(ctx, &a, stream);
}

SolStatus sol_topk_dl(SolContext *ctx, const DLTensor *values, const DLTensor *ids, const DLTensor *x,
                      SolStream stream) {
  Dl d = dl_begin(ctx, "topk");
  DlRows v = dl_rows(&d, values, "values"), i = dl_rows(&d, ids, "ids"), xr = dl_rows(&d, x, "x");
  dl_same_shape(&d, &v, "values", &i, "ids");
  dl_same_type(&d, &xr, "x", &v, "values");
  if (!d.status && v.rows != xr.rows)
    DL_FAIL(&d, "topk: values has %lld rows, x %lld", (long long)v.rows, (long long)xr.rows);
  SolTopk a = {DL_TENSOR(values, v), DL_TENSOR(x, xr), DL_TENSOR(ids, i), .m = xr.rows,
               .n = xr.cols,         .k = v.cols,      .dtype = xr.dtype, .id_dtype = i.dtype};
  return d.status ? d.status : sol_topk(ctx, &a, stream);
}

SolStatus sol_sample_dl(SolContext *ctx, const DLTensor *ids, const DLTensor *x, const DLTensor *seeds,
                        float temperature, int top_k, float top_p, int step, SolStream stream) {
  Dl d = dl_begin(ctx, "sample");
  DlRows xr = dl_rows(&d, x, "x"), i = dl_line(&d, ids, "ids", xr.rows, false);
  DlRows s = dl_line(&d, seeds, "seeds", xr.rows, false);
  check_type(&d, &s, "seeds", SOL_INT64, SOL_INT64);
  SolSample a = {.ids = i.at,
                 DL_TENSOR(x, xr),
                 .seeds = s.at,
                 .m = xr.rows,
                 .n = xr.cols,
                 .step = step,
                 .top_k = top_k,
                 .dtype = xr.dtype,
                 .id_dtype = i.dtype,
                 .temperature = temperature,
                 .top_p = top_p};
  return d.status ? d.status : sol_sample(ctx, &a, stream);
}

SolStatus sol_quantize_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *scales,
                          const DLTensor *tensor_scale, SolQuant format, SolStream stream) {
  Dl d = dl_begin(ctx, "quantize");
  DlRows yr = dl_rows(&d, y, "y"), xr = dl_rows(&d, x, "x"),
         t = dl_line(&d, tensor_scale, "tensor_scale", 1, true);
  int64_t of_row = sol_quantize_scales(format, xr.cols);
  if (!d.status && of_row < 0) DL_FAIL(&d, "quantize: no such format: %d", (int)format);
  if (d.status) return d.status;
  DlRows s = dl_line(&d, scales, "scales", xr.rows * of_row, false);
  bool packed = format == SOL_QUANT_NVFP4, fp8 = format >= SOL_QUANT_FP8_ROW && !packed;
  check_type(&d, &yr, "y", fp8 ? SOL_FP8 : SOL_INT8, fp8 ? SOL_FP8 : SOL_INT8);
  check_type(&d, &s, "scales", format < SOL_QUANT_MXFP8 ? SOL_FP32 : SOL_INT8, packed ? SOL_FP8 : SOL_FP32);
  if (format == SOL_QUANT_MXFP8) check_type(&d, &s, "scales", SOL_INT8, SOL_INT8);
  check_type(&d, &t, "tensor_scale", SOL_FP32, SOL_FP32);
  if (!d.status && (yr.rows != xr.rows || yr.cols != (packed ? xr.cols / 2 : xr.cols)))
    DL_FAIL(&d, "quantize: y is %lld x %lld, x %lld x %lld", (long long)yr.rows, (long long)yr.cols,
            (long long)xr.rows, (long long)xr.cols);
  SolQuantize a = {DL_PAIR(yr, xr), .scales = s.at, .tensor_scale = t.at, .format = format};
  return d.status ? d.status : sol_quantize(ctx, &a, stream);
}

SolStatus sol_group_norm_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *weight,
                            const DLTensor *bias, int groups, float eps, SolStream stream) {
  Dl d = dl_begin(ctx, "group_norm");
  int inner = x && x->ndim > 2 ? x->ndim : 2;
  DlRows yr = dl_view(&d, y, "y", inner, false), xr = dl_view(&d, x, "x", inner, false); // dense
  if (!d.status && (x->ndim < 2 || y->ndim != x->ndim))
    DL_FAIL(&d, "group_norm: x and y must be (batch, C, ...)");
  dl_same_shape(&d, &yr, "y", &xr, "x");
  if (d.status) return d.status;
  DlRows w = dl_line(&d, weight, "weight", x->shape[1], true),
         b = dl_line(&d, bias, "bias", x->shape[1], true);
  if (weight && bias) dl_same_type(&d, &w, "weight", &b, "bias");
  int64_t channels = x->shape[0] * x->shape[1];
  SolGroupNorm a = {.y = yr.at,
                    .x = xr.at,
                    .weight = w.at,
                    .bias = b.at,
                    .batch = x->shape[0],
                    .c = x->shape[1],
                    .s = channels ? xr.cols / channels : 0,
                    .groups = groups,
                    .dtype = xr.dtype,
                    .out_dtype = yr.dtype,
                    .weight_dtype = weight ? w.dtype : b.dtype,
                    .eps = eps};
  return d.status ? d.status : sol_group_norm(ctx, &a, stream);
}
