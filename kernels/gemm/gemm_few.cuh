// GEMM of few rows of A, on sm_90a: bound by reading B, whose elements may have fewer bits than A's: fp8 (e4m3) or int4. A block has
// p.wide columns of B, so many that all SMs have the same to read, by 16 rows of A. One thread copies 128 bytes along k of all of
// them into a slot of a ring; warps share out the columns, 32 each, and the slots. Sums of one column in different warps are
// added at the end, always in the same order.
//
// B's columns are the 16 rows of mma.sync, and A's rows are its columns. Weights of fewer bits are widened in registers: which k a
// register holds does not matter as long as A's and B's agree, so a thread takes 16 contiguous bytes of weights and A's elements of the same k.
#ifndef SOL_KERNELS_GEMM_FEW_CUH
#define SOL_KERNELS_GEMM_FEW_CUH

#include "gemm/gemm_any.cuh"
#include "gemm/gemm_loop.cuh"

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

// BITS: of B's elements.
template <int KIND, int BITS> struct GemmFew {
  // DEEP: k of a slot; BOXES: of A's, 128 bytes of 16 rows each.
  enum { DEEP = 1024 / BITS, BOXES = GEMM_FEW_BOXES(KIND == KIND_FP8 ? 8 : 16, BITS), WARPS = GEMM_CONSUMERS / 32, COLUMNS = 32 };

  // The block's shared memory: slots, each with p.wide columns of B and then A's boxes; their barriers; later the sums.
  struct Ring {
    uint8_t *slots;
    uint64_t *full, *empty;
    int bytes, count;
  };
  static __device__ __forceinline__ Ring ring_of(uint8_t *memory, const GemmFewParams &p) {
    int bytes = GEMM_FEW_SLOT(p.wide, BOXES);
    uint64_t *barriers = (uint64_t *)(memory + p.slots * bytes);
    return {memory, barriers, barriers + p.slots, bytes, p.slots};
  }

  // Warps that have the same slots, and how many such groups there are.
  static __device__ __forceinline__ int across(const GemmFewParams &p) {
    return (p.wide + COLUMNS - 1) / COLUMNS;
  }
  static __device__ __forceinline__ int groups(const GemmFewParams &p) {
    return WARPS / across(p);
  }

  static __device__ __forceinline__ void start(const Ring &r, const GemmFewParams &p) {
    if (threadIdx.x == GEMM_CONSUMERS) {
      tensor_prefetch_map(&p.tiled.a), tensor_prefetch_map(&p.tiled.b);
      for (int i = 0; i < r.count; i++) barrier_init(&r.full[i], 1), barrier_init(&r.empty[i], across(p));
      barrier_init_done();
    }
    __syncthreads();
  }

  static __device__ __forceinline__ void produce(const Ring &r, const GemmFewParams &p, GemmTile t, int apart, int steps) {
    int half = p.wide / 2;
    for (int step = 0; step < steps; step++) {
      int slot = step % r.count;
      uint8_t *to = r.slots + slot * r.bytes;
      barrier_wait(&r.empty[slot], step / r.count % 2 ^ 1);
      barrier_expect(&r.full[slot], r.bytes);
#pragma unroll
      for (int i = 0; i < 2; i++)
        tensor_load(to + i * half * 128, &p.tiled.a, &r.full[slot], step * (BITS == 16 ? 64 : 128), t.row + i * (half + apart), t.batch);
#pragma unroll
      for (int i = 0; i < BOXES; i++)
        tensor_load(to + p.wide * 128 + i * 2048, &p.tiled.b, &r.full[slot], step * DEEP + i * (DEEP / BOXES), t.column, t.batch);
    }
  }

  // 16 bytes of a row of 128 that is swizzled.
  static __device__ __forceinline__ const uint8_t *place(const uint8_t *rows, int row, int i) {
    return rows + row * 128 + (i ^ row % 8) * 16;
  }
  static __device__ __forceinline__ uint4 chunk(const uint8_t *rows, int row, int i) {
    return *(const uint4 *)place(rows, row, i);
  }

  // B as it is. w, x: of the slot, from the warp's columns on.
  static __device__ __forceinline__ void multiply_same(float (&d)[2][8], const uint8_t *w, const uint8_t *x, int count, bool both, int lane) {
#pragma unroll
    for (int k = 0; k < 4; k++) { // 32 bytes each
      uint32_t of_x[4], of_w[4];
      matrix_load(of_x, (const uint16_t *)place(x, lane % 16, k * 2 + lane / 16));
#pragma unroll
      for (int j = 0; j < 2; j++) {
        if (j >= count) break;
        matrix_load(of_w, (const uint16_t *)place(w, j * 16 + lane % 16, k * 2 + lane / 16));
        mma_16x8(d[j], of_w, of_x[0], of_x[2], KIND);
        if (both) mma_16x8(d[j] + 4, of_w, of_x[1], of_x[3], KIND);
      }
    }
  }

  static __device__ __forceinline__ void multiply_fp8(float (&d)[2][8], const uint8_t *w, const uint8_t *x, int count, bool both, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++) { // 64 bytes of weights each
      uint4 of_x[2][2], of_w[2][2];
#pragma unroll
      for (int i = 0; i < 4; i++) {
        of_x[i / 2][i % 2] = chunk(x + half * 2048, i / 2 * 8 + lane / 4, lane % 4 * 2 + i % 2);
        of_w[i / 2][i % 2] = i / 2 < count ? chunk(w, i * 8 + lane / 4, half * 4 + lane % 4) : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
          uint32_t low[2], high[2];
          if (j >= count) break;
          widen_fp8<KIND>(((const uint32_t *)&of_w[j][0])[i], low), widen_fp8<KIND>(((const uint32_t *)&of_w[j][1])[i], high);
          uint32_t a[4] = {low[0], high[0], low[1], high[1]};
          mma_16x8(d[j], a, ((const uint32_t *)of_x[0])[i * 2], ((const uint32_t *)of_x[0])[i * 2 + 1], KIND);
          if (both) mma_16x8(d[j] + 4, a, ((const uint32_t *)of_x[1])[i * 2], ((const uint32_t *)of_x[1])[i * 2 + 1], KIND);
        }
    }
  }

  // scales: of the thread's columns, for the slot's two groups of 128 k.
  static __device__ __forceinline__ void multiply_int4(float (&d)[2][8], const uint8_t *w, const uint8_t *x, int count, bool both, int lane,
                                                       const float (&scales)[2][4]) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float sums[2][8] = {};
      uint4 of_w[2][2];
