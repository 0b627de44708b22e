// The fast GEMM for few tiles or few rows, on sm_90a: the blocks of a cluster, 1 to 8 of them, have the same tile and share
// out k (gemm_loop.cuh). Each leaves its sums in its own shared memory; then each adds up all blocks' sums of its part of
// the tile, always in the same order, finishes them and writes them.
//
// SWAPPED: for few rows, bound by reading B. The 128 rows of a tile are columns of B, and its WIDE columns are rows of A:
// p.a is B's map and p.b is A's.
#ifndef SOL_KERNELS_GEMM_SPLIT_CUH
#define SOL_KERNELS_GEMM_SPLIT_CUH

#include "gemm/gemm_epilogue.cuh"
#include "gemm/gemm_loop.cuh"

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

template <int KIND, int A_TURNED, int B_TURNED, int WIDE, int STAGES, int SWAPPED> struct GemmSplit {
  typedef GemmLoop<KIND, A_TURNED, B_TURNED, 1, WIDE, STAGES, 1, 1> Loop;
  // The sums as they are in C; PITCH: so that a warp's stores are to different banks.
  enum { DOWN = SWAPPED ? WIDE : 128, ACROSS = SWAPPED ? 128 : WIDE, PITCH = ACROSS + (SWAPPED ? 4 : 8), PARTS = GEMM_PARTS };
  union Shared {
    typename Loop::Ring ring;
    float sums[DOWN][PITCH];
  };
  static_assert(sizeof(float) * DOWN * PITCH <= STAGES * GEMM_STAGE_BYTES(1, WIDE), "the sums take the stages' place");

  static __device__ __forceinline__ void leave_sums(Shared *s, const float (&d)[Loop::REGS], int group, int thread) {
    int row = group * 64 + thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < Loop::REGS; i += 2) {
      int r = row + i / 2 % 2 * 8, c = column + i / 4 * 8;
      if (SWAPPED) s->sums[c][r] = d[i], s->sums[c + 1][r] = d[i + 1];
      else *(float2 *)&s->sums[r][c] = make_float2(d[i], d[i + 1]);
    }
  }

  static __device__ __forceinline__ float4 sum_at(Shared *s, int row, int column, int parts) {
    uint32_t at = shared_address(&s->sums[row][column]);
    float4 of[PARTS], sum = cluster_load(at, 0);
#pragma unroll
    for (int i = 1; i < PARTS; i++)
      if (i < parts) of[i] = cluster_load(at, i);
#pragma unroll
    for (int i = 1; i < PARTS; i++)
      if (i < parts) sum.x += of[i].x, sum.y += of[i].y, sum.z += of[i].z, sum.w += of[i].w;
    return sum;
  }

  // Four columns at a time of this block's part of the tile, whose first row and column of C are given.
  static __device__ __forceinline__ void finish(Shared *s, const GemmTiledParams &p, int row, int column, int batch, int rank, int parts) {
    bool gated = p.end.activation == GEMM_SILU_MUL;
    int across = gated ? ACROSS / 2 : ACROSS, quads = min(DOWN, p.m - row) * across / 4;
    for (int q = quads * rank / parts + (int)threadIdx.x - 128; q < quads * (rank + 1) / parts; q += 256) {
      int r = q * 4 / across, c = q * 4 % across;
      float4 v = sum_at(s, r, c, parts), up = gated ? sum_at(s, r, c + across, parts) : v;
      float sums[4] = {v.x, v.y, v.z, v.w}, ups[4] = {up.x, up.y, up.z, up.w};
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (column + c + i < p.n) gemm_finish_one(&p.end, batch, row + r, column + c + i, p.n, sums[i], ups[i]);
    }
  }

  static __device__ __forceinline__ void compute(Shared *s, const GemmTiledParams &p, GemmTile t, int steps, int rank, int parts) {
    int group = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0), thread = threadIdx.x % 128;
    typename Loop::Turn turn;
    float d[1][Loop::REGS];
    Loop::consume(&s->ring, d, turn, steps, group, thread, 0);
    named_sync(1, 256); // both warpgroups have read the stages
    leave_sums(s, d[0], group, thread);
    cluster_sync();
    finish(s, p, SWAPPED ? t.column : t.row, SWAPPED ? t.row : t.column, t.batch, rank, parts);
  }

  static __device__ __forceinline__ void run(const GemmTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    bool gated = p.end.activation == GEMM_SILU_MUL;
    int rank = (int)block_rank(), parts = (int)cluster_size(), steps = (p.k + Loop::DEEP - 1) / Loop::DEEP;
    int from = (int)((int64_t)steps * rank / parts), to = (int)((int64_t)steps * (rank + 1) / parts);
    GemmTile t = gemm_tile_at(p, blockIdx.x / parts, gated && SWAPPED ? 64 : 128, gated && !SWAPPED ? WIDE / 2 : WIDE);
    int2 apart = {gated && SWAPPED ? p.n - 64 : 0, gated && !SWAPPED ? p.n - WIDE / 2 : 0};
    Loop::start(&s->ring, p);
    let_successor_start();
    wait_for_predecessor();
    if (threadIdx.x >= 128) compute(s, p, t, to - from, rank, parts);
    else {
      typename Loop::Turn turn;
      if (threadIdx.x == 0) Loop::produce(&s->ring, p, turn, t, apart, from, to, 0);
      __syncwarp();
      cluster_sync(); // every block's sums are there
    }
    cluster_sync(); // no block ends while another reads its sums
  }
};

#endif
