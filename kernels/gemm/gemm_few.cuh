// GEMM of few rows of A, as in decoding: bound by reading B, whose columns are contiguous along k and whose elements may have fewer bits
// than A's. B goes once from global memory straight into registers, as the 16 rows of mma.sync, and A's rows are its columns; many warps
// with several loads under way each keep memory busy. k is shared out among the warps of a block that have the same columns, and among
// the blocks of a cluster. Every row's sums are made in the same order, however many rows there are.
#ifndef SOL_KERNELS_GEMM_FEW_CUH
#define SOL_KERNELS_GEMM_FEW_CUH

#include "gemm/gemm_any.cuh"
#include "gemm/gemm_sums.cuh"

#if __CUDA_ARCH__ >= 800

// Four fp8 of a word as two pairs of KIND's elements: (0, 1), (2, 3).
template <int KIND> INLINE void few_fp8(uint32_t w, uint32_t (&to)[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    __half2_raw h = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(w >> i * 16), __NV_E4M3);
    float2 f = __half22float2(*(__half2 *)&h);
    to[i] = KIND == KIND_FP16 ? *(uint32_t *)&h : narrow2(f.x, f.y, KIND);
  }
}

// Eight int4 of a word, two's complement, as pairs (0, 4), (1, 5), (2, 6), (3, 7). In the low bits of a number of fp16 from
// 1024 to 2048, or of bf16 from 128 to 256, with their sign bit turned over, they are 8 more than they are.
template <int KIND> INLINE void few_int4(uint32_t w, uint32_t (&to)[4]) {
  const uint32_t zero = KIND == KIND_FP16 ? 0x64086408 : 0x43084308;
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t v; // (w >> i * 4 & 0x000f000f) ^ zero: in C two instructions, of one constant each
    asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(v) : "r"(w >> i * 4), "r"(0x000f000f), "r"(zero));
    if (KIND == KIND_FP16) {
      __half2 d = __hsub2(*(__half2 *)&v, *(const __half2 *)&zero);
      to[i] = *(uint32_t *)&d;
    } else {
      __nv_bfloat162 d = __hsub2(*(__nv_bfloat162 *)&v, *(const __nv_bfloat162 *)&zero);
      to[i] = *(uint32_t *)&d;
    }
  }
}

INLINE uint4 few_stream(const char *at) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

