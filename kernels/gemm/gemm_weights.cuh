// GEMM of few rows of A, fp16 or bf16, by weights of fewer bits, fp8 (e4m3) or int4, on sm_90a: bound by reading the
// weights. As gemm_split.cuh with operands swapped: 128 columns of B by 16 rows of A, k shared out among a cluster. Weights
// are widened in registers, on their way from the ring of stages to mma.sync: which k a register holds does not matter
// as long as A's and B's agree, so a thread takes 16 contiguous bytes of weights and A's elements of the same k.
#ifndef SOL_KERNELS_GEMM_WEIGHTS_CUH
#define SOL_KERNELS_GEMM_WEIGHTS_CUH

#include "gemm/gemm_any.cuh"
#include "gemm/gemm_split.cuh"

// Four fp8 of a word as two pairs of KIND's elements.
template <int KIND> INLINE void widen_fp8(uint32_t w, uint32_t (&to)[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    __half2_raw h = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(w >> i * 16), __NV_E4M3);
    float2 f = __half22float2(*(__half2 *)&h);
    to[i] = KIND == KIND_FP16 ? *(uint32_t *)&h : narrow2(f.x, f.y, KIND);
  }
}

// Eight int4 of a word, two's complement, as pairs (0, 4), (1, 5), (2, 6), (3, 7). In the low bits of a number of fp16 from
// 1024 to 2048, or of bf16 from 128 to 256, with their sign bit turned over, they are 8 more than they are.
template <int KIND> INLINE void widen_int4(uint32_t w, uint32_t (&to)[4]) {
  const uint32_t zero = KIND == KIND_FP16 ? 0x64086408 : 0x43084308;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t v = (w >> i * 4 & 0x000f000f) ^ zero;
    if (KIND == KIND_FP16) {
      __half2 d = __hsub2(*(__half2 *)&v, *(const __half2 *)&zero);
      to[i] = *(uint32_t *)&d;
    } else {
      __nv_bfloat162 d = __hsub2(*(__nv_bfloat162 *)&v, *(const __nv_bfloat162 *)&zero);
      to[i] = *(uint32_t *)&d;
    }
  }
}

