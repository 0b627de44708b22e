#include "ops/norm.h"

#include <math.h>

#include "base/error.h"
#include "emu/isa/num_cvt.h"
#include "emu/isa/num_half.h"
#include "ops/norm_narrow.h"
#include "ops/parts.h"

// For rows of up to `chunks` chunks of 16 bytes: the kernel (as an offset from the type's first), chunks per
// thread, threads per block (0: as many as the row needs), and blocks per row. Chosen by measurement on an
// H200 (kernels/rmsnorm/README.md), never by the number of rows, so that the result of a row does not depend
// on it.
typedef struct Rule {
  int64_t chunks;
  int kernel, held, threads, cluster;
} Rule;

#define SHORT_ROWS                                                                                           \
  {4, NORM_f_lanes2, 2, 2, 1}, {8, NORM_f_lanes4, 2, 4, 1}, {16, NORM_f_lanes8, 2, 8, 1},                    \
      {32, NORM_f_lanes16, 2, 16, 1}, {                                                                      \
    64, NORM_f_lanes32, 2, 32, 1                                                                             \
  }
// last: threads per block for the longest rows, of which a block has up to HELD_CHUNKS.
#define WIDE_ROWS(last)                                                                                      \
  {8192, NORM_f_big, 8, 256, 4}, {16384, NORM_f_big, 8, 256, 8}, {32768, NORM_f_big, 8, 256, 16},            \
      {65536, NORM_f_big, 65536 / 16 / (last), last, 16}, {                                                  \
    16 * HELD_CHUNKS, NORM_f_big, HELD_CHUNKS / (last), last, 16                                             \
  }
enum { HELD_CHUNKS = 13 << 10, HELD_PAIRS = 6 << 10 }; // 208 and 192 KB
_Static_assert(NORM_LAYER_THREADS == 256, "layernorm uses one block size for wide rows");
// Aligned rows of whole chunks.
static const Rule rms_rules[] = {SHORT_ROWS,
                                 {128, NORM_f_warp, 4, 32, 1},
                                 {1024, NORM_f_block_late, 2, 0, 1},
                                 {2048, NORM_f_block4_late, 4, 0, 1},
                                 {4096, NORM_f_big, 8, 256, 2},
                                 WIDE_ROWS(512)};
static const Rule fp8_rules[] = {SHORT_ROWS, // as rms_rules, but four chunks a thread pay earlier
                                 {128, NORM_f_warp, 4, 32, 1},
                                 {256, NORM_f_block_late, 2, 0, 1},
                                 {2048, NORM_f_block4_late, 4, 0, 1},
                                 {4096, NORM_f_big, 8, 256, 2},
                                 WIDE_ROWS(512)};
static const Rule add_rules[] = {SHORT_ROWS,
                                 {1024, NORM_f_block_late, 1, 0, 1},
                                 {2048, NORM_f_big, 4, 256, 2},
                                 {4096, NORM_f_big, 4, 256, 4},
                                 {8192, NORM_f_big, 4, 256, 8},
                                 {16384, NORM_f_big, 4, 256, 16},
                                 {32768, NORM_f_big, 4, 512, 16},
                                 {65536, NORM_f_big, 4, 1024, 16},
                                 {16 * HELD_PAIRS, NORM_f_big, NORM_LAPS, 1024, 16}};
static const Rule add_few = {1024, NORM_f_block_early, 2, 0, 1}; // the same sums as with one chunk a thread
static const Rule embed_rules[] = {SHORT_ROWS,
                                   {128, NORM_f_warp, 4, 32, 1},
                                   {512, NORM_f_block_late, 2, 0, 1},
                                   {2048, NORM_f_block4_late, 4, 0, 1},
                                   {4096, NORM_f_big, 8, 512, 1},
                                   WIDE_ROWS(512)};
static const Rule layer_rules[] = {SHORT_ROWS, // of 16-bit types
                                   {128, NORM_f_warp, 4, 32, 1},
                                   {512, NORM_f_block_early, 2, 0, 1},
                                   {1024, NORM_f_block4_early, 4, 0, 1},
                                   {2048, NORM_f_big, 8, 256, 1},
                                   {4096, NORM_f_big, 8, 256, 2},
                                   WIDE_ROWS(NORM_LAYER_THREADS)};
