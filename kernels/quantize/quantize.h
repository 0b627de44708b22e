// What the kernels of quantize share with its CPU code: parameters, and arithmetic that gives the same bits on every machine.
#ifndef SOL_KERNELS_QUANTIZE_H
#define SOL_KERNELS_QUANTIZE_H

#include <math.h>

#include "../elementwise.h"
#include "../held.h"
#include "../narrow.h"
#include "../parts.h"
#include "../stream.h"

enum { QUANTIZE_INT8, QUANTIZE_FP8, QUANTIZE_MXFP8, QUANTIZE_NVFP4 }; // how a group is scaled and stored

// Groups of columns: a thread has pieces of a row, each QUANTIZE_PIECE bytes of x (16 columns of 2 bytes, 8 of 4); threads of a block,
// and pieces of each.
enum { QUANTIZE_PIECE = 32, QUANTIZE_BLOCK = 256, QUANTIZE_EACH = 2 };
#define QUANTIZE_ROW(count) ((count) > 4 ? 384 : 512) // rows in registers: the most threads with `count` chunks each

typedef struct QuantizeParams {
  void *y, *scales;
  const void *x;
  const float *tensor_scale;     // NVFP4; NULL: 1
  Divider divider;               // blocks: by the threads of a row
  uint64_t m;                    // rows
  int64_t n, y_stride, x_stride; // bytes, but n
  int64_t groups;                // of a row
  int32_t lane_bits;             // rows: 2^lane_bits threads share one; below 0: a block does
  int32_t shifted;               // pieces of y may start anywhere: otherwise each is aligned to its size
  int32_t x_kind, how;
  HeldShape held;     // rows that no registers hold
  StreamShape stream; // long rows, on GPUs with asynchronous copies
  PartShape parts;    // the same on others, of rows that no cluster holds
  NarrowShape narrow; // rows of a few columns
} QuantizeParams;

#ifdef __CUDACC__
#define QUANTIZE_INLINE static __device__ __forceinline__
#else
#define QUANTIZE_INLINE static inline
#endif

// The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 with v's sign, as a code of 4 bits; ties to even codes, a NaN is 6. t is the code before
// it is rounded: 2 a up to 2, a + 2 up to 4, a / 2 + 4 up to 6; of these lines the lowest counts everywhere. The code is in the
// lowest bits of what is returned, above QUANTIZE_BASE.
#define QUANTIZE_BASE 0x4b400000u
QUANTIZE_INLINE uint32_t quantize_e2m1(float v) {
  float a = fabsf(v), t = fminf(fminf(a + a, a + 2), fminf(0.5f * a + 4, 7)); // a NaN is passed over
  union {
    float f;
    uint32_t u;
  } whole = {t + (v < 0 ? 0x1.8p23f + 8 : 0x1.8p23f)}; // to the nearest, ties to even
  return whole.u;
}

// The exponent, 127 above what it is, of the least power of two that is at least f; f is not negative.
QUANTIZE_INLINE uint32_t quantize_e8m0(uint32_t bits_of_f) {
  uint32_t code = bits_of_f >> 23;
  code += code ? (bits_of_f & 0x7fffffu) != 0 : bits_of_f > 0x400000u; // below 2^-126: 2^-127 or 2^-126
  return code > 254 ? 254 : code;
}

#endif
