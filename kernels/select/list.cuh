// The k largest elements of a row as a sorted list in shared memory, by a warp, a block or a cluster of blocks.
//
// The row is read once, in batches of four 16-byte chunks a thread. The first batch gives a key that at least k elements
// reach: a warp's own k-th part is found among the largest of its lanes' first words, second words and so on, by bisection
// with votes inside the warp; the lowest of the warps' keys holds for all. What reaches it is appended to the list. Where
// the list is about to overflow it is sorted, cut to the k largest, and what follows must be above the last of them.
#ifndef SOL_KERNELS_SELECT_LIST_CUH
#define SOL_KERNELS_SELECT_LIST_CUH

#include "held.cuh"
#include "packed.cuh"

enum { BATCH = 4 }; // chunks of a thread

// An element: its key above, the complement of its column below, so that of equals the lower column is the higher entry.
// Rows of up to 2^16 elements of 16 bits have entries of 32 bits.
INLINE uint32_t entry_key(uint32_t e) {
  return e >> 16;
}
INLINE uint32_t entry_key(uint64_t e) {
  return (uint32_t)(e >> 32);
}
INLINE uint32_t entry_column(uint32_t e) {
  return ~e & 0xffff;
}
INLINE uint32_t entry_column(uint64_t e) {
  return ~(uint32_t)e;
}
INLINE void make_entry(uint32_t key, uint32_t column, uint32_t *e) {
  *e = key << 16 | (~column & 0xffff);
}
INLINE void make_entry(uint32_t key, uint32_t column, uint64_t *e) {
  *e = (uint64_t)key << 32 | (uint32_t)~column;
}

// A number for the bits of an element, in the order of the values: -0 is +0, a NaN is the highest.
template <int kind> INLINE uint32_t key_of_bits(uint32_t u) {
  const uint32_t sign = kind == KIND_FP32 ? 0x80000000u : 0x8000u, all = sign | (sign - 1);
  const uint32_t top = kind == KIND_FP32 ? 0x7f800000u : kind == KIND_FP16 ? 0x7c00u : 0x7f80u;
  if ((u & ~sign) > top) return all;
  return u & sign ? sign - (u & ~sign) : u | sign;
}
// The bits of a key that is not a NaN's; of +0 for both zeros.
template <int kind> INLINE uint32_t bits_of_key(uint32_t key) {
  const int32_t sign = kind == KIND_FP32 ? INT32_MIN : 0x8000, above = (int32_t)(key - (uint32_t)sign);
  return (uint32_t)(above < 0 ? sign - above : above);
}
template <int kind> INLINE bool key_is_plain(uint32_t key) {
  return key != (kind == KIND_FP32 ? 0x80000000u : 0x8000u) && key != (kind == KIND_FP32 ? ~0u : 0xffffu);
}
template <int kind> INLINE uint32_t lowest_key(void) {
  return key_of_bits<kind>(span_lowest(kind) & (kind == KIND_FP32 ? ~0u : 0xffffu));
}

// What comes right below the value of a key, in every element of a word. There is nothing below -infinity: where a NaN is
// an element like others it is NaN, which all are above; otherwise it is -infinity, and none of those is listed.
template <int kind, int nan> INLINE uint32_t word_below(uint32_t key) {
  const uint32_t sign = kind == KIND_FP32 ? 0x80000000u : 0x8000u, all = sign | (sign - 1);
  uint32_t u = key > lowest_key<kind>() ? bits_of_key<kind>(key - 1) : nan ? all : span_lowest(kind) & all;
  return kind == KIND_FP32 ? u : u | u << 16;
}

