// A list of entries in shared memory: cut to its k largest, and sorted.
#ifndef SOL_KERNELS_SELECT_SORT_CUH
#define SOL_KERNELS_SELECT_SORT_CUH

#include "key.cuh"
#include "select.h"

template <int threads> INLINE void row_sync(void) {
  if (threads == 32)
    __syncwarp();
  else
    __syncthreads();
}

// What a row's threads of one block share.
template <class Entry, int room_> struct List {
  typedef Entry Item;
  enum { room = room_ };
  Entry entry[room_];
  uint32_t added[4];          // by turns three: appended in a batch
  uint32_t low[8], block_low; // a key of each warp; of the block
  uint32_t count;
  uint32_t bins[room_ > 256 ? 256 : 1], bin, above, with, least, most; // of block_entry
};

// Puts two entries in order: the larger first, or last where `up`.
template <class Entry> INLINE void order(Entry *a, Entry *b, bool up) {
  Entry x = *a, y = *b;
  bool swap = (x < y) != up;
  *a = swap ? y : x, *b = swap ? x : y;
}

// One level of a bitonic sort: runs of `size` entries, each of which first rises, then falls, become sorted ones by turns.
template <class Entry, int per, int threads>
INLINE void merge_runs(Entry *v, Entry *list, int size, int thread) {
  bool up = size < per * threads && (thread * per & size);
#pragma unroll
  for (int lanes = threads / 2; lanes; lanes /= 2) {
    if (lanes * per > size / 2) continue;
    bool last = (thread & lanes) != 0;
    if (lanes >= 32) {
      __syncthreads();
#pragma unroll
      for (int r = 0; r < per; r++) list[thread + threads * r] = v[r];
      __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < per; r++) {
      Entry other = lanes >= 32 ? list[(thread ^ lanes) + threads * r] : __shfl_xor_sync(~0u, v[r], lanes);
      v[r] = (v[r] < other) != (last != up) ? other : v[r];
    }
  }
#pragma unroll
  for (int apart = per / 2; apart; apart /= 2)
#pragma unroll
    for (int r = 0; r < per; r++)
      if (!(r & apart)) order(&v[r], &v[r + apart], size < per ? (r & size) != 0 : up);
}

// Sorts `count` entries, the largest first: bitonic, `per` of a thread's in registers, zeros behind them.
template <class Entry, int per, int threads> INLINE void sort_entries(Entry *list, int count, int thread) {
  Entry v[per];
#pragma unroll
  for (int r = 0; r < per; r++) v[r] = thread * per + r < count ? list[thread * per + r] : 0;
#pragma unroll
  for (int size = 2; size < per; size *= 2)
#pragma unroll
    for (int apart = size / 2; apart; apart /= 2)
#pragma unroll
      for (int r = 0; r < per; r++)
        if (!(r & apart)) order(&v[r], &v[r + apart], (r & size) != 0);
  if (threads == 32) {
#pragma unroll
    for (int size = per; size <= per * 32; size *= 2) merge_runs<Entry, per, 32>(v, list, size, thread);
  } else {
#pragma unroll 1
    for (int size = per; size <= per * threads; size *= 2)
      merge_runs<Entry, per, threads>(v, list, size, thread);
  }
  row_sync<threads>();
#pragma unroll
  for (int r = 0; r < per; r++) list[thread * per + r] = v[r];
  row_sync<threads>();
}

// Up to 128 entries, by a warp.
template <class Entry> static __device__ __noinline__ void sort_few(Entry *list, int count, int lane) {
  if (count <= 64) sort_entries<Entry, 2, 32>(list, count, lane);
  else sort_entries<Entry, 4, 32>(list, count, lane);
}

// Up to 1024, by a block of 256.
template <class Entry> static __device__ __noinline__ void sort_many(Entry *list, int count, int thread) {
  if (count <= 512) sort_entries<Entry, 2, 256>(list, count, thread);
  else sort_entries<Entry, 4, 256>(list, count, thread);
}

// A number that at least k of `count` entries reach and at most `most_of`: by bisection, by a warp.
template <class Entry> INLINE Entry warp_entry(const Entry *list, uint32_t count, uint32_t k, uint32_t most_of, int lane) {
  uint32_t most = 0, least = ~0u;
#pragma unroll 1
  for (uint32_t i = lane; i < count; i += 32) most = max(most, entry_key(list[i])), least = min(least, entry_key(list[i]));
  Entry low, high;
  make_entry(lanes_least(least), ~0u, &low), make_entry(lanes_most(most), 0, &high);
#pragma unroll 1
  while (low < high) {
    Entry middle = low + (high - low) / 2 + 1;
    uint32_t reach = 0;
#pragma unroll 2
    for (uint32_t i = lane; i < count; i += 32) reach += list[i] >= middle;
    reach = lanes_sum(reach);
    if (reach >= k) low = middle;
    else high = middle - 1;
    if (reach >= k && reach <= most_of) break;
  }
  return low;
}

