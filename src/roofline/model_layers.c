// The frame of a pass: embedding, norms and residual adds, the head. run->fused folds, as libraries do, every
// residual add into the norm that follows it, and the first norm into the embedding.
#include "roofline/model_pass.h"

// Activations are quantised as they are loaded, where the GPU has products of that type.
static void narrow(const SolModelPass *p, SolCost *cost, SolDtype dtype) {
  double peak;
  if (!sol_device_peak(p->device, dtype, SOL_UNIT_TENSOR, &peak, 0, 0)) cost->math = dtype;
}

SolCost sol_model_gemm_cost(SolModelPass *p, SolMatrixId id, int64_t rows) {
  const SolModelMatrix *m = &p->s.matrix[id];
  SolDtype dtype = sol_model_matrix_dtype(p, id);
  double weights = (double)m->out * (double)m->in;
  SolCost cost = sol_model_cost(p, "gemm", (SolOpArgs){.dim = {rows, m->out, m->in}, .weight_dtype = dtype});
  cost.bytes_read += sol_model_matrix_bytes(p, id, weights) - sol_model_bytes(weights, dtype); // scales
  if (p->c->narrow_products && dtype == p->c->weight_dtype && p->scales) narrow(p, &cost, dtype);
  if (!m->bias) return cost;
  cost.bytes_read += sol_model_bytes((double)m->out, sol_model_other_dtype(p));
  cost.flops += (double)rows * (double)m->out;
  return cost;
}

void sol_model_gemm(SolModelPass *p, SolMatrixId id, int64_t rows) {
  const SolModelMatrix *m = &p->s.matrix[id];
  if (!m->out) return;
  double live = (double)rows * ((double)m->in + (double)m->out);
  sol_model_add(p, (SolKernelName){m->name, m->part, "gemm"}, (double)m->layers,
                sol_model_gemm_cost(p, id, rows), live);
}

SolCost sol_model_norm_cost(SolModelPass *p, int64_t rows, int64_t width, SolNorm norm) {
  SolCost cost =
      sol_model_cost(p, norm == SOL_NORM_RMS ? "rmsnorm" : "layernorm", (SolOpArgs){.dim = {rows, width}});
  // layernorm counts a weight and a bias; what the model lacks of them is neither read nor applied.
  int absent = norm == SOL_NORM_LAYER_PLAIN ? 2 : norm == SOL_NORM_LAYER_WEIGHT;
  cost.bytes_read -= absent * sol_model_bytes((double)width, sol_model_other_dtype(p));
  cost.flops -= absent * (double)rows * (double)width;
  return cost;
}

static const char *norm_op(const SolModelPass *p) {
  return p->c->norm == SOL_NORM_RMS ? "rmsnorm" : "layernorm";
}

static double stream(const SolModelPass *p) {
  return (double)p->tokens * (double)p->c->hidden;
}

static void norm(SolModelPass *p, const char *name, double count) {
  SolCost cost = sol_model_norm_cost(p, p->tokens, p->c->hidden, p->c->norm);
  sol_model_add(p, (SolKernelName){name, "norm", norm_op(p)}, count, cost, 2 * stream(p));
}

static void add(SolModelPass *p, const char *name, double count) {
  double n = stream(p), bytes = sol_model_bytes(n, p->run->dtype);
  sol_model_add(p, (SolKernelName){name, "norm", "add"}, count, sol_model_raw(p, 2 * bytes, bytes, n), 3 * n);
}

// residual += terms; y = norm(residual)
static void add_norm(SolModelPass *p, const char *name, double count, int terms) {
  bool rms = p->c->norm == SOL_NORM_RMS;
  double n = stream(p), bytes = sol_model_bytes(n, p->run->dtype);
  SolCost cost = rms ? sol_model_cost(p, "add_rmsnorm", (SolOpArgs){.dim = {p->tokens, p->c->hidden}})
                     : sol_model_norm_cost(p, p->tokens, p->c->hidden, p->c->norm);
  int more = rms ? terms - 1 : terms; // terms that the operation has not counted yet
  cost.bytes_read += more * bytes;
  cost.flops += more * n;
  if (!rms) cost.bytes_written += bytes;
  sol_model_add(p, (SolKernelName){name, "norm", rms ? "add_rmsnorm" : "add_layernorm"}, count, cost,
                (3 + terms) * n);
}

