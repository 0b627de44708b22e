// topk of many elements of a row, by a block: the row's elements go to bins of equal width by their value, so many of them that a bin has
// few elements, and all that is left to do is to sort a few neighbours.
//
// The row is read three times, twice from L1: for the range of the bins, for how many elements a bin has, and to put those down to the
// k-th one's bin into a list, bin by bin. Then each lane sorts a window of the list in registers, and after that another one that begins
// half a window later: a bin of no more than half a window is sorted by one of the two. Where one has more (values that are
// very unlike random ones), or values are not finite, the k-th element is searched bit by bit and the list sorted by comparisons.
#ifndef SOL_KERNELS_SELECT_BINNED_CUH
#define SOL_KERNELS_SELECT_BINNED_CUH

#include "sorted.cuh"

// Entries: the order of an element, then the complement of its column. Those of 16-bit elements are the order of a float whose upper bits are the element
// and whose lower bits, which it does not need, are the column: where many are equal they get different bins by it. BINNED_ALIKE: columns from which on bf16, with its
// few values, needs that.
template <int kind> struct Binned {
  typedef uint32_t Entry;
  enum { size = 2, per = 8, bins = 2048, window = 32, low_bits = kind == KIND_FP16 ? 13 : 16 };
};
template <> struct Binned<KIND_FP32> {
  typedef uint64_t Entry;
  enum { size = 4, per = 4, bins = 4096, window = 16, low_bits = 0 };
};

// Windows are 16 bytes apart in the list, so that lanes that read theirs do not meet in a bank.
template <class Entry> INLINE uint32_t list_place(uint32_t i) {
  const uint32_t window = 128 / sizeof(Entry), gap = 16 / sizeof(Entry);
  return i + i / window * gap;
}
enum { BINNED_ALIKE = 2048, BINNED_WARPS = BINNED_THREADS / 32, BINNED_WINDOWS = 36 }; // windows of 32 entries

template <int kind> struct __align__(16) BinnedShared {
  uint32_t bins[Binned<kind>::bins];
  typename Binned<kind>::Entry entry[(int)Binned<kind>::bins / 2048 * BINNED_WINDOWS * ((int)Binned<kind>::window + 16 / sizeof(typename Binned<kind>::Entry))];
  uint32_t most[BINNED_WARPS], least[BINNED_WARPS], warp[BINNED_WARPS];
  uint32_t last, above, count; // the k-th element's bin, how many are in those before it, and in all down to it
};

typedef struct BinnedRow {
  Span x;
  uint32_t k;
  int column_bits;
  float add, scale; // value * scale + add: from 0 for the first bin to 1 for the last
} BinnedRow;

template <int kind> INLINE typename Binned<kind>::Entry binned_entry(const BinnedRow &r, float value, int column) {
  uint32_t order = order_of(value);
  if constexpr (kind == KIND_FP32) return (uint64_t)order << 32 | (uint32_t)~column;
  else return (order & ~((1u << Binned<kind>::low_bits) - 1)) | (uint32_t)((1 << r.column_bits) - 1 - column) << (Binned<kind>::low_bits - r.column_bits);
}
template <int kind> INLINE int binned_column(const BinnedRow &r, typename Binned<kind>::Entry e) {
  if (kind == KIND_FP32) return (int)~(uint32_t)e;
  const uint32_t below = (1u << Binned<kind>::low_bits) - 1;
  return (1 << r.column_bits) - 1 - (int)(((uint32_t)e & below) >> (Binned<kind>::low_bits - r.column_bits));
}
// The element of an entry; of a zero and a NaN the entry does not have all bits.
template <int kind> INLINE uint32_t binned_bits(const BinnedRow &r, typename Binned<kind>::Entry e, int column) {
  uint32_t u = kind == KIND_FP32 ? bits_of_order((uint32_t)((uint64_t)e >> 32)) : bits_of_order((uint32_t)e & ~((1u << Binned<kind>::low_bits) - 1));
  float f = __uint_as_float(u);
  if (f == 0 || f != f) return kind == KIND_FP32 ? ((const uint32_t *)r.x.at)[column] : ((const uint16_t *)r.x.at)[column];
  return kind == KIND_FP32 ? u : kind == KIND_BF16 ? u >> 16 : narrow_one(f, KIND_FP16);
}

