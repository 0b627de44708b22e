// The arithmetic of sampling, in whole numbers and single roundings: the same bits on every machine. Used by the kernel,
// the CPU's code and the reference.
//
// How an element is drawn: trial by trial. With a top_p a trial takes an element by the weights of all that are left, in an order that
// is known, and is the last if the elements larger than that one (of equals those of lower columns) have less than top_p of the weight;
// otherwise only these are left. Without a top_p it takes an element by the hulls of the weights, which cost less, and is the last
// if what the random number is beyond the elements before it is less than the element's weight. Either way each element comes with the
// probability that its weight says, and no cut has to be found. Where top_k leaves more than SELECT_LISTED, one trial by the weights is enough.
//
// The order is that of the elements, the largest first, where top_k leaves SELECT_LISTED or fewer of a row of more than SELECT_SHORT columns; otherwise that of the columns. The k largest of
// rows of up to SELECT_SHORT columns are drawn from by their weights, with a top_p and without; but rows of up to SELECT_ROUGH of which top_k alone leaves one of SELECT_SHARE or more are cut
// roughly: at a distance from the largest that at least k elements do not exceed, found by halving (select_cut). What is drawn of these is refused if k elements or more are larger (of
// equals those of lower columns).
//
// A row of more than SELECT_GROUP columns (SELECT_WHOLE of 16 bits) without top_k and top_p is drawn from in two steps, so that it is read once: its groups of
// as many columns (twice, four times ... as many where there would be more than SELECT_GROUPS), each with hulls against its own largest
// element, then the elements of one, with a random number each. A group weighs the sum of its hulls, times the weight of its largest element.
//
// Rows of 16-bit elements that are drawn from by hulls in order of the columns have coarser ones, which come of two elements at a time.
#ifndef SOL_KERNELS_SELECT_WEIGHT_H
#define SOL_KERNELS_SELECT_WEIGHT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define SELECT_INLINE static __device__ __forceinline__
#else
#define SELECT_INLINE static inline
#endif

enum { SELECT_SHORT = 512, SELECT_ROUGH = 256, SELECT_SHARE = 16, SELECT_LISTED = 1024, SELECT_GROUP = 1024, SELECT_WHOLE = 2048, SELECT_GROUPS = 4096 };

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

// 2^28 exp((x - top) / temperature) of a logit at that place, to 5e-6 of it. It does not fall with the place.
SELECT_INLINE float select_power(float place) {
  float nearest = place + 393216.0f; // its last bit is 1/32: an octave
  float rest = place - (nearest - 393216.0f), p = fmaf(0x1.3cbf6p+10f, rest, 0x1.ca1ce2p+7f);
  p = fmaf(p, rest, 0x1.ebfa4cp+4f); // 2^(32 rest - 3), from Chebyshev's points
  p = fmaf(p, rest, 0x1.62e0c2p+1f);
  p = fmaf(p, rest, 0.125f);
  return select_float(select_bits(p) + (select_bits(nearest) << 23));
}

// The weight as a whole number; 0 from 28 octaves below the largest on. Eight weights add up to less than 2^32.
SELECT_INLINE uint32_t select_weight(float place) {
  return (uint32_t)select_power(place);
}

// The same in units four times as large: 32 of them add up to less than 2^32.
SELECT_INLINE uint32_t select_few(float place) {
  return select_weight(place) >> 2;
}

// The whole number nearest to one below 2^22, without a conversion, which GPUs do slowly.
SELECT_INLINE uint32_t select_round(float f) {
  return select_bits(f + 8388608.0f) - 0x4b000000u;
}

// The hull of a weight, in units of 2^7 weights: a straight line from octave to octave, which takes half as many instructions and is more
// by 6 percent at most. The hulls of SELECT_GROUP elements add up to less than 2^32. And the weight in these units.
SELECT_INLINE uint32_t select_hull(float place) {
  return select_round(select_float((select_bits(place + 1) << 5) + 0x4a800000u));
}
SELECT_INLINE uint32_t select_hulled(float place) {
  return select_round(select_power(place) * 0x1p-7f);
}

// ---- Coarse hulls of 16-bit logits, in units of 2^9 weights. Half the distance below the largest, times the steps of a distance, is added to a
// number so large that its last bit is a step: 8 or 32 an octave. These bits are a floating-point number, a straight line from octave to
// octave. Everything is rounded to 16 bits, so a weight is taken for less than it is (SELECT_COARSE_...) by half a step, and steps are fewer than they should be by what
// distances may be rounded up: no weight is above its hull. None falls below SELECT_FLOOR, 14 octaves below the largest: neither that of NaN.
enum { SELECT_BF16_STEPS = 8, SELECT_FP16_STEPS = 32, SELECT_FLOOR = 32, SELECT_FINER = 9 };
#define SELECT_COARSE_BF16 0.954f // 2^(-17 / 32 / steps) and a little less
#define SELECT_COARSE_FP16 0.988f