static const Rule layer_rules_fp32[] = {SHORT_ROWS,
                                        {128, NORM_f_warp, 4, 32, 1},
                                        {512, NORM_f_block_early, 2, 0, 1},
                                        {2048, NORM_f_block4_late, 4, 0, 1},
                                        {4096, NORM_f_big, 8, 256, 2},
                                        WIDE_ROWS(NORM_LAYER_THREADS)};
// Weights or an output of another type: rmsnorm, and 16-bit rows of layernorm.
static const Rule mixed_rules[] = {SHORT_ROWS, {128, NORM_f_warp, 4, 32, 1}};
static const Rule layer_mixed_rules[] = {SHORT_ROWS, {1024, NORM_f_block_early, 2, 0, 1}};
static const Rule any_rules[] = {
    {1536, NORM_f_any3, 3, 0, 1}, {2048, NORM_f_any4, 4, 0, 1},  {4096, NORM_f_any4, 4, 0, 2},
    {8192, NORM_f_any4, 4, 0, 4}, {16384, NORM_f_any4, 4, 0, 8}, {32768, NORM_f_any4, 4, 0, 16},
};
static const Rule unaligned_rules[] = {
    {3 * NORM_STRIPED_THREADS, NORM_f_striped3, 3, 0, 1},
    {6 * NORM_STRIPED_THREADS, NORM_f_striped3, 3, 0, 2},
    {12 * NORM_STRIPED_THREADS, NORM_f_striped3, 3, 0, 4},
    {24 * NORM_STRIPED_THREADS, NORM_f_striped3, 3, 0, 8},
    {48 * NORM_STRIPED_THREADS, NORM_f_striped3, 3, 0, 16},
};
// To fp8, unaligned rows; with a scale per block of columns, elements of 4 bytes and of 2.
#define ODD_ROWS(kernel, each, threads)                                                                      \
  {each * threads, kernel, each, 0, 1}, {2 * each * threads, kernel, each, 0, 2},                            \
      {4 * each * threads, kernel, each, 0, 4}, {8 * each * threads, kernel, each, 0, 8}, {                  \
    16 * each *threads, kernel, each, 0, 16                                                                  \
  }
static const Rule odd_rules[] = {{128, NORM_ODD_f_warp, 4, 32, 1}, ODD_ROWS(NORM_ODD_f_block, 4, 384)};
static const Rule odd_blocks4_rules[] = {{128, NORM_ODD_f_warp_blocks, 4, 32, 1},
                                         ODD_ROWS(NORM_ODD_f_block_blocks, 3, 448)};
static const Rule odd_blocks2_rules[] = {{128, NORM_ODD_f_warp_blocks, 4, 32, 1},
                                         ODD_ROWS(NORM_ODD_f_block_blocks, 3, 384)};

enum {
  PER_TYPE = NORM_h_lanes2,
  ODD_PER_TYPE = NORM_ODD_h_warp - NORM_ODD_f_warp,
  SHARING = 128,                // threads of a block with several rows
  BIG_BYTES = HELD_CHUNKS * 16, // the most shared memory of a block
  ADD_BYTES = 46 << 10,  // two inputs: the least, so that an SM holds four blocks and not five (measured)
  AHEAD_BYTES = 3 << 20, // how far ahead a kernel prefetches into L2; no gain for small tensors
  AHEAD_FROM = 8 << 20,
  SPLIT_CHUNKS = 512, // rows longer than this get several blocks,
  SPLIT_BLOCKS = 64,  // if those are no more than this in all
  TINY_CHUNKS = 1,    // shorter rows would leave most of the lanes that share them idle
  SPREAD_CLUSTER = 4, // rows that fewer blocks hold in registers are faster there;
  SPREAD_LAYER =
      2, // and of layernorm's to another type, whose vectors and words are many single accesses there
  LINE_BYTES = 128,
  LINED_BYTES = 1024 // output rows at least this long are written in whole cache lines
};
_Static_assert(NORM_KERNELS == 3 * PER_TYPE && NORM_ALL == 2 * NORM_KERNELS + 3 * ODD_PER_TYPE,
               "every type has the same kernels");

