// The operations on DLPack tensors, as frameworks hand them out: pointers, sizes, strides and types are read
// off the tensors, everything else is as in sol/ops.h. Nothing is owned, kept or freed: the tensors and what
// they point to must be valid until the call returns, their memory until the stream is done with it.
//
// Tensors must be where the context runs (cpu: kDLCPU or kDLCUDAHost; cuda: kDLCUDA on the context's GPU,
// kDLCUDAHost or kDLCUDAManaged; emu: kDLExtDev or kDLCUDA). The last axis must be contiguous, and the axes
// before it must collapse into rows of one stride. Shapes in comments have leading axes "..." for rows;
// tensors that share a shape must agree in it, up to how the rows are split into axes. "or NULL": may be
// absent. Not part of sol/sol.h.
#ifndef SOL_DLPACK_H
#define SOL_DLPACK_H

#include "sol/ops.h"

// DLPack's own header, where it came first or can be found, has these types; otherwise they are declared here
// after the ABI it publishes (1.x). A copy of DLPack's header under another name must be included before
// this.
#if !defined(DLPACK_DLPACK_H_) && defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef DLPACK_DLPACK_H_
typedef enum DLDeviceType {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLExtDev = 12,
  kDLCUDAManaged = 13
} DLDeviceType;

typedef struct DLDevice {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLFloat8_e4m3fn = 10
} DLDataTypeCode;

typedef struct DLDataType {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides; // strides in elements; NULL: dense
  uint64_t byte_offset;
} DLTensor;
#endif

SOL_API SolStatus sol_copy_dl(SolContext *context, const DLTensor *y, const DLTensor *x, SolStream stream);
// y, x (..., N); weight (N) or NULL
SOL_API SolStatus sol_rmsnorm_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                 const DLTensor *weight, float eps, float weight_offset, SolStream stream);
// All (..., N) but weight (N) or NULL; residual_out or NULL: residual is written
SOL_API SolStatus sol_add_rmsnorm_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                     const DLTensor *residual, const DLTensor *residual_out,
                                     const DLTensor *weight, float eps, float weight_offset,
                                     SolStream stream);
// y (..., N), embedded the same or NULL, table (vocab, N), ids (...), weight (N) or NULL, bad: one int32 that
// is set to 1 where an id is out of range, or NULL
SOL_API SolStatus sol_embed_rmsnorm_dl(SolContext *context, const DLTensor *y, const DLTensor *embedded,
                                       const DLTensor *table, const DLTensor *ids, const DLTensor *weight,
                                       const DLTensor *bad, float eps, float weight_offset, SolStream stream);
// y, x (..., N); weight, bias (N) or NULL
SOL_API SolStatus sol_layernorm_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                   const DLTensor *weight, const DLTensor *bias, float eps,
                                   float weight_offset, SolStream stream);
SOL_API SolStatus sol_softmax_dl(SolContext *context, const DLTensor *y, const DLTensor *x, SolStream stream);
SOL_API SolStatus sol_log_softmax_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                     SolStream stream);
// y (..., N), table (vocab, N), ids (...), bad (1) or NULL
SOL_API SolStatus sol_embedding_dl(SolContext *context, const DLTensor *y, const DLTensor *table,
                                   const DLTensor *ids, const DLTensor *bad, SolStream stream);
// y (N, M) and x (M, N), or y (batch, N, M) and x (batch, M, N)
SOL_API SolStatus sol_transpose_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                   SolStream stream);
// y, x (..., N); scale (N)
SOL_API SolStatus sol_scale_columns_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                       const DLTensor *scale, SolStream stream);
// y, x (..., N); bias (N) or NULL
SOL_API SolStatus sol_bias_relu_scale_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                         const DLTensor *bias, float scale, SolStream stream);
SOL_API SolStatus sol_bias_gelu_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                   const DLTensor *bias, SolStream stream);
// All (..., N)
SOL_API SolStatus sol_silu_mul_dl(SolContext *context, const DLTensor *y, const DLTensor *gate,
                                  const DLTensor *up, SolStream stream);
SOL_API SolStatus sol_gated_mul_dl(SolContext *context, const DLTensor *y, const DLTensor *gate,
                                   const DLTensor *up, const DLTensor *scale, SolGate activation,
                                   SolStream stream);
SOL_API SolStatus sol_add_dl(SolContext *context, const DLTensor *y, const DLTensor *a, const DLTensor *b,
                             SolStream stream);
SOL_API SolStatus sol_relu_dl(SolContext *context, const DLTensor *y, const DLTensor *x, SolStream stream);
// y, x (..., N); x_scale, y_scale: one fp32, or NULL
SOL_API SolStatus sol_cast_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                              const DLTensor *x_scale, const DLTensor *y_scale, SolStream stream);
// x (..., N), y the same of int8 or fp8 (nvfp4: (..., N / 2) of int8), scales: dense, as many as SolQuant says, of fp32 (e8m0:
// int8; e4m3: fp8 or int8), tensor_scale: one fp32, or NULL
SOL_API SolStatus sol_quantize_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                  const DLTensor *scales, const DLTensor *tensor_scale, SolQuant format,
                                  SolStream stream);
