// How sequences are cut into parts, and the two kernels: one for the parts, one that adds them up.
#include "kernels/common.h"
#include "ops/decode_attention_parts.h"

const char *const decode_kernels[DECODE_KERNELS] = {
#define ROW(id, name, ...) "sol_decode_attention_" name,
#include "ops/decode_attention_kernels.def"
};

const uint32_t decode_shared[DECODE_KERNELS] = {
#define ROW(id, name, shared, ...) shared,
#include "ops/decode_attention_kernels.def"
};

typedef struct Variant {
  int kind, fp8; // kind 0: adds up the parts
  int64_t d, v_dim;
  int rows, threads, blocks, step; // rows: heads of a block; blocks: of an SM; step: tokens at a time
  enum { WARPS_TOGETHER, WARPS_ALONE, WITH_BOXES, WITH_SHORT_BOXES, PARTS_ALONE } how;
} Variant;
static const Variant variants[DECODE_KERNELS] = {
#define ROW(id, name, shared, needed, ...) {__VA_ARGS__},
#include "ops/decode_attention_kernels.def"
};

// Shared memory that a variant needs, where it may have more.
static const uint32_t needed[DECODE_KERNELS] = {
#define ROW(id, name, shared, needed, ...) needed,
#include "ops/decode_attention_kernels.def"
};

// Whether tensor copies of 16 tokens are for it: aligned, none lies in two pages, and strides have 40 bits.
static bool has_boxes(SolContext *ctx, const SolDecodeAttention *a) {
  int64_t row = a->d * ops_size(decode_cache_type(a));
  return ops_has_kernel(ctx, &ops_decode_attention, DECODE_PART_2_0_128_1_1) && a->pages > 0 &&
         (!a->table || a->page_size % 16 == 0) && (uintptr_t)a->k_cache % 16 == 0 &&
         (uintptr_t)a->v_cache % 16 == 0 &&
         (double)a->page_size * (double)a->kv_heads * (double)row < (double)((int64_t)1 << 40);
}

static int64_t row_bytes(const SolDecodeAttention *a) { // of a token, for one head of K and V
  return DECODE_ROW_BYTES(a->d, a->v_dim, ops_size(decode_cache_type(a)));
}

// Whether each warp may have items of its own, as where copies are not of boxes: of so few heads that an item may be short beside its sums.
static bool is_alone(const SolDecodeAttention *a) {
  return (a->d == 64 || a->d == 256) && decode_cache_type(a) != SOL_FP8 && a->heads / a->kv_heads <= 2;
}

// Of those the ones whose sequences all have so few tokens that what a block does at a part's begin and end
// takes longer than its bytes.
static bool is_brief(const SolDecodeAttention *a) {
  int64_t seen = a->window && a->window < a->max_length ? a->window : a->max_length;
  return is_alone(a) && seen * row_bytes(a) <= DECODE_ALONE_BYTES / 2;
}

// How blocks and warps share the work.
static int how_to(SolContext *ctx, const SolDecodeAttention *a) {
  bool alone = ops_has_kernel(ctx, &ops_decode_attention, DECODE_ALONE_2_64);
  if (alone && is_brief(a)) return WARPS_ALONE;
  if (a->d != DECODE_LATENT && has_boxes(ctx, a)) return PARTS_ALONE;
  return alone && is_alone(a) ? WARPS_ALONE : WARPS_TOGETHER;
}

// Of the variants for the shape the first with room for all heads that share one of K, or else the last. MLA's of sm_90a
// goes before the others.
static int kernel_for(SolContext *ctx, const SolDecodeAttention *a) {
  int fp8 = decode_cache_type(a) == SOL_FP8, kind = fp8 ? KIND_FP16 : ops_kind(a->dtype), last = 0;
  int wide = kind == KIND_FP16 ? DECODE_WIDE_1 : DECODE_WIDE_2,
      few = kind == KIND_FP16 ? DECODE_FEW_1 : DECODE_FEW_2,
      boxes = kind == KIND_FP16 ? DECODE_WIDE_BOXES_1 : DECODE_WIDE_BOXES_2;
  if (a->d == DECODE_LATENT && !fp8 && ctx->cc >= 90 && ops_has_kernel(ctx, &ops_decode_attention, wide))
    return !has_boxes(ctx, a) ? wide : a->heads / a->kv_heads <= DECODE_ROWS ? few : boxes;
  if (a->d == DECODE_LATENT && fp8 && a->heads / a->kv_heads > DECODE_ROWS &&
      (uintptr_t)a->k_cache % 16 == 0 && ctx->cc >= 90 &&
      ops_has_kernel(ctx, &ops_decode_attention, DECODE_WIDE_BYTES_1))
    return DECODE_WIDE_BYTES_1;
  int how = how_to(ctx, a);
  for (int i = 0; i < DECODE_KERNELS; i++) {
    const Variant *v = &variants[i];
    if ((int)v->how != how || v->kind != kind || v->fp8 != fp8 || v->d != a->d ||
        !ops_has_kernel(ctx, &ops_decode_attention, i))
      continue;
    last = i;
    if (v->rows >= a->heads / a->kv_heads) break;
  }
  return last;
}

