// The stencil of 2-byte elements by tensor cores: any radius up to 8, rows of any length at any address.
//
// What is added along a row is x times a band matrix, along a column a band matrix times x: for 16 rows by 8 columns of y four products
// of the warp's mma for each piece of the coefficients, whatever the radius. A coefficient is split into two or three pieces of x's type,
// whose sum it is; products of the pieces are exact and are added as fp32.
//
// A block takes one tile of y after another. The buffer's own 16-byte chunks around each row's piece, with eight rows and columns around the tile,
// come into shared memory by asynchronous copies while the tile before is computed. Rows that start anywhere are then moved so that a column lies at
// the same multiple of 16 bytes in every row: ldmatrix brings them as left operands, and transposed as right ones. Results lie in shared
// memory as far off 16 bytes as in y, and go out by 16 bytes. Warps take rows of x and y that are a multiple of 8 apart, which start alike: what
// depends on that is computed once a tile.
//
// Even rows of 16 come before odd ones, in shared memory and in mma: results of rows that start in the middle of a word are the same registers
// in all lanes, and are stored as halves of words.
//
// Few rows, `apart`, a literal: row v of a tile is row v & (group - 1) of x, and its columns come after those of row v - group. So several pieces of
// up to 8 rows are below each other, with nothing above and below them.
//
// A band matrix has zeros, and zero times infinity is NaN. So results that are not finite are computed again, one by one.
#ifndef SOL_KERNELS_STENCIL_TENSOR_CUH
#define SOL_KERNELS_STENCIL_TENSOR_CUH

#include "funnel.cuh"
#include "mma.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

extern __shared__ __align__(128) char walk_memory[];

// TENSOR_FAR: beyond the distance of two elements that a band has.
enum { TENSOR_FAR = 24, TENSOR_BANDS = 2 * TENSOR_FAR, TENSOR_WARPS = STENCIL_THREADS / 32 };

