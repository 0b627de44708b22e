// clang-format off
// Integer instructions of PTX, one lane at a time. Straight-line code, so that a loop over lanes vectorises.
// T is u16 s16 u32 s32 u64 s64; a value of T stands in uint16_t, int16_t ... int64_t.
//   num_add_T num_sub_T num_min_T num_max_T num_div_T num_rem_T (a, b)     num_cmp_T (a, b, NumCmp)
//   num_mul_lo_T num_mul_hi_T (a, b)      num_mad_lo_T num_mad_hi_T num_sad_T (a, b, c)
//   num_shr_T (a, uint32_t n)             num_abs_T num_neg_T (signed T)     num_shl_u16 u32 u64 (a, n)
//   num_mul_wide_T num_mad_wide_T         T of 16 and 32 bits; the result has twice as many
// 32 and 64 bits, W being u32 or u64:
//   num_bfe_T (a, pos, len)   num_bfi_W (a, b, pos, len)   num_bfind_T (a, shiftamt)
//   num_brev_W num_clz_W num_popc_W (a)   num_addc_W num_subc_W (a, b, carry, &carry)
// 32 bits:
//   num_add_sat_s32 num_sub_sat_s32 (a, b)   num_mad_hi_sat_s32 (a, b, c)   num_relu_s32 (a)
//   num_mul24_{lo,hi}_{u32,s32} (a, b)   num_mad24_{lo,hi}_{u32,s32} num_mad24_hi_sat_s32 (a, b, c)
//   num_shf_l num_shf_r (a, b, n, wrap)   num_bmsk (pos, len, wrap)   num_szext_u32 num_szext_s32 (a, n, wrap)
//   num_lop3 (a, b, c, lut)   num_prmt (a, b, c, NumPrmt)   num_fns (mask, base, n)
//   num_dp4a (a, b, c, a_signed, b_signed)   num_dp2a (a, b, c, a_signed, b_signed, high)
//   num_add_u16x2 num_{min,max}_{u16x2,s16x2} (a, b)   num_relu_s16x2 (a)
//
// Where PTX leaves the result open, it is what an H200 gives: a division by zero and its remainder are all ones;
// the carry that sub.cc leaves is 1 where nothing was borrowed, which shows only when addc follows sub.cc.
// clang-format on
#ifndef SOL_EMU_NUM_INT_H
#define SOL_EMU_NUM_INT_H

#include <stdbool.h>
#include <stdint.h>

// Comparisons of setp and set. lo, ls, hi, hs are LT, LE, GT, GE of an unsigned type. From EQU on, floating
// point only: the comparison holds, or an operand is NaN. The first six are false where an operand is NaN.
typedef enum NumCmp {
  NUM_EQ,
  NUM_NE,
  NUM_LT,
  NUM_LE,
  NUM_GT,
  NUM_GE,
  NUM_EQU,
  NUM_NEU,
  NUM_LTU,
  NUM_LEU,
  NUM_GTU,
  NUM_GEU,
  NUM_NUM,
  NUM_NAN // no operand is NaN; one is
} NumCmp;

// The upper 64 bits of a product. By halves where the compiler would call its run-time library for 128 bits.
static inline uint64_t num_mul_hi_u64(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__) && !defined(__wasm__)
  return (uint64_t)((unsigned __int128)a * b >> 64);
#else
  uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
  uint64_t mid = ah * bl + (al * bl >> 32), low = al * bh + (uint32_t)mid;
  return ah * bh + (mid >> 32) + (low >> 32);
#endif
}

static inline int64_t num_mul_hi_s64(int64_t a, int64_t b) {
  uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
  return (int64_t)(num_mul_hi_u64(ua, ub) - (a < 0 ? ub : 0) - (b < 0 ? ua : 0));
}
static inline uint32_t num_mul_hi_u32(uint32_t a, uint32_t b) {
  return (uint32_t)((uint64_t)a * b >> 32);
}
static inline int32_t num_mul_hi_s32(int32_t a, int32_t b) {
  return (int32_t)((int64_t)a * b >> 32);
}
static inline uint16_t num_mul_hi_u16(uint16_t a, uint16_t b) {
  return (uint16_t)((uint32_t)a * b >> 16);
}
static inline int16_t num_mul_hi_s16(int16_t a, int16_t b) {
  return (int16_t)((int32_t)a * b >> 16);
}

