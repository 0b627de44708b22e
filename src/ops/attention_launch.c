// Which attention kernel runs: on Hopper, where tensor copies can reach the tensors, the one with them; otherwise mma.sync.
#include <limits.h>

#include "kernels/attention/attention_items.h"
#include "ops/attention_parts.h"

const char *const attention_kernels[ATTENTION_KERNELS] = {
#define ROW(id, name, ...) "sol_attention_" name,
#include "ops/attention_kernels.def"
};

const uint32_t attention_shared[ATTENTION_KERNELS] = {
#define ROW(id, name, shared, ...) shared,
#include "ops/attention_kernels.def"
};

typedef enum Family {
  MMA_SYNC,
  TILED_WGMMA,
  BRIEF_WGMMA,
  BRIEF_OF_TWO,
  BRIEF_ODD,
  PAIR_WGMMA,
  PAIR_ODD,
  ITEMS_WGMMA,
  ITEMS_ODD
} Family; // brief: tiles of 64, of 128; odd: rows begin at any element
typedef struct Variant {
  int kind;
  Family family;
  int64_t d;
} Variant;
static const Variant variants[ATTENTION_KERNELS] = {
#define ROW(id, name, shared, ...) {__VA_ARGS__},
#include "ops/attention_kernels.def"
};

static int kernel_for(const SolAttention *a, Family family) {
  for (int i = 0; i < ATTENTION_KERNELS; i++)
    if (variants[i].family == family && variants[i].d == a->d && variants[i].kind == ops_kind(a->dtype))
      return i;
  return 0; // the checks leave no other heads
}

static bool is_aligned(const void *at, int64_t row, int64_t batch) {
  return !((uintptr_t)at % 16) && row % 8 == 0 && batch % 8 == 0;
}

static bool all_aligned(const SolAttention *a) {
  return is_aligned(a->o, a->o_stride, a->o_batch_stride) &&
         is_aligned(a->q, a->q_stride, a->q_batch_stride) &&
         is_aligned(a->k, a->k_stride, a->k_batch_stride) && is_aligned(a->v, a->v_stride, a->v_batch_stride);
}

// As many as a tile of 64 queries and so many keys has room for, of 16 queries and 16 keys at least.
static int heads_together(const SolAttention *a, int keys) {
  int heads = keys / 16;
  while (heads > 1 && (a->queries * heads > ATTENTION_ROWS || a->keys * heads > keys)) heads /= 2;
  return heads;
}
static void set_tiles(const SolAttention *a, AttentionParams *p, int keys) {
  p->pack = heads_together(a, keys);
  p->tiles = ops_ceil_div(ops_ceil_div(a->queries, ATTENTION_ROWS) * a->heads * a->batch, p->pack);
}

AttentionParams attention_params(const SolAttention *a) {
  int64_t tokens = a->q_starts ? a->q_tokens : a->queries;
  AttentionParams p = {.o = a->o,
                       .q = a->q,
                       .k = a->k,
                       .v = a->v,
                       .lse = a->lse,
                       .q_starts = a->q_starts,
                       .kv_starts = a->kv_starts,
                       .o_row = a->o_stride,
                       .q_row = a->q_stride,
                       .k_row = a->k_stride,
                       .v_row = a->v_stride,
                       .o_batch = a->q_starts ? 0 : a->o_batch_stride,
                       .q_batch = a->q_starts ? 0 : a->q_batch_stride,
                       .k_batch = a->kv_starts ? 0 : a->k_batch_stride,
                       .v_batch = a->kv_starts ? 0 : a->v_batch_stride,
                       .lse_batch = a->q_starts ? 0 : a->heads * tokens,
                       .lse_head = tokens,
                       .q_tokens = (int)a->q_tokens,
                       .kv_tokens = (int)a->kv_tokens,
                       .queries = (int)a->queries,
                       .keys = (int)a->keys,
                       .batch = (int)a->batch,
                       .heads = (int)a->heads,
                       .group = (int)(a->heads / a->kv_heads),
                       .causal = a->causal != 0,
                       .window = (int)a->window,
                       .aligned = all_aligned(a),
                       .scale = a->scale,
                       .soft_cap = a->soft_cap};
  set_tiles(a, &p, ATTENTION_KEYS(a->d));
  return p;
}

// Of short sequences a block has one tile of queries after the other, so that the next one's copies are under way. Of longer ones it has
// one: which of their tiles have most keys to go over differs, and blocks that have done theirs make room for others.
static int64_t mma_blocks(const SolContext *ctx, const SolAttention *a, int64_t tiles) {
  int64_t at_a_time = (int64_t)ctx->sms * ATTENTION_BLOCKS(a->d);
  return a->queries <= 2 * ATTENTION_ROWS && tiles > at_a_time ? at_a_time : tiles;
}