enum {
  SHARED_LANES = 0,
  SHARED_WARP = 0,
  SHARED_BLOCK = 0,
  SHARED_BLOCK4 = 0,
  SHARED_BIG = BIG_BYTES,
  SHARED_NARROW = NARROW_SHARED,
  SHARED_DIRECT = 0,
  SHARED_ANY = 0,
  SHARED_STRIPED = 0,
  SHARED_ROWS = NORM_ROWS_THREADS * NORM_ROWS_CHUNKS * NORM_ROWS_HELD * 16,
  SHARED_LOOP = 0,
  SHARED_SPREAD = 72 << 10, // of which three fit an SM
  SHARED_CLUSTERED = 72 << 10
};
enum {
  SPREAD_BYTES = SHARED_SPREAD - 1024
}; // that a block has of a row all over the GPU: more of them run at a time, or fewer are needed
#define NORM(T, name, how, number) SHARED_##how,
const uint32_t norm_shared[NORM_ALL] = {
#include "kernels/norm.def"
#define NORM(T, name, how, number) SHARED_##how, // to fp8
#include "kernels/norm.def"
};

#define NORM(T, name, how, number) SHARED_##how,
const uint32_t norm_embed_shared[NORM_KERNELS + NORM_EMBED_OWN] = {
#include "kernels/norm.def"
};

const int64_t norm_shapes[NORM_SHAPES][4] = {
    {1, 1},     {5, 2},     {3, 3},      {33, 31},    {9, 8},      {70, 16},    {19, 40},
    {7, 128},   {5, 256},   {600, 528},  {2, 769},    {3, 1023},   {5, 1024},   {4, 4096},
    {2, 5120},  {2, 5125},  {1, 8191},   {2, 8192},   {2, 16384},  {2, 20000},  {1, 32768},
    {2, 40001}, {1, 65536}, {1, 131072}, {1, 200001}, {1, 300000}, {1, 600003}, {0, 64},
};

static int bits_of(int64_t v) { // of the next power of two
  int bits = 0;
  while ((int64_t)1 << bits < v) bits++;
  return bits;
}

static bool on_16(const void *at, int64_t stride) {
  return ((uintptr_t)at | (uint64_t)stride) % 16 == 0;
}

// Whether all rows and vectors are aligned, so that a chunk is one access.
static bool by_vectors(const NormParams *p, int64_t per, int64_t out) {
  int64_t chunk = per * out < 16 ? per * out : 16;
  return on_16(p->x, p->x_stride) && on_16(p->residual, p->residual_stride) &&
         on_16(p->second, p->second_stride) && on_16(p->weight, 0) && on_16(p->bias, 0) &&
         ((uintptr_t)p->y | (uint64_t)p->y_stride) % (uint64_t)chunk == 0;
}

// Weights or an output of another type than the input, other than fp8.
static bool is_mixed(const NormCall *call, int kind) {
  return call->p.weight_kind != kind || (call->p.y_kind != kind && !call->fp8);
}

// Aligned whole chunks: the fast kernels take them. Several types: rmsnorm and layernorm, not to fp8 (norm_mixes in kernels/norm.cuh).
static bool is_fast(const NormCall *call, int kind, int64_t per, int64_t out) {
  const NormParams *p = &call->p;
  bool one_type = !is_mixed(call, kind) || (!call->fp8 && !p->residual && !p->ids);
  return one_type && p->weight && (p->bias || !call->layer) && p->n % per == 0 && by_vectors(p, per, out);
}

// Vectors on 16 bytes.
static bool has_vectors(const NormCall *call) {
  const NormParams *p = &call->p;
  return !call->fp8 && p->weight && on_16(p->weight, 0) && (!call->layer || (p->bias && on_16(p->bias, 0)));
}

// And of the input's type, and one input: rows in shared memory are then read and written by chunks.
static bool has_plain_vectors(const NormCall *call, int kind) {
  return !call->p.residual && call->p.weight_kind == kind && has_vectors(call);
}

// And one type throughout.
static bool is_plain(const NormCall *call, int kind) {
  return call->p.y_kind == kind && has_plain_vectors(call, kind);
}

// From how many blocks of a cluster on rows in registers are slower than in shared memory (measured).
static int spread_cluster(const NormCall *call, int kind) {
  return call->layer && call->p.y_kind != kind ? SPREAD_LAYER : SPREAD_CLUSTER;
}

