// Row normalisations to fp8 of long rows of any alignment: as norm_spread.cuh, but columns are counted from the row's start, so that weights and blocks of 128
// columns are aligned wherever the row is. x is copied into shared memory as it lies in global memory, and a thread's columns, 16 bytes of x, are two reads
// and a shift. Warps have consecutive columns: what a lane makes of its own is put together with the lane's before to whole cells of the output, as many
// bytes as there are columns.
#ifndef SOL_KERNELS_NORM_SPREAD_FP8_CUH
#define SOL_KERNELS_NORM_SPREAD_FP8_CUH

#include "norm_spread.cuh"

// A part of a row, in units of 16 bytes of x. Units lo .. hi - 1 are written.
typedef struct SpreadUnits {
  NormRow r;
  uint64_t row;
  int begin, end; // columns
  int first, turns; // this thread's units: first, first + 32, ...
  int lo, hi;
  uint32_t shift; // of the first column in shared memory
  uint4 *memory;
} SpreadUnits;

INLINE SpreadUnits spread_units(NormKernel c, const NormParams *p, NormRow r, uint64_t row, uint32_t part, uint4 *memory) {
  const int per = 16 / norm_bytes(c);
  SpreadUnits a;
  a.r = r, a.row = row, a.memory = memory;
  a.begin = (int)min((int64_t)part * p->parts.length, p->n), a.end = (int)min(a.begin + p->parts.length, p->n);
  int units = (a.end - a.begin + per - 1) / per;
  a.turns = (units + PARTS_THREADS - 1) / PARTS_THREADS;
  a.first = (int)(threadIdx.x / 32) * 32 * a.turns + (int)(threadIdx.x % 32);
  a.lo = 0, a.hi = units;
  a.shift = (uint32_t)(uintptr_t)(r.x + (int64_t)a.begin * norm_bytes(c)) & 15;
  return a;
}

// Columns of a unit.
INLINE int unit_count(NormKernel c, const SpreadUnits &a, int unit) {
  return max(0, min(16 / norm_bytes(c), a.end - a.begin - unit * (16 / norm_bytes(c))));
}

INLINE void units_fill(NormKernel c, const NormParams *p, const SpreadUnits &a) {
  const int in = norm_bytes(c);
  const char *from = a.r.x + (int64_t)a.begin * in - a.shift;
  const char *begin = (const char *)p->x, *end = begin + ((int64_t)p->m - 1) * p->x_stride + p->n * in;
  int pieces = (int)((a.shift + (a.end - a.begin) * in + 15) / 16);
  bool inside = from >= begin && from + (int64_t)pieces * 16 <= end;
#pragma unroll 8
  for (int i = threadIdx.x; i < pieces; i += PARTS_THREADS) {
    const char *at = from + (int64_t)i * 16;
    if (inside || (at >= begin && at + 16 <= end)) fetch16(a.memory + i, at);
    else a.memory[i] = load_singly(at, begin, end, in);
  }
  wait_for_fetches();
}

// A unit's elements; zeros beyond the row's end.
INLINE void unit_take(NormKernel c, const SpreadUnits &a, int unit, int count, float *f) {
  uint4 none = make_uint4(0, 0, 0, 0);
  bool both = (int)a.shift + count * norm_bytes(c) > 16;
  Vec v;
  v.v = count ? a.memory[unit] : none;
  if (a.shift) v.v = funnel(v.v, both ? a.memory[unit + 1] : none, a.shift, norm_bytes(c));
  widen(&v, c.kind, norm_bytes(c), f);
  if (count < 16 / norm_bytes(c))
#pragma unroll
    for (int j = 0; j < 16 / norm_bytes(c); j++) f[j] = j < count ? f[j] : 0;
}

enum { UNITS_BATCH = 4 }; // units whose weights a thread loads at a time

// The weights of this thread's units from number k on, of those that are whole.
INLINE void units_weights(NormKernel c, const NormParams *p, const SpreadUnits &a, int k, Vec *w) {
  const char *from = (const char *)p->weight + ((int64_t)a.begin * norm_bytes(c) + (int64_t)(a.first + k * 32) * 16);
  bool plain = span_plain(c, p, p->weight);
#pragma unroll
  for (int i = 0; i < UNITS_BATCH; i++) {
    bool whole = k + i < a.turns && unit_count(c, a, a.first + (k + i) * 32) == 16 / norm_bytes(c);
    w[i] = load16_now(from + i * 512, plain && whole);
  }
}

