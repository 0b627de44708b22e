// The fast GEMM, on sm_90a: a persistent grid of blocks that each have one thread copying tiles of A and B into a ring
// of stages by tensor copies, and two warpgroups that multiply them by wgmma. While they finish a tile and its stores
// are under way, the next tile's stages are already being filled. The blocks of a cluster are one below the other: each
// copies its own part of B's tile and sends it to all of them.
//
// A stage's barriers: `full` completes when all its bytes have arrived, `empty` when the consumers of every block of the
// cluster have read it, since copies of any of them write there.
#ifndef SOL_KERNELS_GEMM_WGMMA_CUH
#define SOL_KERNELS_GEMM_WGMMA_CUH

#include "gemm/gemm_epilogue.cuh"
#include "hopper.cuh"

// Tests alone: what is left out or wrong, to see it noticed.
enum { GEMM_RIGHT = 0, GEMM_NO_WAIT, GEMM_WRONG_PHASE, GEMM_WRONG_DESCRIPTOR, GEMM_EARLY_RELEASE };

template <int KIND, int A_TURNED, int B_TURNED, int TALL, int WIDE, int STAGES, int CLUSTER, int BROKEN = GEMM_RIGHT>
struct GemmWgmma {
  enum { DEEP = 128 / (KIND == KIND_FP8 ? 1 : 2), ROWS = GEMM_ROWS(TALL), REGS = WIDE / 2, A_BYTES = ROWS * 128, B_BYTES = WIDE * 128, BOX = 64 * 128 };
  struct Shared { // tiles begin at multiples of 1024
    uint8_t a[STAGES][A_BYTES], b[STAGES][B_BYTES], c[2][2][GEMM_PIECE_BYTES];
    uint64_t full[STAGES], empty[STAGES];
  };
  struct Ring {
    int stage = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  };
  struct Tile {
    int m, n, batch; // first row and column; with GEMM_SILU_MUL the column of C
  };

  // Tiles go down `group` rows, then to the next column, so that what runs at a time is nearly square.
  static __device__ __forceinline__ Tile tile_at(const GemmTiledParams &p, int index, uint32_t rank) {
    int each = p.rows * p.columns, in_batch = index % each;
    int band = p.group * p.columns, first = in_batch / band * p.group, in_band = in_batch % band;
    int height = min(p.rows - first, p.group);
    int wide = p.end.activation == GEMM_SILU_MUL ? WIDE / 2 : WIDE;
    return {((first + in_band % height) * CLUSTER + (int)rank) * ROWS, in_band / height * wide, index / each};
  }

  static __device__ __forceinline__ void load_a(Shared *s, const GemmTiledParams &p, int stage, Tile t, int k) {
#pragma unroll
    for (int i = 0; i < (A_TURNED ? ROWS / 64 : TALL); i++) {
      if (A_TURNED) tensor_load(s->a[stage] + i * BOX, &p.a, &s->full[stage], t.m + i * 64, k, t.batch);
      else tensor_load(s->a[stage] + i * 2 * BOX, &p.a, &s->full[stage], k, t.m + i * 128, t.batch);
    }
  }

  // B's tile is two halves; with GEMM_SILU_MUL the second is n columns further on. Blocks share the copies.
  static __device__ __forceinline__ void load_b(Shared *s, const GemmTiledParams &p, int stage, Tile t, int k, uint32_t rank) {
    enum { BOXES = B_TURNED ? WIDE / 64 : 2, EACH = WIDE / BOXES, SHARE = BOXES / CLUSTER };
    int apart = p.end.activation == GEMM_SILU_MUL ? p.n - WIDE / 2 : 0;
#pragma unroll
    for (int j = 0; j < SHARE; j++) {
      int i = (int)rank * SHARE + j, column = t.n + i * EACH + (i * EACH >= WIDE / 2 ? apart : 0);
      uint8_t *to = s->b[stage] + i * EACH * 128;
      int x = B_TURNED ? column : k, y = B_TURNED ? k : column;
      if (CLUSTER > 1) tensor_load_all(to, &p.b, &s->full[stage], x, y, t.batch, (1 << CLUSTER) - 1);
      else tensor_load(to, &p.b, &s->full[stage], x, y, t.batch);
    }
  }

  static __device__ __forceinline__ void produce(Shared *s, const GemmTiledParams &p, int tiles, uint32_t rank) {
    Ring ring;
    for (int index = blockIdx.x / CLUSTER; index < tiles; index += gridDim.x / CLUSTER) {
      Tile t = tile_at(p, index, rank);
      for (int k = 0; k < p.k; k += DEEP, ring.next()) {
        barrier_wait(&s->empty[ring.stage], ring.parity ^ 1);
        barrier_expect(&s->full[ring.stage], A_BYTES + B_BYTES);
        load_a(s, p, ring.stage, t, k);
        load_b(s, p, ring.stage, t, k, rank);
      }
    }
  }

  // a, b: descriptors of the first stage.
  static __device__ __forceinline__ void multiply(float (&d)[TALL][REGS], uint64_t a, uint64_t b, int stage, bool first) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) // 32 bytes along k each
