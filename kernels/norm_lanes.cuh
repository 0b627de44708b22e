// Rows of some hundred elements that start anywhere: some lanes of a warp share one, in registers, by the buffer's own 16 bytes, and have several one after another that start
// alike, with weights and biases in registers for all of them. All tensors start alike, weights and biases on 16 bytes. What of a row's first and last 16 bytes is of other rows is
// taken for one of the row's own elements, whose part of the sums is taken off again.
#ifndef SOL_KERNELS_NORM_LANES_CUH
#define SOL_KERNELS_NORM_LANES_CUH

#include "funnel.cuh"
#include "norm_row.cuh"

// What a lane has of each of its rows: c.chunks chunks, `lanes` apart, the first perhaps with the row's first element, the last perhaps with its last, or not there.
typedef struct LanesPart {
  int lanes, lane, lead; // lead: elements of other rows in the row's first chunk
  int first, end;        // elements of the lane's first chunk before the row; of its last that are of the row
  bool there;            // the last chunk
} LanesPart;

INLINE int lanes_per(NormKernel c) { return 16 / norm_bytes(c); }

INLINE LanesPart lanes_part(NormKernel c, const NormParams *p, const char *row) {
  const int per = lanes_per(c);
  LanesPart a;
  a.lanes = 1 << p->row_bits, a.lane = threadIdx.x & (a.lanes - 1);
  a.lead = (int)((uintptr_t)row & 15) / norm_bytes(c);
  int last = (a.lead + (int)p->n - 1) / per, far = a.lane + (c.chunks - 1) * a.lanes;
  a.first = a.lane ? 0 : a.lead, a.there = far <= last;
  a.end = far < last ? per : far > last ? 0 : a.lead + (int)p->n - per * last;
  return a;
}

// 16 bytes at `at`, of which what is not of the tensor is not read.
INLINE uint4 lanes_load(NormKernel c, const char *at, const char *begin, const char *end, bool wanted) {
  if (at >= begin && at + 16 <= end) return load_if(at, wanted);
  return wanted ? load_singly(at, begin, end, norm_bytes(c)) : make_uint4(0, 0, 0, 0);
}

// A row's chunks.
INLINE void lanes_row(NormKernel c, const NormParams *p, const LanesPart &a, const void *tensor, int64_t stride, const char *row, bool wanted, Vec *v) {
  const char *begin = (const char *)tensor, *end = begin + ((int64_t)p->m - 1) * stride + p->n * norm_bytes(c), *at = row - norm_bytes(c) * a.lead + 16 * a.lane;
#pragma unroll
  for (int k = 0; k < c.chunks; k++, at += 16 * a.lanes) {
    bool there = wanted && (k + 1 < c.chunks || a.there);
    v[k].v = k == 0 || k + 1 == c.chunks ? lanes_load(c, at, begin, end, there) : load_if(at, there);
  }
}

INLINE void lanes_vector(NormKernel c, const NormParams *p, const LanesPart &a, const void *vector, Vec *v) {
  const char *begin = (const char *)vector, *end = begin + p->n * norm_bytes(c);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    const char *at = begin + (lanes_per(c) * (a.lane + k * a.lanes) - a.lead) * norm_bytes(c), *from = at - ((uintptr_t)at & 15);
    bool wanted = k + 1 < c.chunks || a.there;
    uint4 lo = lanes_load(c, from, begin, end, wanted), hi = lanes_load(c, from + 16, begin, end, wanted && at != from);
    v[k].v = funnel(lo, hi, (uint32_t)(uintptr_t)at & 15, norm_bytes(c));
    keep_packed(&v[k]);
  }
}

// Bits of a chunk's elements from `first` on and before `end`.
INLINE void lanes_masks(NormKernel c, int first, int end, uint32_t *mask) {
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (norm_bytes(c) == 4) mask[i] = i >= first && i < end ? ~0u : 0;
    else mask[i] = (2 * i >= first && 2 * i < end ? 0xffffu : 0) | (2 * i + 1 >= first && 2 * i + 1 < end ? 0xffff0000u : 0);
  }
}
INLINE void lanes_mask(Vec *v, const uint32_t *mask, uint32_t by) {
#pragma unroll
  for (int i = 0; i < 4; i++) v->u[i] = (v->u[i] & mask[i]) | (by & ~mask[i]);
}

