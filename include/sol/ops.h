// The library's operations. Each takes a context, its arguments and a stream; it checks the arguments,
// launches, and returns without waiting (cpu and emu finish first). A failing call launches nothing, returns
// a status, and sol_last_error() says what was wrong. Nothing is allocated, nothing synchronised: calls may
// be captured into CUDA graphs.
//
// Conventions. Shapes are given in comments, (M, N) is M rows of N elements. Sizes and strides are int64, in
// elements; a row stride of 0 means dense rows. Rows may be any length and alignment. M or N of 0 is a no-op.
// dtype is the input's: fp32, fp16 or bf16. out_dtype 0 means dtype, weight_dtype 0 means dtype; weights (and
// biases, which have the weight's type) are in the input's type or fp32. Sums are kept in fp32. A row's
// result does not depend on the other rows or on how many there are. In place: y may be exactly x (same
// address, type and stride) where the comment says so; any other overlap of an output with another tensor is
// refused.
#ifndef SOL_OPS_H
#define SOL_OPS_H

#include "sol/context.h"
#include "sol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

// y = x, converted to out_dtype. Any dtype of 1, 2, 4 or 8 bytes where it stays the same.
typedef struct SolCopy {
  void *y;       // (M, N)
  const void *x; // (M, N)
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype;
} SolCopy;
SOL_API SolStatus sol_copy(SolContext *context, const SolCopy *args, SolStream stream);
SOL_API SolStatus sol_copy_cost(const SolCopy *args, SolCost *out, SolError *err);

// What happens to an id outside 0..vocab-1. Nothing is ever read through it.
typedef enum SolBadId {
  SOL_BAD_ID_ZERO = 0, // its row comes out as if the table's row were zeros
  SOL_BAD_ID_FLAG      // the same, and *bad becomes 1 (the caller clears it)
} SolBadId;

// y[i] = table[ids[i]]
typedef struct SolEmbedding {
  void *y;           // (M, N)
  const void *table; // (vocab, N)
  const void *ids;   // (M)
  int32_t *bad;      // (1), for SOL_BAD_ID_FLAG; otherwise NULL
  int64_t m, n, vocab, y_stride, table_stride;
  SolDtype dtype, out_dtype, id_dtype; // id_dtype: int32 (0) or int64
  SolBadId bad_id;
} SolEmbedding;
SOL_API SolStatus sol_embedding(SolContext *context, const SolEmbedding *args, SolStream stream);
SOL_API SolStatus sol_embedding_cost(const SolEmbedding *args, SolCost *out, SolError *err);

// Scales of fp8 (e4m3) outputs: y = round(value / scale), saturated to +-448.
typedef enum SolScaling {
  SOL_SCALE_TENSOR = 0, // scales (1) is read
  SOL_SCALE_ROW,        // scales (M) are written: largest magnitude of the row / 448
  SOL_SCALE_BLOCK       // scales (M, ceil(N / 128)) are written, one per 128 columns, dense
} SolScaling;

// y = x / sqrt(mean(x^2) + eps) * (weight + weight_offset). y may be x where the types agree.
typedef struct SolRmsnorm {
  void *y;            // (M, N)
  const void *x;      // (M, N)
  const void *weight; // (N); NULL: all ones (and no offset)
  float *scales;      // out_dtype fp8 alone; see SolScaling
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype, weight_dtype; // out_dtype may also be fp8
  float eps, weight_offset;                // eps 0 means 0; weight_offset 1 for models that store w - 1
  SolScaling scaling;
} SolRmsnorm;
SOL_API SolStatus sol_rmsnorm(SolContext *context, const SolRmsnorm *args, SolStream stream);
SOL_API SolStatus sol_rmsnorm_cost(const SolRmsnorm *args, SolCost *out, SolError *err);

