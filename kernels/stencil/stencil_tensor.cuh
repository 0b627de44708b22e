// The stencil of 2-byte elements by tensor cores: any radius up to 8, rows of any length at any address.
//
// What is added along a row is x times a band matrix, along a column a band matrix times x: for 16 rows by 8 columns of y four products
// of the warp's mma for each piece of the coefficients, whatever the radius. A coefficient is split into two or three pieces of x's type,
// whose sum it is; products of the pieces are exact and are added as fp32.
//
// A block takes one tile of y after another. Rows of x, with eight rows and columns around the tile, are put into shared memory so that a column
// lies at the same multiple of 16 bytes in every row, wherever rows start in x: from there ldmatrix brings them as left operands, and transposed as
// right ones. Results lie in shared memory as far off 16 bytes as in y, and go out by 16 bytes.
//
// Even rows of 16 come before odd ones, in shared memory and in mma: results of rows that start in the middle of a word are the same registers
// in all lanes, and are stored as halves of words.
//
// A band matrix has zeros, and zero times infinity is NaN. So results that are not finite are computed again, one by one.
#ifndef SOL_KERNELS_STENCIL_TENSOR_CUH
#define SOL_KERNELS_STENCIL_TENSOR_CUH

#include "funnel.cuh"
#include "mma.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

extern __shared__ __align__(128) char walk_memory[];

// TENSOR_FAR: beyond the distance of two elements that a band has. Warps of a block take rows of x that are so many apart, which start alike.
enum { TENSOR_FAR = 24, TENSOR_BANDS = 2 * TENSOR_FAR, TENSOR_WARPS = STENCIL_THREADS / 32 };
enum { TENSOR_LOADS = 3 }; // chunks of a lane in flight

// The band matrices of a piece, as operands of mma. down: of 32 rows, without the centre, which counts once. along: of 24 columns as 16 and 8 after
// them, and as 8 and 16 after them.
typedef struct TensorBands {
  uint32_t down[2][4], first[2], after, before, last[2];
} TensorBands;
enum { TENSOR_HELD = 2 }; // pieces whose bands are in registers

typedef struct TensorPairs { // of coefficients at distance d from -TENSOR_FAR on
  uint32_t along[STENCIL_PIECES][TENSOR_BANDS]; // and d + 1
  uint32_t down[STENCIL_PIECES][TENSOR_BANDS];  // and d + 2, without the centre
} TensorPairs;

// In shared memory: lanes want different ones, and constant memory gives a warp one at a time.
INLINE void tensor_pairs(const StencilTensorParams *p, TensorPairs *pairs) {
#pragma unroll
  for (int k = 0; k < STENCIL_PIECES; k++)
    for (int at = threadIdx.x; at < TENSOR_BANDS; at += STENCIL_THREADS) {
      int d = at - TENSOR_FAR;
      uint32_t one = 0, next = 0, second = 0;
#pragma unroll
      for (int i = 0; i < STENCIL_DISTANCES; i++) {
        uint32_t piece = p->piece[k][i];
        one = abs(d) == i ? piece : one, next = abs(d + 1) == i ? piece : next, second = abs(d + 2) == i ? piece : second;
      }
      pairs->along[k][at] = one | next << 16;
      pairs->down[k][at] = (d ? one : 0) | (d + 2 ? second : 0) << 16;
    }
}

INLINE TensorBands tensor_bands(const TensorPairs *pairs, int piece) {
  const int g = (threadIdx.x % 32) >> 2, t = threadIdx.x & 3;
  const uint32_t *along = pairs->along[piece] + TENSOR_FAR + 2 * t - g, *down = pairs->down[piece] + TENSOR_FAR + 4 * t - 2 * g;
  TensorBands b;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    b.down[k][0] = b.down[k][3] = down[16 * k - 8];
    b.down[k][1] = down[16 * k - 9], b.down[k][2] = down[16 * k - 7];
    b.first[k] = along[8 * k - 8], b.last[k] = along[8 * k];
  }
  b.before = along[-8], b.after = along[8];
  return b;
}

