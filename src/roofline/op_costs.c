// What each operation of costs.def moves and computes as one kernel. Each row's value that is computed once
// (a mean, a reciprocal root) is not counted as FLOPs: it is one in N.
#include "roofline/costs.h"

// Elements of all dimensions together.
static double volume(const SolLedger *l) {
  return l->d[0] * l->d[1] * l->d[2] * l->d[3];
}

static double least(double a, double b) {
  return a < b ? a : b;
}

// x -> y over the whole tensor.
static void map(SolLedger *l, const char *name, double flops_per_element) {
  sol_pass(l, name);
  sol_reads(l, "x", volume(l), l->dtype);
  sol_writes(l, "y", volume(l), l->out);
  sol_flops(l, flops_per_element * volume(l));
}

// The same with one more value per column.
static void map_columns(SolLedger *l, const char *name, const char *vector, double flops_per_element) {
  map(l, name, flops_per_element);
  sol_reads_side(l, vector, l->d[1], l->weight);
}

void sol_cost_copy(SolLedger *l) {
  map(l, "copy", 0);
}

void sol_cost_scale(SolLedger *l) {
  map(l, "scale", 1);
}

void sol_cost_add(SolLedger *l) {
  sol_pass(l, "add");
  sol_reads(l, "a", volume(l), l->dtype);
  sol_reads(l, "b", volume(l), l->dtype);
  sol_writes(l, "y", volume(l), l->out);
  sol_flops(l, volume(l));
}

void sol_cost_relu(SolLedger *l) {
  map(l, "relu", 1);
}

void sol_cost_scale_columns(SolLedger *l) {
  map_columns(l, "scale_columns", "scale", 1);
}

void sol_cost_bias_relu_scale(SolLedger *l) {
  map_columns(l, "bias_relu_scale", "bias", 3);
}

void sol_cost_gelu(SolLedger *l) {
  map(l, "gelu", 8);
}

void sol_cost_bias_gelu(SolLedger *l) {
  map_columns(l, "bias_gelu", "bias", 9);
}

static void gated(SolLedger *l, const char *name, double flops_per_element) {
  sol_pass(l, name);
  sol_reads(l, "gate", volume(l), l->dtype);
  sol_reads(l, "up", volume(l), l->dtype);
  sol_writes(l, "y", volume(l), l->out);
  sol_flops(l, flops_per_element * volume(l));
}

void sol_cost_silu_mul(SolLedger *l) {
  gated(l, "silu_mul", 4);
}

void sol_cost_gated_mul(SolLedger *l) {
  gated(l, "gated_mul", 9);
}

void sol_cost_quantize(SolLedger *l) {
  map(l, "quantize", 3);
}

void sol_cost_cast(SolLedger *l) {
  map(l, "cast", 1);
}

void sol_cost_rope(SolLedger *l) {
  map(l, "rope", 3);
  sol_reads_side(l, "cos and sin", l->d[0] * l->d[2], l->weight);
}

void sol_cost_particles(SolLedger *l) {
  sol_pass(l, "particles");
  sol_reads(l, "position", 3 * l->d[0], l->dtype);
  sol_reads(l, "velocity", 3 * l->d[0], l->dtype);
  sol_writes(l, "position", 3 * l->d[0], l->dtype);
  sol_flops(l, 6 * l->d[0]);
}

void sol_cost_rmsnorm(SolLedger *l) {
  map(l, "rmsnorm", 4);
  sol_reads_side(l, "weight", l->d[1], l->weight);
}

void sol_cost_add_rmsnorm(SolLedger *l) {
  sol_pass(l, "add_rmsnorm");
  sol_reads(l, "x", volume(l), l->dtype);
  sol_reads(l, "residual", volume(l), l->dtype);
  sol_reads_side(l, "weight", l->d[1], l->weight);
  sol_writes(l, "residual", volume(l), l->dtype);
  sol_writes(l, "y", volume(l), l->out);
  sol_flops(l, 5 * volume(l));
}

// Ids, and each row of the table that they can name, once.
static void read_rows(SolLedger *l, const char *table, SolDtype dtype) {
  double rows = l->vocab > 0 ? least(l->d[0], l->vocab) : l->d[0];
  sol_reads_side(l, "ids", l->d[0], l->id);
  sol_reads(l, table, rows * l->d[1], dtype);
}

void sol_cost_embed_rmsnorm(SolLedger *l) {
  sol_pass(l, "embed_rmsnorm");
  read_rows(l, "table", l->weight);
  sol_reads_side(l, "weight", l->d[1], l->weight);
  sol_writes(l, "y", volume(l), l->out);
  sol_flops(l, 4 * volume(l));
}

void sol_cost_layernorm(SolLedger *l) {
  map(l, "layernorm", 7);
  sol_reads_side(l, "weight", l->d[1], l->weight);
  sol_reads_side(l, "bias", l->d[1], l->weight);
}

