// Attention: projections, norms of q and k, rotation, the cache, the product itself. run->fused folds the
// norms of q and k, the rotation and the append to the cache into one kernel.
//
// Latent attention runs in two forms. Prefill expands the latent into keys and values of every head. Decode
// never does: the half of the kv up projection that makes keys is applied to q instead, the half that makes
// values to the output, and attention runs over the latent itself, one kv head shared by all, of which the
// values are a part.
#include "roofline/model_pass.h"

static SolKernelName named(const char *name, const char *op) {
  return (SolKernelName){name, "attention", op};
}

static SolKernelName named_link(const char *name, const char *op) {
  return (SolKernelName){name, "link", op};
}

static double layers(const SolModelPass *p) {
  return (double)p->c->layers;
}

static void head_norm(SolModelPass *p, const char *name, int64_t rows, int64_t width) {
  sol_model_add(p, (SolKernelName){name, "norm", "rmsnorm"}, layers(p),
                sol_model_norm_cost(p, rows, width, SOL_NORM_RMS), 2 * (double)rows * (double)width);
}

static SolCost rope_cost(SolModelPass *p, int64_t heads) {
  // The table of cosines is no weight: it is made in the type of the activations.
  return sol_model_cost(p, "rope",
                        (SolOpArgs){.dim = {p->tokens, heads, p->s.rope_dim}, .weight_dtype = p->run->dtype});
}

// Cost of writing one token after another into the cache: two tensors of `width`, or one latent.
static SolCost append_cost(SolModelPass *p) {
  double t = (double)p->tokens, n = t * (double)(p->c->kv_lora_rank + p->s.rope_dim);
  if (!p->c->kv_lora_rank)
    return sol_model_cost(p, "kv_append", (SolOpArgs){.dim = {p->tokens, p->s.kv_heads, p->c->head_dim}});
  return sol_model_raw(p, sol_model_bytes(n, p->run->dtype) + 4 * t, sol_model_bytes(n, p->run->kv_dtype), 0);
}

static double q_and_kv(const SolModelPass *p) {
  const SolModelConfig *c = p->c;
  int64_t kv = c->kv_lora_rank ? c->kv_lora_rank + p->s.rope_dim : 2 * p->s.kv_heads * c->head_dim;
  return (double)p->tokens * (double)(p->s.heads * c->head_dim + kv);
}

typedef struct QkNorm {
  int64_t q_rows, k_rows, q_width, k_width;
} QkNorm;

static QkNorm qk_norm_shape(const SolModelPass *p) {
  int64_t t = p->tokens, q = p->s.heads, k = p->s.kv_heads, d = p->c->head_dim;
  if (p->c->qk_norm == SOL_QK_NORM_WIDTH) return (QkNorm){t, t, q * d, k * d};
  return (QkNorm){t * q, t * k, d, d};
}

// q and k normed and rotated, k and v stored, in one kernel: each element is read and written once.
static void store_fused(SolModelPass *p) {
  bool normed = p->c->qk_norm && !p->c->kv_lora_rank;
  bool latent = p->c->kv_lora_rank > 0;
  SolCost cost = append_cost(p);
  if (p->s.rope_dim) {
    cost.flops += rope_cost(p, p->s.heads + (latent ? 1 : p->s.kv_heads)).flops;
    cost.bytes_read += sol_model_bytes((double)p->tokens * (double)p->s.rope_dim, p->run->dtype);
  }
  if (normed) {
    QkNorm n = qk_norm_shape(p);
    SolCost q = sol_model_norm_cost(p, n.q_rows, n.q_width, SOL_NORM_RMS);
    SolCost k = sol_model_norm_cost(p, n.k_rows, n.k_width, SOL_NORM_RMS);
    cost.flops += q.flops + k.flops;
    cost.bytes_read += sol_model_bytes((double)(n.q_width + n.k_width), sol_model_other_dtype(p));
  }
  // Of q only what changes: all of it where it is normed, else what is rotated.
  double width = (double)(normed ? p->c->head_dim : p->s.rope_dim);
  double q_bytes = sol_model_bytes((double)p->tokens * (double)p->s.heads * width, p->run->dtype);
  cost.bytes_read += q_bytes;
  cost.bytes_written += q_bytes;
  SolKernelName name = normed && p->s.rope_dim ? named("qk norm, rope, kv append", "qk_norm_rope_append")
                       : normed                ? named("qk norm, kv append", "qk_norm_append")
                                               : named("rope, kv append", "rope_append");
  sol_model_add(p, name, layers(p), cost, q_and_kv(p));
}