static SolStatus launch_mma(SolContext *ctx, const SolAttention *a, SolStream stream) {
  AttentionParams p = attention_params(a);
  int kernel = kernel_for(a, MMA_SYNC);
  OpsLaunch l = {.kernel = kernel,
                 .block = ATTENTION_THREADS,
                 .shared = attention_shared[kernel],
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  ops_grid(l.grid, (uint64_t)mma_blocks(ctx, a, p.tiles), 1);
  return ops_launch(ctx, &ops_attention, &l, stream);
}

// ---- tiles ----

static bool reaches(int64_t row, int64_t batch) { // strides of tensor maps have 40 bits
  return row < INT64_C(1) << 38 && batch < INT64_C(1) << 38;
}

// Sequences of so few tokens that 128 queries and keys at a time would be half empty, and of which mma.sync has more on an SM.
static bool is_short(const SolAttention *a) {
  return a->d < 256 && a->queries <= ATTENTION_ROWS && a->keys <= 2 * ATTENTION_KEYS(64);
}

// Whether there are keys at all, and tiles are counted in 31 bits.
static bool can_count(const SolAttention *a) {
  double tiles = ((double)a->queries / ATTENTION_TILED_ROWS + 1) * (double)a->heads * (double)a->batch;
  return a->keys && (!a->kv_starts || a->kv_tokens) && tiles < INT_MAX / 2;
}

static bool can_tile(const SolAttention *a) { // by tensor copies
  return all_aligned(a) && can_count(a) && reaches(a->q_stride, a->q_batch_stride) &&
         reaches(a->k_stride, a->k_batch_stride) && reaches(a->v_stride, a->v_batch_stride);
}

typedef struct Tensor {
  const void *at;
  int64_t heads, tokens, batch, row, batch_row; // strides, in elements
} Tensor;

static SolStatus make_map(SolContext *ctx, const SolAttention *a, const Tensor *t, int box,
                          AttentionMap *out) {
  enum { SIZE = 2, WIDE = 64 };
  SolTensorMap m = {.base = (uintptr_t)t->at,
                    .dims = {(uint64_t)a->d, (uint64_t)t->tokens, (uint64_t)t->heads, (uint64_t)t->batch, 1},
                    .strides = {SIZE, (uint64_t)t->row * SIZE, (uint64_t)a->d * SIZE,
                                t->batch > 1 ? (uint64_t)t->batch_row * SIZE : 16},
                    .box = {WIDE, (uint32_t)box, 1, 1, 1},
                    .steps = {1, 1, 1, 1, 1},
                    .rank = 4,
                    .type = a->dtype == SOL_FP16 ? SOL_TENSOR_F16 : SOL_TENSOR_BF16,
                    .swizzle = SOL_TENSOR_SWIZZLE_128B};
  SolError err;
  SolStatus status = sol_driver_tensor_map(ctx->driver, &m, (uint8_t *)out, &err);
  return status ? ops_fail(status, "attention: %s", err.message) : SOL_OK;
}

static void tensors_of(const SolAttention *a, Tensor *t) { // queries, keys, values
  int64_t q = a->q_starts ? a->q_tokens : a->queries, kv = a->kv_starts ? a->kv_tokens : a->keys;
  int64_t q_batch = a->q_starts ? 1 : a->batch, kv_batch = a->kv_starts ? 1 : a->batch;
  t[0] = (Tensor){a->q, a->heads, q, q_batch, a->q_stride, a->q_batch_stride};
  t[1] = (Tensor){a->k, a->kv_heads, kv, kv_batch, a->k_stride, a->k_batch_stride};
  t[2] = (Tensor){a->v, a->kv_heads, kv, kv_batch, a->v_stride, a->v_batch_stride};
}

// q_box, kv_box: tokens of a copy.
static SolStatus make_maps(SolContext *ctx, const SolAttention *a, int q_box, int kv_box,
                           AttentionTiledParams *p) {
  Tensor t[3];
  tensors_of(a, t);
  SolStatus status = make_map(ctx, a, &t[0], q_box, &p->q);
  if (!status) status = make_map(ctx, a, &t[1], kv_box, &p->k);
  return status ? status : make_map(ctx, a, &t[2], kv_box, &p->v);
}

// Whether most tiles that sequences may have are not there, so that it pays to count those that are.
static bool is_packed(const SolAttention *a, int64_t rows) {
  int64_t there = a->q_tokens / ATTENTION_TILED_ROWS + a->batch; // at most
  return a->q_starts && a->batch <= ATTENTION_SEQUENCES && rows * a->batch >= 2 * there;
}

// Heads whose keys and values take about 32 MB.
static int64_t nearby_heads(const SolAttention *a) {
  int64_t all = a->batch * a->heads, group = a->heads / a->kv_heads;
  double fit = 32e6 / ((double)a->keys * (double)a->d * 4);
  int64_t heads = (fit < 1 ? 1 : fit > (double)all ? all : (int64_t)fit) * group;
  return heads < all ? heads : all;
}

SolStatus attention_tiled_params(SolContext *ctx, const SolAttention *a, AttentionTiledParams *p) {
  int64_t rows = ops_ceil_div(a->queries, ATTENTION_TILED_ROWS);
  *p = (AttentionTiledParams){.all = attention_params(a),
                              .rows = (int)rows,
                              .nearby = (int)nearby_heads(a),
                              .packed = is_packed(a, rows)};
  return make_maps(ctx, a, ATTENTION_TILED_ROWS / 2, ATTENTION_TILED_KEYS(a->d), p);
}

static SolStatus launch_wgmma(SolContext *ctx, int kernel, const AttentionTiledParams *p, int64_t tiles,
                              int64_t at_a_time, uint32_t threads, SolStream stream) {
  OpsLaunch l = {.kernel = kernel,
                 .grid = {(uint32_t)(tiles < at_a_time ? tiles : at_a_time), 1, 1},
                 .block = threads,
                 .shared = attention_shared[kernel],
                 .early = true,
                 .one_param = true,
                 .params = p,
                 .bytes = sizeof *p};
  return ops_launch(ctx, &ops_attention, &l, stream);
}

static SolStatus launch_tiled(SolContext *ctx, const SolAttention *a, int kernel, SolStream stream) {
  AttentionTiledParams p;
  SolStatus status = attention_tiled_params(ctx, a, &p);
  if (status) return status;
  return launch_wgmma(ctx, kernel, &p, p.rows * a->batch * a->heads, ctx->sms, ATTENTION_TILED_THREADS,
                      stream);
}

// Queries of which a tile of so many rows has all keys that they see; 0: of too few. Tiles of neighbouring queries have window - 1 keys in
// common, which are read again.
static int64_t brief_span(const SolAttention *a, int rows) {
  if (a->queries <= rows && a->keys <= rows) return rows;
  return a->causal && a->window && a->window <= rows / 4 ? rows - a->window + 1 : 0;
}

// Halves of 64 rows that a tile of the brief kernel has; 0: it is not for these.
static int brief_halves(const SolAttention *a) {
  if (brief_span(a, ATTENTION_BRIEF_ROWS)) return 1;
  return a->d == 64 && brief_span(a, 2 * ATTENTION_BRIEF_ROWS)
             ? 2
             : 0; // wider heads have no room for two stages in two blocks
}

// at_a_time: blocks. Tiles of several heads have as many each as fill whole rounds of them, so that none has much less to do than others.
static AttentionTiledParams brief_params(const SolAttention *a, int halves, int64_t at_a_time) {
  int rows = ATTENTION_BRIEF_ROWS * halves;
  int64_t span = brief_span(a, rows);
  AttentionTiledParams p = {
      .all = attention_params(a), .span = (int)span, .rows = (int)ops_ceil_div(a->queries, span)};
  int64_t heads = p.rows * a->heads * a->batch, tiles = heads;
  p.all.pack = halves == 1 && p.rows == 1 ? heads_together(a, rows) : 1;
  if (p.all.pack > 1) tiles = ops_ceil_div(heads, p.all.pack * at_a_time) * at_a_time;
  p.all.tiles = tiles < heads ? tiles : heads;
  p.each = p.all.tiles ? (int)(heads / p.all.tiles) : 0, p.more = (int)(heads - p.each * p.all.tiles);
  return p;
}

static SolStatus launch_brief(SolContext *ctx, const SolAttention *a, int halves, SolStream stream) {
  int64_t at_a_time = (int64_t)ctx->sms * ATTENTION_BRIEF_BLOCKS(a->d, halves);
  AttentionTiledParams p = brief_params(a, halves, at_a_time);
  int box = ATTENTION_BRIEF_ROWS * halves / p.all.pack;
  SolStatus status = make_maps(ctx, a, box, box, &p);
  if (status) return status;
  return launch_wgmma(ctx, kernel_for(a, halves == 1 ? BRIEF_WGMMA : BRIEF_OF_TWO), &p, p.all.tiles,
                      at_a_time, ATTENTION_BRIEF_THREADS, stream);
}

static SolStatus launch_odd(SolContext *ctx, const SolAttention *a, SolStream stream) {
  int64_t at_a_time = (int64_t)ctx->sms * ATTENTION_ODD_BLOCKS(a->d);
  AttentionTiledParams p = brief_params(a, 1, at_a_time);
  return launch_wgmma(ctx, kernel_for(a, BRIEF_ODD), &p, p.all.tiles, at_a_time,
                      128 + ATTENTION_ODD_COPY_THREADS(a->d), stream);
}

enum { END = 16 }; // bytes more of a row that begins at any element

static int64_t pair_slots(const SolAttention *a, int64_t rows, bool odd) {
  int64_t slots = (ATTENTION_PAIR_SHARED - 1024) / (rows * (a->d * 2 + (odd ? END : 0)));
  return slots < ATTENTION_PAIR_SLOTS ? slots : ATTENTION_PAIR_SLOTS;
}

// Rows of tiles that have all keys their queries see, where shared memory holds more than one tile's queries, keys and values; 0: none. Of rows that begin
// at any element one tile's will do: what else there is for them, mma.sync, is slower.
static int64_t pair_rows(const SolAttention *a, bool odd) {
  int64_t most = a->queries > a->keys ? a->queries : a->keys, rows = ops_ceil_div(most, 16) * 16;
  bool fits = rows <= 2 * ATTENTION_BRIEF_ROWS && pair_slots(a, rows, odd) >= (odd ? 3 : 4);
  return a->d == 256 && rows > ATTENTION_BRIEF_ROWS && fits ? rows : 0;
}

static SolStatus launch_pair(SolContext *ctx, const SolAttention *a, bool odd, SolStream stream) {
  int64_t rows = pair_rows(a, odd);
  AttentionTiledParams p = {.all = attention_params(a),
                            .span = (int)rows,
                            .rows = 1,
                            .each = 1,
                            .box = (int)rows,
                            .slots = (int)pair_slots(a, rows, odd)};
  p.all.pack = 1, p.all.tiles = a->heads * a->batch;
  SolStatus status = odd ? SOL_OK : make_maps(ctx, a, (int)rows, (int)rows, &p);
  if (status) return status;
  return launch_wgmma(ctx, kernel_for(a, odd ? PAIR_ODD : PAIR_WGMMA), &p, p.all.tiles, ctx->sms,
                      ATTENTION_PAIR_THREADS, stream);
}

// ---- items ----

// Rows of a slot where one has all keys of a sequence, and a tile of 64 neither these nor the queries; 0: it is not for these. Heads are all that blocks share out, so queries are not many.
static int items_rows(const SolAttention *a) {
  enum { KEYS = 128, QUERIES = 256 };
  bool fits = a->d < 256 && a->keys <= KEYS && a->queries <= QUERIES;
  bool beyond = a->keys > ATTENTION_BRIEF_ROWS && a->queries > ATTENTION_BRIEF_ROWS;
  return fits && beyond && !brief_span(a, ATTENTION_BRIEF_ROWS) ? (int)ops_ceil_div(a->keys, 16) * 16 : 0;
}

static SolStatus launch_items(SolContext *ctx, const SolAttention *a, bool odd, SolStream stream) {
  int64_t bytes = a->d * 2 + (odd ? END : 0), rows = items_rows(a);
  int64_t slots = (ATTENTION_ITEMS_SHARED - 1024 - ATTENTION_ITEMS_QUERIES * 64 * bytes) / (rows * bytes);
  AttentionTiledParams p = {.all = attention_params(a),
                            .rows = (int)ops_ceil_div(a->queries, 64),
                            .box = (int)rows,
                            .slots = (int)(slots < ATTENTION_ITEMS_SLOTS ? slots : ATTENTION_ITEMS_SLOTS)};
  p.all.tiles = a->heads * a->batch;
  SolStatus status = odd ? SOL_OK : make_maps(ctx, a, 64, (int)rows, &p);
  if (status) return status;
  return launch_wgmma(ctx, kernel_for(a, odd ? ITEMS_ODD : ITEMS_WGMMA), &p, p.all.tiles, ctx->sms,
                      ATTENTION_ITEMS_THREADS, stream);
}

SolStatus attention_launch(SolContext *ctx, const void *args, SolStream stream) {
  SolAttention a = attention_filled(args);
  int tiled = kernel_for(&a, TILED_WGMMA);
  bool has = ctx->cc >= 90 && can_count(&a) && ops_has_kernel(ctx, &ops_attention, tiled),
       wgmma = has && can_tile(&a);
  if (has && !wgmma && brief_span(&a, ATTENTION_BRIEF_ROWS)) return launch_odd(ctx, &a, stream);
  if (has && items_rows(&a)) return launch_items(ctx, &a, !wgmma, stream);
  if (wgmma && brief_halves(&a)) return launch_brief(ctx, &a, brief_halves(&a), stream);
  if (has && pair_rows(&a, !wgmma)) return launch_pair(ctx, &a, !wgmma, stream);
  if (wgmma && !is_short(&a)) return launch_tiled(ctx, &a, tiled, stream);
  return launch_mma(ctx, &a, stream);
}