// d += A B, 16 rows by 8 columns, k of 8.
INLINE void multiply_16x8_8(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b, int kind) {
#define MULTIPLY(type)                                                                                                              \
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"      \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                                     \
               : "r"(a0), "r"(a1), "r"(b))
  if (kind == KIND_FP16) MULTIPLY("f16");
  else MULTIPLY("bf16");
#undef MULTIPLY
}

// Where row `row` of a tile lies in shared memory: of each 16 rows the even ones first.
INLINE int tensor_slot(int row) { return (row & ~15) | (row & 1) << 3 | (row >> 1 & 7); }

// Chunk `chunk` of row `row`, each of `chunks`; a lane's next one is `step` further on.
typedef struct TensorPlace {
  int row, chunk;
} TensorPlace;
INLINE void tensor_step(TensorPlace *at, int chunks, int rows_on, int chunks_on) {
  at->row += rows_on, at->chunk += chunks_on;
  if (at->chunk >= chunks) at->chunk -= chunks, at->row++;
}

// A block's tile: y's rows and columns from here on.
typedef struct TensorTile {
  int64_t row, column;
} TensorTile;

INLINE TensorTile tensor_tile(const StencilTensorParams *p, uint32_t tile) {
  uint32_t band = tile / p->strips, strip = tile - band * p->strips;
  return {(int64_t)band * p->rows, (int64_t)strip * p->columns};
}

// What a lane copies to shared memory: 8 columns of x. `at`: the row is counted in eighths of those that a tile has, from this warp's first on.
typedef struct TensorChunk {
  const char *from;
  bool there, whole; // it has columns of x; all that is read with it is x's, and all of its columns are
  int64_t left;      // of the row from its first column on
} TensorChunk;

INLINE TensorChunk tensor_chunk(const StencilTensorParams *p, const TensorTile &t, TensorPlace at) {
  int64_t row = t.row - TENSOR_HALO + (int)(threadIdx.x / 32) + at.row * TENSOR_WARPS, column = t.column - TENSOR_HALO + at.chunk * 8;
  TensorChunk c;
  c.from = (const char *)p->x + (row * p->x_stride + column) * 2;
  c.left = p->n - column;
  c.there = (uint64_t)row < (uint64_t)p->m && column >= 0 && c.left > 0 && at.row < p->x_rows / TENSOR_WARPS;
  c.whole = c.left >= 8 && is_around(c.from, (const char *)p->x, (const char *)p->x_end);
  return c;
}

INLINE char *tensor_to(const StencilTensorParams *p, TensorPlace at) {
  return walk_memory + tensor_slot((int)(threadIdx.x / 32) + at.row * TENSOR_WARPS) * p->x_pitch + at.chunk * 16;
}

// A chunk of which not all is x's, or zeros.
INLINE uint4 tensor_partly(const TensorChunk &c) {
  return c.there ? load_singly(c.from, c.from, c.from + min(c.left, (int64_t)8) * 2, 2) : make_uint4(0, 0, 0, 0);
}

// This warp's rows, which start on 16 bytes.
INLINE void tensor_copy(const StencilTensorParams *p, const TensorTile &t, TensorPlace at) {
#pragma unroll 2
  while (at.row < p->x_rows / TENSOR_WARPS) {
    TensorChunk c = tensor_chunk(p, t, at);
    if (c.there && c.whole) copy_async(tile_address(tensor_to(p, at)), c.from, true);
    else *(uint4 *)tensor_to(p, at) = tensor_partly(c);
    tensor_step(&at, p->chunks, p->rows_on, p->chunks_on);
  }
}

// 16 bytes from word `word`, a literal, of two chunks on, and half a word further where bits is 16.
INLINE uint4 tensor_cut(const Around &a, int word, uint32_t bits) {
  const uint32_t w[8] = {a.lo.x, a.lo.y, a.lo.z, a.lo.w, a.hi.x, a.hi.y, a.hi.z, a.hi.w};
  uint32_t r[4];
#pragma unroll
  for (int i = 0; i < 4; i++) r[i] = __funnelshift_r(w[word + i], w[word + i + 1], bits);
  return make_uint4(r[0], r[1], r[2], r[3]);
}

