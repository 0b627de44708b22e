// Short rows from memory to registers and back, without shared memory: rows of a few bytes (packed), and others where there are few of them, for what a copy into shared memory and
// back takes longer than their bytes (direct). Every row is added up in the order of the kernels that have such rows where there are many: softmax_beside.cuh, fp32 narrow.cuh.
#ifndef SOL_KERNELS_SOFTMAX_DIRECT_CUH
#define SOL_KERNELS_SOFTMAX_DIRECT_CUH

#include "softmax/softmax_beside.cuh"

// exp(f - mine) of `count` elements.
INLINE void direct_exp(const SoftmaxParams *p, int size, int kind, int count, float mine, const float *f, float *kept) {
  bool scale = size == 2 && beside_may_scale(p, mine, kind);
#pragma unroll
  for (int j = 0; j < count; j++) kept[j] = scale ? ex2(fmaf(f[j], LOG2E, -(mine * LOG2E))) : beside_exp(f[j], mine);
}

// sum: of the row.
INLINE void direct_results(const SoftmaxParams *p, int count, float mine, float sum, float *f, const float *kept) {
  if (asks_log(p)) {
    float plus = -logf(sum);
#pragma unroll
    for (int j = 0; j < count; j++) f[j] = (f[j] - mine) + plus;
  } else {
    float times = __fdividef(1, sum);
#pragma unroll
    for (int j = 0; j < count; j++) f[j] = kept[j] * times;
  }
}

// ---- Few rows: as many lanes as a row has words, a power of two, share it; `each` is 2 where it has more than a warp has lanes

// What of a word is the row's, as beside_put; the rest is -inf.
template <int size> INLINE uint32_t direct_load(const char *at, bool low, bool high, uint32_t lowest) {
  uint32_t v = lowest;
  if (size == 4) {
    if (low) v = *(const uint32_t *)at;
  } else {
    if (low) v = *(const uint16_t *)at | (lowest & 0xffff0000u);
    if (high) v = (v & 0xffffu) | (uint32_t)*(const uint16_t *)(at + 2) << 16;
  }
  return v;
}

