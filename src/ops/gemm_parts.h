// What the files of gemm share.
#ifndef SOL_OPS_GEMM_PARTS_H
#define SOL_OPS_GEMM_PARTS_H

#include "kernels/gemm/gemm.h"
#include "ops/operation.h"

enum {
#define ROW(id, ...) GEMM_##id,
#include "ops/gemm_kernels.def"
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
// Scales of a column of int4 weights.
static inline int64_t gemm_groups(const SolGemm *a) {
  return a->k / GEMM_GROUP + (a->k % GEMM_GROUP != 0);
}
// Of a tiled kernel: 128 bytes along k each.
static inline int64_t gemm_steps(const SolGemm *a) {
  return ops_ceil_div(a->k * ops_size(a->dtype), 128);
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
// gemm_few.c: `a` is filled in. Whether gemm_few.cuh can; launches it.
bool gemm_is_few(SolContext *ctx, const SolGemm *a);
SolStatus gemm_launch_few(SolContext *ctx, const SolGemm *a, SolStream stream);

// For launching.
GemmEpilogue gemm_epilogue_of(const SolGemm *a);
GemmAnyParams gemm_any_params(const SolGemm *a);
// x, y: elements and lines; a box is 128 bytes of box_y lines.
SolStatus gemm_make_map(SolContext *ctx, SolDtype dtype, const void *at, int64_t x, int64_t y, int64_t batch,
                        int64_t stride, int64_t batch_stride, int box_y, GemmMap *out);
// The same of boxes of `span` bytes, 128 or 64, swizzled over them.
SolStatus gemm_make_map_of(SolContext *ctx, SolDtype dtype, const void *at, int64_t x, int64_t y,
                           int64_t batch, int64_t stride, int64_t batch_stride, int span, int box_y,
                           GemmMap *out);
// What the launch rule knows of a kernel of gemm_wgmma.cuh or gemm_split.cuh; rows 0: it is another.
typedef struct GemmVariant {
  int kind, a_turned, b_turned, rows, wide, stages;
  bool split;
  int per_sm; // blocks
  uint32_t threads;
} GemmVariant;
extern const GemmVariant gemm_variants[GEMM_KERNELS];

// A way to multiply. parts: blocks that share out k; down, across: blocks of a cluster that share operands; swapped: a tile's rows are C's
// columns.
typedef struct GemmWay {
  int kernel, parts, down, across;
  bool swapped;
} GemmWay;

// Its tiles: rows and columns of clusters' tiles; clusters that run at a time.
typedef struct GemmPlan {
  GemmWay way;
  int64_t rows, columns, tiles, at_a_time;
} GemmPlan;

// gemm_rule.c
bool gemm_can_tile(const SolGemm *a);
// The types, the layout and the epilogue; tensor copies must reach the tensors, too.
bool gemm_tile_fits(const SolGemm *a, const GemmWay *way);
void gemm_ask_clusters(SolContext *ctx, SolDriverKernel *const *loaded); // fills in ctx->clusters
GemmPlan gemm_plan(const SolContext *ctx, const SolGemm *a, GemmWay way);
int64_t gemm_clusters_of(const SolContext *ctx, int size, int per_sm);            // that run at a time
double gemm_estimate(const SolContext *ctx, const SolGemm *a, const GemmPlan *p); // microseconds
bool gemm_pick(SolContext *ctx, const SolGemm *a, GemmPlan *best);                // false: none can
bool gemm_reaches(const void *at, int64_t stride, int64_t batch_stride, int64_t batch, int size);

// For tests: in this way, whether or not it is the best.
SolStatus gemm_launch_tile(SolContext *ctx, const SolGemm *args, GemmWay way, SolStream stream);

#endif
