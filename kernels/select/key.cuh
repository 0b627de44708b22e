// The order of elements as whole numbers: of their bits (keys), of an element and its column (entries), and of two 16-bit elements
// of a word at once.
#ifndef SOL_KERNELS_SELECT_KEY_CUH
#define SOL_KERNELS_SELECT_KEY_CUH

#include "packed.cuh"
#include "span.cuh"

// An element: its key above, the complement of its column below, so that of equals the lower column is the higher entry.
// Rows of up to 2^16 elements of 16 bits have entries of 32 bits.
INLINE uint32_t entry_key(uint32_t e) {
  return e >> 16;
}
INLINE uint32_t entry_key(uint64_t e) {
  return (uint32_t)(e >> 32);
}
INLINE uint32_t entry_column(uint32_t e) {
  return ~e & 0xffff;
}
INLINE uint32_t entry_column(uint64_t e) {
  return ~(uint32_t)e;
}
INLINE void make_entry(uint32_t key, uint32_t column, uint32_t *e) {
  *e = key << 16 | (~column & 0xffff);
}
INLINE void make_entry(uint32_t key, uint32_t column, uint64_t *e) {
  *e = (uint64_t)key << 32 | (uint32_t)~column;
}

template <int kind> INLINE uint32_t element_bits(const Vec &v, int i) {
  return kind == KIND_FP32 ? v.u[i] : v.u[i / 2] >> i % 2 * 16 & 0xffff;
}

template <int kind> INLINE float value_of_bits(uint32_t bits) {
  if (kind == KIND_FP32) return __uint_as_float(bits);
  return kind == KIND_FP16 ? __half2float(__ushort_as_half((uint16_t)bits)) : __uint_as_float(bits << 16);
}

// A number for the bits of an element, in the order of the values: -0 is +0, a NaN is the highest.
template <int kind> INLINE uint32_t key_of_bits(uint32_t u) {
  const uint32_t sign = kind == KIND_FP32 ? 0x80000000u : 0x8000u, all = sign | (sign - 1);
  const uint32_t top = kind == KIND_FP32 ? 0x7f800000u : kind == KIND_FP16 ? 0x7c00u : 0x7f80u;
  if ((u & ~sign) > top) return all;
  return u & sign ? sign - (u & ~sign) : u | sign;
}
// The bits of a key that is not a NaN's; of +0 for both zeros.
template <int kind> INLINE uint32_t bits_of_key(uint32_t key) {
  const int32_t sign = kind == KIND_FP32 ? INT32_MIN : 0x8000, above = (int32_t)(key - (uint32_t)sign);
  return (uint32_t)(above < 0 ? sign - above : above);
}
template <int kind> INLINE bool key_is_plain(uint32_t key) {
  return key != (kind == KIND_FP32 ? 0x80000000u : 0x8000u) && key != (kind == KIND_FP32 ? ~0u : 0xffffu);
}
template <int kind> INLINE uint32_t lowest_bits(void) { // of -infinity
  return span_lowest(kind) & (kind == KIND_FP32 ? ~0u : 0xffffu);
}
template <int kind> INLINE uint32_t lowest_key(void) {
  return key_of_bits<kind>(lowest_bits<kind>());
}

// What comes right below the value of a key, in every element of a word. There is nothing below -infinity: where a NaN is
// an element like others it is NaN, which all are above; otherwise it is -infinity, and none of those is listed.
template <int kind, int nan> INLINE uint32_t word_below(uint32_t key) {
  const uint32_t sign = kind == KIND_FP32 ? 0x80000000u : 0x8000u, all = sign | (sign - 1);
  uint32_t u = key > lowest_key<kind>() ? bits_of_key<kind>(key - 1) : nan ? all : span_lowest(kind) & all;
  return kind == KIND_FP32 ? u : u | u << 16;
}

// Which elements of a word are above `low`, as masks: all bits of an element. A NaN is where `nan`.
template <int kind, int nan> INLINE uint32_t mask_above(uint32_t word, uint32_t low) {
  uint32_t is;
  if (kind == KIND_FP32 && nan) asm("set.gtu.u32.f32 %0, %1, %2;" : "=r"(is) : "f"(__uint_as_float(word)), "f"(__uint_as_float(low)));
  else if (kind == KIND_FP32) asm("set.gt.u32.f32 %0, %1, %2;" : "=r"(is) : "f"(__uint_as_float(word)), "f"(__uint_as_float(low)));
#if __CUDA_ARCH__ >= 900
  else if (kind == KIND_FP16 && nan) asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  else if (kind == KIND_FP16) asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  else if (nan) asm("set.gtu.u32.bf16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  else asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
#else
  else {
    float2 f = widen2(word, kind), g = widen2(low, kind);
    bool first = nan ? !(f.x <= g.x) : f.x > g.x, second = nan ? !(f.y <= g.y) : f.y > g.y;
    is = (first ? 0xffffu : 0) | (second ? 0xffff0000u : 0);
  }
#endif
  return is;
}
// The same as bits 0 and 16, bit 0 of fp32; and further on by a shift known at compile time.
template <int kind, int nan> INLINE uint32_t word_above(uint32_t word, uint32_t low, int shift = 0) {
  return mask_above<kind, nan>(word, low) & (kind == KIND_FP32 ? 1u : 0x10001u) << shift;
}

// How many elements a sum of masks is.
template <int kind> INLINE uint32_t count_masks(uint32_t sum) {
  if (kind == KIND_FP32) return -sum;
  uint32_t first = -sum & 0xffff, second = (first - ((sum + first) >> 16)) & 0xffff;
  return first + second;
}

// The order of a value as a whole number: the addition makes -0 +0, and all NaN one that is above all.
INLINE uint32_t order_of(float x) {
  uint32_t u = __float_as_uint(__fadd_rn(x, 0.0f));
  return u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u);
}
INLINE uint32_t bits_of_order(uint32_t order) { return order ^ ((uint32_t)((int32_t)~order >> 31) | 0x80000000u); }
// The orders of the elements of a word, of 16 bits each where elements are; of what is not NaN.
template <int kind> INLINE uint32_t order_word(uint32_t word) {
  if (kind == KIND_FP32) return order_of(__uint_as_float(word));
  uint32_t sum, negative;
#if __CUDA_ARCH__ >= 800
  if (kind == KIND_FP16) asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(word), "r"(0x3c003c00), "r"(0));
  else asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(word), "r"(0x3f803f80), "r"(0));
#else
  float2 two = widen2(word, kind);
  sum = narrow2(__fadd_rn(two.x, 0.0f), __fadd_rn(two.y, 0.0f), kind);
#endif
  asm("prmt.b32 %0, %1, %1, 0xbb99;" : "=r"(negative) : "r"(sum)); // all bits of an element are its sign
  return sum ^ (negative | 0x80008000u);
}

template <int kind, int nan> INLINE uint32_t larger_word(uint32_t a, uint32_t b) {
  if (kind != KIND_FP32) return nan ? higher2(a, b, kind) : larger2(a, b, kind);
  float x = __uint_as_float(a), y = __uint_as_float(b);
  return __float_as_uint(nan ? higher(x, y) : fmaxf(x, y));
}

INLINE uint32_t lanes_sum(uint32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, v);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
#endif
}
INLINE uint32_t lanes_least(uint32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(~0u, v);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v = min(v, __shfl_xor_sync(~0u, v, o));
  return v;
#endif
}
INLINE uint32_t lanes_most(uint32_t v) {
  return ~lanes_least(~v);
}

#endif
