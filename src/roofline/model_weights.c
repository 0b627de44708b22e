#include "base/error.h"
#include "base/text.h"
#include "roofline/model_parts.h"

// `total` split over as many GPUs, or why not.
static SolStatus split(const char *by, const char *what, int64_t total, int64_t gpus, int64_t *part,
                       SolError *err) {
  if (total % gpus)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s: %lld %s cannot be split evenly over %lld GPUs", by,
                    (long long)total, what, (long long)gpus);
  *part = total / gpus;
  return SOL_OK;
}

static SolStatus split_heads(const SolModelConfig *c, int64_t tp, SolModelShape *s, SolError *err) {
  SolStatus status = split("tp", "attention heads", c->heads, tp, &s->heads, err);
  if (status) return status;
  if (c->kv_heads >= tp) return split("tp", "kv heads", c->kv_heads, tp, &s->kv_heads, err);
  if (tp % c->kv_heads)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "tp: %lld GPUs cannot share %lld kv heads evenly",
                    (long long)tp, (long long)c->kv_heads);
  s->kv_heads = 1; // each GPU keeps a copy of the one its query heads read
  return SOL_OK;
}

static void attention_matrices(const SolModelConfig *c, SolModelShape *s) {
  SolModelMatrix *m = s->matrix;
  int64_t q = s->heads * c->head_dim;
  if (!c->kv_lora_rank) {
    m[SOL_MATRIX_QKV] =
        (SolModelMatrix){"qkv projection", "attention", q + 2 * s->kv_heads * c->head_dim, c->hidden, 1,
                         c->layers,        c->qkv_bias};
  } else {
    // The down projections are small and every GPU needs their whole output, so each holds them whole.
    if (c->q_lora_rank)
      m[SOL_MATRIX_Q_DOWN] = (SolModelMatrix){"q down projection", "attention", c->q_lora_rank, c->hidden, 1,
                                              c->layers,           c->qkv_bias};
    m[SOL_MATRIX_Q_UP] = (SolModelMatrix){
        "q up projection", "attention", q, c->q_lora_rank ? c->q_lora_rank : c->hidden, 1, c->layers, 0};
    m[SOL_MATRIX_KV_DOWN] = (SolModelMatrix){
        "kv down projection", "attention", c->kv_lora_rank + s->rope_dim, c->hidden, 1, c->layers,
        c->qkv_bias};
    m[SOL_MATRIX_KV_UP] = (SolModelMatrix){"kv up projection",
                                           "attention",
                                           s->heads * (s->nope_dim + s->v_head_dim),
                                           c->kv_lora_rank,
                                           1,
                                           c->layers,
                                           0};
  }
  m[SOL_MATRIX_OUT] = (SolModelMatrix){
      "output projection", "attention", c->hidden, s->heads * s->v_head_dim, 1, c->layers, c->out_bias};
}

static void mlp_matrices(const SolModelConfig *c, SolModelShape *s) {
  SolModelMatrix *m = s->matrix;
  int64_t wide = c->gated_mlp ? 2 : 1;
  const char *up = c->gated_mlp ? "gate and up projection" : "up projection";
  if (s->dense_layers) {
    m[SOL_MATRIX_UP] =
        (SolModelMatrix){up, "mlp", wide * s->intermediate, c->hidden, 1, s->dense_layers, c->mlp_bias};
    m[SOL_MATRIX_DOWN] = (SolModelMatrix){"down projection", "mlp",      c->hidden, s->intermediate, 1,
                                          s->dense_layers,   c->mlp_bias};
  }
  if (!s->moe_layers) return;
  m[SOL_MATRIX_ROUTER] =
      (SolModelMatrix){"router", "mlp", c->experts, c->hidden, 1, s->moe_layers, c->router_bias};
  m[SOL_MATRIX_EXPERT_UP] = (SolModelMatrix){c->gated_mlp ? "experts, gate and up" : "experts, up",
                                             "mlp",
                                             wide * s->expert_intermediate,
                                             c->hidden,
                                             c->experts / s->ep,
                                             s->moe_layers,
                                             c->mlp_bias};
  m[SOL_MATRIX_EXPERT_DOWN] =
      (SolModelMatrix){"experts, down",    "mlp",         c->hidden,  s->expert_intermediate,
                       c->experts / s->ep, s->moe_layers, c->mlp_bias};
  if (!s->shared_intermediate) return;
  m[SOL_MATRIX_SHARED_UP] =
      (SolModelMatrix){c->gated_mlp ? "shared expert, gate and up" : "shared expert, up",
                       "mlp",
                       wide * s->shared_intermediate,
                       c->hidden,
                       1,
                       s->moe_layers,
                       0};
  m[SOL_MATRIX_SHARED_DOWN] =
      (SolModelMatrix){"shared expert, down", "mlp", c->hidden, s->shared_intermediate, 1, s->moe_layers, 0};
  if (c->shared_gate)
    m[SOL_MATRIX_SHARED_GATE] =
        (SolModelMatrix){"shared expert gate", "mlp", 1, c->hidden, 1, s->moe_layers, 0};
}