// s = x + residual, rounded to dtype and written to residual_out; y = rmsnorm(s) * (weight + weight_offset).
// y may be x; residual_out may be residual (NULL means just that).
typedef struct SolAddRmsnorm {
  void *y;            // (M, N)
  const void *x;      // (M, N)
  void *residual;     // (M, N), read; written too where residual_out is NULL
  void *residual_out; // (M, N) or NULL
  const void *weight; // (N) or NULL
  int64_t m, n, y_stride, x_stride, residual_stride, residual_out_stride;
  SolDtype dtype, out_dtype, weight_dtype; // residuals have dtype
  float eps, weight_offset;
} SolAddRmsnorm;
SOL_API SolStatus sol_add_rmsnorm(SolContext *context, const SolAddRmsnorm *args, SolStream stream);
SOL_API SolStatus sol_add_rmsnorm_cost(const SolAddRmsnorm *args, SolCost *out, SolError *err);

// y[i] = rmsnorm(table[ids[i]]) * (weight + weight_offset); embedded (or NULL) gets the rows themselves.
typedef struct SolEmbedRmsnorm {
  void *y;            // (M, N)
  void *embedded;     // (M, N), in dtype, or NULL
  const void *table;  // (vocab, N)
  const void *ids;    // (M)
  const void *weight; // (N) or NULL
  int32_t *bad;       // (1), for SOL_BAD_ID_FLAG; otherwise NULL
  int64_t m, n, vocab, y_stride, embedded_stride, table_stride;
  SolDtype dtype, out_dtype, weight_dtype, id_dtype;
  SolBadId bad_id;
  float eps, weight_offset;
} SolEmbedRmsnorm;
SOL_API SolStatus sol_embed_rmsnorm(SolContext *context, const SolEmbedRmsnorm *args, SolStream stream);
SOL_API SolStatus sol_embed_rmsnorm_cost(const SolEmbedRmsnorm *args, SolCost *out, SolError *err);

// y = (x - mean) / sqrt(variance + eps) * (weight + weight_offset) + bias. y may be x where the types agree.
typedef struct SolLayernorm {
  void *y;            // (M, N)
  const void *x;      // (M, N)
  const void *weight; // (N) or NULL
  const void *bias;   // (N) or NULL
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype, weight_dtype;
  float eps, weight_offset;
} SolLayernorm;
SOL_API SolStatus sol_layernorm(SolContext *context, const SolLayernorm *args, SolStream stream);
SOL_API SolStatus sol_layernorm_cost(const SolLayernorm *args, SolCost *out, SolError *err);

// y = (x - mean) / sqrt(variance + eps) * weight[channel] + bias[channel], mean and variance over each of `groups` groups of
// consecutive channels of each sample. x and y are dense. y may be x where the types agree.
typedef struct SolGroupNorm {
  void *y; // (batch, C, S)
  const void
      *x; // (batch, C, S): S the product of what comes after the channels, height and width for example
  const void *weight;          // (C) or NULL
  const void *bias;            // (C) or NULL
  int64_t batch, c, s, groups; // C is a multiple of groups
  SolDtype dtype, out_dtype, weight_dtype;
  float eps;
} SolGroupNorm;
SOL_API SolStatus sol_group_norm(SolContext *context, const SolGroupNorm *args, SolStream stream);
SOL_API SolStatus sol_group_norm_cost(const SolGroupNorm *args, SolCost *out, SolError *err);

// y = exp(x - max) / sum(exp(x - max)) by rows; log_softmax its logarithm. y may be x where the types agree.
// A row that holds a NaN or +inf, or nothing but -inf, comes out NaN (log_softmax likewise); as torch does.
typedef struct SolSoftmax {
  void *y;       // (M, N)
  const void *x; // (M, N)
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype;
} SolSoftmax;
SOL_API SolStatus sol_softmax(SolContext *context, const SolSoftmax *args, SolStream stream);
SOL_API SolStatus sol_softmax_cost(const SolSoftmax *args, SolCost *out, SolError *err);
SOL_API SolStatus sol_log_softmax(SolContext *context, const SolSoftmax *args, SolStream stream);
SOL_API SolStatus sol_log_softmax_cost(const SolSoftmax *args, SolCost *out, SolError *err);

