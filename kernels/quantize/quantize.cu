// y = x / scale in int8, fp8 (e4m3) or fp4 (e2m1), with a scale for each group of columns or each row, by the largest
// magnitude in it; NaN aside.
#include "quantize.h"

#include "bytes.cuh"
#include "elementwise.cuh"
#include "fp8.cuh"
#include "held.cuh"

enum { EACH = 8 }; // columns of a thread

// Writes the scale of group `g` of the row (where `write` is set) and gives what its elements are multiplied by.
INLINE float scale_group(const QuantizeParams &p, float most, uint64_t g, bool write) {
  if (p.how == QUANTIZE_MXFP8) {
    uint32_t code = quantize_e8m0(__float_as_uint(__fdiv_rn(most, 448)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    return code == 254 ? __uint_as_float(0x400000u) : __uint_as_float((254 - code) << 23); // 2^(127 - code)
  }
  if (p.how == QUANTIZE_NVFP4) {
    float all = p.tensor_scale ? __ldg(p.tensor_scale) : 1;
    uint32_t code = e4m3_code(__fdiv_rn(most, __fmul_rn(6, all)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    float scale = __fmul_rn(e4m3_value(code), all);
    return scale > 0 ? __fdiv_rn(1, scale) : 0;
  }
  float scale = __fdiv_rn(most, p.how == QUANTIZE_INT8 ? 127 : 448);
  if (scale < 0x1p-126f) scale = 0;
  if (write) ((float *)p.scales)[g] = scale;
  return scale > 0 ? __fdiv_rn(1, scale) : 0;
}

// `count` (4 or 8) elements, packed: 8 bits each, or 4.
INLINE void pack(const QuantizeParams &p, int count, const float *f, float times, uint32_t *w) {
  w[0] = w[1] = 0;
#pragma unroll
  for (int j = 0; j < count; j += 2) {
    float a = __fmul_rn(f[j], times), b = __fmul_rn(f[j + 1], times);
    if (p.how == QUANTIZE_NVFP4) w[0] |= (quantize_e2m1(a) | quantize_e2m1(b) << 4) << 4 * j;
    else if (p.how == QUANTIZE_INT8) w[j / 4] |= (int8_of(a) | int8_of(b) << 8) << j % 4 * 8;
    else w[j / 4] |= fp8_pair(a, b) << j % 4 * 8;
  }
}

INLINE float most_of(const float *f, int count) {
  float most = 0;
#pragma unroll
  for (int j = 0; j < count; j++) most = fmaxf(most, fabsf(f[j]));
  return most;
}

// `bytes` (4 or 8) at y + at, of a row of `length` bytes.
INLINE void put(char *y, int64_t at, int64_t length, int bytes, const uint32_t *w) {
  bool whole = at + bytes <= length && ((uintptr_t)(y + at) & (bytes - 1)) == 0;
  if (whole) store_aligned(y + at, bytes / 4, w);
  else if (bytes == 8) store_words_some(y, at, length, 8, 1, w);
  else store_words_some(y, at, length, 4, 1, w);
}

// Groups of 16, 32 or 128 columns: neighbouring threads share one.
INLINE void quantize_blocks(const QuantizeParams &p, int in, int kind) {
  uint64_t i = thread_index(), row = divide(i, p.divider);
  int64_t column = (int64_t)(i - row * p.divider.by) * EACH, left = i < p.threads ? p.n - column : 0;
  const char *x = (const char *)p.x + (int64_t)row * p.x_stride, *end = x + p.n * in;
  uint32_t w[12];
  float f[EACH];
  begin_kernel();
  if (left >= EACH) {
    load_words(x + column * in, x, end, 4, in, 0, w);
    to_floats(w, 16 / in, kind, f);
    if (in == 4) {
      load_words(x + column * in + 16, x, end, 4, in, 0, w);
      to_floats(w, 4, kind, f + 4);
    }
  } else {
#pragma unroll
    for (int j = 0; j < EACH; j++) f[j] = j < left ? load_one(x, column + j, kind) : 0;
  }
  uint32_t most = __float_as_uint(most_of(f, EACH));
  for (int o = p.lanes / 2; o; o /= 2) most = max(most, __shfl_xor_sync(~0u, most, o));
  int64_t group = column / (p.lanes * EACH);
  bool first = left > 0 && threadIdx.x % p.lanes == 0;
  float times = scale_group(p, __uint_as_float(most), row * (uint64_t)p.groups + (uint64_t)group, first);
  if (left <= 0) return;
  pack(p, EACH, f, times, w);
  char *y = (char *)p.y + (int64_t)row * p.y_stride;
  if (p.how == QUANTIZE_NVFP4) put(y, column / 2, p.n / 2, 4, w);
  else put(y, column, p.n, 8, w);
}

// A scale for each row, which is held on the chip.
INLINE void quantize_row(const QuantizeParams &p, int in, int kind, HeldShared *shared, uint4 *memory) {
  const int per = 16 / in;
  Held h = held_of(p.x, p.x_stride, p.n, in, memory, p.held);
  held_fill(h);
  float f[8], most = 0;
#pragma unroll 4
  for (int k = 0; k < h.count; k++) {
    held_chunk(h, k, kind, in, f);
    most = fmaxf(most, most_of(f, per));
  }
  int64_t at;
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++) most = fmaxf(most, fabsf(load_one(h.x.at, at, kind)));
  uint64_t all = __float_as_uint(most);
  held_fold<1>(h, shared, &all, 0, MostJoin());
  held_leave(h);
  bool first = h.rank == 0 && held_thread(h) == 0 && h.row < p.held.m;
  float times = scale_group(p, __uint_as_float((uint32_t)all), h.row, first);
  char *y = (char *)p.y + (int64_t)h.row * p.y_stride;
  uint32_t w[2];
#pragma unroll 2
  for (int k = 0; k < h.count; k++) {
    int64_t column = held_chunk(h, k, kind, in, f);
    pack(p, per, f, times, w);
    put(y, column, p.n, per, w);
  }
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++) {
    f[0] = load_one(h.x.at, at, kind), f[1] = 0;
    pack(p, 2, f, times, w);
    ((uint8_t *)y)[at] = (uint8_t)w[0];
  }
  held_end(h);
}

#define QUANTIZE(in)                                                                                         \
  KERNEL __launch_bounds__(256) sol_quantize_blocks_##in(const __grid_constant__ QuantizeParams p) {         \
    quantize_blocks(p, in, in == 4 ? KIND_FP32 : p.x_kind);                                                  \
  }                                                                                                          \
  KERNEL __launch_bounds__(HELD_THREADS, 2) sol_quantize_row_##in(const __grid_constant__ QuantizeParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ HeldShared shared;                                                                            \
    begin_kernel();                                                                                          \
    quantize_row(p, in, in == 4 ? KIND_FP32 : p.x_kind, &shared, memory);                                    \
  }
QUANTIZE(2)
QUANTIZE(4)
