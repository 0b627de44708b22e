// y = x / scale in int8, fp8 (e4m3) or fp4 (e2m1), with a scale for each group of columns or each row, by the largest
// magnitude in it; NaN aside.
#include "quantize.h"

#include "bytes.cuh"
#include "fp8.cuh"
#include "held.cuh"
#include "narrow.cuh"
#include "pieces.cuh"

// Columns of a piece, bytes of its results, and the lanes that share a group of columns. how: a literal.
INLINE int columns_of(int in) { return QUANTIZE_PIECE / in; }
INLINE int bytes_of(int how, int columns) { return how == QUANTIZE_NVFP4 ? columns / 2 : columns; }
INLINE int lanes_of(int how, int in) {
  int group = how == QUANTIZE_NVFP4 ? 16 : how == QUANTIZE_MXFP8 ? 32 : 128;
  return group / columns_of(in);
}

// most / by, to the nearest: a product and its remainder are enough but for the largest and the smallest (tried for all
// mantissas, by 448 and by 127).
INLINE float most_over(float most, float by) {
  if (!(most >= 0x1p-100f && most <= 0x1p126f)) return __fdiv_rn(most, by);
  float inverse = 1 / by, q = __fmul_rn(most, inverse);
  return __fmaf_rn(__fmaf_rn(-by, q, most), inverse, q);
}

