// src/emu/isa/num_int.h against the PTX manual's own loops over bits, and against 128-bit arithmetic.
#include "check.h"
#include "emu/isa/num_int.h"
#include "num_ref.h"

enum { ROUNDS = 200000 };

static bool bit(uint64_t x, int i) {
  return x >> i & 1;
}

TEST(products) {
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t a = ref_integer(), b = ref_integer(), c = ref_integer();
    int64_t sa = (int64_t)a, sb = (int64_t)b, sc = (int64_t)c;
    unsigned __int128 u = (unsigned __int128)a * b;
    __int128 s = (__int128)sa * sb;
    CHECK(num_mul_lo_u64(a, b) == (uint64_t)u && num_mul_hi_u64(a, b) == (uint64_t)(u >> 64));
    CHECK(num_mul_hi_s64(sa, sb) == (int64_t)(s >> 64));
    CHECK(num_mad_hi_s64(sa, sb, sc) == (int64_t)((uint64_t)(s >> 64) + c));
    int32_t x = (int32_t)a, y = (int32_t)b;
    CHECK(num_mul_hi_s32(x, y) == (int32_t)(((__int128)x * y) >> 32));
    CHECK(num_mul_hi_u32((uint32_t)x, (uint32_t)y) ==
          (uint32_t)((unsigned __int128)(uint32_t)x * (uint32_t)y >> 32));
    CHECK(num_mad_lo_s32(x, y, (int32_t)c) == (int32_t)(uint32_t)((__int128)x * y + (int32_t)c));
    CHECK(num_mul_wide_s32(x, y) == (int64_t)x * y);
    CHECK(num_mad_wide_u16((uint16_t)a, (uint16_t)b, (uint32_t)c) ==
          (uint32_t)((uint64_t)(uint16_t)a * (uint16_t)b + c));
    CHECK(num_mul_hi_s16((int16_t)a, (int16_t)b) == (int16_t)(((int32_t)(int16_t)a * (int16_t)b) >> 16));
    CHECK(num_mul_lo_u16((uint16_t)a, (uint16_t)b) == (uint16_t)(a * b));
    __int128 t = (__int128)((int32_t)((uint32_t)x << 8) >> 8) * ((int32_t)((uint32_t)y << 8) >> 8);
    CHECK(num_mul24_lo_s32(x, y) == (int32_t)(uint32_t)t && num_mul24_hi_s32(x, y) == (int32_t)(t >> 16));
    int64_t sum = (int64_t)num_mul_hi_s32(x, y) + (int32_t)c;
    sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    CHECK(num_mad_hi_sat_s32(x, y, (int32_t)c) == sum);
  }
}

TEST(sums) {
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t a = ref_integer(), b = ref_integer();
    int32_t x = (int32_t)a, y = (int32_t)b;
    int64_t sum = (int64_t)x + y, difference = (int64_t)x - y;
    CHECK(num_add_sat_s32(x, y) == (sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum));
    CHECK(num_sub_sat_s32(x, y) == (difference > INT32_MAX   ? INT32_MAX
                                    : difference < INT32_MIN ? INT32_MIN
                                                             : difference));
    CHECK(num_add_s16((int16_t)a, (int16_t)b) == (int16_t)(a + b) && num_sub_u64(a, b) == a - b);
    // sad is c + |a - b|, the difference taken without overflow
    __int128 d = (__int128)(int64_t)a - (int64_t)b;
    CHECK(num_sad_s64((int64_t)a, (int64_t)b, 7) == (int64_t)((uint64_t)(d < 0 ? -d : d) + 7));
    CHECK(num_sad_u32((uint32_t)a, (uint32_t)b, 7) ==
          ((uint32_t)a > (uint32_t)b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a) + 7);
    CHECK(num_add_u16x2((uint32_t)a, (uint32_t)b) ==
          ((uint16_t)(a + b) | (uint32_t)(uint16_t)((a >> 16) + (b >> 16)) << 16));
  }
}

// 256-bit sums and differences by the carry chain, against 128-bit arithmetic on either half.
TEST(carry_chains) {
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t a = ref_integer(), b = ref_integer(), c = ref_integer(), d = ref_integer();
    unsigned __int128 x = (unsigned __int128)a << 64 | b, y = (unsigned __int128)c << 64 | d;
    uint32_t cf;
    uint64_t low = num_addc_u64(b, d, 0, &cf), high = num_addc_u64(a, c, cf, &cf);
    CHECK(((unsigned __int128)high << 64 | low) == x + y && cf == (x + y < x));
    low = num_subc_u64(b, d, 1, &cf), high = num_subc_u64(a, c, cf, &cf);
    CHECK(((unsigned __int128)high << 64 | low) == x - y && cf == (x >= y));
    uint32_t l32 = num_addc_u32((uint32_t)b, (uint32_t)d, 0, &cf);
    uint32_t h32 = num_addc_u32((uint32_t)(b >> 32), (uint32_t)(d >> 32), cf, &cf);
    CHECK(((uint64_t)h32 << 32 | l32) == b + d && cf == (b + d < b));
    l32 = num_subc_u32((uint32_t)b, (uint32_t)d, 1, &cf);
    h32 = num_subc_u32((uint32_t)(b >> 32), (uint32_t)(d >> 32), cf, &cf);
    CHECK(((uint64_t)h32 << 32 | l32) == b - d && cf == (b >= d));
  }
}