SolStatus sol_model_shape(const SolModelConfig *c, int64_t tp, int64_t ep, SolModelShape *s, SolError *err) {
  SolStatus status = sol_model_check(c, err);
  if (status) return status;
  if (tp < 1 || tp > 65536)
    return sol_fail(err, SOL_ERR_ARGUMENT, "tp must be 1 to 65536, not %lld", (long long)tp);
  *s = (SolModelShape){.tp = tp, .ep = ep};
  s->v_head_dim = c->v_head_dim ? c->v_head_dim : c->head_dim;
  s->rope_dim = c->no_rope ? 0 : c->rope_dim ? c->rope_dim : c->head_dim;
  s->nope_dim = c->head_dim - s->rope_dim;
  s->moe_layers = c->experts ? c->moe_layers : 0;
  s->dense_layers = c->layers - s->moe_layers;
  s->norms = c->parallel_block == 1 ? 1 : c->norm_place == SOL_NORM_AROUND ? 4 : 2;
  // The vocabulary is padded up to a multiple of tp, as the serving libraries do.
  s->vocab = (c->vocab + tp - 1) / tp;
  if ((status = split_heads(c, tp, s, err))) return status;
  if (s->dense_layers &&
      (status = split("tp", "columns of the MLP", c->intermediate, tp, &s->intermediate, err)))
    return status;
  if (s->moe_layers) {
    // Whole experts first; the GPUs that are left over split each one's columns.
    int64_t columns = ep < tp ? tp / ep : 1, each;
    if ((status = split("ep", "experts", c->experts, ep, &each, err))) return status;
    if ((status = split("tp", "columns of an expert", c->expert_intermediate, columns,
                        &s->expert_intermediate, err)))
      return status;
    if ((status = split("tp", "columns of the shared expert", c->shared_intermediate, tp,
                        &s->shared_intermediate, err)))
      return status;
  }
  attention_matrices(c, s);
  mlp_matrices(c, s);
  s->matrix[SOL_MATRIX_HEAD] = (SolModelMatrix){"lm head", "head", s->vocab, c->hidden, 1, 1, c->head_bias};
  return SOL_OK;
}

static double norm_params(const SolModelConfig *c, const SolModelShape *s) {
  static const double vectors[] = {
      [SOL_NORM_RMS] = 1, [SOL_NORM_LAYER] = 2, [SOL_NORM_LAYER_WEIGHT] = 1, [SOL_NORM_LAYER_PLAIN] = 0};
  double one_layer = (double)s->norms * vectors[c->norm] * (double)c->hidden;
  if (c->qk_norm == SOL_QK_NORM_HEAD) one_layer += 2 * (double)c->head_dim;
  if (c->qk_norm == SOL_QK_NORM_WIDTH) one_layer += (double)((s->heads + s->kv_heads) * c->head_dim);
  if (c->kv_lora_rank) one_layer += (double)(c->q_lora_rank + c->kv_lora_rank);
  return (double)c->layers * one_layer + vectors[c->norm] * (double)c->hidden;
}

SolStatus sol_model_count(const SolModelConfig *c, const SolModelShape *s, SolModelWeights *out,
                          SolError *err) {
  *out = (SolModelWeights){0};
  double idle = 0; // in experts that one token passes by
  for (int i = 0; i < SOL_MATRICES; i++) {
    const SolModelMatrix *m = &s->matrix[i];
    if (!m->out) continue;
    double one = (double)m->out * (double)m->in + (m->bias ? (double)m->out : 0);
    if (i == SOL_MATRIX_HEAD && c->tied_embeddings) one = m->bias ? (double)m->out : 0;
    double all = one * (double)m->copies * (double)m->layers;
    double *sum = i <= SOL_MATRIX_OUT    ? &out->attention_params
                  : i == SOL_MATRIX_HEAD ? &out->head_params
                                         : &out->mlp_params;
    *sum += all;
    if (m->copies > 1) idle += one * (double)(m->copies - c->experts_per_token) * (double)m->layers;
  }
  if (c->attention_sinks) out->attention_params += (double)c->layers * (double)s->heads;
  out->embedding_params = ((double)s->vocab + (double)c->learned_positions) * (double)c->hidden;
  out->norm_params = norm_params(c, s);
  out->params =
      out->embedding_params + out->attention_params + out->mlp_params + out->norm_params + out->head_params;
  out->active_params = out->params - idle;
  if (out->params > SOL_EXACT) return sol_fail(err, SOL_ERR_RANGE, "the model has more than 2^53 parameters");
  return SOL_OK;
}

SolStatus sol_model_weights(const SolModelConfig *config, SolModelWeights *out, SolError *err) {
  if (!config || !out) return sol_fail(err, SOL_ERR_ARGUMENT, "config and out must not be NULL");
  SolModelShape shape;
  SolStatus status = sol_model_shape(config, 1, 1, &shape, err);
  return status ? status : sol_model_count(config, &shape, out, err);
}
