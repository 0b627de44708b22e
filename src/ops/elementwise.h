// Host side of kernels/elementwise.cuh: how a tensor is divided into the chunks of an elementwise kernel.
#ifndef SOL_OPS_ELEMENTWISE_H
#define SOL_OPS_ELEMENTWISE_H

#include "kernels/elementwise.h"
#include "ops/operation.h"

Divider elementwise_divider(uint64_t by);     // by at least 1
Divider32 elementwise_divider32(uint32_t by); // by from 1 to 2^31
enum { ELEMENTWISE_SMALL = INT32_MAX };       // a Divider32 divides up to here

// Whether to use two chunks per thread and 128 threads per block instead of one and 256. It pays where it
// avoids a second, partial wave of blocks: everything is then resident at once.
static inline bool elementwise_two(const SolContext *ctx, int64_t chunks) {
  int64_t wave = (int64_t)ctx->sms * 2048; // threads
  return chunks > wave && chunks <= 2 * wave;
}

// Elements of a chunk: 16 bytes of the wider side.
static inline int elementwise_chunk(SolDtype in, SolDtype out) {
  int a = sol_dtype_bits(in), b = sol_dtype_bits(out);
  return 128 / (a > b ? a : b);
}

// Whether a tensor can be processed as one long row: its strides (0: dense) leave no gaps.
static inline bool elementwise_flat(int64_t m, int64_t n, int64_t y_stride, int64_t x_stride) {
  return m == 1 || ((!y_stride || y_stride == n) && (!x_stride || x_stride == n));
}

// Chunks of `per` elements of `out` bytes over y (m, n). Flat: the divider is by n, otherwise by a row's
// chunks. threads: a block's chunks, where long rows may start with one; 0: they do not.
Spread elementwise_spread(const void *y, int64_t m, int64_t n, int64_t y_stride, int per, int out, bool flat,
                          int threads);

// Rows of n elements in `per_row` parts each.
Spread elementwise_rows(uint64_t per_row, uint64_t m, int64_t n);

// Whether kernels take an element a thread (kernels/single.cuh), of rows of n elements of `out` bytes: where rows are apart and short, by
// chunks each of their sectors would be written several times.
static inline bool elementwise_single(int64_t n, int out, bool flat) {
  enum { SHORT = 64 }; // bytes of a row
  return !flat && n * out < SHORT;
}

// Whether a thread may take several of such a spread's elements (singles_place): all that depends on a place is of 32 bits.
enum { ELEMENTWISE_SINGLES = 4 };
static inline bool elementwise_several(const Spread *s, int64_t x_stride, int64_t y_stride) { // bytes
  return s->small.by && x_stride >= 0 && y_stride >= 0 && x_stride <= UINT32_MAX && y_stride <= UINT32_MAX;
}

// And where there are so few elements that all threads run at a time: it is then the length of a thread's code that counts, unless rows
// are whole chunks.
static inline bool elementwise_small(const SolContext *ctx, int64_t m, int64_t n) {
  enum { THREADS = 1024 }; // of an SM
  return (double)m * (double)n <= (double)ctx->sms * THREADS;
}

// Whether a pointer and its row stride, in bytes, are multiples of `bytes`, a power of two up to 16.
static inline bool elementwise_aligned(const void *at, int64_t stride_bytes, int bytes) {
  return ops_align(at, stride_bytes, 2) >= bytes;
}

// exp(x) for the CPU, to about an ulp, in a form that compilers vectorise: exp(f) 2^k, |f| up to ln(2) / 2.
static inline float elementwise_exp(float x) {
  const float round = 0x1.8p23f;         // adding it leaves a whole number in the lowest bits
  x = x < -104 ? -104 : x > 89 ? 89 : x; // a NaN stays; beyond are 0 and infinity
  union {
    float f;
    int32_t i;
  } k = {x * 1.44269504f + round}, low, high;
  float n = k.f - round, f = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.f / 5040;
  p = p * f + 1.f / 720;
  p = p * f + 1.f / 120;
  p = p * f + 1.f / 24;
  p = p * f + 1.f / 6;
  p = p * f + 0.5f;
  p = p * f + 1;
  p = p * f + 1;
  // 2^k by halves: neither leaves the range of normal numbers. Wraps for a NaN, which p is, too.
  uint32_t whole = (uint32_t)k.i - 0x4b400000u, half = (uint32_t)((int32_t)whole >> 1);
  low.i = (int32_t)((half + 127) << 23);
  high.i = (int32_t)((whole - half + 127) << 23);
  return p * low.f * high.f;
}

// a * b; -1 where that overflows or either is negative.
static inline int64_t ops_times(int64_t a, int64_t b) {
  int64_t product;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product) ? -1 : product;
}

#endif