// Which elements of a word are above `low`: bits 0 and 16; bit 0 of fp32. A NaN is where `nan`.
template <int kind, int nan> INLINE uint32_t word_above(uint32_t word, uint32_t low) {
  if (kind == KIND_FP32)
    return nan ? !(__uint_as_float(word) <= __uint_as_float(low))
               : __uint_as_float(word) > __uint_as_float(low);
#if __CUDA_ARCH__ >= 900
  uint32_t is;
  if (kind == KIND_FP16 && nan)
    asm("set.gtu.u32.f16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  else if (kind == KIND_FP16)
    asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  else if (nan)
    asm("set.gtu.u32.bf16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  else
    asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(is) : "r"(word), "r"(low));
  return is & 0x10001u;
#else
  float2 f = widen2(word, kind), g = widen2(low, kind);
  if (nan) return (!(f.x <= g.x) ? 1 : 0) | (!(f.y <= g.y) ? 0x10000 : 0);
  return (f.x > g.x ? 1 : 0) | (f.y > g.y ? 0x10000 : 0);
#endif
}

template <int kind, int nan> INLINE uint32_t larger_word(uint32_t a, uint32_t b) {
  if (kind != KIND_FP32) return nan ? higher2(a, b, kind) : larger2(a, b, kind);
  float x = __uint_as_float(a), y = __uint_as_float(b);
  return __float_as_uint(nan ? higher(x, y) : fmaxf(x, y));
}

INLINE uint32_t lanes_sum(uint32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, v);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
#endif
}
INLINE uint32_t lanes_least(uint32_t v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(~0u, v);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v = min(v, __shfl_xor_sync(~0u, v, o));
  return v;
#endif
}
INLINE uint32_t lanes_most(uint32_t v) {
  return ~lanes_least(~v);
}

INLINE uint32_t remote_word(const uint32_t *here, int rank) {
  uint32_t v = *here;
#if __CUDA_ARCH__ >= 900
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"((uint32_t)__cvta_generic_to_shared(here)), "r"(rank));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(there) : "memory");
#endif
  return v;
}

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

// By the row's threads in this block; a list has room for 256 entries of a warp, for 4096 of a block of 256.
template <class Entry, int threads>
static __device__ __noinline__ void sort_list(Entry *list, int count, int thread) {
  if (threads == 32) {
    if (count <= 64)
      sort_entries<Entry, 2, 32>(list, count, thread);
    else if (count <= 128)
      sort_entries<Entry, 4, 32>(list, count, thread);
    else
      sort_entries<Entry, 8, 32>(list, count, thread);
  } else if (count <= 128) {
    if (thread < 32) {
      if (count <= 64)
        sort_entries<Entry, 2, 32>(list, count, thread);
      else
        sort_entries<Entry, 4, 32>(list, count, thread);
    }
    __syncthreads();
  } else if (count <= 2 * threads)
    sort_entries<Entry, 2, threads>(list, count, thread);
  else if (count <= 4 * threads)
    sort_entries<Entry, 4, threads>(list, count, thread);
  else if (count <= 8 * threads)
    sort_entries<Entry, 8, threads>(list, count, thread);
  else
    sort_entries<Entry, 16, threads>(list, count, thread);
}

// How many of a warp's words' elements are above `below`.
template <int kind, int nan> INLINE uint32_t count_above(const uint32_t *word, uint32_t below) {
  uint32_t found = 0, count = 0;
  if (kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < 8; j++) count += word_above<kind, nan>(word[j], below);
  } else {
#pragma unroll
    for (int j = 0; j < 4; j++) found |= word_above<kind, nan>(word[j], below) << j;
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
  Span x;
  int begin, end; // chunks
  uint64_t row;
  int thread, rank, blocks;
} Part;

template <int threads> INLINE Part part_of(const void *x, int64_t stride, int64_t n, int in, uint64_t m) {
  Part p;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  p.blocks = threads == 32 ? 1 : cluster_blocks();
  p.rank = 0;
#if __CUDA_ARCH__ >= 900
  if (p.blocks > 1) p.rank = (int)cluster_rank();
#endif
  p.row = threads == 32  ? block * (blockDim.x / 32) + threadIdx.x / 32
          : p.blocks > 1 ? block / p.blocks
                         : block;
  p.thread = threads == 32 ? threadIdx.x % 32 : threadIdx.x;
  p.x = span_of((const char *)x + (int64_t)p.row * stride, p.row < m ? n : 0, in);
  int chunks = (int)p.x.chunks, each = p.blocks > 1 ? (chunks + p.blocks - 1) / p.blocks : chunks;
  p.begin = min(each * p.rank, chunks), p.end = min(p.begin + each, chunks);
  return p;
}

// The edge of this thread in a batch: those before the chunks belong to the first, those after them to the last; -1: none.
INLINE int part_edge(const Part &p, bool first, bool last) {
  int e = p.thread;
  bool here = e < p.x.head ? first && p.rank == 0 : e < p.x.edges && last && p.rank == p.blocks - 1;
  return here ? e < p.x.head ? e : (int)p.x.n - p.x.edges + e : -1;
}

