// y = exp(x - max) / sum(exp(x - max)) by rows, and the parts that log_softmax also uses
#include "ops/softmax.h"

#include <math.h>

#include "base/error.h"
#include "ops/chunks.h"
#include "ops/cpu.h"
#include "ops/ends.h"
#include "ops/narrow.h"
#include "ops/parts.h"

const char *const softmax_kernels[SOFTMAX_KERNELS] = {
#define ROW(id, name, ...) "sol_softmax_" name,
#include "ops/softmax_kernels.def"
};

enum { SPREAD_SHARED = 208 << 10 }; // bytes of a row that a block has at most
const uint32_t softmax_shared[SOFTMAX_KERNELS] = {
#define ROW(id, name, shared, ...) shared,
#include "ops/softmax_kernels.def"
};

enum { OF_WIDEN = 1 };
// in: bytes of an element of x, 0: not by this rule, OF_WIDEN: by widen_plan; chunks 0: any number; apart: x and y may be aligned differently.
typedef struct Variant {
  int in, threads, chunks, rows, cluster;
  bool apart;
} Variant;
static const Variant variants[SOFTMAX_KERNELS] = {
#define ROW(id, name, shared, ...) {__VA_ARGS__},
#include "ops/softmax_kernels.def"
};

const int64_t softmax_shapes[SOFTMAX_SHAPES][4] = {
    {1, 1},     {5, 2},      {3, 3},      {70, 7},     {33, 31},   {65, 64},   {66, 128},  {34, 250},
    {37, 75},   {131, 14},   {300, 101},  {9, 512},    {6, 770},   {5, 1024},  {3, 1023},  {3, 2048},
    {2, 3001},  {4, 4096},   {2, 5125},   {2, 8191},   {1, 12345}, {2, 16384}, {1, 32768}, {1, 65536},
    {1, 70001}, {1, 131072}, {1, 200003}, {1, 300001}, {0, 64},    {1003, 1},  {131, 2},   {67, 4},
};

static SolDtype out_of(const SolSoftmax *a) {
  return ops_or(a->out_dtype, a->dtype);
}

bool softmax_make(const OpsCase *c, void *args) {
  SolSoftmax *a = args;
  *a = (SolSoftmax){OPS_MATRIX_CASE(c)};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + (c->pad == 3 ? 5 : c->pad);
  return true;
}

int softmax_views(const void *args, OpsView *v) {
  const SolSoftmax *a = args;
  v[0] = OPS_VIEW(SolSoftmax, y, out_of(a), OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride,
                  .alias = 2);
  v[1] = OPS_VIEW(SolSoftmax, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  return 2;
}

SolStatus softmax_check(const void *args, SolError *err) {
  const SolSoftmax *a = args;
  return ops_check_reals(a->dtype, out_of(a), err);
}

void softmax_cost(const void *args, SolOpArgs *op) {
  const SolSoftmax *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a)};
}

void softmax_reference_row(const double *x, int64_t n, double *top, double *sum) {
  *top = -INFINITY, *sum = 0;
  for (int64_t i = 0; i < n; i++) *top = fmax(*top, x[i]);
  for (int64_t i = 0; i < n; i++) *sum += exp(x[i] - *top);
}

// exp(x) for x up to 0, to about one unit in the last place; 0 where that is below the smallest normal
// number. Written so that the compiler vectorises loops over it; NaN stays NaN.
static inline float exp_below(float x) {
  const float rounder = 0x1.8p23f;
  float held = x < -87.0f ? -87.0f : x;
  union {
    float f;
    uint32_t u;
  } whole = {held * 1.44269504f + rounder}, scale;
  float k = whole.f - rounder, r = held - k * 0.693145752f;
  r -= k * 1.42860677e-6f;
  float p = 1.0f / 720 + r * (1.0f / 5040);
  p = 1.0f / 120 + r * p;
  p = 1.0f / 24 + r * p;
  p = 1.0f / 6 + r * p;
  p = 1 + r * (1 + r * (0.5f + r * p));
  scale.u = (whole.u + 127) << 23;
  return x < -87.0f ? 0 : p * scale.f;
}

static float row_top(const SolSoftmax *a, int64_t start) {
  float top = -INFINITY, f[CPU_CHUNK];
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) top = f[i] > top ? f[i] : top;
  }
  return top;
}

