// Short rows that lie side by side and start anywhere. A warp copies some of them into its own shared memory as one span, by the buffer's 16-byte chunks, and
// reads and writes them there by words of 4 bytes: of a row no more than its first and last word have elements of its neighbours. So a lane's elements are all of its row,
// and what a row costs beside its elements is little: a row of 75 has 80 places in 8 lanes, where chunks of a lane each would have 144.
//
// 2^bits lanes share a row, with `each` words each at most: as few as have 16, so more than 8 where there are several lanes (beside_plan, src/ops/softmax.c). Which words a lane has, and
// with it the order of the sum, follows from the row's length and from whether it starts within a word.
#ifndef SOL_KERNELS_SOFTMAX_BESIDE_CUH
#define SOL_KERNELS_SOFTMAX_BESIDE_CUH

#include "elementwise.cuh"
#include "funnel.cuh"
#include "softmax/softmax_row.cuh"

// The rows of a warp.
typedef struct Beside {
  char *held;      // where the chunk is that the first one starts in
  uint64_t first;
  int rows, shift; // shift: of the first row beyond the start of its chunk
} Beside;

INLINE Beside beside_of_warp(const SoftmaxParams *p, char *memory) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, warp = threadIdx.x / 32;
  Beside a;
  a.held = memory + warp * p->beside.bytes;
  a.first = (block * SOFTMAX_BESIDE_WARPS + warp) * p->beside.rows;
  a.rows = a.first < p->m ? (int)min((uint64_t)p->beside.rows, p->m - a.first) : 0;
  a.shift = (int)((uint32_t)(uintptr_t)((const char *)p->x + (int64_t)a.first * p->x_stride) & 15);
  return a;
}

// Where blocks are few, while the predecessor still runs: prefetches a warp's rows.
INLINE void beside_hint(const SoftmaxParams *p, const Beside &a) {
  if (!may_hint()) return;
  const char *x = (const char *)p->x + (int64_t)a.first * p->x_stride;
  for (int i = threadIdx.x % 32 * 128; i < a.rows * (int)p->x_stride; i += 32 * 128) prefetch_l2(x + i);
}

INLINE void beside_fetch(const SoftmaxParams *p, const Beside &a, int size) {
  const char *begin = (const char *)p->x, *end = begin + (int64_t)p->m * p->x_stride, *from = begin + (int64_t)a.first * p->x_stride - a.shift;
  int chunks = a.rows ? (a.shift + a.rows * (int)p->x_stride + 15) / 16 : 0;
  bool inside = from >= begin && from + 16 * chunks <= end;
  const int lane = threadIdx.x % 32;
  if (!inside) {
#pragma unroll 1
    for (int i = lane; i < chunks; i += 32) *(uint4 *)(a.held + 16 * i) = load_singly(from + 16 * i, begin, end, size);
    return;
  }
  char *to = a.held + 16 * lane;
  from += 16 * lane;
#pragma unroll 4
  for (int left = chunks - lane; left > 0; left -= 32, to += 512, from += 512) fetch16(to, from);
}

INLINE void beside_send(const SoftmaxParams *p, const Beside &a, int size) {
  char *to = (char *)p->y + (int64_t)a.first * p->y_stride - a.shift;
  int bytes = a.rows ? a.shift + a.rows * (int)p->y_stride : 0;
  const int first = threadIdx.x % 32 * 16 + (a.shift ? 16 : 0), whole = bytes & ~15;
#pragma unroll 4
  for (int i = first; i < whole; i += 512) {
    Vec v;
    v.v = *(const uint4 *)(a.held + i);
    store16(to + i, v.u[0], v.u[1], v.u[2], v.u[3]);
  }
  const int lane = threadIdx.x % 32, end = lane ? whole : 0; // two lanes have the chunks at the ends
  if (lane == 0 ? bytes && (a.shift || !whole) : lane == 1 && whole && bytes > whole)
    store_part(to + end, end ? 0 : a.shift, min(bytes - end, 16), 4, size, ((const Vec *)(a.held + end))->u);
}

