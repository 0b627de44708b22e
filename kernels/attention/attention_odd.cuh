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
// goes to `ends`. At an SM's share of an H200's bandwidth, 15 bytes a cycle to be read, the fetching warp has 34 cycles for 32 pieces and a shifting
// one 100: nothing is asked for each piece that is the same for all, and nothing branches.
template <int D> struct OddTile {
  enum { PIECES = D / 8, THREADS = 128, FETCHERS = 32, SHIFTERS = THREADS - FETCHERS, AT_ONCE = 2 };
  uint32_t tile, ends, box; // shared memory: the tile, 16 bytes of each of its rows; bytes of a box of 64 columns
  static __device__ __forceinline__ bool fetches() {
    return threadIdx.x % THREADS < FETCHERS;
  }
  __device__ __forceinline__ uint32_t place(uint32_t row, uint32_t piece) const {
    return tile + piece / 8 * box + row * 128 + (piece % 8 ^ row % 8) * 16;
  }

  // `count` rows, a multiple of 16; zeros from `there` on.
  struct Rows {
    Extent all;
    const char *from;
    int64_t stride; // bytes
    int count, there;
    // Whether nothing beside the tensor is read with them.
    __device__ __forceinline__ bool inside() const {
      return from - 15 >= all.first && from + (there - 1) * stride + D * 2 + 15 <= all.end;
    }
  };
  static __device__ __forceinline__ Rows rows_of(const AttentionParams &p, int which, int b, int token, int head, int count, int there) {
    OddTensor t = odd_tensor(p, which, D);
    return {t.all, t.all.first + (b * t.batch + token * t.row + (int64_t)head * D) * 2, t.row * 2, count, min(there, count)};
  }

  // Zeros where there is nothing.
  template <bool INSIDE> static __device__ __forceinline__ void fetch_piece(const Rows &r, uint32_t to, const char *at, bool there) {
    const char *from = at - ((uintptr_t)at & 15);
    copy_async(to, from, there && (INSIDE || (from >= r.all.first && from + 16 <= r.all.end)));
  }
  template <bool INSIDE> __device__ __forceinline__ void fetch_rows(const Rows &r) const {
    enum { STEP = FETCHERS / PIECES };
    int thread = threadIdx.x % FETCHERS, first = thread / PIECES, piece = thread % PIECES;
    const char *at = r.from + first * r.stride + piece * 16;
#pragma unroll(INSIDE ? 4 : 1)
    for (int i = first; i < r.count; i += STEP, at += STEP * r.stride) fetch_piece<INSIDE>(r, place(i, piece), at, i < r.there);
#pragma unroll 1
    for (int i = thread; i < r.count; i += FETCHERS) {
      const char *end = r.from + i * r.stride + D * 2;
      fetch_piece<INSIDE>(r, ends + i * 16, end, i < r.there && (uintptr_t)end & 15);
    }
  }
  __device__ __forceinline__ void fetch(const Rows &r) const {
    if (r.inside()) fetch_rows<true>(r);
    else fetch_rows<false>(r);
  }

  // A row's pieces are lanes' of one warp, which have all read theirs before any is written. Whole warps' turns divide the rows there are.
  enum { STEP = 32 / PIECES, TURN = AT_ONCE * STEP };
  static __device__ __forceinline__ int first_row() {
    return (threadIdx.x % THREADS - FETCHERS) / 32 * TURN + threadIdx.x % 32 / PIECES;
  }
  __device__ __forceinline__ void shift(const Rows &r) const {
    static_assert(16 % TURN == 0, "");
    uint32_t piece = threadIdx.x % PIECES, from = (uint32_t)(uintptr_t)r.from, stride = (uint32_t)r.stride;
#pragma unroll 1
    for (int top = first_row(); top < r.count; top += SHIFTERS / 32 * TURN) {
      uint4 lo[AT_ONCE], hi[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int row = top + i * STEP;
        lo[i] = load_shared(place(row, piece));
        hi[i] = load_shared(piece + 1 < PIECES ? place(row, piece + 1) : ends + row * 16);
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int row = top + i * STEP;
        store_piece(place(row, piece), funnel(lo[i], hi[i], (from + row * stride) & 15, 2));
      }
    }
    if (!r.inside()) mend(r, piece);
  }

  // What was not fetched since more would have been read than the tensor has, by the thread that has shifted it.
  __device__ __forceinline__ void mend(const Rows &r, int piece) const {
#pragma unroll 1
    for (int top = first_row(); top < r.there; top += SHIFTERS / 32 * TURN)
#pragma unroll 1
      for (int row = top; row < min(top + TURN, r.there); row += STEP) {
        const char *at = r.from + row * r.stride + piece * 16;
        if (!is_around(at, r.all.first, r.all.end)) copy_elements(place(row, piece), at, true, 2);
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
