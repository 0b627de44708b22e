// topk of short rows: all elements of a row are sorted in registers, 16 a lane, by as few lanes as hold it, several rows to a warp.
//
// What is sorted are words: the upper bits of an element's order, then the complement of its column. For elements of 16 bits that is all
// there is to compare. Of fp32 the lower bits are missing: neighbours that are alike so far are put in order by the elements
// themselves, which is hardly ever needed.
#ifndef SOL_KERNELS_SELECT_SORTED_CUH
#define SOL_KERNELS_SELECT_SORTED_CUH

#include "draw.cuh"

// The order of a value as a whole number: the addition makes -0 +0, and all NaN one that is above all.
INLINE uint32_t order_of(float x) {
  uint32_t u = __float_as_uint(__fadd_rn(x, 0.0f));
  return u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u);
}

template <int kind> INLINE float element_at(const char *row, int column) {
  return value_of_bits<kind>(kind == KIND_FP32 ? ((const uint32_t *)row)[column] : ((const uint16_t *)row)[column]);
}

INLINE void put_larger_first(uint32_t &a, uint32_t &b) {
  uint32_t larger = max(a, b);
  b = min(a, b), a = larger;
}

// A lane's own words, the largest first: Batcher's network, which merges runs of 1, 2, 4 ...
template <int run, int apart> INLINE void sort_step(uint32_t (&v)[SORTED_EACH]) {
#pragma unroll
  for (int i = 0; i < SORTED_EACH - apart; i++)
    if (i >= apart % run && (i - apart % run) / apart % 2 == 0 && i / (2 * run) == (i + apart) / (2 * run)) put_larger_first(v[i], v[i + apart]);
  if constexpr (apart > 1) sort_step<run, apart / 2>(v);
  else if constexpr (2 * run < SORTED_EACH) sort_step<2 * run, 2 * run>(v);
}

// Two sorted runs of `half` lanes each become one: what is as far from the beginning of the one as from the end of the other is compared, and then
// what is half as far apart, and so on.
INLINE void merge_lanes(uint32_t (&v)[SORTED_EACH], int half) {
  uint32_t other[SORTED_EACH];
  bool first = !(threadIdx.x & half);
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) other[r] = __shfl_xor_sync(~0u, v[SORTED_EACH - 1 - r], 2 * half - 1);
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) v[r] = (v[r] > other[r]) == first ? v[r] : other[r];
#pragma unroll 1
  for (int o = half / 2; o; o /= 2) {
    first = !(threadIdx.x & o);
#pragma unroll
    for (int r = 0; r < SORTED_EACH; r++) other[r] = __shfl_xor_sync(~0u, v[r], o);
#pragma unroll
    for (int r = 0; r < SORTED_EACH; r++) v[r] = (v[r] > other[r]) == first ? v[r] : other[r];
  }
#pragma unroll
  for (int o = SORTED_EACH / 2; o; o /= 2)
#pragma unroll
    for (int r = 0; r < SORTED_EACH; r++)
      if (!(r & o)) put_larger_first(v[r], v[r + o]);
}

// Words of a row whose upper bits are alike are in the order of their columns. Where the elements differ this puts them in order, neighbour by
// neighbour. A row has 2^slot_bits words.
INLINE void sort_alike(uint32_t *list, int slot_bits, const char *first_row, int64_t stride) {
  const uint32_t last = (1u << slot_bits) - 1;
  bool swapped;
  do {
    swapped = false;
#pragma unroll 1
    for (int odd = 0; odd < 2; odd++) {
#pragma unroll 1
      for (uint32_t i = threadIdx.x % 32 * 2 + odd; i < SORTED_WORDS - 1; i += 64) {
        uint32_t a = list[i], b = list[i + 1];
        if ((i & last) == last || (a ^ b) > last || b <= last) continue;
        const float *row = (const float *)(first_row + (i >> slot_bits) * stride);
        if (order_of(row[~a & last]) >= order_of(row[~b & last])) continue;
        list[i] = b, list[i + 1] = a, swapped = true;
      }
      __syncwarp();
    }
  } while (__any_sync(~0u, swapped));
}