static int combining(int64_t v_dim) {
  for (int i = 0; i < DECODE_KERNELS; i++)
    if (!variants[i].kind && variants[i].v_dim == v_dim) return i;
  return 0; // the checks leave no other shapes
}

// Tokens of a part: at least `part`, whose bytes in the cache are 64 times those of its sums (heads of 256 in 16 bits, whose parts' ends take
// longest: 512 times), and from DECODE_PARTS parts on up to `most`; sequences up to `whole` are not cut. It depends on the heads' shape and the sequence's length alone, so that a
// sequence's bits do not depend on the batch.
typedef struct Lengths {
  int64_t whole, part, most, many, coarse; // coarse: of sequences of fewer than `many` parts
} Lengths;

static int64_t tokens_of(int64_t bytes, int64_t row) {
  int64_t tokens = 128;
  while (tokens * row < bytes) tokens *= 2;
  return tokens;
}

// Whether an item has all of an SM, as in the variants of one block.
static bool has_sm_alone(const SolDecodeAttention *a) {
  return a->d == 128 && a->heads / a->kv_heads <= 8 && decode_cache_type(a) != SOL_FP8;
}

// Of blocks that have one part at a time: parts of 512 KiB, beside which a block's begin and end take little, but of sequences of 8 MiB on, beside which there
// may be few others, 32 parts at least. A warp's lanes hold the places of 2048 tokens, those of a team of two of 1024; with a window of up to 15 less.
static Lengths lengths_of_parts(const SolDecodeAttention *a) {
  int64_t row = row_bytes(a), ways = a->heads / a->kv_heads > (a->d == 256 ? 8 : 16) ? 2 : 1,
          most = (a->window ? 1024 : 2048) / ways, coarse = tokens_of(1 << 19, row);
  if (coarse > most) coarse = most;
  return (Lengths){coarse, coarse / 2 < 128 ? 128 : coarse / 2, most, DECODE_PARTS, coarse};
}

// MLA: a part takes a whole SM. Of more than 16 heads a part of 2048 tokens has sums of about a twentieth of its bytes for each tile of 64 heads. Longer sequences
// have two items at least: parts where there is one tile of heads, else the tiles of an uncut one of up to 4096 tokens.
static Lengths lengths_of_latent(int64_t group) {
  int64_t tokens = group > DECODE_ROWS ? 2048 : 1024;
  bool one_tile = group > DECODE_ROWS && group <= DECODE_WIDE_ROWS;
  return (Lengths){one_tile ? tokens : 2 * tokens, tokens, tokens, DECODE_PARTS, tokens};
}

static Lengths lengths_of(const SolDecodeAttention *a, int how) {
  if (how == PARTS_ALONE) return lengths_of_parts(a);
  int64_t row = row_bytes(a), group = a->heads / a->kv_heads, most = 1 << 20;
  bool long_ends = a->d == 256 && decode_cache_type(a) != SOL_FP8; // of blocks' parts
  int64_t sums = (long_ends ? 512 : 64) * group * a->v_dim * 4, low = has_sm_alone(a) ? 1 << 19 : 1 << 18;
  if (a->d == DECODE_LATENT) return lengths_of_latent(group);
  if (is_alone(a)) {
    int64_t bytes = 128 * a->v_dim * 4,
            tokens = (bytes < DECODE_ALONE_BYTES ? DECODE_ALONE_BYTES : bytes) / row;
    return (Lengths){tokens, tokens, tokens_of(most / 4, row), DECODE_ALONE_PARTS, tokens};
  }
  int64_t least = tokens_of(sums < low    ? low
                            : sums > most ? most
                                          : sums,
                            row),
          whole = tokens_of(2 * low, row);
  return (Lengths){least > whole || long_ends ? least : whole, least, tokens_of(most, row), DECODE_PARTS,
                   least};
}

