// A transformer's forward pass as the kernels it launches, each with its bytes, FLOPs and roof.
// Dense and mixture-of-experts decoders; presets by name, or a Hugging Face config.json.
// Bytes and FLOPs are counts from the shapes; every time is modelled, as in sol/roofline.h.
#ifndef SOL_MODEL_H
#define SOL_MODEL_H

#include <stddef.h>

#include "sol/fabric.h"
#include "sol/roofline.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum SolNorm {
  SOL_NORM_RMS = 0,
  SOL_NORM_LAYER,        // weight and bias
  SOL_NORM_LAYER_WEIGHT, // no bias (Cohere, MPT)
  SOL_NORM_LAYER_PLAIN   // neither (OLMo)
} SolNorm;

typedef enum SolNormPlace {
  SOL_NORM_BEFORE = 0, // of attention and of the MLP
  SOL_NORM_AROUND,     // before and after (Gemma 2)
  SOL_NORM_AFTER       // OLMo 2
} SolNormPlace;

typedef enum SolQkNorm {
  SOL_QK_NORM_NONE = 0,
  SOL_QK_NORM_HEAD, // one weight vector of head_dim each for q and k (Qwen 3)
  SOL_QK_NORM_WIDTH // weights over all heads (OLMo 2)
} SolQkNorm;

// Which weights have weight_dtype; the others have the type of the activations.
typedef enum SolQuantised {
  SOL_QUANTISED_ALL = 0,
  SOL_QUANTISED_LAYERS, // the layers' matrices, not router, norms, biases, embedding and head
  SOL_QUANTISED_EXPERTS // the experts' matrices alone (gpt-oss)
} SolQuantised;

// A decoder. Zero means none, off or "as usual", as the comments say.
typedef struct SolModelConfig {
  char name[64];
  const char *aliases; // of a preset: other names that find it, separated by spaces; NULL: none
  int64_t layers, hidden, vocab;
  int64_t heads, kv_heads;
  int64_t head_dim;          // of q and k
  int64_t v_head_dim;        // 0: head_dim; differs only in latent attention
  int64_t rope_dim;          // how much of each head is rotated; 0: all of it
  int64_t intermediate;      // width of a dense MLP
  int64_t max_positions;     // 0: not stated
  int64_t learned_positions; // rows of a learned position table; 0: none
  int64_t sliding_window;    // tokens a windowed layer looks back on, its own included; 0: none
  int64_t sliding_layers;    // how many layers are windowed
  int gated_mlp;             // gate and up projection, then silu_mul; else one up projection and gelu
  int qkv_bias, out_bias, mlp_bias, router_bias, head_bias;
  int no_rope;         // positions are learned or enter as a bias
  int attention_sinks; // one learned logit a head (gpt-oss)
  int parallel_block;  // attention and MLP read the same input: 1 behind one norm (GPT-J), 2 behind one each
  int tied_embeddings; // the head is the embedding table
  SolNorm norm;
  SolNormPlace norm_place;
  SolQkNorm qk_norm;
  // Mixture of experts; experts == 0: dense.
  int64_t experts, experts_per_token, expert_intermediate;
  int64_t shared_intermediate; // width of the expert that every token uses; 0: none
  int64_t moe_layers;          // how many layers are mixtures; the others are dense
  int shared_gate;             // the shared expert's output is scaled by a separate gate (Qwen 2)
  // Latent attention (DeepSeek); kv_lora_rank == 0: ordinary. rope_dim of head_dim is the part without
  // latent.
  int64_t q_lora_rank; // 0: q is projected directly
  int64_t kv_lora_rank;
  // Type of the stored weights by the file; SOL_DTYPE_DEFAULT where it has none.
  SolDtype dtype, weight_dtype;
  SolQuantised quantised;
  int64_t scale_block; // quantised weights that share a scale; 0: scales are not counted
  int scale_bits;      // of one scale, and of its zero point where there is one
  int narrow_products; // activations are quantised too: products run at weight_dtype's peak where there is one
  int64_t published_params; // from the model's card, presets only; 0: unknown
  const char *source;       // of the preset's figures; NULL for a parsed file
  char assumed[256];        // what sol_model_parse had to take for granted; empty: nothing
} SolModelConfig;

SOL_API int sol_model_preset_count(void);
SOL_API const SolModelConfig *sol_model_preset(int i); // NULL outside [0, count)
// By name or alias. Unknown: the nearest names are in err->hint.
SOL_API SolStatus sol_model_find(const char *name, SolModelConfig *out, SolError *err);
// Parses the text of a Hugging Face config.json, up to 4 MiB. Allocates nothing; any bytes are safe to pass.
// SOL_ERR_UNSUPPORTED for what is no decoder-only transformer. `err` has the line and column of a bad value.
SOL_API SolStatus sol_model_parse(const char *json, size_t length, SolModelConfig *out, SolError *err);

