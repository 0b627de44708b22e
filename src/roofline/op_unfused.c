// Operations as a framework without fusion runs them: one kernel per elementary step, each reading and
// writing memory. Intermediates are stored in the activations' type.
#include "roofline/costs.h"

static double volume(const SolLedger *l) {
  return l->d[0] * l->d[1] * l->d[2] * l->d[3];
}

// A kernel that reads one whole tensor and writes one.
static void map(SolLedger *l, const char *name, SolDtype to, double flops_per_element) {
  sol_pass(l, name);
  sol_reads(l, "x", volume(l), l->dtype);
  sol_writes(l, "y", volume(l), to);
  sol_flops(l, flops_per_element * volume(l));
}

// The same with a value per column (a weight) or per row (a statistic) as well.
static void map_columns(SolLedger *l, const char *name, SolDtype to) {
  map(l, name, to, 1);
  sol_reads_side(l, "a value per column", l->d[1], l->weight);
}

static void map_rows(SolLedger *l, const char *name, SolDtype to) {
  map(l, name, to, 1);
  sol_reads_side(l, "a value per row", l->d[0], l->dtype);
}

// A kernel that reads a tensor and writes one value per row.
static void fold_rows(SolLedger *l, const char *name) {
  sol_pass(l, name);
  sol_reads(l, "x", volume(l), l->dtype);
  sol_writes_side(l, "a value per row", l->d[0], l->dtype);
  sol_flops(l, volume(l));
}

// A kernel over one value per row.
static void map_statistic(SolLedger *l, const char *name, double flops_per_row) {
  sol_pass(l, name);
  sol_reads_side(l, "a value per row", l->d[0], l->dtype);
  sol_writes_side(l, "a value per row", l->d[0], l->dtype);
  sol_flops(l, flops_per_row * l->d[0]);
}

// A kernel over two whole tensors.
static void combine(SolLedger *l, const char *name, SolDtype to) {
  sol_pass(l, name);
  sol_reads(l, "a", volume(l), l->dtype);
  sol_reads(l, "b", volume(l), l->dtype);
  sol_writes(l, "y", volume(l), to);
  sol_flops(l, volume(l));
}

void sol_unfused_bias_relu_scale(SolLedger *l) {
  map_columns(l, "add bias", l->dtype);
  map(l, "relu", l->dtype, 1);
  map(l, "scale", l->out, 1);
}

void sol_unfused_bias_gelu(SolLedger *l) {
  map_columns(l, "add bias", l->dtype);
  map(l, "gelu", l->out, 8);
}

void sol_unfused_silu_mul(SolLedger *l) {
  map(l, "silu", l->dtype, 3);
  combine(l, "multiply", l->out);
}

void sol_unfused_gated_mul(SolLedger *l) {
  map(l, "gelu", l->dtype, 8);
  combine(l, "multiply", l->out);
}

// Frameworks keep cos and sin at full width, each half twice.
void sol_unfused_rope(SolLedger *l) {
  map(l, "rotate half", l->dtype, 0);
  map(l, "multiply by cos", l->dtype, 1);
  sol_reads_side(l, "cos", l->d[0] * l->d[2], l->weight);
  map(l, "multiply by sin", l->dtype, 1);
  sol_reads_side(l, "sin", l->d[0] * l->d[2], l->weight);
  combine(l, "add", l->out);
}

void sol_unfused_rmsnorm(SolLedger *l) {
  map(l, "square", l->dtype, 1);
  fold_rows(l, "mean");
  map_statistic(l, "reciprocal root", 2);
  map_rows(l, "normalise", l->dtype);
  map_columns(l, "multiply by weight", l->out);
}

void sol_unfused_add_rmsnorm(SolLedger *l) {
  combine(l, "add", l->dtype);
  sol_cost_rmsnorm(l);
}

void sol_unfused_embed_rmsnorm(SolLedger *l) {
  sol_embedding_before(l);
  sol_cost_rmsnorm(l);
}

void sol_unfused_layernorm(SolLedger *l) {
  fold_rows(l, "mean");
  map_rows(l, "subtract mean", l->dtype);
  map(l, "square", l->dtype, 1);
  fold_rows(l, "variance");
  map_statistic(l, "reciprocal root", 2);
  map_rows(l, "normalise", l->dtype);
  map_columns(l, "multiply by weight", l->dtype);
  map_columns(l, "add bias", l->out);
}

void sol_unfused_softmax(SolLedger *l) {
  fold_rows(l, "max");
  map_rows(l, "subtract max", l->dtype);
  map(l, "exp", l->dtype, 1);
  fold_rows(l, "sum");
  map_rows(l, "divide", l->out);
}

void sol_unfused_log_softmax(SolLedger *l) {
  fold_rows(l, "max");
  map_rows(l, "subtract max", l->dtype);
  map(l, "exp", l->dtype, 1);
  fold_rows(l, "sum");
  map_statistic(l, "log", 1);
  map_rows(l, "subtract log", l->out);
}

void sol_unfused_cross_entropy(SolLedger *l) {
  sol_unfused_log_softmax(l);
  sol_pass(l, "pick the target's");
  sol_reads_side(l, "logarithms", l->d[0], l->dtype);
  sol_reads_side(l, "targets", l->d[0], l->id);
  sol_writes_side(l, "loss", l->d[0], SOL_FP32);
}

// The score matrix goes through memory whole: what the mask hides is computed, stored and read as well.
void sol_unfused_attention(SolLedger *l) {
  double b = l->d[0], h = l->d[1], s = l->d[2], d = l->d[3];
  double q = b * h * l->queries, scores = q * s;
  sol_pass(l, "Q * K'");
  sol_matrix_math(l, l->dtype, l->kv);
  sol_reads(l, "Q", q * d, l->dtype);
  sol_reads(l, "K", b * l->kv_heads * s * d, l->kv);
  sol_writes(l, "scores", scores, l->dtype);
  sol_flops(l, 2 * d * scores);
  sol_pass(l, "scale and mask");
  sol_reads(l, "scores", scores, l->dtype);
  sol_writes(l, "scores", scores, l->dtype);
  sol_flops(l, 2 * scores);
  sol_pass(l, "softmax");
  sol_reads(l, "scores", scores, l->dtype);
  sol_writes(l, "probabilities", scores, l->dtype);
  sol_flops(l, 5 * scores);
  sol_pass(l, "probabilities * V");
  sol_matrix_math(l, l->dtype, l->kv);
  sol_reads(l, "probabilities", scores, l->dtype);
  sol_reads(l, "V", b * l->kv_heads * s * l->v_dim, l->kv);
  sol_writes(l, "O", q * l->v_dim, l->out);
  sol_flops(l, 2 * l->v_dim * scores);
}
