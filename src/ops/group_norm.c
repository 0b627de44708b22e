// y = (x - mean) / sqrt(variance + eps) * weight[channel] + bias[channel], over groups of channels
#include <math.h>

#include "base/error.h"
#include "kernels/common.h"
#include "kernels/group_norm/group_norm.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/held.h"
#include "ops/parts.h"
#include "ops/ring.h"
#include "ops/stream.h"

// For elements of 2 bytes and of 4: any group; and those of kernels/group_norm/pieces.cuh.
enum {
  HELD_2,
  HELD_4,
  CLUSTER_2,
  CLUSTER_4,
  PARTS_F,
  PARTS_H,
  PARTS_B,
  RING_F,
  RING_H,
  RING_B,
  STREAM_H,
  STREAM_B,
  STREAM_F,
  KERNELS
};
static const char *const kernel_names[KERNELS] = {
    "sol_group_norm_2",         "sol_group_norm_4",        "sol_group_norm_2_cluster",
    "sol_group_norm_4_cluster", "sol_group_norm_f_parts",  "sol_group_norm_h_parts",
    "sol_group_norm_b_parts",   "sol_group_norm_f_ring",   "sol_group_norm_h_ring",
    "sol_group_norm_b_ring",    "sol_group_norm_h_stream", "sol_group_norm_b_stream",
    "sol_group_norm_f_stream"};
enum { PIECE_SHARED = (64 << 10) + 8 * GROUP_NORM_AFFINES + (8 << 10) };
static const uint32_t kernel_shared[KERNELS] = {
    GROUP_NORM_SHARED, GROUP_NORM_SHARED, PIECE_SHARED, PIECE_SHARED, PIECE_SHARED,
    PIECE_SHARED,      PIECE_SHARED,      RING_SHARED,  RING_SHARED,  RING_SHARED,
    STREAM_SHARED,     STREAM_SHARED,     STREAM_SHARED};

static SolDtype out_of(const SolGroupNorm *a) {
  return ops_or(a->out_dtype, a->dtype);
}
static SolDtype weight_of(const SolGroupNorm *a) {
  return ops_or(a->weight_dtype, a->dtype);
}
// Elements of a group, all of which are one row. -1 where that is too many.
static int64_t row_of(const SolGroupNorm *a) {
  return a->groups > 0 && a->c % a->groups == 0 ? ops_times(a->c / a->groups, a->s) : -1;
}

static bool make(const OpsCase *c, void *args) {
  SolGroupNorm *a = args;
  *a = (SolGroupNorm){.batch = c->dim[0],
                      .c = c->dim[1],
                      .s = c->dim[2],
                      .groups = c->dim[3],
                      .dtype = c->dtype,
                      .out_dtype = c->out_dtype,
                      .weight_dtype = c->weight_dtype,
                      .eps = 1e-5f};
  return !c->pad && a->groups > 0 && a->c % a->groups == 0;
}

// A row of x and y is a group: what its elements have in common is rounded alike.
static int views(const void *args, OpsView *v) {
  const SolGroupNorm *a = args;
  int64_t n = row_of(a), rows = a->batch && n >= 0 ? a->groups : 0;
  v[0] =
      OPS_VIEW(SolGroupNorm, y, out_of(a), OPS_OUT, .batch = a->batch, .rows = rows, .cols = n, .alias = 2);
  v[1] = OPS_VIEW(SolGroupNorm, x, a->dtype, OPS_IN, .batch = a->batch, .rows = rows, .cols = n);
  v[2] = OPS_VIEW(SolGroupNorm, weight, weight_of(a), OPS_IN, .rows = 1, .cols = a->c, .optional = true,
                  .fill = OPS_FILL_UNIT);
  v[3] = OPS_VIEW(SolGroupNorm, bias, weight_of(a), OPS_IN, .rows = 1, .cols = a->c, .optional = true,
                  .fill = OPS_FILL_UNIT);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolGroupNorm *a = args;
  if (a->groups <= 0 || a->c < 0 || a->c % a->groups)
    return sol_fail(err, SOL_ERR_ARGUMENT, "%lld channels do not make %lld groups", (long long)a->c,
                    (long long)a->groups);
  if (weight_of(a) != a->dtype && weight_of(a) != SOL_FP32)
    return sol_fail(err, SOL_ERR_ARGUMENT, "weight and bias must be %s or fp32, not %s",
                    sol_dtype_name(a->dtype), sol_dtype_name(weight_of(a)));
  return ops_check_reals(a->dtype, out_of(a), err);
}