// A batch: the chunks of a thread are `threads` apart.
template <int threads> struct Batch {
  Vec v[BATCH];
  uint32_t edge_word;
  int from, edge; // its first chunk; the column of its edge, or -1
  int chunks;     // of this thread
};

template <int kind, int threads> INLINE Batch<threads> load_batch(const Part &p, int at) {
  Batch<threads> b;
  b.from = at + p.thread;
  const uint4 *chunk = (const uint4 *)p.x.body + b.from;
  const uint32_t lowest = span_lowest(kind);
  b.chunks = b.from < p.end ? min(BATCH, (p.end - b.from + threads - 1) / threads) : 0;
#pragma unroll
  for (int u = 0; u < BATCH; u++) {
    b.v[u].v = make_uint4(lowest, lowest, lowest, lowest);
    if (u < b.chunks) b.v[u].v = chunk[u * threads];
  }
  b.edge = part_edge(p, at == p.begin, at + BATCH * threads >= p.end);
  b.edge_word = span_lowest(kind);
  if (b.edge >= 0) {
    if (kind == KIND_FP32)
      b.edge_word = ((const uint32_t *)p.x.at)[b.edge];
    else
      b.edge_word = (b.edge_word & 0xffff0000u) | ((const uint16_t *)p.x.at)[b.edge];
  }
  return b;
}

// Which elements of a batch are above `below`: of chunk u, word j bits 4u + j, and 16 further on the second element's.
template <int kind, int nan, int threads>
INLINE uint32_t batch_above(const Batch<threads> &b, uint32_t below) {
  uint32_t found = 0;
#pragma unroll
  for (int u = 0; u < BATCH; u++) {
    uint32_t of_chunk = 0;
    if (!__any_sync(~0u, u < b.chunks)) break;
#pragma unroll
    for (int j = 0; j < 4; j++) of_chunk |= word_above<kind, nan>(b.v[u].u[j], below) << (4 * u + j);
    if (u < b.chunks) found |= of_chunk;
  }
  return found;
}

// Appends this lane's elements at the bits of `found`, and its edge if `edge_too`; all lanes of a warp together. The list
// has `count` entries before the batch.
template <int kind, int threads, class L>
INLINE void append(const Part &p, const Batch<threads> &b, uint32_t found, bool edge_too, L *list,
                   uint32_t *added, uint32_t count) {
  uint32_t mine = __popc(found) + edge_too, before = mine;
  if (!__any_sync(~0u, mine)) return;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    uint32_t other = __shfl_up_sync(~0u, before, o);
    if (threadIdx.x % 32 >= o) before += other;
  }
  uint32_t base = 0;
  if (threadIdx.x % 32 == 31) base = atomicAdd(added, before);
  uint32_t to = count + __shfl_sync(~0u, base, 31) + before - mine;
  const int per = kind == KIND_FP32 ? 4 : 8, first = p.x.head + b.from * per;
  for (; mine; mine--) {
    int column = b.edge;
    if (found) {
      int bit = 31 - __clz(found);
      found ^= 1u << bit;
      column = first + (bit >> 2 & 3) * (threads * per) + (bit & 3) * (per / 4) + (bit >> 4);
    }
    uint32_t bits =
        kind == KIND_FP32 ? ((const uint32_t *)p.x.at)[column] : ((const uint16_t *)p.x.at)[column];
    if (to < L::room) make_entry(key_of_bits<kind>(bits), (uint32_t)column, &list->entry[to]);
    to++;
  }
}

// Sorts the list and cuts it to k entries. The key of the last one, or 0 where there are fewer.
template <int threads, class L> INLINE uint32_t cut_list(L *list, uint32_t *count, uint32_t k, int thread) {
  if (*count < k) return 0;
  sort_list<typename L::Item, threads>(list->entry, (int)*count, thread);
  *count = k;
  return entry_key(list->entry[k - 1]);
}

// How many warps of a row, in all blocks of a cluster, have a chunk for each lane.
template <int warps> INLINE uint32_t full_warps(const Part &p) {
  int each = ((int)p.x.chunks + p.blocks - 1) / p.blocks, of_last = (int)p.x.chunks - each * (p.blocks - 1);
  if (of_last < 0 || each == 0) return 0; // blocks without chunks: a short row, all of which is listed
  return min(warps, each / 32) * (p.blocks - 1) + min(warps, of_last / 32);
}