// The words of this lane, in any order: its columns are `lanes` apart. 0 stands for no element, and is below all others.
template <int kind> INLINE void load_words(uint32_t (&v)[SORTED_EACH], const char *row, int n, int lane, int lanes) {
  const uint32_t slots = SORTED_EACH * lanes;
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) {
    int column = r * lanes + lane;
    v[r] = 0;
    if (column < n) v[r] = (order_of(element_at<kind>(row, column)) & -slots) | (slots - 1 - column);
  }
}

// Whether words of the row may be alike but for the column.
INLINE bool any_alike(const uint32_t (&v)[SORTED_EACH], int lane, int lanes) {
  const uint32_t slots = SORTED_EACH * lanes; // as large as 0 is made, so that two of them are not alike
  uint32_t next = __shfl_down_sync(~0u, v[0], 1), least = lane == lanes - 1 ? ~0u : v[SORTED_EACH - 1] - max(next, slots);
#pragma unroll
  for (int r = 1; r < SORTED_EACH; r++) least = min(least, v[r - 1] - max(v[r], slots));
  return __any_sync(~0u, least < slots);
}

template <int in> INLINE void topk_sorted(const TopkParams &p, uint32_t *list) {
  const int lanes = 1 << p.lane_bits, lane = threadIdx.x & (lanes - 1), slots = SORTED_EACH * lanes, id_bits = p.wide_ids ? 3 : 2;
  uint64_t warp = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (SORTED_THREADS / 32) + threadIdx.x / 32, first = warp * 32 >> p.lane_bits;
  if (first >= p.m) return;
  int rows = (int)min((uint64_t)(32 >> p.lane_bits), p.m - first), mine = threadIdx.x % 32 >> p.lane_bits;
  const char *first_row = (const char *)p.x + (int64_t)first * p.x_stride, *row = first_row + mine * p.x_stride;
  int n = mine < rows ? (int)p.n : 0;
  uint32_t v[SORTED_EACH];
  if (in == 4) load_words<KIND_FP32>(v, row, n, lane, lanes);
  else if (p.x_kind == KIND_FP16) load_words<KIND_FP16>(v, row, n, lane, lanes);
  else load_words<KIND_BF16>(v, row, n, lane, lanes);
  sort_step<1, 1>(v);
#pragma unroll 1
  for (int half = 1; half < lanes; half *= 2) merge_lanes(v, half);
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r += 4)
    ((uint4 *)list)[(threadIdx.x % 32 * SORTED_EACH + r) / 4] = make_uint4(v[r], v[r + 1], v[r + 2], v[r + 3]);
  __syncwarp();
  if (in == 4 && any_alike(v, lane, lanes)) sort_alike(list, p.lane_bits + SORTED_BITS, first_row, p.x_stride);
  const uint32_t k = (uint32_t)p.k;
  char *values = (char *)p.values + (int64_t)first * p.values_stride * in, *ids = (char *)p.ids + ((int64_t)first * p.ids_stride << id_bits);
  bool dense = p.values_stride == p.k && p.ids_stride == p.k;
#pragma unroll 2
  for (uint32_t i = threadIdx.x % 32; i < rows * k; i += 32) {
    uint32_t j = i * p.of_k >> SORTED_SHIFT, column = ~list[i + j * (slots - k)] & (slots - 1);
    const char *from = first_row + j * p.x_stride + column * in;
    int64_t to = i, id = i;
    if (!dense) to += j * (p.values_stride - p.k), id += j * (p.ids_stride - p.k);
    if (in == 4) ((uint32_t *)values)[to] = *(const uint32_t *)from;
    else ((uint16_t *)values)[to] = *(const uint16_t *)from;
    if (p.wide_ids) ((int64_t *)ids)[id] = column;
    else ((int32_t *)ids)[id] = (int32_t)column;
  }
}

#define SORTED_KERNEL(in)                                                                                    \
  KERNEL __launch_bounds__(SORTED_THREADS, 7) sol_topk_sorted_##in(const __grid_constant__ TopkParams p) {   \
    __shared__ __align__(16) uint32_t lists[SORTED_THREADS / 32][SORTED_WORDS];                              \
    begin_kernel();                                                                                          \
    topk_sorted<in>(p, lists[threadIdx.x / 32]);                                                             \
  }
SORTED_KERNEL(2)
SORTED_KERNEL(4)

#endif