// 16-bit rows whose words are not words of the output, which starts differently. Such rows are faster in shared
// memory, which holds them as they lie in the input, from so many bytes on that the blocks of an SM have enough
// under way.
static bool is_apart(const NormCall *call, int64_t in, int64_t out) {
  enum { LEAST = 16 << 10 };
  const NormParams *p = &call->p;
  return in == 2 && !p->residual && !p->ids && !call->fp8 && p->n * in >= LEAST &&
         (((intptr_t)p->x / in - (intptr_t)p->y / out) % 2 || (p->x_stride / in - p->y_stride / out) % 2);
}

// To fp8, unaligned rows whose input and output are aligned alike: whole chunks of both start at the same
// columns.
static bool is_odd(const NormCall *call, int kind, int64_t in, int64_t per) {
  const NormParams *p = &call->p;
  return call->fp8 && p->weight_kind == kind && p->weight && on_16(p->weight, 0) &&
         ((uintptr_t)p->x / (uintptr_t)in - (uintptr_t)p->y) % (uintptr_t)per == 0 &&
         (p->x_stride / in - p->y_stride) % per == 0;
}

static const Rule *find_rule(const Rule *rule, size_t count, int64_t chunks, bool clusters) {
  for (const Rule *end = rule + count; rule < end; rule++)
    if (chunks <= rule->chunks)
      return clusters || (rule->cluster == 1 && rule->kernel != NORM_f_big) ? rule : NULL;
  return NULL;
}

#define FIND(rules) find_rule(rules, SOL_COUNT(rules), chunks, clusters)
static const Rule *fast_rule(const SolContext *ctx, const NormCall *call, int64_t in, int64_t chunks,
                             bool clusters) {
  const NormParams *p = &call->p;
  bool mixed = is_mixed(call, ops_kind(call->dtype));
  if (mixed && !call->layer) return FIND(mixed_rules);
  if (mixed && in == 2) return FIND(layer_mixed_rules);
  if (mixed) clusters = false; // not "big"
  if (p->residual) {
    const Rule *rule = FIND(add_rules);
    uint64_t few = (uint64_t)ctx->sms * (in == 2 && chunks <= SPLIT_CHUNKS ? 4 : 1);
    return rule && rule->kernel == NORM_f_block_late && p->m <= few ? &add_few : rule;
  }
  if (p->ids) return FIND(embed_rules);
  if (call->layer) return in == 4 ? FIND(layer_rules_fp32) : FIND(layer_rules);
  return call->fp8 ? FIND(fp8_rules) : FIND(rms_rules);
}

static const Rule *odd_rule(const NormParams *p, int64_t in, int64_t chunks) {
  const bool clusters = true;
  if (p->scaling != NORM_SCALE_BLOCK) return FIND(odd_rules);
  return in == 4 ? FIND(odd_blocks4_rules) : FIND(odd_blocks2_rules);
}

// Sets threads per row, rows per block and blocks per row; returns the rows. least: the fewest threads per
// row.
static uint64_t set_threads(const Rule *rule, int64_t chunks, int64_t least, NormParams *p, OpsLaunch *l) {
  int64_t each = (int64_t)rule->held * rule->cluster, need = (chunks + each - 1) / each,
          threads = rule->threads;
  if (need < least) need = least;
  bool few = need < 32 && rule->kernel != NORM_f_striped3; // a striped kernel's warps have whole lines
  if (!threads) threads = few ? (int64_t)1 << bits_of(need) : (need + 31) / 32 * 32;
  if (rule->cluster > 1 && threads < 64) threads = 64; // sums of a cluster go through shared memory
  bool lanes = rule->kernel <= NORM_f_warp ||
               (rule->kernel >= NORM_f_any3 && rule->kernel <= NORM_f_striped3) ||
               (rule->kernel >= NORM_ODD_f_warp && rule->threads);
  bool share = lanes && rule->cluster == 1 && threads < SHARING && (threads & (threads - 1)) == 0;
  int rows = share ? SHARING / (int)threads : 1;
  if (rule->kernel == NORM_f_big) {
    int64_t lap = threads * rule->cluster, laps = (chunks + lap - 1) / lap;
    p->span = (int32_t)((chunks + rule->cluster - 1) / rule->cluster);
    p->aside = (int32_t)(laps * threads);
    if (p->residual) laps *= 2;
    l->shared = (uint32_t)(laps * threads * 16);
    if (p->residual && l->shared < ADD_BYTES) l->shared = ADD_BYTES;
  }
  p->threads = (int32_t)threads;
  p->thread_bits = share ? bits_of(threads) : 10;
  p->row_bits = bits_of(rows);
  p->cluster_bits = bits_of(rule->cluster);
  p->warp_lanes = 1 << bits_of((threads + 31) / 32);
  l->block = (uint32_t)(threads * rows);
  l->cluster = (uint32_t)rule->cluster;
  return (uint64_t)rows;
}

