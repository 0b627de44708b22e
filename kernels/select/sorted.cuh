// topk of short rows, in registers: 16 words a lane, in as few lanes as hold more than k, several rows to a warp. So many elements at a time
// are sorted and merged with the largest of those before them.
//
// What is sorted are words: the upper bits of an element's order, then the complement of its column. For elements of 16 bits that is all
// there is to compare. Of fp32 the lower bits are missing: neighbours that are alike so far are put in order by the elements
// themselves, which is hardly ever needed. Where the last word that was kept is like the k-th (more than a few elements are alike), one that was
// not kept may be larger: such rows are done again, slowly.
#ifndef SOL_KERNELS_SELECT_SORTED_CUH
#define SOL_KERNELS_SELECT_SORTED_CUH

#include "list.cuh"

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

// Words of 2 * half lanes that first rise and then fall, or the other way round, are sorted: what is half as many words apart is compared, then a quarter, and so on.
INLINE void merge_bitonic(uint32_t (&v)[SORTED_EACH], int half) {
#pragma unroll 1
  for (int o = half; o; o /= 2) {
    bool first = !(threadIdx.x & o);
#pragma unroll
    for (int r = 0; r < SORTED_EACH; r++) {
      uint32_t other = __shfl_xor_sync(~0u, v[r], o);
      v[r] = (v[r] > other) == first ? v[r] : other;
    }
  }
#pragma unroll
  for (int o = SORTED_EACH / 2; o; o /= 2)
#pragma unroll
    for (int r = 0; r < SORTED_EACH; r++)
      if (!(r & o)) put_larger_first(v[r], v[r + o]);
}

// Two sorted runs of `half` lanes each become one: first what is as far from the beginning of the one as from the end of the other is compared.
INLINE void merge_lanes(uint32_t (&v)[SORTED_EACH], int half) {
  uint32_t other[SORTED_EACH];
  bool first = !(threadIdx.x & half);
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) other[r] = __shfl_xor_sync(~0u, v[SORTED_EACH - 1 - r], 2 * half - 1);
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) v[r] = (v[r] > other[r]) == first ? v[r] : other[r];
  merge_bitonic(v, half / 2);
}

// Words whose upper bits are alike are in the order of their columns. Where the elements differ this puts them in order,
// neighbour by neighbour. A row has 2^slot_bits words.
INLINE void sort_alike(uint32_t *list, int rows, int slot_bits, uint32_t columns, const char *first_row, int64_t stride) {
  const uint32_t last = (1u << slot_bits) - 1;
  bool swapped;
  do {
    swapped = false;
#pragma unroll 1
    for (int odd = 0; odd < 2; odd++) {
#pragma unroll 1
      for (uint32_t i = threadIdx.x % 32 * 2 + odd; i < (uint32_t)rows << slot_bits; i += 64) {
        if ((i & last) == last) continue;
        uint32_t a = list[i], b = list[i + 1];
        if ((a ^ b) > columns || b == 0) continue;
        const float *row = (const float *)(first_row + (i >> slot_bits) * stride);
        if (order_of(row[~a & columns]) >= order_of(row[~b & columns])) continue;
        list[i] = b, list[i + 1] = a, swapped = true;
      }
      __syncwarp();
    }
  } while (__any_sync(~0u, swapped));
}

// The k largest of a row of fp32 one after another, by a warp: each is the largest of those that come after the one before it.
INLINE void list_slowly(uint32_t *list, uint32_t slots, const float *row, uint32_t n, uint32_t k, uint32_t columns) {
  uint64_t before = 0;
  for (uint32_t i = threadIdx.x % 32; i < slots; i += 32) list[i] = 0;
  __syncwarp();
#pragma unroll 1
  for (uint32_t i = 0; i < k; i++) {
    uint64_t most = 0;
    for (uint32_t c = threadIdx.x % 32; c < n; c += 32) {
      uint64_t it = (uint64_t)order_of(row[c]) << 32 | ~c;
      if ((i == 0 || it < before) && it > most) most = it;
    }
    uint32_t upper = lanes_most((uint32_t)(most >> 32));
    before = (uint64_t)upper << 32 | lanes_most(most >> 32 == upper ? (uint32_t)most : 0);
    if (threadIdx.x % 32 == 0) list[i] = (upper & ~columns) | ((uint32_t)before & columns);
  }
  __syncwarp();
}