static void store(SolModelPass *p) {
  bool latent = p->c->kv_lora_rank > 0, normed = p->c->qk_norm && !latent;
  if (p->run->fused && (normed || p->s.rope_dim)) {
    store_fused(p);
    return;
  }
  if (normed) {
    QkNorm n = qk_norm_shape(p);
    head_norm(p, "q norm", n.q_rows, n.q_width);
    head_norm(p, "k norm", n.k_rows, n.k_width);
  }
  if (p->s.rope_dim) {
    int64_t heads = p->s.heads + (latent ? 1 : p->s.kv_heads);
    double live = 2 * (double)p->tokens * (double)heads * (double)p->s.rope_dim;
    sol_model_add(p, named("rope", "rope"), layers(p), rope_cost(p, heads), live);
  }
  sol_model_add(p, named("kv append", "kv_append"), layers(p), append_cost(p), q_and_kv(p));
}

// What the GPUs that share a sequence tell each other, in each of `count` layers. Of a prompt the keys and values go
// round behind attention; of a decoding step the partial results are gathered, with their maxima and sums, in fp32.
static void share_sequence(SolModelPass *p, double count, int64_t cached, int64_t heads, int64_t v_dim) {
  SolFabricGroup g = sol_model_cp_group(p);
  double attention_us = p->last_us, others = (double)(g.gpus - 1);
  if (g.gpus < 2) return;
  if (p->run->phase == SOL_PHASE_DECODE) {
    double each = 4 * (double)p->tokens * (double)heads * (double)(v_dim + 2);
    sol_model_add_link(p, named_link("gather partial attention", "all_gather"), count,
                       sol_fabric_all_gather(&g, each), 0);
    return;
  }
  int64_t a_token = p->c->kv_lora_rank ? p->c->kv_lora_rank + p->s.rope_dim
                                       : p->s.kv_heads * (p->c->head_dim + p->s.v_head_dim);
  double tokens = (double)p->batch * (double)sol_model_part(cached, g.gpus);
  SolFabricTime one = sol_fabric_send(&g, sol_model_bytes(tokens * (double)a_token, p->run->kv_dtype));
  SolFabricTime round = {one.sent * others, one.us * others, one.how};
  sol_model_add_link(p, named_link("pass keys and values round", "send"), count, round,
                     round.us < attention_us ? round.us : attention_us);
}

// Of a prompt each GPU has its part of the queries and sees all keys; of a decoding step it has part of the cache.
static SolCost part_of_sequence(SolModelPass *p, SolOpArgs args) {
  int64_t cp = p->run->cp;
  if (p->run->phase == SOL_PHASE_DECODE) {
    args.dim[2] = sol_model_part(args.dim[2], cp);
    if (args.dim[2] < args.queries) args.dim[2] = args.queries;
    return sol_model_cost(p, "attention", args);
  }
  SolCost cost = sol_model_cost(p, "attention", args);
  double q = sol_model_bytes(
      (double)args.dim[0] * (double)args.dim[1] * (double)p->queries * (double)args.dim[3], p->run->dtype);
  cost.bytes_read -= q - q / (double)cp;
  cost.bytes_written /= (double)cp;
  cost.flops /= (double)cp;
  return cost;
}