// A key that at least k elements reach, from the first batch; all blocks of a cluster together.
template <int kind, int nan, int threads, class L>
INLINE uint32_t first_low(const Part &p, const Batch<threads> &b, L *list, uint32_t k) {
  const int warps = threads / 32, words = kind == KIND_FP32 ? 8 : 4;
  uint32_t word[words], low = ~0u;
#pragma unroll
  for (int j = 0; j < words; j++) {
    word[j] = b.v[j / 4].u[j % 4];
#pragma unroll
    for (int u = words / 4; u < BATCH; u += words / 4)
      word[j] = larger_word<kind, nan>(word[j], b.v[u + j / 4].u[j % 4]);
  }
  word[0] = larger_word<kind, nan>(word[0], b.edge_word);
#pragma unroll
  for (int j = 0; j < words && !nan; j++)
    word[j] = larger_word<kind, nan>(word[j], span_lowest(kind)); // no NaN
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
INLINE uint32_t append_slowly(const Part &p, const Batch<threads> &b, uint32_t low, L *list, uint32_t *count,
                              uint32_t k) {
#pragma unroll 1
  for (int i = 0; i < 4 * BATCH; i++) {
    if (*count + 3 * threads > L::room) low = max(low, cut_list<threads>(list, count, k, p.thread));
    uint32_t below = word_below<kind, nan>(low);
    uint32_t found = batch_above<kind, nan>(b, below) & 0x10001u << i;
    bool edge = i == 0 && b.edge >= 0 && word_above<kind, nan>(b.edge_word, below) & 1;
    row_sync<threads>();
    if (p.thread == 0) list->added[3] = 0;
    row_sync<threads>();
    append<kind>(p, b, found, edge, list, &list->added[3], *count);
    row_sync<threads>();
    *count += list->added[3];
  }
  return max(low, cut_list<threads>(list, count, k, p.thread) + (*count >= k));
}

// The lists of the other blocks of a cluster, behind that of the first.
template <int threads, class L>
INLINE void gather_lists(const Part &p, L *list, uint32_t *count, uint32_t k) {
  if (p.thread == 0) list->count = *count;
  cluster_barrier();
  if (p.rank) return;
  for (int i = 1; i < p.blocks; i++) {
    uint32_t there = remote_word(&list->count, i);
    for (uint32_t from = 0; from < there;) {
      if (*count == L::room) cut_list<threads>(list, count, k, p.thread);
      uint32_t some = min(there - from, L::room - *count);
      for (uint32_t j = p.thread; j < some; j += threads)
        list->entry[*count + j] = remote_word(&list->entry[from + j], i);
      __syncthreads();
      *count += some, from += some;
    }
  }
}

// The list of the first block: the k largest, in order; how many there are. Of the others nothing. `nan`: NaN are the largest
// of all; otherwise neither they nor -infinity are listed.
template <int kind, int nan, int threads, class L>
INLINE uint32_t list_largest(const Part &p, L *list, uint32_t k) {
  uint32_t count = 0, low = 0, turn = 0;
  if (p.thread < 3) list->added[p.thread] = 0;
  row_sync<threads>();
#pragma unroll 1
  for (int at = p.begin; at == p.begin || at < p.end; at += BATCH * threads) {
    Batch<threads> b = load_batch<kind, threads>(p, at);
    if (at == p.begin && 2 * k < (uint32_t)p.x.n) low = first_low<kind, nan>(p, b, list, k);
    uint32_t below = word_below<kind, nan>(low), next = turn == 2 ? 0 : turn + 1;
    bool edge = b.edge >= 0 && word_above<kind, nan>(b.edge_word, below) & 1;
    append<kind>(p, b, batch_above<kind, nan>(b, below), edge, list, &list->added[turn], count);
    if (p.thread == 0) list->added[next] = 0;
    row_sync<threads>();
    uint32_t all = count + list->added[turn];
    uint32_t expected = 2 * all - count, left = at + BATCH * threads < p.end;
    if (all > L::room)
      low = append_slowly<kind, nan>(p, b, low, list, &count, k);
    else if (count = all, left && (expected > L::room || all > 4 * k))
      low = max(low, cut_list<threads>(list, &count, k, p.thread) + (all >= k));
    turn = next;
  }
  if (p.blocks > 1) gather_lists<threads>(p, list, &count, k);
  if (p.rank) return 0;
  sort_list<typename L::Item, threads>(list->entry, (int)count, p.thread);
  return min(count, k);
}

#endif