static double row_sum(const SolSoftmax *a, int64_t start, float top) {
  enum { LANES = 16 };
  double sum = 0;
  float f[CPU_CHUNK];
  CPU_CHUNKS(at, c, a->n) {
    float part[LANES] = {0};
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = 0; i < c; i++) f[i] = exp_below(f[i] - top);
    for (int64_t i = c; i < (c + LANES - 1) / LANES * LANES; i++) f[i] = 0;
    for (int64_t i = 0; i < c; i += LANES)
      for (int j = 0; j < LANES; j++) part[j] += f[i + j];
    for (int j = 0; j < LANES; j++) sum += (double)part[j];
  }
  return sum;
}

static void cpu_row(const SolSoftmax *a, int64_t from, int64_t to, bool log_of) {
  float top = row_top(a, from), f[CPU_CHUNK];
  double sum = row_sum(a, from, top);
  float less = (float)log(sum), by = (float)(1 / sum);
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, from + at, c, f);
    if (log_of)
      for (int64_t i = 0; i < c; i++) f[i] = (f[i] - top) - less;
    else
      for (int64_t i = 0; i < c; i++) f[i] = exp_below(f[i] - top) * by;
    cpu_store(out_of(a), a->y, to + at, c, f);
  }
}

typedef struct Job {
  const SolSoftmax *a;
  bool log;
} Job;

static void cpu_rows(const void *arg, int64_t begin, int64_t end) {
  const Job *job = arg;
  const SolSoftmax *a = job->a;
  int64_t xs = ops_stride(a->x_stride, a->n), ys = ops_stride(a->y_stride, a->n);
  for (int64_t row = begin; row < end; row++) cpu_row(a, row * xs, row * ys, job->log);
}

SolStatus softmax_cpu(SolContext *ctx, const SolSoftmax *a, bool log_of) {
  Job job = {a, log_of};
  cpu_parallel(ctx, a->m, a->m * a->n, cpu_rows, &job);
  return SOL_OK;
}

// GPU
// Whether in every row the chunks of y start at multiples of 16 bytes where those of x do.
static bool same_alignment(const SolSoftmax *a, int64_t xs, int64_t ys, int in, int out) {
  uint64_t x = (uintptr_t)a->x, y = (uintptr_t)a->y, xb = (uint64_t)(xs * in), yb = (uint64_t)(ys * out);
  if (in == out) return ((x ^ y) & 15) == 0 && ((xb ^ yb) & 15) == 0;
  uint64_t chunk = in < out ? 16 : 8; // of y
  return ((x | xb) & 15) == 0 && ((y | yb) & (chunk - 1)) == 0;
}

// alike: x and y are aligned alike in every row.
static int pick(SolContext *ctx, const OpsDef *def, int in, int64_t chunks, bool alike) {
  for (int i = 0; i < SOFTMAX_KERNELS; i++) {
    const Variant *v = &variants[i];
    if (v->in != in || (!v->apart && !alike)) continue;
    bool spread = v->chunks || v->cluster == 1 || chunks >= (int64_t)v->threads * v->cluster;
    bool holds = !v->chunks || (int64_t)v->threads * v->chunks * v->cluster >= chunks;
    if (holds && spread && ops_has_kernel(ctx, def, i)) return i;
  }
  return 0; // nothing could be loaded: ops_launch says why
}

// How many rows ahead a block prefetches: about 5 MB, in whole blocks, where there is more data than that and
// a block has enough of it. Several rows of a block are prefetched as one range, so they must be dense.
static uint64_t rows_ahead(const SoftmaxParams *p, int in, int rows) {
  enum { MUCH = 8 << 20, AHEAD = 5 << 20, PIECE = 2048 };
  int64_t bytes = p->n * in;
  if ((int64_t)p->m * bytes < MUCH || bytes * rows < PIECE || (rows > 1 && p->x_stride != bytes)) return 0;
  return (uint64_t)(AHEAD / (bytes * rows) * rows);
}