// What all six types share. W is wide enough an unsigned type to compute in without overflow or promotion.
#define NUM_INT_COMMON(T, type, W, bits)                                                                     \
  static inline type num_add_##T(type a, type b) {                                                           \
    return (type)((W)a + (W)b);                                                                              \
  }                                                                                                          \
  static inline type num_sub_##T(type a, type b) {                                                           \
    return (type)((W)a - (W)b);                                                                              \
  }                                                                                                          \
  static inline type num_min_##T(type a, type b) {                                                           \
    return a < b ? a : b;                                                                                    \
  }                                                                                                          \
  static inline type num_max_##T(type a, type b) {                                                           \
    return a > b ? a : b;                                                                                    \
  }                                                                                                          \
  static inline type num_mul_lo_##T(type a, type b) {                                                        \
    return (type)((W)a * (W)b);                                                                              \
  }                                                                                                          \
  static inline type num_mad_lo_##T(type a, type b, type c) {                                                \
    return (type)((W)a * (W)b + (W)c);                                                                       \
  }                                                                                                          \
  static inline type num_mad_hi_##T(type a, type b, type c) {                                                \
    return (type)((W)num_mul_hi_##T(a, b) + (W)c);                                                           \
  }                                                                                                          \
  static inline bool num_cmp_##T(type a, type b, NumCmp cmp) {                                               \
    switch (cmp) {                                                                                           \
    case NUM_EQ: return a == b;                                                                              \
    case NUM_NE: return a != b;                                                                              \
    case NUM_LT: return a < b;                                                                               \
    case NUM_LE: return a <= b;                                                                              \
    case NUM_GT: return a > b;                                                                               \
    case NUM_GE: return a >= b;                                                                              \
    default: return false;                                                                                   \
    }                                                                                                        \
  }                                                                                                          \
  static inline type num_sad_##T(type a, type b, type c) {                                                   \
    return (type)((W)c + (a < b ? (W)b - (W)a : (W)a - (W)b));                                               \
  }
#define NUM_INT_UNSIGNED(T, type, W, bits)                                                                   \
  NUM_INT_COMMON(T, type, W, bits)                                                                           \
  static inline type num_div_##T(type a, type b) {                                                           \
    return (type)(b ? (W)(a / b) : ~(W)0);                                                                   \
  }                                                                                                          \
  static inline type num_rem_##T(type a, type b) {                                                           \
    return (type)(b ? (W)(a % b) : ~(W)0);                                                                   \
  }                                                                                                          \
  static inline type num_shr_##T(type a, uint32_t n) {                                                       \
    return (type)(n < bits ? (W)a >> (n & (bits - 1)) : 0);                                                  \
  }                                                                                                          \
  static inline type num_shl_##T(type a, uint32_t n) {                                                       \
    return (type)(n < bits ? (W)a << (n & (bits - 1)) : 0);                                                  \
  }
#define NUM_INT_SIGNED(T, type, W, bits)                                                                     \
  NUM_INT_COMMON(T, type, W, bits)                                                                           \
  static inline type num_neg_##T(type a) {                                                                   \
    return (type)(0 - (W)a);                                                                                 \
  }                                                                                                          \
  static inline type num_abs_##T(type a) {                                                                   \
    return (type)(a < 0 ? 0 - (W)a : (W)a);                                                                  \
  }                                                                                                          \
  static inline type num_shr_##T(type a, uint32_t n) {                                                       \
    return (type)(a >> (n < bits ? n : bits - 1));                                                           \
  }                                                                                                          \
  static inline type num_div_##T(type a, type b) {                                                           \
    return (type)(b == -1 ? 0 - (W)a : b ? (W)(a / b) : ~(W)0);                                              \
  }                                                                                                          \
  static inline type num_rem_##T(type a, type b) {                                                           \
    return (type)(b == -1 ? 0 : b ? (W)(a % b) : ~(W)0);                                                     \
  }