// Ids in, rows out; the norm of each row too where it is folded in.
static void embed(SolModelPass *p, bool with_norm) {
  SolOpArgs args = {.dim = {p->tokens, p->c->hidden}, .vocab = p->s.vocab};
  double n = stream(p);
  if (!with_norm) {
    sol_model_add(p, (SolKernelName){"embedding", "embedding", "embedding"}, 1,
                  sol_model_cost(p, "embedding", args), n);
    return;
  }
  bool rms = p->c->norm == SOL_NORM_RMS;
  SolCost cost = sol_model_cost(p, rms ? "embed_rmsnorm" : "embedding", args);
  if (!rms) {
    SolCost after = sol_model_norm_cost(p, p->tokens, p->c->hidden, p->c->norm);
    cost.bytes_read += after.bytes_read - sol_model_bytes(n, p->run->dtype);
    cost.flops += after.flops;
  }
  cost.bytes_written += sol_model_bytes(n, p->run->dtype); // the row itself: it starts the residual stream
  sol_model_add(
      p, (SolKernelName){"embedding and input norm", "embedding", rms ? "embed_rmsnorm" : "embed_layernorm"},
      1, cost, 2 * n);
}

// Partial sums are sent in 16 bits at least: neither NCCL nor the servers' own kernels sum in 8.
static void reduce(SolModelPass *p, const char *name, double count) {
  double bytes = sol_model_bytes(stream(p), sol_dtype_bits(p->run->dtype) < 16 ? SOL_BF16 : p->run->dtype);
  if (p->run->tp < 2) return;
  SolFabricGroup g = sol_model_tp_group(p);
  SolFabricTime t = sol_fabric_all_reduce(&g, bytes);
  sol_model_add_link(p, (SolKernelName){name, "link", "all_reduce"}, count, t, t.us * p->fabric->overlap);
}

void sol_model_embedding(SolModelPass *p) {
  bool learned = p->c->learned_positions > 0, before = p->c->norm_place != SOL_NORM_AFTER;
  bool split = p->run->tp > 1; // each GPU has some rows of the table: the sum comes before the norm
  embed(p, p->run->fused && before && !learned && !split);
  reduce(p, "embedding all-reduce", 1);
  if (learned) {
    SolOpArgs args = {.dim = {p->tokens, p->c->hidden}, .vocab = p->queries};
    sol_model_add(p, (SolKernelName){"position embedding", "embedding", "embedding"}, 1,
                  sol_model_cost(p, "embedding", args), stream(p));
  }
  if (learned && p->run->fused && before)
    add_norm(p, "add positions and input norm", 1, 1);
  else if (learned)
    add(p, "add positions", 1);
  if (!learned && p->run->fused && before && split) norm(p, "first input norm", 1);
}

void sol_model_layers(SolModelPass *p) {
  const SolModelConfig *c = p->c;
  bool fused = p->run->fused, parallel = c->parallel_block, before = c->norm_place != SOL_NORM_AFTER;
  double layers = (double)c->layers;
  int terms = parallel ? 2 : 1;
  p->in_layer = true;
  if (before && !fused) norm(p, "input norm", layers);
  if (c->parallel_block == 2) norm(p, "mlp norm", layers);
  sol_model_attention(p);
  if (!parallel) reduce(p, "attention all-reduce", layers);
  if (c->norm_place != SOL_NORM_BEFORE) norm(p, "post-attention norm", layers);
  if (!parallel && fused && before) {
    add_norm(p, "add and mlp norm", layers, 1);
  } else if (!parallel) {
    add(p, "attention residual add", layers);
    if (before) norm(p, "mlp norm", layers);
  }
  sol_model_mlp(p);
  reduce(p, parallel ? "block all-reduce" : "mlp all-reduce", layers);
  if (c->norm_place != SOL_NORM_BEFORE) norm(p, "post-mlp norm", layers);
  // Fused, the add at a layer's end belongs to the norm that follows: the next layer's, or the final one.
  double adds = fused ? layers - 1 : layers;
  if (fused && before) {
    add_norm(p, "add and input norm", adds, terms);
  } else {
    if (parallel) add(p, "attention residual add", adds);
    add(p, "mlp residual add", adds);
  }
  p->in_layer = false;
  if (fused)
    add_norm(p, "add and final norm", 1, terms);
  else
    norm(p, "final norm", 1);
}

void sol_model_head(SolModelPass *p) {
  // Of a prompt only the last position of each sequence is looked at; of a decoding step all.
  int64_t rows = p->run->phase == SOL_PHASE_DECODE ? p->tokens : p->batch;
  if (!p->last) return;
  sol_model_gemm(p, SOL_MATRIX_HEAD, rows);
  double logits = (double)rows * (double)p->s.vocab;
  sol_model_add(p, (SolKernelName){"argmax", "head", "argmax"}, 1,
                sol_model_cost(p, "argmax", (SolOpArgs){.dim = {rows, p->s.vocab}}), logits);
  // Each GPU sends its best value and where it was, per row.
  SolFabricGroup g = sol_model_tp_group(p);
  if (p->run->tp > 1)
    sol_model_add_link(p, (SolKernelName){"argmax all-gather", "link", "all_gather"}, 1,
                       sol_fabric_all_gather(&g, (double)rows * 8), 0);
}
