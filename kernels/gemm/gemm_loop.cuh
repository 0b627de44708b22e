// The main loop of the fast GEMMs, on sm_90a: one thread of a block copies tiles of A and B into a ring of stages by tensor
// copies, and two warpgroups multiply them by wgmma. The blocks of a cluster, DOWN below each other and ACROSS side by
// side, have tiles in common: each copies its own part of A's tile and sends it to those beside it, and its part of B's
// tile to those above and below.
//
// A stage's barriers: `full` completes when all its bytes have arrived, `empty` when the consumers of every block that
// this one's copies reach have read it.
#ifndef SOL_KERNELS_GEMM_LOOP_CUH
#define SOL_KERNELS_GEMM_LOOP_CUH

#include "gemm/gemm.h"
#include "gemm/gemm_mma.cuh"

// As cluster_sync, without order of memory: a release would wait for stores to global memory.
INLINE void cluster_meet(void) {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Tests alone: what is left out or wrong, to see it noticed.
enum { GEMM_RIGHT = 0, GEMM_NO_WAIT, GEMM_WRONG_PHASE, GEMM_WRONG_DESCRIPTOR, GEMM_EARLY_RELEASE };

// The first row of A, or of what has its place, and the first column of B; with GEMM_SILU_MUL as in C.
struct GemmTile {
  int row, column, batch;
};

// Tiles of `tall` by `wide` go down `group` rows, then to the next column, so that what runs at a time is nearly square.
INLINE GemmTile gemm_tile_at(const GemmTiledParams &p, int index, int tall, int wide) {
  int each = p.rows * p.columns, in_batch = index % each;
  int band = p.group * p.columns, first = in_batch / band * p.group, in_band = in_batch % band;
  int height = min(p.rows - first, p.group);
  return {(first + in_band % height) * tall, in_band / height * wide, index / each};
}

template <int KIND, int A_TURNED, int B_TURNED, int TALL, int WIDE, int STAGES, int DOWN, int ACROSS, int BROKEN = GEMM_RIGHT>
struct GemmLoop {
  enum {
    DEEP = 128 / (KIND == KIND_FP8 ? 1 : 2),
    ROWS = GEMM_ROWS(TALL),
    REGS = WIDE / 2,
    A_BYTES = ROWS * 128,
    B_BYTES = WIDE * 128,
    BOX = 64 * 128,
    REACHED = DOWN + ACROSS - 1 // blocks that this one's copies reach
  };
  struct Ring { // tiles begin at multiples of 1024
    uint8_t a[STAGES][A_BYTES], b[STAGES][B_BYTES];
    uint64_t full[STAGES], empty[STAGES];
  };
  struct Turn { // the stage whose turn it is
    int stage = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  };

  static __device__ __forceinline__ void start(Ring *r, const GemmTiledParams &p) {
    if (threadIdx.x == GEMM_CONSUMERS) {
      tensor_prefetch_map(&p.a), tensor_prefetch_map(&p.b);
      for (int i = 0; i < STAGES; i++) barrier_init(&r->full[i], 1), barrier_init(&r->empty[i], 2 * REACHED);
      barrier_init_done();
    }
    if (REACHED > 1) cluster_sync();
    else __syncthreads();
  }

  static __device__ __forceinline__ void load(void *to, const GemmMap *map, uint64_t *full, int x, int y, int z, int blocks, bool alone) {
    if (alone) tensor_load(to, map, full, x, y, z);
    else tensor_load_all(to, map, full, x, y, z, (uint16_t)blocks);
  }

  // Boxes of 64 rows; from half of them on they are `apart` further down.
  static __device__ __forceinline__ void load_a(Ring *r, const GemmTiledParams &p, int stage, GemmTile t, int apart, int k, int rank) {
    enum { SHARE = ROWS / 64 / ACROSS };
    int blocks = 0;
#pragma unroll
    for (int i = 0; i < ACROSS; i++) blocks |= 1 << (rank % DOWN + i * DOWN);
#pragma unroll
    for (int j = 0; j < SHARE; j++) {
      int i = rank / DOWN * SHARE + j, row = t.row + i * 64 + (i * 64 >= ROWS / 2 ? apart : 0);
      load(r->a[stage] + i * BOX, &p.a, &r->full[stage], A_TURNED ? row : k, A_TURNED ? k : row, t.batch, blocks, ACROSS == 1);
    }
  }

  // The same of B's columns.
  static __device__ __forceinline__ void load_b(Ring *r, const GemmTiledParams &p, int stage, GemmTile t, int apart, int k, int rank) {
    enum { EACH = GEMM_BOX_B(B_TURNED, WIDE, DOWN), SHARE = WIDE / EACH / DOWN };
    int blocks = ((1 << DOWN) - 1) << rank / DOWN * DOWN;
#pragma unroll
    for (int j = 0; j < SHARE; j++) {
      int i = rank % DOWN * SHARE + j, column = t.column + i * EACH + (i * EACH >= WIDE / 2 ? apart : 0);
      load(r->b[stage] + i * EACH * 128, &p.b, &r->full[stage], B_TURNED ? column : k, B_TURNED ? k : column, t.batch, blocks,
           DOWN == 1);
    }
  }

  // Steps `from` to `to` of a tile. apart: of A and of B; rank: in a cluster that shares tiles.
  static __device__ __forceinline__ void produce(Ring *r, const GemmTiledParams &p, Turn &turn, GemmTile t, int2 apart, int from, int to,
                                                 int rank) {
    for (int step = from; step < to; step++, turn.next()) {
      barrier_wait(&r->empty[turn.stage], turn.parity ^ 1);
      barrier_expect(&r->full[turn.stage], A_BYTES + B_BYTES);
      load_a(r, p, turn.stage, t, apart.x, step * DEEP, rank);
      load_b(r, p, turn.stage, t, apart.y, step * DEEP, rank);
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
        gemm_wgmma<REGS, KIND, A_TURNED, B_TURNED>(d[t], of_a, of_b, !first || i);
      }
    wgmma_commit();
  }

  // Every sixteenth thread of the warpgroup tells one block: those of this one's column, then the others of its row.
  static __device__ __forceinline__ void release(Ring *r, int stage, int thread, int rank) {
    int i = thread / 16, other = i - DOWN;
    if (thread % 16 || i >= REACHED) return;
    if (REACHED == 1) barrier_arrive_here(&r->empty[stage]);
    else
      barrier_arrive(&r->empty[stage],
                     i < DOWN ? rank / DOWN * DOWN + i : rank % DOWN + (other + (other >= rank / DOWN)) * DOWN);
  }

  static __device__ __forceinline__ void consume(Ring *r, float (&d)[TALL][REGS], Turn &turn, int steps, int group, int thread, int rank) {
    int before = 0, wrong = BROKEN == GEMM_WRONG_DESCRIPTOR ? 16 : 0;
    uint64_t a = matrix_descriptor(shared_address(r->a[0]) + group * TALL * BOX, BOX);
    uint64_t b = matrix_descriptor(shared_address(r->b[0]) + wrong, BOX);
    for (int step = 0; step < steps; step++, turn.next()) {
      if (BROKEN != GEMM_NO_WAIT) barrier_wait(&r->full[turn.stage], turn.parity ^ (BROKEN == GEMM_WRONG_PHASE));
      multiply(d, a, b, turn.stage, step == 0);
      if (BROKEN != GEMM_EARLY_RELEASE) wgmma_wait<1>(); // the step before has been multiplied
      if (step) release(r, before, thread, rank);
      before = turn.stage;
    }
    wgmma_wait<0>();
    release(r, before, thread, rank);
  }

 private:
  static __device__ __forceinline__ void barrier_arrive_here(uint64_t *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
  }
};

#endif
