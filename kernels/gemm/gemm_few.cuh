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
#if __CUDA_ARCH__ >= 890
  halves_of_fp8(w, &to[0], &to[1]);
#endif
#pragma unroll
  for (int i = 0; i < 2 && KIND != KIND_FP16; i++) {
    float2 f = __half22float2(*(__half2 *)&to[i]);
    to[i] = narrow2(f.x, f.y, KIND);
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
    X_LOADS = EIGHTS * X_PIECES / 4,
    W_LOADS = 16 * TILES / BESIDE,
    HALF_X = 4 * X_EACH,     // pieces of a row of A in a half of a step
    HALF_FLIPS = X_EACH == 1 // the swizzle of these goes over both halves
  };
  // A step: WIDE bytes of each column, and as many elements of A's rows, both swizzled.
  struct Stage {
    uint4 w[16 * TILES * PIECES], x[X_ALL + (BITS == 4 ? 16 * TILES : 0)]; // then scales: of four groups of a column, the step's among them
  };
  enum { STAGES = RING / sizeof(Stage) };
  static_assert(STAGES >= 2, "a step is multiplied while others arrive");

  // What a block has of C, and how it is shared out. Columns of C from `column` on, before `end`; a group of them, `across` columns, at a time,
  // of which a warp has `each` (0: warps have no columns of their own); `wide` columns of B are the most that a group may have. threads: that
  // multiply. pitch: floats from a row's sums to the next row's.
  struct Tile {
    int row, column, end, z, across, each, wide, rank, parts, threads, pitch;
  };
  // Of the thread. b: its own 16 bytes of its first column of the eights 0 to 3 of a group.
  struct Place {
    const char *b[2 * TILES], *x;
    const float *scales, *scale; // scale: of the lane's column
    uint32_t stride, x_rows;     // bytes from column to column, and from one of its pieces of A to the next
    uint32_t there, x_there;     // bit i: the column, the row of copy i
    int64_t n;
    int first, left;             // column of C of the warp, and how many it has from there on
    int tall, second;            // columns of C of a tile, and to the other column of a tile
    int from, to, by;            // steps of the warp: every `by`, so that a block reads what lies together
    int bytes, x_bytes;          // that there are, from its own first ones on
    int groups;
    bool whole; // four groups' scales of a column are 16 bytes, aligned
    __device__ __forceinline__ bool has(int eight, int column) const { // that column of the warp's eight columns of this number
      return eight / 2 * tall + eight % 2 * second + column < left;
    }
    __device__ __forceinline__ void go(const Tile &t, int column, int lane) {
      first = column, left = min(t.each, t.end - first);
      uint32_t copies = (1u << max(0, (left - lane / PIECES + BESIDE - 1) / BESIDE)) - 1, each = 8 / BESIDE, low = (1u << each) - 1;
      // Gated, columns of two eights are the same columns of C.
      there = second ? copies : (copies & low) * (low + 2) | (copies >> each & low) * (low + 2) << 2 * each;
      if (BITS != 4) return;
      int eight = lane / 8, of = first + (has(eight, lane % 8) ? eight / 2 * tall + eight % 2 * second + lane % 8 : 0);
      scale = scales + ((int64_t)of + (eight % 2 && !second ? n : 0)) * groups;
    }
  };

  // Pieces that a quarter of a warp reads lie in different banks.
  static __device__ __forceinline__ int swizzled(int row, int piece) {
    if (X_EACH == 4) return piece ^ (piece / 8 & 1) ^ (row & 1) << 1;
    return X_EACH == 2 ? piece ^ (row & 1) : PIECES == 8 ? piece ^ (row & 1) << 2 : piece;
  }
  static __device__ __forceinline__ int place_in(int column, int piece) {
    return column * PIECES + (PIECES == 8 ? piece ^ (column & 1) << 2 : piece);
  }

  static __device__ __forceinline__ void copy_scale(uint32_t to, const float *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(__cvta_generic_to_global(from)) : "memory");
  }

  // 16 bytes, or zeros where `bytes` is 0, if at all.
  static __device__ __forceinline__ void copy_if(uint32_t wanted, uint32_t to, const char *from, int bytes) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\n@p cp.async.cg.shared.global [%0], [%1], 16, %2;\n}" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(wanted)
                 : "memory");
  }
  static __device__ __forceinline__ const char *further(const char *at, uint32_t bytes, uint32_t times) { // one instruction
    return at + (uint64_t)bytes * times;
  }

  // What a lane copies to and reads from, in bytes from the start of a stage; worked out once.
  enum { X_AT = 16 * TILES * PIECES * 16, SCALES_AT = X_AT + X_ALL * 16 };
  static __device__ __forceinline__ uint32_t kept(uint32_t v) { // ptxas would work it out again in every step
    asm volatile("" : "+r"(v));
    return v;
  }
  struct To {
    uint32_t w, x, scale;
    __device__ __forceinline__ To(int lane) {
      int row = lane / X_PIECES;
      w = kept(place_in(lane / PIECES, lane % PIECES) * 16);
      x = kept(X_AT + (row * X_PIECES + swizzled(row, lane % X_PIECES)) * 16);
      scale = kept(SCALES_AT + lane * 16);
    }
  };
  struct From {
    uint32_t w[HALVES], x[X_EACH], scale;
    __device__ __forceinline__ From(int lane) {
      int g = lane / 4;
      scale = kept(SCALES_AT + g * 16);
      for (int i = 0; i < HALVES; i++) w[i] = kept(place_in(g, i * 4 + lane % 4) * 16);
      for (int i = 0; i < X_EACH; i++) x[i] = kept(X_AT + (g * X_PIECES + swizzled(g, lane % 4 * X_EACH + i)) * 16);
    }
  };

  // Columns and rows that there are not are not copied: what multiplies by them is not stored. Behind k there are zeros.
  static __device__ __forceinline__ void load(uint32_t s, const To &o, const Place &at, uint32_t step) {
    const char *x = at.x + (uint64_t)step * (PIECES * X_CHUNK);
    int bytes = (int)step * WIDE < at.bytes ? 16 : 0, x_bytes = (int)step * (PIECES * X_CHUNK) < at.x_bytes ? 16 : 0;
#pragma unroll
    for (int i = 0; i < W_LOADS; i++) {
      const char *b = further(at.b[i * BESIDE / 8], step, WIDE);
      copy_if(at.there & 1u << i, s + o.w + i * 512, i * BESIDE % 8 ? further(b, at.stride, 4) : b, bytes);
    }
    uint32_t x_to = s + o.x, x_odd = x_to ^ 32; // rows of 32 pieces: swizzled(1, piece) is two pieces from swizzled(0, piece)
#pragma unroll
    for (int i = 0; i < X_LOADS; i++)
      copy_if(at.x_there & 1u << i, (X_PIECES == 32 && i % 2 ? x_odd : x_to) + i * 512, further(x, at.x_rows, i), x_bytes);
    if (BITS == 4) {
      static_assert(BITS != 4 || TILES == 2, "a lane has a column");
      uint32_t group = step * HALVES;
      if (at.whole) copy_async(s + o.scale, at.scale + group / 4 * 4, at.left > 0);
      else if (at.left > 0)
#pragma unroll
        for (int i = 0; i < HALVES; i++) copy_scale(s + o.scale + (group + i) % 4 * 4, at.scale + min((int)group + i, at.groups - 1));
    }
  }

  // Zeros where no copy will write: rows of A and columns of B that there are not.
  static __device__ __forceinline__ void clear(Stage *ring, const Place &at, int rows, int lane) {
    const uint4 zero = make_uint4(0, 0, 0, 0);
    if (rows >= ROWS && __all_sync(~0u, at.there == (1u << W_LOADS) - 1)) return;
#pragma unroll 1
    for (Stage *s = ring; s < ring + STAGES; s++) {
      for (int i = rows * X_PIECES + lane; i < X_ALL; i += 32) s->x[i] = zero;
#pragma unroll 1
      for (int i = 0; i < W_LOADS; i++)
        if (!(at.there >> i & 1)) s->w[i * 32 + lane] = zero;
    }
  }

  static __device__ __forceinline__ uint4 shared_16(uint32_t at) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at) : "memory");
    return v;
  }

  // What a thread reads of a half of a step: 16 bytes of its column c, and 16 bytes number i of the X_CHUNK beside them of row e * 8 + lane / 4 of A.
  struct View {
    uint32_t s;
    const From &o;
    int half;
    uint32_t group; // of scales
    __device__ __forceinline__ float scale(int c) const {
      float v;
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(s + o.scale + group % 4 * 4 + c * 128) : "memory");
      return v;
    }
    __device__ __forceinline__ uint4 w(int c) const {
      return shared_16(s + o.w[half] + c * (8 * PIECES * 16));
    }
    __device__ __forceinline__ uint4 x(int e, int i) const {
      return shared_16(s + (HALF_FLIPS ? o.x[i] ^ half * HALF_X * 16 : o.x[i] + half * HALF_X * 16) + e * (8 * X_PIECES * 16));
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
    __device__ __forceinline__ void next(uint32_t ring, const To &o, const Tile &t, int64_t group_bytes, int lane) {
      if (at.first < t.end && at.from < at.to) {
        load(ring + stage * (uint32_t)sizeof(Stage), o, at, step);
        if (++stage == STAGES) stage = 0;
        step += at.by;
        if (step >= at.to) {
          step = at.from, at.go(t, at.first + t.across, lane);
#pragma unroll
          for (int i = 0; i < 2 * TILES; i++) at.b[i] += group_bytes;
        }
      }
      copy_commit();
    }
  };

  // From here on: the block's sums, [row of A][column of B], the warps' side by side.
  // column: the thread's first of a tile.
  static __device__ __forceinline__ void leave(float *sums, const float (&d)[TILES][EIGHTS * 4], const Tile &t, int warp, int lane, int column) {
#pragma unroll
    for (int u = 0; u < TILES; u++)
#pragma unroll
      for (int i = 0; i < EIGHTS * 4; i++)
        sums[(i / 4 * 8 + lane % 4 * 2 + i % 2) * t.pitch + (warp * TILES + u) * 16 + column + i / 2 % 2 * 8] = d[u][i];
  }

  static __device__ __forceinline__ void add(float4 &to, float4 v) {
    to.x += v.x, to.y += v.y, to.z += v.z, to.w += v.w;
  }

  // Those of the block's warps with the same columns, t.wide of them. All loads are under way at once.
  static __device__ __forceinline__ float4 add_warps(const float *at, const Tile &t) {
    float4 of[8];
#pragma unroll
    for (int j = 0; j < 8; j++) of[j] = j * t.wide < t.pitch - 4 ? *(const float4 *)(at + j * t.wide) : make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 1; j < 8; j++) add(of[0], of[j]);
    return of[0];
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

  // Whether alpha times the sums is all that is wanted.
  static __device__ __forceinline__ bool is_plain(const GemmEpilogue &e) {
    return e.activation == GEMM_LINEAR && !e.bias && !e.residual && e.beta == 0;
  }

  // The group whose first column of C is given. Nothing else goes on meanwhile, and this code is not in the instruction cache before: no
  // divisions, and little code where the epilogue is alpha alone. A row has some lanes, a power of two, of four columns each.
  static __device__ __forceinline__ void finish(const float *sums, const GemmAnyParams &p, const Tile &t, int column) {
    bool gated = p.end.activation == GEMM_SILU_MUL, at_once = gemm_stores_four(&p.end), plain = is_plain(p.end);
    float alpha = gemm_alpha(&p.end);
    int columns = min(t.across, t.end - column), rows = min((int)ROWS, (int)p.m - t.row);
    int shift = 3 + (columns > 32) + (columns > 64) + (columns > 128);
    int c = (threadIdx.x & (1 << shift) - 1) * 4, eights = t.each / 8;
    int warp = !t.each ? 0 : c / 8 * (eights == 1 ? 65536 : eights == 2 ? 32768 : eights == 3 ? 21846 : 16384) >> 16, i = c - warp * t.each; // c / t.each
    const float *from = sums + warp * TILES * 16 + (gated ? i / 8 * 16 + i % 8 : i);
    int by = (t.threads >> shift) * t.parts;
    for (int r = (threadIdx.x >> shift) * t.parts + t.rank; c < columns && r < rows; r += by) {
      const float *at = from + r * t.pitch;
      float4 v = t.parts > 1 ? add_parts(at, t.parts) : add_warps(at, t);
      int64_t to = t.z * p.end.c_batch_stride + (t.row + r) * p.end.c_stride + column + c;
      if (plain && at_once && column + c + 3 < p.n) {
        char *c_at = (char *)p.end.c + to * (p.end.out_kind == KIND_FP32 ? 4 : 2);
        gemm_store_four(c_at, p.end.out_kind, v.x * alpha, v.y * alpha, v.z * alpha, v.w * alpha);
        continue;
      }
      float4 up = v;
      if (gated) up = t.parts > 1 ? add_parts(at + 8, t.parts) : add_warps(at + 8, t);
      float fs[4] = {v.x, v.y, v.z, v.w}, ups[4] = {up.x, up.y, up.z, up.w};
      gemm_finish_four(&p.end, alpha, at_once, t.z, t.row + r, column + c, p.n, fs, ups);
    }
  }

  static __device__ __forceinline__ void add_own_warps(float *sums, const Tile &t) {
    int fours = t.wide / 4;
    for (int i = threadIdx.x; t.wide < t.pitch - 4 && i < EIGHTS * 8 * fours; i += t.threads) {
      float4 *to = (float4 *)(sums + i / fours * t.pitch + i % fours * 4);
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
    uint32_t tall = ((uint32_t)f.any.m + ROWS - 1) / ROWS, tile = blockIdx.x, line, range;
    if (t.parts > 1) tile /= t.parts;
    line = tall == 1 ? tile : tile / tall, range = f.any.batch == 1 ? line : line % f.ranges;
    t.row = (tile - line * tall) * ROWS, t.z = f.any.batch == 1 ? 0 : line / f.ranges;
    t.column = (int)(range * f.eights + min(range, (uint32_t)f.more)) * 8;
    t.end = min((int)f.any.n, t.column + (f.eights + (range < f.more)) * 8);
    // Columns of B that a group may have are a power of two, and so are warps side by side.
    int wide = 31 - __clz(f.any.end.activation == GEMM_SILU_MUL ? t.wide / 2 : t.wide), beside = 31 - __clz(f.across);
    int own = max(1, t.end - t.column);
    int groups = (own - 1 >> wide) + 1, of_group = groups == 1 ? own : (own + groups - 1) / groups;
    t.each = ((of_group - 1 >> beside) / 8 + 1) * 8, t.across = f.across * t.each, t.pitch = t.threads * (TILES / 2) + 4;
    return t;
  }

  static __device__ __forceinline__ Place place_of(const GemmFewParams &f, const Tile &t, int warp, int lane) {
    const GemmAnyParams &p = f.any;
    bool gated = p.end.activation == GEMM_SILU_MUL;
    int beside = 31 - __clz(f.across), per = blockDim.x / 32 >> beside, slots = per * t.parts, slot = t.rank * per + (warp >> beside);
    int own = lane % PIECES * 16, bytes = (int)(p.k * BITS / 8), steps = (bytes + WIDE - 1) / WIDE, row = t.row + lane / X_PIECES;
    int piece = lane % X_PIECES * 16;
    int64_t stride = p.b_across * BITS / 8, x_stride = p.a_down * X_BYTES;
    Place at;
    at.tall = gated ? 8 : 16, at.second = gated ? 0 : 8;
    at.n = p.n, at.groups = (int)f.groups, at.whole = f.groups % 4 == 0 && (uintptr_t)f.scales % 16 == 0;
    at.scales = f.scales + t.z * (int64_t)(gated ? 2 * p.n : p.n) * f.groups;
    at.go(t, t.column + (warp & f.across - 1) * t.each, lane);
    at.from = slot, at.to = steps, at.by = slots, at.stride = (uint32_t)stride;
    at.bytes = bytes - own, at.x_bytes = (int)(p.k * X_BYTES) - piece;
    at.b[0] = (const char *)p.b + t.z * p.b_batch * BITS / 8 + (at.first + lane / PIECES) * stride + own;
    at.b[1] = at.b[0] + (gated ? p.n : 8) * stride;
#pragma unroll
    for (int i = 2; i < 2 * TILES; i++) at.b[i] = at.b[i - 2] + at.tall * stride;
    at.x = (const char *)p.a + t.z * p.a_batch * X_BYTES + row * x_stride + piece;
    at.x_rows = (uint32_t)(x_stride * (32 / X_PIECES));
    at.x_there = (1u << min((int)X_LOADS, max(0, ((int)p.m - row + 32 / X_PIECES - 1) / (32 / X_PIECES)))) - 1;
    return at;
  }

  static __device__ __forceinline__ void bulk_hint(const void *at, int bytes) { // both multiples of 16
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(bytes) : "memory");
#endif
  }

  // The first bytes of every column of the block's first group, and their scales, into L2. A prefetch is a hint and no access: what the kernel
  // before still writes goes to L2, too.
  static __device__ __forceinline__ void hint_columns(const GemmFewParams &f, const Tile &t, const Place &at) {
    const GemmAnyParams &p = f.any;
    bool gated = p.end.activation == GEMM_SILU_MUL;
    int columns = min(t.across, t.end - t.column), bytes = min(f.hint, (int)(p.k * BITS / 8));
    if (t.row || bytes <= 0) return;
    for (int i = t.rank * t.threads + (int)threadIdx.x; i < (gated ? 2 * columns : columns); i += t.threads * t.parts) {
      int64_t column = i < columns ? t.column + i : p.n + t.column + i - columns;
      bulk_hint((const char *)p.b + (t.z * p.b_batch + column * p.b_across) * BITS / 8, bytes);
      if (BITS == 4 && at.whole) bulk_hint(at.scales + column * f.groups, min(bytes / 256 + 1, (int)f.groups / 4) * 16);
    }
  }

  static __device__ __forceinline__ void run(const GemmFewParams &f) {
    extern __shared__ __align__(1024) uint8_t memory[];
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    Stage *stages = (Stage *)(memory + warp * RING);
    uint32_t ring = tile_address(stages);
    To to(lane);
    float *sums = (float *)(memory + blockDim.x / 32 * RING);
    Tile t = tile_of(f);
    Place at = place_of(f, t, warp, lane);
    int64_t group_bytes = (int64_t)t.across * f.any.b_across * BITS / 8;
    let_successor_start();
    if (BITS == 4) hint_columns(f, t, at);
    wait_for_predecessor();
    Ahead ahead = {at, at.from, 0};
    for (int i = 0; i < STAGES - 1; i++) ahead.next(ring, to, t, group_bytes, lane);
    // While the first bytes are on their way.
    clear(stages, at, min((int)ROWS, (int)f.any.m - t.row), lane);
    From from(lane);
    int stage = 0;
    for (int column = t.column; column < t.end; column += t.across) {
      int tiles = (at.left + at.tall - 1) / at.tall;
      float d[TILES][EIGHTS * 4] = {};
#pragma unroll 1
      for (int step = at.from; step < at.to && tiles > 0; step += at.by) {
        copy_wait<STAGES - 2>();
        __syncwarp(); // A's pieces of all lanes are there, and the stage before was read by all
        ahead.next(ring, to, t, group_bytes, lane);
#pragma unroll
        for (int half = 0; half < HALVES; half++)
          multiply(d, View{ring + stage * (uint32_t)sizeof(Stage), from, half, (uint32_t)(step * HALVES + half)}, tiles);
        if (++stage == STAGES) stage = 0;
      }
      leave(sums, d, t, warp, lane, lane / 4);
      add_up(sums, f.any, t, column);
      at.go(t, at.first + t.across, lane);
    }
  }
};
#endif

#endif