// TILES: of 16 columns of B that a warp has. DEEP: steps, of 64 bytes of each column, whose loads are issued together. AHEAD: they are while
// those before are multiplied, where multiplying takes long.
template <int KIND, int BITS, int TILES, int DEEP, bool AHEAD> struct GemmFew {
  enum {
    WARPS = GEMM_FEW_WARPS,
    COLUMNS = 2 * TILES,                // of a thread
    X_BYTES = KIND == KIND_FP8 ? 1 : 2, // of an element of A
    X_CHUNK = 128 / BITS * X_BYTES,     // of A, beside 16 bytes of a column
    ACROSS = WARPS * TILES * 16,
    PITCH = ACROSS + 4
  };
  struct Batch {
    uint4 w[DEEP][COLUMNS];
    float scales[BITS == 4 ? DEEP : 1][COLUMNS];
  };
  // What a block has of C, and how it is shared out.
  struct Tile {
    int row, column, z, wide, rank, parts;
  };
  // Of the thread: its columns of B, its rows of A and its scales, from its own 16 bytes of a step on. Columns and rows that are not there
  // are the last ones again.
  struct Place {
    const char *b[COLUMNS], *x[2];
    const float *scales[COLUMNS];
    int from, to, mine; // steps of the warp; up to `mine` the thread has some bytes of them
  };

  static __device__ __forceinline__ void load(Batch &b, const Place &at, int step) {
#pragma unroll
    for (int i = 0; i < DEEP; i++)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) {
        b.w[i][c] = step + i < at.mine ? few_stream(at.b[c] + (step + i) * 64) : make_uint4(0, 0, 0, 0);
        if (BITS == 4) b.scales[i][c] = step + i < at.to ? at.scales[c][step + i] : 0;
      }
  }

  static __device__ __forceinline__ uint4 load_x(const Place &at, int e, int step, int i) {
    return step < at.mine ? *(const uint4 *)(at.x[e] + step * (4 * X_CHUNK) + i * 16) : make_uint4(0, 0, 0, 0);
  }

  // Elements as wide as A's.
  template <int EIGHTS>
  static __device__ __forceinline__ void multiply_same(float (&d)[TILES][8], const uint4 (&w)[COLUMNS], const Place &at, int step) {
#pragma unroll
    for (int e = 0; e < EIGHTS; e++) {
      uint4 x = load_x(at, e, step, 0);
#pragma unroll
      for (int t = 0; t < TILES; t++) {
        uint4 l = w[t * 2], h = w[t * 2 + 1];
        uint32_t first[4] = {l.x, h.x, l.y, h.y}, second[4] = {l.z, h.z, l.w, h.w};
        mma_16x8(d[t] + e * 4, first, x.x, x.y, KIND), mma_16x8(d[t] + e * 4, second, x.z, x.w, KIND);
      }
    }
  }

  template <int EIGHTS>
  static __device__ __forceinline__ void multiply_fp8(float (&d)[TILES][8], const uint4 (&w)[COLUMNS], const Place &at, int step) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      uint4 x[EIGHTS];
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) x[e] = load_x(at, e, step, j);
#pragma unroll
      for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int q = 0; q < 2; q++) {
          uint32_t l[2], h[2];
          few_fp8<KIND>((&w[t * 2].x)[j * 2 + q], l), few_fp8<KIND>((&w[t * 2 + 1].x)[j * 2 + q], h);
          uint32_t of[4] = {l[0], h[0], l[1], h[1]};
#pragma unroll
          for (int e = 0; e < EIGHTS; e++) mma_16x8(d[t] + e * 4, of, q ? x[e].z : x[e].x, q ? x[e].w : x[e].y, KIND);
        }
    }
  }

  // A step is one group of scales.
  template <int EIGHTS>
  static __device__ __forceinline__ void multiply_int4(float (&d)[TILES][8], const uint4 (&w)[COLUMNS], const float (&scales)[COLUMNS],
                                                       const Place &at, int step) {
    float sum[TILES][EIGHTS * 4] = {};
#pragma unroll
    for (int j = 0; j < 4; j++) {
      uint32_t x[EIGHTS][4];
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) {
        uint4 v = load_x(at, e, step, j);
        x[e][0] = __byte_perm(v.x, v.z, 0x5410), x[e][1] = __byte_perm(v.x, v.z, 0x7632);
        x[e][2] = __byte_perm(v.y, v.w, 0x5410), x[e][3] = __byte_perm(v.y, v.w, 0x7632);
      }
#pragma unroll
      for (int t = 0; t < TILES; t++) {
        uint32_t l[4], h[4];
        few_int4<KIND>((&w[t * 2].x)[j], l), few_int4<KIND>((&w[t * 2 + 1].x)[j], h);
        uint32_t first[4] = {l[0], h[0], l[1], h[1]}, second[4] = {l[2], h[2], l[3], h[3]};
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) mma_16x8(sum[t] + e * 4, first, x[e][0], x[e][1], KIND);
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) mma_16x8(sum[t] + e * 4, second, x[e][2], x[e][3], KIND);
      }
    }
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int q = 0; q < EIGHTS * 4; q++) d[t][q] += scales[t * 2 + q / 2 % 2] * sum[t][q];
  }

  template <int EIGHTS> static __device__ __forceinline__ void multiply(float (&d)[TILES][8], const Batch &b, const Place &at, int step) {
#pragma unroll
    for (int i = 0; i < DEEP; i++) {
      if (i && step + i >= at.to) break;
      if (BITS == 4) multiply_int4<EIGHTS>(d, b.w[i], b.scales[BITS == 4 ? i : 0], at, step + i);
      else if (BITS == 8 && KIND != KIND_FP8) multiply_fp8<EIGHTS>(d, b.w[i], at, step + i);
      else multiply_same<EIGHTS>(d, b.w[i], at, step + i);
    }
  }

  // EIGHTS: of A's rows.
  template <int EIGHTS> static __device__ __forceinline__ void sum(float (&d)[TILES][8], const Place &at) {
    if (!AHEAD) {
#pragma unroll 1
      for (int step = at.from; step < at.to; step += DEEP) {
        Batch batch;
        load(batch, at, step);
        multiply<EIGHTS>(d, batch, at, step);
      }
      return;
    }
    Batch even, odd;
    load(even, at, at.from);
#pragma unroll 1
    for (int step = at.from; step < at.to; step += 2 * DEEP) {
      load(odd, at, step + DEEP);
      multiply<EIGHTS>(d, even, at, step);
      if (step + DEEP >= at.to) break;
      load(even, at, step + 2 * DEEP);
      multiply<EIGHTS>(d, odd, at, step + DEEP);
    }
  }

  // From here on: the block's sums, [row of A][column of B], the warps' side by side.
  typedef float Sums[16][PITCH];

  static __device__ __forceinline__ void leave(Sums sums, const float (&d)[TILES][8], int warp, int lane) {
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int i = 0; i < 8; i++)
        sums[i / 4 * 8 + lane % 4 * 2 + i % 2][(warp * TILES + t) * 16 + lane / 4 + i / 2 % 2 * 8] = d[t][i];
  }

  static __device__ __forceinline__ void add(float4 &to, float4 v) {
    to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
  }

  // Those of the block's warps with the same columns, `wide` of them.
  static __device__ __forceinline__ float4 add_warps(const float *at, int wide) {
    float4 all = *(const float4 *)at;
    for (int j = wide; j < ACROSS; j += wide) add(all, *(const float4 *)(at + j));
    return all;
  }

  static __device__ __forceinline__ float4 add_parts(const float *at, int parts) {
    float4 all = {0, 0, 0, 0};
#if __CUDA_ARCH__ >= 900
#pragma unroll
    for (int i = 0; i < GEMM_PARTS; i += 4) { // four loads are under way at a time
      float4 of[4];
#pragma unroll
      for (int j = 0; j < 4; j++) of[j] = cluster_load(shared_address(at), i + j, parts);
#pragma unroll
      for (int j = 0; j < 4; j++) add(all, of[j]);
    }
#endif
    return all;
  }

  static __device__ __forceinline__ void finish(Sums sums, const GemmAnyParams &p, const Tile &t) {
    bool gated = p.end.activation == GEMM_SILU_MUL, at_once = gemm_stores_four(&p.end);
    float alpha = gemm_alpha(&p.end);
    int across = gated ? t.wide / 2 : t.wide, fours = across / 4, quads = min(16, (int)p.m - t.row) * fours, last = quads * (t.rank + 1) / t.parts;
    for (int q = quads * t.rank / t.parts + (int)threadIdx.x; q < last; q += WARPS * 32) {
      int r = q / fours, c = (q - r * fours) * 4;
      const float *at = &sums[r][gated ? c / 8 * 16 + c % 8 : c];
      float4 v = t.parts > 1 ? add_parts(at, t.parts) : add_warps(at, t.wide), up = v;
      if (gated) up = t.parts > 1 ? add_parts(at + 8, t.parts) : add_warps(at + 8, t.wide);
      float fs[4] = {v.x, v.y, v.z, v.w}, ups[4] = {up.x, up.y, up.z, up.w};
      gemm_finish_four(&p.end, alpha, at_once, t.z, t.row + r, t.column + c, p.n, fs, ups);
    }
  }

  // B's lines of the thread's columns, as far as `ahead` lines of each, by four threads in turn: what the kernel before writes meanwhile goes
  // to L2, too.
  static __device__ __forceinline__ void prefetch(const GemmFewParams &f, const Place &at, int lane) {
    for (int i = lane % 4; i < f.ahead && at.from + 2 * i < at.to; i += 4)
#pragma unroll
      for (int c = 0; c < COLUMNS; c++) prefetch_l2(at.b[c] - lane % 4 * 16 + (at.from + 2 * i) * 64);
  }

  static __device__ __forceinline__ Tile tile_of(const GemmFewParams &f) {
    Tile t = {0, 0, 0, f.across * TILES * 16, 0, 1};
#if __CUDA_ARCH__ >= 900
    t.rank = (int)block_rank(), t.parts = (int)cluster_size();
#endif
    uint32_t c_wide = f.any.end.activation == GEMM_SILU_MUL ? t.wide / 2 : t.wide, tall = ((uint32_t)f.any.m + 15) / 16;
    uint32_t columns = ((uint32_t)f.any.n + c_wide - 1) / c_wide, tile = blockIdx.x / t.parts, line = tile / tall;
    t.row = (tile - line * tall) * 16, t.z = line / columns, t.column = (line - t.z * columns) * c_wide;
    return t;
  }

  static __device__ __forceinline__ Place place_of(const GemmFewParams &f, const Tile &t, int warp, int lane) {
    const GemmAnyParams &p = f.any;
    bool gated = p.end.activation == GEMM_SILU_MUL;
    int per = WARPS / f.across, slots = per * t.parts, slot = t.rank * per + warp / f.across, own = lane % 4 * 16;
    int each = gated ? 8 : 16, first = t.column + warp % f.across * TILES * each + lane / 4, n = (int)p.n, m = (int)p.m;
    int bytes = (int)(p.k * BITS / 8), steps = (bytes + 63) / 64;
    Place at;
    at.from = (int)((uint32_t)steps * slot / slots), at.to = (int)((uint32_t)steps * (slot + 1) / slots);
    at.mine = min(at.to, (bytes - own + 63) / 64);
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      int column = first + c / 2 * each + (gated ? 0 : c % 2 * 8);
      column = min(column, n - 1) + (gated && c % 2 ? n : 0);
      at.b[c] = (const char *)p.b + (t.z * p.b_batch + column * p.b_across) * BITS / 8 + own;
      at.scales[c] = f.scales + (t.z * (int64_t)(gated ? 2 * n : n) + column) * f.groups;
    }