// exp(f - mine), or 2^(f * log2(e) - less) in its place, with one operation: `less` is rounded, so that all exponentials of the row are off by the same factor, which the quotient does not
// have. A logarithm would have it, and beyond 2^20 it would be large.
INLINE bool beside_may_scale(const SoftmaxParams *p, float mine, int kind) { return !LABELS && !asks_log(p) && (kind == KIND_FP16 || fabsf(mine) < 0x1p20f); }
INLINE float beside_exp(float f, float mine) { return ex2((f - mine) * LOG2E); }
INLINE float beside_scaled(float f, float mine) { return ex2(fmaf(f, LOG2E, -(mine * LOG2E))); }

// A row's label, in the lane that has the same number as the row among 32, and what that lane needs for its loss.
typedef struct BesideLabel {
  int at; // column, or NO_LABEL; LABEL_OF_ANOTHER: there is no such row
  float x, top, sum;
} BesideLabel;

// The target of row `row` of the warp, as a column that there is, or NO_LABEL.
INLINE int beside_target(const SoftmaxParams *p, const Beside &a, int row) {
  if (!LABELS || row >= a.rows) return LABEL_OF_ANOTHER;
  int64_t target = target_at(p, a.first + row);
  return target >= 0 && target < p->n ? (int)target : NO_LABEL;
}

INLINE char *beside_row(const SoftmaxParams *p, const Beside &a, int row) { return a.held + a.shift + row * (int)p->x_stride; }

// The loss of lane's row, and the gradient of its label's element.
INLINE void beside_lose(const SoftmaxParams *p, const Beside &a, int row, const BesideLabel &l, int kind) {
  if (l.at == LABEL_OF_ANOTHER) return;
  p->loss[a.first + row] = l.at == NO_LABEL ? 0 : logf(l.sum) - (l.x - l.top);
  if (p->y && l.at >= 0) store_one(beside_row(p, a, row), l.at, kind, (__fdividef(beside_exp(l.x, l.top), l.sum) - 1) * p->scale);
}

INLINE void beside_put(uint32_t *word, uint32_t v, bool low, bool high) {
  if (low && high) *word = v;
  else if (low) *(uint16_t *)word = (uint16_t)v;
  else if (high) ((uint16_t *)word)[1] = (uint16_t)(v >> 16);
}

// The words of a lane: of its row's elements. Where `cut`, its first has an element of the row before; its last has `left` elements of the row.
template <int size, int lanes, int each> struct BesideWords {
  uint32_t w[each], *at;
  int left;
  bool cut;
};

// at: byte of a.held that the row begins with.
template <int size, int lanes, int each>
INLINE void beside_take(const SoftmaxParams *p, const Beside &a, int at, int kind, BesideWords<size, lanes, each> &s) {
  int lane = threadIdx.x & (lanes - 1), odd = size == 2 ? at >> 1 & 1 : 0;
  const uint32_t lowest = span_lowest(kind);
  s.at = (uint32_t *)(a.held + (at & ~3)) + lane;
  s.left = (int)p->n + odd - 4 / size * (lane + lanes * (each - 1));
  s.cut = odd && lane == 0;
#pragma unroll
  for (int k = 0; k < each - 1; k++) s.w[k] = s.at[k * lanes];
  s.w[each - 1] = s.left > 0 ? s.at[(each - 1) * lanes] : lowest;
  if (size == 2) {
    if (s.cut) s.w[0] = (s.w[0] & 0xffff0000u) | (lowest & 0xffffu);
    if (s.left == 1) s.w[each - 1] = (s.w[each - 1] & 0xffffu) | (lowest & 0xffff0000u);
  }
}

template <int size, int lanes, int each> INLINE void beside_give(const BesideWords<size, lanes, each> &s) {
#pragma unroll
  for (int k = 0; k < each; k++) {
    bool last = k == each - 1;
    if (size == 2) beside_put(s.at + k * lanes, s.w[k], (k || !s.cut) && (!last || s.left > 0), !last || s.left > 1);
    else if (!last || s.left > 0) s.at[k * lanes] = s.w[k];
  }
}

