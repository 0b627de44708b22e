// How costs are defined. A handler goes through an operation's kernels and, for each, names the tensors
// it reads and writes and the FLOPs it does:
//
//   sol_pass(l, "add");
//   sol_reads(l, "x", m * n, l->dtype);
//   sol_writes(l, "sum", m * n, l->dtype);
//   sol_flops(l, m * n);
//
// A count too large to be exact is noted in the ledger, with the tensor's name, and the rest is ignored.
#ifndef SOL_ROOFLINE_COSTS_H
#define SOL_ROOFLINE_COSTS_H

#include "base/port.h"
#include "sol/op.h"

typedef struct SolLedger {
  // The operation's arguments, checked, defaults filled in.
  const SolOpInfo *info;
  int rank;
  double d[SOL_MAX_DIMS]; // the last `rank` of them given, 1 before those
  SolDtype dtype, out, weight, id, kv;
  double vocab; // rows of the table; 0: not given
  double kv_heads, v_dim, queries, window, bins, radius;
  SolPhase phase;
  SolAxis axis;
  // The kernels so far.
  SolPass *pass; // SOL_MAX_PASSES of them
  int count;
  double whole_read, whole_written; // of the last kernel's bytes, those of whole activation tensors
  SolStatus status;
  SolError *err;
} SolLedger;

typedef void SolCostHandler(SolLedger *l);

// Begins a kernel. Its arithmetic is on the vector units, in fp32 (fp64 for fp64 data), unless
// sol_matrix_math says otherwise.
void sol_pass(SolLedger *l, const char *name);
// Arithmetic on the matrix units where there are any: products of elements of types a and b.
void sol_matrix_math(SolLedger *l, SolDtype a, SolDtype b);
void sol_flops(SolLedger *l, double flops);
// Whole activation tensors: each is one trip through memory.
void sol_reads(SolLedger *l, const char *tensor, double elements, SolDtype dtype);
void sol_writes(SolLedger *l, const char *tensor, double elements, SolDtype dtype);
// Weights, ids, a value per row: bytes, but no trip.
void sol_reads_side(SolLedger *l, const char *tensor, double elements, SolDtype dtype);
void sol_writes_side(SolLedger *l, const char *tensor, double elements, SolDtype dtype);

typedef struct SolOpRow {
  SolOpInfo info;
  unsigned dtypes; // activations it takes, a bit each
  SolCostHandler *cost, *unfused;
} SolOpRow;

extern const SolOpRow sol_op_rows[];
extern const int sol_op_row_count;

// Checks the arguments, runs the handler and fills pass[0..*count).
SolStatus sol_op_run(const SolOpArgs *args, SolCostHandler *handler, SolPass pass[SOL_MAX_PASSES], int *count,
                     SolError *err);

// Handlers: what each operation costs, and as separate kernels.
#define OP(name, ...) SolCostHandler sol_cost_##name;
#include "roofline/costs.def"

SolCostHandler sol_unfused_bias_relu_scale, sol_unfused_bias_gelu, sol_unfused_silu_mul,
    sol_unfused_gated_mul, sol_unfused_rmsnorm, sol_unfused_add_rmsnorm, sol_unfused_embed_rmsnorm,
    sol_unfused_layernorm, sol_unfused_softmax, sol_unfused_log_softmax, sol_unfused_cross_entropy,
    sol_unfused_rope, sol_unfused_attention;

// Handlers of the kernels before or after an operation, and of those that do the work of both.
SolCostHandler sol_producer, sol_in_producer, sol_fused_with_producer, sol_consumer, sol_in_consumer;
SolCostHandler sol_add_before, sol_with_add, sol_scale_before, sol_with_scale, sol_bias_before, sol_with_bias;
SolCostHandler sol_velocity_before, sol_with_velocity, sol_embedding_before, sol_rmsnorm_after;
SolCostHandler sol_stencil_again, sol_stencil_twice, sol_bias_gelu_after, sol_with_epilogue;

#endif
