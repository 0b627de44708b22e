// Two 16-bit elements of a word compared at once.
#ifndef SOL_KERNELS_PACKED_CUH
#define SOL_KERNELS_PACKED_CUH

#include "row.cuh"

// The larger of each of two pairs; NaN is above all.
INLINE uint32_t higher2(uint32_t a, uint32_t b, int kind) {
  uint32_t c;
#if __CUDA_ARCH__ >= 800
  if (kind == KIND_FP16) asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  else asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
#else
  float2 f = widen2(a, kind), g = widen2(b, kind);
  c = narrow2(higher(f.x, g.x), higher(f.y, g.y), kind);
#endif
  return c;
}

// The same; NaN is passed over.
INLINE uint32_t larger2(uint32_t a, uint32_t b, int kind) {
  uint32_t c;
#if __CUDA_ARCH__ >= 800
  if (kind == KIND_FP16) asm("max.f16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
  else asm("max.bf16x2 %0, %1, %2;" : "=r"(c) : "r"(a), "r"(b));
#else
  float2 f = widen2(a, kind), g = widen2(b, kind);
  c = narrow2(fmaxf(f.x, g.x), fmaxf(f.y, g.y), kind);
#endif
  return c;
}

#endif