// Rows whose sums are added up as if each word had a lane of its own: the few without shared memory. False: they are more.
static bool direct_plan(const SolContext *ctx, SoftmaxParams *p, int64_t words, OpsLaunch *l) {
  enum { WARP = 5, LANES = 1024 }; // of an SM: one wave
  int64_t bits = 0;
  while (bits < WARP && 1 << bits < words) bits++;
  if (p->loss || p->x_kind != p->y_kind || words > 2 << WARP || p->m << bits > LANES * (uint64_t)ctx->sms)
    return false;
  l->kernel = p->x_kind == KIND_FP32   ? SOFTMAX_DIRECT_FP32
              : p->x_kind == KIND_FP16 ? SOFTMAX_DIRECT_FP16
                                       : SOFTMAX_DIRECT_BF16;
  p->lane_bits = (int32_t)bits, p->beside.each = (int32_t)ops_ceil_div(words, 1 << bits);
  l->block = SOFTMAX_DIRECT_THREADS, l->shared = 0;
  ops_grid(l->grid, p->m << bits, SOFTMAX_DIRECT_THREADS);
  return true;
}

// Dense rows of which 16 bytes hold several. False: they are not such.
static bool packed_plan(SoftmaxParams *p, int in, OpsLaunch *l) {
  int64_t bytes = p->n * in;
  bool dense = p->x_stride == bytes && p->y_stride == bytes;
  if (p->loss || p->x_kind != p->y_kind || !dense || bytes < 1 || bytes > 8 || 16 % bytes) return false;
  if (!elementwise_aligned(p->x, 0, 16) || !elementwise_aligned(p->y, 0, 16)) return false;
  l->kernel = in == 4                  ? SOFTMAX_DIRECT_FP32
              : p->x_kind == KIND_FP16 ? SOFTMAX_DIRECT_FP16
                                       : SOFTMAX_DIRECT_BF16;
  p->beside.each = 0;
  l->block = SOFTMAX_DIRECT_THREADS;
  ops_grid(l->grid, (p->m * (uint64_t)bytes + 15) / 16, SOFTMAX_DIRECT_THREADS);
  return true;
}

// Dense rows of one chunk or two, x and y of any types. Where they are few, a thread has one.
static bool even_plan(const SolContext *ctx, SoftmaxParams *p, int in, int out, OpsLaunch *l) {
  enum { CHUNK = 16, MANY = 4, BLOCKS = 8 }; // BLOCKS: of an SM
  int64_t bytes = p->n * in;
  if (p->loss || (bytes != CHUNK && bytes != 2 * CHUNK) || p->x_stride != bytes || p->y_stride != p->n * out)
    return false;
  if (!elementwise_aligned(p->x, 0, CHUNK) || !elementwise_aligned(p->y, 0, CHUNK)) return false;
  p->lane_bits = bytes > CHUNK;
  uint64_t chunks = p->m << p->lane_bits, many = MANY * SOFTMAX_DIRECT_THREADS,
           each = chunks < many * BLOCKS * (uint64_t)ctx->sms ? 1 : MANY;
  l->kernel = in == 4                  ? SOFTMAX_DIRECT_FP32
              : p->x_kind == KIND_FP16 ? SOFTMAX_DIRECT_FP16
                                       : SOFTMAX_DIRECT_BF16;
  p->beside.each = (int32_t)(SOFTMAX_EVEN + each);
  l->block = SOFTMAX_DIRECT_THREADS;
  ops_grid(l->grid, (chunks + each - 1) / each, SOFTMAX_DIRECT_THREADS);
  return true;
}

static bool short_plan(SolContext *ctx, SoftmaxParams *p, int in, int out, OpsLaunch *l) {
  NarrowTensor t[NARROW_TENSORS] = {
      [NARROW_X] = {p->x, p->x_stride, in, false}, [NARROW_Y] = {p->y, p->y_stride, out, false}};
  if (!narrow_holds(p->n, NARROW_SOFTMAX)) return false;
  if (in == 4 && direct_plan(ctx, p, p->n, l)) return true;
  l->kernel = p->x_kind == KIND_FP32   ? SOFTMAX_NARROW_FP32
              : p->x_kind == KIND_FP16 ? SOFTMAX_NARROW_FP16
                                       : SOFTMAX_NARROW_BF16;
  narrow_plan(ctx, t, p->m, p->n, &p->narrow, l);
  return true;
}

// Short rows that go through registers faster than through shared memory: those of whole chunks on 16 bytes, and those that are apart.
static bool in_rounds(const SoftmaxParams *p, int in) {
  bool whole = p->n * in % 16 == 0 && elementwise_aligned(p->x, p->x_stride, 16);
  return narrow_holds(p->n, NARROW_SOFTMAX) && (whole || p->x_stride != p->n * in);
}

