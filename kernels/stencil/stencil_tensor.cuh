// The stencil of 2-byte elements by tensor cores: any radius up to 8, rows of any length at any address.
//
// What is added along a row is x times a band matrix, along a column a band matrix times x: 16 rows by 8 columns of y are four
// products of the warp's mma, whose other operand is constant. A coefficient is split into two or three pieces of x's type, whose
// sum it is; products of the pieces are exact and are added as fp32. Multiply-adds of the CUDA cores, 4 radius + 1 for an
// element of 4 bytes in and out, would take longer than memory from radius 6 on.
//
// A block copies a tile of x with its surroundings into shared memory by 16-byte chunks, shifted so that columns, not addresses, are
// aligned there; its warps compute into a tile of y that lies as y does; whole chunks of it are stored.
//
// A band matrix has zeros, and zero times infinity is NaN. So results that are not finite are computed again, one by one.
#ifndef SOL_KERNELS_STENCIL_TENSOR_CUH
#define SOL_KERNELS_STENCIL_TENSOR_CUH

#include "mma.cuh"
#include "stencil.h"
#include "tile.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

extern __shared__ __align__(128) char tensor_memory[];

// Rows and columns around a tile; chunks that a thread loads at once; beyond the distance of two elements of squares of 8 by 8 next to each other.
enum { TENSOR_HALO = 8, TENSOR_AT_ONCE = 4, TENSOR_FAR = 16 };

// What a block computes. Of the rows in shared memory, row v is row `v & row_mask` of the tile, and its columns come after those of
// row v - (row_mask + 1): a tensor of up to 8 rows is cut into pieces that are put below each other, 16 rows of which fill an mma.
typedef struct TensorTile {
  int64_t row, column; // its first
  int rows, columns;   // of y; the last tiles have fewer
  const char *x;       // of its first element; all that a tile needs is within 2^31 bytes of it
  int low, high;       // rows in shared memory that are in x: from low on, before high; in case of pieces, of each of these before `rows`
  int first, end;      // columns of x, counted from the tile's: -8 or 0, and where the row ends
} TensorTile;

INLINE TensorTile tensor_tile(const StencilTensorParams *p) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, panel, rest, down, across;
  split(block, (uint64_t)(p->panel * p->down), &panel, &rest);
  int64_t first = (int64_t)panel * p->panel;
  split(rest, (uint64_t)max((int64_t)1, min(p->panel, p->across - first)), &down, &across);
  const int all = p->strips * TENSOR_ROWS;
  TensorTile t;
  t.row = (int64_t)down * all;
  t.column = (first + (int64_t)across) * p->columns;
  t.rows = (int)min((int64_t)p->rows, p->m - t.row);
  t.columns = block < (uint64_t)(p->across * p->down) ? (int)min((int64_t)p->columns, p->n - t.column) : 0;
  t.x = (const char *)p->x + (t.row * p->x_stride + t.column) * 2;
  t.low = p->row_mask >= 0 ? 0 : -(int)min((int64_t)p->radius, t.row);
  t.high = p->row_mask >= 0 ? all : (int)min((int64_t)all + p->radius, p->m - t.row);
  t.first = t.column > 0 ? -TENSOR_COLUMNS : 0;
  t.end = (int)min((int64_t)p->columns + TENSOR_COLUMNS, p->n - t.column);
  return t;
}

// Column of the tile where row v of shared memory starts.
INLINE int tensor_skip(const StencilTensorParams *p, int v) {
  return ((v & ~p->row_mask) >> p->group_bits) * p->chunks * TENSOR_COLUMNS;
}

// A chunk of shared memory: where it is in x, counted from the tile's first element, and how many of its columns are there. apart: the rows
// of x are cut into pieces, a literal.
typedef struct TensorChunk {
  int from, have;
} TensorChunk;

INLINE TensorChunk tensor_chunk(const StencilTensorParams *p, const TensorTile &t, bool apart, int line, int at) {
  int v = line - TENSOR_HALO, row = apart ? v & p->row_mask : v, column = (apart ? tensor_skip(p, v) : 0) + (at + p->whole - 1) * TENSOR_COLUMNS;
  bool there = (uint32_t)(v - t.low) < (uint32_t)(t.high - t.low) && (!apart || row < t.rows) && column >= t.first;
  TensorChunk c;
  c.have = there ? min(TENSOR_COLUMNS, t.end - column) : 0;
  c.from = row * p->x_row + column * 2;
  return c;
}

// Columns from `have` on are zeros.
INLINE uint4 tensor_keep(uint4 v, int have) {
  uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; i++) w[i] = have >= 2 * i + 2 ? w[i] : have > 2 * i ? w[i] & 0xffff : 0;
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// A thread's chunks are a block's threads apart: `lines` lines and `more` chunks.
typedef struct TensorWalk {
  int line, at, place;
} TensorWalk;

