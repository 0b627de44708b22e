// Attention: from scores in memory to warpgroups that take turns.
#include <math.h>

#include "base/error.h"
#include "base/heap.h"
#include "kernels/attention/rungs.h"
#include "ladder/ladder_jobs.h"
#include "ops/attention_parts.h"

enum { O, Q, K, V, SCORES, WEIGHTS };

// Tensors are (tokens, heads, 128).
static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t heads = c->dim[0], tokens = c->dim[1], all = heads * tokens * RUNG_D;
  b[O] = ladder_output(c, "o", all);
  b[Q] = ladder_input(c, "q", all);
  b[K] = ladder_input(c, "k", all);
  b[V] = ladder_input(c, "v", all);
  b[SCORES] = (LadderBuffer){.name = "scores",
                             .dtype = SOL_FP32,
                             .count = heads * tokens * tokens,
                             .role = OPS_OUT,
                             .scratch = true};
  b[WEIGHTS] = (LadderBuffer){.name = "weights",
                              .dtype = SOL_BF16,
                              .count = heads * tokens * tokens,
                              .role = OPS_OUT,
                              .scratch = true};
  return 6;
}

// Not a matter of bytes: a copy of the tensors says nothing about it.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)c, (void)rung;
  return 0;
}

// A row of O takes as many products for its scores as for itself.
static double terms(const LadderCase *c) {
  return 2 * (double)c->dim[1];
}

// A query of one head.
static int64_t unit(const LadderCase *c, int buffer) {
  (void)c, (void)buffer;
  return RUNG_D;
}

static double score_at(const LadderHost *h, int64_t query, int64_t key) {
  double sum = 0;
  for (int64_t i = 0; i < RUNG_D; i++) sum += h->value(h, Q, query + i) * h->value(h, K, key + i);
  return sum / sqrt(RUNG_D);
}

// As it goes over the keys it keeps the largest score, and rescales when that grows.
static void attend(const LadderHost *h, int64_t first, double *out) {
  int64_t wide = h->c->dim[0] * RUNG_D, head = first % wide;
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < RUNG_D; i++) out[i] = 0;
  for (int64_t key = 0; key < h->c->dim[1]; key++) {
    double score = score_at(h, first, key * wide + head), larger = score > most ? score : most;
    double by = exp(most - larger), weight = exp(score - larger);
    for (int64_t i = 0; i < RUNG_D; i++)
      out[i] = out[i] * by + weight * h->value(h, V, key * wide + head + i);
    sum = sum * by + weight, most = larger;
  }
  for (int64_t i = 0; i < RUNG_D; i++) out[i] /= sum;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t i = 0; i < count; i += RUNG_D) attend(h, first + i, out + i);
}

static SolStatus accept(const LadderCase *c, SolError *err) {
  enum { MOST_HEADS = 1024, MOST_TOKENS = 1 << 16 };
  if (c->dim[1] % 128) return sol_fail(err, SOL_ERR_RANGE, "tokens must be a multiple of 128");
  if (c->dim[0] > MOST_HEADS || c->dim[1] > MOST_TOKENS)
    return sol_fail(err, SOL_ERR_RANGE, "at most %d heads and %d tokens", MOST_HEADS, MOST_TOKENS);
  return SOL_OK;
}

static SolAttention arguments(const LadderCall *call) {
  SolAttention a = {.o = ladder_at(call, O),
                    .q = ladder_at(call, Q),
                    .k = ladder_at(call, K),
                    .v = ladder_at(call, V),
                    .batch = 1,
                    .heads = call->c.dim[0],
                    .queries = call->c.dim[1],
                    .keys = call->c.dim[1],
                    .d = RUNG_D,
                    .dtype = SOL_BF16};
  return attention_filled(&a);
}

// Three kernels, with scores and weights in memory between them.
static SolStatus in_memory(const LadderCall *call, SolError *err) {
  SolAttention a = arguments(call);
  AttentionRung p = {attention_params(&a), ladder_at(call, SCORES), ladder_at(call, WEIGHTS)};
  uint32_t heads = (uint32_t)a.heads, tiles = (uint32_t)a.queries / ATTENTION_ROWS;
  const LadderGrid grids[] = {
      {.grid = {tiles, tiles, heads}, .block = {ATTENTION_THREADS}, .one_param = true},
      {.grid = {tiles * heads * ATTENTION_ROWS / (ATTENTION_THREADS / 32)},
       .block = {ATTENTION_THREADS},
       .one_param = true},
      {.grid = {tiles, heads}, .block = {ATTENTION_THREADS}, .one_param = true}};
  static const char *const kernels[] = {"attention_scores", "attention_softmax", "attention_values"};
  SolStatus status = SOL_OK;
  for (int i = 0; i < 3 && !status; i++)
    status = ladder_launch(call, kernels[i], &grids[i], &p, sizeof p, err);
  return status;
}

