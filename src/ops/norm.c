#include "ops/norm.h"

#include <math.h>

#include "base/error.h"
#include "emu/isa/num_cvt.h"
#include "emu/isa/num_half.h"

const int64_t norm_shapes[NORM_SHAPES][4] = {
    {1, 1},     {5, 2},     {3, 3},     {33, 31},    {9, 8},      {70, 16},    {19, 40},
    {7, 128},   {5, 256},   {600, 528}, {2, 769},    {3, 1023},   {5, 1024},   {4, 4096},
    {5, 1152},  {2, 5120},  {2, 5125},  {1, 8191},   {2, 8192},   {2, 16384},  {2, 20000},
    {1, 32768}, {2, 40001}, {1, 65536}, {1, 131072}, {1, 200001}, {1, 300000}, {1, 600003},
    {0, 64},    {1003, 1},  {131, 2},   {67, 4},     {21, 18},    {9, 301},    {3, 450},
};

NormCall norm_call(const Norm *a) {
  return (NormCall){.dtype = a->dtype,
                    .p = {.y = a->y,
                          .x = a->x,
                          .weight = a->weight,
                          .m = (uint64_t)a->m,
                          .n = a->n,
                          .y_stride = a->y_stride * ops_size(a->out),
                          .x_stride = a->x_stride * ops_size(a->dtype),
                          .eps = a->eps,
                          .offset = a->offset,
                          .y_kind = ops_kind(a->out),
                          .weight_kind = ops_kind(a->weight_dtype)}};
}

SolStatus norm_check(const Norm *a, bool fp8, SolError *err) {
  if (!ops_is_real(a->dtype))
    return sol_fail(err, SOL_ERR_ARGUMENT, "input must be fp32, fp16 or bf16, not %s",
                    sol_dtype_name(a->dtype));
  if (!ops_is_real(a->out) && !(fp8 && a->out == SOL_FP8))
    return sol_fail(err, SOL_ERR_ARGUMENT, "output cannot be %s", sol_dtype_name(a->out));
  if (a->weight_dtype != a->dtype && a->weight_dtype != SOL_FP32)
    return sol_fail(err, SOL_ERR_ARGUMENT, "weights of %s input must be %s or fp32, not %s",
                    sol_dtype_name(a->dtype), sol_dtype_name(a->dtype), sol_dtype_name(a->weight_dtype));
  if (!(a->eps >= 0)) return sol_fail(err, SOL_ERR_ARGUMENT, "eps must not be negative");
  return SOL_OK;
}

enum { LANES = 16 };

double norm_sum(const float *f, int64_t count) {
  float lane[LANES] = {0};
  double sum = 0;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; j++) lane[j] += f[i + j];
  for (; i < count; i++) sum += (double)f[i];
  for (int j = 0; j < LANES; j++) sum += (double)lane[j];
  return sum;
}

double norm_squares(const float *f, float mean, int64_t count) {
  float lane[LANES] = {0};
  double sum = 0;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int j = 0; j < LANES; j++) lane[j] += (f[i + j] - mean) * (f[i + j] - mean);
  for (; i < count; i++) sum += (double)(f[i] - mean) * (double)(f[i] - mean);
  for (int j = 0; j < LANES; j++) sum += (double)lane[j];
  return sum;
}

float norm_scale(const Norm *a, double sum) {
  return (float)(1 / sqrt(sum / (double)a->n + (double)a->eps));
}

void norm_apply(const Norm *a, float *restrict f, int64_t at, int64_t count, float scale, const void *bias) {
  float w[CPU_CHUNK], offset = a->offset;
  if (a->weight) {
    cpu_load(a->weight_dtype, a->weight, at, count, w);
    for (int64_t i = 0; i < count; i++) f[i] *= scale * (w[i] + offset);
  } else
    for (int64_t i = 0; i < count; i++) f[i] *= scale;
  if (!bias) return;
  cpu_load(a->weight_dtype, bias, at, count, w);
  for (int64_t i = 0; i < count; i++) f[i] += w[i];
}

void norm_reference_row(double *y, const double *x, int64_t n, double mean, double scale,
                        const double *weight, double offset, const double *bias) {
  for (int64_t i = 0; i < n; i++)
    y[i] = (x[i] - mean) * scale * (weight ? weight[i] + offset : 1) + (bias ? bias[i] : 0);
}

double norm_reference_squares(const double *x, int64_t n, double mean) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (x[i] - mean) * (x[i] - mean);
  return sum / (double)n;
}

double norm_reference_round(SolDtype dtype, double x) {
  float f = (float)x;
  if (dtype == SOL_FP16) return (double)num_cvt_f32_f16(num_cvt_f16_f32_rn(f));
  if (dtype == SOL_BF16) return (double)num_cvt_f32_bf16(num_cvt_bf16_f32_rn(f));
  return (double)f;
}
