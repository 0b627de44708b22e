// What the model's sources share: limits, and the weight matrices of a model as one GPU of `tp` holds them.
#ifndef SOL_ROOFLINE_MODEL_PARTS_H
#define SOL_ROOFLINE_MODEL_PARTS_H

#include "base/port.h"
#include "sol/model.h"

// Refuses a config whose fields are outside their limits or contradict one another.
SolStatus sol_model_check(const SolModelConfig *config, SolError *err);

// Every weight matrix, once. The weight count and the kernels of a pass both come from this list.
typedef enum SolMatrixId {
  SOL_MATRIX_QKV,
  SOL_MATRIX_Q_DOWN, // latent attention: hidden -> q_lora_rank
  SOL_MATRIX_Q_UP,   // q_lora_rank (or hidden) -> heads
  SOL_MATRIX_KV_DOWN,
  SOL_MATRIX_KV_UP,
  SOL_MATRIX_OUT,
  SOL_MATRIX_UP, // gate and up together where the MLP is gated
  SOL_MATRIX_DOWN,
  SOL_MATRIX_ROUTER,
  SOL_MATRIX_EXPERT_UP,
  SOL_MATRIX_EXPERT_DOWN,
  SOL_MATRIX_SHARED_UP,
  SOL_MATRIX_SHARED_DOWN,
  SOL_MATRIX_SHARED_GATE,
  SOL_MATRIX_HEAD,
  SOL_MATRICES
} SolMatrixId;

typedef struct SolModelMatrix {
  const char *name, *part;
  int64_t out, in; // columns and rows on one GPU; 0: the model has no such matrix
  int64_t copies;  // in one layer: experts; else 1
  int64_t layers;  // that have it
  int bias;        // `out` more weights, added by the same kernel
} SolModelMatrix;

typedef struct SolModelShape {
  int64_t tp, ep;
  int64_t heads, kv_heads; // of one GPU; kv heads fewer than tp are held by several
  int64_t intermediate, expert_intermediate, shared_intermediate, vocab;
  int64_t v_head_dim, rope_dim, nope_dim; // rope_dim 0: no rotation; nope_dim: the rest of head_dim
  int64_t norms;                          // of the hidden width, in one layer
  int64_t moe_layers, dense_layers;
  SolModelMatrix matrix[SOL_MATRICES];
} SolModelShape;

// Checks the config; SOL_ERR_UNSUPPORTED where tp or ep does not divide what has to be split.
SolStatus sol_model_shape(const SolModelConfig *config, int64_t tp, int64_t ep, SolModelShape *out,
                          SolError *err);
// The weights one GPU holds.
SolStatus sol_model_count(const SolModelConfig *config, const SolModelShape *shape, SolModelWeights *out,
                          SolError *err);

#endif