TEST(divisions) {
  CHECK(num_div_u32(5, 0) == UINT32_MAX && num_rem_u32(5, 0) == UINT32_MAX);
  CHECK(num_div_s32(-5, 0) == -1 && num_rem_s32(-5, 0) == -1);
  CHECK(num_div_u16(5, 0) == UINT16_MAX && num_rem_s16(5, 0) == -1 && num_div_s16(0, 0) == -1);
  CHECK(num_div_u64(5, 0) == UINT64_MAX && num_rem_s64(5, 0) == -1);
  CHECK(num_div_s32(INT32_MIN, -1) == INT32_MIN && num_rem_s32(INT32_MIN, -1) == 0);
  CHECK(num_div_s64(INT64_MIN, -1) == INT64_MIN && num_rem_s64(INT64_MIN, -1) == 0);
  CHECK(num_div_s16(INT16_MIN, -1) == INT16_MIN && num_rem_s16(INT16_MIN, -1) == 0);
  CHECK(num_div_s32(-7, 2) == -3 && num_rem_s32(-7, 2) == -1 && num_rem_s32(7, -2) == 1); // towards zero
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t a = ref_integer(), b = ref_integer();
    if (b) CHECK(num_div_u64(a, b) * b + num_rem_u64(a, b) == a && num_rem_u64(a, b) < b);
    int16_t x = (int16_t)a, y = (int16_t)b;
    if (y) CHECK((int16_t)(num_div_s16(x, y) * y + num_rem_s16(x, y)) == x);
  }
}

TEST(signs_and_order) {
  CHECK(num_abs_s32(INT32_MIN) == INT32_MIN && num_neg_s64(INT64_MIN) == INT64_MIN && num_abs_s16(-5) == 5);
  CHECK(num_min_s32(-1, 1) == -1 && num_min_u32(UINT32_MAX, 1) == 1 && num_max_s16(-1, 1) == 1);
  CHECK(num_min_s16x2(0x8000ffff, 0x7fff0001) == 0x8000ffff &&
        num_max_u16x2(0x8000ffff, 0x7fff0001) == 0x8000ffff);
  CHECK(num_relu_s16x2(0x8000007f) == 0x7f && num_relu_s32(-3) == 0);
  CHECK(num_cmp_s32(-1, 1, NUM_LT) && !num_cmp_u32(UINT32_MAX, 1, NUM_LT) && num_cmp_u64(3, 3, NUM_GE));
  CHECK(num_cmp_s16(-1, -1, NUM_EQ) && num_cmp_u16(1, 2, NUM_NE) && num_cmp_s64(2, 1, NUM_GT) &&
        num_cmp_u32(1, 1, NUM_LE));
}

TEST(shifts) {
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t a = ref_integer(), b = ref_integer();
    uint32_t n = (uint32_t)(i & 1 ? ref_random() % 70 : ref_integer());
    uint32_t x = (uint32_t)a, y = (uint32_t)b, clamped = n < 32 ? n : 32, wrapped = n % 32;
    CHECK(num_shl_u32(x, n) == (uint32_t)(n < 32 ? (uint64_t)x << n : 0));
    CHECK(num_shr_u32(x, n) == (n < 32 ? x >> n : 0) && num_shr_u64(a, n) == (n < 64 ? a >> n : 0));
    CHECK(num_shr_s32((int32_t)x, n) == (int32_t)((__int128)(int32_t)x >> clamped));
    CHECK(num_shr_s16((int16_t)a, n) == (int16_t)((int64_t)(int16_t)a >> (n < 16 ? n : 16)));
    CHECK(num_shl_u16((uint16_t)a, n) == (uint16_t)(n < 16 ? a << n : 0));
    CHECK(num_shl_u64(a, n) == (n < 64 ? a << n : 0));
    unsigned __int128 both = (unsigned __int128)y << 32 | x;
    CHECK(num_shf_l(x, y, n, false) == (uint32_t)(both << clamped >> 32));
    CHECK(num_shf_l(x, y, n, true) == (uint32_t)(both << wrapped >> 32));
    CHECK(num_shf_r(x, y, n, false) == (uint32_t)(both >> clamped));
    CHECK(num_shf_r(x, y, n, true) == (uint32_t)(both >> wrapped));
  }
}