// In place, no block may write a row that another block still reads.
static bool in_place(const NormParams *p) {
  return p->y == p->x || p->y == p->residual ||
         (p->second && (p->second == p->x || p->second == p->residual));
}

// How many rows ahead a block prefetches into L2: measured. It does not change results.
static int32_t rows_ahead(const NormParams *p, int64_t row_bytes, int kernel) {
  uint64_t from = p->residual ? 2 * AHEAD_FROM : AHEAD_FROM;
  if (p->m < from && p->m * (uint64_t)row_bytes < from) return 0;
  int64_t chunks = row_bytes / 16, bytes = 2 * AHEAD_BYTES;
  if (p->residual)
    bytes = chunks <= 1024 ? AHEAD_BYTES : 2 << 20;
  else if (kernel == NORM_f_big || kernel >= NORM_ODD_f_warp)
    bytes = AHEAD_BYTES;
  int64_t rows = bytes / row_bytes;
  return rows || !bytes ? (int32_t)rows : 1;
}

// Short rows, planned already as others (plan_narrow), without shared memory: few rows. Whole rows of a few elements in a lane take
// accesses that lie apart, so they are to be short; others are a few warps of an SM (measured).
static bool plan_direct(const SolContext *ctx, NormCall *call, OpsLaunch *l) {
  enum { FEW = 16, LANES = 32, PARTS = 4 };
  enum { FEW_BYTES = 14 << 10, THREADS = 256 }; // of an SM
  NormParams *p = &call->p;
  int64_t in = ops_size(call->dtype);
  uint64_t lanes = p->n <= FEW ? 1 : (uint64_t)PARTS << p->narrow.lane_bits;
  bool one_type = p->weight_kind == ops_kind(call->dtype) && (call->fp8 || p->y_kind == p->weight_kind);
  if (!one_type) return false;
  if (p->n <= FEW ? (double)p->m * (double)(p->n * p->n * in) > (double)ctx->sms * FEW_BYTES
                  : p->m * lanes > (uint64_t)ctx->sms * THREADS || p->ids || lanes > LANES)
    return false;
  p->how.steps = (int32_t)ops_ceil_div(ops_ceil_div(p->n * in, 4), (int64_t)lanes);
  if (p->n > FEW && p->how.steps > NORM_DIRECT_STEPS) return false;
  int type = call->dtype == SOL_FP32 ? 0 : call->dtype == SOL_FP16 ? 1 : 2;
  l->kernel = call->fp8 + type * PER_TYPE + NORM_f_direct;
  l->block = NARROW_THREADS, l->shared = 0, l->cluster = 1;
  ops_grid(l->grid, p->m * lanes, NARROW_THREADS);
  return true;
}

// Short rows; false: they are too long.
static bool plan_narrow(const SolContext *ctx, NormCall *call, OpsLaunch *l) {
  NormParams *p = &call->p;
  int kind = ops_kind(call->dtype), in = ops_size(call->dtype);
  int out = p->y_kind == KIND_FP8 ? 1 : p->y_kind == KIND_FP32 ? 4 : 2;
  NarrowTensor t[NARROW_TENSORS] = {[NARROW_X] = {p->x, p->x_stride, in, p->ids != NULL},
                                    [NARROW_RESIDUAL] = {p->residual, p->residual_stride, in, false},
                                    [NARROW_Y] = {p->y, p->y_stride, out, false},
                                    [NARROW_SECOND] = {p->second, p->second_stride, in, false}};
  int64_t most = call->layer ? NORM_NARROW_LAYER : p->residual ? NORM_NARROW_PAIR : NORM_NARROW_BYTES;
  bool held = in == 2 && norm_narrow_held(t, p->n) <= most;
  if (p->scaling == NORM_SCALE_BLOCK || !(narrow_holds(p->n, NARROW_NORM) || held)) return false;
  if (!norm_narrow_plan(ctx, t, p->m, p->n, call->layer ? 2 : 1, &p->narrow, &p->how, l)) return false;
  if (p->y_kind != kind && p->y_kind != KIND_FP8) p->how.plain = 0;
  plan_direct(ctx, call, l);
  return true;
}