#pragma unroll
      for (int i = 0; i < 4; i++) of_w[i / 2][i % 2] = i / 2 < count ? chunk(w, i * 8 + lane / 4, half * 4 + lane % 4) : make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int i = 0; i < 4; i++) {
        uint32_t of_x[2][4];
#pragma unroll
        for (int e = 0; e < 2; e++) {
          if (e && !both) break;
          uint4 v = chunk(x + (half * 2 + lane % 4 / 2) * 2048, e * 8 + lane / 4, lane % 2 * 4 + i);
          of_x[e][0] = __byte_perm(v.x, v.z, 0x5410), of_x[e][1] = __byte_perm(v.x, v.z, 0x7632);
          of_x[e][2] = __byte_perm(v.y, v.w, 0x5410), of_x[e][3] = __byte_perm(v.y, v.w, 0x7632);
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
          uint32_t low[4], high[4];
          if (j >= count) break;
          widen_int4<KIND>(((const uint32_t *)&of_w[j][0])[i], low), widen_int4<KIND>(((const uint32_t *)&of_w[j][1])[i], high);
#pragma unroll
          for (int q = 0; q < 2; q++) {
            uint32_t a[4] = {low[q * 2], high[q * 2], low[q * 2 + 1], high[q * 2 + 1]};
            mma_16x8(sums[j], a, of_x[0][q * 2], of_x[0][q * 2 + 1], KIND);
            if (both) mma_16x8(sums[j] + 4, a, of_x[1][q * 2], of_x[1][q * 2 + 1], KIND);
          }
        }
      }
