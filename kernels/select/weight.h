// The arithmetic of sampling, in whole numbers and single roundings: the same bits on every machine. Used by the kernel,
// the CPU's code and the reference.
//
// How an element is drawn from those that top_k leaves: trial by trial. With a top_p a trial takes an element by the weights of all
// that are left, in order of their columns, and is the last if the elements larger than that one (of equals those of lower columns)
// have less than top_p of the weight; otherwise only these are left. Without a top_p it takes an element by the hulls of the weights,
// which cost less, and is the last if what the random number is beyond the elements before it is less than the element's weight.
// Either way each element comes with the probability that its weight says, and no cut has to be found.
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

// A row's logits on a scale of 32 octaves, from 0 to 1: the largest is at SELECT_TOP, one octave below the end, and what is
// below 0 is at 0. per: log2(e) / temperature / 32, at most SELECT_STEEPEST. Where the product of the two is so large that
// rounding would move the row by more than a quarter of an octave, logits are subtracted first; two that differ are then
// more than 28 octaves apart in a type of 16 bits. Not for an infinite `top`.
#define SELECT_TOP 0.96875f
#define SELECT_STEEPEST 0x1p127f
#define SELECT_FURTHEST 0x1p17f
typedef struct SelectScale {
  float shift, per, add;
} SelectScale;

SELECT_INLINE SelectScale select_scale(float top, float per) {
  SelectScale s = {0, per, fmaf(-top, per, SELECT_TOP)};
  if (fabsf(top * per) > SELECT_FURTHEST) s.shift = top, s.add = SELECT_TOP;
  return s;
}

// The larger of two logits does not come before the other. A NaN is at 0.
SELECT_INLINE float select_place(float x, SelectScale s) {
#ifdef __CUDACC__
  float place;
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(place) : "f"(x - s.shift), "f"(s.per), "f"(s.add));
  return place;
#else
  float place = fmaf(x - s.shift, s.per, s.add);
  return place > 0 ? place < 1 ? place : 1 : 0;
#endif
}

// The same of any row: those equal to an infinite `top` are where it is, and the others at 0.
SELECT_INLINE float select_place_of(float x, float top, float per) {
  if (isinf(top)) return x == top ? SELECT_TOP : 0;
  return select_place(x, select_scale(top, per));
}

// The weight of a logit at that place: 2^28 exp((x - top) / temperature) to 5e-6 of it, as a whole number; 0 from 28 octaves
// below the largest on. It does not fall with the place. Eight weights add up to less than 2^32.
SELECT_INLINE uint32_t select_weight(float place) {
  float nearest = place + 393216.0f; // its last bit is 1/32: an octave
  float rest = place - (nearest - 393216.0f), p = fmaf(0x1.3cbf6p+10f, rest, 0x1.ca1ce2p+7f);
  p = fmaf(p, rest, 0x1.ebfa4cp+4f); // 2^(32 rest - 3), from Chebyshev's points
  p = fmaf(p, rest, 0x1.62e0c2p+1f);
  p = fmaf(p, rest, 0.125f);
  return (uint32_t)select_float(select_bits(p) + (select_bits(nearest) << 23));
}

// A number that takes half as many instructions and is not less, by 6 percent at most: a straight line from octave to octave.
SELECT_INLINE uint32_t select_hull(float place) {
  return (uint32_t)select_float((select_bits(place + 1) << 5) + 0x4e000000u);
}

SELECT_INLINE uint64_t select_mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// 64 random bits for a seed, a step and a trial.
SELECT_INLINE uint64_t select_stream(uint64_t seed, uint64_t step) {
  return select_mix(seed + 0x9e3779b97f4a7c15u) + step * 0x9e3779b97f4a7c15u;
}
SELECT_INLINE uint64_t select_random(uint64_t stream, uint32_t trial) {
  return select_mix(stream + trial * 0xd1b54a32d192ed03u);
}

#endif