// CPU: the mean, then the variance around it
static void cpu_stats(const SolGroupNorm *a, int64_t start, int64_t n, double *mean, double *variance) {
  float f[CPU_CHUNK];
  double sum = 0, squares = 0;
  CPU_CHUNKS(at, c, n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) sum += (double)f[i];
  }
  *mean = sum / (double)n;
  CPU_CHUNKS(at, c, n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) squares += ((double)f[i] - *mean) * ((double)f[i] - *mean);
  }
  *variance = squares / (double)n;
}

static void cpu_groups(const void *args, int64_t begin, int64_t end) {
  const SolGroupNorm *a = args;
  int64_t n = row_of(a), of_group = a->c / a->groups;
  for (int64_t row = begin; row < end; row++) {
    double mean, variance;
    cpu_stats(a, row * n, n, &mean, &variance);
    float middle = (float)mean, over = (float)(1 / sqrt(variance + (double)a->eps));
    for (int64_t k = 0; k < of_group; k++) {
      float f[CPU_CHUNK], times = 1, plus = 0;
      int64_t channel = row % a->groups * of_group + k, start = row * n + k * a->s;
      if (a->weight) cpu_load(weight_of(a), a->weight, channel, 1, &times);
      if (a->bias) cpu_load(weight_of(a), a->bias, channel, 1, &plus);
      CPU_CHUNKS(at, c, a->s) {
        cpu_load(a->dtype, a->x, start + at, c, f);
        for (int64_t i = 0; i < c; i++) f[i] = (f[i] - middle) * (over * times) + plus;
        cpu_store(out_of(a), a->y, start + at, c, f);
      }
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolGroupNorm *a = args;
  cpu_parallel(ctx, a->batch * a->groups, a->batch * a->c * a->s, cpu_groups, a);
  return SOL_OK;
}

enum { AHEAD = 6 << 20 }; // bytes: what blocks that start soon will read
enum { SHORT = 256 };     // chunks of 16 bytes: groups of up to so many share a block

// Any group: short ones share a block, longer ones have one or a cluster, whose shared memory holds as much of the group as it can: about
// 16 KiB, so that several blocks are on an SM and one loads while another stores.
static void plan_held(const SolContext *ctx, const SolGroupNorm *a, GroupNormParams *p, OpsLaunch *l) {
  enum { MOST_BLOCKS = 16, OF_BLOCK = 16 << 10, EACH = 8 };
  int in = ops_size(a->dtype);
  int64_t chunks = ops_ceil_div(p->n, 16 / in), rows = a->batch * a->groups;
  l->kernel = in == 4 ? HELD_4 : HELD_2;
  if (chunks <= SHORT) {
    p->held = held_short(rows, chunks, l);
    return;
  }
  p->held = held_blocks(ctx, rows, chunks, OF_BLOCK, MOST_BLOCKS, EACH, l);
  int64_t all = ops_ceil_div(chunks, l->cluster * l->block),
          most = (ctx->cc >= 90 ? GROUP_NORM_SHARED : HELD_SHARED) / (16 * l->block);
  l->shared = (uint32_t)(cpu_min(all, most) * 16) * l->block;
  p->held.shared = (int32_t)l->shared;
}

// Shared memory of a block of which three fit an SM of 228 KiB, beside what the kernel has of its own.
enum { THIRD = (228 << 10) / PARTS_BLOCKS - (2 << 10), TURN = 16 * PARTS_THREADS, MOST_TURNS = THIRD / TURN };

// Turns of a block's threads whose chunks are in shared memory, beside so many weights and biases.
static int64_t turns_of(int64_t affines) {
  return (THIRD - 8 * affines) / TURN;
}

// Bytes that a part of a group all over the GPU has: in shared memory and in registers.
static int64_t held_of(int64_t s, int in) {
  int64_t most = (MOST_TURNS + GROUP_NORM_OWN) * TURN / in;
  return (turns_of(cpu_min(most / s + 3, GROUP_NORM_AFFINES)) + GROUP_NORM_OWN) * TURN - 1024;
}

// Groups of kernels/group_norm/group_ring.cuh: all blocks share each. False: parts hold them, or they are not such.
static bool plan_ring(const SolContext *ctx, const SolGroupNorm *a, GroupNormParams *p, OpsLaunch *l) {
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  RingShape *r = &p->ring;
  *r = (RingShape){.x = a->x,
                   .y = a->y,
                   .n = p->n,
                   .x_stride = p->n * in,
                   .y_stride = p->n * out,
                   .bulk = p->x_kind == p->y_kind};
  if (!p->alike || a->s < 16 / in || parts_held(ctx, p->n * in, held_of(a->s, in))) return false;
  if (!ring_shape(ctx, a->batch * a->groups, in, out, r, l)) return false;
  int64_t affines = (r->parts.length + 32 / in) / a->s + 2;
  if (affines > GROUP_NORM_AFFINES) return false;
  p->affines = (int32_t)affines;
  p->divider32 = elementwise_divider32((uint32_t)cpu_min(a->s, ELEMENTWISE_SMALL));
  l->shared = (uint32_t)(ring_slots(in, 2 * RING_DEPTH * 8 * affines, r) + 2 * r->depth * 8 * affines);
  l->kernel = p->x_kind == KIND_FP32 ? RING_F : p->x_kind == KIND_FP16 ? RING_H : RING_B;
  return true;
}

// Bytes of weights and biases of a part of so many elements.
static int64_t stream_room(const void *args, int64_t elements) {
  const SolGroupNorm *a = args;
  return (elements / a->s + 2) * 8;
}

// Groups of kernels/group_norm/group_stream.cuh: those that it takes less time for. False: they are not such.
static bool plan_stream(const SolContext *ctx, const SolGroupNorm *a, GroupNormParams *p, OpsLaunch *l) {
  enum { LEAST = 128 << 10 }; // bytes of a group: below clusters are faster
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  int64_t bytes = p->n * in;
  p->stream = (StreamShape){.x = a->x, .y = a->y, .n = p->n, .x_stride = bytes, .y_stride = p->n * out};
  if (!p->alike || a->s < 16 / in || bytes < LEAST) return false;
  p->divider32 = elementwise_divider32((uint32_t)cpu_min(a->s, ELEMENTWISE_SMALL));
  l->kernel = in == 4 ? STREAM_F : p->x_kind == KIND_FP16 ? STREAM_H : STREAM_B;
  return stream_shape(ctx, a->batch * a->groups, in, out, stream_room, a, &p->stream, l);
}

// Groups of kernels/group_norm/pieces.cuh: a block or a cluster each, or blocks all over the GPU. False: they are not such.
static bool plan_pieces(const SolContext *ctx, const SolGroupNorm *a, GroupNormParams *p, OpsLaunch *l) {
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  int64_t per = 16 / in, bytes = p->n * in, rows = a->batch * a->groups;
  int64_t blocks = parts_cluster(ctx, bytes, PARTS_SHARED);
  int64_t parts = blocks ? blocks : parts_count(ctx, bytes, held_of(a->s, in));
  if (!p->alike || bytes <= 16 * SHORT || a->s < per || !parts || (!blocks && a->y == a->x)) return false;
  p->parts = parts_shape(a->y, rows, p->n, in, out, parts);
  p->divider32 = elementwise_divider32((uint32_t)cpu_min(a->s, ELEMENTWISE_SMALL));
  int64_t longest = p->parts.length + 2 * per, affines = longest / a->s + 2;
  if (affines > GROUP_NORM_AFFINES) return false;
  if (!blocks) {
    parts_launch(&p->parts, l);
  } else {
    int64_t threads = ops_ceil_div(ops_ceil_div(longest / per, 4), 32) * 32;
    l->block = (uint32_t)cpu_min(threads, PARTS_THREADS);
    l->cluster = p->parts.parts;
    ops_grid(l->grid, (uint64_t)rows * p->parts.parts, 1);
  }
  p->ahead = AHEAD;
  int64_t turns = blocks ? PARTS_SHARED / (16 * l->block) : turns_of(affines);
  p->turns = (int32_t)cpu_min(ops_ceil_div(longest / per, l->block), turns);
  l->shared = (uint32_t)(p->turns * (int32_t)l->block * 16 + affines * 8);
  l->kernel = blocks                   ? CLUSTER_2 + (in == 4)
              : p->x_kind == KIND_FP32 ? PARTS_F
              : p->x_kind == KIND_FP16 ? PARTS_H
                                       : PARTS_B;
  return true;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolGroupNorm *a = args;
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  GroupNormParams p = {.y = a->y,
                       .x = a->x,
                       .weight = a->weight,
                       .bias = a->bias,
                       .n = row_of(a),
                       .groups = (uint64_t)a->groups,
                       .channels = (uint64_t)(a->c / a->groups),
                       .divider = elementwise_divider((uint64_t)a->s),
                       .x_kind = ops_kind(a->dtype),
                       .y_kind = ops_kind(out_of(a)),
                       .weight_kind = ops_kind(weight_of(a)),
                       .alike = ((uintptr_t)a->x & 15) / (uintptr_t)in ==
                                    ((uintptr_t)a->y & (uintptr_t)(16 / in * out - 1)) / (uintptr_t)out &&
                                (uintptr_t)a->y % 16 % (uintptr_t)out == 0,
                       .eps = a->eps};
  OpsLaunch l = {.early = true, .params = &p, .bytes = sizeof p};
  if (!plan_stream(ctx, a, &p, &l) && !plan_ring(ctx, a, &p, &l) && !plan_pieces(ctx, a, &p, &l))
    plan_held(ctx, a, &p, &l);
  return ops_launch(ctx, &ops_group_norm, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolGroupNorm *a = args;
  int64_t n = row_of(a);
  for (int64_t row = 0; n && row < a->batch * a->groups; row++) {
    const double *x = at[1] + row * n;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) variance += (x[i] - mean) * (x[i] - mean) / (double)n;
    for (int64_t i = 0; i < n; i++) {
      int64_t channel = row % a->groups * (a->c / a->groups) + i / a->s;
      double y = (x[i] - mean) / sqrt(variance + (double)a->eps);
      at[0][row * n + i] = y * (at[2] ? at[2][channel] : 1) + (at[3] ? at[3][channel] : 0);
    }
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolGroupNorm *a = args;
  *op = (SolOpArgs){.dim = {a->batch, a->c, a->s},
                    .dtype = a->dtype,
                    .out_dtype = a->out_dtype,
                    .weight_dtype = a->weight_dtype};
}

// Batch, channels, elements of a channel, groups: a channel to an element, several to a vector, one to a cluster; groups over the whole GPU, the last longer
// than parts hold in fp32: a ring's.
static const int64_t shapes[][4] = {{1, 1, 1, 1},     {2, 6, 1, 3},      {3, 8, 5, 2},      {2, 32, 49, 8},
                                    {1, 4, 1000, 2},  {2, 64, 64, 4},    {1, 2, 9001, 1},   {1, 1, 200001, 1},
                                    {0, 4, 4, 2},     {2, 4, 0, 2},      {3, 6, 1301, 2},   {2, 2, 70001, 1},
                                    {1, 50, 1999, 1}, {2, 1, 400003, 1}, {1, 5, 1300001, 1}};
static const int64_t bench[][4] = {{2, 320, 4096, 32},  {2, 1280, 256, 32},   {8, 320, 16384, 32},
                                   {4, 512, 65536, 32}, {2, 256, 262144, 32}, {64, 64, 3136, 16}};

const OpsDef ops_group_norm = {
    .name = "group_norm",
    OPS_ARGS(SolGroupNorm, "BxCxSxG"),
    OPS_OWN_FUNCTIONS,
    .slack = 64,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("group_norm", kernel_names),
    .shared = kernel_shared,
    .least_shared = HELD_SHARED,
};