// The band matrices of a piece, as operands of mma. down: of 32 rows (`apart`: of the 16 alone), without the centre, which counts once. first, last: along rows, of the first
// 16 of 24 columns and of the last.
typedef struct TensorBands {
  uint32_t down[2][4], first[2], last[2];
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

// Of a pair of rows `row` and row + 2 those that belong to the same group as row `other`.
INLINE uint32_t tensor_group(const StencilTensorParams *p, uint32_t pair, int row, int other) {
  int bits = p->group_bits;
  return pair & ((row >> bits == other >> bits ? 0xffffu : 0) | (row + 2 >> bits == other >> bits ? 0xffff0000u : 0));
}

INLINE TensorBands tensor_bands(const StencilTensorParams *p, const TensorPairs *pairs, int piece, bool apart) {
  const int g = (threadIdx.x % 32) >> 2, t = threadIdx.x & 3;
  const uint32_t *along = pairs->along[piece] + TENSOR_FAR + 2 * t - g, *down = pairs->down[piece] + TENSOR_FAR + 4 * t - 2 * g;
  TensorBands b;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    b.down[k][0] = b.down[k][3] = down[16 * k - 8];
    b.down[k][1] = down[16 * k - 9], b.down[k][2] = down[16 * k - 7];
    b.first[k] = along[8 * k - 8], b.last[k] = along[8 * k];
  }
#pragma unroll
  for (int i = 0; i < 4 && apart; i++) b.down[0][i] = tensor_group(p, down[i / 2 - i % 2], 4 * t + i / 2, 2 * g + i % 2);
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

// A block's tile: y's rows and columns from here on.
typedef struct TensorTile {
  int64_t row, column;
} TensorTile;

INLINE TensorTile tensor_tile(const StencilTensorParams *p, uint32_t tile, bool apart) {
  uint32_t band = tile / p->strips, strip = tile - band * p->strips;
  return {(int64_t)band * p->rows, (int64_t)strip * p->columns * (apart ? p->rows >> p->group_bits : 1)};
}

// Row `row` of a tile, which may be one around it: its number in x, and its first column.
INLINE TensorTile tensor_row(const StencilTensorParams *p, const TensorTile &t, int row, bool apart) {
  if (!apart) return {t.row + row, t.column};
  return {row & ((1 << p->group_bits) - 1), t.column + (row >> p->group_bits) * p->columns};
}

// A thread has one chunk of each of some rows of a tile, `step` from each other, a multiple of 8.
typedef struct TensorPart {
  int chunk, row, step;
} TensorPart;

INLINE TensorPart tensor_part(const StencilTensorParams *p) {
  const int lane = threadIdx.x % 32, lanes = p->lanes;
  return {lane & (lanes - 1), (int)(threadIdx.x / 32) + lane / lanes * TENSOR_WARPS, STENCIL_THREADS / lanes};
}

// From row `row` to the thread's next one, in rows of shared memory: tensor_slot(row + step) - tensor_slot(row).
INLINE int tensor_on(int row, int step) { return step == 8 ? (row & 8 ? 12 : 4) : step; }

// The column of x before which a tile's rows begin, in bytes.
INLINE const char *tensor_from(const StencilTensorParams *p, const TensorTile &row) {
  return (const char *)p->x + (row.row * p->x_stride + row.column - TENSOR_HALO) * 2;
}

// From one of a thread's rows to the next, in bytes.
INLINE int64_t tensor_stride(const StencilTensorParams *p, int step, int64_t stride, int size, bool apart) {
  return (apart ? (step >> p->group_bits) * (int64_t)p->columns : step * stride) * size;
}

// Starts to copy a tile's rows with those around it, by chunks that are aligned in memory. What is not x's is zero, but for elements of other rows
// in a row's first and last chunk.
INLINE void tensor_fetch(const StencilTensorParams *p, const TensorTile &t, char *raw, bool apart) {
  const int above = apart ? 0 : TENSOR_HALO;
  const TensorPart part = tensor_part(p);
  if (part.chunk > p->chunks) return;
  TensorTile row = tensor_row(p, t, part.row - above, apart);
  const char *from = tensor_from(p, row);
  const int shift = (int)((uint32_t)(uintptr_t)from & 15), at = part.chunk * 16;
  const int64_t stride = tensor_stride(p, part.step, p->x_stride, 2, apart), before = at - shift - 2 * TENSOR_HALO; // of the chunk's start, from the row's
  // Rows that there are, of those that the radius reaches. Whether a chunk may be partly outside of x.
  const int64_t least = max(-t.row, (int64_t)-p->radius), most = min(p->m - t.row, (int64_t)p->rows + p->radius);
  const int low = apart ? 0 : above + (int)least, high = apart ? p->x_rows : above + (int)most;
  const bool edge = apart || (t.column == 0 && t.row <= p->radius) || (t.column + p->columns >= p->n && most == p->m - t.row);
  uint32_t to = tile_address(raw) + (uint32_t)(tensor_slot(part.row) * p->x_pitch + at);
  from += at - shift;
#pragma unroll 2
  for (int r = part.row; r < p->x_rows; r += part.step) {
    if (apart) row = tensor_row(p, t, r, apart);
    bool there = before + 16 > -2 * row.column && before < 2 * (p->n - row.column) && r >= low && r < high && (!apart || row.row < p->m);
    if (edge && there && (from < (const char *)p->x || from + 16 > (const char *)p->x_end))
      *(uint4 *)__cvta_shared_to_generic(to) = load_singly(from, (const char *)p->x, (const char *)p->x_end, 2);
    else copy_async(to, from, there);
    from += stride, to += (uint32_t)(tensor_on(r, part.step) * p->x_pitch);
  }
}

// The first `left` elements of 8.
INLINE uint4 tensor_keep(uint4 v, int64_t left) {
  uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; i++) w[i] = left >= 2 * i + 2 ? w[i] : left > 2 * i ? w[i] & 0xffff : 0;
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// Rows that start `word` words, a literal, and 0 or 16 bits beyond 16 bytes, to where they are aligned.
template <int word> INLINE void tensor_align(const StencilTensorParams *p, const TensorTile &t, const char *raw, char *to, uint32_t bits, bool apart) {
  const TensorPart part = tensor_part(p);
  if (part.chunk >= p->chunks) return;
  int place = tensor_slot(part.row) * p->x_pitch + part.chunk * 16;
#pragma unroll 2
  for (int r = part.row; r < p->x_rows; r += part.step) {
    const int64_t column = tensor_row(p, t, r, apart).column - TENSOR_HALO + part.chunk * 8;
    const uint4 a = *(const uint4 *)(raw + place), b = *(const uint4 *)(raw + place + 16);
    const uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    uint32_t v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = __funnelshift_r(w[word + i], w[word + i + 1], bits);
    uint4 all = make_uint4(v[0], v[1], v[2], v[3]);
    if (column < 0 || p->n - column < 8) all = tensor_keep(all, column < 0 ? 0 : p->n - column);
    *(uint4 *)(to + place) = all;
    place += tensor_on(r, part.step) * p->x_pitch;
  }
}

INLINE void tensor_aligned(const StencilTensorParams *p, const TensorTile &t, const char *raw, char *to, bool apart) {
  uint32_t shift = (uint32_t)(uintptr_t)tensor_from(p, tensor_row(p, t, tensor_part(p).row, apart)) & 15, bits = (shift & 2) * 8;
  if (shift < 4) tensor_align<0>(p, t, raw, to, bits, apart);
  else if (shift < 8) tensor_align<1>(p, t, raw, to, bits, apart);
  else if (shift < 12) tensor_align<2>(p, t, raw, to, bits, apart);
  else tensor_align<3>(p, t, raw, to, bits, apart);
}

// d = A B, 16 rows by 8 columns, k of 16.
INLINE void multiply_first(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, int kind) {
#define MULTIPLY(type)                                                                                                              \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};" \
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f))
  if (kind == KIND_FP16) MULTIPLY("f16");
  else MULTIPLY("bf16");
