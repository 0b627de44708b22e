// What the files of gemm share.
#ifndef SOL_OPS_GEMM_PARTS_H
#define SOL_OPS_GEMM_PARTS_H

#include "kernels/gemm/gemm.h"
#include "ops/operation.h"

enum {
#define TILED(kind, a, b, tall, wide, stages, cluster, rate)                                                 \
  GEMM_TILED_##kind##_##a##b##_##tall##_##wide##_##cluster,
#define SKINNY(kind, eights, warps, deep)    GEMM_SKINNY_##kind##_##eights,
#define SKINNY_89(kind, eights, warps, deep) SKINNY(kind, eights, warps, deep)
#define ANY(kind)                            GEMM_ANY_##kind,
#include "kernels/gemm/gemm.def"
  GEMM_KERNELS
};
extern const char *const gemm_kernels[GEMM_KERNELS];
extern const uint32_t gemm_shared[GEMM_KERNELS]; // bytes

// The arguments with every default filled in. Only after the checks, since its products could overflow.
SolGemm gemm_filled(const SolGemm *args);
// Columns of B: twice C's with SOL_ACTIVATION_SILU_MUL.
static inline int64_t gemm_b_width(const SolGemm *a) {
  return a->activation == SOL_ACTIVATION_SILU_MUL ? (int64_t)((uint64_t)a->n * 2) : a->n;
}
static inline SolDtype gemm_wide(const SolGemm *a) {
  return a->dtype == SOL_FP8 ? SOL_BF16 : a->dtype;
}
static inline SolDtype gemm_out(const SolGemm *a) {
  return ops_or(a->out_dtype, gemm_wide(a));
}
static inline SolDtype gemm_bias_type(const SolGemm *a) {
  return ops_or(a->weight_dtype, gemm_wide(a));
}

SolStatus gemm_cpu(SolContext *ctx, const void *args);
SolStatus gemm_launch(SolContext *ctx, const void *args, SolStream stream);
// For tests: one of the tiled kernels, whether or not it is the best. It must fit the types and the layout, and tensor
// copies must reach the tensors.
bool gemm_tile_fits(const SolGemm *a, int kernel);
SolStatus gemm_launch_tile(SolContext *ctx, const SolGemm *args, int kernel, SolStream stream);

#endif