// The weight of an element that was found; 2^28 is that of the largest. Whether it is taken: `rest` in units of hulls, and bits of the random number below them.
SELECT_INLINE bool select_takes(float x, float top, float per, int bf16, uint32_t rest, uint64_t random) {
  SelectScale s = {top, per, SELECT_TOP};
  float place = isinf(top) ? x == top ? SELECT_TOP : 0 : select_place(x, s);
  return (rest << SELECT_FINER | ((uint32_t)random & ((1u << SELECT_FINER) - 1))) <
         (uint32_t)(select_power(place) * (bf16 ? SELECT_COARSE_BF16 : SELECT_COARSE_FP16));
}

// A rough cut for top_k, SELECT_HALVINGS halvings of SELECT_DEEP octaves: `part` of 2^SELECT_HALVINGS parts of `depth` below the largest, as an element. Elements
// that are less, NaN and -infinity are not drawn; neither are others where `top`, infinite, is not equal to them.
enum { SELECT_DEEP = 16, SELECT_HALVINGS = 6 };
SELECT_INLINE float select_cut(float top, float depth, int part) {
  return fmaf((float)part * -(1.0f / (1 << SELECT_HALVINGS)), depth, top);
}

#ifndef __CUDACC__
// Rounded to an element of 16 bits, of a number that such an element can have.
SELECT_INLINE float select_rounded(float f, int bf16) {
  uint32_t u = select_bits(f);
  if (!(fabsf(f) <= 0x1.fffffep127f)) return f;
  if (bf16) return select_float((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u);
  if (fabsf(f) < 0x1p-14f) return f < 0 ? (f - 0.75f) + 0.75f : (f + 0.75f) - 0.75f;
  return select_float((u + 0xfff + (u >> 13 & 1)) & ~0x1fffu);
}
// Steps of half a unit of logits, an element of 16 bits, not more than it should be.
SELECT_INLINE float select_steps(float per, int bf16) {
  double steps = 64.0 * (double)per * (bf16 ? SELECT_BF16_STEPS * (1 - 0x1p-8) : SELECT_FP16_STEPS * (1 - 0x1p-11));
  double most = bf16 ? 0x1.fep127 : 65504;
  float f = (float)(steps < most ? steps : most), least = select_rounded(f, bf16);
  if (!((double)least > steps)) return least;
  if (!bf16 && f < 0x1p-14f) return least - 0x1p-24f;
  return select_float(select_bits(least) - (bf16 ? 0x10000u : 0x2000u));
}
SELECT_INLINE uint32_t select_steps_bits(float per, int bf16) {
  float f = select_steps(per, bf16);
  if (bf16) return select_bits(f) >> 16;
  return f < 0x1p-14f ? (uint32_t)(f * 0x1p24f) : (select_bits(f) >> 13) - (112u << 10);
}
// Of rows of any type: whether an element is drawn, of a cut that select_cut has made an element. `part` 2^SELECT_HALVINGS: there is no cut.
SELECT_INLINE bool select_left(float x, float top, float depth, int part, bool is_fp32, int bf16) {
  if (isinf(top)) return x == top;
  if (part >> SELECT_HALVINGS) return x > -INFINITY;
  float cut = select_cut(top, depth, part);
  if (!is_fp32) cut = select_rounded(!bf16 && cut < -65504 ? -65504 : cut, bf16);
  return x >= cut && x > -INFINITY;
}
SELECT_INLINE uint32_t select_coarse(float x, float top, float steps, int bf16) {
  int each = bf16 ? SELECT_BF16_STEPS : SELECT_FP16_STEPS, at = each;
  float below = isinf(top) ? x == top ? 0 : -INFINITY : select_rounded(x * 0.5f - select_rounded(top * 0.5f, bf16), bf16);
  double step = rint((double)below * (double)steps + 15 * each);
  if (step > each) at = (int)step;
  return (uint32_t)(each + at % each) << (at / each - 1) << (bf16 ? 2 : 0);
}
#endif

// What a group weighs whose hulls have that sum and whose largest element is at that place of the row.
SELECT_INLINE uint64_t select_group(uint64_t hulls, float place) {
  uint64_t weight = (uint64_t)select_weight(place) << 35;
#ifdef __CUDACC__
  return __umul64hi(hulls << 11, weight);
#else
  return (uint64_t)((unsigned __int128)(hulls << 11) * weight >> 64);
#endif
}

// Columns of a group of a row of n.
SELECT_INLINE int64_t select_columns(int64_t n) {
  int64_t columns = SELECT_GROUP;
  while (n > columns * SELECT_GROUPS) columns *= 2;
  return columns;
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
// A second one of a trial, for its group.
SELECT_INLINE uint64_t select_random_group(uint64_t stream, uint32_t trial) {
  return select_mix(~stream + trial * 0xd1b54a32d192ed03u);
}
SELECT_INLINE uint64_t select_random(uint64_t stream, uint32_t trial) {
  return select_mix(stream + trial * 0xd1b54a32d192ed03u);
}

#endif
