// GEMM of few rows of A by weights of 4 or 8 bits, which CUDA cores widen. A's elements are more bytes than the weights beside them, so that they
// are no part of the stream: a warp holds those of its step of k in registers, ready for mma.sync, while it goes through the block's columns, 16 at a
// time, by a ring of its own. Its sums wait in shared memory, in a place of their own for each warp that shares out k, and so do all scales of
// the columns. Every row's sums are made in the same order, however many rows there are.
#ifndef SOL_KERNELS_GEMM_FEW_HELD_CUH
#define SOL_KERNELS_GEMM_FEW_HELD_CUH

#include "gemm/gemm_few.cuh"

#if __CUDA_ARCH__ >= 800

// EIGHTS: of A's rows. A step is 128 bytes of 16 columns of B.
template <int KIND, int BITS, int EIGHTS> struct GemmFewHeld : GemmFew<KIND, 16, EIGHTS> {
  typedef GemmFew<KIND, 16, EIGHTS> Few;
  typedef typename Few::Tile Tile;
  enum {
    STAGES = GEMM_FEW_HELD_STAGES,
    RING = GEMM_FEW_HELD_RING,
    WIDE = 128,
    PIECES = 8,
    EACH = 128 / BITS,    // elements of 16 bytes of a column
    REGISTERS = EACH / 2, // for as many of a row of A
    PAIRS = 16 / BITS,    // of a word
    STAGE = RING / STAGES
  };

  static __device__ __forceinline__ int place_in(int column, int piece) { // different banks for eight lanes
    return column * PIECES + (piece ^ (column & 1) << 2);
  }

  // What a lane copies: 16 bytes of columns lane / 8 + 4 i.
  struct Source {
    const char *b;
    int64_t second;          // from the first eight columns of B to the other, of a tile
    uint32_t stride, to;
    int bytes, shift; // a tile has 1 << shift columns of C
    __device__ __forceinline__ Source(const GemmFewParams &f, const Tile &t, int lane) {
      const GemmAnyParams &p = f.any;
      bool gated = p.end.activation == GEMM_SILU_MUL;
      int64_t second_column = gated ? p.n : 8;
      stride = (uint32_t)(p.b_across * BITS / 8), second = second_column * stride, shift = gated ? 3 : 4;
      b = (const char *)p.b + t.z * p.b_batch * BITS / 8 + (int64_t)(lane / 8) * stride + lane % 8 * 16;
      bytes = (int)(p.k * BITS / 8), to = Few::kept(place_in(lane / 8, lane % 8) * 16);
    }
    __device__ __forceinline__ int tiles(int columns) const {
      return (columns + (1 << shift) - 1) >> shift;
    }
    __device__ __forceinline__ void load(uint32_t s, const char *from) const {
      const char *other = from + second;
      copy_async(s + to, from, true), copy_async(s + to + 512, Few::further(from, stride, 4), true);
      copy_async(s + to + 1024, other, true), copy_async(s + to + 1536, Few::further(other, stride, 4), true);
    }
    // Zeros for columns that there are not, and behind k. left: columns of C there are.
    __device__ __forceinline__ void load_end(uint32_t s, const char *from, int left, int step, int lane) const {
      int some = step * WIDE + lane % 8 * 16 < bytes ? left - lane / 8 : 0, apart = shift == 4 ? 8 : 0;
#pragma unroll
      for (int i = 0; i < 4; i++)
        copy_async(s + to + i * 512, Few::further(i / 2 ? from + second : from, stride, i % 2 * 4), some > i % 2 * 4 + i / 2 * apart);
    }
  };

  // The steps of a warp: tiles of a group of columns, every `beside` from `side` on, for each of its parts of k.
  struct Steps {
    int column, side, beside, from, to, by;
  };

  struct Ahead {
    Steps at;
    const char *b;
    int step, tile, tiles, full, stage;
    __device__ __forceinline__ void start(const Source &from, const Tile &t) { // a part of k
      int columns = min(t.across, t.end - at.column), first = at.column + (at.side << from.shift);
      tile = at.side, tiles = from.tiles(columns), full = (step + 1) * WIDE <= from.bytes ? columns >> from.shift : 0;
      b = Few::further(from.b + (int64_t)step * WIDE, from.stride, first);
    }
    __device__ __forceinline__ void next(uint32_t ring, const Source &from, const Tile &t, int lane) {
      if (tile < tiles) {
        uint32_t s = ring + stage * (uint32_t)STAGE;
        if (tile < full) from.load(s, b);
        else from.load_end(s, b, t.end - at.column - (tile << from.shift), step, lane);
        if (++stage == STAGES) stage = 0;
        tile += at.beside, b = Few::further(b, from.stride, at.beside << from.shift);
        if (tile >= tiles) {
          step += at.by;
          if (step >= at.to) step = at.from, at.column += t.across;
          start(from, t);
        }
      }
      copy_commit();
    }
  };

  // A's elements of a step: for each half of the step and each of its rows a lane has EACH.
  struct Rows {
    uint4 v[EIGHTS][2][REGISTERS / 4];
    __device__ __forceinline__ void load(const GemmAnyParams &p, const Tile &t, int step, int lane) {
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) {
        int row = t.row + e * 8 + lane / 4;
        int64_t k = step * (int64_t)(8 * EACH) + lane % 4 * EACH;
        const uint16_t *at = (const uint16_t *)p.a + t.z * p.a_batch + row * p.a_down + k;
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
          for (int j = 0; j < REGISTERS / 4; j++) {
            v[e][h][j] = make_uint4(0, 0, 0, 0);
            if (row < p.m && k + h * 4 * EACH < p.k) v[e][h][j] = *(const uint4 *)(at + h * 4 * EACH + j * 8);
          }
      }
    }
    // In the order in which weights are widened.
    __device__ __forceinline__ void arrange(uint32_t (&x)[EIGHTS][2][REGISTERS]) const {
#pragma unroll
      for (int i = 0; i < EIGHTS * REGISTERS / 2; i++) {
        int e = i / (REGISTERS / 2), h = i / (REGISTERS / 4) % 2, j = i % (REGISTERS / 4);
        const uint4 &from = v[e][h][j];
        uint32_t *to = x[e][h] + j * 4;
        if (BITS == 8) to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w;
        else to[0] = __byte_perm(from.x, from.z, 0x5410), to[1] = __byte_perm(from.x, from.z, 0x7632),
        to[2] = __byte_perm(from.y, from.w, 0x5410), to[3] = __byte_perm(from.y, from.w, 0x7632);
      }
    }
  };

  static __device__ __forceinline__ void widen(uint32_t w, uint32_t (&to)[PAIRS]) {
    if constexpr (BITS == 8) few_fp8<KIND>(w, to);
    else few_int4<KIND>(w, to);
  }

  static __device__ __forceinline__ void multiply(float (&d)[EIGHTS * 4], const uint32_t (&x)[EIGHTS][2][REGISTERS], uint32_t s,
                                                  const uint32_t (&w_at)[2], const float *scales, int pitch) {
    uint4 w[2][2]; // of the halves of the step
    float2 of_group[2] = {}; // of the halves, for each of the columns
    float sum[2][EIGHTS * 4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int h = i / 2, c = i % 2;
      w[h][c] = Few::shared_16(s + w_at[h] + c * (8 * PIECES * 16));
      if (h && BITS == 4) of_group[c] = *(const float2 *)(scales + c * 8 * pitch);
    }
    // The halves by turns, so that no product waits for the one before it.
#pragma unroll
    for (int j = 0; j < 4; j++) {
      uint32_t of[PAIRS / 2][2][4];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        uint32_t l[PAIRS], u[PAIRS];
        widen((&w[h][0].x)[j], l), widen((&w[h][1].x)[j], u);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) of[i / 2][h][i % 2 * 2] = l[i], of[i / 2][h][i % 2 * 2 + 1] = u[i];
      }