// The same of rows that start anywhere: word `word` of 16 bytes, and half a word further where bits is 16.
template <int word> INLINE void tensor_fetch(const StencilTensorParams *p, const TensorTile &t, TensorPlace at, uint32_t bits) {
#pragma unroll 1
  while (at.row < p->x_rows / TENSOR_WARPS) {
    TensorPlace next = at;
    Around a[TENSOR_LOADS];
#pragma unroll
    for (int i = 0; i < TENSOR_LOADS; i++) {
      TensorChunk c = tensor_chunk(p, t, next);
      a[i] = load_around(c.from, c.there && c.whole);
      tensor_step(&next, p->chunks, p->rows_on, p->chunks_on);
    }
#pragma unroll
    for (int i = 0; i < TENSOR_LOADS; i++) {
      TensorChunk c = tensor_chunk(p, t, at);
      uint4 v = tensor_cut(a[i], word, bits);
      if (c.there && !c.whole) v = tensor_partly(c);
      if (at.row < p->x_rows / TENSOR_WARPS) *(uint4 *)tensor_to(p, at) = v;
      tensor_step(&at, p->chunks, p->rows_on, p->chunks_on);
    }
  }
}

// The tile's x into shared memory.
INLINE void tensor_in(const StencilTensorParams *p, const TensorTile &t) {
  const int lane = threadIdx.x % 32;
  TensorPlace at = {lane / p->chunks, lane % p->chunks};
  // Tiles start at multiples of 16 rows and 8 columns, and the columns before them are 8.
  uint32_t shift = ((uint32_t)(uintptr_t)p->x + (uint32_t)((int)(threadIdx.x / 32) * p->x_stride) * 2) & 15;
  if (shift == 0) tensor_copy(p, t, at);
  else if (shift < 4) tensor_fetch<0>(p, t, at, shift * 8);
  else if (shift < 8) tensor_fetch<1>(p, t, at, (shift & 2) * 8);
  else if (shift < 12) tensor_fetch<2>(p, t, at, (shift & 2) * 8);
  else tensor_fetch<3>(p, t, at, (shift & 2) * 8);
  wait_for_fetches();
}

// sum: 16 rows by 32 columns. g: those columns with 8 rows above and below.
INLINE void tensor_down(const TensorBands &b, const uint32_t (&g)[2][2][4], int kind, float (&sum)[4][4]) {
#pragma unroll
  for (int k = 0; k < 2; k++)
#pragma unroll
    for (int j = 0; j < 4; j++) multiply_16x8(sum[j], b.down[k], g[k][j / 2][j % 2 * 2], g[k][j / 2][j % 2 * 2 + 1], kind);
}

// f: those rows with 8 columns before and after.
INLINE void tensor_along(const TensorBands &b, const uint32_t (&f)[3][4], int kind, float (&sum)[4][4]) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (j % 2) multiply_16x8(sum[j], f[j / 2 + 1], b.last[0], b.last[1], kind);
    else multiply_16x8(sum[j], f[j / 2], b.first[0], b.first[1], kind);
  }
#pragma unroll
  for (int j = 0; j < 4; j++) {
    if (j % 2) multiply_16x8_8(sum[j], f[j / 2][2], f[j / 2][3], b.before, kind);
    else multiply_16x8_8(sum[j], f[j / 2 + 1][0], f[j / 2 + 1][1], b.after, kind);
  }
}

// Two neighbouring results. odd: they are in the middle of words.
INLINE void tensor_put(char *at, bool odd, int y_kind, float a, float b) {
  if (y_kind == KIND_FP32) {
    ((float *)at)[0] = a, ((float *)at)[1] = b;
    return;
  }
  uint32_t both = narrow2(a, b, y_kind);
  if (odd) ((uint16_t *)at)[0] = (uint16_t)both, ((uint16_t *)at)[1] = (uint16_t)(both >> 16);
  else *(uint32_t *)at = both;
}

