// The main loop of the fast GEMMs, on sm_90a: one thread of a block copies tiles of A and B into a ring of stages by tensor
// copies, and one or two warpgroups multiply them by wgmma. The blocks of a cluster, p.down below each other and p.across side
// by side, have tiles in common: each copies its own part of A's tile and sends it to those beside it, and its part of B's
// tile to those above and below.
//
// A stage's barriers: `full` completes when all its bytes have arrived, `empty` when the consumers of every block that
// this one's copies reach have read it.
#ifndef SOL_KERNELS_GEMM_LOOP_CUH
#define SOL_KERNELS_GEMM_LOOP_CUH

#include "gemm/gemm_epilogue.cuh"
#include "wgmma.cuh"

// As cluster_sync, without order of memory: a release would wait for stores to global memory.
INLINE void cluster_meet(void) {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

// Tests alone: what is left out or wrong, to see it noticed.
enum { GEMM_RIGHT = 0, GEMM_NO_WAIT, GEMM_WRONG_PHASE, GEMM_WRONG_DESCRIPTOR, GEMM_EARLY_RELEASE };

// Whether this is the thread that copies: one of the first warp behind the consumers, chosen so that the compiler knows that it is one. What
// goes into a tensor copy then takes no loop over the lanes that may differ in it.
INLINE bool gemm_copies(int consumers) {
  uint32_t chosen = 0;
  if (__shfl_sync(~0u, (int)threadIdx.x / 32, 0) == consumers / 32)
    asm volatile("{\n.reg .pred is;\nelect.sync _|is, 0xffffffff;\nselp.u32 %0, 1, 0, is;\n}" : "=r"(chosen));
  return chosen;
}

INLINE bool gemm_gated(const GemmTiledParams &p) {
  return p.end.activation == GEMM_SILU_MUL;
}

// The first row of A, or of what has its place, and the first column of B; with GEMM_SILU_MUL as in C.
struct GemmTile {
  int row, column, batch;
};

// Tiles of `tall` by `wide` go down `group` rows, then to the next column, so that what runs at a time is nearly square.
INLINE GemmTile gemm_tile_at(const GemmTiledParams &p, int index, int tall, int wide) {
  int batch = gemm_divide(index, p.each), in_batch = index - batch * p.each.by;
  int band = gemm_divide(in_batch, p.band), first = band * p.group, in_band = in_batch - band * p.band.by;
  GemmDivisor height = p.rows - first < p.group ? p.tail : p.height;
  int column = gemm_divide(in_band, height);
  return {(first + in_band - column * height.by) * tall, column * wide, batch};
}

// The blocks of a cluster that have operands in common, 1 or 2 below each other and 1 or 2 side by side, this one's place among them, and
// the rank of the first.
struct GemmShare {
  int down, across, row, column, first;
  __device__ __forceinline__ int reached() const { // blocks that this one's copies reach
    return down + across - 1;
  }
  __device__ __forceinline__ int rank(int r, int c) const {
    return first + c * down + r;
  }
  __device__ __forceinline__ int beside() const { // as bits: the blocks that have the same tile of A
    return 1 << rank(row, 0) | 1 << rank(row, across - 1);
  }
  __device__ __forceinline__ int below() const { // the same tile of B
    return 1 << rank(0, column) | 1 << rank(down - 1, column);
  }
};

INLINE GemmShare gemm_share(const GemmTiledParams &p) {
  int rank = (int)block_rank(), place = rank & (p.down * p.across - 1);
  return {p.down, p.across, place & (p.down - 1), place >> (p.down - 1), rank - place};
}

template <int KIND, int A_TURNED, int B_TURNED, int ROWS, int WIDE, int STAGES, int BROKEN = GEMM_RIGHT> struct GemmLoop {
  enum {
    DEEP = 128 / (KIND == KIND_FP8 ? 1 : 2),
    GROUPS = GEMM_GROUPS(ROWS),
    CONSUMERS = GROUPS * 128, // threads
    TALL = ROWS / GROUPS / 64,
    REGS = WIDE / 2,
    A_BYTES = ROWS * 128,
    B_BYTES = WIDE * 128,
    BOX = 64 * 128,
    A_BOX = A_TURNED ? 64 : GEMM_BOX_A(ROWS), // rows
    B_BOX = GEMM_BOX_B(B_TURNED, WIDE)
  };
  struct Ring { // tiles begin at multiples of 1024
    uint8_t a[STAGES][A_BYTES], b[STAGES][B_BYTES];
    uint64_t full[STAGES], empty[STAGES];
  };
  struct Turn { // the stage whose turn it is
    int stage = 0;
    uint32_t parity = 0;
    bool again = false; // it has been written before
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, parity ^= 1, again = true;
    }
  };

  static __device__ __forceinline__ void start(Ring *r, const GemmTiledParams &p, GemmShare share) {
    if (threadIdx.x == CONSUMERS) {
      tensor_prefetch_map(&p.a), tensor_prefetch_map(&p.b);
      for (int i = 0; i < STAGES; i++) barrier_init(&r->full[i], 1), barrier_init(&r->empty[i], GROUPS * share.reached());
      barrier_init_done();
    }
    if (share.reached() > 1) cluster_sync();
    else __syncthreads();
  }

  // Boxes of an operand's tile, EACH rows high: this block's of the `sharing`, 1 or 2, that have the same tile, of which it is `mine`. From half of
  // the tile on they are `apart` further down. to(place, row): what is done with each.
  template <int TILE, int EACH, class F> static __device__ __forceinline__ void boxes(int sharing, int mine, int row, int apart, F to) {
    enum { COUNT = TILE / EACH };
#pragma unroll
    for (int j = 0; j < COUNT; j++) {
      if (COUNT > 1 && j >= COUNT / 2 && sharing > 1) break;
      int i = mine * (COUNT / 2) + j;
      to(i * EACH * 128, row + i * EACH + (i * EACH >= TILE / 2 ? apart : 0));
    }
  }
  template <class F> static __device__ __forceinline__ void boxes_of_a(GemmShare share, int row, int apart, F to) {
    boxes<ROWS, A_BOX>(share.across, share.column, row, apart, to);
  }
  template <class F> static __device__ __forceinline__ void boxes_of_b(GemmShare share, int column, int apart, F to) {
    boxes<WIDE, B_BOX>(share.down, share.row, column, apart, to);
  }

  static __device__ __forceinline__ void load(void *to, const GemmMap *map, uint64_t *full, int x, int y, int z, int blocks, bool alone) {
    if (alone) tensor_load(to, map, full, x, y, z);
    else tensor_load_all(to, map, full, x, y, z, (uint16_t)blocks);
  }

  // Bytes of the tile's boxes that are not outside of A and B altogether.
  static __device__ __forceinline__ int bytes_inside(GemmTile t, int2 apart, int2 sizes) {
    int bytes = 0;
    boxes_of_a({1, 1, 0, 0, 0}, t.row, apart.x, [&](int, int row) { bytes += row < sizes.x ? A_BOX * 128 : 0; });
    boxes_of_b({1, 1, 0, 0, 0}, t.column, apart.y, [&](int, int column) { bytes += column < sizes.y ? B_BOX * 128 : 0; });
    return bytes;
  }

  // Steps `from` to `to` of a tile. apart: of A and of B. Boxes outside of A or B, which tensor copies fill with zeros, more slowly than they
  // copy, are left as they are once there is anything in their place: no result that is stored depends on them. Not in clusters of 2 by 2:
  // a block that is sent nothing would not have to wait for the one across, and what it has read twice would count as read by that one, too.
  template <bool SHARED>
  static __device__ __forceinline__ void copy(Ring *r, const GemmTiledParams &p, Turn &turn, GemmTile t, int2 apart, int from, int to, GemmShare share) {
    int beside = share.beside(), below = share.below(), across = gemm_gated(p) ? 2 * p.n : p.n;
    int2 sizes = p.swapped ? make_int2(across, p.m) : make_int2(p.m, across);
    int inside = bytes_inside(t, apart, sizes);
#pragma unroll 1
    for (int step = from; step < to; step++, turn.next()) {
      uint64_t *full = &r->full[turn.stage];
      int k = step * DEEP;
      barrier_wait(&r->empty[turn.stage], turn.parity ^ 1);
      bool all = !turn.again || share.reached() > 2;
      barrier_expect(full, all ? A_BYTES + B_BYTES : inside);
      boxes_of_a(share, t.row, apart.x, [&](int place, int row) {
        if (all || row < sizes.x) load(r->a[turn.stage] + place, &p.a, full, A_TURNED ? row : k, A_TURNED ? k : row, t.batch, beside, !SHARED || share.across == 1);
      });
      boxes_of_b(share, t.column, apart.y, [&](int place, int column) {
        if (all || column < sizes.y) load(r->b[turn.stage] + place, &p.b, full, B_TURNED ? column : k, B_TURNED ? k : column, t.batch, below, !SHARED || share.down == 1);
      });
    }
  }

  // One thread waits for each copy's place and then issues it, which small tiles may take less time to multiply than.
  static __device__ __forceinline__ void produce(Ring *r, const GemmTiledParams &p, Turn &turn, GemmTile t, int2 apart, int from, int to,
                                                 GemmShare share) {
    if (share.reached() > 1) copy<true>(r, p, turn, t, apart, from, to, share);
    else copy<false>(r, p, turn, t, apart, from, to, {1, 1, 0, 0, 0});
  }

  // The same tile so many multiples of 16 bytes further on: an address never carries into a descriptor's upper half.
  static __device__ __forceinline__ uint64_t further(uint64_t descriptor, uint32_t sixteens) {
    return descriptor & ~(uint64_t)UINT32_MAX | (uint32_t)descriptor + sixteens;
  }

  // a, b: descriptors of the first stage.
  static __device__ __forceinline__ void multiply(float (&d)[TALL][REGS], uint64_t a, uint64_t b, int stage, bool first) {
    a = further(a, stage * (A_BYTES / 16)), b = further(b, stage * (B_BYTES / 16));
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) // 32 bytes along k each
#pragma unroll
      for (int t = 0; t < TALL; t++) {
        uint64_t of_a = further(a, (t * BOX + i * (A_TURNED ? 2048 : 32)) / 16);
        uint64_t of_b = further(b, i * (B_TURNED ? 2048 : 32) / 16);
        wgmma<REGS, KIND, A_TURNED, B_TURNED>(d[t], of_a, of_b, !first || i);
      }
    wgmma_commit();
  }

  // Every sixteenth thread of the warpgroup tells one block that a stage was read: those of this one's column, then the other of its row. The
  // first stage's barrier there, or 0.
  static __device__ __forceinline__ uint32_t told(Ring *r, int thread, GemmShare share) {
    int i = thread / 16, to = i < share.down ? share.rank(i, share.column) : share.rank(share.row, share.column ^ 1);
    return thread % 16 || i >= share.reached() ? 0 : share.reached() > 1 ? barrier_there(&r->empty[0], to) : shared_address(&r->empty[0]);
  }

  static __device__ __forceinline__ void release(uint32_t empty, int stage, GemmShare share) {
    if (!empty) return;
    if (share.reached() > 1) asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(empty + stage * 8) : "memory");
    else asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty + stage * 8) : "memory");
  }

  static __device__ __forceinline__ void consume(Ring *r, float (&d)[TALL][REGS], Turn &turn, int steps, int group, int thread,
                                                 GemmShare share) {
    int before = 0, wrong = BROKEN == GEMM_WRONG_DESCRIPTOR ? 16 : 0;
    uint32_t empty = told(r, thread, share);
    uint64_t a = matrix_descriptor(shared_address(r->a[0]) + group * TALL * BOX, BOX);
    uint64_t b = matrix_descriptor(shared_address(r->b[0]) + wrong, BOX);
    for (int step = 0; step < steps; step++, turn.next()) {
      if (BROKEN != GEMM_NO_WAIT) barrier_wait(&r->full[turn.stage], turn.parity ^ (BROKEN == GEMM_WRONG_PHASE));
      multiply(d, a, b, turn.stage, step == 0);
      if (BROKEN != GEMM_EARLY_RELEASE) wgmma_wait<1>(); // the step before has been multiplied
      if (step) release(empty, before, share);
      before = turn.stage;
    }
    wgmma_wait<0>();
    release(empty, before, share);
  }

 private:
  // The same place of the cluster's block `rank`.
  static __device__ __forceinline__ uint32_t barrier_there(uint64_t *bar, int rank) {
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(bar)), "r"(rank));
    return there;
  }
};

#endif