// The manual's definition, bit by bit.
static uint64_t bfe_by_bits(uint64_t a, uint32_t pos, uint32_t len, int msb, bool is_signed) {
  pos &= 255, len &= 255;
  int last = (int)(pos + len) - 1 < msb ? (int)(pos + len) - 1 : msb;
  bool sign = is_signed && len ? bit(a, last) : false;
  uint64_t d = 0;
  for (int i = 0; i <= msb; i++)
    d |= (uint64_t)((uint32_t)i < len && (int)pos + i <= msb ? bit(a, (int)pos + i) : sign) << i;
  return d;
}
static uint64_t bfi_by_bits(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, int msb) {
  pos &= 255, len &= 255;
  for (uint32_t i = 0; i < len && (int)(pos + i) <= msb; i++)
    b = (b & ~(1ull << (pos + i))) | (uint64_t)bit(a, (int)i) << (pos + i);
  return b;
}

TEST(bit_fields) {
  for (int i = 0; i < ROUNDS / 4; i++) {
    uint64_t a = ref_integer(), b = ref_integer();
    uint32_t pos = (uint32_t)ref_random() % (i & 1 ? 70 : 600),
             len = (uint32_t)ref_random() % (i & 2 ? 70 : 600);
    CHECK(num_bfe_u32((uint32_t)a, pos, len) == (uint32_t)bfe_by_bits((uint32_t)a, pos, len, 31, false));
    CHECK(num_bfe_s32((int32_t)a, pos, len) == (int32_t)bfe_by_bits((uint32_t)a, pos, len, 31, true));
    CHECK(num_bfe_u64(a, pos, len) == bfe_by_bits(a, pos, len, 63, false));
    CHECK(num_bfe_s64((int64_t)a, pos, len) == (int64_t)bfe_by_bits(a, pos, len, 63, true));
    CHECK(num_bfi_u32((uint32_t)a, (uint32_t)b, pos, len) ==
          (uint32_t)bfi_by_bits(a, (uint32_t)b, pos, len, 31));
    CHECK(num_bfi_u64(a, b, pos, len) == bfi_by_bits(a, b, pos, len, 63));
    // masks and extensions: pos and len as they come, wrapped or clamped
    uint32_t p = pos & 31, l = len & 31, wrapped = 0, clamped = 0, kept = len < 32 ? len : 32;
    for (uint32_t j = 0; j < 32; j++) {
      wrapped |= (uint32_t)(j >= p && j < p + l) << j;
      clamped |= (uint32_t)(pos < 32 && j >= pos && j < pos + len) << j;
    }
    CHECK(num_bmsk(pos, len, true) == wrapped && num_bmsk(pos, len, false) == clamped);
    CHECK(num_szext_u32((uint32_t)a, len, true) == (uint32_t)bfe_by_bits((uint32_t)a, 0, l, 31, false));
    CHECK(num_szext_s32((int32_t)a, len, true) == (int32_t)bfe_by_bits((uint32_t)a, 0, l, 31, true));
    CHECK(num_szext_u32((uint32_t)a, len, false) == (uint32_t)bfe_by_bits((uint32_t)a, 0, kept, 31, false));
    CHECK(num_szext_s32((int32_t)a, len, false) == (int32_t)bfe_by_bits((uint32_t)a, 0, kept, 31, true));
  }
}

TEST(counts_and_searches) {
  for (int i = 0; i < ROUNDS / 4; i++) {
    uint64_t a = i < 65 ? (i < 64 ? 1ull << i : 0) : ref_integer();
    uint32_t ones = 0, zeros = 0, found = UINT32_MAX, signed_found = UINT32_MAX;
    uint64_t reversed = 0, flipped = (int64_t)a < 0 ? ~a : a;
    for (int j = 0; j < 64; j++) ones += bit(a, j), reversed |= (uint64_t)bit(a, j) << (63 - j);
    while (zeros < 64 && !bit(a, 63 - (int)zeros)) zeros++;
    for (int j = 0; j < 64; j++) {
      if (bit(a, j)) found = (uint32_t)j;
      if (bit(flipped, j)) signed_found = (uint32_t)j;
    }
    CHECK(num_popc_u64(a) == ones && num_clz_u64(a) == zeros && num_brev_u64(a) == reversed);
    CHECK(num_brev_u32((uint32_t)a) == (uint32_t)(reversed >> 32));
    CHECK(num_popc_u32((uint32_t)a) + num_popc_u32((uint32_t)(a >> 32)) == ones);
    CHECK(num_bfind_u64(a, false) == found && num_bfind_s64((int64_t)a, false) == signed_found);
    CHECK(num_bfind_u64(a, true) == (found == UINT32_MAX ? found : 63 - found));
    uint32_t low = (uint32_t)a;
    CHECK(num_clz_u32(low) == num_clz_u64(low) - 32);
    CHECK(num_bfind_u32(low, false) == num_bfind_u64(low, false));
    CHECK(num_bfind_s32((int32_t)low, true) == (num_bfind_s64((int32_t)low, false) == UINT32_MAX
                                                    ? UINT32_MAX
                                                    : 31 - num_bfind_s64((int32_t)low, false)));
  }
}

