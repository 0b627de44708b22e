// The k largest elements of a row as a sorted list in shared memory, by a warp, a block or a cluster of blocks.
//
// The row is read once, in batches of four 16-byte chunks a thread, two or four of them in flight. The first ones, which are all of a short
// row, give a key that at least k elements reach: a warp's own part of k is found among the largest of its lanes' first words,
// second words and so on, by bisection with votes inside the warp; the lowest of the warps' keys holds for all. What reaches it is
// appended to the list. Where the list is about to overflow it is cut to the k largest, and what follows must be above the last of them.
#ifndef SOL_KERNELS_SELECT_LIST_CUH
#define SOL_KERNELS_SELECT_LIST_CUH

#include "held.cuh"
#include "select.h"
#include "sort.cuh"

extern __shared__ __align__(128) uint4 held[]; // batches; by index, which takes fewer registers than addresses
enum { BATCH = LIST_BATCH };

// Batches of a thread in shared memory: LIST_STAGES, LIST_MORE where rows are few, or 1 where copies are not asynchronous.
INLINE int list_stages(void) {
#if __CUDA_ARCH__ >= 800
  uint32_t bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  return bytes > blockDim.x * (BATCH * 16 * LIST_STAGES) ? LIST_MORE : LIST_STAGES;
#else
  return 1;
#endif
}

// How many of a warp's words' elements are above `below`.
template <int kind, int nan> INLINE uint32_t count_above(const uint32_t *word, uint32_t below) {
  uint32_t found = 0, count = 0;
  if (kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < 8; j++) count -= mask_above<kind, nan>(word[j], below);
  } else {
#pragma unroll
    for (int j = 0; j < 4; j++) found |= word_above<kind, nan>(word[j], below, j);
    count = __popc(found);
  }
  return lanes_sum(count);
}

// A key that at least `wanted` elements of a warp's words reach, and few more; by bisection. It begins with the least of the
// largest of 32, 64 or 128 parts of the words. 0: all are needed.
template <int kind, int nan> INLINE uint32_t warp_low(const uint32_t *word, uint32_t wanted) {
  uint32_t key[8], least = ~0u, most;
  if (wanted > 128) return 0;
#pragma unroll
  for (int j = 0; j < 8; j++)
    key[j] = key_of_bits<kind>(kind == KIND_FP32 ? word[j] : word[j / 2] >> j % 2 * 16 & 0xffff);
#pragma unroll
  for (int j = 0; j < 8; j += 2) key[j] = max(key[j], key[j + 1]), least = min(least, key[j]);
  key[0] = max(key[0], key[2]), key[4] = max(key[4], key[6]), most = max(key[0], key[4]);
  if (wanted <= 64) least = min(key[0], key[4]);
  if (wanted <= 32) least = most;
  uint32_t high = lanes_most(most), low = lanes_least(least);
  if (wanted == 1) return high;
#pragma unroll 1
  while (low < high) {
    uint32_t middle = low + (high - low + 1) / 2,
             count = count_above<kind, nan>(word, word_below<kind, nan>(middle));
    if (count >= wanted)
      low = middle;
    else
      high = middle - 1;
    if (count - wanted <= wanted / 4) break;
  }
  return low;
}

// The row of a thread, and what part of it this block has.
typedef struct Part {
  struct {
    const char *at;
    const uint4 *body;
    int n, chunks, head, edges;
  } x; // a Span in fewer registers
  int begin, end; // chunks
  uint64_t row;
  int thread, rank, blocks, stages;
} Part;

template <int threads> INLINE Part part_of(const void *x, int64_t stride, int64_t n, int in, uint64_t m) {
  Part p;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  p.blocks = threads == 32 ? 1 : cluster_blocks();
  p.rank = 0, p.stages = list_stages();
#if __CUDA_ARCH__ >= 900
  if (p.blocks > 1) p.rank = (int)cluster_rank();
#endif
  p.row = threads == 32  ? block * (blockDim.x / 32) + threadIdx.x / 32
          : p.blocks > 1 ? block / p.blocks
                         : block;
  p.thread = threads == 32 ? threadIdx.x % 32 : threadIdx.x;
  Span s = span_of((const char *)x + (int64_t)p.row * stride, p.row < m ? n : 0, in);
  p.x = {s.at, (const uint4 *)s.body, (int)s.n, (int)s.chunks, s.head, s.edges};
  int chunks = p.x.chunks, each = p.blocks > 1 ? (chunks + p.blocks - 1) / p.blocks : chunks;
  p.begin = min(each * p.rank, chunks), p.end = min(p.begin + each, chunks);
  return p;
}

