// How sequences are cut into parts, and the kernel for the parts, which adds them up too.
#include <stdlib.h>

#include "kernels/common.h"
#include "ops/decode_attention_parts.h"

const char *const decode_kernels[DECODE_KERNELS] = {
#define HEADS(kind, fp8, d, tiles, keys, warps, stages)                                                      \
  "sol_decode_attention_" #kind "_" #fp8 "_" #d "_" #tiles,
#define LATENT(kind, fp8) "sol_decode_attention_latent_" #kind "_" #fp8,
#define MANY(kind, fp8)   "sol_decode_attention_many_" #kind "_" #fp8,
#define FEW(kind)         "sol_decode_attention_few_" #kind,
#define WIDE(kind)        "sol_decode_attention_wide_" #kind,
#include "kernels/decode_attention/decode_attention.def"
};

const uint32_t decode_shared[DECODE_KERNELS] = {
#define HEADS(kind, fp8, d, tiles, keys, warps, stages)                                                      \
  DECODE_HEADS_SHARED(tiles, d, 2 - (fp8), keys, warps, stages),
#define LATENT(kind, fp8)                                       DECODE_LATENT_SHARED(DECODE_ROWS, 2 - (fp8)),
#define MANY(kind, fp8)                                         DECODE_LATENT_SHARED(DECODE_MANY_ROWS, 2 - (fp8)),
#define FEW(kind)                                               DECODE_FEW_SHARED,
#define WIDE(kind)                                              DECODE_WIDE_SHARED,
#include "kernels/decode_attention/decode_attention.def"
};

typedef struct Variant {
  int kind, fp8;
  int64_t d;
  int rows, warps, keys, stages; // rows: heads of a block; keys: tokens at a time, with stages: of a warp
} Variant;
static const Variant variants[DECODE_KERNELS] = {
#define HEADS(kind, fp8, d, tiles, keys, warps, stages) {kind, fp8, d, 8 * (tiles), warps, keys, stages},
#define LATENT(kind, fp8)                               {kind, fp8, DECODE_LATENT, DECODE_ROWS, DECODE_THREADS / 32, 64, 0},
#define MANY(kind, fp8)                                                                                      \
  {kind, fp8, DECODE_LATENT, DECODE_MANY_ROWS, DECODE_THREADS / 32 * DECODE_MANY_GROUPS, 64, 0},
#define FEW(kind)  {kind, 0, 0, DECODE_ROWS, 8, 64, 0}, // d 0: not by shape alone
#define WIDE(kind) {kind, 0, 0, DECODE_WIDE_ROWS, 8, 64, 0},
#include "kernels/decode_attention/decode_attention.def"
};

// Of the variants for the shape the first with room for all heads that share one of K, or else the last. MLA's of sm_90a
// goes before the others.
static int kernel_for(SolContext *ctx, const SolDecodeAttention *a) {
  int fp8 = decode_cache_type(a) == SOL_FP8, kind = fp8 ? KIND_FP16 : ops_kind(a->dtype), last = 0;
  int wide = kind == KIND_FP16 ? DECODE_WIDE_1 : DECODE_WIDE_2,
      few = kind == KIND_FP16 ? DECODE_FEW_1 : DECODE_FEW_2;
  if (a->d == DECODE_LATENT && !fp8 && ctx->cc >= 90 && ops_has_kernel(ctx, &ops_decode_attention, wide))
    return a->heads / a->kv_heads <= DECODE_ROWS && (uintptr_t)a->k_cache % 16 == 0 ? few : wide;
  for (int i = 0; i < DECODE_KERNELS; i++) {
    const Variant *v = &variants[i];
    if (v->kind != kind || v->fp8 != fp8 || v->d != a->d) continue;
    last = i;
    if (v->rows >= a->heads / a->kv_heads) break;
  }
  return last;
}

// What a launch of a variant has on this GPU.
typedef struct Shape {
  int threads, step; // step: tokens that a block has at a time
  uint32_t shared;
} Shape;
static Shape shape_of(const SolContext *ctx, int kernel) {
  const Variant *v = &variants[kernel];
  if (!v->stages) return (Shape){v->warps * 32, v->keys, decode_shared[kernel]};
  int warps = DECODE_WARPS_ON(ctx->cc, v->warps), stages = DECODE_RING_ON(ctx->cc, v->stages);
  return (Shape){DECODE_HEADS_THREADS(warps), v->keys * warps,
                 (uint32_t)DECODE_HEADS_SHARED(v->rows / 8, (int)v->d, 2 - v->fp8, v->keys, warps, stages)};
}