// loss[i] = log(sum of exp(x[i])) - x[i][targets[i]], in fp32; where gradient is not NULL, gradient[i] = (softmax(x[i]) - (column ==
// targets[i])) * scale. A row whose target is outside 0..N-1 is ignored: its loss and gradient are 0. gradient may be x. Rows of up
// to 1 MiB (Hopper; 64 KiB elsewhere) are read once.
typedef struct SolCrossEntropy {
  float *loss;         // (M)
  const void *x;       // (M, N)
  const void *targets; // (M)
  void *gradient;      // (M, N) in dtype, or NULL
  int64_t m, n, x_stride, gradient_stride;
  SolDtype dtype, id_dtype; // id_dtype: of targets
  float scale;              // of the gradient, 1 / M for that of the mean; 0 means 1
} SolCrossEntropy;
SOL_API SolStatus sol_cross_entropy(SolContext *context, const SolCrossEntropy *args, SolStream stream);
SOL_API SolStatus sol_cross_entropy_cost(const SolCrossEntropy *args, SolCost *out, SolError *err);

// y[b][j][i] = x[b][i][j]. Any dtype of 1, 2, 4 or 8 bytes; the type stays the same.
typedef struct SolTranspose {
  void *y;                                                    // (batch, N, M)
  const void *x;                                              // (batch, M, N)
  int64_t batch, m, n;                                        // batch 0 means 1
  int64_t y_stride, x_stride, y_batch_stride, x_batch_stride; // 0: dense
  SolDtype dtype;
} SolTranspose;
SOL_API SolStatus sol_transpose(SolContext *context, const SolTranspose *args, SolStream stream);
SOL_API SolStatus sol_transpose_cost(const SolTranspose *args, SolCost *out, SolError *err);

// y = x * scale[column]. y may be x where the types agree.
typedef struct SolScaleColumns {
  void *y;           // (M, N)
  const void *x;     // (M, N)
  const void *scale; // (N)
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype, weight_dtype; // weight_dtype: of scale
} SolScaleColumns;
SOL_API SolStatus sol_scale_columns(SolContext *context, const SolScaleColumns *args, SolStream stream);
SOL_API SolStatus sol_scale_columns_cost(const SolScaleColumns *args, SolCost *out, SolError *err);

// bias_relu_scale: y = max(x + bias[column], 0) * scale, NaN kept. bias_gelu: y = gelu(x + bias[column]), the
// tanh form (scale is not used). y may be x where the types agree.
typedef struct SolBias {
  void *y;          // (M, N)
  const void *x;    // (M, N)
  const void *bias; // (N); NULL: none
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype, weight_dtype; // weight_dtype: of bias
  float scale;
} SolBias;
SOL_API SolStatus sol_bias_relu_scale(SolContext *context, const SolBias *args, SolStream stream);
SOL_API SolStatus sol_bias_relu_scale_cost(const SolBias *args, SolCost *out, SolError *err);
SOL_API SolStatus sol_bias_gelu(SolContext *context, const SolBias *args, SolStream stream);
SOL_API SolStatus sol_bias_gelu_cost(const SolBias *args, SolCost *out, SolError *err);

// y = silu(gate) * up. Gate and up are often the two halves of one row: up = gate + N, both with stride 2N.
typedef struct SolSiluMul {
  void *y;          // (M, N)
  const void *gate; // (M, N)
  const void *up;   // (M, N)
  float *scales;    // out_dtype fp8 alone; see SolScaling
  int64_t m, n, y_stride, gate_stride, up_stride;
  SolDtype dtype, out_dtype; // out_dtype may also be fp8
  SolScaling scaling;
} SolSiluMul;
SOL_API SolStatus sol_silu_mul(SolContext *context, const SolSiluMul *args, SolStream stream);
SOL_API SolStatus sol_silu_mul_cost(const SolSiluMul *args, SolCost *out, SolError *err);