#pragma unroll
      for (int t = 0; t < TALL; t++) {
        uint64_t of_a = a + (stage * A_BYTES + t * BOX + i * (A_TURNED ? 2048 : 32)) / 16;
        uint64_t of_b = b + (stage * B_BYTES + i * (B_TURNED ? 2048 : 32)) / 16;
        wgmma<REGS, KIND, A_TURNED, B_TURNED>(d[t], of_a, of_b, !first || i);
      }
    wgmma_commit();
  }

  // Thread r of the warpgroup's first lanes tells block r.
  static __device__ __forceinline__ void release(Shared *s, int stage, int thread) {
    if (thread % 32 == 0 && thread / 32 < CLUSTER) barrier_arrive(&s->empty[stage], thread / 32);
  }

  static __device__ __forceinline__ void consume(Shared *s, float (&d)[TALL][REGS], Ring &ring, int steps, int group, int thread) {
    int before = 0, wrong = BROKEN == GEMM_WRONG_DESCRIPTOR ? 16 : 0;
    uint64_t a = matrix_descriptor(shared_address(s->a[0]) + group * TALL * BOX, BOX);
    uint64_t b = matrix_descriptor(shared_address(s->b[0]) + wrong, BOX);
    for (int step = 0; step < steps; step++, ring.next()) {
      if (BROKEN != GEMM_NO_WAIT) barrier_wait(&s->full[ring.stage], ring.parity ^ (BROKEN == GEMM_WRONG_PHASE));
      multiply(d, a, b, ring.stage, step == 0);
      if (BROKEN != GEMM_EARLY_RELEASE) wgmma_wait<1>(); // the step before has been multiplied
      if (step) release(s, before, thread);
      before = ring.stage;
    }
    wgmma_wait<0>();
    release(s, before, thread);
  }

  // 16 columns of a warp's 16 rows, as 2-byte elements.
  static __device__ __forceinline__ void stage_narrow(uint32_t piece, const float *d, int q, int warp, int lane, int kind) {
    int row = warp * 16 + lane % 16;
    uint32_t at = piece + row * 128 + ((q * 2 + lane / 16) ^ row % 8) * 16;
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
      uint32_t at = piece + row * 128 + ((q * 2 + lane % 4 / 2) ^ row % 8) * 16 + lane % 2 * 8;
      asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(at), "f"(d[half * 2]), "f"(d[half * 2 + 1]) : "memory");
    }
  }

  // Pieces of 128 bytes of 64 rows, each through one of two places in shared memory: a store is read from one while the
  // other is filled.
  template <bool NARROW>
  static __device__ __forceinline__ void store(Shared *s, const GemmTiledParams &p, const float (&d)[REGS], Tile t, int row, int group,
                                               int thread, int &turn) {
    enum { COLUMNS = NARROW ? 64 : 32, PER = COLUMNS / 2, EACH = NARROW ? 8 : 4 };
    int columns = p.end.activation == GEMM_SILU_MUL ? WIDE / 2 : WIDE;
#pragma unroll
    for (int c = 0; c < WIDE / COLUMNS; c++) {
      if (c * COLUMNS >= columns) break;
      uint32_t piece = shared_address(s->c[group][turn]);
      if (thread == 0) tensor_store_read<1>();
      named_sync(1 + group, 128);
#pragma unroll
      for (int q = 0; q < PER / EACH; q++) {
        if (NARROW) stage_narrow(piece, d + c * PER + q * EACH, q, thread / 32, thread % 32, p.end.out_kind);
        else stage_float(piece, d + c * PER + q * EACH, q, thread / 32, thread % 32);
      }
      async_fence();
      named_sync(1 + group, 128);
      if (thread == 0) {
        tensor_store(&p.c, s->c[group][turn], t.n + c * COLUMNS, row, t.batch);
        tensor_store_commit();
      }
      turn ^= 1;
    }
  }

  static __device__ __forceinline__ void finish(Shared *s, const GemmTiledParams &p, float (&d)[REGS], Tile t, int row, int group,
                                                int thread, int &turn) {
    GemmPlace at = {row + thread / 32 * 16 + thread % 32 / 4, t.n + thread % 4 * 2, t.batch, p.m, p.n,
                    p.end.activation == GEMM_SILU_MUL ? p.n - WIDE / 2 : 0};
    gemm_finish(d, &p.end, &at);
    if (p.end.out_kind == KIND_FP32) store<false>(s, p, d, t, row, group, thread, turn);
    else store<true>(s, p, d, t, row, group, thread, turn);
  }

  static __device__ __forceinline__ void compute(Shared *s, const GemmTiledParams &p, int tiles, uint32_t rank) {
    // The same in all lanes, said so that the compiler knows it.
    int group = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0), thread = threadIdx.x % 128, steps = (p.k + DEEP - 1) / DEEP, turn = 0;
    Ring ring;
    float d[TALL][REGS];
    for (int index = blockIdx.x / CLUSTER; index < tiles; index += gridDim.x / CLUSTER) {
      Tile t = tile_at(p, index, rank);
      consume(s, d, ring, steps, group, thread);
#pragma unroll
      for (int i = 0; i < TALL; i++) finish(s, p, d[i], t, t.m + (group * TALL + i) * 64, group, thread, turn);
    }
    if (thread == 0) tensor_store_read<0>();
  }

  static __device__ __forceinline__ void start(Shared *s, const GemmTiledParams &p) {
    if (threadIdx.x == 0) {
      tensor_prefetch_map(&p.a), tensor_prefetch_map(&p.b), tensor_prefetch_map(&p.c);
      for (int i = 0; i < STAGES; i++) barrier_init(&s->full[i], 1), barrier_init(&s->empty[i], 2 * CLUSTER);
      barrier_init_done();
    }
    if (CLUSTER > 1) cluster_sync();
    else __syncthreads();
  }

  static __device__ __forceinline__ void run(const GemmTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    uint32_t rank = CLUSTER > 1 ? block_rank() : 0;
    int tiles = p.rows * p.columns * p.batch;
    start(s, p);
    let_successor_start();
    wait_for_predecessor();
    if (threadIdx.x < 128) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (threadIdx.x == 0) produce(s, p, tiles, rank);
      __syncwarp();
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      compute(s, p, tiles, rank);
    }
    if (CLUSTER > 1) cluster_sync(); // no block ends while another's copies or arrivals may still reach it
  }
};

#endif
