// The arithmetic of sampling, in whole numbers and single roundings: the same bits on every machine. Used by the kernel,
// the CPU's code and the reference.
#ifndef SOL_KERNELS_SELECT_WEIGHT_H
#define SOL_KERNELS_SELECT_WEIGHT_H

#include <stdint.h>

#ifdef __CUDACC__
#define SELECT_INLINE static __device__ __forceinline__
#else
#define SELECT_INLINE static inline
#endif

SELECT_INLINE uint32_t select_high(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)a * b >> 32);
}

// 2^31 * 2^-d, rounded down, to 4e-9 of it; 0 from d = 32 on, and for a NaN. d is at least 0.
SELECT_INLINE uint32_t select_power(float d) {
  if (!(d < 32)) return 0;
  uint32_t fixed = (uint32_t)(d * 0x1p27f), z = fixed << 5; // z: its fraction, in units of 2^-32
  // A polynomial for 2^-z on 0..1, from Chebyshev's points; the signs alternate.
  uint32_t p = 0x539803u - select_high(z, 0x72a3cu);
  p = 0x273d361u - select_high(z, p);
  p = 0xe34a75bu - select_high(z, p);
  p = 0x3d7f577eu - select_high(z, p);
  p = 0xb17215b2u - select_high(z, p);
  p = 0xfffffffau - select_high(z, p);
  return (p >> 1) >> (fixed >> 27);
}

// The weight of a logit where the largest is `top`: 2^31 exp((x - top) / temperature); per: log2(e) / temperature.
// Infinite ones are equal, and the difference of equals is none. A NaN has no weight.
SELECT_INLINE uint32_t select_weight(float x, float top, float per) {
  if (x == top) return select_power(0);
  float below = top - x;
  return select_power(below * per);
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
