// The fast GEMM for few tiles or few rows, on sm_90a: the blocks of a cluster, 1 to 8 of them, share out k of the same tile, or of
// 2 or 4 tiles that have operands in common (gemm_loop.cuh, gemm_sums.cuh).
//
// p.swapped: the 128 rows of a tile are columns of B, and its WIDE columns are rows of A.
#ifndef SOL_KERNELS_GEMM_SPLIT_CUH
#define SOL_KERNELS_GEMM_SPLIT_CUH

#include "gemm/gemm_loop.cuh"
#include "gemm/gemm_sums.cuh"

template <int KIND, int A_TURNED, int B_TURNED, int WIDE, int STAGES> struct GemmSplit {
  typedef GemmLoop<KIND, A_TURNED, B_TURNED, 128, WIDE, STAGES> Loop;
  typedef GemmSums<WIDE> Sums;
  union Shared {
    typename Loop::Ring ring;
    Sums sums;
  };
  static_assert(sizeof(Sums) <= STAGES * GEMM_STAGE_BYTES(128, WIDE), "the sums take the stages' place");

  static __device__ __forceinline__ void compute(Shared *s, const GemmTiledParams &p, int steps, int group, GemmShare share) {
    int thread = threadIdx.x % 128;
    typename Loop::Turn turn;
    float d[1][Loop::REGS];
    Loop::consume(&s->ring, d, turn, steps, group, thread, share);
    named_sync(1, GEMM_CONSUMERS); // both warpgroups have read the stages
    s->sums.leave(d[0], group * 64 + thread / 32 * 16 + thread % 32 / 4, p.swapped);
  }

  static __device__ __forceinline__ void run(const GemmTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    bool gated = p.end.activation == GEMM_SILU_MUL;
    int rank = (int)block_rank();
    GemmShare share = gemm_share(p);
    GemmPart part = {share.first >> (share.down + share.across - 2), p.parts, rank, share.down * share.across};
    int steps = (p.k + Loop::DEEP - 1) / Loop::DEEP;
    int from = gemm_divide(steps * part.mine, p.parts), to = gemm_divide(steps * (part.mine + 1), p.parts);
    int tall = gated && p.swapped ? 64 : 128, wide = gated && !p.swapped ? WIDE / 2 : WIDE;
    GemmTile t = gemm_tile_at(p, (int)cluster_index(), tall * share.down, wide * share.across);
    t.row += share.row * tall, t.column += share.column * wide;
    int2 apart = {gated && p.swapped ? p.n - 64 : 0, gated && !p.swapped ? p.n - WIDE / 2 : 0};
    Loop::start(&s->ring, p, share);
    let_successor_start();
    wait_for_predecessor();
    int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0); // the same in all lanes, said so that the compiler knows it
    if (group < 2) compute(s, p, __shfl_sync(~0u, to - from, 0), group, share);
    else {
      typename Loop::Turn turn;
      if (gemm_copies(GEMM_CONSUMERS)) Loop::produce(&s->ring, p, turn, t, apart, from, to, share);
      __syncwarp();
    }
    cluster_sync(); // every block's sums are there
    if (group < 2)
      s->sums.finish(&p.end, p.m, p.n, p.swapped ? t.column : t.row, p.swapped ? t.row : t.column, t.batch, part, p.swapped);
    cluster_meet(); // no block ends while another reads its sums
  }
};

#endif