#undef MULTIPLY
}

// sum: 16 rows by 32 columns. g: those columns with 8 rows above and below; apart: without. start: of nothing yet.
INLINE void tensor_down(const TensorBands &b, const uint32_t (&g)[2][2][4], bool start, bool apart, int kind, float (&sum)[4][4]) {
#pragma unroll
  for (int k = 0; k < (apart ? 1 : 2); k++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      uint32_t upper = g[k][j / 2][j % 2 * 2], lower = g[k][j / 2][j % 2 * 2 + 1];
      if (start && k == 0) multiply_first(sum[j], b.down[k], upper, lower, kind);
      else multiply_16x8(sum[j], b.down[k], upper, lower, kind);
    }
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
    if (j % 2) multiply_16x8_8(sum[j], f[j / 2][2], f[j / 2][3], b.first[0], kind);
    else multiply_16x8_8(sum[j], f[j / 2 + 1][0], f[j / 2 + 1][1], b.last[1], kind);
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
INLINE int tensor_off(const StencilTensorParams *p, int row, int out, bool apart) {
  if (apart) row &= (1 << p->group_bits) - 1;
  return (int)(((uint32_t)(uintptr_t)p->y + (uint32_t)(row * p->y_stride) * (uint32_t)out) & 15);
}

// Where a lane's elements are in shared memory.
typedef struct TensorLane {
  uint32_t rows, columns; // what it gives the addresses of to ldmatrix, in a tile of x
  uint32_t put[2];        // its results: of an even row and of the next one
  bool odd[2];
} TensorLane;

INLINE TensorLane tensor_lane(const StencilTensorParams *p, int out, bool apart) {
  const int lane = threadIdx.x % 32, g = lane >> 2, t = lane & 3;
  TensorLane l;
  l.rows = (uint32_t)(tensor_slot((apart ? 0 : TENSOR_HALO) + lane % 8 * 2 + lane / 8 % 2) * p->x_pitch + lane / 16 * 16);
  l.columns = (uint32_t)(lane % 16 * p->x_pitch + lane / 16 * 16 + 16);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int off = tensor_off(p, 2 * g + i, out, apart);
    l.put[i] = (uint32_t)(p->y_place + (i * 8 + g) * p->y_pitch + off + 2 * t * out), l.odd[i] = off & 2;
  }
  return l;
}