// Short rows in registers, some lanes a row: chunks are the buffer's, so a row off its alignment has parts of one more.
// Of the kernels the one that leaves the fewest places empty, and then the one with the most chunks a lane. False: rows are
// too long.
static bool rounds_plan(SoftmaxParams *p, int in, OpsLaunch *l) {
  enum { SIZES = 4, LANES = 32 };
  static const int rounds[SIZES] = {5, 3, 2, 1};
#define OF_KIND(kind)                                                                                        \
  {                                                                                                          \
    SOFTMAX_ROUNDS_##kind##_5, SOFTMAX_ROUNDS_##kind##_3, SOFTMAX_ROUNDS_##kind##_2,                         \
        SOFTMAX_ROUNDS_##kind##_1                                                                            \
  }
  static const int kernels[3][SIZES] = {OF_KIND(FP32), OF_KIND(FP16), OF_KIND(BF16)};
  int64_t chunks = chunks_of(p->x, p->x_stride, p->n, in), least = INT64_MAX;
  for (int i = 0; i < SIZES && in_rounds(p, in); i++) {
    int64_t threads = chunks_threads(chunks, rounds[i]);
    if (threads > LANES || threads * rounds[i] >= least) continue;
    least = threads * rounds[i];
    p->lane_bits = chunks_launch(threads, (int64_t)p->m, l);
    l->kernel = kernels[p->x_kind == KIND_FP32 ? 0 : p->x_kind == KIND_FP16 ? 1 : 2][i];
    p->ahead = rows_ahead(p, in, SOFTMAX_ROUNDS_THREADS >> p->lane_bits);
  }
  return least != INT64_MAX;
}

// Short rows side by side, of those lengths that other kernels take longer for (kernels/softmax/README.md): as few lanes a row as have no more than BESIDE_MOST words each; of softmax fewer, and of its fp32 8 (README.md). A warp has as many
// rows as fill its shared memory, where there are many, and then begin and end with a chunk; how many they are does not change results. alike: as in pick. False: they are not such.
static bool beside_plan(const SolContext *ctx, SoftmaxParams *p, int in, bool alike, OpsLaunch *l) {
  enum { BLOCKS = 4 };                                    // of an SM, at least, before a warp has more rows
  enum { LANES = 3, MORE_LANES = 4, FEW = 8, SOME = 14 }; // powers of two; words of a lane
  const int most = p->loss ? BESIDE_MOST : in == 4 ? FEW : SOME;
  int64_t bytes = p->n * in, words = in == 4 ? p->n : p->n / 2 + 1, bits = 0;
  bool short_row = narrow_holds(p->n, NARROW_SOFTMAX),
       whole = bytes % 16 == 0 && elementwise_aligned(p->x, p->x_stride, 16);
  bool dense = p->x_stride == bytes && (!p->y || p->y_stride == bytes);
  if (p->n == 0 || !alike || !dense || p->x_kind != p->y_kind) return false;
  if (whole && (short_row || !p->loss)) return false;
  if (in == 4 && short_row && !p->loss) return false;
  while (words > most << bits) bits++;
  if (bits > (in == 2 || p->loss ? LANES : MORE_LANES) || (in == 2 && words > 64)) return false;
  if (direct_plan(ctx, p, words, l)) return true;
  int64_t turn = 32 >> bits, unit = turn < 16 / in ? 16 / in : turn, rows = SOFTMAX_BESIDE_BYTES / bytes;
  int64_t few = (int64_t)p->m / (SOFTMAX_BESIDE_WARPS * BLOCKS * (int64_t)ctx->sms);
  if (rows > few) rows = few;
  rows = rows >= unit ? rows / unit * unit : rows >= turn ? rows / turn * turn : turn;
  p->lane_bits = (int32_t)bits;
  p->beside = (BesideShape){.rows = (int32_t)rows,
                            .bytes = (int32_t)((rows * bytes + 30) / 16 * 16),
                            .each = (int32_t)ops_ceil_div(words, 1 << bits)};
  static const int kernels[3][2] = {{SOFTMAX_BESIDE_FP32, SOFTMAX_BESIDE_MORE_FP32},
                                    {SOFTMAX_BESIDE_FP16, SOFTMAX_BESIDE_MORE_FP16},
                                    {SOFTMAX_BESIDE_BF16, SOFTMAX_BESIDE_MORE_BF16}};
  l->kernel = kernels[in == 4 ? 0 : p->x_kind == KIND_FP16 ? 1 : 2][p->beside.each > FEW];
  l->block = 32 * SOFTMAX_BESIDE_WARPS, l->shared = (uint32_t)(SOFTMAX_BESIDE_WARPS * p->beside.bytes);
  ops_grid(l->grid, (uint64_t)ops_ceil_div((int64_t)p->m, rows * SOFTMAX_BESIDE_WARPS), 1);
  p->ahead = rows_ahead(p, in, SOFTMAX_BESIDE_WARPS * (int)rows);
  return true;
}

