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

// From shared memory of the cluster's block `rank`; address: in one's own. Zeros, and no load, where there is none.
INLINE float4 cluster_load(uint32_t address, int rank, bool there) {
  float4 v = {0, 0, 0, 0};
  asm volatile(
      "{\n.reg .b32 there;\n.reg .pred is;\nsetp.ne.s32 is, %6, 0;\n@is mapa.shared::cluster.u32 there, %4, %5;\n"
      "@is ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}"
      : "+f"(v.x), "+f"(v.y), "+f"(v.z), "+f"(v.w)
      : "r"(address), "r"(rank), "r"((int)there)
      : "memory");
  return v;
}

// Which part of k a block has, of how many; its rank in the cluster, and how far apart the ranks are of blocks with the same tile.
struct GemmPart {
  int mine, count, rank, apart;
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

  // Four loads are under way at a time.
  __device__ __forceinline__ float4 sum(int place, GemmPart part) {
    uint32_t mine = shared_address(&at[place]);
    float4 all = {0, 0, 0, 0};
#pragma unroll
    for (int first = 0; first < GEMM_PARTS && first < part.count; first += 4) {
      float4 of[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        of[i] = cluster_load(mine, part.rank + (first + i - part.mine) * part.apart, first + i < part.count);
#pragma unroll
      for (int i = 0; i < 4; i++) all.x += of[i].x, all.y += of[i].y, all.z += of[i].z, all.w += of[i].w;
    }
    return all;
  }

  // Four columns at a time of this block's part of the tile, whose first row and column of C are given; of large tiles two fours.
  __device__ __forceinline__ void finish(const GemmEpilogue *e, int64_t m, int64_t n, int row, int column, int batch, GemmPart part,
                                         bool swapped) {
    enum { AT_ONCE = WIDE > 64 ? 2 : 1 };
    bool gated = e->activation == GEMM_SILU_MUL, stores_four = gemm_stores_four(e);
    float alpha = gemm_alpha(e);
    int pitch = swapped ? PITCH_SWAPPED : PITCH, across = (swapped ? 128 : WIDE) / (gated ? 2 : 1), fours = across / 4;
    int quads = (int)min((int64_t)(swapped ? WIDE : 128), m - row) * fours, last = quads * (part.mine + 1) / part.count;
    for (int q = quads * part.mine / part.count + (int)threadIdx.x; q < last; q += AT_ONCE * GEMM_CONSUMERS) {
      float4 v[AT_ONCE], up[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int four = min(q + i * GEMM_CONSUMERS, last - 1), r = four / fours, place = r * pitch + (four - r * fours) * 4;
        v[i] = sum(place, part), up[i] = gated ? sum(place + across, part) : v[i];
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        int four = q + i * GEMM_CONSUMERS, r = four / fours;
        float sums[4] = {v[i].x, v[i].y, v[i].z, v[i].w}, ups[4] = {up[i].x, up[i].y, up[i].z, up[i].w};
        if (four < last) gemm_finish_four(e, alpha, stores_four, batch, row + r, column + (four - r * fours) * 4, n, sums, ups);
      }
    }
  }
};

#endif