INLINE TensorWalk tensor_start(const StencilTensorParams *p) {
  TensorWalk w;
  w.line = (int)divide32(threadIdx.x, p->staged), w.at = (int)threadIdx.x - w.line * (int)p->staged.by;
  w.place = w.line * p->x_pitch + (w.at + p->whole) * 16;
  return w;
}

INLINE void tensor_step(const StencilTensorParams *p, TensorWalk *w) {
  w->line += p->step_lines, w->at += p->step_chunks, w->place += p->step_lines * p->x_pitch + p->step_chunks * 16;
  if (w->at >= (int)p->staged.by) w->at -= (int)p->staged.by, w->line++, w->place += p->x_pitch - (int)p->staged.by * 16;
}

// Chunk by chunk, at the tensor's ends: nothing outside it is read.
INLINE void tensor_fetch_singly(const StencilTensorParams *p, const TensorTile &t, bool apart, int lines) {
#pragma unroll 1
  for (TensorWalk w = tensor_start(p); w.line < lines; tensor_step(p, &w)) {
    TensorChunk c = tensor_chunk(p, t, apart, w.line, w.at);
    const char *from = t.x + c.from;
    *(uint4 *)(tensor_memory + w.place) = load_singly(from, from, from + 2 * c.have, 2);
  }
}

INLINE void tensor_fetch(const StencilTensorParams *p, const TensorTile &t, bool apart) {
  const int lines = p->strips * TENSOR_ROWS + 2 * TENSOR_HALO;
  // There is nothing on either side of a whole row. Where rows have no gap, what is after one is what is before the next.
  for (int line = threadIdx.x; p->whole && line <= lines; line += STENCIL_THREADS) {
    char *at = tensor_memory + line * p->x_pitch;
    *(uint4 *)at = make_uint4(0, 0, 0, 0);
    if (line < lines && p->x_pitch > (p->chunks + 1) * 16) *(uint4 *)(at + (p->chunks + 1) * 16) = make_uint4(0, 0, 0, 0);
  }
  const int least = t.low * p->x_row + t.first * 2, last = apart ? t.rows - 1 : t.high - 1;
  const char *low = t.x + least, *high = t.x + last * p->x_row + t.end * 2;
  const char *x = (const char *)p->x, *end = x + ((p->m - 1) * p->x_stride + p->n) * 2;
  if (low - ((uintptr_t)low & 15) < x || high + 32 > end) {
    tensor_fetch_singly(p, t, apart, lines);
    return;
  }
  const bool odd = ((uint32_t)(uintptr_t)p->x | (uint32_t)p->x_row) % 16 != 0; // some rows are not aligned
  TensorWalk w = tensor_start(p);
#pragma unroll 1
  while (w.line < lines) {
    uint32_t note[TENSOR_AT_ONCE]; // place, columns and shift, in one register
    Around a[TENSOR_AT_ONCE];
#pragma unroll
    for (int k = 0; k < TENSOR_AT_ONCE; k++) {
      TensorChunk c = tensor_chunk(p, t, apart, w.line, w.at);
      const char *from = t.x + (c.have > 0 ? c.from : least); // what is loaded for nothing is x, too
      uint32_t shift = (uint32_t)(uintptr_t)from & 15;
      a[k].lo = *(const uint4 *)(from - shift);
      if (odd) a[k].hi = *(const uint4 *)(from - shift + 16);
      note[k] = (uint32_t)(w.place << 8 | max(c.have, 0) << 4) | shift;
      if (w.line >= lines) note[k] = ~0u;
      tensor_step(p, &w);
    }
#pragma unroll
    for (int k = 0; k < TENSOR_AT_ONCE; k++) {
      uint4 v = odd ? funnel(a[k].lo, a[k].hi, note[k] & 15, 2) : a[k].lo;
      int have = note[k] >> 4 & 15;
      if (have < TENSOR_COLUMNS) v = tensor_keep(v, have);
      if (note[k] != ~0u) *(uint4 *)(tensor_memory + (note[k] >> 8)) = v;
    }
  }
}

// The band matrices, as operands of mma: a lane has two neighbouring distances of each of three 8 by 8 blocks, those before, at and
// after the diagonal. The same registers are columns of the right operand and rows of the left one; but the centre counts once, and where
// rows are pieces below each other, those of other pieces do not count: `down` is the block at the diagonal for the columns.
typedef struct TensorBands {
  uint32_t along[STENCIL_PIECES][3], down[STENCIL_PIECES];
} TensorBands;

