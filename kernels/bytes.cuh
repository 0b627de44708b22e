// Elements of one byte: int8 and fp8 (e4m3).
#ifndef SOL_KERNELS_BYTES_CUH
#define SOL_KERNELS_BYTES_CUH

#include "common.cuh"

// To the nearest, ties to even, within -128..127; a NaN is 0.
INLINE uint32_t int8_wide(float f) { // in all bits of a word
  int32_t i;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(i) : "f"(f));
  return (uint32_t)i;
}
INLINE uint32_t int8_of(float f) { return int8_wide(f) & 255; }

// Four of them in a word.
INLINE uint32_t int8_four(const float *f) {
  uint32_t low = __byte_perm(int8_wide(f[0]), int8_wide(f[1]), 0x0040), high = __byte_perm(int8_wide(f[2]), int8_wide(f[3]), 0x0040);
  return __byte_perm(low, high, 0x5410);
}

// e4m3: an fp16 whose exponent is 8 too low, but for its NaN.
INLINE float e4m3_value(uint32_t byte) {
  float f = __half2float(__ushort_as_half((uint16_t)((byte & 128) << 8 | (byte & 127) << 7))) * 256;
  return (byte & 127) == 127 ? NAN : f;
}

// Two of them, as bits 0 to 15 of a word have them.
INLINE float2 e4m3_pair(uint32_t two) {
#if __CUDA_ARCH__ >= 890
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"((uint16_t)two));
  return __half22float2(*(const __half2 *)&halves);
#else
  return make_float2(e4m3_value(two & 255), e4m3_value(two >> 8 & 255));
#endif
}

INLINE uint32_t e4m3_code(float f) { return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3); }

#endif