// What the gate of sol_gated_mul goes through; gelu is the tanh form.
typedef enum SolGate { SOL_GATE_GELU = 0, SOL_GATE_RELU, SOL_GATE_SIGMOID, SOL_GATE_SILU } SolGate;
// y = activation(gate) * up, as sol_silu_mul.
typedef struct SolGatedMul {
  void *y;            // (M, N)
  const void *gate;   // (M, N)
  const void *up;     // (M, N)
  const float *scale; // (1) or NULL: y = round(value / scale); out_dtype fp8 or int8 alone
  int64_t m, n, y_stride, gate_stride, up_stride;
  SolDtype dtype, out_dtype; // out_dtype may also be fp8 or int8
  SolGate activation;
} SolGatedMul;
SOL_API SolStatus sol_gated_mul(SolContext *context, const SolGatedMul *args, SolStream stream);
SOL_API SolStatus sol_gated_mul_cost(const SolGatedMul *args, SolCost *out, SolError *err);

// y = a + b. y may be a where the types agree.
typedef struct SolAdd {
  void *y;       // (M, N)
  const void *a; // (M, N)
  const void *b; // (M, N)
  int64_t m, n, y_stride, a_stride, b_stride;
  SolDtype dtype, out_dtype;
} SolAdd;
SOL_API SolStatus sol_add(SolContext *context, const SolAdd *args, SolStream stream);
SOL_API SolStatus sol_add_cost(const SolAdd *args, SolCost *out, SolError *err);

// y = max(x, 0), NaN kept. y may be x where the types agree.
typedef struct SolRelu {
  void *y;       // (M, N)
  const void *x; // (M, N)
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype;
} SolRelu;
SOL_API SolStatus sol_relu(SolContext *context, const SolRelu *args, SolStream stream);
SOL_API SolStatus sol_relu_cost(const SolRelu *args, SolCost *out, SolError *err);

// y = x * x_scale / y_scale, between any two of fp64, fp32, fp16, bf16, fp8 (e4m3), int8, int32 and int64. Computed in fp32, or in
// fp64 where one of them is fp64, int32 or int64 (to fp32's precision where int32 becomes fp16, bf16 or fp8). fp8 saturates to +-448; integers are rounded to the nearest, ties to even,
// and saturate, a NaN becomes 0. y may be x where the types agree.
typedef struct SolCast {
  void *y;              // (M, N)
  const void *x;        // (M, N)
  const float *x_scale; // (1) or NULL: what x was divided by
  const float *y_scale; // (1) or NULL: what y is to be divided by
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype;
} SolCast;
SOL_API SolStatus sol_cast(SolContext *context, const SolCast *args, SolStream stream);
SOL_API SolStatus sol_cast_cost(const SolCast *args, SolCost *out, SolError *err);

// How sol_quantize stores elements, and the scales that it writes, each by the largest magnitude that it is for (NaN
// aside). Scales are dense.
typedef enum SolQuant {
  SOL_QUANT_INT8_ROW = 0, // y int8; scales (M), fp32: largest / 127
  SOL_QUANT_INT8_BLOCK,   // the same for each 128 columns: scales (M, ceil(N / 128))
  SOL_QUANT_FP8_ROW,      // y fp8 (e4m3); scales (M), fp32: largest / 448
  SOL_QUANT_FP8_BLOCK,    // the same for each 128 columns: scales (M, ceil(N / 128))
  SOL_QUANT_MXFP8, // y fp8 (e4m3); scales (M, ceil(N / 32)), e8m0: the least power of two from largest / 448 on
  SOL_QUANT_NVFP4 // y fp4 (e2m1); scales (M, ceil(N / 16)), e4m3: largest / (6 tensor_scale), rounded
} SolQuant;
// y = x / scale, rounded to the nearest. A scale below 2^-126 is 0, and so are its elements. In fp4 two columns share a
// byte, the first in its low half; N is even, and x is about y * scale * tensor_scale.
typedef struct SolQuantize {
  void *y;                          // (M, N); fp4: (M, N / 2) bytes
  const void *x;                    // (M, N)
  void *scales;                     // see SolQuant
  const float *tensor_scale;        // (1) or NULL: 1; nvfp4 alone
  int64_t m, n, y_stride, x_stride; // y_stride in bytes
  SolDtype dtype;
  SolQuant format;
} SolQuantize;
SOL_API SolStatus sol_quantize(SolContext *context, const SolQuantize *args, SolStream stream);
SOL_API SolStatus sol_quantize_cost(const SolQuantize *args, SolCost *out, SolError *err);
// Scales of a row of n columns; -1: there is no such format.
SOL_API int64_t sol_quantize_scales(SolQuant format, int64_t n);