// The most that a sequence of up to max_length tokens has: as many blocks are launched. Those that are cut into the shortest parts have no more
// than DECODE_PARTS, which may be more than longer ones have.
static int64_t parts_of(const SolDecodeAttention *a, int how) {
  Lengths x = lengths_of(a, how);
  int64_t seen = a->window && a->window < a->max_length ? a->window : a->max_length,
          most = ops_ceil_div(seen, x.most),
          least = ops_ceil_div(seen, seen < x.part * x.many ? x.coarse : x.part);
  if (seen <= x.whole) return seen > 0;
  if (least > x.many) least = x.many;
  return most > least ? most : least;
}

int64_t decode_workspace(const SolDecodeAttention *a) {
  if (!a->heads || !a->kv_heads) return 0;
  int64_t parts = parts_of(a, WARPS_TOGETHER), boxes = a->d == DECODE_LATENT ? 0 : parts_of(a, PARTS_ALONE);
  if (boxes > parts) parts = boxes; // whichever runs: that depends on addresses, too
  return parts > 1 ? parts * a->batch * a->heads * (a->v_dim + 2) * 4 : 0;
}

// -1: not a power of two.
static int log2_of(int64_t x) {
  int n = 0;
  while (x >> n > 1) n++;
  return x == (int64_t)1 << n ? n : -1;
}

static DecodeParams params_of(const SolDecodeAttention *a, const Variant *v) {
  int64_t parts = parts_of(a, v->how), all = parts * a->batch * a->heads, group = a->heads / a->kv_heads;
  float *sums = a->workspace;
  Lengths lengths = lengths_of(a, v->how);
  bool aligned = !((uintptr_t)a->k_cache % 16) && !((uintptr_t)a->v_cache % 16),
       q_aligned = !((uintptr_t)a->q % 16) && a->q_stride % 8 == 0;
  return (DecodeParams){.o = a->o,
                        .q = a->q,
                        .k_cache = a->k_cache,
                        .v_cache = a->v_cache,
                        .table = a->table,
                        .lengths = a->lengths,
                        .lse = a->lse,
                        .sums = sums,
                        .mosts = sums ? sums + all * a->v_dim : NULL,
                        .weights = sums ? sums + all * (a->v_dim + 1) : NULL,
                        .o_row = a->o_stride,
                        .q_row = a->q_stride,
                        .batch = (int)a->batch,
                        .heads = (int)a->heads,
                        .kv_heads = (int)a->kv_heads,
                        .group = (int)group,
                        .tiles = (int)ops_ceil_div(group, v->rows),
                        .pages = (int)a->pages,
                        .page_size = (int)a->page_size,
                        .page_shift = log2_of(a->page_size),
                        .table_pages = (int)a->table_pages,
                        .capacity = (int)a->max_length,
                        .window = (int)a->window,
                        .whole = (int)lengths.whole,
                        .part = (int)lengths.part,
                        .part_most = (int)lengths.most,
                        .many = (int)lengths.many,
                        .coarse = (int)lengths.coarse,
                        .parts = (int)parts,
                        .step = v->step,
                        .hint = (int)(DECODE_HINT / row_bytes(a)),
                        .aligned = aligned,
                        .q_aligned = q_aligned,
                        .slots = parts > DECODE_SLOTS ? DECODE_SLOTS : 1,
                        .kind = ops_kind(a->dtype),
                        .scale = a->scale * a->k_scale,
                        .soft_cap = a->soft_cap,
                        .v_scale = a->v_scale};
}

static SolStatus check_workspace(const SolDecodeAttention *a) {
  int64_t wanted = decode_workspace(a);
  if (a->workspace_bytes < wanted)
    return ops_fail(
        SOL_ERR_ARGUMENT,
        "decode_attention: needs a workspace of %lld bytes (sol_decode_attention_workspace), not %lld",
        (long long)wanted, (long long)a->workspace_bytes);
  return SOL_OK;
}

