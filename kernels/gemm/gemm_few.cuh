// GEMM of few rows of A, as in decoding: bound by reading B, whose columns are contiguous along k and whose elements may have fewer bits
// than A's. B's columns are the 16 rows of mma.sync, and A's rows are its columns. Every warp streams its own part of k of its columns, and
// of A's rows beside it, through its own ring in shared memory: asynchronous copies of several steps are under way, over the ends of tiles,
// and warps meet only to add up their sums. Blocks have equal shares of the columns; k is shared out among the warps of a block, and among
// the blocks of a cluster. Every row's sums are made in the same order, however many rows there are.
#ifndef SOL_KERNELS_GEMM_FEW_CUH
#define SOL_KERNELS_GEMM_FEW_CUH

#include "gemm/gemm_any.cuh"
#include "gemm/gemm_sums.cuh"
#include "mma.cuh"

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

// EIGHTS: of A's rows.
template <int KIND, int BITS, int EIGHTS> struct GemmFew {
  enum {
    ROOMY = __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1100,
    RING = GEMM_FEW_RING(ROOMY),
    TILES = GEMM_FEW_COLUMNS / 16,      // of 16 columns of B, of a warp at a time
    ROWS = 8 * EIGHTS,                  // of A
    COLUMNS = 2 * TILES,                // of a thread
    WIDE = ROOMY ? 128 : 64,            // bytes of a column in a step: whole lines, where there is room
    PIECES = WIDE / 16,                 // of a column
    BESIDE = 32 / PIECES,               // columns that one copy of the warp has
    HALVES = WIDE / 64,                 // a thread has 16 bytes of each
    X_BYTES = KIND == KIND_FP8 ? 1 : 2, // of an element of A
    X_CHUNK = 128 / BITS * X_BYTES,     // of A, beside 16 bytes of a column
    X_EACH = X_CHUNK / 16,
    X_PIECES = PIECES * X_EACH, // of 16 bytes, of a row of A in a step
    X_ALL = EIGHTS * 8 * X_PIECES,
    X_LOADS = EIGHTS * X_PIECES / 4
  };
  // A step: WIDE bytes of each column, and as many elements of A's rows, both swizzled.
  struct Stage {
    uint4 w[16 * TILES * PIECES], x[X_ALL + (BITS == 4 ? 16 * TILES : 0)];
    __device__ __forceinline__ float *scales(int column) const { // of four groups of a column, the step's among them
      return (float *)(x + X_ALL + column);
    }
  };
  enum { STAGES = RING / sizeof(Stage) };
  static_assert(STAGES >= 2, "a step is multiplied while others arrive");

  // What a block has of C, and how it is shared out. Columns of C from `column` on, before `end`; a group of them, `across` columns, at a time,
  // of which a warp has `each`; `wide` columns of B are the most that a group may have. threads: that multiply.
  struct Tile {
    int row, column, end, z, across, each, wide, rank, parts, threads;
  };
  // Of the thread: of B its own 16 bytes of its first column of a group; from tile to tile, and to its other column of a tile, in bytes.
  struct Place {
    const char *b, *x;
    const float *scales;
    int64_t tile, other, four, x_rows; // four: four columns; x_rows: from one of its pieces of A to the next
    int64_t n;
    int first, left;                   // column of C of the warp, and how many it has from there on
    int tall, second;            // columns of C of a tile, and to the other column of a tile
    int from, to, by;            // steps of the warp: every `by`, so that a block reads what lies together
    int bytes, x_bytes, rows;    // that there are, from its own first ones on
    int groups;
    bool whole; // four groups' scales of a column are 16 bytes, aligned
    __device__ __forceinline__ bool has(int eight, int column) const { // that column of the warp's eight columns of this number
      return eight / 2 * tall + eight % 2 * second + column < left;
    }
    __device__ __forceinline__ void go(const Tile &t, int column) {
      first = column, left = min(t.each, t.end - first);
    }
  };

  // Pieces that a quarter of a warp reads lie in different banks.
  static __device__ __forceinline__ int swizzled(int row, int piece) {
    return X_EACH == 4 ? piece ^ (piece / 8 & 1) ^ (row & 1) << 1 : X_EACH == 2 ? piece ^ (row & 1) : piece ^ (row & 1) << 2;
  }
  static __device__ __forceinline__ int place_in(int column, int piece) {
    return column * PIECES + (PIECES == 8 ? piece ^ (column & 1) << 2 : piece);
  }

  static __device__ __forceinline__ void copy_scale(uint32_t to, const float *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(__cvta_generic_to_global(from)) : "memory");
  }

  static __device__ __forceinline__ void load(Stage *s, const Place &at, int step, int lane) {
    const char *b = at.b + (int64_t)step * WIDE, *x = at.x + (int64_t)step * (PIECES * X_CHUNK);
    int column = lane / PIECES, row = lane / X_PIECES;
    uint32_t w_to = tile_address(&s->w[place_in(column, lane % PIECES)]);
    uint32_t x_to = tile_address(&s->x[row * X_PIECES + swizzled(row, lane % X_PIECES)]);
    bool there = step * WIDE < at.bytes, x_there = step * (PIECES * X_CHUNK) < at.x_bytes;
#pragma unroll
    for (int i = 0; i < 16 * TILES / BESIDE; i++) {
      int eight = i * BESIDE / 8, in_eight = i * BESIDE % 8;
      copy_async(w_to + i * 512, b + eight / 2 * at.tile + eight % 2 * at.other + (in_eight ? at.four : 0), there && at.has(eight, in_eight + column));
    }
#pragma unroll
    for (int i = 0; i < X_LOADS; i++) {
      uint32_t odd = X_PIECES == 32 && i % 2 ? 32 : 0; // a row each: swizzled(1, piece) is two pieces from swizzled(0, piece)
      copy_async((x_to ^ odd) + i * 512, x + i * at.x_rows, x_there && i * (32 / X_PIECES) < at.rows);
    }
    if (BITS == 4) {
      static_assert(BITS != 4 || TILES == 2, "a lane has a column");
      int group = step * HALVES, eight = lane / 8, of = at.first + (at.has(eight, lane % 8) ? eight / 2 * at.tall + eight % 2 * at.second + lane % 8 : 0);
      const float *scales = at.scales + ((int64_t)of + (eight % 2 && !at.second ? at.n : 0)) * at.groups;
      uint32_t to = tile_address(s->scales(lane));
      if (at.whole) copy_async(to, scales + group / 4 * 4, true);
      else
#pragma unroll
        for (int i = 0; i < HALVES; i++) copy_scale(to + (group + i) % 4 * 4, scales + min(group + i, at.groups - 1));
    }
  }

  // What a thread reads of a half of a step: 16 bytes of its column c, and 16 bytes number i of the X_CHUNK beside them of row e * 8 + lane / 4 of A.
  struct View {
    const Stage *s;
    int lane, half, group; // of scales
    __device__ __forceinline__ float scale(int c) const {
      return s->scales(c * 8 + lane / 4)[group % 4];
    }
    __device__ __forceinline__ uint4 w(int c) const {
      return s->w[place_in(c * 8 + lane / 4, half * 4 + lane % 4)];
    }
    __device__ __forceinline__ uint4 x(int e, int i) const {
      int row = lane / 4;
      return s->x[(e * 8 + row) * X_PIECES + swizzled(row, (half * 4 + lane % 4) * X_EACH + i)];
    }
  };

  // Elements as wide as A's. Here and below two tiles at a time, whose products do not wait for each other's.
  static __device__ __forceinline__ void multiply_same(float (&d)[TILES][EIGHTS * 4], const View &s, int tiles) {
    uint4 x[EIGHTS];
#pragma unroll
    for (int e = 0; e < EIGHTS; e++) x[e] = s.x(e, 0);
#pragma unroll
    for (int t = 0; t < TILES && t / 2 * 2 < tiles; t++) {
      uint4 l = s.w(t * 2), h = s.w(t * 2 + 1);
      uint32_t first[4] = {l.x, h.x, l.y, h.y}, second[4] = {l.z, h.z, l.w, h.w};
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) mma_16x8(d[t] + e * 4, first, x[e].x, x[e].y, KIND);
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) mma_16x8(d[t] + e * 4, second, x[e].z, x[e].w, KIND);
    }
  }

  static __device__ __forceinline__ void multiply_fp8(float (&d)[TILES][EIGHTS * 4], const View &s, int tiles) {
    uint4 x[2][EIGHTS];
#pragma unroll
    for (int i = 0; i < 2 * EIGHTS; i++) x[i % 2][i / 2] = s.x(i / 2, i % 2);
#pragma unroll
    for (int t = 0; t < TILES && t < tiles; t += 2) {
      uint4 w[4];
#pragma unroll
      for (int i = 0; i < 4; i++) w[i] = s.w(t * 2 + i);
#pragma unroll
      for (int i = 0; i < 8; i++) {
        int j = i / 2, u = i % 2;
        uint32_t l[2], h[2];
        few_fp8<KIND>((&w[2 * u].x)[j], l), few_fp8<KIND>((&w[2 * u + 1].x)[j], h);
        uint32_t of[4] = {l[0], h[0], l[1], h[1]};
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
          const uint4 &v = x[j / 2][e];
          mma_16x8(d[t + u] + e * 4, of, j % 2 ? v.z : v.x, j % 2 ? v.w : v.y, KIND);
        }
      }
    }
  }

  // A step is one group of scales.
  static __device__ __forceinline__ void multiply_int4(float (&d)[TILES][EIGHTS * 4], const View &s, int tiles) {
    float scales[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) scales[c] = s.scale(c);
    uint4 ahead[EIGHTS]; // A's next elements
#pragma unroll
    for (int t = 0; t < TILES && t < tiles; t += 2) {
      uint4 w[4];
      float sum[2][EIGHTS * 4] = {};
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) ahead[e] = s.x(e, 0);
#pragma unroll
      for (int i = 0; i < 4; i++) w[i] = s.w(t * 2 + i);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        uint32_t x[EIGHTS][4], of[2][2][4]; // two products of two tiles
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
          uint4 v = ahead[e];
          if (j < 3) ahead[e] = s.x(e, j + 1);
          x[e][0] = __byte_perm(v.x, v.z, 0x5410), x[e][1] = __byte_perm(v.x, v.z, 0x7632);
          x[e][2] = __byte_perm(v.y, v.w, 0x5410), x[e][3] = __byte_perm(v.y, v.w, 0x7632);
        }