// Pairs of neighbouring distances, in shared memory: lanes want different ones, and constant memory gives a warp one at a time. So a warp
// makes the pairs of a piece, all lanes looking at the same coefficient.
INLINE void tensor_pairs(const StencilTensorParams *p, uint32_t *pairs) {
  int k = threadIdx.x / 32, d = (int)(threadIdx.x % 32) - TENSOR_FAR;
  uint32_t low = 0, high = 0;
  if (k >= STENCIL_PIECES) return;
#pragma unroll
  for (int i = 0; i < STENCIL_DISTANCES; i++) {
    uint32_t piece = p->piece[k][i];
    low = abs(d) == i ? piece : low, high = abs(d + 1) == i ? piece : high;
  }
  pairs[threadIdx.x] = low | high << 16;
}

INLINE TensorBands tensor_bands(const StencilTensorParams *p, const uint32_t *pairs) {
  const int from = (threadIdx.x % 32) >> 2, to = (threadIdx.x & 3) * 2, bits = p->row_mask >= 0 ? p->group_bits : 31;
  uint32_t kept = (to == from || from >> bits != to >> bits ? 0 : 0xffffu) |
                  (to + 1 == from || from >> bits != to + 1 >> bits ? 0 : 0xffff0000u);
  TensorBands b;
#pragma unroll
  for (int k = 0; k < STENCIL_PIECES; k++) {
#pragma unroll
    for (int block = 0; block < 3; block++)
      b.along[k][block] = pairs[k * 32 + TENSOR_FAR + to - from + (block - 1) * 8];
    b.down[k] = b.along[k][1] & kept;
  }
  return b;
}

// Two matrices of 8 by 8; lanes 0 to 15 give the addresses.
INLINE void load_two(uint32_t (&r)[2], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
}

// d += A B, k of 8.
INLINE void multiply_16x8_short(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b, int kind) {
#define MULTIPLY(type)                                                                                       \
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, " \
               "{%0, %1, %2, %3};"                                                                           \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                              \
               : "r"(a0), "r"(a1), "r"(b))
  if (kind == KIND_FP16) MULTIPLY("f16");
  else MULTIPLY("bf16");
#undef MULTIPLY
}

// sum: 16 rows by 8 columns. f: those rows with 8 columns before and after; g: those columns with 8 rows above and below.
INLINE void tensor_multiply(const StencilTensorParams *p, const TensorBands &b, const uint32_t (&f)[6], const uint32_t (&g)[4], bool apart,
                            int kind, float (&sum)[4]) {
  const uint32_t rows[4] = {f[0], f[1], f[2], f[3]};
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] = 0;
#pragma unroll
  for (int k = 0; k < STENCIL_PIECES; k++) {
    if (k >= p->pieces) break;
    const uint32_t before = apart ? 0 : b.along[k][0], after = apart ? 0 : b.along[k][2];
    const uint32_t above[4] = {before, 0, b.down[k], before}, below[4] = {after, b.down[k], 0, after};
    multiply_16x8(sum, rows, b.along[k][0], b.along[k][1], kind);
    multiply_16x8_short(sum, f[4], f[5], b.along[k][2], kind);
    multiply_16x8(sum, above, g[0], g[1], kind);
    multiply_16x8(sum, below, g[2], g[3], kind);
  }
  if (kind == KIND_FP16) { // bf16 needs no scale
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] *= p->scale;
  }
}

enum { TENSOR_FLOATS, TENSOR_WORDS, TENSOR_HALVES }; // how two results are stored: as floats, as one word, as two elements of 2 bytes

INLINE void tensor_put(const StencilTensorParams *p, char *at, int how, float a, float b) {
  if (how == TENSOR_FLOATS) {
    ((float *)at)[0] = a, ((float *)at)[1] = b;
    return;
  }
  uint32_t two = narrow2(a, b, p->y_kind);
  if (how == TENSOR_WORDS) *(uint32_t *)at = two;
  else ((uint16_t *)at)[0] = (uint16_t)two, ((uint16_t *)at)[1] = (uint16_t)(two >> 16);
}

// Where a lane is in 16 rows: what it gives the addresses of, and the two rows of y that it has columns of.
typedef struct TensorStrip {
  uint32_t rows, columns; // in shared memory
  int y[2], left[2];      // the same; columns of y from there on
} TensorStrip;

INLINE TensorStrip tensor_strip(const StencilTensorParams *p, const TensorTile &t, const Tile &y, bool apart, int out, int strip, int q) {
  const int lane = threadIdx.x % 32, top = strip * TENSOR_ROWS;
  const uint32_t x = tile_address(tensor_memory) + q * 16;
  TensorStrip s;
  s.rows = x + (uint32_t)((top + TENSOR_HALO + lane % 16) * p->x_pitch);
  s.columns = x + (uint32_t)((top + lane) * p->x_pitch + 16);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int v = top + i * 8 + (lane >> 2), row = apart ? v & p->row_mask : v;
    int column = (apart ? tensor_skip(p, v) : 0) + q * TENSOR_COLUMNS + lane % 4 * 2;
    s.y[i] = tile_place(y, row) + column * out;
    s.left[i] = row < t.rows ? t.columns - column : 0;
  }
  return s;
}