// x: 1 where blocks are counted along one axis.
static SolStatus fused(const LadderCall *call, SolError *err) {
  SolAttention a = arguments(call);
  AttentionParams p = attention_params(&a);
  uint32_t tiles = (uint32_t)a.queries / ATTENTION_ROWS, heads = (uint32_t)a.heads;
  bool one = call->rung->x > 0;
  LadderGrid grid = {.grid = {one ? tiles * heads : tiles, one ? 1 : heads},
                     .block = {ATTENTION_THREADS},
                     .shared = ATTENTION_SHARED(RUNG_D),
                     .one_param = true};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

// each: threads; x: 1 where there are no more blocks than SMs.
static SolStatus tiled(const LadderCall *call, SolError *err) {
  SolAttention a = arguments(call);
  AttentionTiledParams p;
  SolStatus status = attention_tiled_params(call->ctx, &a, &p);
  if (status && err) *err = *sol_last_error();
  if (status) return status;
  uint32_t items = (uint32_t)p.rows * (uint32_t)a.heads, sms = (uint32_t)call->ctx->sms;
  bool persistent = call->rung->x > 0;
  LadderGrid grid = {
      .grid = {persistent ? items < sms ? items : sms : (uint32_t)p.rows, persistent ? 1 : (uint32_t)a.heads},
      .block = {(uint32_t)call->rung->each},
      .shared = ATTENTION_TILED_SHARED(RUNG_D),
      .one_param = true};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolAttention a = arguments(call);
  return ladder_op(call, &ops_attention, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "scores",
     .seen_on = "h200",
     .seen = "At 32x2048 it takes 858 us.",
     .change = "three kernels: Q K' to memory, its softmax, the product with V; tensor cores by mma.sync",
     .why =
         "Scores grow with the square of the tokens, and are written, read three times, written as weights and read "
         "again: memory is the limit, and the tensor cores idle for most of the time.",
     .go = in_memory,
     .kernel = "attention_scores",
     .min_cc = 90},
    {.name = "fused",
     .seen_on = "h200",
     .seen = "At 32x2048 it takes 318 us.",
     .change = "one kernel: 64 queries a block go over the keys, with the softmax rescaled as it goes",
     .why =
         "Scores stay in the registers that the second product takes them from: only Q, K, V and O move. "
         "A tile is copied when the one before has been used, so that copies' latency, mma.sync and exponentials take turns.",
     .story = LADDER_FASTER,
     .go = fused,
     .kernel = "attention_fused",
     .min_cc = 90},
    {.name = "async",
     .seen_on = "h200",
     .seen = "At 32x2048 it takes 307 us.",
     .change = "the next tile of keys and values is copied while this one is multiplied",
     .why =
         "The copies' latency is hidden. Loading fragments, multiplying and exponentials are instructions of the same "
         "warps: the tensor cores wait for the other two.",
     .story = LADDER_FASTER,
     .go = fused,
     .kernel = "attention_async",
     .x = 1,
     .min_cc = 90},
    {.name = "warpgroups",
     .seen_on = "h200",
     .seen = "At 32x2048 it takes 136 us.",
     .change = "wgmma on tiles that tensor copies (TMA) bring: 128 queries a block, 128 keys a tile",
     .why =
         "No fragments are loaded, and one thread copies. But a warpgroup waits for its scores, then does exponentials "
         "while the tensor cores idle, then waits for the product with V; and both meet after each tile.",
     .story = LADDER_FASTER,
     .go = tiled,
     .kernel = "attention_warpgroups",
     .each = 256,
     .min_cc = 90},
    {.name = "specialised",
     .seen_on = "h200",
     .seen = "With four tiles of keys for a block it gains nothing; at 32x2048 it takes 119 us.",
     .change =
         "a warp copies, two warpgroups multiply; the next scores are started before this product with V",
     .why =
         "A warpgroup's softmax goes on while the tensor cores have its product with V, and nobody meets: barriers say which stage "
         "has arrived and which has been read. When both warpgroups come to their exponentials at once, the tensor cores idle.",
     .story = LADDER_FASTER,
     .go = tiled,
     .kernel = "attention_specialised",
     .each = ATTENTION_TILED_THREADS,
     .x = 1,
     .min_cc = 90},
    {.name = "library",
     .seen_on = "h200",
     .seen = "At 32x2048 it takes 115 us, 599 TFLOP/s.",
     .change = "sol_attention: the same, and the two warpgroups take turns at starting products",
     .why =
         "One's exponentials fall into the time of the other's products: the tensor cores are the limit, where a block has "
         "tiles enough. With few tiles each, turns cost as much as they gain.",
     .story = LADDER_SAME,
     .go = library,
     .min_cc = 90},
};

const Ladder ladder_attention = {
    .name = "attention",
    .title = "Attention",
    .about =
        "O = softmax(Q K' / sqrt(128)) V in bf16, for each head, every query with every key. Two products with a softmax between "
        "them: with scores in memory it is bound by memory, without them by arithmetic, and then by how much of the "
        "exponentials' time passes while tensor cores multiply.",
    .module = "attention_rungs",
    .shape = "HxT",
    .size = {16, 512},
    .small = {1, 256},
    .dtypes = {SOL_BF16},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
    .terms = terms,
    .unit = unit,
    .slack = 65536,
};
