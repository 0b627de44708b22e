// Coarse hulls of 16-bit logits (weight.h), two at a time, and their sums by the tensor cores.
#ifndef SOL_KERNELS_SELECT_COARSE_CUH
#define SOL_KERNELS_SELECT_COARSE_CUH

#include "key.cuh"
#include "weight.h"

typedef struct Coarse {
  uint32_t less, steps; // half the largest element, below 0, and the steps, both twice in a word
} Coarse;

INLINE uint32_t twice(uint32_t bits) { return bits | bits << 16; }

// Of rows with that largest element, which is not infinite.
template <int kind> INLINE Coarse coarse_of(float top, uint32_t steps) {
  return Coarse{twice(narrow_one(-0.5f * top, kind)), twice(steps)};
}

// The hulls of two elements, as fp16: 1 is that of the largest.
template <int kind> INLINE uint32_t coarse_word(uint32_t word, const Coarse &c) {
  const bool is_bf16 = kind == KIND_BF16;
  const uint32_t top = is_bf16 ? 0x43784378u : 0x65e065e0u;                                               // 248, 1504
  const uint32_t none = is_bf16 ? 0x43004300u : 0x64006400u, least = is_bf16 ? 0x43084308u : 0x64206420u; // 128, 1024
  uint32_t below, step;
#if __CUDA_ARCH__ >= 800
  const uint32_t half = is_bf16 ? 0x3f003f00u : 0x38003800u;
  if (is_bf16) {
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(below) : "r"(word), "r"(half), "r"(c.less));
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(step) : "r"(below), "r"(c.steps), "r"(top));
  } else {
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(below) : "r"(word), "r"(half), "r"(c.less));
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(step) : "r"(below), "r"(c.steps), "r"(top));
  }
#else // the sums are exact where they are within a step of one, so that to round twice is to round once
  float2 x = widen2(word, kind), less = widen2(c.less, kind), steps = widen2(c.steps, kind);
  below = narrow2(fmaf(x.x, 0.5f, less.x), fmaf(x.y, 0.5f, less.y), kind);
  float2 b = widen2(below, kind), t = widen2(top, kind);
  if (is_bf16) step = narrow2(fmaf(b.x, steps.x, t.x), fmaf(b.y, steps.y, t.y), kind);
  else asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(step) : "r"(below), "r"(c.steps), "r"(top));
#endif
  const uint32_t by = is_bf16 ? 128 : 32;
  uint32_t bits; // one instruction
  asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(bits) : "r"(larger2(step, least, kind)), "n"(by), "n"(0u - none * by));
  return bits;
}

// The first of two hulls in units.
INLINE uint32_t coarse_units(uint32_t hulls) { return (uint32_t)(widen2(hulls, KIND_FP16).x * 0x1p19f); }

// Which lanes of four share a row, of `lanes` lanes: what sum_coarse gets.
INLINE uint32_t coarse_shares(int lanes) {
  int from = threadIdx.x % 4, column = threadIdx.x / 4 % 8, to = column / 2; // `from` adds to a column of `to`
  bool adds = column % 2 ? ((from ^ to) & -min(lanes, 4)) == 0 : from == to;
  return adds ? 0x3c003c00u : 0;
}

// Sums of the hulls of a chunk, in units: of this lane, and of all lanes of four that share a row.
INLINE void sum_coarse(const Vec &hulls, uint32_t shares, int lanes, uint32_t *own, uint32_t *all) {
#if __CUDA_ARCH__ >= 800
  float at[4];
  const float start = 16; // the last bit of a sum, which is at most 16, is a unit, so that no sum is rounded
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %8}, {%9, %9, %9, %9};"
      : "=f"(at[0]), "=f"(at[1]), "=f"(at[2]), "=f"(at[3])
      : "r"(hulls.u[0]), "r"(hulls.u[1]), "r"(hulls.u[2]), "r"(hulls.u[3]), "r"(shares), "f"(start));
  const uint32_t none = 2 * 0x41800000u;
  *own = __float_as_uint(at[0]) + __float_as_uint(at[2]) - none;
  *all = __float_as_uint(at[1]) + __float_as_uint(at[3]) - none;
#else
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float2 two = widen2(hulls.u[j], KIND_FP16);
    sum += two.x + two.y;
  }
  *own = *all = (uint32_t)(sum * 0x1p19f);
  for (int o = min(lanes, 4) / 2; o; o >>= 1) *all += __shfl_xor_sync(~0u, *all, o);
#endif
}

// The element of a chunk with these hulls on which the rest of a random number falls.
INLINE int find_coarse(const Vec &hulls, uint32_t *rest) {
  float left = (float)*rest * 0x1p-19f, upto = 0, before = 0;
  int at = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float2 two = widen2(hulls.u[j], KIND_FP16);
    upto += two.x;
    if (upto <= left) at = 2 * j + 1, before = upto;
    upto += two.y;
    if (upto <= left) at = 2 * j + 2, before = upto;
  }
  *rest = (uint32_t)((left - before) * 0x1p19f);
  return at;
}

#endif
