// The fast GEMM for many tiles, on sm_90a: a persistent grid of clusters (gemm_loop.cuh) that take one tile after another.
// While the consumers finish a tile and its stores are under way, the next tile's stages are already being filled.
#ifndef SOL_KERNELS_GEMM_WGMMA_CUH
#define SOL_KERNELS_GEMM_WGMMA_CUH

#include "gemm/gemm_epilogue.cuh"
#include "gemm/gemm_loop.cuh"

template <int KIND, int A_TURNED, int B_TURNED, int ROWS, int WIDE, int STAGES, int PER_SM = 1, int BROKEN = GEMM_RIGHT> struct GemmWgmma {
  typedef GemmLoop<KIND, A_TURNED, B_TURNED, ROWS, WIDE, STAGES, BROKEN> Loop;
  // SPAN: bytes of a piece's row.
  enum { TALL = Loop::TALL, REGS = Loop::REGS, PIECES = GEMM_PIECES(ROWS, WIDE, STAGES, PER_SM), SPAN = GEMM_SPAN(WIDE) };
  struct Shared {
    uint8_t c[Loop::GROUPS][PIECES][GEMM_PIECE_BYTES]; // each warpgroup's
    typename Loop::Ring ring;
  };

  static __device__ __forceinline__ bool gated(const GemmTiledParams &p) {
    return p.end.activation == GEMM_SILU_MUL;
  }

  // The tile of this block of the cluster.
  static __device__ __forceinline__ GemmTile tile_at(const GemmTiledParams &p, int index, GemmShare share) {
    int wide = gated(p) ? WIDE / 2 : WIDE;
    GemmTile t = gemm_tile_at(p, index, ROWS * share.down, wide * share.across);
    t.row += share.row * ROWS, t.column += share.column * wide;
    return t;
  }

  // The cluster's first tile, and how many tiles on its next one is.
  static __device__ __forceinline__ int2 turns(GemmShare share) {
    int shift = share.down + share.across - 2;
    return {(int)blockIdx.x >> shift, (int)gridDim.x >> shift};
  }

  static __device__ __forceinline__ int2 apart(const GemmTiledParams &p) {
    return {0, gated(p) ? p.n - WIDE / 2 : 0};
  }

  static __device__ __forceinline__ void produce(Shared *s, const GemmTiledParams &p, int tiles, GemmShare share) {
    typename Loop::Turn turn;
    int steps = (p.k + Loop::DEEP - 1) / Loop::DEEP;
    int2 by = turns(share);
    for (int index = by.x; index < tiles; index += by.y)
      Loop::produce(&s->ring, p, turn, tile_at(p, index, share), apart(p), 0, steps, share);
  }

  // Where 16 bytes of a row are in a piece, swizzled over its SPAN bytes.
  static __device__ __forceinline__ uint32_t place(uint32_t piece, int row, int chunk) {
    return piece + row * SPAN + (chunk ^ (SPAN == 128 ? row % 8 : row / 2 % 4)) * 16;
  }

  // 16 columns of a warp's 16 rows, as 2-byte elements.
  static __device__ __forceinline__ void stage_narrow(uint32_t piece, const float *d, int q, int warp, int lane, int kind) {
    int row = warp * 16 + lane % 16;
    uint32_t at = place(piece, row, q * 2 + lane / 16);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(narrow2(d[0], d[1], kind)), "r"(narrow2(d[2], d[3], kind)), "r"(narrow2(d[4], d[5], kind)),
                 "r"(narrow2(d[6], d[7], kind))
                 : "memory");
  }

  // 8 columns, as floats.
  static __device__ __forceinline__ void stage_float(uint32_t piece, const float *d, int q, int warp, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int row = warp * 16 + half * 8 + lane / 4;
      uint32_t at = place(piece, row, q * 2 + lane % 4 / 2) + lane % 2 * 8;
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(d[half * 2]), "f"(d[half * 2 + 1]) : "memory");
    }
  }

  // Pieces of SPAN bytes of 64 rows, each through one of the warpgroup's places in shared memory: stores are read from
  // the others while one is filled.
  template <bool NARROW>
  static __device__ __forceinline__ void store(Shared *s, const GemmTiledParams &p, const float (&d)[REGS], GemmTile t, int row, int group,
                                               int thread, int &turn) {
    enum { COLUMNS = SPAN / (NARROW ? 2 : 4), PER = COLUMNS / 2, EACH = NARROW ? 8 : 4 };
    int columns = gated(p) ? WIDE / 2 : WIDE;
#pragma unroll
    for (int c = 0; c < WIDE / COLUMNS; c++) {
      if (c * COLUMNS >= columns) break;
      uint32_t piece = shared_address(s->c[group][turn]);
      if (thread == 0) tensor_store_read<PIECES - 1>();
      named_sync(1 + group, 128);
#pragma unroll
      for (int q = 0; q < PER / EACH; q++) {
        if (NARROW) stage_narrow(piece, d + c * PER + q * EACH, q, thread / 32, thread % 32, p.end.out_kind);
        else stage_float(piece, d + c * PER + q * EACH, q, thread / 32, thread % 32);
      }
      async_fence();
      named_sync(1 + group, 128);
      if (thread == 0) {
        tensor_store(&p.c, s->c[group][turn], t.column + c * COLUMNS, row, t.batch);
        tensor_store_commit();
      }
      turn = turn + 1 == PIECES ? 0 : turn + 1;
    }
  }

  // 16 columns of a warp's 16 rows, turned over: a piece's rows are the accumulators' columns.
  static __device__ __forceinline__ void stage_swapped(uint32_t piece, const float *d, int q, int warp, int lane, int kind) {
    int row = q * 16 + lane / 16 * 8 + lane % 8;
    uint32_t at = piece + row * 128 + ((warp * 2 + lane / 8 % 2) ^ row % 8) * 16;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(narrow2(d[0], d[1], kind)), "r"(narrow2(d[2], d[3], kind)), "r"(narrow2(d[4], d[5], kind)),
                 "r"(narrow2(d[6], d[7], kind))
                 : "memory");
  }

  // The same of swapped operands, of 2-byte elements: pieces of 64 of C's columns by GEMM_SWAPPED_ROWS rows.
  static __device__ __forceinline__ void store_swapped(Shared *s, const GemmTiledParams &p, const float (&d)[REGS], GemmTile t, int column,
                                                       int group, int thread, int &turn) {
    enum { EACH = GEMM_SWAPPED_ROWS };
#pragma unroll
    for (int c = 0; c < WIDE / EACH; c++) {
      uint32_t piece = shared_address(s->c[group][turn]);
      if (thread == 0) tensor_store_read<PIECES - 1>();
      named_sync(1 + group, 128);
#pragma unroll
      for (int q = 0; q < EACH / 16; q++) stage_swapped(piece, d + c * EACH / 2 + q * 8, q, thread / 32, thread % 32, p.end.out_kind);
      async_fence();
      named_sync(1 + group, 128);
      if (thread == 0) {
        tensor_store(&p.c, s->c[group][turn], column, t.column + c * EACH, t.batch);
        tensor_store_commit();
      }
      turn = turn + 1 == PIECES ? 0 : turn + 1;
    }
  }

  static __device__ __forceinline__ void finish(Shared *s, const GemmTiledParams &p, float (&d)[REGS], GemmTile t, int row, int group,
                                                int thread, int &turn) {
    GemmPlace at = {row + thread / 32 * 16 + thread % 32 / 4, t.column + thread % 4 * 2, t.batch, p.m, p.n,
                    gated(p) ? p.n - WIDE / 2 : 0};
    gemm_finish(d, &p.end, &at, p.swapped);
    if (p.swapped) store_swapped(s, p, d, t, row, group, thread, turn);
    else if (p.end.out_kind == KIND_FP32) store<false>(s, p, d, t, row, group, thread, turn);
    else store<true>(s, p, d, t, row, group, thread, turn);
  }

  static __device__ __forceinline__ void compute(Shared *s, const GemmTiledParams &p, int tiles, GemmShare share) {
    // The same in all lanes, said so that the compiler knows it.
    int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0), thread = threadIdx.x % 128, stored = 0;
    int steps = (p.k + Loop::DEEP - 1) / Loop::DEEP;
    int2 by = turns(share);
    typename Loop::Turn turn;
    float d[TALL][REGS];
    for (int index = by.x; index < tiles; index += by.y) {
      GemmTile t = tile_at(p, index, share);
      Loop::consume(&s->ring, d, turn, steps, group, thread, share);
#pragma unroll
      for (int i = 0; i < TALL; i++) finish(s, p, d[i], t, t.row + (group * TALL + i) * 64, group, thread, stored);
    }
    if (thread == 0) tensor_store_read<0>();
  }

  static __device__ __forceinline__ void run(const GemmTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    GemmShare share = gemm_share(p);
    int tiles = p.rows * p.columns * p.batch;
    if (threadIdx.x == Loop::CONSUMERS) tensor_prefetch_map(&p.c);
    Loop::start(&s->ring, p, share);
    let_successor_start();
    wait_for_predecessor();
    if (__shfl_sync(~0u, (int)threadIdx.x, 0) >= Loop::CONSUMERS) { // the same in all lanes, said so that the compiler knows it
      if (GEMM_MOVES_REGISTERS(ROWS, PER_SM)) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (gemm_copies(Loop::CONSUMERS)) produce(s, p, tiles, share);
      __syncwarp();
    } else {
      if (GEMM_MOVES_REGISTERS(ROWS, PER_SM)) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      compute(s, p, tiles, share);
    }
    if (share.reached() > 1) cluster_meet(); // no block ends while another's copies or arrivals may still reach it
  }
};

#endif