// Chunks of the shared memory of a part: parts start on the output's lines, and the last one has what is left.
static int32_t spread_chunks(const PartShape *s, int in) {
  enum { MORE = 24 };
  return (int32_t)(s->length * in / 16 + MORE);
}

// Long rows in the shared memory of a block, a cluster or of blocks all over the GPU; false: they are too long, or in place.
static bool plan_spread(const SolContext *ctx, NormParams *p, int in, int out, OpsLaunch *l) {
  enum { PAIRS = NORM_SPREAD_PAIRS * PARTS_THREADS }; // chunks of the residual in shared memory
  int64_t bytes = p->n * in, pairs = p->residual ? 16 * PAIRS : 0;
  if (pairs && !parts_held(ctx, bytes, SPREAD_BYTES - pairs)) pairs = 0;
  int64_t blocks = parts_cluster(ctx, bytes, PARTS_SHARED - pairs), parts = blocks;
  p->all_over = !blocks;
  bool over_input =
      p->y == p->x || p->y == p->residual || p->y == p->second; // what is posted would be in the way
  if (p->all_over) parts = over_input ? 0 : parts_held(ctx, bytes, SPREAD_BYTES - pairs);
  if (!parts) return false;
  // To fp8 rows are cut at blocks of 128 columns.
  int64_t n = out == 1 ? ops_ceil_div(p->n, 128 * parts) * 128 * parts : p->n;
  p->parts = parts_shape(p->y, (int64_t)p->m, n, in, out, parts);
  if (ctx->polls) p->parts.polls = ctx->polls;
  p->ahead = rows_ahead(p, bytes, NORM_f_big);
  l->cluster = 1;
  if (p->all_over) {
    parts_launch(&p->parts, l);
  } else {
    l->block = PARTS_THREADS, l->cluster = p->parts.parts;
    ops_grid(l->grid, p->m * p->parts.parts, 1);
  }
  int32_t chunks = spread_chunks(&p->parts, in);
  p->aside = pairs ? chunks : 0;
  l->shared = (uint32_t)(chunks * 16 + pairs);
  return true;
}

// Rows of kernels/norm_spread.cuh that the blocks of a cluster hold: their kernels have fewer registers, so that more rows are on their way. Not with two inputs or by ids:
// that was no gain. False: they are too long, or not such.
static bool plan_clustered(const NormCall *call, NormParams *p, int kind, int in, OpsLaunch *l) {
  // Bytes that a block has, with half of the threads and with all: more where there are fewer blocks to an SM.
  enum { BLOCKS = 16, HELD = 34 << 10, HELD_LAYER = 48 << 10, MOST = 68 << 10 };
  int64_t bytes = p->n * in, blocks = ops_ceil_div(bytes, call->layer ? HELD_LAYER : HELD);
  int64_t most = blocks > BLOCKS ? NORM_SPREAD_THREADS : NORM_SPREAD_THREADS / 2;
  if (blocks > BLOCKS) blocks = BLOCKS;
  if (p->residual || p->ids || p->y_kind != kind || !has_vectors(call) || bytes > blocks * MOST) return false;
  if (!call->layer && p->weight_kind == kind) return false; // as fast without
  p->parts = parts_shape(p->y, (int64_t)p->m, p->n, in, in, blocks);
  int32_t chunks = spread_chunks(&p->parts, in);
  int64_t threads = ops_ceil_div(ops_ceil_div(chunks, ops_ceil_div(chunks, most)), 32) * 32;
  p->ahead = rows_ahead(p, bytes, NORM_f_big);
  l->block = (uint32_t)threads, l->cluster = p->parts.parts, l->shared = (uint32_t)(16 * chunks);
  ops_grid(l->grid, p->m * p->parts.parts, 1);
  return true;
}