static SolStatus make_map(SolContext *ctx, const SolDecodeAttention *a, const void *cache, int how,
                          DecodeMap *out) {
  uint64_t size = (uint64_t)ops_size(decode_cache_type(a)), row = (uint64_t)a->d * size,
           wide = row < 128 ? row : 128, token = row * (uint64_t)a->kv_heads;
  uint32_t tokens = how == WITH_SHORT_BOXES ? DECODE_WIDE_BOX : 16;
  SolTensorMap m = {
      .base = (uintptr_t)cache,
      .dims = {wide / size, (uint64_t)a->page_size, row / wide, (uint64_t)a->kv_heads, (uint64_t)a->pages},
      .strides = {size, token, wide, row, token * (uint64_t)a->page_size},
      .box = {(uint32_t)(wide / size), tokens, (uint32_t)(row / wide), 1, 1},
      .steps = {1, 1, 1, 1, 1},
      .rank = 5,
      .type = size == 1 ? SOL_TENSOR_U8 : SOL_TENSOR_U16,
      .swizzle = wide == 128 ? SOL_TENSOR_SWIZZLE_128B : SOL_TENSOR_SWIZZLE_64B,
      // Promoted, L2 would fetch the neighbours of what is copied, which other blocks fetch anyway. Measured on an H200, 8x8x8192x128: 1.13 of light
      // with promotion to 256 bytes, 1.09 without.
      .unpromoted = true};
  SolError err;
  SolStatus status = sol_driver_tensor_map(ctx->driver, &m, (uint8_t *)out, &err);
  return status ? ops_fail(status, "decode_attention: %s", err.message) : SOL_OK;
}

// Of blocks that have one part each, as many as there are parts, so that the hardware deals them out; where sequences may be much shorter than the most, so
// that most blocks would have none, several parts each. With few parts a block takes more of the SM's shared memory than it needs: those of a kernel
// that starts while its predecessor ends would all go to the SMs that are done first.
static void spread_blocks(const SolContext *ctx, const Variant *v, int64_t items, OpsLaunch *l,
                          int64_t *blocks) {
  int64_t each = ops_ceil_div(items, ctx->sms);
  l->shared = each < v->blocks ? (uint32_t)(DECODE_PART_ROOM / each - 1024) / 128 * 128 : needed[l->kernel];
  *blocks *= DECODE_PART_WAVES;
}

SolStatus decode_launch(SolContext *ctx, const void *args, SolStream stream) {
  SolDecodeAttention a = decode_filled(args);
  SolStatus status = check_workspace(&a);
  if (status) return status;
  int kernel = kernel_for(ctx, &a);
  const Variant *v = &variants[kernel];
  DecodeParams p = params_of(&a, v);
  int64_t items = a.batch * a.kv_heads * p.tiles * (p.parts ? p.parts : 1),
          blocks = (int64_t)ctx->sms * v->blocks;
  OpsLaunch l = {.kernel = kernel,
                 .block = (uint32_t)v->threads,
                 .shared = decode_shared[kernel],
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  if (v->how == PARTS_ALONE) spread_blocks(ctx, v, items, &l, &blocks);
  if (v->how == WARPS_ALONE) items = ops_ceil_div(items, v->threads / 32);
  l.grid[0] = (uint32_t)(items < blocks ? items : blocks);
  DecodeBoxParams boxes = {.all = p};
  if (v->how == WITH_BOXES || v->how == WITH_SHORT_BOXES || v->how == PARTS_ALONE) {
    status = make_map(ctx, &a, a.k_cache, v->how, &boxes.k);
    if (!status && a.v_cache) status = make_map(ctx, &a, a.v_cache, v->how, &boxes.v);
    if (status) return status;
    l.params = &boxes, l.bytes = sizeof boxes, l.one_param = true;
  }
  status = ops_launch(ctx, &ops_decode_attention, &l, stream);
  if (status || p.parts < 2) return status;
  l.params = &p, l.bytes = sizeof p, l.one_param = false;
  l.kernel = combining(a.v_dim), l.shared = 0, l.block = DECODE_SLOTS * 32;
  ops_grid(l.grid, (uint64_t)ops_ceil_div(a.batch * a.heads, DECODE_SLOTS / p.slots), 1);
  return ops_launch(ctx, &ops_decode_attention, &l, stream);
}
