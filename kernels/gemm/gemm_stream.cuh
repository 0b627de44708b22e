// GEMM of few rows on sm_90a, as gemm_few.cuh, with a block's ring in shared memory filled by tensor copies, which the warps start by turns. A
// stage has eight boxes of 128 bytes along k of some columns, of which two warps take half each, and of A's rows what goes with them: boxes side by side
// have the same k, and share A's.
//
// The rows of mma.sync are a box's columns in such an order that a quarter of the warp reads 16 bytes each from different banks.
#ifndef SOL_KERNELS_GEMM_STREAM_CUH
#define SOL_KERNELS_GEMM_STREAM_CUH

#include "gemm/gemm_few.cuh"

template <int KIND, int BITS, int EIGHTS> struct GemmStream {
  typedef GemmFew<KIND, BITS, 2, EIGHTS> Few;
  typedef typename Few::Tile Tile;
  enum {
    BOXES = GEMM_STREAM_BOXES,
    THREADS = GEMM_STREAM_THREADS,
    ROWS = 8 * EIGHTS,
    COLUMNS = Few::COLUMNS,
    X_BOXES = GEMM_STREAM_X_BOXES(KIND == KIND_FP8 ? 1 : 2, BITS),
    X_BYTES = X_BOXES * ROWS * 128, // of A, beside 128 bytes of a column
    W_BYTES = GEMM_STREAM_COLUMNS * 128,
    DEEP = 1024 / BITS // k
  };

  // How the block's work is cut: `slots` of boxes with different k, `across` of them side by side each; the steps, of 128 bytes of a column, that there are,
  // and the block's first; stages that it takes for a group of columns, and from one's steps to the next's; whether columns are gate and up.
  struct Work {
    int slots, across, steps, turns, first, by, stage_bytes;
    bool gated;
  };
  struct Ring {
    uint8_t *stages;
    uint64_t *full, *empty;
    int count;
  };

  // What a thread reads of half of a stage; Few::View says of what.
  struct View {
    const uint8_t *columns, *rows;
    int lane, half, each; // each: columns of C
    bool gated;
    __device__ __forceinline__ uint4 w(int c) const {
      int first = gated ? c % 2 * (GEMM_STREAM_COLUMNS / 2) + c / 2 * 8 : c * 8, row = order(lane);
      bool there = (gated ? c / 2 * 8 : first) < each;
      const uint8_t *at = columns + (first + row) * 128 + ((half * 4 + lane % 4) ^ row) * 16;
      return there ? *(const uint4 *)at : make_uint4(0, 0, 0, 0);
    }
    __device__ __forceinline__ uint4 x(int e, int i) const {
      int row = lane / 4, at = (half * 4 + lane % 4) * Few::X_CHUNK + i * 16;
      return *(const uint4 *)(rows + at / 128 * (ROWS * 128) + (e * 8 + row) * 128 + (at % 128 / 16 ^ row) * 16);
    }
  };

  // The thread's column of eight: neighbours of a quarter of the warp are four apart.
  static __device__ __forceinline__ int order(int lane) {
    return lane / 4 % 2 * 4 + lane / 8;
  }

  static __device__ __forceinline__ Tile tile_of(const GemmStreamParams &p) {
    Tile t = {};
    const GemmFewParams &f = p.few;
    t.threads = THREADS, t.wide = f.across * GEMM_STREAM_COLUMNS, t.each = p.each, t.across = f.across * p.each;
    t.rank = (int)block_rank(), t.parts = (int)cluster_size();
    uint32_t tall = ((uint32_t)f.any.m + ROWS - 1) / ROWS, ranges = f.ranges, tile = blockIdx.x / t.parts, line = tile / tall;
    uint32_t range = line % ranges, units = ((uint32_t)f.any.n + 7) / 8;
    t.row = (tile - line * tall) * ROWS, t.z = line / ranges;
    t.column = (int)((uint64_t)units * range / ranges) * 8;
    t.end = min((int)f.any.n, (int)((uint64_t)units * (range + 1) / ranges) * 8);
    return t;
  }

  static __device__ __forceinline__ Work work_of(const GemmStreamParams &p, const Tile &t) {
    Work w;
    w.across = p.few.across, w.slots = BOXES / w.across, w.by = w.slots * t.parts, w.first = t.rank * w.slots;
    w.steps = (int)((p.few.any.k + DEEP - 1) / DEEP), w.turns = max(0, (w.steps - w.first + w.by - 1) / w.by);
    w.stage_bytes = BOXES * W_BYTES + w.slots * X_BYTES;
    w.gated = p.few.any.end.activation == GEMM_SILU_MUL;
    return w;
  }

  // Turn `number` of the block, counted over all groups of columns: every box's columns, then each slot's part of A. The lanes share out the copies.
  static __device__ __forceinline__ void copy(const GemmStreamParams &p, const Tile &t, const Work &w, const Ring &r, int number, int lane) {
    int group = number / w.turns, column = t.column + group * t.across, step = w.first + (number - group * w.turns) * w.by, at = number % r.count;
    uint8_t *stage = r.stages + at * w.stage_bytes;
    uint64_t *full = &r.full[at];
    if (column >= t.end) return;
    int slots = min(w.slots, w.steps - step), across = min(w.across, (t.end - column + t.each - 1) / t.each);
    if (lane == 0) {
      if (number >= r.count) barrier_wait(&r.empty[at], (number / r.count - 1) & 1);
      barrier_expect(full, slots * (across * t.each * (w.gated ? 256 : 128) + X_BYTES));
    }
    __syncwarp();
    int slot = lane / w.across, beside = lane % w.across, first = column + beside * t.each;
    if (lane < BOXES && slot < slots && beside < across) {
      tensor_load(stage + lane * W_BYTES, &p.b, full, (step + slot) * 128, first, t.z);
      if (w.gated) tensor_load(stage + lane * W_BYTES + W_BYTES / 2, &p.b, full, (step + slot) * 128, (int)p.few.any.n + first, t.z);
    }
    for (int i = lane; i < slots * X_BOXES; i += 32) {
      int k = (step + i / X_BOXES) * DEEP + i % X_BOXES * (DEEP / X_BOXES);
      tensor_load(stage + BOXES * W_BYTES + i * (ROWS * 128), &p.a, full, k, t.row, t.z);
    }
  }

  // Of the thread's columns, for its half of four turns: four threads with the same columns have one turn's each.
  static __device__ __forceinline__ void load_scales(float (&to)[COLUMNS], const GemmStreamParams &p, const Tile &t, const Work &w, int first,
                                                     int step, int half, int lane) {
    int64_t n = p.few.any.n, groups = p.few.groups, group = (step + lane % 4 * w.by) * 2 + half, column = first + order(lane);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      int64_t in_c = column + (w.gated ? c / 2 * 8 : c * 8);
      bool there = in_c < n && group < groups;
      const float *at = p.few.scales + (t.z * (w.gated ? 2 * n : n) + in_c + (w.gated ? c % 2 * n : 0)) * groups + group;
      to[c] = there ? __ldg(at) : 0;
    }
  }

  // Warps with the second halves come after all those with the first, so that those with the same columns are t.wide apart in the sums.
  static __device__ __forceinline__ void consume(const GemmStreamParams &p, const Tile &t, const Work &w, const Ring &r, float *sums, int warp, int lane) {
    int box = warp % BOXES, half = warp / BOXES, slot = box / w.across, number = 0, at = 0;
    uint32_t parity = 0;
    for (int column = t.column; column < t.end; column += t.across) {
      int first = column + box % w.across * t.each;
      float d[2][EIGHTS * 4] = {}, scales[COLUMNS], some[COLUMNS], coming[COLUMNS];
      int step = w.first + slot;
      if (BITS == 4) load_scales(coming, p, t, w, first, step, half, lane);
#pragma unroll 1
      for (int turn = 0; turn < w.turns; turn++, number++, step += w.by) {
        if (BITS == 4 && turn % 4 == 0) {
#pragma unroll
          for (int c = 0; c < COLUMNS; c++) some[c] = coming[c];
          load_scales(coming, p, t, w, first, step + 4 * w.by, half, lane);
        }
        const uint8_t *stage = r.stages + at * w.stage_bytes;
        View v = {stage + box * W_BYTES, stage + BOXES * W_BYTES + slot * X_BYTES, lane, half, t.each, w.gated};
        barrier_wait(&r.full[at], parity);
        if (step < w.steps && first < t.end) {
#pragma unroll
          for (int c = 0; c < COLUMNS && BITS == 4; c++) scales[c] = __shfl_sync(~0u, some[c], lane / 4 * 4 + turn % 4);
          Few::multiply(d, v, scales, 2);
        }
        __syncwarp();
        if (lane == 0) barrier_arrive_here(&r.empty[at]);
        if (++at == r.count) at = 0, parity ^= 1;
        // The stage of the turn before, which the others have read by now, or nearly.
        if (number && number % (THREADS / 32) == warp) copy(p, t, w, r, number - 1 + r.count, lane);
      }
      Few::leave(sums, d, t, warp, lane, order(lane));
      named_sync(1, THREADS);
      if (t.parts > 1) Few::add_own_warps(sums, t), cluster_sync();
      Few::finish(sums, p.few.any, t, column);
      if (t.parts > 1) cluster_sync();
      else named_sync(1, THREADS);
    }
  }

  static __device__ __forceinline__ void barrier_arrive_here(uint64_t *bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
  }

  static __device__ __forceinline__ void run(const GemmStreamParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    Tile t = tile_of(p);
    Work w = work_of(p, t);
    float *sums = (float *)(memory + p.stages * w.stage_bytes);
    uint64_t *bars = (uint64_t *)((uint8_t *)sums + GEMM_STREAM_SUMS);
    Ring r = {memory, bars, bars + p.stages, p.stages};
    if (threadIdx.x == 0) {
      tensor_prefetch_map(&p.a), tensor_prefetch_map(&p.b);
      for (int i = 0; i < p.stages; i++) barrier_init(&r.full[i], 1), barrier_init(&r.empty[i], THREADS / 32);
      barrier_init_done();
    }
    __syncthreads();
    let_successor_start();
    wait_for_predecessor();
    if (warp < r.count && w.turns) copy(p, t, w, r, warp, lane);
    consume(p, t, w, r, sums, warp, lane);
  }
};

template <int KIND, int BITS> INLINE void gemm_stream(const GemmStreamParams &p) {
  if (p.few.rows == 16) GemmStream<KIND, BITS, 2>::run(p);
  else GemmStream<KIND, BITS, 1>::run(p);
}

#endif