// This warp's part of the tile: units of 16 rows by 8 columns, those of a row after each other. Returns whether some result is not finite.
INLINE bool tensor_compute(const StencilTensorParams *p, const TensorTile &t, const TensorBands &b, const Tile &y, char *to, int out,
                           bool apart, int kind) {
  const int lane = threadIdx.x % 32, warps = STENCIL_THREADS / 32, units = p->strips * p->chunks, each = (units + warps - 1) / warps;
  int unit = (int)(threadIdx.x / 32) * each, count = min(each, units - unit), strip = unit / p->chunks, q = unit - strip * p->chunks;
  const bool words = ((uint32_t)(uintptr_t)y.at | (uint32_t)y.stride) % 4 == 0;
  const int how = out == 4 ? TENSOR_FLOATS : words ? TENSOR_WORDS : TENSOR_HALVES;
  float rare = 0;
#pragma unroll 1
  for (; count > 0; strip++, q = 0) {
    TensorStrip s = tensor_strip(p, t, y, apart, out, strip, q);
    uint32_t f[6], g[4], two[4], more[2];
    load_matrices(two, s.rows + (lane >> 4) * 16);
    f[2] = two[0], f[3] = two[1], f[4] = two[2], f[5] = two[3];
    int run = min(count, p->chunks - q);
    count -= run;
#pragma unroll 1
    for (; run > 0; run--) {
#pragma unroll
      for (int i = 0; i < 4; i++) f[i] = f[i + 2];
      load_two(more, s.rows + 32);
      f[4] = more[0], f[5] = more[1];
      load_matrices_turned(g, s.columns);
      float sum[4];
      tensor_multiply(p, b, f, g, apart, kind, sum);
#pragma unroll
      for (int i = 0; i < 4; i++) rare = fmaf(sum[i], 0, rare); // NaN, if one is not finite
#pragma unroll
      for (int i = 0; i < 2; i++) { // in y's rows without gaps, what is beyond one is the next
        if (y.pitch || s.left[i] > 1) tensor_put(p, to + s.y[i], how, sum[2 * i], sum[2 * i + 1]);
        else if (s.left[i] == 1) store_one(to + s.y[i], 0, p->y_kind, sum[2 * i]);
        s.left[i] -= TENSOR_COLUMNS;
      }
      s.rows += 16, s.columns += 16, s.y[0] += TENSOR_COLUMNS * out, s.y[1] += TENSOR_COLUMNS * out;
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

// (What it knows of the tile is computed again: kept until here, it would take registers from all that comes before.)
INLINE void tensor_mend(const StencilTensorParams *p, const Tile &y, char *memory, int kind) {
  const TensorTile t = tensor_tile(p);
#pragma unroll 1
  for (int i = threadIdx.x; i < t.rows * t.columns; i += STENCIL_THREADS) {
    int row = i / t.columns, column = i - row * t.columns;
    char *at = memory + tile_place(y, row);
    if (!isfinite(load_one(at, column, p->y_kind)))
      store_one(at, column, p->y_kind, tensor_exact(p, t.row + row, t.column + column, kind));
  }
}

INLINE void stencil_tensor(const StencilTensorParams *p, bool apart, int kind) {
  const TensorTile t = tensor_tile(p);
  if (t.columns <= 0) return;
  const int out = p->y_kind == KIND_FP32 ? 4 : 2;
  const Tile y = {(char *)p->y + (t.row * p->y_stride + t.column) * out, p->y_stride * out, t.rows, t.columns * out, p->y_pitch};
  char *memory = tensor_memory + p->y_place;
  __shared__ uint32_t pairs[STENCIL_PIECES * 32];
  tensor_pairs(p, pairs);
  tensor_fetch(p, t, apart);
  __syncthreads();
  bool rare = tensor_compute(p, t, tensor_bands(p, pairs), y, memory, out, apart, kind);
  if (__syncthreads_or(rare)) {
    tensor_mend(p, y, memory, kind);
    __syncthreads();
  }
  tile_send(y, memory, out);
}

KERNEL __launch_bounds__(STENCIL_THREADS, 3) sol_stencil_2_tensor(const __grid_constant__ StencilTensorParams p) {
  let_successor_start();
  wait_for_predecessor();
  const bool half = p.x_kind == KIND_FP16, apart = p.row_mask >= 0;
  if (half && apart) stencil_tensor(&p, true, KIND_FP16);
  else if (half) stencil_tensor(&p, false, KIND_FP16);
  else if (apart) stencil_tensor(&p, true, KIND_BF16);
  else stencil_tensor(&p, false, KIND_BF16);
}

#endif
#endif
