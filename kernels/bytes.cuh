// Elements of one byte: int8 and fp8 (e4m3).
#ifndef SOL_KERNELS_BYTES_CUH
#define SOL_KERNELS_BYTES_CUH

#include "common.cuh"

// To the nearest, ties to even, within -128..127; a NaN is 0.
INLINE uint32_t int8_of(float f) {
  int32_t i;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(i) : "f"(f));
  return (uint32_t)i & 255;
}

// e4m3: an fp16 whose exponent is 8 too low, but for its NaN.
INLINE float e4m3_value(uint32_t byte) {
  float f = __half2float(__ushort_as_half((uint16_t)((byte & 128) << 8 | (byte & 127) << 7))) * 256;
  return (byte & 127) == 127 ? NAN : f;
}

INLINE uint32_t e4m3_code(float f) { return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3); }

#endif