NUM_INT_UNSIGNED(u16, uint16_t, uint32_t, 16)
NUM_INT_UNSIGNED(u32, uint32_t, uint32_t, 32)
NUM_INT_UNSIGNED(u64, uint64_t, uint64_t, 64)
NUM_INT_SIGNED(s16, int16_t, uint32_t, 16)
NUM_INT_SIGNED(s32, int32_t, uint32_t, 32)
NUM_INT_SIGNED(s64, int64_t, uint64_t, 64)

static inline uint32_t num_mul_wide_u16(uint16_t a, uint16_t b) {
  return (uint32_t)a * b;
}
static inline int32_t num_mul_wide_s16(int16_t a, int16_t b) {
  return (int32_t)a * b;
}
static inline uint64_t num_mul_wide_u32(uint32_t a, uint32_t b) {
  return (uint64_t)a * b;
}
static inline int64_t num_mul_wide_s32(int32_t a, int32_t b) {
  return (int64_t)a * b;
}
static inline uint32_t num_mad_wide_u16(uint16_t a, uint16_t b, uint32_t c) {
  return (uint32_t)a * b + c;
}
static inline int32_t num_mad_wide_s16(int16_t a, int16_t b, int32_t c) {
  return num_add_s32(num_mul_wide_s16(a, b), c);
}
static inline uint64_t num_mad_wide_u32(uint32_t a, uint32_t b, uint64_t c) {
  return (uint64_t)a * b + c;
}
static inline int64_t num_mad_wide_s32(int32_t a, int32_t b, int64_t c) {
  return num_add_s64(num_mul_wide_s32(a, b), c);
}

