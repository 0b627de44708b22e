// Operations between ranks: those of one GPU, before or after what a transport sends.
#include "sol/collective.h"
#include "ops/cpu.h"

static SolStatus check(const SolContext *ctx, const SolTransport *t, const void *args, const char *name) {
  if (!ctx || !t || !args)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: context, transport and args must not be NULL", name);
  if (t->size < 1 || t->rank < 0 || t->rank >= t->size)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: rank %d of %d", name, t->rank, t->size);
  if (sol_context_backend(ctx) == t->backend) return SOL_OK;
  return ops_fail(SOL_ERR_UNSUPPORTED, "%s: the transport serves contexts of %s, not of %s", name,
                  sol_backend_name(t->backend), sol_backend_name(sol_context_backend(ctx)));
}

// Elements of a dense tensor that is summed or gathered; -1 with the error set.
static int64_t dense(const char *name, const char *tensor, const void *data, int64_t m, int64_t n,
                     int64_t stride) {
  int64_t count;
  if (m < 0 || n < 0 || __builtin_mul_overflow(m, n, &count) || count > INT64_MAX / 16)
    return ops_fail(SOL_ERR_ARGUMENT, "%s: %s has a size that is negative or too large", name, tensor), -1;
  if (!data && count) return ops_fail(SOL_ERR_ARGUMENT, "%s: %s must not be NULL", name, tensor), -1;
  if (stride && stride != n && m > 1)
    return ops_fail(SOL_ERR_UNSUPPORTED, "%s: %s must be dense, not with rows %lld apart", name, tensor,
                    (long long)stride),
           -1;
  return count;
}

static SolStatus sent(SolStatus status, const char *name) {
  return status ? ops_fail(status, "%s: the transport failed", name) : SOL_OK;
}

// 16-bit values are summed in fp32, a chunk at a time, and rounded once.
static SolStatus sum_converted(const SolTransport *t, void *data, int64_t count, SolDtype dtype) {
  float part[CPU_CHUNK];
  SolStatus status = SOL_OK;
  CPU_CHUNKS(at, c, count) {
    cpu_load(dtype, data, at, c, part);
    if (!status) status = t->all_reduce(t->state, part, c, SOL_FP32, NULL);
    cpu_store(dtype, data, at, c, part);
  }
  return status;
}

static SolStatus sum(const SolTransport *t, const char *name, void *data, int64_t count, SolDtype dtype,
                     SolStream stream) {
  if (t->size == 1 || !count) return SOL_OK;
  if (t->backend == SOL_BACKEND_CPU && dtype != SOL_FP32)
    return sent(sum_converted(t, data, count, dtype), name);
  return sent(t->all_reduce(t->state, data, count, dtype, stream), name);
}

static bool is_summable(SolDtype dtype) {
  return dtype == SOL_FP32 || dtype == SOL_FP16 || dtype == SOL_BF16;
}

SolStatus sol_all_reduce_rmsnorm(SolContext *ctx, const SolTransport *t, const SolAddRmsnorm *args,
                                 SolStream stream) {
  static const char name[] = "all_reduce_rmsnorm";
  SolStatus status = check(ctx, t, args, name);
  if (status) return status;
  int64_t count = dense(name, "x", args->x, args->m, args->n, args->x_stride);
  if (count < 0) return sol_last_error()->status;
  if (!is_summable(args->dtype)) return ops_fail(SOL_ERR_ARGUMENT, "%s: x must be fp32, fp16 or bf16", name);
  if ((status = sum(t, name, (void *)args->x, count, args->dtype, stream))) return status;
  return sol_add_rmsnorm(ctx, args, stream);
}

// An id that another rank holds gives a row of zeros here.
SolStatus sol_embedding_sharded(SolContext *ctx, const SolTransport *t, const SolEmbedding *args,
                                SolStream stream) {
  static const char name[] = "embedding_sharded";
  SolStatus status = check(ctx, t, args, name);
  if (status) return status;
  SolDtype dtype = args->out_dtype ? args->out_dtype : args->dtype;
  int64_t count = dense(name, "y", args->y, args->m, args->n, args->y_stride);
  if (count < 0) return sol_last_error()->status;
  if (!is_summable(dtype)) return ops_fail(SOL_ERR_ARGUMENT, "%s: y must be fp32, fp16 or bf16", name);
  if (args->bad_id != SOL_BAD_ID_ZERO)
    return ops_fail(SOL_ERR_UNSUPPORTED,
                    "%s: ids of other ranks are outside here, so that none can be flagged", name);
  if ((status = sol_embedding(ctx, args, stream))) return status;
  return sum(t, name, args->y, count, dtype, stream);
}

SolStatus sol_all_gather_cast(SolContext *ctx, const SolTransport *t, const SolAllGatherCast *args,
                              SolStream stream) {
  static const char name[] = "all_gather_cast";
  SolStatus status = check(ctx, t, args, name);
  if (status) return status;
  SolDtype dtype = args->out_dtype ? args->out_dtype : args->dtype;
  int64_t count = dense(name, "x", args->x, args->m, args->n, 0);
  if (count < 0) return sol_last_error()->status;
  if (!args->y && count) return ops_fail(SOL_ERR_ARGUMENT, "%s: y must not be NULL", name);
  size_t bytes = (size_t)count * (size_t)(sol_dtype_bits(dtype) / 8);
  char *mine = (char *)args->y + (size_t)t->rank * bytes;
  SolCopy copy = {
      .y = mine, .x = args->x, .m = args->m, .n = args->n, .dtype = args->dtype, .out_dtype = dtype};
  if ((status = sol_copy(ctx, &copy, stream))) return status;
  if (t->size == 1 || !count) return SOL_OK;
  return sent(t->all_gather(t->state, mine, args->y, bytes, stream), name);
}