// The edge of this thread, if that is before the chunks, or after them; -1: none.
INLINE int part_edge(const Part &p, bool first, bool last) {
  int e = p.thread;
  bool here = e < p.x.head ? first && p.rank == 0 : e < p.x.edges && last && p.rank == p.blocks - 1;
  return here ? e < p.x.head ? e : (int)p.x.n - p.x.edges + e : -1;
}

// Starts to copy a batch from chunk `at` on into shared memory, each thread its own chunks, `threads` apart, which this thread alone reads: batches are in
// flight while one before them is searched, and take no registers. Behind the last chunk is the lowest value.
template <int kind, int threads> INLINE void start_batch(const Part &p, int at, int stage) {
  const uint4 *chunk = p.x.body + at + p.thread;
  uint4 *to = &held[stage + p.thread];
  if (at + BATCH * threads <= p.end) {
#pragma unroll
    for (int u = 0; u < BATCH; u++) fetch16(to + u * threads, chunk + u * threads);
  } else if (at < p.end) {
    const uint32_t lowest = span_lowest(kind);
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      if (at + p.thread + u * threads < p.end) fetch16(to + u * threads, chunk + u * threads);
      else to[u * threads] = make_uint4(lowest, lowest, lowest, lowest);
    }
  }
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
INLINE void wait_for_batch(int stages) { // all but the last stages - 1
#if __CUDA_ARCH__ >= 800
  if (stages == LIST_MORE) asm volatile("cp.async.wait_group %0;" ::"n"(LIST_MORE - 1) : "memory");
  else asm volatile("cp.async.wait_group %0;" ::"n"(LIST_STAGES - 1) : "memory");
#endif
}

// Which elements of this thread's in a batch are above `below`: of chunk u, word j bits 4u + j, and 16 further on the second element's.
template <int kind, int nan, int threads> INLINE uint32_t batch_above(const Part &p, int at, int stage, uint32_t below) {
  uint32_t found = 0;
#pragma unroll
  for (int u = 0; u < BATCH; u++) {
    Vec v;
    v.v = held[stage + p.thread + u * threads];
#pragma unroll
    for (int j = 0; j < 4; j++) found |= word_above<kind, nan>(v.u[j], below, 4 * u + j);
  }
  if (nan && at + BATCH * threads > p.end) { // where NaN is below all, what is behind the last chunk is not
    int chunks = max(0, min(BATCH, (p.end - at - p.thread + threads - 1) / threads));
    found &= ((1u << 4 * chunks) - 1) * 0x10001u;
  }
  return found;
}