// Rotary position embedding of the first `rotary` elements of every head; the rest is copied. Pairs are (i, i
// + rotary/2), or (2i, 2i+1) where interleaved. Row positions[t] of cos and sin is used; NULL: row t. y may
// be x.
typedef struct SolRope {
  void *y;                       // (T, H, D), heads dense within a token
  const void *x;                 // (T, H, D)
  const void *cos, *sin;         // (table rows, rotary / 2), dense
  const void *positions;         // (T) or NULL. One outside 0..table rows-1 leaves its token unrotated
  int64_t t, h, d, rotary, rows; // rotary 0 means D; rows: of the tables, 0 means T
  int64_t y_stride, x_stride;    // from token to token; 0: H * D
  SolDtype dtype, out_dtype, weight_dtype, id_dtype; // weight_dtype: of cos and sin; id_dtype: of positions
  int interleaved;
} SolRope;
SOL_API SolStatus sol_rope(SolContext *context, const SolRope *args, SolStream stream);
SOL_API SolStatus sol_rope_cost(const SolRope *args, SolCost *out, SolError *err);

typedef enum SolReduction {
  SOL_REDUCE_SUM = 0,
  SOL_REDUCE_MAX,
  SOL_REDUCE_MEAN,
  SOL_REDUCE_SUM_SQUARES
} SolReduction;
// y = sum, max, mean or sum of squares over each row (SOL_AXIS_ROWS), each column, or all. max keeps NaN.
// Over all and over columns it may need a workspace: sol_reduce_workspace says how many bytes (0: none).
// Columns may be those of each matrix of a batch. So a dense tensor (A, B, C) is summed over any axis: the last by rows of
// m = A B, the first by columns of m = A, n = B C, the middle one by columns with batch = A.
typedef struct SolReduce {
  void *y;       // (M), (N), of a batch (batch, N), or (1)
  const void *x; // (M, N), of a batch (batch, M, N)
  void *workspace;
  int64_t workspace_bytes;
  int64_t m, n, x_stride;
  SolDtype dtype, out_dtype;
  SolReduction reduction;
  SolAxis axis;
  int64_t batch, x_batch_stride; // columns alone: 0 means 1; 0 means dense
} SolReduce;
SOL_API SolStatus sol_reduce(SolContext *context, const SolReduce *args, SolStream stream);
SOL_API SolStatus sol_reduce_cost(const SolReduce *args, SolCost *out, SolError *err);
SOL_API int64_t sol_reduce_workspace(const SolContext *context, const SolReduce *args);

// y[i] = column of the largest element of row i, the first of equals; a NaN is larger than everything.
typedef struct SolArgmax {
  void *y;       // (M)
  const void *x; // (M, N), N at least 1
  int64_t m, n, x_stride;
  SolDtype dtype, id_dtype; // id_dtype: of y
} SolArgmax;
SOL_API SolStatus sol_argmax(SolContext *context, const SolArgmax *args, SolStream stream);
SOL_API SolStatus sol_argmax_cost(const SolArgmax *args, SolCost *out, SolError *err);

// The k largest elements of each row, the largest first, and their columns; of equals the lower column first, a NaN
// above everything. k is at most 1024, and at most N.
typedef struct SolTopk {
  void *values;  // (M, k), in dtype
  const void *x; // (M, N)
  void *ids;     // (M, k)
  int64_t m, n, k, values_stride, ids_stride, x_stride;
  SolDtype dtype, id_dtype;
} SolTopk;
SOL_API SolStatus sol_topk(SolContext *context, const SolTopk *args, SolStream stream);
SOL_API SolStatus sol_topk_cost(const SolTopk *args, SolCost *out, SolError *err);