// 16 rows by 32 columns of results. Returns whether some of them is not finite.
INLINE bool tensor_compute(const StencilTensorParams *p, const TensorLane &l, const TensorBands (&b)[TENSOR_HELD], const TensorPairs *pairs, const char *tile, int rows,
                           int column, bool apart, bool third, int kind, int y_kind) {
  const int out = y_kind == KIND_FP32 ? 4 : 2;
  uint32_t at = tile_address(tile) + (uint32_t)(rows * p->x_pitch + column * 2), g[2][2][4], f[3][4];
  float sum[4][4], rare = 0;
#pragma unroll
  for (int k = 0; k < (apart ? 2 : 4); k++) load_matrices_turned(g[k / 2][k % 2], at + l.columns + (uint32_t)(k / 2 * 16 * p->x_pitch + k % 2 * 32));
#pragma unroll
  for (int k = 0; k < TENSOR_HELD; k++)
    if (k == 0 || k < p->pieces) tensor_down(b[k], g, k == 0, apart, kind, sum);
  if (third && p->pieces > TENSOR_HELD) tensor_down(tensor_bands(p, pairs, TENSOR_HELD, apart), g, false, apart, kind, sum);
#pragma unroll
  for (int k = 0; k < 3; k++) load_matrices(f[k], at + l.rows + k * 32);
#pragma unroll
  for (int k = 0; k < TENSOR_HELD; k++)
    if (k == 0 || k < p->pieces) tensor_along(b[k], f, kind, sum);
  if (third && p->pieces > TENSOR_HELD) tensor_along(tensor_bands(p, pairs, TENSOR_HELD, apart), f, kind, sum);
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
    if (l.odd[i]) {
#pragma unroll
      for (int j = 0; j < 4; j++) tensor_put(to + j * 8 * out, true, y_kind, sum[j][2 * i], sum[j][2 * i + 1]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++) tensor_put(to + j * 8 * out, false, y_kind, sum[j][2 * i], sum[j][2 * i + 1]);
    }
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

// Bytes `begin` to `end` - 1 of 16.
INLINE void tensor_partly(char *to, const char *from, int begin, int end) {
#pragma unroll
  for (int size = 2; size < 8; size *= 2)
    if (begin & size && begin + size <= end) move_one(to + begin, from + begin, size), begin += size;
#pragma unroll
  for (int size = 8; size > 1; size /= 2)
    if (begin + size <= end) move_one(to + begin, from + begin, size), begin += size;
}

// 16 bytes of results, of which some may not be finite.
INLINE void tensor_mend(const StencilTensorParams *p, char *memory, int64_t row, int64_t column, int begin, int end, int out, int kind) {
#pragma unroll 1
  for (int i = begin / out; i < end / out; i++)
    if (!isfinite(load_one(memory, i, p->y_kind))) store_one(memory, i, p->y_kind, tensor_exact(p, row, column + i, kind));
}

// The tile's results to y: 16 bytes that begin in its columns, and parts of 16 bytes at the ends of rows.
INLINE void tensor_out(const StencilTensorParams *p, const TensorTile &t, bool rare, int out, bool apart, int kind) {
  const int per = 16 / out, chunks = p->columns / per + 1;
  const TensorPart part = tensor_part(p);
  const int off = tensor_off(p, part.row, out, apart) / out;
#pragma unroll 1
  for (int chunk = part.chunk; chunk < chunks; chunk += p->lanes) {
    int first = chunk * per - off;
    if (first >= p->columns) continue;
    TensorTile row = tensor_row(p, t, part.row, apart);
    char *from = walk_memory + p->y_place + tensor_slot(part.row) * p->y_pitch + chunk * 16;
    char *to = (char *)p->y + (row.row * p->y_stride + row.column + first) * out;
    const int64_t stride = tensor_stride(p, part.step, p->y_stride, out, apart);
    const int rows = apart ? p->rows : (int)min((int64_t)p->rows, p->m - t.row);
#pragma unroll 2
    for (int r = part.row; r < rows; r += part.step) {
      if (apart || rare) row = tensor_row(p, t, r, apart);
      int begin = first < 0 ? -first * out : 0, end = (int)min((int64_t)per, p->n - row.column - first) * out;
      if ((first < 0 && row.column) || (apart && row.row >= p->m)) end = 0;
      if (rare) tensor_mend(p, from, row.row, row.column + first, begin, end, out, kind);
      if (begin == 0 && end == 16) *(uint4 *)to = *(const uint4 *)from;
      else tensor_partly(to, from, begin, end);
      to += stride, from += tensor_on(r, part.step) * p->y_pitch;
    }
  }
}

// third: coefficients may have a third piece.
INLINE void stencil_tensor(const StencilTensorParams *p, bool apart, bool third, int kind, int y_kind) {
  __shared__ TensorPairs pairs;
  const int out = y_kind == KIND_FP32 ? 4 : 2;
  char *raw = walk_memory, *other = walk_memory + p->x_rows * p->x_pitch;
  tensor_pairs(p, &pairs);
  tensor_fetch(p, tensor_tile(p, blockIdx.x, apart), raw, apart);
  __syncthreads();
  const TensorBands b[TENSOR_HELD] = {tensor_bands(p, &pairs, 0, apart), tensor_bands(p, &pairs, 1, apart)};
  const TensorLane l = tensor_lane(p, out, apart);
#pragma unroll 1
  for (uint32_t tile = blockIdx.x; tile < p->tiles; tile += gridDim.x) {
    const TensorTile t = tensor_tile(p, tile, apart);
    wait_for_fetches();
    __syncthreads(); // and everybody has stored the results before
    if (!p->aligned) {
      tensor_aligned(p, t, raw, other, apart);
      __syncthreads();
    }
    char *x = p->aligned ? raw : other, *next = p->aligned ? other : raw;
    if (tile + gridDim.x < p->tiles) tensor_fetch(p, tensor_tile(p, tile + gridDim.x, apart), next, apart);
    bool rare = false;
#pragma unroll 1
    for (int unit = (int)(threadIdx.x / 32); unit < p->units; unit += TENSOR_WARPS) {
      int down = unit / p->across;
      rare |= tensor_compute(p, l, b, &pairs, x, down * 16, (unit - down * p->across) * TENSOR_COLUMNS, apart, third, kind, y_kind);
    }
    rare = __syncthreads_or(rare);
    tensor_out(p, t, rare, out, apart, kind);
    if (p->aligned) other = raw, raw = next;
  }
}

KERNEL __launch_bounds__(STENCIL_THREADS, 2) sol_stencil_2_tensor(const __grid_constant__ StencilTensorParams p) {
  let_successor_start();
  wait_for_predecessor();
  if (p.apart && p.x_kind == KIND_FP16) stencil_tensor(&p, true, false, KIND_FP16, p.y_kind);
  else if (p.apart) stencil_tensor(&p, true, true, KIND_BF16, p.y_kind);
  else if (p.x_kind == KIND_FP16 && p.y_kind == KIND_FP16) stencil_tensor(&p, false, false, KIND_FP16, KIND_FP16);
  else if (p.x_kind == KIND_FP16) stencil_tensor(&p, false, false, KIND_FP16, p.y_kind);
  else if (p.y_kind == KIND_BF16) stencil_tensor(&p, false, false, KIND_BF16, KIND_BF16);
  else stencil_tensor(&p, false, true, KIND_BF16, p.y_kind);
}

#endif
#endif
