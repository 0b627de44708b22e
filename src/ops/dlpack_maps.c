// The elementwise operations of op_map.h on DLPack tensors.
#include "ops/dlpack_inside.h"

// One fp32 number, or NULL.
static const float *scale_of(Dl *d, const DLTensor *t, const char *name) {
  DlRows r = dl_line(d, t, name, 1, true);
  if (!d->status && r.at && r.dtype != SOL_FP32)
    DL_FAIL(d, "%s: %s must be fp32, not %s", d->op, name, sol_dtype_name(r.dtype));
  return r.at;
}

SolStatus sol_gated_mul_dl(SolContext *ctx, const DLTensor *y, const DLTensor *gate, const DLTensor *up,
                           const DLTensor *scale, SolGate activation, SolStream stream) {
  Dl d = dl_begin(ctx, "gated_mul");
  DlRows yr = dl_rows(&d, y, "y"), g = dl_rows(&d, gate, "gate"), u = dl_rows(&d, up, "up");
  dl_elementwise(&d, &yr, &g, "gate", &u, "up");
  SolGatedMul a = {DL_TENSOR(y, yr),
                   DL_TENSOR(gate, g),
                   DL_TENSOR(up, u),
                   .scale = scale_of(&d, scale, "scale"),
                   .m = g.rows,
                   .n = g.cols,
                   .dtype = g.dtype,
                   .out_dtype = yr.dtype,
                   .activation = activation};
  return d.status ? d.status : sol_gated_mul(ctx, &a, stream);
}

SolStatus sol_add_dl(SolContext *ctx, const DLTensor *y, const DLTensor *a, const DLTensor *b,
                     SolStream stream) {
  Dl d = dl_begin(ctx, "add");
  DlRows yr = dl_rows(&d, y, "y"), ar = dl_rows(&d, a, "a"), br = dl_rows(&d, b, "b");
  dl_elementwise(&d, &yr, &ar, "a", &br, "b");
  SolAdd args = {DL_TENSOR(y, yr), DL_TENSOR(a, ar),  DL_TENSOR(b, br),     .m = ar.rows,
                 .n = ar.cols,     .dtype = ar.dtype, .out_dtype = yr.dtype};
  return d.status ? d.status : sol_add(ctx, &args, stream);
}

SolStatus sol_relu_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, SolStream stream) {
  Dl d = dl_begin(ctx, "relu");
  DlRows yr = dl_rows(&d, y, "y"), xr = dl_rows(&d, x, "x");
  dl_same_shape(&d, &yr, "y", &xr, "x");
  SolRelu a = {DL_PAIR(yr, xr), .out_dtype = yr.dtype};
  return d.status ? d.status : sol_relu(ctx, &a, stream);
}

SolStatus sol_cast_dl(SolContext *ctx, const DLTensor *y, const DLTensor *x, const DLTensor *x_scale,
                      const DLTensor *y_scale, SolStream stream) {
  Dl d = dl_begin(ctx, "cast");
  DlRows yr = dl_rows(&d, y, "y"), xr = dl_rows(&d, x, "x");
  dl_same_shape(&d, &yr, "y", &xr, "x");
  SolCast a = {DL_PAIR(yr, xr), .x_scale = scale_of(&d, x_scale, "x_scale"),
               .y_scale = scale_of(&d, y_scale, "y_scale"), .out_dtype = yr.dtype};
  return d.status ? d.status : sol_cast(ctx, &a, stream);
}