template <int KIND, int BITS, int STAGES> struct GemmWeights {
  // DEEP: k of a stage; BOXES: of A's, 64 k each.
  enum { WIDE = 16, DEEP = 1024 / BITS, BOXES = DEEP / 64, BYTES = GEMM_WEIGHTS_BYTES(BITS) };
  typedef GemmSums<WIDE, 128, 1> Sums;
  struct Ring {
    uint8_t w[STAGES][128 * 128], x[STAGES][BOXES][WIDE * 128];
    uint64_t full[STAGES], empty[STAGES];
  };
  union Shared {
    Ring ring;
    Sums sums;
  };
  typedef typename GemmLoop<KIND, 0, 0, 1, WIDE, STAGES, 1, 1>::Turn Turn;

  static __device__ __forceinline__ void start(Ring *r, const GemmWeightsParams &p) {
    if (threadIdx.x == GEMM_CONSUMERS) {
      tensor_prefetch_map(&p.tiled.a), tensor_prefetch_map(&p.tiled.b);
      for (int i = 0; i < STAGES; i++) barrier_init(&r->full[i], 1), barrier_init(&r->empty[i], GEMM_CONSUMERS / 32);
      barrier_init_done();
    }
    __syncthreads();
  }

  static __device__ __forceinline__ void produce(Ring *r, const GemmTiledParams &p, GemmTile t, int apart, int2 steps) {
    Turn turn;
    for (int step = steps.x; step < steps.y; step++, turn.next()) {
      uint64_t *full = &r->full[turn.stage];
      barrier_wait(&r->empty[turn.stage], turn.parity ^ 1);
      barrier_expect(full, BYTES);
#pragma unroll
      for (int i = 0; i < 2; i++)
        tensor_load(r->w[turn.stage] + i * 64 * 128, &p.a, full, step * 128, t.row + i * (64 + apart), t.batch);
#pragma unroll
      for (int i = 0; i < BOXES; i++)
        tensor_load(r->x[turn.stage][i], &p.b, full, step * DEEP + i * 64, t.column, t.batch);
    }
  }

  // 16 bytes of a row of 128 that is swizzled.
  static __device__ __forceinline__ uint4 chunk(const uint8_t *rows, int row, int i) {
    return *(const uint4 *)(rows + row * 128 + (i ^ row % 8) * 16);
  }

  // 64 bytes of weights along k, from `half` on, by 8 rows of A from `eight` on.
  static __device__ __forceinline__ void multiply_fp8(float *d, uint4 low, uint4 high, const Ring *r, int stage, int half, int eight, int lane) {
    const uint8_t *box = r->x[stage][half];
    uint4 x[2] = {chunk(box, eight + lane / 4, lane % 4 * 2), chunk(box, eight + lane / 4, lane % 4 * 2 + 1)};
    const uint32_t *of_x = (const uint32_t *)x, *of_low = (const uint32_t *)&low, *of_high = (const uint32_t *)&high;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t a[2], b[2];
      widen_fp8<KIND>(of_low[i], a), widen_fp8<KIND>(of_high[i], b);
      uint32_t w[4] = {a[0], b[0], a[1], b[1]};
      mma_16x8(d, w, of_x[i * 2], of_x[i * 2 + 1], KIND);
    }
  }

  static __device__ __forceinline__ void multiply_int4(float *d, uint4 low, uint4 high, const Ring *r, int stage, int half, int eight, int lane) {
    const uint8_t *box = r->x[stage][half * 2 + lane % 4 / 2];
    const uint32_t *of_low = (const uint32_t *)&low, *of_high = (const uint32_t *)&high;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint4 x = chunk(box, eight + lane / 4, lane % 2 * 4 + i);
      uint32_t a[4], b[4];
      widen_int4<KIND>(of_low[i], a), widen_int4<KIND>(of_high[i], b);
      uint32_t first[4] = {a[0], b[0], a[1], b[1]}, second[4] = {a[2], b[2], a[3], b[3]};
      mma_16x8(d, first, __byte_perm(x.x, x.z, 0x5410), __byte_perm(x.x, x.z, 0x7632), KIND);
      mma_16x8(d, second, __byte_perm(x.y, x.w, 0x5410), __byte_perm(x.y, x.w, 0x7632), KIND);
    }
  }

  // Of the thread's two columns of B, for the stage's two groups of 128 k.
  static __device__ __forceinline__ void load_scales(float (&to)[4], const GemmWeightsParams &p, const float *const (&of)[2], int step) {
#pragma unroll
    for (int i = 0; i < 4; i++) to[i] = of[i % 2] && step * 2 + i / 2 < p.groups ? of[i % 2][step * 2 + i / 2] : 0;
  }

  // d: two eights of A's rows.
  static __device__ __forceinline__ void consume(float (&d)[8], Ring *r, const GemmWeightsParams &p, const float *const (&of)[2], int2 steps) {
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = warp * 16 + lane / 4;
    bool both = p.tiled.m > 8;
    float scales[4], next[4];
    Turn turn;
    if (BITS == 4) load_scales(next, p, of, steps.x);
    for (int step = steps.x; step < steps.y; step++, turn.next()) {
#pragma unroll
      for (int i = 0; i < 4; i++) scales[i] = next[i];
      if (BITS == 4) load_scales(next, p, of, step + 1);
      barrier_wait(&r->full[turn.stage], turn.parity);
#pragma unroll
      for (int half = 0; half < 2; half++) {
        uint4 low = chunk(r->w[turn.stage], row, half * 4 + lane % 4), high = chunk(r->w[turn.stage], row + 8, half * 4 + lane % 4);
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float sum[4] = {0};
          if (e && !both) break;
          if (BITS == 8) multiply_fp8(d + e * 4, low, high, r, turn.stage, half, e * 8, lane);
          else multiply_int4(sum, low, high, r, turn.stage, half, e * 8, lane);
#pragma unroll
          for (int i = 0; i < 4 && BITS == 4; i++) d[e * 4 + i] += scales[half * 2 + i / 2] * sum[i];
        }
      }
      __syncwarp();
      if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&r->empty[turn.stage])) : "memory");
    }
  }

  static __device__ __forceinline__ void compute(Shared *s, const GemmWeightsParams &p, GemmTile t, bool gated, int2 steps, int rank, int parts) {
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, wide = gated ? 2 * p.tiled.n : p.tiled.n;
    float d[8] = {0};
    const float *of[2];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int64_t column = t.row + row + i * 8 + (gated && row >= 64 ? p.tiled.n - 64 : 0);
      of[i] = BITS == 4 && column < wide ? p.scales + (t.batch * (int64_t)wide + column) * p.groups : nullptr;
    }
    consume(d, &s->ring, p, of, steps);
    named_sync(1, GEMM_CONSUMERS); // all have read the stages
    s->sums.leave(d, row);
    cluster_sync();
    s->sums.finish(&p.tiled.end, p.tiled.m, p.tiled.n, t.column, t.row, t.batch, rank, parts);
  }

  static __device__ __forceinline__ void run(const GemmWeightsParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    bool gated = p.tiled.end.activation == GEMM_SILU_MUL;
    int rank = (int)block_rank(), parts = (int)cluster_size(), apart = gated ? p.tiled.n - 64 : 0;
    int2 steps = gemm_part((p.tiled.k + DEEP - 1) / DEEP, rank, parts);
    GemmTile t = gemm_tile_at(p.tiled, blockIdx.x / parts, gated ? 64 : 128, WIDE);
    start(&s->ring, p);
    let_successor_start();
    wait_for_predecessor();
    if (threadIdx.x < GEMM_CONSUMERS) compute(s, p, t, gated, steps, rank, parts);
    else {
      if (threadIdx.x == GEMM_CONSUMERS) produce(&s->ring, p.tiled, t, apart, steps);
      __syncwarp();
      cluster_sync(); // every block's sums are there
    }
    cluster_sync(); // no block ends while another reads its sums
  }
};

#endif