typedef struct SolModelWeights {
  double params;        // whole numbers, exact up to 2^53; more is refused
  double active_params; // without the experts one token does not visit; the embedding table counts whole
  double embedding_params, attention_params, mlp_params, norm_params, head_params; // sum up to params
} SolModelWeights;
SOL_API SolStatus sol_model_weights(const SolModelConfig *config, SolModelWeights *out, SolError *err);

// What an operation was measured to reach, in place of the memory roof.
typedef struct SolMeasuredOp {
  char op[32];
  double bytes_per_s;
} SolMeasuredOp;

// Zero means the default in the comment.
typedef struct SolModelRun {
  SolPhase phase;  // prefill: `context` new tokens a sequence; decode: one, after `context` in the cache
  int64_t batch;   // sequences; 1
  int64_t context; // tokens; 4096
  // GPUs that split: heads and columns (tp), whole experts (ep), layers (pp), the tokens of a sequence (cp), the
  // batch (dp); 1 each. tp x pp x cp x dp GPUs in all: those of ep are among them.
  int64_t tp, ep, pp, cp, dp;
  int64_t microbatches;        // parts of the batch that follow each other through the stages of pp; pp
  const SolFabric *fabric;     // what joins the GPUs; NULL: the device's own link, inside one machine
  int64_t prefix;              // of a prompt's context: tokens whose keys and values are in the cache already
  int64_t chunk;               // prompt tokens of a sequence in one pass; 0: all of them
  int64_t draft_tokens;        // speculative decoding: tokens proposed for each sequence and step; 0: none
  double acceptance;           // share of proposed tokens that are accepted, each alike; 0.7
  const SolModelConfig *draft; // the model that proposes them; NULL: it costs nothing
  const SolMeasuredOp *measured; // `measured_count` operations' rates; NULL: none
  int measured_count;
  SolDtype dtype;        // activations and arithmetic; the config's where that is fp16, else bf16
  SolDtype weight_dtype; // every weight, without scales; 0: as the checkpoint stores them, or dtype
  SolDtype kv_dtype;     // dtype
  int fused;             // 1: fuse what libraries fuse (docs/model.md has the list)
  int graph;             // 1: launches cost what they cost inside a CUDA graph
  double host_us;        // what a server takes for itself in every pass: scheduling, sampling, bookkeeping; 0
  int ungrouped; // 1: decoding reads keys and values once for every query head, not once for its group
} SolModelRun;

enum { SOL_MAX_MODEL_KERNELS = 64 };
typedef struct SolModelKernel {
  const char *name;    // "qkv projection"
  const char *op;      // "gemm"
  const char *part;    // "embedding", "norm", "attention", "mlp", "head", "link", "pipeline", "draft", "host"
  const char *how;     // "link" kernels: algorithm and protocol; else NULL
  double count;        // launches in the whole pass
  double bytes, flops; // of one launch, on one GPU; "link": bytes each GPU sends
  double intensity;    // FLOP/byte
  SolBound bound;      // "link" kernels: the link
  double time_us;      // of all `count` launches together, launch cost left out
  double hidden_us;    // of time_us: overlapped by other kernels, and not in total_us
  int measured;        // its rate is measured, not the roof
  double share;        // of total_us
} SolModelKernel;

typedef struct SolModelReport {
  SolModelRun run; // with the defaults filled in
  int count;
  SolModelKernel kernels[SOL_MAX_MODEL_KERNELS];   // in the order of their first launch
  double weight_bytes, kv_bytes, activation_bytes; // held by one GPU; activation: the most live at once
  double kv_bytes_per_token;                       // on one GPU, windows left out of account
  double memory_bytes;                             // of the device; 0: unknown
  int fits;                                        // weights, KV cache and activations fit; 0 where unknown
  double max_batch; // sequences that would fit at this context; 0: none, or unknown memory
  double launches;
  double launch_us; // in a stream, or in a graph where run->graph
  double launch_stream_us, launch_graph_us;
  double bytes, flops; // of the pass, on one GPU; what crosses the link is not memory traffic and left out
  double link_bytes;   // sent by one GPU
  double link_us;      // of the collectives over the links, hidden ones too, launches left out
  double bubble_us;    // stages of the pipeline that wait
  double imbalance;    // rows of the GPU whose experts get the most, over the mean; 0: no expert parallelism
  double gpus;         // of the whole model
  double draft_us;     // of the draft model, launches left out
  double host_us;      // of the server, in all passes
  double accepted;     // expected tokens of one sequence in a step: 1 without speculation
  double layer_us;     // one average layer, launches left out
  double total_us;     // kernels and launch_us
  int vector_unknown; // 1: kernels on vector units are taken at the memory roof, their arithmetic rate is unknown
  double tokens;      // processed (prefill) or made (decode) by the pass
  double tokens_per_s;
} SolModelReport;

// SOL_ERR_UNSUPPORTED where the model cannot be split so, SOL_ERR_UNKNOWN where the device lacks a figure
// this needs (link bandwidth for several GPUs without a fabric).
SOL_API SolStatus sol_model_run(const SolDevice *device, const SolModelConfig *config, const SolModelRun *run,
                                SolModelReport *out, SolError *err);

#ifdef __cplusplus
}
#endif
#endif