static inline int32_t num_sat_s32(int64_t v) {
  return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
static inline int32_t num_add_sat_s32(int32_t a, int32_t b) {
  return num_sat_s32((int64_t)a + b);
}
static inline int32_t num_sub_sat_s32(int32_t a, int32_t b) {
  return num_sat_s32((int64_t)a - b);
}
static inline int32_t num_mad_hi_sat_s32(int32_t a, int32_t b, int32_t c) {
  return num_add_sat_s32(num_mul_hi_s32(a, b), c);
}
static inline int32_t num_relu_s32(int32_t a) {
  return a < 0 ? 0 : a;
} // min.relu, max.relu

// The 48-bit product of the operands' low 24 bits: lo is bits 31..0 of it, hi bits 47..16.
static inline uint64_t num_mul48_u32(uint32_t a, uint32_t b) {
  return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}
static inline int64_t num_mul48_s32(int32_t a, int32_t b) {
  return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}
static inline uint32_t num_mul24_lo_u32(uint32_t a, uint32_t b) {
  return (uint32_t)num_mul48_u32(a, b);
}
static inline uint32_t num_mul24_hi_u32(uint32_t a, uint32_t b) {
  return (uint32_t)(num_mul48_u32(a, b) >> 16);
}
static inline int32_t num_mul24_lo_s32(int32_t a, int32_t b) {
  return (int32_t)num_mul48_s32(a, b);
}
static inline int32_t num_mul24_hi_s32(int32_t a, int32_t b) {
  return (int32_t)(num_mul48_s32(a, b) >> 16);
}
static inline uint32_t num_mad24_lo_u32(uint32_t a, uint32_t b, uint32_t c) {
  return num_mul24_lo_u32(a, b) + c;
}
static inline uint32_t num_mad24_hi_u32(uint32_t a, uint32_t b, uint32_t c) {
  return num_mul24_hi_u32(a, b) + c;
}
static inline int32_t num_mad24_lo_s32(int32_t a, int32_t b, int32_t c) {
  return num_add_s32(num_mul24_lo_s32(a, b), c);
}
static inline int32_t num_mad24_hi_s32(int32_t a, int32_t b, int32_t c) {
  return num_add_s32(num_mul24_hi_s32(a, b), c);
}
static inline int32_t num_mad24_hi_sat_s32(int32_t a, int32_t b, int32_t c) {
  return num_add_sat_s32(num_mul24_hi_s32(a, b), c);
}

// a + b + carry, and a - b - !carry; the new carry goes to *out. add.cc starts with carry 0, sub.cc with 1.
// The multiply-adds of the family are one of these on num_mul_lo or num_mul_hi: only the addition carries.
static inline uint32_t num_addc_u32(uint32_t a, uint32_t b, uint32_t carry, uint32_t *out) {
  uint64_t sum = (uint64_t)a + b + carry;
  *out = (uint32_t)(sum >> 32);
  return (uint32_t)sum;
}
static inline uint64_t num_addc_u64(uint64_t a, uint64_t b, uint32_t carry, uint32_t *out) {
  uint64_t part = a + b, sum = part + carry;
  *out = (uint32_t)(part < a) | (uint32_t)(sum < part);
  return sum;
}
static inline uint32_t num_subc_u32(uint32_t a, uint32_t b, uint32_t carry, uint32_t *out) {
  return num_addc_u32(a, ~b, carry, out);
}
static inline uint64_t num_subc_u64(uint64_t a, uint64_t b, uint32_t carry, uint32_t *out) {
  return num_addc_u64(a, ~b, carry, out);
}

// Funnel shifts of b:a, b the upper word. wrap takes the amount modulo 32, else it is clamped to 32.
static inline uint32_t num_shf_amount(uint32_t n, bool wrap) {
  return wrap ? n & 31 : n < 32 ? n : 32;
}
static inline uint32_t num_shf_l(uint32_t a, uint32_t b, uint32_t n, bool wrap) {
  return (uint32_t)(((uint64_t)b << 32 | a) << num_shf_amount(n, wrap) >> 32);
}
static inline uint32_t num_shf_r(uint32_t a, uint32_t b, uint32_t n, bool wrap) {
  return (uint32_t)(((uint64_t)b << 32 | a) >> num_shf_amount(n, wrap));
}

// Bit fields: position and length are the low 8 bits of their operands.
#define NUM_BFE(bits)                                                                                        \
  static inline uint##bits##_t num_bfe_u##bits(uint##bits##_t a, uint32_t pos, uint32_t len) {               \
    pos &= 255, len &= 255;                                                                                  \
    uint##bits##_t mask = len < bits ? ((uint##bits##_t)1 << (len & (bits - 1))) - 1 : ~(uint##bits##_t)0;   \
    return num_shr_u##bits(a, pos) & mask;                                                                   \
  }                                                                                                          \
  static inline int##bits##_t num_bfe_s##bits(int##bits##_t a, uint32_t pos, uint32_t len) {                 \
    pos &= 255, len &= 255;                                                                                  \
    uint32_t end = pos + len < bits ? pos + len : bits, up = (bits - end) & (bits - 1);                      \
    uint32_t down = up + pos < bits ? up + pos : bits - 1; /* past the top, the sign is left */              \
    return len ? (int##bits##_t)((uint##bits##_t)a << up) >> down : 0;                                       \
  }                                                                                                          \
  static inline uint##bits##_t num_bfi_u##bits(uint##bits##_t a, uint##bits##_t b, uint32_t pos,             \
                                               uint32_t len) {                                               \
    pos &= 255, len &= 255;                                                                                  \
    uint##bits##_t mask = len < bits ? ((uint##bits##_t)1 << (len & (bits - 1))) - 1 : ~(uint##bits##_t)0;   \
    return (b & ~num_shl_u##bits(mask, pos)) | num_shl_u##bits(a & mask, pos);                               \
  }
NUM_BFE(32)
NUM_BFE(64)

static inline uint32_t num_clz_u32(uint32_t a) {
  return a ? (uint32_t)__builtin_clz(a) : 32;
}
static inline uint32_t num_clz_u64(uint64_t a) {
  return a ? (uint32_t)__builtin_clzll(a) : 64;
}

// The place of the highest bit that differs from the sign (from 0 where unsigned), all ones where there is
// none. shiftamt asks how far to shift it left to the top instead.
static inline uint32_t num_bfind_u32(uint32_t a, bool shiftamt) {
  return !a ? UINT32_MAX : shiftamt ? num_clz_u32(a) : 31 - num_clz_u32(a);
}
static inline uint32_t num_bfind_u64(uint64_t a, bool shiftamt) {
  return !a ? UINT32_MAX : shiftamt ? num_clz_u64(a) : 63 - num_clz_u64(a);
}
static inline uint32_t num_bfind_s32(int32_t a, bool shiftamt) {
  return num_bfind_u32((uint32_t)(a < 0 ? ~a : a), shiftamt);
}
static inline uint32_t num_bfind_s64(int64_t a, bool shiftamt) {
  return num_bfind_u64((uint64_t)(a < 0 ? ~a : a), shiftamt);
}

// Counted in parallel rather than by __builtin_popcount, which baseline x86-64 makes a call that cannot
// vectorise.
static inline uint32_t num_popc_u32(uint32_t a) {
  a -= a >> 1 & 0x55555555;
  a = (a & 0x33333333) + (a >> 2 & 0x33333333);
  a = (a + (a >> 4)) & 0x0f0f0f0f;
  a += a >> 8;
  return (a + (a >> 16)) & 63;
}
static inline uint32_t num_popc_u64(uint64_t a) {
  return num_popc_u32((uint32_t)a) + num_popc_u32((uint32_t)(a >> 32));
}
static inline uint32_t num_brev_u32(uint32_t a) {
  a = (a >> 1 & 0x55555555) | (a & 0x55555555) << 1;
  a = (a >> 2 & 0x33333333) | (a & 0x33333333) << 2;
  a = (a >> 4 & 0x0f0f0f0f) | (a & 0x0f0f0f0f) << 4;
  a = (a >> 8 & 0x00ff00ff) | (a & 0x00ff00ff) << 8;
  return a >> 16 | a << 16;
}
static inline uint64_t num_brev_u64(uint64_t a) {
  return (uint64_t)num_brev_u32((uint32_t)a) << 32 | num_brev_u32((uint32_t)(a >> 32));
}

// The place of the n-th set bit of mask from bit `base` on, downwards for negative n; all ones where there is
// none.
static inline uint32_t num_fns(uint32_t mask, uint32_t base, int32_t n) {
  uint32_t left = n < 0 ? 0u - (uint32_t)n : n ? (uint32_t)n : 1;
  for (uint32_t pos = base; pos < 32; pos += n < 0 ? UINT32_MAX : 1) {
    if (mask >> pos & 1 && !--left) return pos;
    if (!n) break;
  }
  return UINT32_MAX;
}

// A mask of `len` ones from bit `pos` on.
static inline uint32_t num_bmsk(uint32_t pos, uint32_t len, bool wrap) {
  if (wrap) pos &= 31, len &= 31;
  return num_shl_u32(~num_shl_u32(UINT32_MAX, len), pos);
}

// The low n bits of a, extended.
static inline uint32_t num_szext_u32(uint32_t a, uint32_t n, bool wrap) {
  return a & ~num_shl_u32(UINT32_MAX, wrap ? n & 31 : n);
}
static inline int32_t num_szext_s32(int32_t a, uint32_t n, bool wrap) {
  n = wrap ? n & 31 : n < 32 ? n : 32;
  return n ? (int32_t)((uint32_t)a << (32 - n)) >> (32 - n) : 0;
}

// Bit i of lut is the result where the bits of a, b, c spell i: three rounds of picking by c, then b, then a.
static inline uint32_t num_lop3_pick(uint32_t by, uint32_t zero, uint32_t one) {
  return zero ^ (by & (zero ^ one));
}
static inline uint32_t num_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t lut) {
#define NUM_LUT(i) (0u - (lut >> (i)&1))
  uint32_t c0 = num_lop3_pick(c, NUM_LUT(0), NUM_LUT(1)), c1 = num_lop3_pick(c, NUM_LUT(2), NUM_LUT(3));
  uint32_t c2 = num_lop3_pick(c, NUM_LUT(4), NUM_LUT(5)), c3 = num_lop3_pick(c, NUM_LUT(6), NUM_LUT(7));
#undef NUM_LUT
  return num_lop3_pick(a, num_lop3_pick(b, c0, c1), num_lop3_pick(b, c2, c3));
}