// y, x (batch, C, ...), dense; weight, bias (C) or NULL
SOL_API SolStatus sol_group_norm_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                    const DLTensor *weight, const DLTensor *bias, int groups, float eps,
                                    SolStream stream);
// loss (...) of fp32, x (..., N), targets (...), gradient (..., N) or NULL
SOL_API SolStatus sol_cross_entropy_dl(SolContext *context, const DLTensor *loss, const DLTensor *x,
                                       const DLTensor *targets, const DLTensor *gradient, float scale,
                                       SolStream stream);
// values, ids (..., k), x (..., N)
SOL_API SolStatus sol_topk_dl(SolContext *context, const DLTensor *values, const DLTensor *ids,
                              const DLTensor *x, SolStream stream);
// ids (...), x (..., N), seeds (...) of int64
SOL_API SolStatus sol_sample_dl(SolContext *context, const DLTensor *ids, const DLTensor *x,
                                const DLTensor *seeds, float temperature, int top_k, float top_p, int step,
                                SolStream stream);
// y, x (..., H, D), heads dense within a token; cos, sin (table rows, rotary / 2); positions (...) or NULL
SOL_API SolStatus sol_rope_dl(SolContext *context, const DLTensor *y, const DLTensor *x, const DLTensor *cos,
                              const DLTensor *sin, const DLTensor *positions, int interleaved,
                              SolStream stream);
// x (M, N), by columns also (batch, M, N); y as many elements as axis leaves; workspace: any dense tensor of at least the bytes that
// sol_reduce_workspace says, or NULL
SOL_API SolStatus sol_reduce_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                const DLTensor *workspace, SolReduction reduction, SolAxis axis,
                                SolStream stream);
// y (...) of int32 or int64, x (..., N)
SOL_API SolStatus sol_argmax_dl(SolContext *context, const DLTensor *y, const DLTensor *x, SolStream stream);
// y (..., N), x (rows, N), ids (...), order the same or NULL, bad (1) or NULL
SOL_API SolStatus sol_gather_dl(SolContext *context, const DLTensor *y, const DLTensor *x,
                                const DLTensor *ids, const DLTensor *order, const DLTensor *bad,
                                SolStream stream);
// k_cache, v_cache (pages, page_size, H, D), dense; k, v (..., H, D); slots (...)
SOL_API SolStatus sol_kv_append_dl(SolContext *context, const DLTensor *k_cache, const DLTensor *v_cache,
                                   const DLTensor *k, const DLTensor *v, const DLTensor *slots, float k_scale,
                                   float v_scale, SolStream stream);

// c (M, N) or (batch, M, N), a (M, K) and b (K, N) likewise, each by rows or (a and b) by columns, as its strides say; bias (N) or NULL,
// residual as c or NULL. With SOL_ACTIVATION_SILU_MUL b and bias have 2N columns.
SOL_API SolStatus sol_gemm_dl(SolContext *context, const DLTensor *c, const DLTensor *a, const DLTensor *b,
                              const DLTensor *bias, const DLTensor *residual, float alpha, float beta,
                              SolActivation activation, SolStream stream);
// o and q (batch, queries, heads, D), k and v (batch, keys, kv_heads, D), heads dense within a token; lse (batch, heads, queries) or NULL
SOL_API SolStatus sol_attention_dl(SolContext *context, const DLTensor *o, const DLTensor *q,
                                   const DLTensor *k, const DLTensor *v, const DLTensor *lse, float scale,
                                   float soft_cap, int64_t window, int causal, SolStream stream);

// Calls from Python with its arrays themselves, through the exchange functions that a library publishes for them
// (__dlpack_c_exchange_api__ of torch 2.10): sol_python_call is a function that Python can call (METH_FASTCALL), self a
// capsule named "sol" that holds a SolPythonCall, the arguments the operation's tensors (outputs first, None where one may be
// absent) and then its numbers. It returns the status as a Python int; the stream is the library's current one.
typedef struct SolPythonCall {
  int64_t operation;    // of sol_python_operation
  const void *exchange; // DLPack's DLPackExchangeAPI
  SolContext *const
      *contexts; // the first for the CPU, the others for GPUs 0, 1 ...; NULL where there is none
  int64_t count; // of contexts
} SolPythonCall;
SOL_API void *sol_python_call(void *self, void *const *arguments, intptr_t count);
// The number of an operation that can be called so, or -1: "rmsnorm", "add_rmsnorm", "layernorm", "softmax", "log_softmax", "silu_mul",
// "gated_mul", "bias_gelu", "rope", "embedding", "cross_entropy".
SOL_API int64_t sol_python_operation(const char *name);

#ifdef __cplusplus
}
#endif
#endif