// ids[i] = a random column of row i, with probability softmax(x[i] / temperature) among those that are kept: the top_k largest,
// and of these the largest that together have at least top_p of the probability; of equals the lower columns. What is
// chosen follows from the row, its seed and the step alone, bit by bit the same on cpu, emu and cuda (kernels/select/weight.h
// has the arithmetic). A NaN is never chosen; a row of nothing else gives -1.
typedef struct SolSample {
  void *ids;            // (M)
  const void *x;        // (M, N), logits
  const int64_t *seeds; // (M)
  int64_t m, n, x_stride;
  int64_t step;  // of the decoding: another one, another random number
  int64_t top_k; // 0 means all
  SolDtype dtype, id_dtype;
  float temperature; // 0: the largest alone
  float top_p;       // 0 means 1
} SolSample;
SOL_API SolStatus sol_sample(SolContext *context, const SolSample *args, SolStream stream);
SOL_API SolStatus sol_sample_cost(const SolSample *args, SolCost *out, SolError *err);

// counts[b] += how many x fall into bin b. Integers: x itself is the bin. Reals: bin = floor((x - low) *
// (bins / (high - low))), each step in fp32, high itself in the last. What falls outside (and NaN) is not
// counted. The caller clears counts.
typedef struct SolHistogram {
  int32_t *counts; // (bins)
  const void *x;   // (N)
  int64_t n, bins; // bins at most 65536
  SolDtype dtype;  // int32, fp32, fp16, bf16
  float low, high;
} SolHistogram;
SOL_API SolStatus sol_histogram(SolContext *context, const SolHistogram *args, SolStream stream);
SOL_API SolStatus sol_histogram_cost(const SolHistogram *args, SolCost *out, SolError *err);

// y = centre * x + sum over distance d of side[d-1] * (the neighbours at distance d along each axis), d up to
// radius; outside the grid is zero. M = 1 is the 1-D stencil.
typedef struct SolStencil {
  void *y;       // (M, N)
  const void *x; // (M, N)
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype;
  int radius; // 1 to 8
  float centre, side[8];
} SolStencil;
SOL_API SolStatus sol_stencil(SolContext *context, const SolStencil *args, SolStream stream);
SOL_API SolStatus sol_stencil_cost(const SolStencil *args, SolCost *out, SolError *err);

// y[i] = x[ids[i]] by rows of any dtype; the same kernel as embedding, without conversion. Where ids come in
// batches of scattered rows, an order (a permutation of 0..M-1, by ascending id) makes neighbouring blocks
// read neighbouring rows: y[order[i]] = x[ids[order[i]]]. sol_gather_order computes one on the host.
typedef struct SolGather {
  void *y;           // (M, N)
  const void *x;     // (rows, N)
  const void *ids;   // (M)
  const void *order; // (M), of id_dtype, or NULL. Must be a permutation
  int32_t *bad;      // (1), for SOL_BAD_ID_FLAG; otherwise NULL
  int64_t m, n, rows, y_stride, x_stride;
  SolDtype dtype, id_dtype;
  SolBadId bad_id;
} SolGather;
SOL_API SolStatus sol_gather(SolContext *context, const SolGather *args, SolStream stream);
SOL_API SolStatus sol_gather_cost(const SolGather *args, SolCost *out, SolError *err);
// Stable by id. ids and order are host arrays of m elements of id_dtype (int32 or int64).
SOL_API SolStatus sol_gather_order(const void *ids, void *order, int64_t m, SolDtype id_dtype, SolError *err);

// position += velocity * dt, in place, fp32. Array of structures: one array of {x, y, z, vx, vy, vz} (N, 6);
// structure of arrays: positions (3, N) and velocities (3, N).
typedef struct SolParticles {
  float *position;       // (3, N); array of structures: (N, 6)
  const float *velocity; // (3, N); array of structures: NULL
  int64_t n, stride;     // from one axis to the next; 0: N
  float dt;
  int structures; // 1: array of structures
} SolParticles;
SOL_API SolStatus sol_particles(SolContext *context, const SolParticles *args, SolStream stream);
SOL_API SolStatus sol_particles_cost(const SolParticles *args, SolCost *out, SolError *err);

