// The MLP, dense or a mixture of experts. run->fused folds the activation into the projection before it, and
// the sorting of tokens by expert into the experts' first projection.
//
// Experts: a token goes to `k` of `n` experts. How many experts a batch of tokens reaches depends on the
// router; the bytes assume that it spreads tokens evenly and independently, which makes n (1 - (1 -
// k/n)^tokens) the expected number of experts whose weights are read. FLOPs do not depend on it.
#include "roofline/model_pass.h"

static double power(double base, int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

// On one GPU, by the tokens of all that share the experts.
static double experts_reached(const SolModelPass *p) {
  double n = (double)p->c->experts, k = (double)p->c->experts_per_token;
  return n / (double)p->run->ep * (1 - power(1 - k / n, (int64_t)sol_model_expert_tokens(p)));
}

// Rows that the fullest GPU's experts get.
static int64_t expert_rows(SolModelPass *p) {
  double k = (double)p->c->experts_per_token, ep = (double)p->run->ep;
  if (p->run->ep == 1) return p->tokens * p->c->experts_per_token;
  double over = sol_model_imbalance(p);
  if (over > p->out->imbalance) p->out->imbalance = over;
  return (int64_t)__builtin_ceil(sol_model_expert_tokens(p) * k / ep * over);
}

// A token goes once to each GPU that has experts of its own: to g (1 - (1 - 1/g)^k) of g. The GPUs of a tensor-parallel
// group share the sending.
static void exchange(SolModelPass *p, const char *name, double count) {
  if (!sol_model_exchanges_tokens(p)) return;
  SolFabricGroup g = sol_model_ep_group(p);
  double n = (double)g.gpus, reached = (n - 1) * (1 - power(1 - 1 / n, p->c->experts_per_token));
  double bytes =
      sol_model_bytes((double)p->tokens * (double)p->c->hidden * reached, p->run->dtype) / (double)p->run->tp;
  SolFabricTime t = sol_fabric_all_to_all(&g, bytes);
  sol_model_add_link(p, (SolKernelName){name, "link", "all_to_all"}, count, t, t.us * p->fabric->overlap);
}

static SolCost activation_cost(SolModelPass *p, int64_t rows, int64_t width) {
  return sol_model_cost(p, p->c->gated_mlp ? "silu_mul" : "gelu", (SolOpArgs){.dim = {rows, width}});
}

// Rows through `reached` copies of a matrix: a gemm that reads so many of them.
static SolCost grouped_cost(SolModelPass *p, SolMatrixId id, int64_t rows, double reached) {
  const SolModelMatrix *m = &p->s.matrix[id];
  SolCost cost = sol_model_gemm_cost(p, id, rows);
  double bias = m->bias ? sol_model_bytes((double)m->out, sol_model_other_dtype(p)) : 0;
  cost.bytes_read += (reached - 1) * (sol_model_matrix_bytes(p, id, (double)m->out * (double)m->in) + bias);
  return cost;
}

typedef struct Mlp {
  SolMatrixId up, down;
  int64_t rows, width;
  double reached; // copies of the matrices that are read
  const char *activation;
} Mlp;

static void up_activate_down(SolModelPass *p, Mlp mlp) {
  const SolModelMatrix *up = &p->s.matrix[mlp.up], *down = &p->s.matrix[mlp.down];
  if (!up->out) return;
  bool gated = p->c->gated_mlp, grouped = mlp.up == SOL_MATRIX_EXPERT_UP;
  double count = (double)up->layers, rows = (double)mlp.rows, width = (double)mlp.width;
  SolCost project = grouped_cost(p, mlp.up, mlp.rows, mlp.reached),
          act = activation_cost(p, mlp.rows, mlp.width);
  const char *gemm = grouped ? "grouped_gemm" : "gemm";
  double wide = rows * (double)up->out;
  if (p->run->fused) {
    project.flops += act.flops;
    project.bytes_written = act.bytes_written;
    gemm = gated     ? (grouped ? "grouped_gemm_silu_mul" : "gemm_silu_mul")
           : grouped ? "grouped_gemm_gelu"
                     : "gemm_gelu";
    wide = rows * width;
  }
  sol_model_add(p, (SolKernelName){up->name, "mlp", gemm}, count, project, rows * (double)up->in + wide);
  if (!p->run->fused)
    sol_model_add(p, (SolKernelName){mlp.activation, "mlp", gated ? "silu_mul" : "gelu"}, count, act,
                  wide + rows * width);
  sol_model_add(p, (SolKernelName){down->name, "mlp", grouped ? "grouped_gemm" : "gemm"}, count,
                grouped_cost(p, mlp.down, mlp.rows, mlp.reached), rows * (width + (double)down->out));
}

// Softmax over the experts and the choice of the best k: an id and a weight of 4 bytes each.
static void choose(SolModelPass *p, double count) {
  double t = (double)p->tokens, scores = t * (double)p->c->experts,
         chosen = t * (double)p->c->experts_per_token;
  SolCost cost = sol_model_raw(p, sol_model_bytes(scores, p->run->dtype), 8 * chosen, 6 * scores);
  sol_model_add(p, (SolKernelName){"softmax and top-k", "mlp", "softmax_topk"}, count, cost, scores + chosen);
}

static void sort_tokens(SolModelPass *p, double count, int64_t rows) {
  SolCost cost = sol_model_cost(p, "gather", (SolOpArgs){.dim = {rows, p->c->hidden}, .vocab = p->tokens});
  sol_model_add(p, (SolKernelName){"permute tokens", "mlp", "gather"}, count, cost,
                (double)(rows + p->tokens) * (double)p->c->hidden);
}

// The weighted sum of a token's experts, and of the shared one where there is one.
static void combine(SolModelPass *p, double count, int64_t rows) {
  double h = (double)p->c->hidden, out = (double)p->tokens * h, in = (double)rows * h;
  if (p->s.shared_intermediate) in += out;
  double read = sol_model_bytes(in, p->run->dtype) + 8 * (double)rows;
  SolCost cost = sol_model_raw(p, read, sol_model_bytes(out, p->run->dtype), 2 * in);
  sol_model_add(p, (SolKernelName){"combine experts", "mlp", "combine"}, count, cost, in + out);
}

static void mixture(SolModelPass *p) {
  double count = (double)p->s.moe_layers;
  int64_t rows = expert_rows(p);
  sol_model_gemm(p, SOL_MATRIX_ROUTER, p->tokens);
  choose(p, count);
  exchange(p, "dispatch to experts", count);
  if (!p->run->fused) sort_tokens(p, count, rows);
  up_activate_down(p, (Mlp){SOL_MATRIX_EXPERT_UP, SOL_MATRIX_EXPERT_DOWN, rows, p->s.expert_intermediate,
                            experts_reached(p), "experts, activation"});
  up_activate_down(p, (Mlp){SOL_MATRIX_SHARED_UP, SOL_MATRIX_SHARED_DOWN, p->tokens, p->s.shared_intermediate,
                            1, "shared expert, activation"});
  sol_model_gemm(p, SOL_MATRIX_SHARED_GATE, p->tokens);
  exchange(p, "return from experts", count);
  combine(p, count, rows);
}

void sol_model_mlp(SolModelPass *p) {
  up_activate_down(p, (Mlp){SOL_MATRIX_UP, SOL_MATRIX_DOWN, p->tokens, p->s.intermediate, 1, "activation"});
  if (p->s.moe_layers) mixture(p);
}
