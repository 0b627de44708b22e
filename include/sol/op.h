// What an operation must move and compute: the fewest bytes (each input read once, each output written
// once) and the FLOPs, from its shape. One definition, used by the accountant, the library and the bench.
#ifndef SOL_OP_H
#define SOL_OP_H

#include "sol/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SOL_MAX_DIMS = 4, SOL_MAX_PASSES = 12 };

// The optional arguments in SolOpArgs: a bit for each, and the field's name.
#define SOL_OP_OPTIONS(X)                                                                                    \
  X(SOL_TAKES_OUT_DTYPE, 0, out_dtype)                                                                       \
  X(SOL_TAKES_WEIGHT_DTYPE, 1, weight_dtype)                                                                 \
  X(SOL_TAKES_ID_DTYPE, 2, id_dtype)                                                                         \
  X(SOL_TAKES_KV_DTYPE, 3, kv_dtype)                                                                         \
  X(SOL_TAKES_VOCAB, 4, vocab)                                                                               \
  X(SOL_TAKES_KV_HEADS, 5, kv_heads)                                                                         \
  X(SOL_TAKES_V_DIM, 6, v_dim)                                                                               \
  X(SOL_TAKES_QUERIES, 7, queries)                                                                           \
  X(SOL_TAKES_WINDOW, 8, window)                                                                             \
  X(SOL_TAKES_BINS, 9, bins)                                                                                 \
  X(SOL_TAKES_RADIUS, 10, radius)                                                                            \
  X(SOL_TAKES_PHASE, 11, phase)                                                                              \
  X(SOL_TAKES_AXIS, 12, axis)

typedef enum SolOpOption {
#define SOL_OP_OPTION_BIT(name, bit, field) name = 1 << (bit),
  SOL_OP_OPTIONS(SOL_OP_OPTION_BIT)
#undef SOL_OP_OPTION_BIT
} SolOpOption;

// Every operation, its shape and what it does: src/roofline/costs.def, or `sol roofline --list`.
// An operation is named by its text ("rmsnorm"); sol_op_find turns the name into its number.
typedef struct SolOpInfo {
  const char *name;
  const char *shape;   // its dimensions, as the command line takes them: "MxN"; in brackets: may be left out
  const char *summary; // one line: what it computes
  const char *counts;  // one line: what the bytes and FLOPs are made of
  int rank_min, rank_max; // how many dimensions
  unsigned options;       // SolOpOption bits it takes
  SolUnit unit;           // where its arithmetic runs
  int fusable;            // 1: sol_op_unfused has separate kernels for it
} SolOpInfo;

SOL_API int sol_op_count(void);
SOL_API const SolOpInfo *sol_op_info(int op); // NULL outside [0, count)
SOL_API SolStatus sol_op_find(const char *name, int *op, SolError *err);

typedef enum SolPhase { SOL_PHASE_PREFILL = 0, SOL_PHASE_DECODE } SolPhase;
typedef enum SolAxis { SOL_AXIS_ROWS = 0, SOL_AXIS_COLUMNS, SOL_AXIS_ALL } SolAxis;

// Zero means the default in the comment. Options that an operation does not use must be zero.
typedef struct SolOpArgs {
  int op;
  int64_t
      dim[SOL_MAX_DIMS]; // rank_min to rank_max of them, each at least 1; those left out, at the end, are 0
  SolDtype dtype;        // activations; bf16
  SolDtype out_dtype;    // output; dtype
  SolDtype weight_dtype; // weights, biases, embedding table, gemm's second operand; dtype
  SolDtype id_dtype;     // token ids, indices and counters; int32
  SolDtype kv_dtype;     // attention's K and V, kv_append's cache; dtype
  int64_t vocab;         // embedding, gather: rows of the table; 0: no row is read twice
  int64_t kv_heads;      // attention: heads of K and V; as many as query heads
  int64_t v_dim;         // attention: width of a head of V and of the output; as Q's and K's
  int64_t queries;       // attention in decode: new tokens a sequence, the last of its S; 1
  int64_t window;        // attention: tokens that a token sees, itself included; 0: all before it
  int64_t bins;          // histogram: 256
  int64_t radius;        // stencil: points each way along an axis; 1
  SolPhase phase;        // attention: prefill (causal, every position) or decode (one new token)
  SolAxis axis;          // reduce, argmax: over each row, over each column, over all
} SolOpArgs;

typedef struct SolCost {
  double bytes_read, bytes_written; // whole numbers; their sum is exact, more than 2^53 is refused
  double flops; // a transcendental, a division or a comparison counts as one; exact to 2^53
  double launches;
  double trips;  // how often a whole activation tensor crosses memory, reads and writes
  SolDtype math; // type the arithmetic is done in
  SolUnit unit;
} SolCost;

SOL_API SolStatus sol_op_cost(const SolOpArgs *args, SolCost *out, SolError *err);

// The same work as separate kernels, each reading and writing memory: what a framework runs without fusion.
typedef struct SolPass {
  const char *name; // "mean of squares"
  SolCost cost;
} SolPass;
// Fills passes[0..*count); SOL_ERR_UNSUPPORTED for an operation that is a single pass anyhow.
SOL_API SolStatus sol_op_unfused(const SolOpArgs *args, SolPass passes[SOL_MAX_PASSES], int *count,
                                 SolError *err);

#ifdef __cplusplus
}
#endif
#endif