#pragma unroll
      for (int i = 0; i < 16; i++) d[i / 8][i % 8] += scales[i / 8][half * 2 + i % 4 / 2] * sums[i / 8][i % 8];
    }
  }

  // of: where the scales of the thread's four columns are, or -1.
  static __device__ __forceinline__ void load_scales(float (&to)[2][4], const GemmFewParams &p, const float *scales, const int (&of)[4], int step) {
#pragma unroll
    for (int i = 0; i < 8; i++) {
      int column = i / 4 * 2 + i % 2, group = step * 2 + i / 2 % 2;
      to[i / 4][i % 4] = of[column] >= 0 && group < p.groups ? scales[of[column] + group] : 0;
    }
  }

  // d: of each 16 columns two eights of A's rows.
  static __device__ __forceinline__ void consume(float (&d)[2][8], const Ring &r, const GemmFewParams &p, GemmTile t, int apart, int steps,
                                                 int warp, int lane) {
    int first = warp % across(p) * COLUMNS, count = (p.wide - first) / 16, many = groups(p);
    bool both = p.tiled.m - t.column > 8;
    int all = p.tiled.end.activation == GEMM_SILU_MUL ? 2 * p.tiled.n : p.tiled.n, of[4];
    const float *scales = BITS == 4 ? p.scales + t.batch * (int64_t)all * p.groups : nullptr;
    auto scales_of = [&](int column) { // where they are; -1: there is no such column
      int at = t.row + column + (column >= p.wide / 2 ? apart : 0);
      return column < p.wide && at < all ? at * p.groups : -1;
    };
#pragma unroll
    for (int i = 0; i < 4; i++) of[i] = scales_of(first + i * 8 + lane / 4);
    int ahead = scales_of(first + lane);
    for (int step = warp / across(p); step < steps; step += many) {
      int slot = step % r.count;
      const uint8_t *w = r.slots + slot * r.bytes + first * 128, *x = r.slots + slot * r.bytes + p.wide * 128;
      float scale[2][4];
      if (BITS == 4) {
        int group = (step + 2 * many) * 2;
        load_scales(scale, p, scales, of, step);
        if (ahead >= 0 && group < p.groups) asm volatile("prefetch.global.L2 [%0];" ::"l"(scales + ahead + group));
      }
      barrier_wait(&r.full[slot], step / r.count % 2);
      if (BITS == 4) multiply_int4(d, w, x, count, both, lane, scale);
      else if (BITS == 8 && KIND != KIND_FP8) multiply_fp8(d, w, x, count, both, lane);
      else multiply_same(d, w, x, count, both, lane);
      __syncwarp();
      if (lane == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&r.empty[slot])) : "memory");
    }
  }

  // The sums of a group of warps: 16 rows of p.wide columns and PAD, so that a warp's stores are to different banks.
  enum { PAD = 4 };
  static __device__ __forceinline__ void leave(float *sums, const GemmFewParams &p, const float (&d)[2][8], int warp, int lane) {
    float *mine = sums + warp / across(p) * 16 * (p.wide + PAD);
    int first = warp % across(p) * COLUMNS;
#pragma unroll
    for (int i = 0; i < 16; i++) {
      int column = first + i / 8 * 16 + i % 4 / 2 * 8 + lane / 4, row = i % 8 / 4 * 8 + lane % 4 * 2 + i % 2;
      if (column < p.wide) mine[row * (p.wide + PAD) + column] = d[i / 8][i % 8];
    }
  }

  static __device__ __forceinline__ float4 sum(const float *sums, const GemmFewParams &p, int row, int column) {
    float4 all = {0, 0, 0, 0};
    for (int i = 0; i < groups(p); i++) {
      float4 v = *(const float4 *)(sums + (i * 16 + row) * (p.wide + PAD) + column);
      all.x += v.x, all.y += v.y, all.z += v.z, all.w += v.w;
    }
    return all;
  }

  static __device__ __forceinline__ void finish(const float *sums, const GemmFewParams &p, GemmTile t) {
    const GemmEpilogue *e = &p.tiled.end;
    bool gated = e->activation == GEMM_SILU_MUL, at_once = gemm_stores_four(e);
    float alpha = gemm_alpha(e);
    int wide = gated ? p.wide / 2 : p.wide, quads = min(16, p.tiled.m - t.column) * wide / 4;
    for (int q = threadIdx.x; q < quads; q += GEMM_CONSUMERS) {
      int row = q * 4 / wide, column = q * 4 % wide;
      float4 v = sum(sums, p, row, column), up = gated ? sum(sums, p, row, column + wide) : v;
      float of[4] = {v.x, v.y, v.z, v.w}, ups[4] = {up.x, up.y, up.z, up.w};
      gemm_finish_four(e, alpha, at_once, t.batch, t.column + row, t.row + column, p.tiled.n, of, ups);
    }
  }

  static __device__ __forceinline__ void run(const GemmFewParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Ring r = ring_of(memory, p);
    bool gated = p.tiled.end.activation == GEMM_SILU_MUL;
    int steps = (p.tiled.k + DEEP - 1) / DEEP, apart = gated ? p.tiled.n - p.wide / 2 : 0, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    GemmTile t = gemm_tile_at(p.tiled, blockIdx.x, gated ? p.wide / 2 : p.wide, 16);
    start(r, p);
    let_successor_start();
    wait_for_predecessor();
    if (warp == WARPS) {
      if (lane == 0) produce(r, p, t, apart, steps);
      return;
    }
    float d[2][8] = {};
    bool works = warp < groups(p) * across(p);
    if (works) consume(d, r, p, t, apart, steps, warp, lane);
    named_sync(1, GEMM_CONSUMERS); // all have read the slots
    if (works) leave((float *)memory, p, d, warp, lane);
    named_sync(1, GEMM_CONSUMERS);
    finish((const float *)memory, p, t);
  }
};

#endif
