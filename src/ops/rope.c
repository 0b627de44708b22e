// Rotary position embedding
#include "kernels/rope/rope.h"
#include "base/error.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/ends.h"
#include "ops/tile.h"

enum {
#define ROPE(in, out) KERNEL_##in##_##out, KERNEL_NEIGHBOURS_##in##_##out, KERNEL_LOOSE_##in##_##out,
#include "kernels/rope/rope.def"
  KERNEL_EIGHTS_2_2,
  KERNEL_FOURS_2_2,
  KERNEL_WINDOWS_2_2,
  KERNEL_WORDS_2_2,
  KERNEL_DIRECT_2_2,
  KERNEL_DIRECT_2_4,
  KERNEL_DIRECT_4_2,
  KERNEL_DIRECT_4_4,
  KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define ROPE(in, out)                                                                                        \
  "sol_rope_" #in "_" #out, "sol_rope_neighbours_" #in "_" #out, "sol_rope_loose_" #in "_" #out,
#include "kernels/rope/rope.def"
    "sol_rope_eights_2_2", "sol_rope_fours_2_2",  "sol_rope_windows_2_2", "sol_rope_words_2_2",
    "sol_rope_direct_2_2", "sol_rope_direct_2_4", "sol_rope_direct_4_2",  "sol_rope_direct_4_4"};

enum { HALVES, NEIGHBOURS, PARTIAL_HALVES, PARTIAL_NEIGHBOURS, OPTIONS };
static const char *const option_names[OPTIONS] = {"", "interleaved", "half rotated",
                                                  "half rotated, interleaved"};

static SolDtype out_of(const SolRope *a) {
  return ops_or(a->out_dtype, a->dtype);
}
static SolDtype weight_of(const SolRope *a) {
  return ops_or(a->weight_dtype, a->dtype);
}
static int64_t rotary_of(const SolRope *a) {
  return a->rotary ? a->rotary : a->d;
}
static int64_t rows_of(const SolRope *a) {
  return a->rows ? a->rows : a->t;
}

static bool make(const OpsCase *c, void *args) {
  SolRope *a = args;
  *a = (SolRope){.t = c->dim[0],
                 .h = c->dim[1],
                 .d = c->dim[2],
                 .dtype = c->dtype,
                 .out_dtype = c->out_dtype,
                 .weight_dtype = c->weight_dtype,
                 .id_dtype = c->id_dtype,
                 .interleaved = c->option % 2};
  if (c->option >= PARTIAL_HALVES) a->rotary = a->d / 4 * 2;
  if (a->d % 2 && !a->rotary) return false;
  a->rows = a->t + 5;
  if (c->pad) a->x_stride = a->y_stride = a->h * a->d + c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolRope *a = args;
  int64_t wide = ops_times(a->h, a->d), half = rotary_of(a) / 2, rows = rows_of(a);
  v[0] = OPS_VIEW(SolRope, y, out_of(a), OPS_OUT, .rows = a->t, .cols = wide, .stride = a->y_stride,
                  .alias = a->dtype == out_of(a) ? 2 : 0);
  v[1] = OPS_VIEW(SolRope, x, a->dtype, OPS_IN, .rows = a->t, .cols = wide, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolRope, cos, weight_of(a), OPS_IN, .rows = rows, .cols = half, .fill = OPS_FILL_UNIT);
  v[3] = OPS_VIEW(SolRope, sin, weight_of(a), OPS_IN, .rows = rows, .cols = half, .fill = OPS_FILL_UNIT);
  v[4] = OPS_VIEW(SolRope, positions, ops_or(a->id_dtype, SOL_INT32), OPS_IN, .rows = 1, .cols = a->t,
                  .optional = true, .fill = OPS_FILL_IDS, .limit = rows);
  return 5;
}

static SolStatus check(const void *args, SolError *err) {
  const SolRope *a = args;
  SolStatus status = ops_check_reals(a->dtype, out_of(a), err);
  if (!status) status = ops_check_ids("positions", ops_or(a->id_dtype, SOL_INT32), err);
  if (status) return status;
  if (weight_of(a) != a->dtype && weight_of(a) != SOL_FP32)
    return sol_fail(err, SOL_ERR_ARGUMENT, "cos and sin must be %s or fp32, not %s", sol_dtype_name(a->dtype),
                    sol_dtype_name(weight_of(a)));
  if (a->t < 0 || a->h < 0 || a->d < 0 || a->rotary < 0 || a->rows < 0)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a size is negative");
  if (ops_times(a->h, a->d) < 0) return sol_fail(err, SOL_ERR_RANGE, "a token is too large to address");
  if (rotary_of(a) % 2 || rotary_of(a) > a->d)
    return sol_fail(err, SOL_ERR_ARGUMENT, "rotary must be even and at most %lld, not %lld", (long long)a->d,
                    (long long)rotary_of(a));
  return SOL_OK;
}

