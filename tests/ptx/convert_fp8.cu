//! alloc x 128*4 random-u32
//! alloc errors 32 zero
//! launch fp8_to_half grid=2 block=128 args=errors
//! launch float_to_fp8 grid=1 block=128 args=x,errors
//! checks 2424
// fp8 (cuda_fp8.h): all 256 codes of e4m3 and e5m2 to half, and floats to the nearest code, ties to even,
// with and without saturation, found by trying every code.
#include "check.cuh"
#include <cuda_fp8.h>

// The value of a code; e4m3 has no infinity and one NaN.
__device__ float value(unsigned code, bool e5m2) {
  int bits = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7, exponent = (int)(code & 127) >> bits,
      mantissa = (int)code & ((1 << bits) - 1);
  if (e5m2 && exponent == 31) return mantissa ? NAN : code & 128 ? -INFINITY : INFINITY;
  if (!e5m2 && (code & 127) == 127) return NAN;
  float v =
      ldexpf((float)(exponent ? mantissa | 1 << bits : mantissa), (exponent ? exponent : 1) - bias - bits);
  return code & 128 ? -v : v;
}

// The finite code nearest to |v|; of two as near the even one.
__device__ unsigned nearest(float v, bool e5m2) {
  unsigned best = 0;
  for (unsigned code = 1; code < 128; code++) {
    if (!isfinite(value(code, e5m2))) continue;
    double d = fabs((double)value(code, e5m2) - fabsf(v)), b = fabs((double)value(best, e5m2) - fabsf(v));
    if (d < b || (d == b && !(code & 1))) best = code;
  }
  return best | (signbit(v) ? 128 : 0);
}

extern "C" __global__ void fp8_to_half(unsigned *errors) {
  unsigned code = global_thread();
  for (int kind = 0; kind < 2; kind++) {
    __nv_fp8_interpretation_t type = kind ? __NV_E5M2 : __NV_E4M3;
    float got = __half2float(__half(__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)code, type))),
          want = value(code, kind);
    if (isnan(want))
      EXPECT(code, isnan(got));
    else
      EXPECT_EQ(code, got, want);
    __half2_raw two = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(code << 8 | 0x38), type);
    if (!isnan(want)) EXPECT_EQ(code, __half2float(__half(__half_raw{two.y})), want);
    EXPECT_EQ(code, __half2float(__half(__half_raw{two.x})), value(0x38, kind));
  }
}

extern "C" __global__ void float_to_fp8(const unsigned *x, unsigned *errors) {
  unsigned i = global_thread(), bits = x[i];
  // From below the least subnormal to beyond the largest.
  for (int kind = 0; kind < 2; kind++) {
    __nv_fp8_interpretation_t type = kind ? __NV_E5M2 : __NV_E4M3;
    unsigned exponent = kind ? 127 - 19 + (bits >> 23 & 255) % 38 : 127 - 12 + (bits >> 23 & 255) % 24;
    float v = __uint_as_float((bits & 0x807fffffu) | exponent << 23);
    if (i % 4 == 0) v = __uint_as_float(__float_as_uint(v) & 0xffe00000u); // many ties
    if (i == 1) v = kind ? 61440.0f : 464.0f;                              // between the largest and the next
    float middle = kind ? 61440.0f : 464.0f;
    unsigned want = nearest(v, kind), beyond = (signbit(v) ? 128u : 0u) | (kind ? 0x7cu : 0x7fu);
    EXPECT_EQ(i, (unsigned)__nv_cvt_float_to_fp8(v, __NV_SATFINITE, type), want);
    // Not saturated: what rounds past the largest is infinity, or NaN where there is none.
    bool over = fabsf(v) > middle || (kind && fabsf(v) == middle);
    EXPECT_EQ(i, (unsigned)__nv_cvt_float_to_fp8(v, __NV_NOSAT, type), over ? beyond : want);
    float2 pair = make_float2(v, -v);
    unsigned both = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, type);
    EXPECT_EQ(i, both, want | (want ^ 128) << 8);
  }
  EXPECT_EQ(i, __nv_cvt_float_to_fp8(NAN, __NV_SATFINITE, __NV_E4M3) & 127, 127);
}