// Writes the scale number `g` (where `write` is set) and gives what its elements are multiplied by.
INLINE float scale_group(const QuantizeParams &p, int how, float most, uint64_t g, bool write) {
  if (how == QUANTIZE_MXFP8) {
    uint32_t code = quantize_e8m0(__float_as_uint(most_over(most, 448)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    return code == 254 ? __uint_as_float(0x400000u) : __uint_as_float((254 - code) << 23); // 2^(127 - code)
  }
  if (how == QUANTIZE_NVFP4) {
    float all = p.tensor_scale ? __ldg(p.tensor_scale) : 1;
    uint32_t code = e4m3_code(__fdiv_rn(most, __fmul_rn(6, all)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    float scale = __fmul_rn(e4m3_value(code), all);
    return scale > 0 ? __frcp_rn(scale) : 0;
  }
  float scale = most_over(most, how == QUANTIZE_INT8 ? 127 : 448);
  if (scale < 0x1p-126f) scale = 0;
  if (write) ((float *)p.scales)[g] = scale;
  return scale > 0 ? __frcp_rn(scale) : 0;
}

// `count` elements, a multiple of 4, packed: 8 bits each, or 4.
INLINE void pack(int how, int count, const float *f, float times, uint32_t *w) {
  if (how == QUANTIZE_NVFP4) {
#pragma unroll
    for (int j = 0; j < count; j++) {
      uint32_t code = quantize_e2m1(__fmul_rn(f[j], times)) << 4 * (j % 8);
      w[j / 8] = (j % 8 ? w[j / 8] : -(QUANTIZE_BASE + (QUANTIZE_BASE << 4) + (QUANTIZE_BASE << 8))) + code;
    }
    return; // bases of later ones are beyond the word
  }
#pragma unroll
  for (int j = 0; j < count; j += 4) {
    float g[4];
#pragma unroll
    for (int i = 0; i < 4; i++) g[i] = __fmul_rn(f[j + i], times);
    w[j / 4] = how == QUANTIZE_INT8 ? int8_four(g) : fp8_pair(g[0], g[1]) | fp8_pair(g[2], g[3]) << 16;
  }
}

INLINE float most_of(const float *f, int count) {
  float most = 0;
#pragma unroll
  for (int j = 0; j < count; j++) most = fmaxf(most, fabsf(f[j]));
  return most;
}

// A piece's elements from lo to hi - 1; 0 for others, which are not the row's.
INLINE void widen_piece(const Piece &piece, int lo, int hi, int in, int kind, float *f) {
  const int columns = columns_of(in);
  to_floats(piece.w, columns, kind, f);
  if (lo <= 0 && hi >= columns) return;
  uint32_t inside = (hi <= 0 ? 0 : hi < 32 ? (1u << hi) - 1 : ~0u) & (lo > 0 ? ~0u << lo : ~0u);
#pragma unroll
  for (int j = 0; j < columns; j++) f[j] = inside & 1u << j ? f[j] : 0;
}

// Stores a piece's results at `column` of the row at y. follows, followed: see give_piece; the latter where the row goes on.
INLINE void put_piece(const QuantizeParams &p, int how, char *y, int64_t column, int64_t left, int in, bool follows,
                      bool followed, const uint32_t *w) {
  const int columns = columns_of(in), words = bytes_of(how, columns) / 4;
  int bytes = bytes_of(how, left < columns ? (left > 0 ? (int)left : 0) : columns);
  char *at = y + (how == QUANTIZE_NVFP4 ? column / 2 : column);
  if (p.shifted) give_piece(at, bytes, follows, followed && left > columns, words, 1, w);
  else if (bytes == 4 * words) store_aligned(at, words, w);
  else if (bytes) store_part(at, 0, bytes, words, 1, w);
}

INLINE Extent quantize_extent(const QuantizeParams &p, int in) {
  Extent e;
  e.begin = (const char *)p.x;
  e.end = e.begin + (int64_t)(p.m - 1) * p.x_stride + p.n * in;
  return e;
}

// Groups of 16, 32 or 128 columns: neighbouring lanes share one, and a row has whole groups of lanes.
typedef struct QuantizePlace {
  uint64_t row;
  int64_t number, left; // of the piece in the row; columns from there on
} QuantizePlace;

INLINE QuantizePlace quantize_place(const QuantizeParams &p, uint64_t i, int in) {
  QuantizePlace a;
  a.row = divide(i, p.divider);
  a.number = (int64_t)(i - a.row * p.divider.by);
  a.left = a.row < p.m ? p.n - a.number * columns_of(in) : 0;
  return a;
}

INLINE void quantize_blocks(const QuantizeParams &p, int in, int kind, int how) {
  const int columns = columns_of(in), lanes = lanes_of(how, in), each = QUANTIZE_EACH;
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (QUANTIZE_BLOCK * each) + threadIdx.x;
  QuantizePlace a[each];
  Piece piece[each];
  float f[16];
  uint32_t w[4];
  begin_kernel();
#pragma unroll
  for (int k = 0; k < each; k++) {
    a[k] = quantize_place(p, first + k * QUANTIZE_BLOCK, in);
    const char *x = (const char *)p.x + (int64_t)a[k].row * p.x_stride + a[k].number * QUANTIZE_PIECE;
    load_piece(quantize_extent(p, in), x, a[k].left, in, &piece[k]);
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    cut_piece(&piece[k], in);
    widen_piece(piece[k], 0, a[k].left < columns ? (int)a[k].left : columns, in, kind, f);
    uint32_t most = lanes_top(__float_as_uint(most_of(f, columns)), lanes);
    float times = scale_group(p, how, __uint_as_float(most), a[k].row * (uint64_t)p.groups + (uint64_t)(a[k].number / lanes),
                              a[k].left > 0 && a[k].number % lanes == 0);
    pack(how, columns, f, times, w);
    int lane = threadIdx.x % 32;
    put_piece(p, how, (char *)p.y + (int64_t)a[k].row * p.y_stride, a[k].number * columns, a[k].left, in,
              lane > 0 && a[k].number > 0, lane < 31, w);
  }
}

// A scale for each row: some lanes of a warp, or all threads of a block, hold it in registers, `count` pieces each. Pieces begin where
// those of y are aligned, so that the row's first may begin before it.
INLINE void quantize_rows(const QuantizeParams &p, int in, int kind, int how, int count) {
  __shared__ uint32_t tops[QUANTIZE_ROW / 32];
  const int columns = columns_of(in);
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  bool shared = p.lane_bits < 0; // by a block
  int threads = shared ? blockDim.x : 1 << p.lane_bits, thread = threadIdx.x & (shared ? ~0 : threads - 1);
  uint64_t row = shared ? block : block * (blockDim.x >> p.lane_bits) + (threadIdx.x >> p.lane_bits);
  const char *x = (const char *)p.x + (int64_t)row * p.x_stride;
  char *y = (char *)p.y + (int64_t)row * p.y_stride;
  int n = row < p.m ? (int)p.n : 0, first = thread * columns - (int)((uint32_t)(uintptr_t)y & (columns - 1));
  Extent extent = quantize_extent(p, in);
  Piece piece[4];
  float f[4][16], most = 0; // of two pieces they are kept, of four they are made again
  uint32_t w[4];
  begin_kernel();
#pragma unroll
  for (int k = 0; k < count; k++) {
    int column = first + k * threads * columns;
    load_piece(extent, x + (int64_t)column * in, n - column, in, &piece[k], column);
  }
#pragma unroll
  for (int k = 0; k < count; k++) {
    int column = first + k * threads * columns;
    cut_piece(&piece[k], in);
    widen_piece(piece[k], -column, n - column, in, kind, f[k]);
    most = fmaxf(most, most_of(f[k], columns));
  }
  uint32_t top = __float_as_uint(most);
  if (shared) {
    top = lanes_top(top, 32);
    if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
    __syncthreads();
    top = lanes_top(threadIdx.x % 32 < blockDim.x / 32 ? tops[threadIdx.x % 32] : 0, 32);
  } else {
    for (int o = threads / 2; o; o /= 2) top = max(top, __shfl_xor_sync(~0u, top, o));
  }
  float times = scale_group(p, how, __uint_as_float(top), row, thread == 0 && n);
#pragma unroll
  for (int k = 0; k < count; k++) {
    int column = first + k * threads * columns, lo = max(-column, 0), hi = min(n - column, columns);
    if (lo >= hi) continue;
    if (count > 2) to_floats(piece[k].w, columns, kind, f[k]);
    pack(how, columns, f[k], times, w);
    if (lo == 0 && hi == columns) store_aligned(y + column, columns / 4, w);
    else store_part(y + column, lo, hi, columns / 4, 1, w);
  }
}

// A row that no registers hold is held in shared memory, of several blocks if need be.
INLINE void quantize_held(const QuantizeParams &p, int in, int kind, int how, HeldShared *shared, uint4 *memory) {
  const int per = 16 / in;
  Held h = held_of(p.x, p.x_stride, p.n, in, memory, p.held);
  held_fill(h);
  float f[8], most = 0;
#pragma unroll 4
  for (int k = 0; k < h.count; k++) {
    held_chunk(h, k, kind, in, f);
    most = fmaxf(most, most_of(f, per));
  }
  int64_t at;
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++) most = fmaxf(most, fabsf(load_one(h.x.at, at, kind)));
  uint64_t all = __float_as_uint(most);
  held_fold<1>(h, shared, &all, 0, MostJoin());
  held_leave(h);
  bool first = h.rank == 0 && held_thread(h) == 0 && h.row < p.held.m;
  float times = scale_group(p, how, __uint_as_float((uint32_t)all), h.row, first);
  char *y = (char *)p.y + (int64_t)h.row * p.y_stride;
  int counts = __shfl_sync(~0u, h.count, 0), after = __shfl_down_sync(~0u, h.count, 1); // of the first lane; of the next
  uint32_t w[2];
#pragma unroll 2
  for (int k = 0; k < counts; k++) { // lanes next to each other have chunks next to each other
    int64_t column = held_column(h, k, in);
    if (k < h.count) held_chunk(h, k, kind, in, f);
    pack(how, per, f, times, w);
    give_piece(y + column, k < h.count ? per : 0, h.lane > 0, h.lane < 31 && k < after, per / 4, 1, w);
  }
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++) {
    f[0] = load_one(h.x.at, at, kind), f[1] = f[2] = f[3] = 0;
    pack(how, 4, f, times, w);
    ((uint8_t *)y)[at] = (uint8_t)w[0];
  }
  held_end(h);
}

// Rows of a few columns, dense: spans of many of them go through shared memory.
INLINE void quantize_narrow(const QuantizeParams &p, int in, int kind, int how, int most) {
  int rows = narrow_rows(&p.narrow, p.m), turn = NARROW_THREADS >> p.narrow.lane_bits;
  NarrowTile x = narrow_tile(&p.narrow, NARROW_X, p.x, p.x_stride, in, rows);
  NarrowTile y = narrow_tile(&p.narrow, NARROW_Y, p.y, p.y_stride, 1, rows);
  uint64_t start = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p.narrow.rows;
  NarrowCopy copy = {p.narrow.lane_bits, p.narrow.each};
  begin_kernel();
  narrow_fetch(x, in);
  narrow_arrived();
  for (int first = 0; first < rows; first += turn) {
    NarrowPlace a = narrow_place(&p.narrow, copy, first, rows);
    float f[NARROW_MOST];
    uint32_t w[NARROW_MOST / 4];
    narrow_take_alike(narrow_row(x, a.row), a, most, kind, f);
    uint32_t top = __float_as_uint(most_of(f, most));
    for (int o = a.lanes / 2; o; o /= 2) top = max(top, __shfl_xor_sync(~0u, top, o));
    float times = scale_group(p, how, __uint_as_float(top), start + a.row, a.n && a.lane == 0);
    pack(how, most, f, times, w);
    narrow_give_bytes(narrow_row(y, a.row), a, most, w);
  }
  __syncthreads();
  narrow_send(y, 1);
}

// body(how): a literal. The kind of 2-byte elements is known at run time.
#define QUANTIZE_BY_ROW(body)                                                                                \
  if (p.how == QUANTIZE_INT8) body(QUANTIZE_INT8);                                                           \
  else body(QUANTIZE_FP8);
#define QUANTIZE_BY_HOW(body)                                                                                \
  if (p.how == QUANTIZE_MXFP8) body(QUANTIZE_MXFP8);                                                         \
  else if (p.how == QUANTIZE_NVFP4) body(QUANTIZE_NVFP4);                                                    \
  else QUANTIZE_BY_ROW(body)
#define BLOCKS(how) quantize_blocks(p, in, kind, how)
#define ROWS(how)   quantize_rows(p, in, kind, how, count)
#define HELD(how)   quantize_held(p, in, kind, how, &shared, memory)
#define NARROW(how)                                                                                          \
  {                                                                                                          \
    if (p.narrow.each <= 8) quantize_narrow(p, in, kind, how, 8);                                            \
    else quantize_narrow(p, in, kind, how, NARROW_MOST);                                                     \
  }
#define QUANTIZE_ROWS(in_, count_)                                                                           \
  KERNEL __launch_bounds__(QUANTIZE_ROW, count_ > 2 ? 1 : 2)                                                  \
  sol_quantize_rows_##in_##_##count_(const __grid_constant__ QuantizeParams p) {                             \
    const int in = in_, kind = in == 4 ? KIND_FP32 : p.x_kind, count = count_;                               \
    QUANTIZE_BY_ROW(ROWS)                                                                                    \
  }
#define QUANTIZE(in_)                                                                                        \
  KERNEL __launch_bounds__(QUANTIZE_BLOCK) sol_quantize_blocks_##in_(const __grid_constant__ QuantizeParams p) { \
    const int in = in_, kind = in == 4 ? KIND_FP32 : p.x_kind;                                               \
    QUANTIZE_BY_HOW(BLOCKS)                                                                                  \
  }                                                                                                          \
  QUANTIZE_ROWS(in_, 2)                                                                                      \
  QUANTIZE_ROWS(in_, 4)                                                                                      \
  KERNEL __launch_bounds__(HELD_THREADS, 2) sol_quantize_held_##in_(const __grid_constant__ QuantizeParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ HeldShared shared;                                                                            \
    const int in = in_, kind = in == 4 ? KIND_FP32 : p.x_kind;                                               \
    begin_kernel();                                                                                          \
    QUANTIZE_BY_ROW(HELD)                                                                                    \
  }                                                                                                          \
  KERNEL __launch_bounds__(NARROW_THREADS) sol_quantize_narrow_##in_(const __grid_constant__ QuantizeParams p) { \
    const int in = in_, kind = in == 4 ? KIND_FP32 : p.x_kind;                                               \
    if (p.how == QUANTIZE_MXFP8) NARROW(QUANTIZE_MXFP8)                                                      \
    else if (p.how == QUANTIZE_INT8) NARROW(QUANTIZE_INT8)                                                   \
    else NARROW(QUANTIZE_FP8)                                                                                \
  }
QUANTIZE(2)
QUANTIZE(4)