#pragma unroll
      for (int i = 0; i < PAIRS * EIGHTS; i++) {
        int e = i % EIGHTS, h = i / EIGHTS % 2, pair = i / EIGHTS / 2, at = j * PAIRS + pair * 2;
        mma_16x8(sum[h] + e * 4, of[pair][h], x[e][h][at], x[e][h][at + 1], KIND);
      }
    }
#pragma unroll
    for (int q = 0; q < EIGHTS * 4; q++) {
      int c = q / 2 % 2;
      if (BITS == 8) d[q] += sum[0][q] + sum[1][q];
      else d[q] += of_group[c].x * sum[0][q], d[q] += of_group[c].y * sum[1][q];
    }
  }

  // Sums of warps that share out k, each as its lanes have them, become rows.
  static __device__ __forceinline__ void gather(float *rows, const float4 *own, const Tile &t, int deep, int tiles) {
    __syncthreads();
    for (int i = threadIdx.x; i < tiles * EIGHTS * 32; i += t.threads) {
      float4 all = {0, 0, 0, 0};
#pragma unroll 4
      for (int j = 0; j < deep; j++) Few::add(all, own[i + j * t.wide / 16 * EIGHTS * 32]);
      int lane = i % 32, e = i / 32 % EIGHTS, tile = i / 32 / EIGHTS;
      float *to = rows + (e * 8 + lane % 4 * 2) * t.pitch + tile * 16 + lane / 4;
      to[0] = all.x, to[t.pitch] = all.y, to[8] = all.z, to[t.pitch + 8] = all.w;
    }
  }

  // Scales of the columns of a group, [column of B][group of k], are there for all warps.
  static __device__ __forceinline__ void copy_scales(float *to, const GemmFewParams &f, const Tile &t, int column, int tiles, int pitch) {
    int groups = (int)f.groups, lane = threadIdx.x % 8;
    bool gated = f.any.end.activation == GEMM_SILU_MUL, whole = groups % 4 == 0 && (uintptr_t)f.scales % 16 == 0;
    for (int i = threadIdx.x / 8; i < tiles * 16; i += t.threads / 8) {
      int of = column + (gated ? i / 16 * 8 + i % 8 : i);
      bool there = of < t.end;
      const float *from = f.scales + (t.z * (gated ? 2 * f.any.n : f.any.n) + (there ? of : column) + (gated && i & 8 ? f.any.n : 0)) * groups;
      if (whole)
        for (int q = lane * 4; q < groups; q += 32) copy_async(tile_address(to + i * pitch + q), from + q, there);
      else
        for (int q = lane; q < pitch; q += 8) to[i * pitch + q] = there && q < groups ? from[q] : 0;
    }
  }

  static __device__ __forceinline__ void run(const GemmFewParams &f) {
    extern __shared__ __align__(1024) uint8_t memory[];
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    int warps = blockDim.x / 32, shift = 31 - __clz(f.across), deep = warps >> shift, slot = warp >> shift;
    uint32_t ring = tile_address(memory + warp * RING);
    Tile t = Few::tile_of(f);
    Source from(f, t, lane);
    t.wide = f.wide, t.across = f.wide >> 4 << from.shift, t.each = 0, t.pitch = f.wide + 4;
    Ahead ahead = {{t.column, warp & f.across - 1, f.across, t.rank * deep + slot, (int)((f.any.k * BITS + 1023) / 1024), deep * t.parts}};
    const Steps at = ahead.at;
    let_successor_start();
    wait_for_predecessor();
    Rows rows_ahead; // before the weights, which come later from DRAM than they from L2
    rows_ahead.load(f.any, t, at.from, lane);
    float4 *sums = (float4 *)(memory + warps * RING), *own = sums + slot * (t.wide / 16 * EIGHTS * 32) + lane;
    float *rows = (float *)(sums + deep * t.wide / 16 * EIGHTS * 32), *scales = rows + 8 * EIGHTS * t.pitch;
    int pitch = GEMM_FEW_SCALES((int)f.groups);
    if (BITS == 4) copy_scales(scales, f, t, t.column, from.tiles(min(t.across, t.end - t.column)), pitch);
    copy_commit();
    ahead.step = at.from, ahead.start(from, t);
    for (int i = 0; i < STAGES - 1; i++) ahead.next(ring, from, t, lane);
    uint32_t x[EIGHTS][2][REGISTERS], w_at[2];
    rows_ahead.arrange(x);
    for (int h = 0; h < 2; h++) w_at[h] = Few::kept(place_in(lane / 4, h * 4 + lane % 4) * 16);
    int stage = 0;
    bool held = true;
    for (int column = t.column; column < t.end; column += t.across) {
      int tiles = from.tiles(min(t.across, t.end - column));
      if (column == t.column) copy_wait<STAGES - 1>();
      else if (BITS == 4) copy_scales(scales, f, t, column, tiles, pitch), copy_commit(), copy_wait<0>();
      __syncthreads();
#pragma unroll 1
      for (int step = at.from; step < at.to; step += at.by) {
        if (!held) rows_ahead.arrange(x);
        held = at.from + at.by >= at.to; // for the next columns, too
        if (!held) rows_ahead.load(f.any, t, step + at.by < at.to ? step + at.by : at.from, lane);
#pragma unroll 1
        for (int tile = at.side; tile < tiles; tile += at.beside) {
          float4 d[EIGHTS], *to = own + tile * EIGHTS * 32;
#pragma unroll
          for (int e = 0; e < EIGHTS; e++) d[e] = make_float4(0, 0, 0, 0);
          if (step != at.from)
#pragma unroll
            for (int e = 0; e < EIGHTS; e++) d[e] = to[e * 32];
          copy_wait<STAGES - 2>();
          __syncwarp(); // all lanes' copies are there, and the stage before was read by all
          ahead.next(ring, from, t, lane);
          multiply(*(float(*)[EIGHTS * 4])d, x, ring + stage * (uint32_t)STAGE, w_at, scales + (tile * 16 + lane / 4) * pitch + step * 2, pitch);
#pragma unroll
          for (int e = 0; e < EIGHTS; e++) to[e * 32] = d[e];
          if (++stage == STAGES) stage = 0;
        }
      }
      gather(rows, sums, t, deep, tiles);
      Few::add_up(rows, f.any, t, column);
    }
  }
};

template <int KIND, int BITS, int EIGHTS> INLINE void gemm_few_rows(const GemmFewParams &f) {
  if constexpr (BITS < 16 && KIND != KIND_FP8)
    if (f.wide) return GemmFewHeld<KIND, BITS, EIGHTS>::run(f);
  GemmFew<KIND, BITS, EIGHTS>::run(f);
}

template <int KIND, int BITS> INLINE void gemm_few(const GemmFewParams &f) {
  if (f.rows == 16) gemm_few_rows<KIND, BITS, 2>(f);
  else gemm_few_rows<KIND, BITS, 1>(f);
}
#endif

#endif