// How many bits of a number are beyond its first ones.
INLINE int bits_beyond(uint32_t v, int bits) { return max(32 - __clz(v) - bits, 0); }
INLINE int bits_beyond(uint64_t v, int bits) { return max(64 - __clzll(v) - bits, 0); }

// The bin of this turn that the k-th entry is in, the highest first: thread t has the t-th from above. A block of 256.
template <class L> INLINE void find_entry_bin(L *list, uint32_t k, int thread) {
  uint32_t mine = list->bins[255 - thread], upto = mine;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    uint32_t other = __shfl_up_sync(~0u, upto, o);
    if (thread % 32 >= o) upto += other;
  }
  if (thread % 32 == 31) list->low[thread / 32] = upto;
  __syncthreads();
  for (int i = 0; i < thread / 32; i++) upto += list->low[i];
  if (upto - mine < k && k <= upto) list->bin = 255 - thread, list->above = upto - mine, list->with = upto;
}

// What the entries of a list are between. A block of 256.
template <class L> INLINE void entry_range(L *list, uint32_t count, int thread, typename L::Item *low, typename L::Item *high) {
  uint32_t most = 0, least = ~0u;
  if (thread == 0) list->least = ~0u, list->most = 0;
  __syncthreads();
  for (uint32_t i = thread; i < count; i += 256)
    most = max(most, entry_key(list->entry[i])), least = min(least, entry_key(list->entry[i]));
  most = lanes_most(most), least = lanes_least(least);
  if (thread % 32 == 0) atomicMax(&list->most, most), atomicMin(&list->least, least);
  __syncthreads();
  make_entry(list->least, ~0u, low), make_entry(list->most, 0, high);
}

// The same by a block: a histogram of the range that the entries have, then of the bin that has the k-th, until it has few
// enough.
template <class L>
INLINE typename L::Item block_entry(L *list, uint32_t count, uint32_t k, uint32_t most_of, int thread) {
  typedef typename L::Item Entry;
  Entry low, high;
  entry_range(list, count, thread, &low, &high);
  high -= low;
  int shift = bits_beyond(high, 8);
#pragma unroll 1
  for (;; shift = max(shift - 8, 0)) {
    list->bins[thread] = 0;
    __syncthreads();
    for (uint32_t i = thread; i < count; i += 256) {
      Entry e = list->entry[i];
      if (e >= low && (e - low) >> shift < 256) atomicAdd(&list->bins[(int)((e - low) >> shift)], 1);
    }
    __syncthreads();
    find_entry_bin(list, k, thread);
    __syncthreads();
    low += (Entry)list->bin << shift;
    if (list->with <= most_of || shift == 0) return low;
    k -= list->above, most_of -= list->above;
  }
}

// Cuts the list to its largest entries, in any order: at least k of them, at most `most`. A key that k of those have or exceed;
// 0 where there are fewer. What comes later in the row with that key is not among the k largest. By a warp.
template <class L>
static __device__ __noinline__ uint32_t cut_few(L *list, uint32_t *count, uint32_t k, uint32_t most, int lane) {
  typedef typename L::Item Entry;
  if (*count < k) return 0;
  Entry last = warp_entry(list->entry, *count, k, most, lane);
  uint32_t left = 0;
#pragma unroll 1
  for (uint32_t i = lane; i - lane < *count; i += 32) {
    Entry e = i < *count ? list->entry[i] : 0;
    uint32_t kept = __ballot_sync(~0u, i < *count && e >= last);
    __syncwarp(); // what is written is not beyond what has been read
    if (kept >> lane & 1) list->entry[left + __popc(kept & ((1u << lane) - 1))] = e;
    left += __popc(kept);
  }
  __syncwarp();
  *count = left;
  return entry_key(last);
}