// How many rows a block has, where so many blocks, or clusters, run at a time: the start of one costs about as much as a row, and the last should end
// together.
static int32_t rows_of_block(uint64_t m, uint64_t at_a_time, uint64_t most) {
  uint64_t least = UINT64_MAX;
  int32_t best = 1;
  for (uint64_t rows = 1; rows <= most; rows++) {
    uint64_t apart = rows * NORM_ALIKE, rest = m % apart;
    uint64_t blocks = m / apart * NORM_ALIKE + (rest < NORM_ALIKE ? rest : NORM_ALIKE);
    uint64_t cost = (blocks + at_a_time - 1) / at_a_time * (rows + 1);
    if (cost < least) least = cost, best = (int32_t)rows;
  }
  return best;
}

// Rows that norm_layer.cuh's "rows" take: 16-bit, one type throughout, input and output alike.
static bool is_alike(const NormCall *call, int kind) {
  const NormParams *p = &call->p;
  return call->layer && kind != KIND_FP32 && is_plain(call, kind) &&
         ((uintptr_t)p->x - (uintptr_t)p->y) % 16 == 0 && (p->x_stride - p->y_stride) % 16 == 0;
}

// A block or a cluster has several of such rows. False: they are too short, or too long.
static bool plan_rows(const SolContext *ctx, NormParams *p, OpsLaunch *l) {
  enum { LEAST = 448, LEAD = 7, MOST_BLOCKS = 4, MOST_ROWS = 16, CLUSTER_ROWS = 8 };
  int64_t chunks = ops_ceil_div(p->n, 8), blocks = 1;
  while (chunks > NORM_ROWS_THREADS * NORM_ROWS_CHUNKS * blocks) blocks *= 2;
  if (p->n <= LEAST || blocks > MOST_BLOCKS) return false;
  int64_t threads = ops_ceil_div(chunks, NORM_ROWS_CHUNKS * 32 * blocks) * 32;
  p->aside = chunks + LEAD <= threads * NORM_ROWS_CHUNKS * blocks;
  int64_t at_a_time = ops_ceil_div(ctx->sms * (NORM_ROWS_RUNNING / threads), blocks);
  p->rows = rows_of_block(p->m, (uint64_t)at_a_time, blocks > 1 ? CLUSTER_ROWS : MOST_ROWS);
  p->cluster_bits = bits_of(blocks);
  l->block = (uint32_t)threads, l->cluster = (uint32_t)blocks;
  l->shared = l->block * NORM_ROWS_CHUNKS * NORM_ROWS_HELD * 16;
  uint64_t apart = (uint64_t)p->rows * NORM_ALIKE;
  ops_grid(l->grid, (p->m + apart - 1) / apart * NORM_ALIKE * (uint64_t)blocks, 1);
  return true;
}

bool norm_plan_few(const SolContext *ctx, NormCall *call, OpsLaunch *l) {
  enum { FEW = 16 };
  NormParams *p = &call->p;
  p->over_n = (float)(1.0 / (double)p->n);
  *l = (OpsLaunch){.kernel = -1, .early = true, .params = p, .bytes = sizeof *p};
  return p->n <= FEW && plan_narrow(ctx, call, l) && l->kernel >= 0;
}