// Bytes that row `row` of a tile of y is off 16.
INLINE int tensor_off(const StencilTensorParams *p, int row, int out) {
  return (int)(((uint32_t)(uintptr_t)p->y + (uint32_t)(row * p->y_stride) * (uint32_t)out) & 15);
}

// Where a lane's elements are in shared memory.
typedef struct TensorLane {
  uint32_t rows, columns; // what it gives the addresses of to ldmatrix
  uint32_t put[2];        // its results in a tile: of an even row and of the next one
  bool odd[2];
} TensorLane;

INLINE TensorLane tensor_lane(const StencilTensorParams *p, int out) {
  const int lane = threadIdx.x % 32, g = lane >> 2, t = lane & 3;
  TensorLane l;
  l.rows = (uint32_t)(tensor_slot(TENSOR_HALO + lane % 8 * 2 + lane / 8 % 2) * p->x_pitch + lane / 16 * 16);
  l.columns = (uint32_t)(lane % 16 * p->x_pitch + lane / 16 * 16 + 16);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int off = tensor_off(p, 2 * g + i, out);
    l.put[i] = (uint32_t)(p->y_place + (i * 8 + g) * p->y_pitch + off + 2 * t * out), l.odd[i] = off & 2;
  }
  return l;
}

// 16 rows by 32 columns of results. Returns whether some of them is not finite.
INLINE bool tensor_compute(const StencilTensorParams *p, const TensorLane &l, const TensorBands (&b)[TENSOR_HELD], const TensorPairs *pairs, int rows, int column, int kind,
                           int y_kind) {
  const int out = y_kind == KIND_FP32 ? 4 : 2;
  uint32_t at = tile_address(walk_memory) + (uint32_t)(rows * p->x_pitch + column * 2), g[2][2][4], f[3][4];
  float sum[4][4] = {}, rare = 0;
#pragma unroll
  for (int k = 0; k < 4; k++) load_matrices_turned(g[k / 2][k % 2], at + l.columns + (uint32_t)(k / 2 * 16 * p->x_pitch + k % 2 * 32));
#pragma unroll
  for (int k = 0; k < TENSOR_HELD; k++)
    if (k < p->pieces) tensor_down(b[k], g, kind, sum);
  if (p->pieces > TENSOR_HELD) tensor_down(tensor_bands(pairs, TENSOR_HELD), g, kind, sum);
#pragma unroll
  for (int k = 0; k < 3; k++) load_matrices(f[k], at + l.rows + k * 32);
#pragma unroll
  for (int k = 0; k < TENSOR_HELD; k++)
    if (k < p->pieces) tensor_along(b[k], f, kind, sum);
  if (p->pieces > TENSOR_HELD) tensor_along(tensor_bands(pairs, TENSOR_HELD), f, kind, sum);
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (kind == KIND_FP16) sum[j][i] *= p->scale; // bf16 needs no scale
      rare = fmaf(sum[j][i], 0, rare);              // NaN, if one is not finite
    }
#pragma unroll
  for (int i = 0; i < 2; i++) {
    char *to = walk_memory + l.put[i] + rows * p->y_pitch + column * out;
#pragma unroll
    for (int j = 0; j < 4; j++) tensor_put(to + j * 8 * out, l.odd[i], y_kind, sum[j][2 * i], sum[j][2 * i + 1]);
  }
  return rare != 0;
}

// One result, all accesses checked, in the order of the other kernels.
INLINE float tensor_exact(const StencilTensorParams *p, int64_t row, int64_t column, int kind) {
  int64_t i = row * p->x_stride + column;
  float sum = 0;
#pragma unroll 1
  for (int d = p->radius; d > 0; d--)
    if (row >= d) sum = fmaf(p->side[d - 1], load_one(p->x, i - d * p->x_stride, kind), sum);
  sum = fmaf(p->centre, load_one(p->x, i, kind), sum);
#pragma unroll 1
  for (int d = 1; d <= p->radius; d++) {
    if (column >= d) sum = fmaf(p->side[d - 1], load_one(p->x, i - d, kind), sum);
    if (column + d < p->n) sum = fmaf(p->side[d - 1], load_one(p->x, i + d, kind), sum);
  }
#pragma unroll 1
  for (int d = 1; d <= p->radius; d++)
    if (row + d < p->m) sum = fmaf(p->side[d - 1], load_one(p->x, i + d * p->x_stride, kind), sum);
  return sum;
}