void sol_cost_group_norm(SolLedger *l) {
  map(l, "group_norm", 7);
  sol_reads_side(l, "weight", l->d[1], l->weight);
  sol_reads_side(l, "bias", l->d[1], l->weight);
}

void sol_cost_softmax(SolLedger *l) {
  map(l, "softmax", 5);
}

void sol_cost_log_softmax(SolLedger *l) {
  map(l, "log_softmax", 5);
}

void sol_cost_cross_entropy(SolLedger *l) {
  sol_pass(l, "cross_entropy");
  sol_reads(l, "x", volume(l), l->dtype);
  sol_reads_side(l, "targets", l->d[0], l->id);
  sol_writes_side(l, "loss", l->d[0], SOL_FP32);
  sol_flops(l, 4 * volume(l));
}

void sol_cost_topk(SolLedger *l) {
  double kept = l->d[0] * l->d[2], all = l->d[0] * l->d[1];
  sol_pass(l, "topk");
  sol_reads(l, "x", all, l->dtype);
  sol_writes_side(l, "values", kept, l->dtype);
  sol_writes_side(l, "ids", kept, l->id);
  sol_flops(l, all);
}

void sol_cost_sample(SolLedger *l) {
  sol_pass(l, "sample");
  sol_reads(l, "x", volume(l), l->dtype);
  sol_reads_side(l, "seeds", l->d[0], SOL_INT64);
  sol_writes_side(l, "ids", l->d[0], l->id);
  sol_flops(l, 5 * volume(l));
}

static double results(const SolLedger *l) {
  return l->axis == SOL_AXIS_ROWS ? l->d[0] : l->axis == SOL_AXIS_COLUMNS ? l->d[1] : 1;
}

static void fold(SolLedger *l, const char *name, SolDtype result) {
  sol_pass(l, name);
  sol_reads(l, "x", volume(l), l->dtype);
  sol_writes_side(l, "results", results(l), result);
  sol_flops(l, volume(l));
}

void sol_cost_reduce(SolLedger *l) {
  fold(l, "reduce", l->out);
}

void sol_cost_argmax(SolLedger *l) {
  fold(l, "argmax", l->id);
}

void sol_cost_transpose(SolLedger *l) {
  map(l, "transpose", 0);
}

void sol_cost_embedding(SolLedger *l) {
  sol_pass(l, "embedding");
  read_rows(l, "table", l->weight);
  sol_writes(l, "y", volume(l), l->out);
}

void sol_cost_gather(SolLedger *l) {
  sol_pass(l, "gather");
  read_rows(l, "x", l->dtype);
  sol_writes(l, "y", volume(l), l->out);
}

void sol_cost_kv_append(SolLedger *l) {
  sol_pass(l, "kv_append");
  sol_reads(l, "k", volume(l), l->dtype);
  sol_reads(l, "v", volume(l), l->dtype);
  sol_reads_side(l, "slots", l->d[0], l->id);
  sol_writes(l, "K", volume(l), l->kv);
  sol_writes(l, "V", volume(l), l->kv);
}

void sol_cost_histogram(SolLedger *l) {
  sol_pass(l, "histogram");
  sol_reads(l, "x", l->d[0], l->dtype);
  sol_writes_side(l, "counters", l->bins, l->id);
  sol_flops(l, l->d[0]);
}

void sol_cost_stencil(SolLedger *l) {
  double points = 2 * l->radius * l->rank + 1;
  map(l, "stencil", 2 * points - 1);
}

void sol_cost_gemm(SolLedger *l) {
  double m = l->d[0], n = l->d[1], k = l->d[2];
  sol_pass(l, "gemm");
  sol_matrix_math(l, l->dtype, l->weight);
  sol_reads(l, "A", m * k, l->dtype);
  sol_reads_side(l, "B", k * n, l->weight);
  sol_writes(l, "C", m * n, l->out);
  sol_flops(l, 2 * m * n * k);
}

// Pairs of a query and a token it sees. The queries are the last of the s tokens; the i-th token sees
// min(i, window). Up to the window's width the counts grow by one a query, then they stay.
static double pairs(double s, double queries, double window) {
  double first = least(s - queries + 1, window); // seen by the first query
  double growing = least(queries, window - first + 1);
  return growing * (2 * first + growing - 1) / 2 + (queries - growing) * window;
}

void sol_cost_attention(SolLedger *l) {
  double b = l->d[0], h = l->d[1], s = l->d[2], d = l->d[3];
  // Before the first query's window nothing is read.
  double tokens = least(s, l->window + l->queries - 1);
  sol_pass(l, "attention");
  sol_matrix_math(l, l->dtype, l->kv);
  sol_reads(l, "Q", b * h * l->queries * d, l->dtype);
  sol_reads(l, "K", b * l->kv_heads * tokens * d, l->kv);
  sol_reads(l, "V", b * l->kv_heads * tokens * l->v_dim, l->kv);
  sol_writes(l, "O", b * h * l->queries * l->v_dim, l->out);
  sol_flops(l, 2 * (d + l->v_dim) * b * h * pairs(s, l->queries, l->window));
}