// each(value, column) for this thread's elements.
template <int kind, class Each> INLINE void each_element(const Span &x, Each each) {
  const int per = Binned<kind>::per;
#pragma unroll 2
  for (int c = threadIdx.x; c < (int)x.chunks; c += BINNED_THREADS) {
    float f[8];
    Vec v;
    v.v = ((const uint4 *)x.body)[c];
    widen(&v, kind, Binned<kind>::size, f);
#pragma unroll
    for (int i = 0; i < per; i++) each(f[i], x.head + c * per + i);
  }
  if ((int)threadIdx.x < x.edges) {
    int column = (int)span_edge(&x, threadIdx.x);
    each(element_at<kind>(x.at, column), column);
  }
}

// ---- The bins

template <int kind, class S> INLINE void clear_bins(S *s) {
#pragma unroll
  for (int i = 0; i < Binned<kind>::bins / (4 * BINNED_THREADS); i++) ((uint4 *)s->bins)[i * BINNED_THREADS + threadIdx.x] = make_uint4(0, 0, 0, 0);
}

// Their range: a few elements may be outside of it, so that single ones far from all others do not count. Each warp has its largest
// element; what all of them have or exceed is the upper end, and the lower one likewise. False where values are not finite.
template <int kind, class S> INLINE bool bin_range(BinnedRow &r, S *s) {
  uint32_t most = kind == KIND_FP32 ? 0xff800000u : span_lowest(kind), least = most; // of what is to be searched with the sign turned
  const uint32_t sign = kind == KIND_FP32 ? 0x80000000u : 0x80008000u;
#pragma unroll 4
  for (int c = threadIdx.x; c < (int)r.x.chunks; c += BINNED_THREADS) {
    Vec v;
    v.v = ((const uint4 *)r.x.body)[c];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      most = larger_word<kind, 1>(most, v.u[j]);
      least = larger_word<kind, 1>(least, v.u[j] ^ sign);
    }
  }
  auto top_order = [&](uint32_t word) { // NaN is above all
    if (kind == KIND_FP32) return order_of(__uint_as_float(word));
    float2 two = widen2(word, kind);
    return max(order_of(two.x), order_of(two.y));
  };
  uint32_t high = top_order(most), low = top_order(least), wild = 0;
  if ((int)threadIdx.x < r.x.edges) {
    float f = element_at<kind>(r.x.at, (int)span_edge(&r.x, threadIdx.x));
    high = max(high, order_of(f)), low = max(low, order_of(-f));
  }
  const uint32_t infinite = order_of(__uint_as_float(0x7f800000u));
  wild = high >= infinite || low >= infinite;
  high = lanes_most(high), low = lanes_most(low);
  if (threadIdx.x % 32 == 0) s->most[threadIdx.x / 32] = high, s->least[threadIdx.x / 32] = low;
  if (__syncthreads_or(wild)) return false;
#pragma unroll
  for (int i = 0; i < BINNED_WARPS; i++) high = min(high, s->most[i]), low = min(low, s->least[i]);
  float first = __uint_as_float(bits_of_order(high)), last = -__uint_as_float(bits_of_order(low)), reach = first - last;
  r.scale = -1 / reach;
  r.add = first / reach;
  return reach > 0x1p-100f && reach < 0x1p127f;
}

// The bin of an element, the highest values first. fine: by its column, too.
template <int kind, bool fine> INLINE uint32_t bin_of(const BinnedRow &r, float value, int column) {
  float part;
  if (fine) value = __uint_as_float(bits_of_order((uint32_t)binned_entry<kind>(r, value, column)));
  asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(part) : "f"(value), "f"(r.scale), "f"(r.add));
  return __float_as_uint(__fmul_rn(part, (Binned<kind>::bins - 1) * 0x1p-149f)); // the bits of a multiple of the least float are that whole number
}

// Of the numbers of elements of bins makes the places where they begin in the list, and finds the bin of the k-th element. False where a bin down to that one has
// too many to be sorted by windows; those of the first one need no second window. Warps have neighbouring bins, lanes of a warp four each at a time.
template <int kind, class S> INLINE bool place_bins(uint32_t k, S *s) {
  enum { quads = Binned<kind>::bins / (4 * BINNED_THREADS), window = Binned<kind>::window };
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  uint4 *at = (uint4 *)s->bins + warp * quads * 32 + lane, of[quads];
  uint32_t sum[quads], upto[quads / 2], start = 0, crowd = 0; // upto: of two quads each
#pragma unroll
  for (int q = 0; q < quads; q++) of[q] = at[32 * q], sum[q] = of[q].x + of[q].y + of[q].z + of[q].w;
#pragma unroll
  for (int j = 0; j < quads / 2; j++) {
    uint32_t mine = sum[2 * j] | sum[2 * j + 1] << 16;
    upto[j] = mine;
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
      uint32_t other = __shfl_up_sync(~0u, upto[j], o);
      if (lane >= o) upto[j] += other;
    }
    uint32_t all = __shfl_sync(~0u, upto[j], 31);
    upto[j] -= mine;
    upto[j] += start | start + (all & 0xffff) << 16;
    start += (all & 0xffff) + (all >> 16);
  }
  if (lane == 0) s->warp[warp] = start;
  __syncthreads();
  start = 0;
