// The arithmetic of sampling, in whole numbers and single roundings: the same bits on every machine. Used by the kernel,
// the CPU's code and the reference.
#ifndef SOL_KERNELS_SELECT_WEIGHT_H
#define SOL_KERNELS_SELECT_WEIGHT_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define SELECT_INLINE static __device__ __forceinline__
#else
#define SELECT_INLINE static inline
#endif

SELECT_INLINE float select_float(uint32_t bits) {
#ifdef __CUDACC__
  return __uint_as_float(bits);
#else
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
#endif
}

SELECT_INLINE uint32_t select_bits(float f) {
#ifdef __CUDACC__
  return __float_as_uint(f);
#else
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
#endif
}

// How far a logit is below the largest, in steps of 2^-23 octaves: from SELECT_FAR on, and of a NaN, it is SELECT_FAR, and the
// logit has no weight. It does not grow with x. per: steps a unit of x. Not for an infinite `top`.
enum { SELECT_FAR = 29 << 23 };
SELECT_INLINE uint32_t select_steps(float x, float top, float per) {
  float below = top - x;
  return (uint32_t)fminf(below * per, (float)SELECT_FAR);
}

// 2^29 * 2^-d to 2e-6 of it, for d in steps of 2^-23, of which the last three bits do not count. Eight weights add up to less
// than 2^32. It does not grow with d: from one step that counts to the next the power falls by more than the polynomial is off.
SELECT_INLINE uint32_t select_power(uint32_t steps) {
  // A polynomial for 2^(2 - z), z from 1 to 2, from Chebyshev's points; it is less than 2 everywhere.
  float z = select_float((steps & 0x7ffff8u) | 0x3f800000u), p = fmaf(-0x1.f06fa6p-10f, z, 0x1.c8e714p-6f);
  p = fmaf(p, z, -0x1.a02b14p-3f);
  p = fmaf(p, z, 0x1.e218ap-1f);
  p = fmaf(p, z, -0x1.6187p+1f);
  p = fmaf(p, z, 0x1.ffafc4p+1f);
  return ((select_bits(p) << 5 & 0x0fffffe0u) | 0x10000000u) >> (steps >> 23);
}

// The weight of a logit where the largest is `top`: 2^29 exp((x - top) / temperature); per: 2^23 log2(e) / temperature. The
// larger of two logits does not weigh less. Infinite ones are equal, and the difference of equals is none. A NaN has no weight.
SELECT_INLINE uint32_t select_weight(float x, float top, float per) {
  return select_power(x == top ? 0 : select_steps(x, top, per));
}

SELECT_INLINE uint64_t select_mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// 64 random bits for a seed and a step.
SELECT_INLINE uint64_t select_random(uint64_t seed, uint64_t step) {
  return select_mix(select_mix(seed + 0x9e3779b97f4a7c15u) + step * 0x9e3779b97f4a7c15u);
}

#endif