// Over groups of neighbouring lanes.
INLINE float lanes_all(float v, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

// One of the chunk's elements, as a word of them: its first, or its last.
INLINE uint32_t lanes_first(NormKernel c, Vec v) { return norm_bytes(c) == 4 ? v.u[0] : __byte_perm(v.u[0], 0, 0x1010); }
INLINE uint32_t lanes_last(NormKernel c, Vec v) { return norm_bytes(c) == 4 ? v.u[3] : __byte_perm(v.u[3], 0, 0x3232); }
INLINE float lanes_float(NormKernel c, uint32_t u) { return norm_bytes(c) == 4 ? __uint_as_float(u) : widen2(u, c.kind).x; }

// Mean and 1 / deviation of a row. first, last: masks of the lane's first and last chunk, of which there are at least two.
INLINE float2 lanes_stats(NormKernel c, const NormParams *p, const LanesPart &a, Vec *v, const uint32_t *first, const uint32_t *last) {
  const int K = c.chunks, per = lanes_per(c);
  const bool layer = c.op == NORM_LAYER;
  uint32_t head = layer ? lanes_last(c, v[0]) : 0, tail = !layer ? 0 : a.there ? lanes_first(c, v[K - 1]) : head;
  lanes_mask(&v[0], first, head);
  lanes_mask(&v[K - 1], last, tail);
  float2 sum = make_float2(0, 0), squares = sum;
  if (!layer) {
#pragma unroll
    for (int k = 0; k < K; k++) sum = norm_sum(c, v[k], sum);
    return make_float2(0, rsqrtf(fmaf(lanes_all(sum.x + sum.y, a.lanes), p->over_n, p->eps)));
  }
  float middle = lanes_float(c, head), apart = lanes_float(c, tail) - middle; // `head` less `middle` is nothing
#pragma unroll
  for (int k = 0; k < K; k++) {
    float f[8];
    widen(&v[k], c.kind, norm_bytes(c), f);
#pragma unroll
    for (int j = 0; j < per; j += 2) {
      float d = f[j] - middle, e = f[j + 1] - middle;
      sum.x += d, sum.y += e;
      squares.x = fmaf(d, d, squares.x), squares.y = fmaf(e, e, squares.y);
    }
  }
  float other = (float)(per - a.end), n = (float)(per * K - a.first) - other;
  float s = fmaf(-other, apart, sum.x + sum.y), q = fmaf(-other * apart, apart, squares.x + squares.y);
  float mine = __fdividef(s, n), mean = lanes_all(fmaf(middle, n, s), a.lanes) * p->over_n, off = middle + mine - mean;
  float variance = lanes_all(fmaf(n * off, off, fmaf(-s, mine, q)), a.lanes) * p->over_n;
  return make_float2(mean, rsqrtf(variance + p->eps));
}

// Writes elements `first` to `end` of a chunk, the ends of a row, by pieces that are aligned. Either first is 0, or end is all of them.
INLINE void lanes_store_part(NormKernel c, char *at, Vec v, int first, int end) {
  const int half = norm_bytes(c) == 2, per = lanes_per(c); // bits of `first` and `end`: whether there is a piece of 2, 4, 8 bytes
  if (first) {
    int words = (first + half) >> half; // the first whole one
    if (half && first & 1) *(uint16_t *)(at + 2 * first) = (uint16_t)((words > 3 ? v.u[3] : words > 2 ? v.u[2] : words > 1 ? v.u[1] : v.u[0]) >> 16);
    if (words & 1) *(uint32_t *)(at + 4 * words) = words > 2 ? v.u[3] : v.u[1];
    if (words < 3) *(uint2 *)(at + 8) = make_uint2(v.u[2], v.u[3]);
  } else {
    int words = end >> half;
    if (words & 2) *(uint2 *)at = make_uint2(v.u[0], v.u[1]);
    if (words & 1) *(uint32_t *)(at + 4 * (words & 2)) = words & 2 ? v.u[2] : v.u[0];
    if (half && end & 1) *(uint16_t *)(at + 4 * words) = (uint16_t)(words > 2 ? v.u[3] : words > 1 ? v.u[2] : words ? v.u[1] : v.u[0]);
  }
}

INLINE void lanes_store(NormKernel c, const LanesPart &a, char *at, int k, Vec v) {
  const int per = lanes_per(c);
  int first = k ? 0 : a.first, end = k + 1 < c.chunks ? per : a.end;
  if (first == 0 && end == per) *(uint4 *)at = v.v;
  else if (end) lanes_store_part(c, at, v, first, end);
}

INLINE void lanes_put(NormKernel c, const NormParams *p, const LanesPart &a, const Vec *v, Vec *w, Vec *b, float2 stats, char *row) {
  char *at = row - norm_bytes(c) * a.lead + 16 * a.lane;
#pragma unroll
  for (int k = 0; k < c.chunks; k++, at += 16 * a.lanes) {
    keep_packed(&w[k]), keep_packed(&b[k]); // not widened once for all rows: there are no registers for that
    lanes_store(c, a, at, k, norm_output(c, p, v[k], w[k], b[k], stats.x, stats.y));
  }
}

INLINE void norm_laned(NormKernel c, const NormParams *p) {
  const uint64_t group = (block_index() * blockDim.x + threadIdx.x) >> p->row_bits;
  begin_kernel();
  uint64_t row = group / NORM_LANED_APART * NORM_LANED_APART * p->rows + group % NORM_LANED_APART;
  NormRow r = norm_row_of(c, p, row, (int64_t)row);
  LanesPart a = lanes_part(c, p, r.x);
  Vec w[5], b[5], v[5], next[5], more[5];
  lanes_row(c, p, a, p->x, p->x_stride, r.x, row < p->m, v);
  if (c.op == NORM_ADD) lanes_row(c, p, a, p->residual, p->residual_stride, r.residual, row < p->m, more);
  lanes_vector(c, p, a, p->weight, w);
  if (c.op == NORM_LAYER) lanes_vector(c, p, a, p->bias, b);
  if (a.lane == 0) // those that the loop does not
    for (int64_t at = 2 * NORM_LANED_APART; at < p->ahead; at += NORM_LANED_APART) norm_prefetch(c, p, row + at - p->ahead, 0, (int)p->n * norm_bytes(c), true);
  uint32_t first[4], last[4];
  lanes_masks(c, a.first, lanes_per(c), first);
  lanes_masks(c, 0, a.end, last);
#pragma unroll 1
  for (int i = 0; i < p->rows; i++, row += NORM_LANED_APART) {
    if (!__any_sync(~0u, row < p->m)) return;
    if (a.lane == 0 && i * NORM_LANED_APART + p->ahead < p->rows * NORM_LANED_APART) norm_prefetch(c, p, row, 0, (int)p->n * norm_bytes(c), true);
    bool there = row < p->m, other = i + 1 < p->rows && row + NORM_LANED_APART < p->m;
    if (c.op == NORM_ADD) {
#pragma unroll
      for (int k = 0; k < c.chunks; k++) {
        v[k] = norm_add(c, v[k], more[k]);
        if (there) lanes_store(c, a, r.second - norm_bytes(c) * a.lead + 16 * (a.lane + k * a.lanes), k, v[k]);
      }
      r.residual += NORM_LANED_APART * p->residual_stride, r.second += NORM_LANED_APART * p->second_stride;
      lanes_row(c, p, a, p->residual, p->residual_stride, r.residual, other, more);
    }
    r.x += NORM_LANED_APART * p->x_stride;
    lanes_row(c, p, a, p->x, p->x_stride, r.x, other, next);
    float2 stats = lanes_stats(c, p, a, v, first, last);
    if (there) lanes_put(c, p, a, v, w, b, stats, r.y);
    r.y += NORM_LANED_APART * p->y_stride;
#pragma unroll
    for (int k = 0; k < c.chunks; k++) v[k] = next[k];
  }
}

#endif