// The same by a block.
template <class L>
static __device__ __noinline__ uint32_t cut_many(L *list, uint32_t *count, uint32_t k, uint32_t most, int thread) {
  typedef typename L::Item Entry;
  if (*count < k) return 0;
  Entry last = block_entry(list, *count, k, most, thread);
  if (thread == 0) list->count = 0;
#pragma unroll 1
  for (uint32_t i = thread; i - thread < *count; i += 256) {
    Entry e = i < *count ? list->entry[i] : 0;
    uint32_t kept = __ballot_sync(~0u, i < *count && e >= last), at = 0;
    __syncthreads(); // what is written is not beyond what has been read
    if (thread % 32 == 0 && kept) at = atomicAdd(&list->count, __popc(kept));
    at = __shfl_sync(~0u, at, 0);
    if (kept >> thread % 32 & 1) list->entry[at + __popc(kept & ((1u << thread % 32) - 1))] = e;
  }
  __syncthreads();
  *count = list->count;
  __syncthreads();
  return entry_key(last);
}

// The k largest in order, by a block of 256: entries go to bins of equal width, and in its bin an entry counts those above it. Each of a few passes takes
// an instruction or two an entry, where a sort by comparisons takes dozens and as many barriers. `scratch`: SORT_BINS words and a copy of the list.
// False, and nothing done, where a bin has too many for that.
enum { SORT_BITS = 10, SORT_BINS = 1 << SORT_BITS, SORT_CROWD = 64 };
template <class L> static __device__ __noinline__ bool sort_bins(L *list, uint32_t *bins, uint32_t count, uint32_t k, int thread) {
  typedef typename L::Item Entry;
  enum { EACH = SORT_BINS / 256 };
  Entry low, high, *sorted = (Entry *)(bins + SORT_BINS);
  entry_range(list, count, thread, &low, &high);
  const int shift = bits_beyond(high - low, SORT_BITS);
#pragma unroll
  for (int j = 0; j < EACH; j++) bins[thread + 256 * j] = 0;
  __syncthreads();
#pragma unroll 1
  for (uint32_t i = thread; i < count; i += 256) atomicAdd(&bins[(uint32_t)((high - list->entry[i]) >> shift)], 1);
  __syncthreads();
  uint32_t of[EACH], mine = 0, upto, crowd = 0;
#pragma unroll
  for (int j = 0; j < EACH; j++) of[j] = bins[thread * EACH + j], mine += of[j], crowd = max(crowd, of[j]);
  upto = mine;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    uint32_t other = __shfl_up_sync(~0u, upto, o);
    if (thread % 32 >= o) upto += other;
  }
  if (thread % 32 == 31) list->low[thread / 32] = upto;
  if (__syncthreads_or(crowd > SORT_CROWD)) return false;
  for (int i = 0; i < thread / 32; i++) upto += list->low[i];
  upto -= mine;
#pragma unroll
  for (int j = 0; j < EACH; j++) bins[thread * EACH + j] = upto, upto += of[j];
  __syncthreads();
#pragma unroll 1
  for (uint32_t i = thread; i < count; i += 256) {
    Entry e = list->entry[i];
    sorted[atomicAdd(&bins[(uint32_t)((high - e) >> shift)], 1)] = e;
  }
  __syncthreads(); // from here on a bin's number is where the next one begins
#pragma unroll 1
  for (uint32_t i = thread; i < count; i += 256) {
    Entry e = sorted[i];
    uint32_t bin = (uint32_t)((high - e) >> shift), rank = bin ? bins[bin - 1] : 0;
    if (rank >= k) break; // and so have all that follow
    for (uint32_t j = rank, end = bins[bin]; j < end; j++) rank += sorted[j] > e;
    if (rank < k) list->entry[rank] = e;
  }
  __syncthreads();
  return true;
}

template <int threads, class L> INLINE uint32_t cut_list(L *list, uint32_t *count, uint32_t k, uint32_t most, int thread) {
  if (threads == 32) return cut_few(list, count, k, most, thread);
  else return cut_many(list, count, k, most, thread);
}

// The k largest in order, and perhaps others behind them.
template <int threads, class L> INLINE void sort_list(L *list, uint32_t *scratch, uint32_t count, uint32_t k, int thread) {
  enum { FEW = 256, SORTED = 128 };
#if __CUDA_ARCH__ >= 800 // or there are too few batches in shared memory for a copy
  if (threads == 256 && sort_bins(list, scratch, count, k, thread)) return;
#endif
  if (threads == 32 || (count <= FEW && k <= SORTED)) {
    if (thread < 32 && count > SORTED) cut_few(list, &count, k, SORTED, thread);
    if (thread < 32) sort_few(list->entry, (int)count, thread);
    if (threads > 32) __syncthreads();
  } else {
    if (count > TOPK_MOST || k <= SORTED) cut_many(list, &count, k, k <= SORTED ? SORTED : TOPK_MOST, thread);
    if (count > SORTED) sort_many(list->entry, (int)count, thread);
    else if (thread < 32) sort_few(list->entry, (int)count, thread);
    __syncthreads();
  }
}

#endif
