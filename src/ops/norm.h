// What rmsnorm, add_rmsnorm, embed_rmsnorm and layernorm share: the choice of the kernel and of its threads,
// and parts of their CPU code and references.
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
enum { NORM_EMBED_OWN = 13 }; // embed_rmsnorm has kernels of its own behind those, which take none
extern const uint32_t norm_embed_shared[NORM_KERNELS + NORM_EMBED_OWN];

// Rows of every length class: within a warp, a block, a cluster; whole chunks and not; longer than what
// registers and shared memory hold.
enum { NORM_SHAPES = 35 };
extern const int64_t norm_shapes[NORM_SHAPES][4];

// The arguments that all four have, with every default filled in. NORM_OF: from those of one of them, whose
// input is the member `input`.
typedef struct Norm {
  void *y;
  const void *x, *weight;
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out, weight_dtype;
  float eps, offset;
} Norm;
#define NORM_OF(a, input)                                                                                    \
  ((Norm){.y = (a)->y,                                                                                       \
          .x = (a)->input,                                                                                   \
          .weight = (a)->weight,                                                                             \
          .m = (a)->m,                                                                                       \
          .n = (a)->n,                                                                                       \
          .y_stride = ops_stride((a)->y_stride, (a)->n),                                                     \
          .x_stride = ops_stride((a)->input##_stride, (a)->n),                                               \
          .dtype = (a)->dtype,                                                                               \
          .out = ops_or((a)->out_dtype, (a)->dtype),                                                         \
          .weight_dtype = ops_or((a)->weight_dtype, (a)->dtype),                                             \
          .eps = (a)->eps,                                                                                   \
          .offset = (a)->weight_offset})
// The fields of a test case.
#define NORM_CASE(c) OPS_MATRIX_CASE(c), .weight_dtype = (c)->weight_dtype, .eps = 1e-5f
#define NORM_COST(a) OPS_MATRIX_COST(a), .weight_dtype = (a)->weight_dtype

typedef struct NormCall {
  SolDtype dtype;
  bool layer; // layernorm: its fast kernels take a bias as well as a weight
  int fp8;    // NORM_KERNELS where the output is fp8, otherwise 0
  NormParams p;
} NormCall;
// The call of those arguments; the operation adds what is its own.
NormCall norm_call(const Norm *a);
// Few rows of a few elements: fills the launch. False: they are many, or longer. All kernels for such rows add up alike but those for whole aligned chunks.
bool norm_plan_few(const SolContext *ctx, NormCall *call, OpsLaunch *l);
// Chooses the kernel, and launches it.
SolStatus norm_launch(SolContext *ctx, const OpsDef *def, NormCall *call, SolStream stream);

// Types and eps. fp8: the operation has an fp8 output.
SolStatus norm_check(const Norm *a, bool fp8, SolError *err);

// The fields of a definition that all four have alike.
#define NORM_OP(timed)         NORM_OP_WITH(timed, norm_shared)
#define NORM_OP_WITH(timed, s) OPS_OWN_ROWS, .slack = 24, OPS_CASES(norm_shapes, timed), .shared = s

// Sums over up to CPU_CHUNK floats, kept in several lanes so that they vectorise.
double norm_sum(const float *f, int64_t count);
double norm_squares(const float *f, float mean, int64_t count); // of (f - mean)
// f *= scale * (weight + offset), then + bias; columns from `at`. The weight and bias may be NULL.
void norm_apply(const Norm *a, float *f, int64_t at, int64_t count, float scale, const void *bias);
// 1 / sqrt(mean + eps), from a sum over the row.
float norm_scale(const Norm *a, double sum);

// The last step of the references: y = (x - mean) * scale * (weight + offset) + bias over one row.
void norm_reference_row(double *y, const double *x, int64_t n, double mean, double scale,
                        const double *weight, double offset, const double *bias);
double norm_reference_squares(const double *x, int64_t n, double mean); // mean of (x - mean)^2
double norm_reference_round(SolDtype dtype, double x);                  // to a storage type

#endif