// f times the unit's weights; returns the largest magnitude. v: them, if they are whole chunks of the input's type.
INLINE float unit_product(NormKernel c, const NormParams *p, const SpreadUnits &a, int unit, int count, Vec v, float *f) {
  const int per = 16 / norm_bytes(c);
  int column = a.begin + unit * per;
  float w[8], top = 0;
  if (span_plain(c, p, p->weight) && count == per) {
    widen(&v, c.kind, norm_bytes(c), w);
  } else {
#pragma unroll
    for (int j = 0; j < per; j++) w[j] = p->weight && j < count ? load_one(p->weight, column + j, p->weight_kind) : 1 - p->offset;
  }
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] *= w[j] + p->offset;
    top = higher(top, fabsf(f[j]));
  }
  return top;
}

INLINE float2 units_sum(NormKernel c, const NormParams *p, const SpreadUnits &a, SpreadShared *shared) {
  const int per = 16 / norm_bytes(c);
  bool by_row = p->scaling == NORM_SCALE_ROW;
  float2 s = make_float2(0, 0);
  float top = 0;
#pragma unroll 1
  for (int k = 0; k < a.turns; k += UNITS_BATCH) {
    Vec w[UNITS_BATCH];
    if (by_row) units_weights(c, p, a, k, w);
#pragma unroll
    for (int i = 0; i < UNITS_BATCH; i++) {
      int unit = a.first + (k + i) * 32, count = k + i < a.turns ? unit_count(c, a, unit) : 0;
      float f[8];
      if (!count) continue;
      unit_take(c, a, unit, count, f);
#pragma unroll
      for (int j = 0; j < per; j += 2) s.x = fmaf(f[j], f[j], s.x), s.y = fmaf(f[j + 1], f[j + 1], s.y);
      if (by_row) top = higher(top, unit_product(c, p, a, unit, count, w[i], f));
    }
  }
  float sum = parts_sum(s.x + s.y, shared->room[0].part[0]);
  if (by_row) { // a NaN is above all as bits, too
    float *tops = shared->room[0].part[1];
    top = lanes_highest(top, 32);
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
    __syncthreads();
    top = lanes_highest(tops[threadIdx.x % (PARTS_THREADS / 32)], 32);
  }
  return make_float2(sum, top);
}

// The row's, of its parts': thread i has part i's.
INLINE float2 units_row(const NormParams *p, float2 v, SpreadShared *shared) {
  float squares = parts_sum(v.x, shared->room[1].part[0]) * p->over_n, top = lanes_highest(v.y, 32);
  float *tops = shared->room[1].part[1];
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  return make_float2(squares, lanes_highest(tops[threadIdx.x % (PARTS_THREADS / 32)], 32));
}

// Bytes from .. to - 1 of a unit's output.
INLINE void store_bytes(char *y, uint64_t u, int from, int to) {
#pragma unroll 1
  for (int j = from; j < to; j++) y[j] = (char)(u >> 8 * j);
}

// A unit's `count` bytes at y, of which some are in the cell that begins before y, with the last ones of the lane's before (`before`). begins, ends: that
// cell, the next one, is not shared with a lane of this warp.
INLINE void unit_store(NormKernel c, char *y, uint64_t u, uint64_t before, int count, bool begins, bool ends) {
  const int per = 16 / norm_bytes(c);
  int past = (int)((uint32_t)(uintptr_t)y & (per - 1)); // bytes of the cell before y
  if (past && begins) {
    store_bytes(y, u, 0, min(per - past, count));
  } else if (count >= per - past) {
    uint64_t cell = past ? u << 8 * past | before >> 8 * (per - past) : u;
    if (per == 8) *(uint64_t *)(y - past) = cell;
    else *(uint32_t *)(y - past) = (uint32_t)cell;
  } else {
    store_bytes(y - past, before >> 8 * (per - past), 0, past);
    store_bytes(y, u, 0, count);
  }
  if (past && (ends || count < per)) store_bytes(y, u, per - past, count);
}

