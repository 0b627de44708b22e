#include "ops/ends.h"
#include "ops/narrow.h"
#include "ops/norm_parts.h"

// For rows of up to `chunks` chunks of 16 bytes: the kernel (as an offset from the type's first), chunks per
// thread, threads per block (0: as many as the row needs), and blocks per row. Chosen by measurement on an
// H200 (kernels/rmsnorm/README.md), never by the number of rows, so that the result of a row does not depend
// on it.
typedef struct Rule {
  int64_t chunks;
  int kernel, held, threads, cluster;
} Rule;

// Lanes of a warp; a warp; a cluster's shared memory; threads of a block that are as many as the row needs, in clusters of up to 16 blocks.
#define LANES(n)                                                                                             \
  { 2 * (n), NORM_f_lanes##n, 2, n, 1 }
#define WARP(kernel)                                                                                         \
  { 128, kernel, 4, 32, 1 }
#define WARP3                                                                                                \
  { 96, NORM_f_warp3, 3, 32, 1 }
#define WARP5                                                                                                \
  { 160, NORM_f_warp5, 5, 32, 1 }
#define WARP_ROWS WARP3, WARP(NORM_f_warp), WARP5
#define BIG(chunks, threads, n)                                                                              \
  { chunks, NORM_f_big, (chunks) / (threads) / (n), threads, n }
#define BLOCKS(kernel, all, each, n)                                                                         \
  { (n) * (all) * (each), kernel, each, 0, n }
#define SHORT_ROWS LANES(2), LANES(4), LANES(8), LANES(16), LANES(32)
// last: threads per block for the longest rows, of which a block has up to HELD_CHUNKS.
#define WIDE_ROWS(last)                                                                                      \
  BIG(8192, 256, 4), BIG(16384, 256, 8), BIG(32768, 256, 16), BIG(65536, last, 16),                          \
      BIG(16 * HELD_CHUNKS, last, 16)
#define LAYER_BIG                                                                                            \
  { 16 * HELD_CHUNKS, NORM_f_big, 0, 0, 0 } // norm_plan_layer
#define ANY_ROWS(kernel, all, each)                                                                          \
  BLOCKS(kernel, all, each, 1), BLOCKS(kernel, all, each, 2), BLOCKS(kernel, all, each, 4),                  \
      BLOCKS(kernel, all, each, 8), BLOCKS(kernel, all, each, 16)
enum { HELD_CHUNKS = 13 << 10, HELD_PAIRS = 6 << 10 }; // 208 and 192 KB
_Static_assert(HELD_PAIRS == NORM_LAPS * 1024, "the longest rows of two inputs");
// Aligned rows of whole chunks.
#define RMS_LONG_ROWS                                                                                        \
  {1024, NORM_f_block_late, 2, 0, 1}, {2048, NORM_f_block4_late, 4, 0, 1}, BIG(4096, 256, 2), WIDE_ROWS(512)
static const Rule rms_rules[] = {SHORT_ROWS, WARP_ROWS, RMS_LONG_ROWS};
static const Rule fp8_rules[] = {SHORT_ROWS, WARP(NORM_f_warp), RMS_LONG_ROWS};
static const Rule add_rules[] = {SHORT_ROWS,
                                 {1024, NORM_f_block_late, 1, 0, 1},
                                 BIG(2048, 256, 2),
                                 BIG(4096, 256, 4),
                                 BIG(8192, 256, 8),
                                 BIG(16384, 256, 16),
                                 BIG(32768, 512, 16),
                                 BIG(65536, 1024, 16),
                                 BIG(16 * HELD_PAIRS, 1024, 16)};
static const Rule add_few = {1024, NORM_f_block_early, 2, 0, 1}; // the same sums as with one chunk a thread
static const Rule embed_rules[] = {
    SHORT_ROWS,        WARP_ROWS,     {512, NORM_f_block_late, 2, 0, 1}, {2048, NORM_f_block4_late, 4, 0, 1},
    BIG(4096, 512, 1), WIDE_ROWS(512)};
static const Rule layer_rules[] = {SHORT_ROWS,
                                   WARP_ROWS,
                                   {512, NORM_f_block_early, 2, 0, 1},
                                   {1024, NORM_f_block4_early, 4, 0, 1},
                                   LAYER_BIG}; // of 16-bit types
static const Rule layer_rules_fp32[] = {SHORT_ROWS,
                                        WARP_ROWS,
                                        {512, NORM_f_block_early, 2, 0, 1},
                                        {2048, NORM_f_block4_late, 4, 0, 1},
                                        LAYER_BIG};
// Weights or an output of another type: rmsnorm, and 16-bit rows of layernorm.
static const Rule mixed_rules[] = {SHORT_ROWS, WARP(NORM_f_warp)};
static const Rule layer_mixed_rules[] = {SHORT_ROWS, {1024, NORM_f_block_early, 2, 0, 1}};
static const Rule layer_wide_rules[] = {
    SHORT_ROWS, {1024, NORM_f_block_early, 2, 0, 1}, LAYER_BIG}; // fp32 weights alone
static const Rule any_rules[] = {ANY_ROWS(NORM_f_any4, 512, 4)};
static const Rule any_add_rules[] = {ANY_ROWS(NORM_f_any4, NORM_ANY_THREADS, 4)};
static const Rule unaligned_rules[] = {ANY_ROWS(NORM_f_striped3, NORM_STRIPED_THREADS, 3)};
// To fp8, unaligned rows; with a scale per block of columns, elements of 4 bytes and of 2.
static const Rule odd_rules[] = {WARP(NORM_ODD_f_warp), ANY_ROWS(NORM_ODD_f_block, 384, 4)};
static const Rule odd_blocks4_rules[] = {WARP(NORM_ODD_f_warp_blocks),
                                         ANY_ROWS(NORM_ODD_f_block_blocks, 448, 3)};
static const Rule odd_blocks2_rules[] = {WARP(NORM_ODD_f_warp_blocks),
                                         ANY_ROWS(NORM_ODD_f_block_blocks, 384, 3)};

enum {
  ODD_PER_TYPE = NORM_ODD_h_warp - NORM_ODD_f_warp,
  SHARING = 128,                // threads of a block with several rows
  BIG_BYTES = HELD_CHUNKS * 16, // the most shared memory of a block
  ADD_BYTES = 46 << 10,  // two inputs: the least, so that an SM holds four blocks and not five (measured)
  AHEAD_BYTES = 3 << 20, // how far ahead a kernel prefetches into L2; no gain for small tensors
  AHEAD_FROM = 8 << 20,
  SPLIT_CHUNKS = 512,      // rows longer than this get several blocks,
  SPLIT_BLOCKS = 64,       // if those are no more than this in all
  LAYER_ANY_CHUNKS = 1024, // of longer rows an SM has one block of layernorm's "any", or two
  TINY_CHUNKS = 1,         // shorter rows would leave most of the lanes that share them idle
  SPREAD_CLUSTER = 4,      // rows that fewer blocks hold in registers are faster there;
  SPREAD_LAYER =
      2, // and of layernorm's to another type, whose vectors and words are many single accesses there
  TABLE_BYTES = 4 << 20,   // a table that stays in L2 by itself: prefetches into L2 would only cost time
  RELAY_FROM = 1 << 20,    // rows of more bytes are read twice,
  RELAY_PAIRS = 640 << 10, // of two inputs,
  RELAY_APART = 480 << 10, // or that are not whole aligned chunks
  LINE_BYTES = 128,
  LINED_BYTES = 1024 // output rows at least this long are written in whole cache lines
};
_Static_assert(NORM_KERNELS == 3 * NORM_PER_TYPE && NORM_ALL == 2 * NORM_KERNELS + 3 * ODD_PER_TYPE,
               "every type has the same kernels");

enum {
  SHARED_LANES = 0,
  SHARED_WARP = 0,
  SHARED_BLOCK = 0,
  SHARED_BLOCK4 = 0,
  SHARED_BIG = BIG_BYTES,
  SHARED_WIDE = BIG_BYTES,
  SHARED_SHIFTED = BIG_BYTES,
  SHARED_NARROW = NARROW_SHARED,
  SHARED_DIRECT = NARROW_SHARED,
  SHARED_PACKED = 0,
  SHARED_WORDS = 2 * 32 * NORM_WORDS_MOST * 4,
  SHARED_ANY = 0,
  SHARED_STRIPED = 0,
  SHARED_ROWS = NORM_ROWS_THREADS * NORM_ROWS_CHUNKS * NORM_ROWS_HELD * 16,
  SHARED_LOOP = 0,
  SHARED_SPREAD = 72 << 10, // of which three fit an SM
  SHARED_CLUSTERED = 72 << 10
};
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

// Whether all rows and vectors are aligned, so that a chunk is one access.
static bool by_vectors(const NormPlan *a) {
  const NormParams *p = a->p;
  int64_t chunk = a->per * a->out < 16 ? a->per * a->out : 16;
  return norm_on_16(p->x, p->x_stride) && norm_on_16(p->residual, p->residual_stride) &&
         norm_on_16(p->second, p->second_stride) && norm_on_16(p->weight, 0) && norm_on_16(p->bias, 0) &&
         ((uintptr_t)p->y | (uint64_t)p->y_stride) % (uint64_t)chunk == 0;
}

// Weights or an output of another type than the input, other than fp8.
static bool is_mixed(const NormPlan *a) {
  return a->p->weight_kind != a->kind || (a->p->y_kind != a->kind && !a->call->fp8);
}

// Aligned whole chunks: the fast kernels take them. Several types: rmsnorm and layernorm, not to fp8 (norm_mixes in kernels/norm.cuh).
static bool is_fast(const NormPlan *a) {
  const NormParams *p = a->p;
  bool fp8 = a->call->fp8, one_type = !is_mixed(a) || (!fp8 && !p->residual && !p->ids);
  return (!fp8 || a->clusters) && one_type && p->weight && (p->bias || !a->call->layer) &&
         p->n % a->per == 0 && by_vectors(a);
}

// From how many blocks of a cluster on rows in registers are slower than in shared memory (measured).
static int spread_cluster(const NormPlan *a) {
  return a->call->layer && a->p->y_kind != a->kind ? SPREAD_LAYER : SPREAD_CLUSTER;
}

// 16-bit rows whose words are not words of the output, which starts differently. Such rows are faster in shared
// memory, which holds them as they lie in the input, from so many bytes on that the blocks of an SM have enough
// under way.
static bool is_apart(const NormPlan *a) {
  enum { LEAST = 16 << 10 };
  const NormParams *p = a->p;
  int64_t in = a->in;
  return in == 2 && !p->residual && !p->ids && !a->call->fp8 && p->n * in >= LEAST &&
         (((intptr_t)p->x / in - (intptr_t)p->y / a->out) % 2 ||
          (p->x_stride / in - p->y_stride / a->out) % 2);
}

// To fp8, unaligned rows whose input and output are aligned alike: whole chunks of both start at the same
// columns.
static bool is_odd(const NormPlan *a) {
  const NormParams *p = a->p;
  return a->clusters && a->call->fp8 && p->weight_kind == a->kind && p->weight && norm_on_16(p->weight, 0) &&
         ((uintptr_t)p->x / (uintptr_t)a->in - (uintptr_t)p->y) % (uintptr_t)a->per == 0 &&
         (p->x_stride / a->in - p->y_stride) % a->per == 0;
}

// Rows of more bytes than this are read twice (measured). rule: of aligned rows; to fp8 a cluster has them, for instructions bind them.
static int64_t relay_from(const NormPlan *a, const Rule *rule) {
  bool one_type = a->p->y_kind == a->kind;
  if (rule && a->call->fp8) return INT64_MAX;
  if (!one_type || (rule && !a->p->residual)) return RELAY_FROM;
  return rule ? RELAY_PAIRS : RELAY_APART;
}

static const Rule *find_rule(const Rule *rule, size_t count, int64_t chunks, bool clusters) {
  for (const Rule *end = rule + count; rule < end; rule++)
    if (chunks <= rule->chunks)
      return clusters || (rule->cluster == 1 && rule->kernel != NORM_f_big) ? rule : NULL;
  return NULL;
}

#define FIND(rules) find_rule(rules, SOL_COUNT(rules), chunks, clusters)
static const Rule *fast_rule(const NormPlan *a, int64_t chunks) {
  const NormParams *p = a->p;
  bool mixed = is_mixed(a), clusters = a->clusters;
  if (mixed && !a->call->layer) return FIND(mixed_rules);
  if (mixed && a->in == 2) return p->y_kind == a->kind ? FIND(layer_wide_rules) : FIND(layer_mixed_rules);
  if (mixed) clusters = false; // not "big"
  if (p->residual) {
    const Rule *rule = FIND(add_rules);
    uint64_t few = (uint64_t)a->ctx->sms * (a->in == 2 && chunks <= SPLIT_CHUNKS ? 4 : 1);
    return rule && rule->kernel == NORM_f_block_late && p->m <= few ? &add_few : rule;
  }
  if (p->ids) return FIND(embed_rules);
  if (a->call->layer) return a->in == 4 ? FIND(layer_rules_fp32) : FIND(layer_rules);
  return a->call->fp8 ? FIND(fp8_rules) : FIND(rms_rules);
}

static const Rule *odd_rule(const NormPlan *a, int64_t chunks) {
  const bool clusters = true;
  if (a->p->scaling != NORM_SCALE_BLOCK) return FIND(odd_rules);
  return a->in == 4 ? FIND(odd_blocks4_rules) : FIND(odd_blocks2_rules);
}

// Sets threads per row, rows per block and blocks per row; returns the rows. least: the fewest threads per
// row.
static uint64_t set_threads(const Rule *rule, int64_t chunks, int64_t least, NormParams *p, OpsLaunch *l) {
  int64_t each = (int64_t)rule->held * rule->cluster, need = (chunks + each - 1) / each,
          threads = rule->threads;
  if (need < least) need = least;
  bool few = need < 32 && rule->kernel != NORM_f_striped3; // a striped kernel's warps have whole lines
  if (!threads) threads = few ? (int64_t)1 << norm_bits(need) : (need + 31) / 32 * 32;
  if (rule->cluster > 1 && threads < 64) threads = 64; // sums of a cluster go through shared memory
  bool lanes = rule->kernel <= NORM_f_warp5 ||
               (rule->kernel >= NORM_f_any4 && rule->kernel <= NORM_f_striped3) ||
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
  p->thread_bits = share ? norm_bits(threads) : 10;
  p->row_bits = norm_bits(rows);
  p->cluster_bits = norm_bits(rule->cluster);
  p->warp_lanes = 1 << norm_bits((threads + 31) / 32);
  l->block = (uint32_t)(threads * rows);
  l->cluster = (uint32_t)rule->cluster;
  return (uint64_t)rows;
}

// In place, no block may write a row that another block still reads.
static bool in_place(const NormParams *p) {
  return p->y == p->x || p->y == p->residual ||
         (p->second && (p->second == p->x || p->second == p->residual));
}

int32_t norm_rows_ahead(const NormParams *p, int64_t row_bytes, int kernel) {
  uint64_t from = p->residual ? 2 * AHEAD_FROM : AHEAD_FROM;
  if (p->ids && p->vocab * p->x_stride <= TABLE_BYTES) return 0;
  if (p->m < from && p->m * (uint64_t)row_bytes < from) return 0;
  int64_t chunks = row_bytes / 16, bytes = 2 * AHEAD_BYTES;
  if (p->residual)
    bytes = chunks <= 1024 ? AHEAD_BYTES : 2 << 20;
  else if (kernel == NORM_f_big || kernel >= NORM_ODD_f_warp)
    bytes = AHEAD_BYTES;
  int64_t rows = bytes / row_bytes;
  return rows || !bytes ? (int32_t)rows : 1;
}

NormPlan norm_plan(const SolContext *ctx, NormCall *call, bool clusters) {
  NormParams *p = &call->p;
  int kind = ops_kind(call->dtype), in = ops_size(call->dtype);
  int out = p->y_kind == KIND_FP8 ? 1 : p->y_kind == KIND_FP32 ? 4 : 2;
  p->over_n = (float)(1.0 / (double)p->n);
  p->ends = p->y == p->residual ? 0 : ends_bytes(p->y, p->x, p->y_stride, p->n * out);
  p->second_ends = p->second == p->residual ? 0 : ends_bytes(p->second, p->x, p->second_stride, p->n * in);
  return (NormPlan){.ctx = ctx,
                    .call = call,
                    .p = p,
                    .kind = kind,
                    .type = kind == KIND_FP32   ? 0
                            : kind == KIND_FP16 ? 1
                                                : 2,
                    .in = in,
                    .out = out,
                    .per = 16 / in,
                    .clusters = clusters,
                    .l = {.early = clusters, .params = p, .bytes = sizeof *p}};
}

// Rows in registers, or as the rule says.
static void plan_rule(NormPlan *a, const Rule *rule, int64_t chunks, int64_t least) {
  NormParams *p = a->p;
  uint64_t rows = set_threads(rule, chunks, least, p, &a->l), sms = (uint64_t)a->ctx->sms;
  int kernel = rule->kernel;
  if (p->m <= 4 * sms) { // with the same sums
    if (kernel == NORM_f_block_late && !p->residual) kernel = NORM_f_block_early;
    if (kernel == NORM_f_block4_late) kernel = NORM_f_block4_early;
    bool block = kernel == NORM_f_block_early || kernel == NORM_f_block4_early;
    p->split = block && !a->call->fp8 && !in_place(p) && chunks > SPLIT_CHUNKS &&
               p->m * (uint64_t)rule->held <= SPLIT_BLOCKS;
  }
  a->l.kernel = kernel < NORM_KERNELS ? norm_kernel(a, kernel) : kernel + a->type * ODD_PER_TYPE;
  p->ahead = norm_rows_ahead(p, p->n * a->in, rule->kernel);
  uint64_t parts = p->split ? (uint64_t)rule->held : a->l.cluster;
  ops_grid(a->l.grid, (p->m + rows - 1) / rows * parts * a->l.block, a->l.block);
}

static void plan(NormPlan *a) {
  NormParams *p = a->p;
  int64_t least = 1, per = a->per, all = ops_ceil_div(p->n, per);
  bool unaligned = !by_vectors(a), clusters = a->clusters;
  p->layout = NORM_VECTORS;
  if (p->scaling == NORM_SCALE_BLOCK && p->n <= 128) p->scaling = NORM_SCALE_ROW; // equivalent
  if (p->y_kind == KIND_FP8 && p->scaling == NORM_SCALE_BLOCK) { // a block of 128 columns is within a warp
    least = 128 / per;
    if (unaligned) p->layout = NORM_SINGLES;
    unaligned = false;
  }
  if (unaligned) least = 2; // one thread for each end of the row
  // Warps start at whole cache lines of the output, where a row has several; otherwise at whole words.
  p->line = (int32_t)(p->n * a->out >= LINED_BYTES ? LINE_BYTES / a->out : 4 / a->in);
  int64_t chunks = ops_ceil_div(p->n + (unaligned ? p->line - 1 : 0), per);
  const Rule *rule = is_fast(a) && all > TINY_CHUNKS ? fast_rule(a, all) : NULL;
  if (p->n * a->in > relay_from(a, rule) && norm_plan_relay(a)) return;
  if (rule && rule->kernel == NORM_f_big && a->call->layer) {
    norm_plan_layer(a);
    return;
  }
  if (!rule && narrow_holds(p->n, NARROW_NORM) && norm_plan_short(a)) return;
  if (!rule && is_odd(a)) rule = odd_rule(a, all);
  if (!rule && unaligned && (norm_plan_rows(a) || norm_plan_shifted(a))) return;
  if (!rule && unaligned && norm_plan_short(a)) return;
  if (rule)
    chunks = all, p->chunks = (int32_t)chunks, least = 1;
  else
    rule = unaligned                             ? FIND(unaligned_rules)
           : p->residual && a->kind != KIND_FP32 ? FIND(any_add_rules)
                                                 : FIND(any_rules);
  bool striped = rule && rule->kernel == NORM_f_striped3,
       long_layer = rule && rule->kernel == NORM_f_any4 && a->call->layer && all > LAYER_ANY_CHUNKS,
       in_registers = rule && !long_layer && (!striped || rule->cluster == 1);
  if (!in_registers && norm_plan_clustered(a)) return;
  bool far = !rule ||
             (striped && rule->cluster >= (is_apart(a) ? 1 : spread_cluster(a)) && norm_has_plain_vectors(a));
  if (far && norm_plan_spread(a)) return;
  Rule loop = {INT64_MAX, unaligned ? NORM_f_striped_loop : NORM_f_loop, 2, 512, clusters ? 16 : 1};
  plan_rule(a, rule ? rule : &loop, chunks, least);
}

SolStatus norm_launch(SolContext *ctx, const OpsDef *def, NormCall *call, SolStream stream) {
  NormPlan a = norm_plan(ctx, call, ops_has_kernel(ctx, def, NORM_f_big));
  plan(&a);
  return ops_launch(ctx, def, &a.l, stream);
}
