// A row of any length at any address, held in the shared memory of the blocks of a cluster, or of one block: it is read
// from global memory once, then as often as wanted. What does not fit into shared memory is read again each time.
//
// A row is a Span: 16-byte chunks, and single elements ("edges") before and after them. Warps of all blocks have
// consecutive segments of the chunks, lanes of a warp neighbouring chunks of its segment; edges belong to the first
// threads of the first block. Short rows share a block: each has a warp, or a power of two of its lanes. A thread reads
// only what it has copied itself, so no barrier is needed. The number of blocks and threads is known at run time: they
// follow from the row's length alone (src/ops/held.h), and with them the order of every sum.
#ifndef SOL_KERNELS_HELD_CUH
#define SOL_KERNELS_HELD_CUH

#include "held.h"
#include "row.cuh"
#include "span.cuh"

typedef struct Held {
  Span x;
  uint4 *mine;   // this lane's chunks in shared memory, `lanes` apart
  int64_t first; // its first chunk; those after it are `lanes` apart
  int count, kept; // of its chunks; of those in shared memory
  uint64_t row;
  int lanes, lane, warps, warp; // of a warp on the row, and this one's place; warps of this block on it, and its place
  int rank, blocks, turn; // place in the cluster and its size; which half of HeldShared is next
} Held;

typedef struct HeldShared {
  uint64_t warps[2][32][3];
  uint64_t block[2][3];
} HeldShared;

INLINE int cluster_blocks(void) {
  uint32_t n = 1;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(n));
#endif
  return (int)n;
}

// The row of this thread: x begins `stride` bytes after that of the row before. Beyond the last row: one of no elements.
// s.shared: bytes at `memory`.
INLINE Held held_of(const void *x, int64_t stride, int64_t n, int in, uint4 *memory, HeldShape s) {
  Held h;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  bool many = s.rows > 1;
  h.lanes = s.lanes;
  h.lane = threadIdx.x & (s.lanes - 1);
  h.warps = many ? 1 : blockDim.x / 32;
  h.warp = many ? 0 : threadIdx.x / 32;
  h.blocks = cluster_blocks();
  h.rank = 0;
#if __CUDA_ARCH__ >= 900
  if (h.blocks > 1) h.rank = (int)cluster_rank();
#endif
  h.row = h.blocks > 1 ? block / h.blocks : many ? block * s.rows + threadIdx.x / s.lanes : block;
  h.x = span_of((const char *)x + (int64_t)h.row * stride, h.row < s.m ? n : 0, in);
  uint32_t all = h.lanes * h.warps * h.blocks;
  int64_t of_warp = h.x.chunks >> 31 ? (h.x.chunks + all - 1) / all : ((uint32_t)h.x.chunks + all - 1) / all;
  of_warp *= h.lanes;
  int room = s.shared / (16 * s.lanes * h.warps * s.rows); // chunks of a thread
  int64_t begin = (h.rank * h.warps + h.warp) * of_warp, end = min(begin + of_warp, h.x.chunks);
  h.first = begin + h.lane;
  h.count = h.first < end ? (int)((end - h.first + h.lanes - 1) / h.lanes) : 0;
  h.kept = min(h.count, room);
  h.mine = memory + (threadIdx.x - h.lane) * room + h.lane;
  h.turn = 0;
  return h;
}

// This thread's place among those of the row in its block.
INLINE int held_thread(const Held &h) { return h.warp * 32 + h.lane; }

// A barrier of the row's threads in this block, which are so many warps.
INLINE void warps_sync(int warps) {
  if (warps == 1) __syncwarp();
  else __syncthreads();
}

// Copies this thread's chunks into shared memory; several loads are in flight.
INLINE void held_fill(const Held &h) {
#pragma unroll 8
  for (int k = 0; k < h.kept; k++) {
    const uint4 *from = (const uint4 *)h.x.body + h.first + h.lanes * k;
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(h.mine + h.lanes * k)),
                 "l"(from)
                 : "memory");
#else
    h.mine[h.lanes * k] = *from;
#endif
  }
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

INLINE uint4 held_vector(const Held &h, int k) {
  return k < h.kept ? h.mine[h.lanes * k] : ((const uint4 *)h.x.body)[h.first + h.lanes * k];
}
INLINE int64_t held_column(const Held &h, int k, int in) { return h.x.head + (h.first + h.lanes * k) * (16 / in); }

// The column of this thread's edge number i; -1: it has none. Threads of a short row may have several.
INLINE int64_t held_edge(const Held &h, int i) {
  int e = held_thread(h) + i * (h.warps * h.lanes);
  return h.rank == 0 && e < h.x.edges ? span_edge(&h.x, e) : -1;
}

INLINE void cluster_barrier(void) {
  cluster_arrive();
  cluster_wait();
}

// A variable of this block's shared memory, of 4 or 8 bytes, as block `rank` of the cluster has it.
template <class Word> INLINE Word remote_word(const Word *here, int rank) {
  Word v = *here;
#if __CUDA_ARCH__ >= 900
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"((uint32_t)__cvta_generic_to_shared(here)), "r"(rank));
  if constexpr (sizeof(Word) == 4) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(there) : "memory");
  else asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(v) : "r"(there) : "memory");
#endif
  return v;
}

// No block of a cluster may end while others read its shared memory: held_leave comes after the last fold, held_end last.
INLINE void held_leave(const Held &h) {
  if (h.blocks > 1) cluster_arrive();
}
INLINE void held_end(const Held &h) {
  if (h.blocks > 1) cluster_wait();
}

// Two floats in a word, for folds.
INLINE uint64_t word_of(float2 v) { return (uint64_t)__float_as_uint(v.y) << 32 | __float_as_uint(v.x); }
INLINE float2 floats_of(uint64_t v) {
  return make_float2(__uint_as_float((uint32_t)v), __uint_as_float((uint32_t)(v >> 32)));
}

#endif