// One by one, of 16 bytes of results the columns from `column` on that the row has. rare: some may not be finite.
INLINE void tensor_singly(const StencilTensorParams *p, const char *from, int64_t row, int64_t column, bool rare, int out, int kind) {
#pragma unroll 1
  for (int i = 0; i < 16 / out; i++, column++) {
    if (column < 0 || column >= p->n) continue;
    float f = load_one(from, i, p->y_kind);
    if (rare && !isfinite(f)) f = tensor_exact(p, row, column, kind);
    store_one(p->y, row * p->y_stride + column, p->y_kind, f);
  }
}

// The tile's results to y: whole 16 bytes that begin in its columns, and single elements at the ends of rows.
INLINE void tensor_out(const StencilTensorParams *p, const TensorTile &t, bool rare, int out, int kind) {
  const int chunks = p->columns * out / 16 + 1, rows = (int)min((int64_t)p->rows, p->m - t.row), per = 16 / out;
  TensorPlace at = {(int)threadIdx.x / chunks, (int)threadIdx.x % chunks};
  const int rows_on = STENCIL_THREADS / chunks, chunks_on = STENCIL_THREADS % chunks;
#pragma unroll 2
  for (; at.row < rows; tensor_step(&at, chunks, rows_on, chunks_on)) {
    int off = tensor_off(p, at.row, out), first = at.chunk * per - off / out;
    if (first >= p->columns || (first < 0 && t.column)) continue;
    int64_t row = t.row + at.row, column = t.column + first;
    const char *from = walk_memory + p->y_place + tensor_slot(at.row) * p->y_pitch + at.chunk * 16;
    if (column >= 0 && column + per <= p->n && !rare) *(uint4 *)((char *)p->y + (row * p->y_stride + column) * out) = *(const uint4 *)from;
    else tensor_singly(p, from, row, column, rare, out, kind);
  }
}

INLINE void stencil_tensor(const StencilTensorParams *p, int kind, int y_kind) {
  __shared__ TensorPairs pairs;
  const int out = y_kind == KIND_FP32 ? 4 : 2, warp = threadIdx.x / 32;
  tensor_pairs(p, &pairs);
#pragma unroll 1
  for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x) {
    const TensorTile t = tensor_tile(p, tile);
    bool rare = false;
    tensor_in(p, t);
    __syncthreads(); // and everybody has stored the results before
    // Not kept from tile to tile: they would take registers from the loads.
    const TensorBands b[TENSOR_HELD] = {tensor_bands(&pairs, 0), tensor_bands(&pairs, 1)};
    const TensorLane l = tensor_lane(p, out);
#pragma unroll 1
    for (int unit = warp; unit < p->units; unit += TENSOR_WARPS) {
      int down = unit / p->across;
      rare |= tensor_compute(p, l, b, &pairs, down * 16, (unit - down * p->across) * TENSOR_COLUMNS, kind, y_kind);
    }
    rare = __syncthreads_or(rare);
    tensor_out(p, t, rare, out, kind);
  }
}

KERNEL __launch_bounds__(STENCIL_THREADS, 2) sol_stencil_2_tensor(const __grid_constant__ StencilTensorParams p) {
  let_successor_start();
  wait_for_predecessor();
  if (p.x_kind == KIND_FP16 && p.y_kind == KIND_FP16) stencil_tensor(&p, KIND_FP16, KIND_FP16);
  else if (p.x_kind == KIND_FP16) stencil_tensor(&p, KIND_FP16, p.y_kind);
  else if (p.y_kind == KIND_BF16) stencil_tensor(&p, KIND_BF16, KIND_BF16);
  else stencil_tensor(&p, KIND_BF16, p.y_kind);
}

#endif
#endif