#pragma unroll
  for (int i = 0; i < BINNED_WARPS; i++) start += i < warp ? s->warp[i] : 0;
#pragma unroll
  for (int q = 0; q < quads; q++) {
    uint32_t begin = start + (q % 2 ? upto[q / 2] >> 16 : upto[q / 2] & 0xffff);
    uint4 to = {begin, begin + of[q].x, begin + of[q].x + of[q].y, begin + sum[q] - of[q].w};
    at[32 * q] = to;
    if (begin >= k) continue;
    uint32_t first = begin == 0 && of[q].x <= window ? 0 : of[q].x;
    crowd = max(max(crowd, max(first, of[q].y)), max(of[q].z, of[q].w));
    if (begin + sum[q] < k) continue;
    uint32_t in = (to.y < k) + (to.z < k) + (to.w < k);
    s->last = (warp * quads + q) * 128 + lane * 4 + in;
    s->above = in == 3 ? to.w : in == 2 ? to.z : in == 1 ? to.y : begin;
    s->count = in == 3 ? begin + sum[q] : in == 2 ? to.w : in == 1 ? to.z : to.y;
  }
  return !__syncthreads_or(crowd > window / 2 + 1);
}

// ---- Windows

template <class Entry> INLINE void put_larger_first(Entry &a, Entry &b) {
  Entry x = a, y = b;
  bool swap = x < y;
  a = swap ? y : x, b = swap ? x : y;
}
// Batcher's network, which merges runs of 1, 2, 4 ...
template <int run, int apart, class Entry, int each> INLINE void window_step(Entry (&v)[each]) {
#pragma unroll
  for (int i = 0; i < each - apart; i++)
    if (i >= apart % run && (i - apart % run) / apart % 2 == 0 && i / (2 * run) == (i + apart) / (2 * run)) put_larger_first(v[i], v[i + apart]);
  if constexpr (apart > 1) window_step<run, apart / 2>(v);
  else if constexpr (2 * run < each) window_step<2 * run, 2 * run>(v);
}

// Sorts windows of the list that begin so many entries, none or half a window, after those of list_place.
template <int from, class Entry> INLINE void sort_windows(Entry *list, int windows) {
  enum { window = 128 / sizeof(Entry), of_vector = 16 / sizeof(Entry) };
  union Part {
    uint4 v;
    Entry e[of_vector];
  };
#pragma unroll 1
  for (int w = threadIdx.x; w < windows; w += BINNED_THREADS) {
    Entry e[window];
#pragma unroll
    for (int i = 0; i < window; i += of_vector) {
      Part p = {*(const uint4 *)(list + list_place<Entry>((uint32_t)w * window) + list_place<Entry>(from + i))};
#pragma unroll
      for (int j = 0; j < of_vector; j++) e[i + j] = p.e[j];
    }
    window_step<1, 1>(e);
#pragma unroll
    for (int i = 0; i < window; i += of_vector) {
      Part p;
#pragma unroll
      for (int j = 0; j < of_vector; j++) p.e[j] = e[i + j];
      *(uint4 *)(list + list_place<Entry>((uint32_t)w * window) + list_place<Entry>(from + i)) = p.v;
    }
  }
}

// The k largest in order, at list_place: by bins. False where that cannot be.
template <int kind, bool fine, class S> INLINE bool list_by_bins(BinnedRow &r, S *s) {
  typedef typename Binned<kind>::Entry Entry;
  enum { window = Binned<kind>::window };
  each_element<kind>(r.x, [&](float value, int column) { atomicAdd(&s->bins[bin_of<kind, fine>(r, value, column)], 1); });
  __syncthreads();
  if (!place_bins<kind>(r.k, s)) return false;
  uint32_t count = s->count; // bins after the k-th element's begin there: what gets a place in one is not listed
  each_element<kind>(r.x, [&](float value, int column) {
    uint32_t at = atomicAdd(&s->bins[bin_of<kind, fine>(r, value, column)], 1);
    Entry e = binned_entry<kind>(r, value, column);
    if (at < count) s->entry[list_place<Entry>(at)] = e;
  });
  int windows = (int)(count + window - 1) / window;
  for (int i = (int)(count + threadIdx.x); i < (windows + 1) * window; i += BINNED_THREADS) s->entry[list_place<Entry>(i)] = 0;
  __syncthreads();
  sort_windows<0>(s->entry, windows);
  __syncthreads();
  sort_windows<window / 2>(s->entry, windows);
  __syncthreads();
  return true;
}