template <int size, int lanes, int each> INLINE float beside_top(const BesideWords<size, lanes, each> &s, int kind) {
  if (size == 4) {
    float top[2] = {__uint_as_float(s.w[0]), -INFINITY};
#pragma unroll
    for (int k = 1; k < each; k++) top[k % 2] = fmaxf(top[k % 2], __uint_as_float(s.w[k]));
    return fmaxf(top[0], top[1]);
  }
  uint32_t top[2] = {s.w[0], span_lowest(kind)};
#pragma unroll
  for (int k = 1; k < each; k++) top[k % 2] = larger2(top[k % 2], s.w[k], kind);
  float2 two = widen2(larger2(top[0], top[1], kind), kind);
  return fmaxf(two.x, two.y);
}

template <int size, int each> INLINE void beside_widen(const uint32_t *w, int kind, float *f) {
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (size == 4) {
      f[k] = __uint_as_float(w[k]);
    } else {
      float2 two = widen2(w[k], kind);
      f[2 * k] = two.x, f[2 * k + 1] = two.y;
    }
  }
}
template <int size, int each> INLINE void beside_narrow(uint32_t *w, int kind, const float *f) {
#pragma unroll
  for (int k = 0; k < each; k++) w[k] = size == 4 ? __float_as_uint(f[k]) : narrow2(f[2 * k], f[2 * k + 1], kind);
}

// The sum of a lane's words in the order in which lanes that have one each would add them up (softmax_direct.cuh): far ones first.
INLINE float beside_sum(int size, int each, const float *f) {
  float word[BESIDE_MOST];
#pragma unroll
  for (int k = 0; k < each; k++) word[k] = size == 4 ? f[k] : f[2 * k] + f[2 * k + 1];
#pragma unroll
  for (int level = 3; level >= 0; level--)
#pragma unroll
    for (int k = 0; k < BESIDE_MOST / 2; k++)
      if (k < 1 << level && k + (1 << level) < each) word[k] += word[k + (1 << level)];
  return word[0];
}

