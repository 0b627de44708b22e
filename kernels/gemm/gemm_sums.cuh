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

// From shared memory of the cluster's block `rank`; address: in one's own. Zeros, and no load, where there is no such block.
INLINE float4 cluster_load(uint32_t address, int rank, int blocks) {
  float4 v = {0, 0, 0, 0};
  asm volatile(
      "{\n.reg .b32 there;\n.reg .pred is;\nsetp.lt.s32 is, %5, %6;\n@is mapa.shared::cluster.u32 there, %4, %5;\n"
      "@is ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
      : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
      : "r"(address), "r"(rank), "r"(blocks)
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

  // All loads are under way before the first is added.
  __device__ __forceinline__ float4 sum(int row, int column, int parts) {
    uint32_t mine = shared_address(&at[row][column]);
    float4 of[GEMM_PARTS], all;
#pragma unroll
    for (int i = 0; i < GEMM_PARTS; i++) of[i] = cluster_load(mine, i, parts);
    all = of[0];
#pragma unroll
    for (int i = 1; i < GEMM_PARTS; i++) all.x += of[i].x, all.y += of[i].y, all.z += of[i].z, all.w += of[i].w;
    return all;
  }

  // Four columns at a time of this block's part of the tile, whose first row and column of C are given; of large tiles two fours.
  __device__ __forceinline__ void finish(const GemmEpilogue *e, int64_t m, int64_t n, int row, int column, int batch, int rank, int parts) {
    enum { AT_ONCE = DOWN * ACROSS > 128 * 64 ? 2 : 1 };
    bool gated = e->activation == GEMM_SILU_MUL, stores_four = gemm_stores_four(e);
    float alpha = gemm_alpha(e);
    int across = gated ? ACROSS / 2 : ACROSS, quads = (int)min((int64_t)DOWN, m - row) * across / 4, last = quads * (rank + 1) / parts;
    for (int q = quads * rank / parts + (int)threadIdx.x; q < last; q += AT_ONCE * GEMM_CONSUMERS) {
      float4 v[AT_ONCE], up[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int at = min(q + i * GEMM_CONSUMERS, last - 1) * 4, r = at / across, c = at % across;
        v[i] = sum(r, c, parts), up[i] = gated ? sum(r, c + across, parts) : v[i];
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int at = (q + i * GEMM_CONSUMERS) * 4;
        float sums[4] = {v[i].x, v[i].y, v[i].z, v[i].w}, ups[4] = {up[i].x, up[i].y, up[i].z, up[i].w};
        if (at < last * 4) gemm_finish_four(e, alpha, stores_four, batch, row + at / across, column + at % across, n, sums, ups);
      }
    }
  }
};

#endif