// Rows in registers whose x and y are not aligned alike, many chunks a thread: what a thread does beside its chunks counts. False: rows are too long.
static bool apart_plan(SoftmaxParams *p, int in, OpsLaunch *l) {
  int64_t threads = chunks_threads(chunks_of(p->x, p->x_stride, p->n, in), in == 4 ? 6 : 4);
  if (threads > SOFTMAX_APART_THREADS) return false;
  p->lane_bits = chunks_launch(threads, (int64_t)p->m, l);
  l->kernel = in == 4 ? SOFTMAX_APART_4_6 : SOFTMAX_APART_2_4;
  return true;
}

// Rows in shared memory whose x and y are not aligned alike. Blocks are small, 128 threads with up to 8 chunks each, for many of them on an SM hide what one waits for, and a
// cluster has as many of them as fit the row; longer rows take more of each. False: rows are too long.
static bool spread_plan(SolContext *ctx, const OpsDef *def, SoftmaxParams *p, int in, OpsLaunch *l) {
  enum { EACH = 8, MORE = 12, FEWEST = 128 };
  int64_t chunks = p->n * in / 16, most = ctx->cc >= 90 ? 16 : 1, threads = FEWEST;
  int64_t blocks = ops_ceil_div(chunks, FEWEST * EACH);
  if (blocks > most) blocks = most;
  while (threads < SOFTMAX_SPREAD_THREADS && chunks > blocks * threads * MORE) threads *= 2;
  int64_t shared = ops_ceil_div(chunks, blocks * threads) * threads * 16;
  l->kernel = in == 4 ? SOFTMAX_SPREAD_4 : SOFTMAX_SPREAD_2;
  if (shared > SPREAD_SHARED || !ops_has_kernel(ctx, def, l->kernel)) return false;
  l->block = (uint32_t)threads, l->cluster = (uint32_t)blocks, l->shared = (uint32_t)shared;
  ops_grid(l->grid, p->m * (uint64_t)blocks, 1);
  p->ahead = rows_ahead(p, in, 1);
  return true;
}

// Rows of `least` bytes and more, read for their sums and again out of L2. False: they are shorter, or too long, or the output may not be used for posts.
static bool relay_plan(SolContext *ctx, const OpsDef *def, SoftmaxParams *p, int in, int out, int64_t least,
                       OpsLaunch *l) {
  enum { LAG = 8 << 20, FEWEST = 2 }; // bytes from what is summed back to what is written; parts
  int64_t bytes = p->n * in, chunks = bytes / 16, parts = ops_ceil_div(chunks, SOFTMAX_RELAY_CHUNKS);
  if (parts < FEWEST) parts = FEWEST;
  l->kernel = in == 4 ? SOFTMAX_RELAY_4 : SOFTMAX_RELAY_2;
  if (bytes < least || parts > SOFTMAX_RELAY_PARTS || !p->y || p->y == p->x) return false;
  if (!ops_has_kernel(ctx, def, l->kernel)) return false;
  p->parts = parts_shape(p->y, (int64_t)p->m, p->n, in, out, parts); // for its sign
  p->parts.parts = (uint32_t)parts;
  p->parts.length = ops_ceil_div(chunks, parts * SOFTMAX_RELAY_THREADS) * SOFTMAX_RELAY_THREADS;
  p->parts.front = (int32_t)ops_ceil_div(16 + 16 * parts, 16 / in * out);
  p->lag = parts_lag(p->m, ops_ceil_div(LAG, bytes));
  l->block = SOFTMAX_RELAY_THREADS, l->shared = (uint32_t)p->parts.length * 16;
  ops_grid(l->grid, (p->m + p->lag) * 2 * (uint64_t)parts, 1);
  return true;
}