// The row of this lane among those from `first` on of the warp, as many as its lanes have at a time; at: where it begins.
template <int size, int bits, int each> INLINE void beside_turn(const SoftmaxParams *p, const Beside &a, int first, int at, int kind, BesideLabel &label) {
  enum { LANES = 1 << bits, TURN = 32 / LANES, COUNT = each * 4 / size };
  const int lane = threadIdx.x % 32, row = first + lane / LANES;
  BesideWords<size, LANES, each> s;
  float f[COUNT];
  beside_take(p, a, at, kind, s);
  float top = lanes_fold(make_float2(beside_top(s, kind), 0), FOLD_MAX, LANES).x, mine = start_of(top);
  beside_widen<size, each>(s.w, kind, f);
  if (beside_may_scale(p, mine, kind)) {
#pragma unroll
    for (int j = 0; j < COUNT; j++) f[j] = beside_scaled(f[j], mine);
  } else {
#pragma unroll
    for (int j = 0; j < COUNT; j++) f[j] = beside_exp(f[j], mine);
  }
  float sum = beside_sum(size, each, f);
#pragma unroll
  for (int o = LANES / 2; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  bool dropped = LABELS && label.at == NO_LABEL;
  if (LABELS && LANES == 1) label.top = top, label.sum = sum;
  if (LABELS && LANES > 1) {
    dropped = __shfl_sync(~0u, label.at, row % 32) == NO_LABEL;
    float tops = __shfl_sync(~0u, top, lane % TURN * LANES), all = __shfl_sync(~0u, sum, lane % TURN * LANES);
    if (lane / TURN == first % 32 / TURN) label.top = tops, label.sum = all;
  }
  if (LABELS && !p->y) return;
  if (asks_log(p)) {
    float plus = -logf(sum);
    beside_widen<size, each>(s.w, kind, f);
#pragma unroll
    for (int j = 0; j < COUNT; j++) f[j] = (f[j] - mine) + plus;
  } else {
    float times = __fdividef(LABELS ? p->scale : 1, sum);
#pragma unroll
    for (int j = 0; j < COUNT; j++) f[j] *= times;
  }
  beside_narrow<size, each>(s.w, kind, f);
  if (LABELS && __any_sync(~0u, dropped)) {
#pragma unroll
    for (int k = 0; k < each; k++) s.w[k] = dropped ? 0 : s.w[k];
  }
  __syncwarp(); // rows next to each other have read the word that they share
  if (row < a.rows) beside_give(s);
  __syncwarp();
}

template <int size, int bits, int each> INLINE void beside_turns(const SoftmaxParams *p, const Beside &a, int kind) {
  const int step = 32 >> bits, lane = threadIdx.x % 32, stride = (int)p->x_stride, last = a.shift + (a.rows - 1) * stride;
  int next = beside_target(p, a, lane), at = a.shift + (lane >> bits) * stride;
  BesideLabel label;
  wait_for_fetches();
  __syncwarp();
#pragma unroll 1
  for (int first = 0; first < a.rows; first += step, at += step * stride) {
    if (LABELS && first % 32 == 0) {
      label.at = next;
      if (label.at >= 0) label.x = load_one(beside_row(p, a, first + lane), label.at, kind);
      next = beside_target(p, a, first + 32 + lane);
    }
    beside_turn<size, bits, each>(p, a, first, min(at, last), kind, label);
    if (LABELS && ((first + step) % 32 == 0 || first + step >= a.rows)) {
      beside_lose(p, a, first / 32 * 32 + lane, label, kind);
      __syncwarp();
    }
  }
}

// Rows that other kernels are faster for have no copy (beside_plan).
#define BESIDE_CASE(bits, each)                                                                                        \
  case BESIDE_MOST * (bits) + (each)-1:                                                                                \
    if ((bits) == 4 ? size == 4 && !LABELS : (bits) == 3 ? ((each) > 8) == (size == 4) && ((each) <= 8 || LABELS)      \
                                                         : size == 2 || LABELS)                                        \
      beside_turns<size, bits, each>(p, a, kind);                                                                      \
    break;
#define BESIDE_HALF(bits, from)                                                                                        \
  BESIDE_CASE(bits, from + 1) BESIDE_CASE(bits, from + 2) BESIDE_CASE(bits, from + 3) BESIDE_CASE(bits, from + 4)      \
  BESIDE_CASE(bits, from + 5) BESIDE_CASE(bits, from + 6) BESIDE_CASE(bits, from + 7) BESIDE_CASE(bits, from + 8)

// more: of lanes with more than 8 words, which take more registers.
template <int size, bool more> INLINE void softmax_beside(const SoftmaxParams *p, int kind) {
  extern __shared__ __align__(128) char beside_memory[];
  Beside a = beside_of_warp(p, beside_memory);
  beside_hint(p, a);
  let_successor_start();
  wait_for_predecessor();
  beside_fetch(p, a, size);
  const RowShape block = {1, 1, SOFTMAX_BESIDE_WARPS * p->beside.rows, 1, size, size, 1};
  look_ahead(p, block);
  const int which = BESIDE_MOST * p->lane_bits + p->beside.each - 1;
  if (more) {
    switch (which) { BESIDE_HALF(0, 8) BESIDE_HALF(1, 8) BESIDE_HALF(2, 8) BESIDE_HALF(3, 8) }
  } else {
    switch (which) {
      BESIDE_HALF(0, 0) BESIDE_CASE(1, 8) BESIDE_CASE(2, 8) BESIDE_CASE(3, 8)
      BESIDE_CASE(4, 5) BESIDE_CASE(4, 6) BESIDE_CASE(4, 7) BESIDE_CASE(4, 8)
    }
  }
  if (!LABELS || p->y) beside_send(p, a, size);
}

#endif