// K and V of T tokens into a paged cache: slot = slots[t]; page slot / page_size, place slot % page_size.
// A negative slot skips its token; one beyond the cache too. The cache is (pages, page_size, H, D).
typedef struct SolKvAppend {
  void *k_cache, *v_cache;                               // (pages, page_size, H, D)
  const void *k, *v;                                     // (T, H, D)
  const void *slots;                                     // (T)
  int64_t t, h, d, pages, page_size, k_stride, v_stride; // strides from token to token; 0: H * D
  SolDtype dtype, kv_dtype, id_dtype;                    // kv_dtype: dtype, or fp8
  float k_scale, v_scale;                                // fp8: value / scale is stored; 0 means 1
} SolKvAppend;
SOL_API SolStatus sol_kv_append(SolContext *context, const SolKvAppend *args, SolStream stream);
SOL_API SolStatus sol_kv_append_cost(const SolKvAppend *args, SolCost *out, SolError *err);

// What sol_gemm does to a sum before it is written.
typedef enum SolActivation {
  SOL_ACTIVATION_NONE = 0,
  SOL_ACTIVATION_RELU,
  SOL_ACTIVATION_GELU,    // the tanh form
  SOL_ACTIVATION_SILU_MUL // B and bias have 2N columns, gate then up; C = silu(gate) * up
} SolActivation;

// How B is stored, if not as A is, for reading weights of fewer bits, as decoding is bound to; b_columns must be set.
typedef enum SolWeights {
  SOL_WEIGHTS_AS_A = 0,
  SOL_WEIGHTS_FP8, // e4m3; alpha is multiplied by b_scale
  SOL_WEIGHTS_INT4 // -8 to 7, two in a byte, the first in the low bits; sums of 128 k times b_scales. K, b_stride, b_batch_stride even
} SolWeights;

// C = activation(alpha A B + beta C + bias) + residual, for each matrix of a batch. Sums are in fp32. C may be fp32, fp16
// or bf16; A and B are fp16, bf16 or fp8 (e4m3), both of dtype; of fp8 C and bias are bf16 by default, and alpha is multiplied
// by a_scale and b_scale. Sums of fp8 keep about 13 bits of the largest product on Hopper. Nothing is read from C where beta is 0. On Hopper the fast kernels
// take tensors whose addresses and strides are multiples of 16 bytes (fp8: along k), and of up to 16 rows of A (decoding) those where
// b_columns is set. Weights of fewer bits are read again for every 16 rows. The results of rows 1 to 16 do not depend on how many rows there are.
typedef struct SolGemm {
  void *c;                // (batch, M, N)
  const void *a;          // (batch, M, K); with a_columns (batch, K, M)
  const void *b;          // (batch, K, N); with b_columns (batch, N, K), as weights usually are
  const void *bias;       // (N) or NULL
  const void *residual;   // (batch, M, N) in C's type, or NULL
  const float *a_scale;   // fp8: (1) or NULL
  const float *b_scale;   // fp8: (1) or NULL
  const float *b_scales;  // int4: (batch, N, K / 128), rounded up: each for 128 k of a column; otherwise NULL
  int64_t batch, m, n, k; // batch 0 means 1
  int64_t c_stride, a_stride, b_stride, residual_stride;
  int64_t c_batch_stride, a_batch_stride, b_batch_stride, residual_batch_stride; // 0: dense
  SolDtype dtype, out_dtype, weight_dtype;                                       // weight_dtype: of bias
  float alpha, beta;                                                             // alpha 0 means 1
  SolActivation activation;
  int a_columns, b_columns; // 1: the matrix lies column by column
  SolWeights weights;
} SolGemm;
SOL_API SolStatus sol_gemm(SolContext *context, const SolGemm *args, SolStream stream);
SOL_API SolStatus sol_gemm_cost(const SolGemm *args, SolCost *out, SolError *err);