typedef enum NumPrmt {
  NUM_PRMT,
  NUM_PRMT_F4E,
  NUM_PRMT_B4E,
  NUM_PRMT_RC8,
  NUM_PRMT_ECL,
  NUM_PRMT_ECR,
  NUM_PRMT_RC16
} NumPrmt;

// The four selectors of a mode, a nibble each, from the low two bits of c.
static inline uint32_t num_prmt_select(uint32_t c, NumPrmt mode) {
  uint32_t n = c & 3;
  switch (mode) {
  case NUM_PRMT_F4E: return 0x3210 + 0x1111 * n;
  case NUM_PRMT_B4E: return n | ((n - 1) & 7) << 4 | ((n - 2) & 7) << 8 | ((n - 3) & 7) << 12;
  case NUM_PRMT_RC8: return 0x1111 * n;
  case NUM_PRMT_ECL: return n | (n > 1 ? n : 1) << 4 | (n > 2 ? n : 2) << 8 | 0x3000;
  case NUM_PRMT_ECR: return (n > 1 ? 1 : n) << 4 | (n > 2 ? 2 : n) << 8 | n << 12;
  case NUM_PRMT_RC16: return n & 1 ? 0x3232 : 0x1010;
  case NUM_PRMT: break;
  }
  return c;
}
static inline uint32_t num_prmt(uint32_t a, uint32_t b, uint32_t c, NumPrmt mode) {
  uint64_t from = (uint64_t)b << 32 | a;
  uint32_t select = num_prmt_select(c, mode), d = 0;
  for (uint32_t i = 0; i < 32; i += 8, select >>= 4) {
    uint32_t byte = (uint32_t)(from >> (select & 7) * 8) & 255;
    d |= (select & 8 ? (0u - (byte >> 7)) & 255 : byte) << i;
  }
  return d;
}