SolStatus norm_launch(SolContext *ctx, const OpsDef *def, NormCall *call, SolStream stream) {
  NormParams *p = &call->p;
  int kind = ops_kind(call->dtype), type = kind == KIND_FP32 ? 0 : kind == KIND_FP16 ? 1 : 2;
  int64_t in = kind == KIND_FP32 ? 4 : 2, per = 16 / in, least = 1;
  int64_t out = p->y_kind == KIND_FP8 ? 1 : p->y_kind == KIND_FP32 ? 4 : 2;
  bool clusters = ops_has_kernel(ctx, def, NORM_f_big);
  bool fast = (!call->fp8 || clusters) && is_fast(call, kind, per, out);
  p->over_n = (float)(1.0 / (double)p->n);
  bool unaligned = !by_vectors(p, per, out);
  p->layout = NORM_VECTORS;
  if (p->scaling == NORM_SCALE_BLOCK && p->n <= 128) p->scaling = NORM_SCALE_ROW; // equivalent
  if (p->y_kind == KIND_FP8 && p->scaling == NORM_SCALE_BLOCK) { // a block of 128 columns is within a warp
    least = 128 / per;
    if (unaligned) p->layout = NORM_SINGLES;
    unaligned = false;
  }
  if (unaligned) least = 2; // one thread for each end of the row
  // Warps start at whole cache lines of the output, where a row has several; otherwise at whole words.
  p->line = (int32_t)(p->n * out >= LINED_BYTES ? LINE_BYTES / out : 4 / in);
  int64_t chunks = (p->n + (unaligned ? p->line - 1 : 0) + per - 1) / per;
  int64_t all = p->n / per + (p->n % per != 0);
  const Rule *rule = fast ? fast_rule(ctx, call, in, all, clusters) : NULL;
  OpsLaunch l = {.early = clusters, .params = p, .bytes = sizeof *p};
  l.kernel = call->fp8 + type * PER_TYPE + NORM_f_narrow;
  bool brief = narrow_holds(p->n, NARROW_NORM);
  if (all <= TINY_CHUNKS) rule = NULL;
  if (!rule && brief && plan_narrow(ctx, call, &l)) return ops_launch(ctx, def, &l, stream);
  if (!rule && clusters && is_odd(call, kind, in, per)) rule = odd_rule(p, in, all);
  if (!rule && unaligned && clusters && is_alike(call, kind) && plan_rows(ctx, p, &l)) {
    l.kernel = type * PER_TYPE + NORM_f_rows;
    return ops_launch(ctx, def, &l, stream);
  }
  if (!rule && unaligned && plan_narrow(ctx, call, &l)) return ops_launch(ctx, def, &l, stream);
  if (rule)
    chunks = all, p->chunks = (int32_t)chunks, least = 1;
  else
    rule = unaligned ? FIND(unaligned_rules) : FIND(any_rules);
  bool in_registers = rule && (rule->kernel != NORM_f_striped3 || rule->cluster == 1);
  if (clusters && !in_registers && plan_clustered(call, p, kind, (int)in, &l)) {
    l.kernel = type * PER_TYPE + NORM_f_clustered;
    return ops_launch(ctx, def, &l, stream);
  }
  l.kernel = call->fp8 + type * PER_TYPE + NORM_f_spread;
  int least_cluster = is_apart(call, in, out) ? 1 : spread_cluster(call, kind);
  if (!rule ||
      (rule->kernel == NORM_f_striped3 && rule->cluster >= least_cluster && has_plain_vectors(call, kind))) {
    if (clusters && plan_spread(ctx, p, (int)in, (int)out, &l)) return ops_launch(ctx, def, &l, stream);
    l.shared = 0;
  }
  Rule loop = {INT64_MAX, unaligned ? NORM_f_striped_loop : NORM_f_loop, 2, 512, clusters ? 16 : 1};
  if (!rule) rule = &loop;

  uint64_t rows = set_threads(rule, chunks, least, p, &l);
  int kernel = rule->kernel;
  if (p->m <= 4 * (uint64_t)ctx->sms) { // with the same sums
    if (kernel == NORM_f_block_late && !p->residual) kernel = NORM_f_block_early;
    if (kernel == NORM_f_block4_late) kernel = NORM_f_block4_early;
    bool block = kernel == NORM_f_block_early || kernel == NORM_f_block4_early;
    p->split = block && !call->fp8 && !in_place(p) && chunks > SPLIT_CHUNKS &&
               p->m * (uint64_t)rule->held <= SPLIT_BLOCKS;
  }
  l.kernel = kernel < NORM_KERNELS ? call->fp8 + type * PER_TYPE + kernel : kernel + type * ODD_PER_TYPE;
  p->ahead = rows_ahead(p, p->n * in, rule->kernel);
  uint64_t parts = p->split ? (uint64_t)rule->held : l.cluster;
  ops_grid(l.grid, (p->m + rows - 1) / rows * parts * l.block, l.block);
  return ops_launch(ctx, def, &l, stream);
}

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
