// What all kernels of rope share: the tables' row of a token, and the rotation of a pair.
#ifndef SOL_KERNELS_ROPE_CUH
#define SOL_KERNELS_ROPE_CUH

#include "rope.h"

#include "elementwise.cuh"

// The row of the tables for a token; -1: it is not rotated.
INLINE int64_t rope_row(const RopeParams &p, uint64_t token) {
  int64_t row = p.positions ? load_id(p.positions, token, p.wide_ids) : (int64_t)token;
  return row >= 0 && row < p.rows ? row : -1;
}

// The first of the pair, and the second.
INLINE float turn_a(float a, float b, float c, float s) { return __fmaf_rn(a, c, -__fmul_rn(b, s)); }
INLINE float turn_b(float a, float b, float c, float s) { return __fmaf_rn(b, c, __fmul_rn(a, s)); }

// The tables' elements under the work, on a row that there is.
INLINE int64_t rope_at(const RopeParams &p, int64_t row, uint32_t item, int count) {
  return (int64_t)((uint64_t)(uint32_t)row * (uint32_t)p.half + item * count);
}

// Prefetches them into L2.
INLINE void rope_ask(const RopeParams &p, int64_t row, uint32_t item, int count, int weight_kind) {
  if ((uint64_t)row >= (uint64_t)p.rows) return;
  int64_t at = rope_at(p, row, item, count) * (weight_kind == KIND_FP32 ? 4 : 2);
  prefetch_l2((const char *)p.cos + at);
  prefetch_l2((const char *)p.sin + at);
}

#endif