// Attention: O = softmax(scores) V for each sequence and head, scores = scale Q K', those of keys that a query does not see
// left out. Nothing of the scores goes through memory. A sequence's queries are the last of its keys: with `causal` query i of n
// sees keys 0 to i + (keys - n). A query that sees no key has zeros in O and -infinity in lse.
// Variable lengths: with q_starts the queries of all sequences lie one after the other, those of sequence b from q_starts[b] to
// q_starts[b + 1]; kv_starts likewise. They are kept within the tokens there are and within `queries` (`keys`) a sequence.
// P is rounded to dtype before it is multiplied by V; sums are kept in fp32. A NaN or an infinity in V may reach queries
// that do not see its key.
typedef struct SolAttention {
  void *o;           // as q
  const void *q;     // (batch, queries, heads, D); with q_starts (q_tokens, heads, D)
  const void *k, *v; // (batch, keys, kv_heads, D); with kv_starts (kv_tokens, kv_heads, D)
  float *lse;        // log of the sum of exp(scores), (batch, heads, queries) or (heads, q_tokens); or NULL
  const int32_t *q_starts;                        // (batch + 1) or NULL
  const int32_t *kv_starts;                       // (batch + 1) or NULL
  int64_t batch, heads, kv_heads;                 // kv_heads divides heads; 0: as many as heads
  int64_t queries, keys, d;                       // of a sequence, with starts at most; d: 64, 128 or 256
  int64_t q_tokens, kv_tokens;                    // of all sequences, where starts are given; 0: none
  int64_t o_stride, q_stride, k_stride, v_stride; // from token to token; 0: dense
  int64_t o_batch_stride, q_batch_stride, k_batch_stride, v_batch_stride; // without starts; 0: dense
  int64_t window;        // with causal: keys that a query sees, its own included; 0: all before it
  SolDtype dtype;        // fp16 or bf16, of all four
  float scale, soft_cap; // scale 0: 1 / sqrt(D). soft_cap c: scores become c tanh(score / c); 0: they do not
  int causal;
} SolAttention;
SOL_API SolStatus sol_attention(SolContext *context, const SolAttention *args, SolStream stream);
SOL_API SolStatus sol_attention_cost(const SolAttention *args, SolCost *out, SolError *err);

// Attention of one new token a sequence to the tokens in a paged cache, as sol_kv_append writes it. Token t of sequence b is row
// t % page_size of page table[b][t / page_size]; without a table, page b holds sequence b. Tokens of a page number outside the
// cache are left out, and so are those from max_length on. A sequence is cut into parts of a fixed length, which depends on the
// shape of a head alone: its result is the same bits whatever the batch is. Without v_cache, V is the first v_dim elements of each
// row of k_cache: MLA's latent, which all heads share. With an fp8 cache Q is rounded to fp16.
typedef struct SolDecodeAttention {
  void *o;                // (batch, heads, v_dim)
  const void *q;          // (batch, heads, D)
  const void *k_cache;    // (pages, page_size, kv_heads, D)
  const void *v_cache;    // (pages, page_size, kv_heads, v_dim), or NULL: in k_cache
  const int32_t *table;   // (batch, table_pages) or NULL
  const int32_t *lengths; // (batch): tokens, the new one included
  float *lse;             // (batch, heads) or NULL
  void *workspace;        // sol_decode_attention_workspace says how many bytes (0: none)
  int64_t workspace_bytes;
  int64_t batch, heads, kv_heads; // kv_heads divides heads; 0: as many as heads
  int64_t d, v_dim;               // 64, 128 or 256, both; or 576 and 512 without v_cache. v_dim 0: as D
  int64_t pages, page_size, table_pages;
  int64_t max_length;         // no sequence has more tokens; 0: as many as its pages hold
  int64_t o_stride, q_stride; // from token to token; 0: dense
  int64_t window;             // tokens that are seen, the new one included; 0: all
  SolDtype dtype, kv_dtype;   // dtype fp16 or bf16; kv_dtype: dtype, or fp8
  float scale, soft_cap;      // as SolAttention's
  float k_scale, v_scale;     // fp8: what is stored times this is the value; 0 means 1
} SolDecodeAttention;
SOL_API int64_t sol_decode_attention_workspace(const SolContext *context, const SolDecodeAttention *args);
SOL_API SolStatus sol_decode_attention(SolContext *context, const SolDecodeAttention *args, SolStream stream);
SOL_API SolStatus sol_decode_attention_cost(const SolDecodeAttention *args, SolCost *out, SolError *err);

#ifdef __cplusplus
}
#endif
#endif
