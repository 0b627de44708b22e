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

// From shared memory of the cluster's block `rank`; address: in one's own.
INLINE float4 cluster_load(uint32_t address, int rank) {
  float4 v;
  asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %4, %5;\nld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address), "r"(rank)
               : "memory");
  return v;
}

// SWAPPED: the accumulators' rows are C's columns. PITCH: so that a warp's stores are to different banks.
template <int DOWN, int ACROSS, int SWAPPED> struct GemmSums {
  enum { PITCH = ACROSS + (SWAPPED ? 4 : 8) };
  float at[DOWN][PITCH];

  // row: the thread's first in the accumulators, as GemmPlace's.
  template <int REGS> __device__ __forceinline__ void leave(const float (&d)[REGS], int row) {
    int column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < REGS; i += 2) {
      int r = row + i / 2 % 2 * 8, c = column + i / 4 * 8;
      if (SWAPPED) at[c][r] = d[i], at[c + 1][r] = d[i + 1];
      else *(float2 *)&at[r][c] = make_float2(d[i], d[i + 1]);
    }
  }

  __device__ __forceinline__ float4 sum(int row, int column, int parts) {
    uint32_t mine = shared_address(&at[row][column]);
    float4 of[GEMM_PARTS], all = cluster_load(mine, 0);
#pragma unroll
    for (int i = 1; i < GEMM_PARTS; i++)
      if (i < parts) of[i] = cluster_load(mine, i);
#pragma unroll
    for (int i = 1; i < GEMM_PARTS; i++)
      if (i < parts) all.x += of[i].x, all.y += of[i].y, all.z += of[i].z, all.w += of[i].w;
    return all;
  }

  // Four columns at a time of this block's part of the tile, whose first row and column of C are given.
  __device__ __forceinline__ void finish(const GemmEpilogue *e, int64_t m, int64_t n, int row, int column, int batch, int rank, int parts) {
    bool gated = e->activation == GEMM_SILU_MUL, at_once = gemm_stores_four(e);
    float alpha = gemm_alpha(e);
    int across = gated ? ACROSS / 2 : ACROSS, quads = (int)min((int64_t)DOWN, m - row) * across / 4;
    for (int q = quads * rank / parts + (int)threadIdx.x; q < quads * (rank + 1) / parts; q += GEMM_CONSUMERS) {
      int r = q * 4 / across, c = q * 4 % across;
      float4 v = sum(r, c, parts), up = gated ? sum(r, c + across, parts) : v;
      float sums[4] = {v.x, v.y, v.z, v.w}, ups[4] = {up.x, up.y, up.z, up.w};
      gemm_finish_four(e, alpha, at_once, batch, row + r, column + c, n, sums, ups);
    }
  }
};

#endif
