// What rmsnorm, add_rmsnorm, embed_rmsnorm and layernorm share: which kernel takes a row and how many
// threads, and pieces of their CPU code and references.
#ifndef SOL_OPS_NORM_H
#define SOL_OPS_NORM_H

#include "kernels/norm.h"
#include "ops/cpu.h"

// The kernels of one operation, in the order of kernels/norm.def: for each type those below, f, h, b.
enum {
#define NORM(T, name, how, number) NORM_##T##_##name,
#include "kernels/norm.def"
  NORM_KERNELS
};
// rmsnorm has them twice, to fp8 too, and then those of kernels/norm_odd.def.
enum {
  NORM_BOTH = 2 * NORM_KERNELS - 1,
#define ODD(T, name, scales, lanes, chunks, threads, blocks) NORM_ODD_##T##_##name,
#include "kernels/norm_odd.def"
  NORM_ALL
};
// The most shared memory each takes beyond its own variables.
extern const uint32_t norm_shared[NORM_ALL];

// Every class of row length: within a warp, a block, a cluster; whole chunks and not; beyond what is held.
enum { NORM_SHAPES = 28 };
extern const int64_t norm_shapes[NORM_SHAPES][4];

static inline int64_t norm_stride(int64_t given, int64_t n) {
  return given ? given : n;
}

// A call: the operation fills in addresses, sizes, strides in bytes, eps, offset, and the kinds of y and
// weight.
typedef struct NormCall {
  SolDtype dtype;
  bool layer; // wants a bias as well as a weight
  int fp8;    // NORM_KERNELS where the output is fp8, otherwise 0
  NormParams p;
} NormCall;
// Decides who takes which row, and launches.
SolStatus norm_launch(SolContext *ctx, const OpsDef *def, NormCall *call, SolStream stream);

// Types and eps of the operation `name`. fp8: its output may be that.
SolStatus norm_check(const char *name, SolDtype dtype, SolDtype out, SolDtype weight, bool fp8, float eps,
                     SolError *err);

// Sums over up to CPU_CHUNK floats, kept in several lanes so that they vectorise.
double norm_sum(const float *f, int64_t count);
double norm_squares(const float *f, float mean, int64_t count); // of (f - mean)
// f *= scale * (weight + offset), then + bias; columns from `at`. weight and bias may be NULL.
void norm_apply(float *f, int64_t at, int64_t count, float scale, SolDtype weight_dtype, const void *weight,
                float offset, const void *bias);

// The reference's tail: y = (x - mean) * scale * (weight + offset) + bias over one row.
void norm_reference_row(double *y, const double *x, int64_t n, double mean, double scale,
                        const double *weight, double offset, const double *bias);
double norm_reference_squares(const double *x, int64_t n, double mean); // mean of (x - mean)^2
double norm_reference_round(SolDtype dtype, double x);                  // to a storage type

#endif