template <int size, int each> INLINE void softmax_direct_of(const SoftmaxParams *p, int kind) {
  enum { PER = 4 / size, COUNT = each * PER };
  int lanes = each == 2 ? 32 : 1 << p->lane_bits, lane = (int)threadIdx.x & (lanes - 1);
  uint64_t row = thread_index() >> p->lane_bits;
  const char *x = (const char *)p->x + (int64_t)row * p->x_stride;
  char *y = (char *)p->y + (int64_t)row * p->y_stride;
  int odd = size == 2 ? (int)((uintptr_t)x >> 1 & 1) : 0;   // elements of another row that the first word has
  int left = row < p->m ? (int)p->n + odd - PER * lane : 0; // of the row, and of the other, from the lane's first word on
  bool low[each], high[each];
  x += 4 * lane - size * odd, y += 4 * lane - size * odd;
#pragma unroll
  for (int k = 0; k < each; k++) {
    low[k] = left > PER * 32 * k && (k || lane || !odd), high[k] = left > PER * 32 * k + 1;
    if (low[k] && may_hint() && (lane == 0 || (uintptr_t)(x + 128 * k) % 128 < 4)) prefetch_l2(x + 128 * k);
  }
  let_successor_start();
  wait_for_predecessor();
  uint32_t w[each];
  float f[COUNT], kept[COUNT];
#pragma unroll
  for (int k = 0; k < each; k++) w[k] = direct_load<size>(x + 128 * k, low[k], high[k], span_lowest(kind));
  beside_widen<size, each>(w, kind, f);
  float top = f[0];
#pragma unroll
  for (int j = 1; j < COUNT; j++) top = fmaxf(top, f[j]);
  for (int o = lanes / 2; o; o /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
  float mine = start_of(top);
  direct_exp(p, size, kind, COUNT, mine, f, kept);
  float sum = beside_sum(size, each, kept);
  for (int o = lanes / 2; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o);
  direct_results(p, COUNT, mine, sum, f, kept);
  beside_narrow<size, each>(w, kind, f);
#pragma unroll
  for (int k = 0; k < each; k++) beside_put((uint32_t *)(y + 128 * k), w[k], low[k], size == 4 ? low[k] : high[k]);
}

// ---- Rows of which 16 bytes hold several, dense and on 16 bytes: a thread has a chunk of them

template <int size, int n> INLINE void softmax_packed_of(const SoftmaxParams *p, int kind) {
  enum { PER = 16 / size };
  const char *begin = (const char *)p->x, *end = begin + (int64_t)p->m * (n * size), *x = begin + 16 * thread_index();
  char *y = (char *)p->y + 16 * thread_index();
  if (may_hint() && threadIdx.x % 8 == 0 && x < end) prefetch_l2(x);
  let_successor_start();
  wait_for_predecessor();
  if (x >= end) return;
  Vec v;
  float f[8];
  int bytes = (int)min((int64_t)16, (int64_t)(end - x));
  v.v = bytes == 16 ? *(const uint4 *)x : load_singly(x, begin, end, size);
  widen(&v, kind, size, f);
#pragma unroll
  for (int j = 0; j < PER; j += n) {
    if (n == 1) { // 1, or its logarithm; NaN of what is infinite
      f[j] = (f[j] - f[j]) + (asks_log(p) ? 0 : 1);
      continue;
    }
    float top = f[j], kept[8];
#pragma unroll
    for (int i = 1; i < n; i++) top = fmaxf(top, f[j + i]);
    float mine = start_of(top);
    direct_exp(p, size, kind, n, mine, f + j, kept);
    direct_results(p, n, mine, beside_sum(size, n * size / 4, kept), f + j, kept);
  }
  from_floats(f, PER, kind, v.u);
  if (bytes == 16) *(uint4 *)y = v.v;
  else store_part(y, 0, bytes, 4, size, v.u);
}

// ---- Rows of one chunk of 16 bytes or two, dense and on 16 bytes: threads next to each other have chunks next to each other, so all of a sector is loaded and stored at once; `each` of
// them, as far apart as a block has threads. y may be of another type

template <int size, int each> INLINE void softmax_even_of(const SoftmaxParams *p, int kind) {
  enum { PER = 16 / size };
  const uint64_t chunks = p->m << p->lane_bits, block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  const uint64_t first = block * (each * SOFTMAX_DIRECT_THREADS) + threadIdx.x;
  const uint4 *x = (const uint4 *)p->x;
  const Target y = {(char *)p->y, p->y_kind, 1};
  const uint32_t lowest = span_lowest(kind);
  Vec v[each];
  if (may_hint() && threadIdx.x % 8 == 0 && first < chunks) prefetch_l2(x + first);
  let_successor_start();
  wait_for_predecessor();
#pragma unroll
  for (int k = 0; k < each; k++) {
    v[k].v = make_uint4(lowest, lowest, lowest, lowest);
    if (first + k * SOFTMAX_DIRECT_THREADS < chunks) v[k].v = x[first + k * SOFTMAX_DIRECT_THREADS];
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    const uint64_t at = first + k * SOFTMAX_DIRECT_THREADS;
    float f[8], kept[8];
    widen(&v[k], kind, size, f);
    float top = f[0];
#pragma unroll
    for (int j = 1; j < PER; j++) top = fmaxf(top, f[j]);
    if (p->lane_bits) top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
    const float mine = start_of(top);
    direct_exp(p, size, kind, PER, mine, f, kept);
    float sum = beside_sum(size, 4, kept);
    if (p->lane_bits) sum += __shfl_xor_sync(~0u, sum, 1);
    direct_results(p, PER, mine, sum, f, kept);
    if (at < chunks) store_chunk(y, (int64_t)at * PER, size, f);
  }
}

// each: words of a lane; 0: packed; EVEN and its number of chunks.
template <int size> INLINE void softmax_direct(const SoftmaxParams *p, int kind) {
  if (p->beside.each == SOFTMAX_EVEN + 4) softmax_even_of<size, 4>(p, kind);
  else if (p->beside.each == SOFTMAX_EVEN + 1) softmax_even_of<size, 1>(p, kind);
  else
  if (p->beside.each == 2) softmax_direct_of<size, 2>(p, kind);
  else if (p->beside.each == 1) softmax_direct_of<size, 1>(p, kind);
  else if (p->n == 1) softmax_packed_of<size, 1>(p, kind);
  else if (p->n == 2) softmax_packed_of<size, 2>(p, kind);
  else if (size == 2) softmax_packed_of<size, 4>(p, kind);
}

#endif