// Tokens of a part: at least `part`, whose bytes in the cache are 64 times those of its sums, and from DECODE_PARTS parts on up to `most`;
// sequences up to `whole` are not cut. It depends on the heads' shape and the sequence's length alone, so that a sequence's bits do not
// depend on the batch.
typedef struct Lengths {
  int64_t whole, part, most;
} Lengths;

static int64_t tokens_of(int64_t bytes, int64_t row) {
  int64_t tokens = 128;
  while (tokens * row < bytes) tokens *= 2;
  return tokens;
}

static int64_t row_bytes(const SolDecodeAttention *a) { // of a token, for one head of K and V
  return DECODE_ROW_BYTES(a->d, a->v_dim, ops_size(decode_cache_type(a)));
}

static int64_t within(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

static Lengths lengths_of(const SolDecodeAttention *a) {
  int64_t row = row_bytes(a), group = a->heads / a->kv_heads, most = 1 << 20, low = 1 << 18;
  if (getenv("DECODE_LOW")) low = atoi(getenv("DECODE_LOW")) << 10;
  if (a->d == DECODE_LATENT) {
    int64_t tokens = group > DECODE_ROWS ? 2048 : 1024;
    if (getenv("DECODE_MLA")) tokens = atoi(getenv("DECODE_MLA"));
    return (Lengths){2 * tokens, tokens, tokens};
  }
  int64_t part = tokens_of(within(64 * group * a->v_dim * 4, low, most), row);
  return (Lengths){part, part, tokens_of(most, row)};
}

// The most that a sequence has. Those that are cut into the shortest parts have no more than DECODE_PARTS.
static int64_t parts_of(const SolDecodeAttention *a) {
  Lengths x = lengths_of(a);
  int64_t seen = a->window && a->window < a->max_length ? a->window : a->max_length,
          most = ops_ceil_div(seen, x.most), least = ops_ceil_div(seen, x.part);
  if (seen <= x.whole) return seen > 0;
  if (least > DECODE_PARTS) least = DECODE_PARTS;
  return most > least ? most : least;
}

int64_t decode_workspace(const SolDecodeAttention *a) {
  int64_t parts = a->heads && a->kv_heads ? parts_of(a) : 0;
  return parts > 1 ? parts * a->batch * a->heads * ((a->v_dim + 2) * 4 + 8) + 8 : 0; // flags begin at 8 bytes
}

// -1: not a power of two.
static int log2_of(int64_t x) {
  int n = 0;
  while (x >> n > 1) n++;
  return x == (int64_t)1 << n ? n : -1;
}

// What flags are set to: nothing that the workspace may have by chance, and nothing that another launch in it leaves.
static uint64_t sign_of(const SolDecodeAttention *a) {
  return ((uint64_t)(uintptr_t)a->workspace ^ (uint64_t)a->batch << 40) * 0x9e3779b97f4a7c15u ^ 0xd1b54a32d192ed03u;
}

static DecodeParams params_of(const SolDecodeAttention *a, const Variant *v, int step) {
  int64_t parts = parts_of(a), all = parts * a->batch * a->heads, group = a->heads / a->kv_heads;
  float *sums = a->workspace;
  Lengths lengths = lengths_of(a);
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
                        .flags = (unsigned long long *)(((uintptr_t)(sums + all * (a->v_dim + 2)) + 7) / 8 * 8),
                        .sign = sign_of(a),
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
                        .parts = (int)parts,
                        .step = step,
                        .hint = (int)((getenv("DECODE_HINT_K") ? atoi(getenv("DECODE_HINT_K")) << 10 : DECODE_HINT) / row_bytes(a)),
                        .aligned = aligned,
                        .q_aligned = q_aligned,
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

SolStatus decode_launch(SolContext *ctx, const void *args, SolStream stream) {
  SolDecodeAttention a = decode_filled(args);
  SolStatus status = check_workspace(&a);
  if (status) return status;
  int kernel = kernel_for(ctx, &a);
  Shape shape = shape_of(ctx, kernel);
  DecodeParams p = params_of(&a, &variants[kernel], shape.step);
  int64_t items = a.batch * a.kv_heads * p.tiles * (p.parts ? p.parts : 1);
  OpsLaunch l = {.kernel = kernel,
                 .block = (uint32_t)shape.threads,
                 .shared = shape.shared,
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  l.grid[0] = (uint32_t)(items < ctx->sms ? items : ctx->sms);
  return ops_launch(ctx, &ops_decode_attention, &l, stream);
}
