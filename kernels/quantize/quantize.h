// What the kernels of quantize share with its CPU code: parameters, and arithmetic that gives the same bits on every machine.
#ifndef SOL_KERNELS_QUANTIZE_H
#define SOL_KERNELS_QUANTIZE_H

#include "../elementwise.h"
#include "../held.h"

enum { QUANTIZE_INT8, QUANTIZE_FP8, QUANTIZE_MXFP8, QUANTIZE_NVFP4 }; // how a group is scaled and stored

typedef struct QuantizeParams {
  void *y, *scales;
  const void *x;
  const float *tensor_scale;     // NVFP4; NULL: 1
  Divider divider;               // blocks: by the threads of a row
  uint64_t threads;              // blocks: in all
  int64_t n, y_stride, x_stride; // bytes, but n
  int64_t groups;                // of a row
  int32_t lanes;                 // threads of a group
  int32_t x_kind, how;
  HeldShape held; // rows
} QuantizeParams;

#ifdef __CUDACC__
#define QUANTIZE_INLINE static __device__ __forceinline__
#else
#define QUANTIZE_INLINE static inline
#endif

// The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 with v's sign, as a code of 4 bits; ties to even codes, a NaN is 6.
QUANTIZE_INLINE uint32_t quantize_e2m1(float v) {
  float a = v < 0 ? -v : v, t = a < 2   ? a + a
                                : a < 4 ? a + 2
                                        : 0.5f * a + 4; // t: the code, before it is rounded
  t = t < 7 ? t : 7;
  float whole = t + 0x1.8p23f - 0x1.8p23f; // to the nearest, ties to even
  return (uint32_t)whole | (v < 0 ? 8u : 0u);
}

// The exponent, 127 above what it is, of the least power of two that is at least f; f is not negative.
QUANTIZE_INLINE uint32_t quantize_e8m0(uint32_t bits_of_f) {
  uint32_t code = bits_of_f >> 23;
  code += code ? (bits_of_f & 0x7fffffu) != 0 : bits_of_f > 0x400000u; // below 2^-126: 2^-127 or 2^-126
  return code > 254 ? 254 : code;
}

#endif
