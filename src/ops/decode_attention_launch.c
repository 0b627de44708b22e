// How sequences are cut into parts, and the two kernels: one for the parts, one that adds them up.
#include "kernels/common.h"
#include "ops/decode_attention_parts.h"

const char *const decode_kernels[DECODE_KERNELS] = {
#define SPLIT(kind, fp8, d, v) "sol_decode_attention_" #kind "_" #fp8 "_" #d,
#define MANY(kind, fp8, d, v)  "sol_decode_attention_many_" #kind "_" #fp8 "_" #d,
#define COMBINE(v)             "sol_decode_attention_combine_" #v,
#include "kernels/decode_attention/decode_attention.def"
};

const uint32_t decode_shared[DECODE_KERNELS] = {
#define SPLIT(kind, fp8, d, v) DECODE_SHARED(DECODE_ROWS, d, v, 2 - (fp8)),
#define MANY(kind, fp8, d, v)  DECODE_SHARED(DECODE_MANY_ROWS, d, v, 2 - (fp8)),
#define COMBINE(v)             0,
#include "kernels/decode_attention/decode_attention.def"
};

typedef struct Variant {
  int kind, fp8;
  int64_t rows, d, v_dim; // rows: heads of a block; kind 0: adds up the parts
} Variant;
static const Variant variants[DECODE_KERNELS] = {
#define SPLIT(kind, fp8, d, v) {kind, fp8, DECODE_ROWS, d, v},
#define MANY(kind, fp8, d, v)  {kind, fp8, DECODE_MANY_ROWS, d, v},
#define COMBINE(v)             {0, 0, 0, 0, v},
#include "kernels/decode_attention/decode_attention.def"
};

static int kernel_for(int kind, int fp8, int64_t rows, int64_t d, int64_t v_dim) {
  for (int i = 0; i < DECODE_KERNELS; i++) {
    const Variant *v = &variants[i];
    if (v->kind == kind && v->fp8 == fp8 && v->rows == rows && v->d == d && v->v_dim == v_dim) return i;
  }
  return 0; // the checks leave no other shapes
}

// Tokens of a part: so many that its bytes in the cache are at least 64 times those of its sums, but 128 KiB to 1 MiB. It depends
// on the heads' shape alone, so that a sequence's bits do not depend on the batch.
static int64_t part_length(const SolDecodeAttention *a) {
  int64_t bytes = DECODE_ROW_BYTES(a->d, a->v_dim, ops_size(decode_cache_type(a)));
  int64_t wanted = 64 * (a->heads / a->kv_heads) * a->v_dim * 4, tokens = 128;
  if (wanted < 1 << 17) wanted = 1 << 17;
  if (wanted > 1 << 20) wanted = 1 << 20;
  while (tokens * bytes < wanted) tokens *= 2;
  return tokens;
}

static int64_t parts_of(const SolDecodeAttention *a) {
  int64_t seen = a->window && a->window < a->max_length ? a->window : a->max_length;
  return ops_ceil_div(seen, part_length(a));
}

int64_t decode_workspace(const SolDecodeAttention *a) {
  int64_t parts = a->heads && a->kv_heads ? parts_of(a) : 0;
  return parts > 1 ? parts * a->batch * a->heads * (a->v_dim + 2) * 4 : 0;
}

// Heads of a block.
static int rows_of(const SolDecodeAttention *a) {
  return a->d == DECODE_LATENT && a->heads / a->kv_heads > DECODE_ROWS ? DECODE_MANY_ROWS : DECODE_ROWS;
}

static DecodeParams params_of(const SolDecodeAttention *a) {
  int64_t parts = parts_of(a), all = parts * a->batch * a->heads, group = a->heads / a->kv_heads;
  float *sums = a->workspace;
  bool aligned = !((uintptr_t)a->k_cache % 16) && !((uintptr_t)a->v_cache % 16);
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
                        .rows = a->pages * a->page_size,
                        .batch = (int)a->batch,
                        .heads = (int)a->heads,
                        .kv_heads = (int)a->kv_heads,
                        .group = (int)group,
                        .tiles = (int)ops_ceil_div(group, rows_of(a)),
                        .page_size = (int)a->page_size,
                        .table_pages = (int)a->table_pages,
                        .capacity = (int)a->max_length,
                        .window = (int)a->window,
                        .part = (int)part_length(a),
                        .parts = (int)parts,
                        .aligned = aligned,
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
  DecodeParams p = params_of(&a);
  int fp8 = decode_cache_type(&a) == SOL_FP8;
  int64_t items = a.batch * a.kv_heads * p.tiles * (p.parts ? p.parts : 1),
          blocks = (int64_t)ctx->sms * (a.d == DECODE_LATENT ? 1 : 2);
  OpsLaunch l = {.kernel = kernel_for(fp8 ? KIND_FP16 : p.kind, fp8, rows_of(&a), a.d, a.v_dim),
                 .block = DECODE_THREADS,
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  l.shared = decode_shared[l.kernel];
  if (rows_of(&a) > DECODE_ROWS) l.block = DECODE_THREADS * DECODE_MANY_GROUPS;
  l.grid[0] = (uint32_t)(items < blocks ? items : blocks);
  status = ops_launch(ctx, &ops_decode_attention, &l, stream);
  if (status || p.parts < 2) return status;
  l.kernel = kernel_for(0, 0, 0, 0, a.v_dim), l.shared = 0, l.block = DECODE_THREADS;
  ops_grid(l.grid, (uint64_t)(a.batch * a.heads), 1);
  return ops_launch(ctx, &ops_decode_attention, &l, stream);
}
