// Rows that begin at any element, 16 bytes at a time into shared memory: by two aligned loads and a shift, several of them under way together
// (load_pieces), or on sm_90a, where registers do not hold all that should be, as they are, shifted there (OddTile).
#ifndef SOL_KERNELS_ATTENTION_ODD_CUH
#define SOL_KERNELS_ATTENTION_ODD_CUH

#include "attention/attention.h"
#include "funnel.cuh"
#include "hopper.cuh"
#include "mma.cuh"

// A tensor's bytes: what is read beside a row's own elements must be among them.
typedef struct Extent {
  const char *first, *end;
} Extent;

// heads: of d elements. With starts the stride between sequences is 0, and tokens are all sequences'.
INLINE Extent extent_of(const AttentionParams &p, const void *first, int64_t batch, int64_t row, int tokens, int heads, int d) {
  return {(const char *)first, (const char *)first + (batch * (p.batch - 1) + row * (tokens - 1) + (int64_t)heads * d) * 2};
}
INLINE Extent extent_of_queries(const AttentionParams &p, int d) {
  return extent_of(p, p.q, p.q_batch, p.q_row, p.q_starts ? p.q_tokens : p.queries, p.heads, d);
}
INLINE Extent extent_of_keys(const AttentionParams &p, const void *first, int64_t batch, int64_t row, int d) {
  return extent_of(p, first, batch, row, p.kv_starts ? p.kv_tokens : p.keys, p.heads / p.group, d);
}

INLINE void store_piece(uint32_t to, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// COUNT pieces: number i comes from from(i), zeros where that is NULL, to to(i). At the tensor's ends a piece is read by elements. By whole warps.
template <int COUNT, class From, class To> INLINE void load_pieces(const Extent &e, From from, To to) {
  Around a[COUNT];
  uint32_t shift[COUNT], alone = 0;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const char *at = from(i);
    bool around = at && is_around(at, e.first, e.end);
    a[i] = load_around(at, around), shift[i] = (uint32_t)(uintptr_t)at & 15;
    if (at && !around) alone |= 1u << i;
  }
#pragma unroll
  for (int i = 0; i < COUNT; i++) store_piece(to(i), funnel(a[i].lo, a[i].hi, shift[i], 2));
  uint32_t any = __reduce_or_sync(~0u, alone);
#pragma unroll 1
  for (int i = 0; any >> i; i++) {
    const char *at = from(i);
    if (alone >> i & 1) copy_elements(to(i), at, true, 2);
  }
}

#if __CUDA_ARCH_FEAT_SM90_ALL

// A tensor's rows wherever they begin. With starts its sequences are one.
typedef struct OddTensor {
  Extent all;
  int64_t batch, row; // strides
} OddTensor;
enum { ODD_QUERIES, ODD_KEYS, ODD_VALUES, ODD_TENSORS };
INLINE OddTensor odd_tensor(const AttentionParams &p, int which, int d) {
  if (which == ODD_QUERIES) return {extent_of_queries(p, d), p.q_batch, p.q_row};
  const void *first = which == ODD_KEYS ? p.k : p.v;
  int64_t batch = which == ODD_KEYS ? p.k_batch : p.v_batch, row = which == ODD_KEYS ? p.k_row : p.v_row;
  return {extent_of_keys(p, first, batch, row, d), batch, row};
}

INLINE uint4 load_shared(uint32_t from) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(from) : "memory");
  return v;
}

// The barrier counts one arrival of this thread when its copies so far are there.
INLINE void copy_arrive(uint64_t *bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(bar)) : "memory");
}

