// The end of a GEMM whose k was shared out among the blocks of a cluster, on sm_90a: each block leaves its sums of the
// tile, as they are in C, in its own shared memory; then each adds up all blocks' sums of its part of the tile, always
// in the same order, finishes them and writes them.
#ifndef SOL_KERNELS_GEMM_SUMS_CUH
#define SOL_KERNELS_GEMM_SUMS_CUH

#include "gemm/gemm_epilogue.cuh"
#include "hopper.cuh"

INLINE uint32_t cluster_size(void) {
  uint32_t size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

// Which of the grid's clusters, along x.
INLINE uint32_t cluster_index(void) {
  uint32_t index;
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(index));
  return index;
}

// Where shared memory of the cluster's block `rank` has what is at `address` in one's own.
INLINE uint32_t cluster_address(uint32_t address, int rank) {
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

// Zeros, and no load, where there is none.
INLINE float4 cluster_load(uint32_t address, bool there) {
  float4 v = {0, 0, 0, 0};
  asm volatile("{\n.reg .pred is;\nsetp.ne.s32 is, %5, 0;\n@is ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\n}"
               : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
               : "r"(address), "r"((int)there)
               : "memory");
  return v;
}

// Which part of k a block has, of how many; its rank in the cluster, and how far apart the ranks are of blocks with the same tile.
struct GemmPart {
  int mine;
  GemmDivisor count;
  int rank, apart;
};

// Sums of 128 rows of accumulators by WIDE columns, as they are in C: swapped, the accumulators' rows are C's columns. pitch: so that a
// warp's stores are to different banks.
template <int WIDE> struct GemmSums {
  enum { PITCH = WIDE + 8, PITCH_SWAPPED = 128 + 4 };
  float at[128 * PITCH > WIDE * PITCH_SWAPPED ? 128 * PITCH : WIDE * PITCH_SWAPPED];

  // row: the thread's first in the accumulators, as GemmPlace's.
  template <int REGS> __device__ __forceinline__ void leave(const float (&d)[REGS], int row, bool swapped) {
    int column = threadIdx.x % 4 * 2;
    if (swapped) {
      float *to = at + column * PITCH_SWAPPED + row;
#pragma unroll
      for (int i = 0; i < REGS; i++) to[(i / 4 * 8 + i % 2) * PITCH_SWAPPED + i / 2 % 2 * 8] = d[i];
    } else {
      float *to = at + row * PITCH + column;
#pragma unroll
      for (int i = 0; i < REGS; i += 2) *(float2 *)&to[i / 2 % 2 * 8 * PITCH + i / 4 * 8] = make_float2(d[i], d[i + 1]);
    }
  }

  // The block's part of the tile, in fours of a row's columns. fours: of a row; skip: elements from a row's end to the next one.
  struct Places {
    int first, last, fours, inverse, skip;
    __device__ __forceinline__ Places(int64_t rows_left, GemmPart part, bool swapped, bool gated) {
      int across = (swapped ? 128 : WIDE) / (gated ? 2 : 1), rows = (int)max(min((int64_t)(swapped ? WIDE : 128), rows_left), (int64_t)0);
      fours = across / 4, skip = (swapped ? PITCH_SWAPPED : PITCH) - across;
      inverse = (swapped ? (1 << 20) / 32 : ((1 << 20) + WIDE / 4 - 1) / (WIDE / 4)) * (gated ? 2 : 1);
      first = gemm_divide(rows * fours * part.mine, part.count), last = gemm_divide(rows * fours * (part.mine + 1), part.count);
    }
    __device__ __forceinline__ int row(int four) const { // four / fours, exact of what a tile has
      return four * inverse >> 20;
    }
    __device__ __forceinline__ int byte(int four) const { // in the sums
      return (four * 4 + row(four) * skip) * 4;
    }
  };

  // Blocks' sums of four columns, always in the same order: MOST is at least part.count. from: where each block's sums begin.
  template <int MOST> static __device__ __forceinline__ float4 sum(const uint32_t (&from)[MOST], int byte, int count) {
    float4 of[MOST], all = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < MOST; i++) of[i] = cluster_load(from[i] + byte, i < count);
#pragma unroll
    for (int i = 0; i < MOST; i++) all.x += of[i].x, all.y += of[i].y, all.z += of[i].z, all.w += of[i].w;
    return all;
  }

  // Where each block's sums begin.
  template <int MOST> __device__ __forceinline__ void find(uint32_t (&from)[MOST], GemmPart part) {
#pragma unroll
    for (int i = 0; i < MOST; i++)
      from[i] = cluster_address(shared_address(at), part.rank + (min(i, part.count.by - 1) - part.mine) * part.apart);
  }

  // Up to MOST parts, nothing but alpha, and fours that are whole: blocks do nothing else meanwhile, so that every instruction counts. Eight
  // loads are under way at a time.
  template <int MOST>
  __device__ __forceinline__ void finish_plain(const GemmEpilogue *e, int64_t m, int64_t n, int row, int column, int batch, GemmPart part, bool swapped) {
    enum { AT_ONCE = GEMM_PARTS / MOST };
    Places p(m - row, part, swapped, false);
    float alpha = gemm_alpha(e);
    int size = e->out_kind == KIND_FP32 ? 4 : 2, left = (int)min(n - column, (int64_t)INT_MAX);
    char *to = (char *)e->c + (batch * e->c_batch_stride + row * e->c_stride + column) * size;
    uint32_t from[MOST];
    find(from, part);
#pragma unroll 1
    for (int q = p.first + (int)threadIdx.x; q < p.last; q += AT_ONCE * GEMM_CONSUMERS) {
      float4 v[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) v[i] = sum(from, p.byte(min(q + i * GEMM_CONSUMERS, p.last - 1)), part.count.by);
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int four = q + i * GEMM_CONSUMERS, r = p.row(four), c = (four - r * p.fours) * 4;
        if (four < p.last && c < left)
          gemm_store_four(to + (r * e->c_stride + c) * size, e->out_kind, v[i].x * alpha, v[i].y * alpha, v[i].z * alpha, v[i].w * alpha);
      }
    }
  }

  __device__ __forceinline__ void finish_any(const GemmEpilogue *e, int64_t m, int64_t n, int row, int column, int batch, GemmPart part, bool swapped) {
    bool gated = e->activation == GEMM_SILU_MUL, stores_four = gemm_stores_four(e);
    Places p(m - row, part, swapped, gated);
    float alpha = gemm_alpha(e);
    uint32_t from[GEMM_PARTS];
    find(from, part);
#pragma unroll 1
    for (int four = p.first + (int)threadIdx.x; four < p.last; four += GEMM_CONSUMERS) {
      float4 v = sum(from, p.byte(four), part.count.by), up = gated ? sum(from, p.byte(four) + p.fours * 16, part.count.by) : v;
      float sums[4] = {v.x, v.y, v.z, v.w}, ups[4] = {up.x, up.y, up.z, up.w};
      int r = p.row(four);
      gemm_finish_four(e, alpha, stores_four, batch, row + r, column + (four - r * p.fours) * 4, n, sums, ups);
    }
  }

  // This block's part of the tile, whose first row and column of C are given.
  __device__ __forceinline__ void finish(const GemmEpilogue *e, int64_t m, int64_t n, int row, int column, int batch, GemmPart part,
                                         bool swapped) {
    bool plain = e->activation == GEMM_LINEAR && e->beta == 0 && !e->bias && !e->residual && n % 4 == 0 && gemm_stores_four(e);
    if (!plain) finish_any(e, m, n, row, column, batch, part, swapped);
    else if (part.count.by <= 2) finish_plain<2>(e, m, n, row, column, batch, part, swapped);
    else if (part.count.by <= 4) finish_plain<4>(e, m, n, row, column, batch, part, swapped);
    else finish_plain<GEMM_PARTS>(e, m, n, row, column, batch, part, swapped);
  }
};

#endif