// Rotates `half` pairs of a head: first and second are `step` apart, pairs `next` apart.
static void rotate(float *f, const float *c, const float *s, int64_t half, int64_t step, int64_t next) {
  for (int64_t i = 0; i < half; i++) {
    float a = f[i * next], b = f[i * next + step];
    f[i * next] = a * c[i] - b * s[i];
    f[i * next + step] = b * c[i] + a * s[i];
  }
}

// Loads, rotates and stores `count` pairs, from pair `at` on.
static void cpu_pairs(const SolRope *a, int64_t from, int64_t to, int64_t row, int64_t at, int64_t count) {
  int64_t half = rotary_of(a) / 2;
  float f[2 * CPU_CHUNK], c[CPU_CHUNK], s[CPU_CHUNK];
  if (row >= 0) {
    cpu_load(weight_of(a), a->cos, row * half + at, count, c);
    cpu_load(weight_of(a), a->sin, row * half + at, count, s);
  }
  if (a->interleaved) {
    cpu_load(a->dtype, a->x, from + 2 * at, 2 * count, f);
    if (row >= 0) rotate(f, c, s, count, 1, 2);
    cpu_store(out_of(a), a->y, to + 2 * at, 2 * count, f);
    return;
  }
  cpu_load(a->dtype, a->x, from + at, count, f);
  cpu_load(a->dtype, a->x, from + half + at, count, f + CPU_CHUNK);
  if (row >= 0) rotate(f, c, s, count, CPU_CHUNK, 1);
  cpu_store(out_of(a), a->y, to + at, count, f);
  cpu_store(out_of(a), a->y, to + half + at, count, f + CPU_CHUNK);
}