// ---- Any values

// The k-th largest entry, of which some bits are found at a time: those of the bin it is in, of the entries that are like it so far.
template <int kind, class S> INLINE typename Binned<kind>::Entry kth_entry(const BinnedRow &r, S *s) {
  typedef typename Binned<kind>::Entry Entry;
  enum { bits_each = kind == KIND_FP32 ? 12 : 11, all = 8 * sizeof(Entry), highest = (1 << bits_each) - 1 };
  Entry found = 0;
  uint32_t left = r.k;
#pragma unroll 1
  for (int shift = all - bits_each, known = all; known > 0; known = shift, shift = max(shift - bits_each, 0)) {
    __syncthreads();
    clear_bins<kind>(s);
    __syncthreads();
    each_element<kind>(r.x, [&](float value, int column) {
      Entry e = binned_entry<kind>(r, value, column);
      if (known == all || e >> known == found >> known) atomicAdd(&s->bins[highest - (uint32_t)(e >> shift & highest)], 1);
    });
    __syncthreads();
    place_bins<kind>(left, s);
    found |= (Entry)(highest - s->last) << shift;
    left -= s->above;
  }
  return found;
}

template <int kind, class S> static __device__ __noinline__ void list_by_bits(const BinnedRow &r, S *s) {
  typedef typename Binned<kind>::Entry Entry;
  Entry last = kth_entry<kind>(r, s);
  if (threadIdx.x == 0) s->count = 0;
  __syncthreads();
  each_element<kind>(r.x, [&](float value, int column) {
    Entry e = binned_entry<kind>(r, value, column);
    if (e >= last) s->entry[atomicAdd(&s->count, 1)] = e;
  });
  __syncthreads();
  enum { each = TOPK_MOST / BINNED_THREADS };
  Entry mine[each];
  sort_entries<Entry, each, BINNED_THREADS>(s->entry, (int)r.k, threadIdx.x);
#pragma unroll
  for (int i = 0; i < each; i++) mine[i] = s->entry[i * BINNED_THREADS + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < each; i++) s->entry[list_place<Entry>(i * BINNED_THREADS + threadIdx.x)] = mine[i];
  __syncthreads();
}

// ---- The kernels

template <int kind, class S> INLINE void topk_binned(const TopkParams &p, S *s) {
  typedef typename Binned<kind>::Entry Entry;
  const int in = Binned<kind>::size;
  uint64_t row = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  if (row >= p.m) return;
  BinnedRow r = {span_of((const char *)p.x + (int64_t)row * p.x_stride, p.n, in), (uint32_t)p.k, p.column_bits};
  clear_bins<kind>(s);
  bool by_bins = bin_range<kind>(r, s);
  if constexpr (kind == KIND_BF16) by_bins = by_bins && (r.x.n > BINNED_ALIKE ? list_by_bins<kind, true>(r, s) : list_by_bins<kind, false>(r, s));
  else by_bins = by_bins && list_by_bins<kind, false>(r, s);
  if (!by_bins) list_by_bits<kind>(r, s);
  char *values = (char *)p.values + (int64_t)row * p.values_stride * in, *ids = (char *)p.ids + (int64_t)row * p.ids_stride * (p.wide_ids ? 8 : 4);
#pragma unroll 2
  for (uint32_t i = threadIdx.x; i < r.k; i += BINNED_THREADS) {
    Entry e = s->entry[list_place<Entry>(i)];
    int column = binned_column<kind>(r, e);
    uint32_t bits = binned_bits<kind>(r, e, column);
    if (in == 4) ((uint32_t *)values)[i] = bits;
    else ((uint16_t *)values)[i] = (uint16_t)bits;
    if (p.wide_ids) ((int64_t *)ids)[i] = column;
    else ((int32_t *)ids)[i] = column;
  }
}

#define BINNED_KERNEL(kind)                                                                                  \
  KERNEL __launch_bounds__(BINNED_THREADS, 8) sol_topk_binned_##kind(const __grid_constant__ TopkParams p) { \
    __shared__ __align__(16) BinnedShared<KIND_##kind> shared;                                               \
    begin_kernel();                                                                                          \
    topk_binned<KIND_##kind>(p, &shared);                                                                    \
  }
BINNED_KERNEL(FP32)
BINNED_KERNEL(FP16)
BINNED_KERNEL(BF16)

#endif