// Rows of the warp that may lack an element are done again; otherwise only what is alike is put in order. v: this lane's words of the list.
INLINE void mend_list(const TopkParams &p, uint32_t *list, const uint32_t (&v)[SORTED_EACH], const char *first_row, int rows) {
  const int slot_bits = p.lane_bits + SORTED_BITS, lanes = 1 << p.lane_bits;
  const uint32_t columns = (1u << p.column_bits) - 1, slots = 1u << slot_bits;
  uint32_t next = __shfl_down_sync(~0u, v[0], 1), least = (threadIdx.x & (lanes - 1)) == lanes - 1 ? ~0u : v[SORTED_EACH - 1] - max(next, columns);
#pragma unroll
  for (int r = 1; r < SORTED_EACH; r++) least = min(least, v[r - 1] - max(v[r], columns)); // where there is no element nothing is alike
  if (!__any_sync(~0u, least <= columns)) return;
#pragma unroll 1
  for (int j = 0; j < rows; j++) {
    uint32_t last = list[j * slots + slots - 1];
    if (last != 0 && (list[j * slots + p.k - 1] ^ last) <= columns) {
      __syncwarp();
      list_slowly(list + j * slots, slots, (const float *)(first_row + j * p.x_stride), (uint32_t)p.n, (uint32_t)p.k, columns);
    }
  }
  sort_alike(list, rows, slot_bits, columns, first_row, p.x_stride);
}

// The words of this lane's elements, from a column on. 0 stands for no element, and is below all others.
template <int kind, bool whole> INLINE void load_words(uint32_t (&v)[SORTED_EACH], const char *row, int from, int n, uint32_t columns) {
  const char *at = row + (int64_t)from * (kind == KIND_FP32 ? 4 : 2);
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) v[r] = whole || from + r < n ? __float_as_uint(element_at<kind>(at, r)) : 0;
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) {
    uint32_t word = (order_of(__uint_as_float(v[r])) & ~columns) + (columns - from - r);
    v[r] = whole || from + r < n ? word : 0;
  }
}

// The larger half of two sorted runs of words, sorted.
INLINE void keep_larger(uint32_t (&kept)[SORTED_EACH], const uint32_t (&v)[SORTED_EACH], int lanes) {
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r++) kept[r] = max(kept[r], __shfl_xor_sync(~0u, v[SORTED_EACH - 1 - r], lanes - 1));
  merge_bitonic(kept, lanes / 2);
}

template <int kind> struct Kind {
  enum { value = kind };
};

template <int in> INLINE void topk_sorted(const TopkParams &p, uint32_t *list) {
  const int lanes = 1 << p.lane_bits, lane = threadIdx.x & (lanes - 1), slots = SORTED_EACH * lanes, id_bits = p.wide_ids ? 3 : 2;
  uint64_t warp = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (SORTED_THREADS / 32) + threadIdx.x / 32, first = warp * 32 >> p.lane_bits;
  if (first >= p.m) return;
  int rows = (int)min((uint64_t)(32 >> p.lane_bits), p.m - first), mine = min((int)(threadIdx.x % 32 >> p.lane_bits), rows - 1); // lanes without a row have the last one
  const char *first_row = (const char *)p.x + (int64_t)first * p.x_stride, *row = first_row + mine * p.x_stride;
  const int n = (int)p.n;
  const uint32_t columns = (1u << p.column_bits) - 1;
  uint32_t v[SORTED_EACH], kept[SORTED_EACH];
#pragma unroll 1
  for (int begin = 0; begin < n; begin += slots) {
    const int from = begin + lane * SORTED_EACH;
    auto load = [&](auto kind) {
      if (begin + slots <= n) load_words<decltype(kind)::value, true>(v, row, from, n, columns);
      else load_words<decltype(kind)::value, false>(v, row, from, n, columns);
    };
    if (in == 4) load(Kind<KIND_FP32>());
    else if (p.x_kind == KIND_FP16) load(Kind<KIND_FP16>());
    else load(Kind<KIND_BF16>());
    sort_step<1, 1>(v);
#pragma unroll 1
    for (int half = 1; half < lanes; half *= 2) merge_lanes(v, half);
    if (begin == 0)
#pragma unroll
      for (int r = 0; r < SORTED_EACH; r++) kept[r] = v[r];
    else keep_larger(kept, v, lanes);
  }
#pragma unroll
  for (int r = 0; r < SORTED_EACH; r += 4)
    ((uint4 *)list)[(threadIdx.x % 32 * SORTED_EACH + r) / 4] = make_uint4(kept[r], kept[r + 1], kept[r + 2], kept[r + 3]);
  __syncwarp();
  if (in == 4) mend_list(p, list, kept, first_row, rows);
  const uint32_t k = (uint32_t)p.k;
  char *values = (char *)p.values + (int64_t)first * p.values_stride * in, *ids = (char *)p.ids + ((int64_t)first * p.ids_stride << id_bits);
  bool dense = p.values_stride == p.k && p.ids_stride == p.k;
#pragma unroll 2
  for (uint32_t i = threadIdx.x % 32; i < rows * k; i += 32) {
    uint32_t j = i * p.of_k >> SORTED_SHIFT, column = ~list[i + j * (slots - k)] & columns;
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
  KERNEL __launch_bounds__(SORTED_THREADS, 8) sol_topk_sorted_##in(const __grid_constant__ TopkParams p) {   \
    __shared__ __align__(16) uint32_t lists[SORTED_THREADS / 32][SORTED_WORDS];                              \
    begin_kernel();                                                                                          \
    topk_sorted<in>(p, lists[threadIdx.x / 32]);                                                             \
  }
SORTED_KERNEL(2)
SORTED_KERNEL(4)

#endif
