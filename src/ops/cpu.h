// Parts of the operations' CPU code. Rows are converted to floats on the stack, a chunk at a time, so that
// one loop serves all types and the compiler vectorises it.
#ifndef SOL_OPS_CPU_H
#define SOL_OPS_CPU_H

#include "ops/operation.h"

enum { CPU_CHUNK = 1024 };

// `count` elements from `index` on. Types: fp32, fp16, bf16, fp8 (e4m3; stored saturating) and int8 (stored rounded to the
// nearest, saturating; a NaN as 0).
void cpu_load(SolDtype dtype, const void *base, int64_t index, int64_t count, float *out);
void cpu_store(SolDtype dtype, void *base, int64_t index, int64_t count, const float *in);
// int32 or int64
static inline int64_t cpu_id(SolDtype dtype, const void *ids, int64_t i) {
  return dtype == SOL_INT64 ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];
}
static inline void cpu_store_id(SolDtype dtype, void *ids, int64_t i, int64_t id) {
  if (dtype == SOL_INT64)
    ((int64_t *)ids)[i] = id;
  else
    ((int32_t *)ids)[i] = (int32_t)id;
}

// Calls work(arg, begin, end) for all of 0..items-1, on the context's threads where `cost` (about the number
// of elements) is large enough.
void cpu_parallel(SolContext *ctx, int64_t items, int64_t cost,
                  void (*work)(const void *arg, int64_t begin, int64_t end), const void *arg);

static inline int64_t cpu_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// for (at = 0; at < n; at += CPU_CHUNK), c the length of this chunk
#define CPU_CHUNKS(at, c, n)                                                                                 \
  for (int64_t at = 0, c = cpu_min(n, CPU_CHUNK); at < (n); at += CPU_CHUNK, c = cpu_min((n)-at, CPU_CHUNK))

#endif