// softmax(q k') v, layers with and without a window apart.
static void attend(SolModelPass *p, SolOpArgs args, bool values_in_keys) {
  double windowed = (double)p->c->sliding_layers;
  args.phase = SOL_PHASE_DECODE; // `queries` new tokens after those in the cache: of a prompt, perhaps none
  args.queries = p->queries;
  args.dim[0] = p->batch;
  args.dim[2] = p->kv_length;
  double width = (double)(args.dim[3] + (args.v_dim ? args.v_dim : args.dim[3]));
  double live = (double)p->tokens * (double)args.dim[1] * width;
  for (int window = 0; window < 2; window++) {
    double count = window ? windowed : layers(p) - windowed;
    if (count <= 0) continue;
    args.window = window && p->c->sliding_window < p->kv_length ? p->c->sliding_window : 0;
    int64_t v_dim = args.v_dim ? args.v_dim : args.dim[3];
    SolCost cost = part_of_sequence(p, args);
    int64_t seen = args.window ? args.window : p->kv_length;
    if (values_in_keys)
      cost.bytes_read -= sol_model_bytes(
          (double)p->batch * (double)sol_model_part(seen, p->run->cp) * (double)args.v_dim, p->run->kv_dtype);
    sol_model_add(p, named(window ? "attention, windowed" : "attention", "attention"), count, cost, live);
    share_sequence(p, count, seen, args.dim[1], v_dim);
  }
}

// One half of the kv up projection, head by head: `in` columns of each head become `out`.
static void per_head(SolModelPass *p, const char *name, int64_t in, int64_t out) {
  SolDtype dtype = sol_model_matrix_dtype(p, SOL_MATRIX_KV_UP);
  SolCost cost = sol_model_cost(p, "gemm", (SolOpArgs){.dim = {p->tokens, out, in}, .weight_dtype = dtype});
  double heads = (double)p->s.heads;
  cost.bytes_read *= heads;
  cost.bytes_written *= heads;
  cost.flops *= heads;
  sol_model_add(p, named(name, "gemm"), layers(p), cost, (double)p->tokens * heads * (double)(in + out));
}

static void latent_attention(SolModelPass *p) {
  const SolModelConfig *c = p->c;
  const SolModelShape *s = &p->s;
  sol_model_gemm(p, SOL_MATRIX_Q_DOWN, p->tokens);
  if (c->q_lora_rank) head_norm(p, "q norm", p->tokens, c->q_lora_rank);
  sol_model_gemm(p, SOL_MATRIX_Q_UP, p->tokens);
  sol_model_gemm(p, SOL_MATRIX_KV_DOWN, p->tokens);
  head_norm(p, "latent norm", p->tokens, c->kv_lora_rank);
  store(p);
  if (p->run->phase == SOL_PHASE_PREFILL) {
    // Of what is in the cache already too.
    sol_model_gemm(p, SOL_MATRIX_KV_UP, p->batch * sol_model_part(p->kv_length, p->run->cp));
    // Keys and values just made, in the type of the activations.
    attend(
        p,
        (SolOpArgs){.dim = {0, s->heads, 0, c->head_dim}, .v_dim = s->v_head_dim, .kv_dtype = p->run->dtype},
        false);
    return;
  }
  per_head(p, "kv up projection on q", s->nope_dim, c->kv_lora_rank);
  attend(p,
         (SolOpArgs){
             .dim = {0, s->heads, 0, c->kv_lora_rank + s->rope_dim}, .kv_heads = 1, .v_dim = c->kv_lora_rank},
         true);
  per_head(p, "kv up projection on output", c->kv_lora_rank, s->v_head_dim);
}

void sol_model_attention(SolModelPass *p) {
  if (p->c->kv_lora_rank) {
    latent_attention(p);
  } else {
    sol_model_gemm(p, SOL_MATRIX_QKV, p->tokens);
    store(p);
    bool alone = p->run->ungrouped && p->run->phase == SOL_PHASE_DECODE;
    attend(p,
           (SolOpArgs){.dim = {0, p->s.heads, 0, p->c->head_dim},
                       .kv_heads = alone ? p->s.heads : p->s.kv_heads},
           false);
  }
  sol_model_gemm(p, SOL_MATRIX_OUT, p->tokens);
}