// Appends this lane's elements at the bits of `found`; all lanes of a warp together. The list has `count` entries before the batch; how many after it.
// First lanes put down where their elements are, in turns of one each, then all lanes make entries of that: lanes with many would keep the others waiting.
template <int kind, int threads, class L>
INLINE uint32_t append(const Part &p, int at, int stage, uint32_t found, L *list, uint32_t *turn, uint32_t count) {
  const int per = kind == KIND_FP32 ? 4 : 8, lane = threadIdx.x % 32;
  uint32_t some = __ballot_sync(~0u, found != 0), base = count;
  if (threads > 32 && some) {
    uint32_t all = lanes_sum(__popc(found));
    if (lane == 0) base += atomicAdd(&list->added[*turn], all);
    base = __shfl_sync(~0u, base, 0);
  }
  uint32_t i = base + lane;
#pragma unroll 1
  for (; some; some = __ballot_sync(~0u, found != 0)) {
    uint32_t to = base + __popc(some & ((1u << lane) - 1));
    base += __popc(some);
    if (!found) continue;
    int bit = 31 - __clz(found);
    found ^= 1u << bit;
    if (to < L::room) list->entry[to] = p.thread << 5 | bit;
  }
  __syncwarp();
#pragma unroll 1
  for (uint32_t end = min(base, (uint32_t)L::room); i < end; i += 32) {
    uint32_t place = (uint32_t)list->entry[i], chunk = (place >> 5) + (place >> 2 & 3) * threads;
    uint32_t bits = ((const uint32_t *)&held[stage + chunk])[place & 3] >> (place & 16);
    int column = p.x.head + (at + (int)chunk) * per + (place & 3) * (per / 4) + (place >> 4 & 1);
    make_entry(key_of_bits<kind>(kind == KIND_FP32 ? bits : bits & 0xffff), (uint32_t)column, &list->entry[i]);
  }
  uint32_t next = *turn == 2 ? 0 : *turn + 1;
  if (threads > 32 && p.thread == 0) list->added[next] = 0;
  row_sync<threads>();
  if (threads > 32) base = count + list->added[*turn];
  *turn = next;
  return base;
}

// The bits of this thread's edge, if it has one.
template <int kind> INLINE uint32_t load_edge(const Part &p) {
  const int edge = part_edge(p, true, true);
  return edge < 0 ? 0 : kind == KIND_FP32 ? ((const uint32_t *)p.x.at)[edge] : ((const uint16_t *)p.x.at)[edge];
}

// Appends the elements before the row's chunks, or those after them; these are in the first warp.
template <int kind, int nan, int threads, class L>
INLINE uint32_t append_edges(const Part &p, bool last, uint32_t bits, uint32_t below, L *list, uint32_t count) {
  if (!p.x.edges) return count;
  const int edge = part_edge(p, !last, last);
  bool found = edge >= 0 && word_above<kind, nan>(bits, below) & 1;
  uint32_t some = __ballot_sync(~0u, found);
  if (found) make_entry(key_of_bits<kind>(bits), (uint32_t)edge, &list->entry[count + __popc(some & ((1u << threadIdx.x % 32) - 1))]);
  row_sync<threads>();
  return count + (threads == 32 ? __popc(some) : __syncthreads_count(found));
}

// How many warps of a row, in all blocks of a cluster, have a chunk for each lane.
template <int warps> INLINE uint32_t full_warps(const Part &p) {
  int each = ((int)p.x.chunks + p.blocks - 1) / p.blocks, of_last = (int)p.x.chunks - each * (p.blocks - 1);
  if (of_last < 0 || each == 0) return 0; // blocks without chunks: a short row, all of which is listed
  return min(warps, each / 32) * (p.blocks - 1) + min(warps, of_last / 32);
}

// A key that at least k elements reach, from the first batches; all blocks of a cluster together.
template <int kind, int nan, int threads, class L>
INLINE uint32_t first_low(const Part &p, L *list, int stage, uint32_t k) {
  const int warps = threads / 32, words = kind == KIND_FP32 ? 8 : 4;
  uint32_t word[words], low = ~0u;
  Vec v;
#pragma unroll
  for (int j = 0; j < words; j++) word[j] = span_lowest(kind);
  wait_for_fetches();
#pragma unroll 1
  for (int i = 0; i < p.stages && p.begin + i * BATCH * threads < p.end; i++)
#pragma unroll
    for (int u = 0; u < BATCH; u++) {
      v.v = held[stage + p.thread + (i * BATCH + u) * threads];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        uint32_t &most = word[u * 4 % words + j];
        most = larger_word<kind, nan>(most, v.u[j]);
      }
    }
  // Warps with fewer chunks than lanes have no say.
  uint32_t full = warps == 1 ? 1 : full_warps<warps>(p);
  if (full == 0) return 0;
  if (warps == 1 || (p.thread / 32 + 1) * 32 <= p.end - p.begin)
    low = warp_low<kind, nan>(word, (k + full - 1) / full);
  if (warps > 1) {
    if (p.thread % 32 == 0) list->low[p.thread / 32] = low;
    __syncthreads();
    low = lanes_least(list->low[p.thread % warps]);
  }
  if (p.blocks > 1) {
    if (p.thread == 0) list->block_low = low;
    cluster_barrier();
    low = lanes_least(p.thread % 32 < p.blocks ? remote_word(&list->block_low, p.thread % 32) : ~0u);
  }
  return low;
}

