// A forward pass in the making: kernels are added one after another, each costed and placed under its roof.
#ifndef SOL_ROOFLINE_MODEL_PASS_H
#define SOL_ROOFLINE_MODEL_PASS_H

#include "roofline/collectives.h"
#include "roofline/model_parts.h"

typedef struct SolModelPass {
  const SolDevice *device;
  const SolModelConfig *c; // as one GPU runs it: of a pipeline, its stage's layers
  const SolModelRun *run;  // defaults filled in
  const SolFabric *fabric;
  SolModelShape s;
  SolQuantised quantised; // which weights have run->weight_dtype
  bool scales;            // are counted: the checkpoint's own, not a type asked for
  int64_t batch;          // sequences of one pass, and those whose cache one GPU holds
  int64_t held;
  int64_t queries;   // new tokens of a sequence, on all GPUs of cp together
  int64_t tokens;    // rows of every activation
  int64_t kv_length; // tokens in the cache when attention runs, new ones included
  bool again;        // a further pass: its kernels are added to those of the first
  bool last;         // of a prompt's passes
  double last_us;    // of one launch of the kernel added last
  double live;       // the most bytes of activations that one kernel reads and writes
  double layers_us;  // time of the kernels added while in_layer
  bool in_layer;
  SolModelReport *out;
  SolStatus status; // the first failure; the rest is then ignored
  SolError *err;
} SolModelPass;

// What names a kernel in the report.
typedef struct SolKernelName {
  const char *name, *part, *op;
} SolKernelName;

// A part of `total`, rounded up.
static inline int64_t sol_model_part(int64_t total, int64_t parts) {
  return (total + parts - 1) / parts;
}

// Bytes of a tensor.
double sol_model_bytes(double elements, SolDtype dtype);
// Type and bytes of the weights of a matrix, scales included; of all that is no matrix of a layer.
SolDtype sol_model_matrix_dtype(const SolModelPass *p, SolMatrixId id);
double sol_model_matrix_bytes(const SolModelPass *p, SolMatrixId id, double weights);
SolDtype sol_model_other_dtype(const SolModelPass *p);
// Cost of a library operation; dtypes not set in `args` are the run's.
SolCost sol_model_cost(SolModelPass *p, const char *op, SolOpArgs args);
// Cost of what the library has no operation for, on the vector units.
SolCost sol_model_raw(const SolModelPass *p, double read, double written, double flops);
// Adds `count` launches; `live`: elements of the activations it reads and writes.
void sol_model_add(SolModelPass *p, SolKernelName name, double count, SolCost cost, double live);
// Adds what crosses the links; hidden_us of each launch are overlapped by other kernels.
void sol_model_add_link(SolModelPass *p, SolKernelName name, double count, SolFabricTime time,
                        double hidden_us);

// The groups of GPUs that talk to each other (model_parallel.c). Neighbours split a layer, then a sequence, then the
// batch; the stages of a pipeline are furthest apart.
SolFabricGroup sol_model_tp_group(const SolModelPass *p);
SolFabricGroup sol_model_cp_group(const SolModelPass *p);
SolFabricGroup sol_model_ep_group(const SolModelPass *p);
SolFabricGroup sol_model_pp_group(const SolModelPass *p);
// Whether experts are spread over GPUs that do not see the same tokens.
bool sol_model_exchanges_tokens(const SolModelPass *p);
// Tokens of all the GPUs that share the experts, and the most rows that one of them gets over the mean.
double sol_model_expert_tokens(const SolModelPass *p);
double sol_model_imbalance(const SolModelPass *p);

// Fills in and checks how the model is split.
SolStatus sol_model_fill_split(const SolModelConfig *config, const SolDevice *device, SolModelRun *run,
                               SolError *err);
// The layers of one stage, and what waits and is sent between stages.
SolModelConfig sol_model_stage(const SolModelConfig *config, int64_t stages);
void sol_model_stage_send(SolModelPass *p);
void sol_model_pipeline(SolModelPass *p, double units);

// The parts of a pass, in model_layers.c, model_attention.c and model_mlp.c.
void sol_model_embedding(SolModelPass *p);
void sol_model_layers(SolModelPass *p);
void sol_model_attention(SolModelPass *p);
void sol_model_mlp(SolModelPass *p);
void sol_model_head(SolModelPass *p);

// One matrix of the model times `rows` rows of activations, once in each layer that has it.
SolCost sol_model_gemm_cost(SolModelPass *p, SolMatrixId id, int64_t rows);
void sol_model_gemm(SolModelPass *p, SolMatrixId id, int64_t rows);
// A norm of `rows` rows of `width`.
SolCost sol_model_norm_cost(SolModelPass *p, int64_t rows, int64_t width, SolNorm norm);

#endif