// A tile's rows that begin at any element, to where a tensor copy would have them. One warp of a warpgroup fetches the 16-byte pieces that they span, by
// cp.async, so that registers hold nothing of what is on its way; the others shift them in place. A row spans one piece more than it has, which
// goes to `ends`.
template <int D> struct OddTile {
  enum { PIECES = D / 8, THREADS = 128, FETCHERS = 32, SHIFTERS = THREADS - FETCHERS, AT_ONCE = 2 };
  uint32_t tile, ends, box; // shared memory: the tile, 16 bytes of each of its rows; bytes of a box of 64 columns
  static __device__ __forceinline__ bool fetches() {
    return threadIdx.x % THREADS < FETCHERS;
  }
  __device__ __forceinline__ uint32_t place(int row, int piece) const {
    return tile + piece / 8 * box + row * 128 + (piece % 8 ^ row % 8) * 16;
  }

  // `count` rows, a multiple of 16, to row `first` and on; zeros from `there` on.
  struct Rows {
    Extent all;
    const char *from;
    int64_t stride; // bytes
    int first, count, there;
  };
  static __device__ __forceinline__ Rows rows_of(const AttentionParams &p, int which, int b, int token, int head, int first, int count, int there) {
    OddTensor t = odd_tensor(p, which, D);
    return {t.all, t.all.first + (b * t.batch + token * t.row + (int64_t)head * D) * 2, t.row * 2, first, count, min(there, count)};
  }

  static __device__ __forceinline__ void fetch_piece(const Extent &all, uint32_t to, const char *from) {
    if (from >= all.first && from + 16 <= all.end) copy_async(to, from, true);
  }
  __device__ __forceinline__ void fetch(const Rows &r) const {
    int thread = threadIdx.x % FETCHERS, piece = thread % PIECES;
    const char *at = r.from + thread / PIECES * r.stride;
#pragma unroll 2
    for (int i = thread / PIECES; i < r.there; i += FETCHERS / PIECES, at += FETCHERS / PIECES * r.stride)
      fetch_piece(r.all, place(r.first + i, piece), at - ((uintptr_t)at & 15) + piece * 16);
    for (int i = thread; i < r.there; i += FETCHERS) {
      const char *row = r.from + i * r.stride;
      uint32_t shift = (uintptr_t)row & 15;
      if (shift) fetch_piece(r.all, ends + (r.first + i) * 16, row - shift + D * 2);
    }
  }

  // A row's pieces are lanes' of one warp, which have all read theirs before any is written; all rows of a warp are there, or none. At the tensor's ends a
  // piece is read by elements.
  __device__ __forceinline__ void shift(const Rows &r) const {
    enum { STEP = SHIFTERS / PIECES };
    int thread = threadIdx.x % THREADS - FETCHERS, piece = thread % PIECES;
    const char *from = r.from + thread / PIECES * r.stride + piece * 16;
    int64_t step = STEP * r.stride;
#pragma unroll 1
    for (int top = thread / PIECES; top < r.count; top += AT_ONCE * STEP, from += AT_ONCE * step) {
      uint4 lo[AT_ONCE], hi[AT_ONCE];
      uint32_t alone = 0;
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int row = r.first + top + i * STEP;
        const char *at = from + i * step;
        bool there = top + i * STEP < r.there, around = there && is_around(at, r.all.first, r.all.end);
        lo[i] = hi[i] = make_uint4(0, 0, 0, 0);
        if (around) lo[i] = load_shared(place(row, piece));
        if (around && (uintptr_t)at & 15) hi[i] = load_shared(piece + 1 < PIECES ? place(row, piece + 1) : ends + row * 16);
        alone |= (there && !around) << i;
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        uint32_t to = place(r.first + top + i * STEP, piece), by = (uint32_t)(uintptr_t)(from + i * step) & 15;
        if (top + i * STEP < r.count) store_piece(to, funnel(lo[i], hi[i], by, 2));
        if (alone >> i & 1) copy_elements(to, from + i * step, true, 2);
      }
    }
  }

  // bring, between take and give: what the thread does to some rows of a tile. fetched, full, empty: the tile's barriers.
  static __device__ __forceinline__ void take(uint64_t *fetched, uint64_t *empty, uint32_t parity) {
    if (fetches()) barrier_wait(empty, parity ^ 1);
    else barrier_wait(fetched, parity);
  }
  __device__ __forceinline__ void bring(const Rows &r) const {
    if (fetches()) fetch(r);
    else shift(r);
  }
  static __device__ __forceinline__ void give(uint64_t *fetched, uint64_t *full) {
    if (fetches()) return copy_arrive(fetched);
    async_fence();
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(full, 0);
  }
};
#endif

#endif