// What a unit is in fp8. scale: 1 / deviation; q: the row's or the tensor's.
INLINE uint64_t unit_result(NormKernel c, const NormParams *p, const SpreadUnits &a, int unit, int count, Vec w, float scale, Fp8Scale q) {
  const int per = 16 / norm_bytes(c), lanes = 128 / per;
  float f[8];
  unit_take(c, a, unit, count, f);
  float top = unit_product(c, p, a, unit, count, w, f);
  if (p->scaling == NORM_SCALE_BLOCK) {
    float *scales = p->scales + (int64_t)a.row * ((p->n + 127) / 128) + (a.begin + unit * per) / 128;
    bool first = count && threadIdx.x % lanes == 0 && unit >= a.lo && unit < a.hi;
    q = fp8_choose(lanes_highest(top, lanes), scale, scales, first);
  }
  if (p->scaling == NORM_SCALE_TENSOR)
#pragma unroll
    for (int j = 0; j < per; j++) f[j] *= scale;
  fp8_divide(q, per, f);
  uint2 words = fp8_words(c, f);
  return words.x | (uint64_t)words.y << 32;
}

INLINE void units_put(NormKernel c, const NormParams *p, const SpreadUnits &a, float2 row, bool first_part) {
  const int per = 16 / norm_bytes(c);
  int lane = threadIdx.x % 32;
  float scale = rsqrtf(row.x + p->eps);
  Fp8Scale q = {1, 1};
  if (p->scaling == NORM_SCALE_TENSOR) q = fp8_scale(*p->scales);
  if (p->scaling == NORM_SCALE_ROW) q = fp8_choose(row.y, scale, p->scales + a.row, first_part && threadIdx.x == 0);
  uint64_t carried = 0; // lane 0: what the warp's last lane had in the turn before
#pragma unroll 1
  for (int k = 0; k < a.turns; k += UNITS_BATCH) {
    Vec w[UNITS_BATCH];
    units_weights(c, p, a, k, w);
#pragma unroll
    for (int i = 0; i < UNITS_BATCH; i++) {
      int unit = a.first + (k + i) * 32, count = k + i < a.turns ? unit_count(c, a, unit) : 0;
      uint64_t u = unit_result(c, p, a, unit, count, w[i], scale, q), last = __shfl_sync(~0u, u, (lane + 31) % 32);
      uint64_t before = lane ? last : carried;
      carried = last;
      bool begins = unit == a.lo || (k + i == 0 && lane == 0), ends = unit == a.hi - 1 || (k + i == a.turns - 1 && lane == 31);
      if (count && unit >= a.lo && unit < a.hi)
        unit_store(c, a.r.y + a.begin + (int64_t)unit * per, u, before, count, begins, ends);
    }
  }
}

INLINE void norm_spread_fp8(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 spread_memory[];
  __shared__ SpreadShared shared;
  const bool relay = p->lag;
  if (!relay && p->parts.parts > 1) exchange_init(&shared.exchange);
  begin_kernel();
  Relay at = spread_place(p, relay);
  if (at.row >= p->m) return;
  NormRow r = norm_row(c, p, at.row, false);
  unsigned long long *posts = posts_of(r.y);
  if (threadIdx.x == 0 && at.sums) { // the same part of a row further on
    int64_t from = at.part * p->parts.length;
    if (from < p->n)
      norm_prefetch(c, p, at.row, from * norm_bytes(c), (int)min(p->parts.length, p->n - from) * norm_bytes(c), true);
  }
  float2 v = make_float2(0, 0), row = v;
  SpreadUnits a = spread_units(c, p, r, at.row, at.part, spread_memory);
  units_fill(c, p, a);
  __syncthreads();
  if (at.sums) v = units_sum(c, p, a, &shared);
  if (!spread_exchange(p, relay, at, posts, &shared, &v)) return;
  row = units_row(p, v, &shared);
  bool last = relay && threadIdx.x == 0 && relay_is_last(p->parts, relay_count(posts));
  a.lo = relay && at.part == 0 ? min(p->parts.front, a.hi) : 0; // units that are written last come before
  units_put(c, p, a, row, at.part == 0);
  if (!__syncthreads_or(last)) return;
  a = spread_units(c, p, r, at.row, 0, spread_memory);
  a.hi = min(p->parts.front, a.hi);
  units_fill(c, p, a);
  __syncthreads();
  units_put(c, p, a, row, false);
}

#define NORM_SPREAD_FP8(name, op, T, number) NORM_KERNEL(name, PARTS_THREADS, PARTS_BLOCKS, norm_spread_fp8, op, T, 1, 0, 0, 0)

#endif