static void variant_launch(SoftmaxParams *p, int in, int kernel, OpsLaunch *l) {
  const Variant *v = &variants[kernel];
  uint64_t rows = (uint64_t)v->rows;
  l->kernel = kernel, l->block = (uint32_t)(v->threads * v->rows), l->cluster = (uint32_t)v->cluster;
  ops_grid(l->grid, (p->m + rows - 1) / rows * (uint64_t)v->cluster, 1);
  p->ahead = rows_ahead(p, in, v->rows);
}

// Rows of 16-bit elements that become fp32, by single elements in registers: the first of those from a boundary of 128 bytes on. False: they are not such, or too long.
static bool widen_plan(SolContext *ctx, const OpsDef *def, SoftmaxParams *p, int in, int out, bool alike,
                       OpsLaunch *l) {
  enum { BEFORE = 128 / 4 - 1, EACH = 8, LONG = 4096 }; // whole chunks, aligned: from so many elements on
  if (alike && p->n < LONG) return false;
  for (int i = 0; i < SOFTMAX_KERNELS && !p->loss && in < out; i++) {
    const Variant *v = &variants[i];
    if (v->in != OF_WIDEN || v->threads * v->chunks * EACH < p->n + BEFORE || !ops_has_kernel(ctx, def, i))
      continue;
    variant_launch(p, in, i, l);
    return true;
  }
  return false;
}

// Rows that are in one of `variants`: there is one for any length.
static void pick_plan(SolContext *ctx, const OpsDef *def, SoftmaxParams *p, int in, bool alike,
                      OpsLaunch *l) {
  int64_t chunks = p->n / (16 / in);
  int kernel = pick(ctx, def, in, chunks, alike);
  const Variant *v = &variants[kernel];
  if (softmax_shared[kernel])
    l->shared = (uint32_t)(ops_ceil_div(chunks, v->threads * v->cluster) * v->threads * 16);
  variant_launch(p, in, kernel, l);
}

// The launch rule: the first kernel that has such rows. alike: x and y are aligned alike in every row.
static void plan(SolContext *ctx, const OpsDef *def, SoftmaxParams *p, int in, int out, bool alike,
                 OpsLaunch *l) {
  enum { BEYOND = 1 << 20, WIDENED = 16 << 10 }; // bytes: other kernels are faster up to here
  int64_t least = in < out ? WIDENED : alike ? BEYOND : INT64_MAX;
  if (packed_plan(p, in, l) || even_plan(ctx, p, in, out, l) || beside_plan(ctx, p, in, alike, l) ||
      (in == out && alike && rounds_plan(p, in, l)))
    return;
  if (relay_plan(ctx, def, p, in, out, least, l) || short_plan(ctx, p, in, out, l)) return;
  if (widen_plan(ctx, def, p, in, out, alike, l)) return;
  if (!alike &&
      (apart_plan(p, in, l) || spread_plan(ctx, def, p, in, l) || relay_plan(ctx, def, p, in, out, 0, l)))
    return;
  pick_plan(ctx, def, p, in, alike, l);
}

SolStatus softmax_launch(SolContext *ctx, const OpsDef *def, const SolSoftmax *a, SoftmaxParams p,
                         SolStream stream) {
  int64_t xs = ops_stride(a->x_stride, a->n), ys = ops_stride(a->y_stride, a->n);
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  bool alike = !a->y || same_alignment(a, xs, ys, in, out);
  p.y = a->y, p.x = a->x;
  p.m = (uint64_t)a->m, p.n = a->n;
  p.y_stride = ys * out, p.x_stride = xs * in;
  p.x_kind = ops_kind(a->dtype), p.y_kind = ops_kind(out_of(a));
  p.wide = alike;
  p.ends = ends_bytes(a->y, a->x, p.y_stride, a->n * out);
  OpsLaunch l = {.cluster = 1, .early = true, .params = &p, .bytes = sizeof p};
  plan(ctx, def, &p, in, out, alike, &l);
  return ops_launch(ctx, def, &l, stream);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  return softmax_cpu(ctx, args, false);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  return softmax_launch(ctx, &ops_softmax, args, (SoftmaxParams){.scale = 1}, stream);
}

static void reference(const void *args, double *const *at) {
  const SolSoftmax *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    const double *x = at[1] + row * a->n;
    double top, sum;
    softmax_reference_row(x, a->n, &top, &sum);
    for (int64_t i = 0; i < a->n; i++) at[0][row * a->n + i] = exp(x[i] - top) / sum;
  }
}

const OpsDef ops_softmax = {.name = "softmax", SOFTMAX_OP, .slack = 16};