// The batch again, a word of each thread at a time, after a batch that was too much for the list. Elements of one word are
// not in the order of the columns: those equal to the last of the list may come before it.
template <int kind, int nan, int threads, class L>
INLINE uint32_t append_slowly(const Part &p, int at, int stage, uint32_t low, L *list, uint32_t *turn, uint32_t *count, uint32_t k) {
#pragma unroll 1
  for (int i = 0; i < 4 * BATCH; i++) {
    if (*count + 2 * threads > L::room) low = max(low, cut_list<threads>(list, count, k, k, p.thread));
    uint32_t found = batch_above<kind, nan, threads>(p, at, stage, word_below<kind, nan>(low)) & 0x10001u << i;
    *count = append<kind, threads>(p, at, stage, found, list, turn, *count);
  }
  return max(low, cut_list<threads>(list, count, k, k, p.thread) + (*count >= k));
}

// The lists of the other blocks of a cluster, behind that of the first.
template <int threads, class L>
INLINE void gather_lists(const Part &p, L *list, uint32_t *count, uint32_t k) {
  if (*count > 2 * k) cut_list<threads>(list, count, k, 2 * k, p.thread); // all blocks at once
  if (p.thread == 0) list->count = *count;
  cluster_barrier();
  if (p.rank) return;
  for (int i = 1; i < p.blocks; i++) {
    uint32_t there = remote_word(&list->count, i);
    for (uint32_t from = 0; from < there;) {
      if (*count == L::room) cut_list<threads>(list, count, k, k, p.thread);
      uint32_t some = min(there - from, L::room - *count);
      for (uint32_t j = p.thread; j < some; j += threads)
        list->entry[*count + j] = remote_word(&list->entry[from + j], i);
      __syncthreads();
      *count += some, from += some;
    }
  }
}

// Of how many elements the first batches, which are a sample of the row, should have a key: k of the row are about k * sample / n of
// them. Beyond their mean three and a half standard deviations: hardly ever too few of a row in random order.
template <int kind, int threads> INLINE uint32_t guess_of(const Part &p, uint32_t k) {
  float sample = (float)(p.stages * BATCH * threads * (kind == KIND_FP32 ? 4 : 8)), mean = (float)k * sample / (float)p.x.n;
  return min(k, (uint32_t)(mean + 3.5f * sqrtf(mean)) + 1);
}

// The list of what may be among the k largest of a block's part; `wanted` elements of the first batches reach its first key. How many there are.
template <int kind, int nan, int threads, class L>
INLINE uint32_t list_part(const Part &p, L *list, int stage, uint32_t k, uint32_t wanted, bool *sure) {
  uint32_t low = 0, turn = 0, slot = 0; // turn: by turns three
  if (threads > 32 && p.thread < 3) list->added[p.thread] = 0;
  row_sync<threads>();
#pragma unroll 1
  for (int i = 0; i < p.stages; i++) start_batch<kind, threads>(p, p.begin + i * BATCH * threads, stage + i * BATCH * threads);
  const uint32_t edge = load_edge<kind>(p); // in flight along with the batches
  if (2 * k < (uint32_t)p.x.n) low = first_low<kind, nan, threads>(p, list, stage, wanted);
  *sure = wanted >= k || low <= lowest_key<kind>(); // nothing below that is listed
  uint32_t below = word_below<kind, nan>(low), count = append_edges<kind, nan, threads>(p, false, edge, below, list, 0);
#pragma unroll 1
  for (int at = p.begin; at < p.end; at += BATCH * threads) {
    int here = stage + slot * BATCH * threads;
    wait_for_batch(p.stages);
    uint32_t found = batch_above<kind, nan, threads>(p, at, here, below);
    uint32_t all = append<kind, threads>(p, at, here, found, list, &turn, count), expected = 2 * all - count;
    bool full = all > L::room;
    if (full) low = append_slowly<kind, nan, threads>(p, at, here, low, list, &turn, &count, k);
    else if (count = all, full = expected > L::room && at + BATCH * threads < p.end)
      low = max(low, cut_list<threads>(list, &count, k, k + k / 4, p.thread) + (all >= k));
    if (full) below = word_below<kind, nan>(low);
    start_batch<kind, threads>(p, at + p.stages * BATCH * threads, here);
    slot = slot + 1 == p.stages ? 0 : slot + 1;
  }
  if (count + 32 > L::room && p.x.edges)
    low = max(low, cut_list<threads>(list, &count, k, k + k / 4, p.thread) + (count >= k)), below = word_below<kind, nan>(low);
  return append_edges<kind, nan, threads>(p, true, edge, below, list, count);
}