// Dot products of four bytes, or of two halves of a with the lower or upper two bytes of b.
static inline uint32_t num_part(uint32_t word, uint32_t bit, uint32_t bits, bool is_signed) {
  uint32_t up = word << (32 - bits - bit);
  return is_signed ? (uint32_t)((int32_t)up >> (32 - bits)) : up >> (32 - bits);
}
static inline uint32_t num_dp4a(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed) {
  for (uint32_t i = 0; i < 32; i += 8) c += num_part(a, i, 8, a_signed) * num_part(b, i, 8, b_signed);
  return c;
}
static inline uint32_t num_dp2a(uint32_t a, uint32_t b, uint32_t c, bool a_signed, bool b_signed, bool high) {
  b >>= high ? 16 : 0;
  for (uint32_t i = 0; i < 2; i++) c += num_part(a, i * 16, 16, a_signed) * num_part(b, i * 8, 8, b_signed);
  return c;
}

// Two halves of a word at once. A register's 32 words are as well 64 halves: loops over those do the same
// faster.
#define NUM_X2(op, T, type)                                                                                  \
  static inline uint32_t num_##op##_##T##x2(uint32_t a, uint32_t b) {                                        \
    uint16_t low = (uint16_t)num_##op##_##T((type)a, (type)b);                                               \
    return low | (uint32_t)(uint16_t)num_##op##_##T((type)(a >> 16), (type)(b >> 16)) << 16;                 \
  }
NUM_X2(add, u16, uint16_t)
NUM_X2(min, u16, uint16_t)
NUM_X2(max, u16, uint16_t)
NUM_X2(min, s16, int16_t)
NUM_X2(max, s16, int16_t)
static inline uint32_t num_relu_s16x2(uint32_t a) {
  return num_max_s16x2(a, 0);
}
#undef NUM_X2
#undef NUM_BFE
#undef NUM_INT_SIGNED
#undef NUM_INT_UNSIGNED
#undef NUM_INT_COMMON

#endif