#pragma unroll
        for (int u = 0; u < 2; u++) {
          uint32_t l[4], h[4];
          few_int4<KIND>((&w[2 * u].x)[j], l), few_int4<KIND>((&w[2 * u + 1].x)[j], h);
#pragma unroll
          for (int i = 0; i < 4; i++) of[i / 2][u][i % 2 * 2] = l[i], of[i / 2][u][i % 2 * 2 + 1] = h[i];
        }
        // No product waits for the one before it.
#pragma unroll
        for (int i = 0; i < 4 * EIGHTS; i++) {
          int e = i % EIGHTS, u = i / EIGHTS % 2, half = i / EIGHTS / 2;
          mma_16x8(sum[u] + e * 4, of[half][u], x[e][half * 2], x[e][half * 2 + 1], KIND);
        }
      }
#pragma unroll
      for (int i = 0; i < EIGHTS * 8; i++) {
        int u = i / (EIGHTS * 4), q = i % (EIGHTS * 4);
        d[t + u][q] += scales[(t + u) * 2 + q / 2 % 2] * sum[u][q];
      }
    }
  }

  static __device__ __forceinline__ void multiply(float (&d)[TILES][EIGHTS * 4], const View &s, int tiles) {
    if (BITS == 4) multiply_int4(d, s, tiles);
    else if (BITS == 8 && KIND != KIND_FP8) multiply_fp8(d, s, tiles);
    else multiply_same(d, s, tiles);
  }

  // The steps that a warp copies, group after group.
  struct Ahead {
    Place at;
    int step, stage;
    __device__ __forceinline__ void next(Stage *ring, const Tile &t, int64_t group_bytes, int lane) {
      if (at.first < t.end && at.from < at.to) {
        load(ring + stage, at, step, lane);
        if (++stage == STAGES) stage = 0;
        step += at.by;
        if (step >= at.to) step = at.from, at.b += group_bytes, at.go(t, at.first + t.across);
      }
      copy_commit();
    }
  };

  // From here on: the block's sums, [row of A][column of B], the warps' side by side.
  static __device__ __forceinline__ int pitch(const Tile &t) {
    return t.threads * (TILES / 2) + 4;
  }

  // column: the thread's first of a tile.
  static __device__ __forceinline__ void leave(float *sums, const float (&d)[TILES][EIGHTS * 4], const Tile &t, int warp, int lane, int column) {
#pragma unroll
    for (int u = 0; u < TILES; u++)
#pragma unroll
      for (int i = 0; i < EIGHTS * 4; i++)
        sums[(i / 4 * 8 + lane % 4 * 2 + i % 2) * pitch(t) + (warp * TILES + u) * 16 + column + i / 2 % 2 * 8] = d[u][i];
  }

  static __device__ __forceinline__ void add(float4 &to, float4 v) {
    to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
  }

  // Those of the block's warps with the same columns, t.wide of them.
  static __device__ __forceinline__ float4 add_warps(const float *at, const Tile &t) {
    float4 all = *(const float4 *)at;
    for (int j = t.wide; j < pitch(t) - 4; j += t.wide) add(all, *(const float4 *)(at + j));
    return all;
  }

  static __device__ __forceinline__ float4 add_parts(const float *at, int parts) {
    float4 all = {0, 0, 0, 0};
#if __CUDA_ARCH__ >= 900
#pragma unroll
    for (int i = 0; i < GEMM_PARTS; i += 4) { // four loads are under way at a time
      float4 of[4];
#pragma unroll
      for (int j = 0; j < 4; j++) of[j] = cluster_load(cluster_address(shared_address(at), min(i + j, parts - 1)), i + j < parts);
#pragma unroll
      for (int j = 0; j < 4; j++) add(all, of[j]);
    }
#endif
    return all;
  }

  // The group whose first column of C is given.
  static __device__ __forceinline__ void finish(const float *sums, const GemmAnyParams &p, const Tile &t, int column) {
    bool gated = p.end.activation == GEMM_SILU_MUL, at_once = gemm_stores_four(&p.end);
    float alpha = gemm_alpha(&p.end);
    int fours = min(t.across, (t.end - column + 3) / 4 * 4) / 4, quads = min((int)ROWS, (int)p.m - t.row) * fours, last = quads * (t.rank + 1) / t.parts;
    for (int q = quads * t.rank / t.parts + (int)threadIdx.x; q < last; q += t.threads) {
      int r = q / fours, c = (q - r * fours) * 4;
      int warp = c / t.each, i = c - warp * t.each;
      const float *at = sums + r * pitch(t) + warp * TILES * 16 + (gated ? i / 8 * 16 + i % 8 : i);
      float4 v = t.parts > 1 ? add_parts(at, t.parts) : add_warps(at, t), up = v;
      if (gated) up = t.parts > 1 ? add_parts(at + 8, t.parts) : add_warps(at + 8, t);
      float fs[4] = {v.x, v.y, v.z, v.w}, ups[4] = {up.x, up.y, up.z, up.w};
      gemm_finish_four(&p.end, alpha, at_once, t.z, t.row + r, column + c, p.n, fs, ups);
    }
  }

  static __device__ __forceinline__ void add_own_warps(float *sums, const Tile &t) {
    int fours = t.wide / 4;
    for (int i = threadIdx.x; t.wide < pitch(t) - 4 && i < EIGHTS * 8 * fours; i += t.threads) {
      float4 *to = (float4 *)(sums + i / fours * pitch(t) + i % fours * 4);
      *to = add_warps((float *)to, t);
    }
  }

  // All blocks of the cluster have left their sums of a group; afterwards these may be overwritten.
  static __device__ __forceinline__ void add_up(float *sums, const GemmAnyParams &p, const Tile &t, int column) {
    __syncthreads();
    if (t.parts > 1) add_own_warps(sums, t), meet();
    finish(sums, p, t, column);
    if (t.parts > 1) meet();
    else __syncthreads();
  }

  static __device__ __forceinline__ void meet(void) {
#if __CUDA_ARCH__ >= 900
    cluster_sync();
#endif
  }

  // Blocks of a cluster are side by side, then those with the other rows of A, then the ranges of columns.
  static __device__ __forceinline__ Tile tile_of(const GemmFewParams &f) {
    Tile t = {};
    t.wide = f.across * TILES * 16, t.parts = 1, t.threads = blockDim.x;
#if __CUDA_ARCH__ >= 900
    t.rank = (int)block_rank(), t.parts = (int)cluster_size();
#endif
    uint32_t tall = ((uint32_t)f.any.m + ROWS - 1) / ROWS, ranges = f.ranges, tile = blockIdx.x / t.parts, line = tile / tall;
    uint32_t range = line % ranges, units = ((uint32_t)f.any.n + 7) / 8;
    t.row = (tile - line * tall) * ROWS, t.z = line / ranges;
    t.column = (int)((uint64_t)units * range / ranges) * 8;
    t.end = min((int)f.any.n, (int)((uint64_t)units * (range + 1) / ranges) * 8);
    int most = f.any.end.activation == GEMM_SILU_MUL ? t.wide / 2 : t.wide, groups = max(1, (t.end - t.column + most - 1) / most);
    t.each = ((t.end - t.column + groups * f.across - 1) / (groups * f.across) + 7) / 8 * 8, t.across = f.across * t.each;
    return t;
  }

  static __device__ __forceinline__ Place place_of(const GemmFewParams &f, const Tile &t, int warp, int lane) {
    const GemmAnyParams &p = f.any;
    bool gated = p.end.activation == GEMM_SILU_MUL;
    int per = blockDim.x / 32 / f.across, slots = per * t.parts, slot = t.rank * per + warp / f.across, own = lane % PIECES * 16;
    int bytes = (int)(p.k * BITS / 8), steps = (bytes + WIDE - 1) / WIDE, row = t.row + lane / X_PIECES, piece = lane % X_PIECES * 16;
    int64_t stride = p.b_across * BITS / 8, x_stride = p.a_down * X_BYTES;
    Place at;
    at.tall = gated ? 8 : 16, at.second = gated ? 0 : 8;
    at.go(t, t.column + warp % f.across * t.each);
    at.tile = at.tall * stride, at.other = (gated ? p.n : 8) * stride, at.four = 4 * stride;
    at.from = slot, at.to = steps, at.by = slots;
    at.bytes = bytes - own, at.x_bytes = (int)(p.k * X_BYTES) - piece;
    at.b = (const char *)p.b + t.z * p.b_batch * BITS / 8 + (at.first + lane / PIECES) * stride + own;
    at.x = (const char *)p.a + t.z * p.a_batch * X_BYTES + row * x_stride + piece;
    at.x_rows = x_stride * (32 / X_PIECES), at.rows = (int)p.m - row;
    at.n = p.n, at.groups = (int)f.groups, at.whole = f.groups % 4 == 0 && (uintptr_t)f.scales % 16 == 0;
    at.scales = f.scales + t.z * (int64_t)(gated ? 2 * p.n : p.n) * f.groups;
    return at;
  }

  static __device__ __forceinline__ void run(const GemmFewParams &f) {
    extern __shared__ __align__(1024) uint8_t memory[];
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    Stage *ring = (Stage *)(memory + warp * RING);
    float *sums = (float *)(memory + blockDim.x / 32 * RING);
    Tile t = tile_of(f);
    Place at = place_of(f, t, warp, lane);
    int64_t group_bytes = (int64_t)t.across * f.any.b_across * BITS / 8;
    let_successor_start();
    wait_for_predecessor();
    Ahead ahead = {at, at.from, 0};
    for (int i = 0; i < STAGES - 1; i++) ahead.next(ring, t, group_bytes, lane);
    int stage = 0;
    for (int column = t.column; column < t.end; column += t.across) {
      int tiles = (at.left + at.tall - 1) / at.tall;
      float d[TILES][EIGHTS * 4] = {};
#pragma unroll 1
      for (int step = at.from; step < at.to && tiles > 0; step += at.by) {
        copy_wait<STAGES - 2>();
        __syncwarp(); // A's pieces of all lanes are there, and the stage before was read by all
        ahead.next(ring, t, group_bytes, lane);
#pragma unroll
        for (int half = 0; half < HALVES; half++) multiply(d, View{ring + stage, lane, half, step * HALVES + half}, tiles);
        if (++stage == STAGES) stage = 0;
      }
      leave(sums, d, t, warp, lane, lane / 4);
      add_up(sums, f.any, t, column);
      at.go(t, at.first + t.across);
    }
  }
};

template <int KIND, int BITS> INLINE void gemm_few(const GemmFewParams &f) {
  if (f.rows == 16) GemmFew<KIND, BITS, 2>::run(f);
  else GemmFew<KIND, BITS, 1>::run(f);
}
#endif

#endif