// The list of all elements that may be among the k largest, in any order; in that of the first block are those of all blocks. A key that
// a sample suggests leaves much less to list than one that k elements of the sample reach; where too few of the row reach it,
// the row is read again.
template <int kind, int nan, int threads, class L>
INLINE uint32_t list_some(const Part &p, L *list, int stage, uint32_t k) {
  uint32_t count, wanted = p.blocks == 1 ? guess_of<kind, threads>(p, k) : k;
  bool sure; // whatever the list has, there are no others
#pragma unroll 1
  for (;; wanted = k) {
    count = list_part<kind, nan, threads>(p, list, stage, k, wanted, &sure);
    if (count >= k || sure) break;
    row_sync<threads>();
  }
  if (p.blocks > 1) gather_lists<threads>(p, list, &count, k);
  return count;
}

// The list of the first block: the k largest, in order; how many there are. Of the others nothing. `nan`: NaN are the
// largest of all; otherwise neither they nor -infinity are listed.
template <int kind, int nan, int threads, class L>
INLINE uint32_t list_largest(const Part &p, L *list, int stage, uint32_t k) {
  uint32_t count = list_some<kind, nan, threads>(p, list, stage, k);
  if (p.rank) return 0;
  if (threads > 32) __syncthreads();
  sort_list<threads>(list, (uint32_t *)(held + stage), count, k, p.thread); // batches are no longer needed
  return min(count, k);
}

// Kernels of that name, one for elements of `in` bytes, entries of so many bits, and threads on a row: a warp, of which a block has
// several, or a block. run<kind, threads>(p, list) does a row.
#define LIST_KERNEL(name, Params, Shared, run, in, entry, threads, rows, room)                               \
  KERNEL __launch_bounds__(threads *rows, threads == 32 ? 6 : 3)                                 \
      sol_##name##_##in##_##entry##_##threads(const __grid_constant__ Params p) {                            \
    __shared__ Shared<uint##entry##_t, room> lists[rows];                                                    \
    begin_kernel();                                                                                          \
    int row = rows > 1 ? threadIdx.x / threads : 0;                                                          \
    auto *list = lists + row;                                                                                \
    int stage = row * list_stages() * BATCH * threads;                                                       \
    if (in == 4)                                                                                             \
      run<KIND_FP32, threads>(p, list, stage);                                                               \
    else if (p.x_kind == KIND_FP16)                                                                          \
      run<KIND_FP16, threads>(p, list, stage);                                                               \
    else                                                                                                     \
      run<KIND_BF16, threads>(p, list, stage);                                                               \
  }
#define LIST_KERNELS(name, Params, Shared, run)                                                              \
  LIST_KERNEL(name, Params, Shared, run, 2, 32, 32, 4, 256)                                                  \
  LIST_KERNEL(name, Params, Shared, run, 4, 64, 32, 4, 256)                                                  \
  LIST_KERNEL(name, Params, Shared, run, 2, 32, 256, 1, 3072)                                                \
  LIST_KERNEL(name, Params, Shared, run, 2, 64, 256, 1, 2048)                                                \
  LIST_KERNEL(name, Params, Shared, run, 4, 64, 256, 1, 2048)

#endif