TEST(nth_set_bit) {
  CHECK(num_fns(0xaaaaaaaa, 3, 1) == 3 && num_fns(0xaaaaaaaa, 3, -1) == 3);
  CHECK(num_fns(0xaaaaaaaa, 2, 1) == 3 && num_fns(0xaaaaaaaa, 2, -1) == 1);
  CHECK(num_fns(8, 3, 0) == 3 && num_fns(8, 2, 0) == UINT32_MAX && num_fns(0, 0, 1) == UINT32_MAX);
  CHECK(num_fns(UINT32_MAX, 31, -32) == 0 && num_fns(UINT32_MAX, 0, 33) == UINT32_MAX);
  CHECK(num_fns(UINT32_MAX, 0, INT32_MIN) == UINT32_MAX && num_fns(1, 0, INT32_MAX) == UINT32_MAX);
}

TEST(lop3_every_table) {
  for (uint32_t lut = 0; lut < 256; lut++) {
    for (int i = 0; i < 20; i++) {
      uint32_t a = (uint32_t)ref_random(), b = (uint32_t)ref_random(), c = (uint32_t)ref_random(), want = 0;
      for (int j = 0; j < 32; j++) want |= (lut >> (bit(a, j) * 4 + bit(b, j) * 2 + bit(c, j)) & 1) << j;
      CHECK(num_lop3(a, b, c, lut) == want);
    }
  }
}

// The manual's table of sources, from d.b3 to d.b0, for selector 0 to 3.
TEST(prmt_modes) {
  static const struct {
    NumPrmt mode;
    const char *sources[4];
  } modes[] = {
      {NUM_PRMT_F4E, {"3210", "4321", "5432", "6543"}}, {NUM_PRMT_B4E, {"5670", "6701", "7012", "0123"}},
      {NUM_PRMT_RC8, {"0000", "1111", "2222", "3333"}}, {NUM_PRMT_ECL, {"3210", "3211", "3222", "3333"}},
      {NUM_PRMT_ECR, {"0000", "1110", "2210", "3210"}}, {NUM_PRMT_RC16, {"1010", "3232", "1010", "3232"}}};
  for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
    for (uint32_t c = 0; c < 8; c++) {
      uint32_t want = 0;
      for (int i = 0; i < 4; i++) want = want << 8 | (0xf0u + (uint32_t)(modes[m].sources[c & 3][i] - '0'));
      CHECK_INT(num_prmt(0xf3f2f1f0, 0xf7f6f5f4, c | 0xfffffff8, modes[m].mode), want);
    }
  }
  CHECK_INT(num_prmt(0x80706050, 0x40302010, 0x7531, NUM_PRMT), 0x40208060); // bytes 7, 5, 3, 1
  CHECK_INT(num_prmt(0x80706050, 0x40302010, 0xffffb0a3, NUM_PRMT),
            0xff500080); // b: the sign of byte 3; a: of 2
}

TEST(dot_products) {
  for (int i = 0; i < ROUNDS / 4; i++) {
    uint32_t a = (uint32_t)ref_integer(), b = (uint32_t)ref_integer(), c = (uint32_t)ref_integer();
    int64_t ss = (int32_t)c, us = ss, uu = ss, lo = ss, hi = ss;
    for (int j = 0; j < 4; j++) {
      int64_t ua = a >> 8 * j & 255, ub = b >> 8 * j & 255;
      int64_t sa = (int8_t)ua, sb = (int8_t)ub, h = (int16_t)(a >> 16 * (j & 1));
      ss += sa * sb, us += ua * sb, uu += ua * ub;
      if (j < 2)
        lo += h * ub;
      else
        hi += (uint16_t)(a >> 16 * (j & 1)) * sb;
    }
    CHECK(num_dp4a(a, b, c, true, true) == (uint32_t)ss && num_dp4a(a, b, c, false, true) == (uint32_t)us);
    CHECK(num_dp4a(a, b, c, false, false) == (uint32_t)uu);
    CHECK(num_dp2a(a, b, c, true, false, false) == (uint32_t)lo);
    CHECK(num_dp2a(a, b, c, false, true, true) == (uint32_t)hi);
  }
}

CHECK_MAIN