#pragma unroll
    for (int e = 0; e < 2; e++)
      at.x[e] = (const char *)p.a + (t.z * p.a_batch + min(t.row + e * 8 + lane / 4, m - 1) * p.a_down) * X_BYTES + lane % 4 * X_CHUNK;
    return at;
  }

  static __device__ __forceinline__ void meet(void) {
#if __CUDA_ARCH__ >= 900
    cluster_sync();
#endif
  }

  static __device__ __forceinline__ void run(const GemmFewParams &f) {
    __shared__ __align__(16) Sums sums;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Tile t = tile_of(f);
    Place at = place_of(f, t, warp, lane);
    float d[TILES][8] = {};
    let_successor_start();
    if (f.ahead) prefetch(f, at, lane);
    wait_for_predecessor();
    if (f.any.m - t.row > 8) sum<2>(d, at);
    else sum<1>(d, at);
    leave(sums, d, warp, lane);
    __syncthreads();
    if (t.parts > 1) {
      if (f.across < WARPS) {
        for (int i = threadIdx.x; i < 4 * t.wide; i += WARPS * 32) {
          float4 *to = (float4 *)&sums[i / (t.wide / 4)][i % (t.wide / 4) * 4];
          *to = add_warps((float *)to, t.wide);
        }
      }
      meet();
    }
    finish(sums, f.any, t);
    if (t.parts > 1) meet(); // no block ends while another reads its sums
  }
};
#endif

#endif
