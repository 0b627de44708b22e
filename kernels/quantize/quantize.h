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

enum { QUANTIZE_NARROW = 128 }; // the most columns of rows that go through shared memory, many at a time

// Rows in the shared memory of a cluster: the most threads of a block, the most bytes of its part of the row, and how many blocks share an SM.
enum { QUANTIZE_CLUSTER_THREADS = 256, QUANTIZE_CLUSTER_SHARED = 32 << 10, QUANTIZE_CLUSTER_BLOCKS = 6, QUANTIZE_CLUSTER_MOST = 16 };

typedef struct QuantizeParams {
  void *y, *scales;
  const void *x;
  const float *tensor_scale;     // NVFP4; NULL: 1
  Divider divider;               // blocks: by the threads of a row
  Divider32 small;               // the same where all threads are few; or by 0
  uint64_t m;                    // rows
  int64_t n, y_stride, x_stride; // bytes, but n
  int64_t groups;                // of a row
  int32_t lane_bits;             // rows: 2^lane_bits threads share one; below 0: a block does
  int32_t shifted;               // pieces of y may start anywhere: otherwise each is aligned to its size
  int32_t x_kind, how;
  int32_t of_block;              // rows in a cluster: chunks of a block
  HeldShape held;     // rows that no registers hold, on other GPUs
  StreamShape stream; // long rows, on GPUs with asynchronous copies
  PartShape parts;    // the same on others, of rows that no cluster holds
  NarrowShape narrow; // rows of a few columns
} QuantizeParams;

#ifdef __CUDACC__
#define QUANTIZE_INLINE static __device__ __forceinline__
#else
#define QUANTIZE_INLINE static inline
#endif

// v / 2 + by, within 0 and 1; a NaN is 0.
QUANTIZE_INLINE float quantize_part(float v, float by) {
#ifdef __CUDA_ARCH__
  float part;
  asm("fma.rn.sat.f32 %0, %1, 0f3f000000, %2;" : "=f"(part) : "f"(v), "f"(by));
  return part;
#else
  float part = 0.5f * v + by;
  return part > 0 ? (part < 1 ? part : 1) : 0;
#endif
}

// The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 to v, which is not negative, as a code of 0 to 7 above QUANTIZE_BASE; ties to even codes. The code before it is rounded
// is 2 v up to 2, then rises by 1 for each 1 up to 4, and for each 2 up to 6: so four times what v has of the first two, twice what it has of the next,
// once what it has of the last. Where the first counts in part the others are 0, so that there is one rounding.
#define QUANTIZE_BASE 0x4b400000u
QUANTIZE_INLINE uint32_t quantize_code(float v) {
  union {
    float f;
    uint32_t u;
  } whole = {(0x1.8p23f + 4 * quantize_part(v, 0)) + (2 * quantize_part(v, -1) + quantize_part(v, -2))};
  return whole.u;
}

// As a code of 4 bits, with v's sign; a NaN is 6.
QUANTIZE_INLINE uint32_t quantize_e2m1(float v) {
  return (v != v ? 7 : quantize_code(fabsf(v)) & 15) | (signbit(v) ? 8u : 0);
}

// The exponent, 127 above what it is, of the least power of two that is at least f; f is not negative.
QUANTIZE_INLINE uint32_t quantize_e8m0(uint32_t bits_of_f) {
  uint32_t code = bits_of_f >> 23;
  code += code ? (bits_of_f & 0x7fffffu) != 0 : bits_of_f > 0x400000u; // below 2^-126: 2^-127 or 2^-126
  return code > 254 ? 254 : code;
}

#endif