static void cpu_tokens(const void *args, int64_t begin, int64_t end) {
  const SolRope *a = args;
  int64_t xs = ops_stride(a->x_stride, a->h * a->d), ys = ops_stride(a->y_stride, a->h * a->d);
  int64_t rotary = rotary_of(a), half = rotary / 2, rest = a->d - rotary;
  for (int64_t i = begin; i < end; i++) {
    int64_t token = i / a->h, head = i % a->h * a->d;
    int64_t row = a->positions ? cpu_id(ops_or(a->id_dtype, SOL_INT32), a->positions, token) : token;
    int64_t from = token * xs + head, to = token * ys + head;
    if (row < 0 || row >= rows_of(a)) row = -1;
    CPU_CHUNKS(at, c, half) {
      cpu_pairs(a, from, to, row, at, c);
    }
    CPU_CHUNKS(at, c, rest) {
      float f[CPU_CHUNK];
      cpu_load(a->dtype, a->x, from + rotary + at, c, f);
      cpu_store(out_of(a), a->y, to + rotary + at, c, f);
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolRope *a = args;
  cpu_parallel(ctx, a->t * a->h, a->t * a->h * a->d, cpu_tokens, a);
  return SOL_OK;
}

// Pairs of neighbours: also where one pair is all that is rotated.
static bool has_neighbours(const SolRope *a) {
  return a->interleaved || rotary_of(a) == 2;
}

// Heads that are whole chunks together. They share nothing with other heads where a token has whole numbers of them.
static int64_t joined_heads(const SolRope *a, int64_t per) {
  int64_t bits = a->d | per, chunk = bits & -bits;
  return per / chunk;
}

// Whether x and y can be accessed by whole chunks: tokens are aligned, and 32 bits count everything.
static bool has_chunks(const SolRope *a, const RopeParams *p, int per, int in, int out) {
  bool small = a->d <= ELEMENTWISE_SMALL &&
               a->t * a->h <= ELEMENTWISE_SMALL / (a->d / per + 1) && // in threads
               p->rows <= ELEMENTWISE_SMALL && p->x_stride <= ELEMENTWISE_SMALL / in &&
               p->y_stride <= ELEMENTWISE_SMALL / out && a->h * a->d <= ELEMENTWISE_SMALL / 4;
  return small && a->d % 2 == 0 && a->h % joined_heads(a, per) == 0 &&
         elementwise_aligned(a->x, p->x_stride * in, per * in) &&
         elementwise_aligned(a->y, p->y_stride * out, per * out);
}

// Whether the rotated part of a head, or of neighbours a row of the tables, is not whole chunks, or the tables are not aligned.
static bool is_loose(const SolRope *a, const RopeParams *p, int per) {
  int weight = (has_neighbours(a) ? per / 2 : per) * ops_size(weight_of(a));
  weight = weight > 16 ? 16 : weight;
  return a->d % per || (has_neighbours(a) ? 2 * p->half : p->half) % per ||
         !elementwise_aligned(a->cos, 0, weight) || !elementwise_aligned(a->sin, 0, weight);
}

static int kernel_of(const SolRope *a) { // the first of those of its sizes
  bool wide_out = out_of(a) == SOL_FP32;
  return a->dtype == SOL_FP32 ? (wide_out ? KERNEL_4_4 : KERNEL_4_2) : wide_out ? KERNEL_2_4 : KERNEL_2_2;
}

static void set_chunks(const SolRope *a, RopeParams *p, uint64_t items, uint64_t groups, OpsLaunch *l) {
  enum { FEW = 1 << 20 }; // threads
  p->items = items * groups * (uint64_t)a->t;
  p->head32 = elementwise_divider32((uint32_t)items);
  p->groups32 = elementwise_divider32((uint32_t)groups);
  p->tokens = (uint32_t)a->t;
  p->hints = p->items <= FEW;
  l->block = ROPE_THREADS;
  ops_grid(l->grid, p->items, l->block);
}

// A thread rotates a pair of chunks of some heads, or a chunk of neighbouring pairs. per: elements of a chunk.
static void plan_accesses(const SolRope *a, RopeParams *p, int64_t per, int64_t heads, OpsLaunch *l) {
  int64_t rest = (a->d - rotary_of(a)) / per; // whole chunks
  bool neighbours = has_neighbours(a);
  p->turns = neighbours ? 2 * p->half / per : p->half / per;
  set_chunks(a, p, (uint64_t)(p->turns + (neighbours ? rest : (rest + 1) / 2)),
             (uint64_t)ops_ceil_div(a->h, heads), l);
}

static void plan_wide(const SolRope *a, RopeParams *p, OpsLaunch *l) {
  bool neighbours = has_neighbours(a);
  plan_accesses(a, p, elementwise_chunk(a->dtype, out_of(a)), neighbours ? ROPE_NEIGHBOURS : ROPE_HEADS, l);
  l->kernel = kernel_of(a) + neighbours;
}

// The same by `per` elements of 2 bytes, half the rotated part apart, where all places are multiples of so many.
static bool plan_part(const SolRope *a, RopeParams *p, int per, int heads, int kernel, OpsLaunch *l) {
  enum { SIZE = 2 };
  bool halves = !has_neighbours(a) && a->dtype != SOL_FP32 && out_of(a) != SOL_FP32;
  if (!halves || !has_chunks(a, p, per, SIZE, SIZE) || is_loose(a, p, per)) return false;
  plan_accesses(a, p, per, heads, l);
  l->kernel = kernel;
  return true;
}

static int64_t set_joined(const SolRope *a, int64_t per, RopeParams *p) { // chunks of a joined head
  int64_t joined = joined_heads(a, per);
  p->joined = (uint32_t)(a->h / joined);
  p->d32 = elementwise_divider32((uint32_t)a->d);
  return a->d * joined / per;
}

static void plan_loose(const SolRope *a, RopeParams *p, OpsLaunch *l) {
  int64_t units = set_joined(a, elementwise_chunk(a->dtype, out_of(a)), p);
  set_chunks(a, p, (uint64_t)units, (uint64_t)ops_ceil_div(p->joined, ROPE_LOOSE), l);
  l->kernel = kernel_of(a) + 2;
}

// Pairs half the rotated part apart in chunks that several threads have, of 2-byte elements. False: heads are so long that
// `_words` is faster, which reads the tables by words.
static bool plan_windows(const SolRope *a, RopeParams *p, OpsLaunch *l) {
  enum { LONG = 8 }; // chunks of a joined head
  int64_t units = set_joined(a, 8, p), groups = ops_ceil_div(p->joined, ROPE_WINDOWS), blocks = 1, tokens = 1;
  if (units > LONG || p->half % 2 == 0) return false;
  int64_t most = ROPE_WINDOW_THREADS / units; // groups of a block
  if (groups > most)
    blocks = ops_ceil_div(groups, most), groups = ops_ceil_div(groups, blocks);
  else
    tokens = most / groups;
  p->head32 = elementwise_divider32((uint32_t)units);
  p->groups32 = elementwise_divider32((uint32_t)groups);
  p->blocks32 = elementwise_divider32((uint32_t)blocks);
  p->tokens = (uint32_t)a->t;
  p->block_tokens = (uint32_t)tokens;
  l->block = (uint32_t)((units * groups * tokens + 31) / 32 * 32);
  l->shared = 32 + l->block * ROPE_WINDOWS * 16;
  l->kernel = KERNEL_WINDOWS_2_2;
  ops_grid(l->grid, (uint64_t)(ops_ceil_div(a->t, tokens) * blocks), 1);
  return true;
}

// Straight from memory, whatever the width of heads and wherever they start.
static void plan_direct(const SolRope *a, RopeParams *p, OpsLaunch *l) {
  int in = ops_size(a->dtype), out = ops_size(out_of(a)), weight = ops_size(weight_of(a));
  int64_t places = a->d | (has_neighbours(a) ? 0 : p->half), rest = a->d - rotary_of(a);
  bool two = places % 2 == 0 && elementwise_aligned(a->x, p->x_stride * in, 2 * in) &&
             elementwise_aligned(a->y, p->y_stride * out, 2 * out) &&
             (has_neighbours(a) ||
              (elementwise_aligned(a->cos, 0, 2 * weight) && elementwise_aligned(a->sin, 0, 2 * weight)));
  p->per = two ? 2 : 1;
  p->turns = has_neighbours(a) ? p->half : p->half / p->per;
  p->head = elementwise_divider(
      (uint64_t)(p->turns + (has_neighbours(a) ? ops_ceil_div(rest, 2) : ops_ceil_div(rest, 2 * p->per))));
  p->few = a->h == ROPE_FEW;
  p->groups = elementwise_divider((uint64_t)ops_ceil_div(a->h, p->few ? ROPE_FEW : ROPE_MANY));
  p->items = p->head.by * p->groups.by * (uint64_t)(p->few ? ops_ceil_div(a->t, ROPE_TOKENS) : a->t);
  if (p->items <= ELEMENTWISE_SMALL) {
    p->head32 = elementwise_divider32((uint32_t)p->head.by);
    p->groups32 = elementwise_divider32((uint32_t)p->groups.by);
  }
  p->last = a->t - 1;
  p->neighbours = has_neighbours(a);
  l->block = ROPE_THREADS;
  l->kernel = KERNEL_DIRECT_2_2 + (in == 4 ? 2 : 0) + (out == 4);
  ops_grid(l->grid, p->items, l->block);
}

// By words: so many threads share a token's heads that these, of all tokens of a block, take the fewest turns. Each reads the tables.
static int32_t lanes_of(int64_t units, int64_t heads, int64_t rows) {
  enum { TABLES = 2 }; // what reading them costs, in turns
  int64_t best = 1, least = INT64_MAX;
  for (int64_t lanes = 1; lanes <= heads && lanes * units <= ROPE_TILE_THREADS; lanes++) {
    int64_t cost =
        ops_ceil_div(rows, ROPE_TILE_THREADS / (units * lanes)) * (ops_ceil_div(heads, lanes) + TABLES);
    if (cost < least) least = cost, best = lanes;
  }
  return (int32_t)best;
}

// The same through shared memory: some tokens a block, or, where these are long, some heads of one. False: heads are too long for it.
static bool plan_tile(const SolContext *ctx, const SolRope *a, RopeParams *p, OpsLaunch *l) {
  int64_t in = ops_size(a->dtype), out = ops_size(out_of(a));
  if (a->d * (in + out) > ROPE_TILE_BYTES / 2) return false;
  p->tile = tile_shape(ctx,
                       (TileNeed){.m = a->t,
                                  .n = a->h * a->d,
                                  .x_stride = p->x_stride,
                                  .y_stride = p->y_stride,
                                  .in = in,
                                  .out = out,
                                  .step = a->d,
                                  .turn = 1,
                                  .bytes = ROPE_TILE_BYTES},
                       l);
  // Units: pairs, two of them where that is a word, and two elements that are only copied.
  p->turns = has_neighbours(a) || in == 4 ? p->half : ops_ceil_div(p->half, 2);
  int64_t units = p->turns + ops_ceil_div(a->d - rotary_of(a), 2);
  p->head32 = elementwise_divider32((uint32_t)(units ? units : 1));
  p->lanes = lanes_of(units, a->h, p->tile.rows);
  p->last = a->t - 1;
  int64_t places = a->d | (has_neighbours(a) ? 0 : p->half);
  p->x_unit = ops_align(a->x, (p->x_stride | places) * in, 2);
  p->y_unit = ops_align(a->y, (p->y_stride | places) * out, 2);
  p->neighbours = has_neighbours(a);
  l->block = ROPE_TILE_THREADS;
  l->kernel = KERNEL_WORDS_2_2;
  return true;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolRope *a = args;
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  RopeParams p = {.y = a->y,
                  .x = a->x,
                  .cos = a->cos,
                  .sin = a->sin,
                  .positions = a->positions,
                  .heads = a->h,
                  .d = a->d,
                  .half = rotary_of(a) / 2,
                  .rows = rows_of(a),
                  .y_stride = ops_stride(a->y_stride, a->h * a->d),
                  .x_stride = ops_stride(a->x_stride, a->h * a->d),
                  .x_kind = ops_kind(a->dtype),
                  .y_kind = ops_kind(out_of(a)),
                  .weight_kind = ops_kind(weight_of(a)),
                  .wide_ids = a->id_dtype == SOL_INT64};
  p.ends = ends_bytes(a->y, a->x, p.y_stride * out, a->h * a->d * out);
  enum { AHEAD = 4 << 20 }; // bytes of x
  OpsLaunch l = {.early = true, .params = &p, .bytes = sizeof p};
  p.ahead = (uint32_t)(AHEAD / (a->h * a->d * in));
  int per = elementwise_chunk(a->dtype, out_of(a));
  bool chunks = has_chunks(a, &p, per, in, out), loose = is_loose(a, &p, per), bytes2 = in == 2 && out == 2;
  if (chunks && !loose)
    plan_wide(a, &p, &l);
  else if (chunks && has_neighbours(a))
    plan_loose(a, &p, &l);
  else if (!plan_part(a, &p, 4, ROPE_EIGHTS, KERNEL_EIGHTS_2_2, &l) &&
           !plan_part(a, &p, 2, ROPE_FOURS, KERNEL_FOURS_2_2, &l) &&
           !(chunks && bytes2 && plan_windows(a, &p, &l))) {
    plan_direct(a, &p, &l);
    // Single elements of 2 bytes are too little for an access: shared memory is faster, where it holds a head.
    if (p.per == 1 && bytes2) plan_tile(ctx, a, &p, &l);
  }
  return ops_launch(ctx, &ops_rope, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolRope *a = args;
  int64_t half = rotary_of(a) / 2;
  for (int64_t i = 0; i < a->t * a->h; i++) {
    const double *x = at[1] + i * a->d;
    double *y = at[0] + i * a->d;
    int64_t row = at[4] ? (int64_t)at[4][i / a->h] : i / a->h;
    bool rotated = row >= 0 && row < rows_of(a);
    for (int64_t k = 0; k < half; k++) {
      int64_t first = a->interleaved ? 2 * k : k, second = a->interleaved ? 2 * k + 1 : k + half;
      double c = rotated ? at[2][row * half + k] : 1, s = rotated ? at[3][row * half + k] : 0;
      double u = x[first], v = x[second];
      y[first] = rotated ? u * c - v * s : u;
      y[second] = rotated ? v * c + u * s : v;
    }
    for (int64_t k = 2 * half; k < a->d; k++) y[k] = x[k];
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolRope *a = args;
  *op = (SolOpArgs){.dim = {a->t, a->h, a->d},
                    .dtype = a->dtype,
                    .out_dtype = a->out_dtype,
                    .weight_dtype = a->weight_dtype};
}

static const int64_t shapes[][4] = {{1, 1, 2},   {3, 2, 6},   {2, 3, 34},   {5, 1, 13},  {7, 4, 64},
                                    {2, 3, 128}, {1, 2, 256}, {1, 1, 4100}, {33, 8, 16}, {9, 3, 90},
                                    {7, 3, 40},  {0, 4, 64},  {2, 0, 64}};
static const int64_t bench[][4] = {{1, 40, 128}, {512, 40, 128}, {4096, 40, 128}, {8192, 64, 128}};

const OpsDef ops_rope = {
    .name = "rope",
    OPS_ARGS(SolRope, "TxHxD"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    .slack = 4,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("rope", kernel_names),
};
