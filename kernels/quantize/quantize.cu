// y = x / scale in int8, fp8 (e4m3) or fp4 (e2m1), with a scale for each group of columns or each row, by the largest
// magnitude in it; NaN aside. A block stages rows, a row, or a part of one in shared memory, finds the largest magnitude of each
// group there, and writes y in whole words wherever rows start. Blocks of a cluster share a long row.
#include "quantize.h"

#include "bytes.cuh"
#include "elementwise.cuh"
#include "fp8.cuh"
#include "held.cuh"
#include "packed.cuh"
#include "tile.cuh"

// Writes the scale of group `g` of all (where `write` is set) and gives what its elements are multiplied by.
INLINE float scale_group(const QuantizeParams &p, float most, uint64_t g, bool write) {
  if (p.how == QUANTIZE_MXFP8) {
    uint32_t code = quantize_e8m0(__float_as_uint(__fdiv_rn(most, 448)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    return code == 254 ? __uint_as_float(0x400000u) : __uint_as_float((254 - code) << 23); // 2^(127 - code)
  }
  if (p.how == QUANTIZE_NVFP4) {
    float all = p.tensor_scale ? __ldg(p.tensor_scale) : 1;
    uint32_t code = e4m3_code(__fdiv_rn(most, __fmul_rn(6, all)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    float scale = __fmul_rn(e4m3_value(code), all);
    return scale > 0 ? __fdiv_rn(1, scale) : 0;
  }
  float scale = __fdiv_rn(most, p.how == QUANTIZE_INT8 ? 127 : 448);
  if (scale < 0x1p-126f) scale = 0;
  if (write) ((float *)p.scales)[g] = scale;
  return scale > 0 ? __fdiv_rn(1, scale) : 0;
}

// A word of y: four elements of 8 bits, or eight of 4.
INLINE uint32_t pack(int how, const float *f) {
  if (how == QUANTIZE_NVFP4) {
    uint32_t w = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) w |= quantize_e2m1(f[j]) << 4 * j;
    return w;
  }
  if (how == QUANTIZE_INT8) return int8_of(f[0]) | int8_of(f[1]) << 8 | int8_of(f[2]) << 16 | int8_of(f[3]) << 24;
  return fp8_pair(f[0], f[1]) | fp8_pair(f[2], f[3]) << 16;
}

// What a block has: `rows` rows of `columns` columns from `row` and `column` on.
typedef struct Work {
  uint64_t row;
  int64_t column, columns;
  int rows, part; // part: which of the row
} Work;

INLINE Work work_of(const QuantizeParams &p) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  Work w;
  w.part = (int)(p.parts > 1 ? block % p.parts : 0);
  w.row = p.parts > 1 ? block / p.parts : block * p.rows;
  w.rows = w.row >= p.m ? 0 : (int)min((uint64_t)p.rows, p.m - w.row);
  w.column = w.part * p.columns;
  w.columns = max((int64_t)0, min(p.columns, p.n - w.column));
  return w;
}

// Columns of the piece that starts `from` columns after the work's first: all of them but for rows that are too long.
INLINE Tile tile_of(const QuantizeParams &p, const Work &w, int64_t from, int in) {
  Tile t;
  t.at = (const char *)p.x + (int64_t)w.row * p.x_stride + (w.column + from) * in;
  t.stride = p.x_stride;
  t.rows = w.rows;
  t.bytes = (int)min((int64_t)p.piece, w.columns - from) * in;
  t.pitch = p.pitch;
  return t;
}

// The largest magnitude of the elements in bytes begin to end - 1 of shared memory, of those that lane `lane` of `lanes` has.
INLINE float most_of(const char *memory, int begin, int end, int lane, int lanes, int in, int kind) {
  const uint32_t *word = (const uint32_t *)memory;
  float most = 0;
  if (in == 4) {
#pragma unroll 4
    for (int i = begin / 4 + lane; i < end / 4; i += lanes) most = fmaxf(most, fabsf(__uint_as_float(word[i])));
    return most;
  }
  uint32_t two = 0;
#pragma unroll 4
  for (int i = begin / 4 + lane; i < (end + 3) / 4; i += lanes) {
    uint32_t v = word[i] & 0x7fff7fffu;
    if (4 * i < begin) v &= 0xffff0000u;
    if (4 * i + 4 > end) v &= 0xffffu;
    two = larger2(two, v, kind);
  }
  float2 f = widen2(two, kind);
  return fmaxf(f.x, f.y);
}

// Those of all groups of the tile; `p.lanes` neighbouring threads have a group, a power of two.
INLINE void find_most(const QuantizeParams &p, const Tile &t, const char *memory, uint32_t *most, int in, int kind) {
  int columns = t.bytes / in, of_row = p.group ? (columns + p.group - 1) / p.group : 1, groups = t.rows * of_row;
  int lane = threadIdx.x & (p.lanes - 1), step = blockDim.x / p.lanes;
  for (int first = 0; first < groups; first += step) {
    int g = first + threadIdx.x / p.lanes, row = of_row == 1 ? g : g / of_row;
    float here = 0;
    if (g < groups) {
      int column = p.group ? (g - row * of_row) * p.group : 0, place = tile_place(t, row);
      int end = p.group ? min(column + p.group, columns) : columns;
      here = most_of(memory, place + column * in, place + end * in, lane, p.lanes, in, kind);
    }
    uint32_t bits = __float_as_uint(here);
    for (int o = min(p.lanes, 32) / 2; o; o /= 2) bits = max(bits, __shfl_xor_sync(~0u, bits, o));
    if (g < groups && threadIdx.x % min(p.lanes, 32) == 0) {
      if (p.lanes > 32) atomicMax(&most[g], bits);
      else most[g] = max(most[g], bits);
    }
  }
}

// The largest of all blocks of the cluster, for the first warp.
INLINE uint32_t cluster_most(const uint32_t *most) {
  uint32_t v = 0;
#if __CUDA_ARCH__ >= 900
  uint32_t lane = threadIdx.x % 32, there;
  if ((int)lane < cluster_blocks()) {
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(there)
                 : "r"((uint32_t)__cvta_generic_to_shared(most)), "r"(lane));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(there) : "memory");
  }
  v = __reduce_max_sync(~0u, v);
#endif
  return v;
}

// A word of y: elements j to j + per - 1 of the tile's output row `row`, or, where rows follow each other, of all of them.
// `length`: its elements. Elements beyond are neither read nor written.
INLINE void put_word(const QuantizeParams &p, const Tile &t, const char *memory, const float *times, int row, int j, int length,
                     char *y, int per, int in, int kind) {
  int columns = t.bytes / in, of_row = p.group ? (columns + p.group - 1) / p.group : 1, column = j;
  if (!t.pitch && t.rows > 1) row = j < 0 ? 0 : (int)divide32(j, p.by_columns), column = j - row * columns;
  int inside = p.group ? column & (p.group - 1) : column, most = p.group ? p.group : columns;
  float f[8];
  uint32_t w[8];
  if (column >= 0 && column + per <= columns && inside + per <= most) {
    float by = times[row * of_row + (p.group ? column / p.group : 0)];
    tile_words(memory, tile_place(t, row) + column * in, in == 4 ? 4 : per / 2, in, w);
    if (in == 4 && per == 8) tile_words(memory, tile_place(t, row) + column * in + 16, 4, in, w + 4);
    to_floats(w, per, kind, f);
#pragma unroll
    for (int i = 0; i < per; i++) f[i] = __fmul_rn(f[i], by);
    *(uint32_t *)y = pack(p.how, f);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < per; i += per / 4) { // bytes
    if (j + i < 0 || j + i >= length) continue;
    int c = column + i, r = row;
    while (c >= columns) c -= columns, r++;
#pragma unroll
    for (int k = 0; k < per / 4; k++) {
      float by = times[r * of_row + (p.group ? c / p.group : 0)];
      f[k] = __fmul_rn(load_one(memory + tile_place(t, r), c + k, kind), by);
    }
    uint32_t byte = per == 8                   ? quantize_e2m1(f[0]) | quantize_e2m1(f[1]) << 4
                    : p.how == QUANTIZE_INT8 ? int8_of(f[0])
                                             : e4m3_code(f[0]);
    y[i / (per / 4)] = (char)byte;
  }
}

// y's part of the tile, in words of its own alignment.
INLINE void put_tile(const QuantizeParams &p, const Work &w, const Tile &t, int64_t from, const char *memory, const float *times,
                     int per, int in, int kind) {
  int rows = t.pitch ? t.rows : 1, length = (t.pitch ? 1 : t.rows) * (t.bytes / in);
  int bytes = length / (per / 4), words = (bytes + 6) / 4; // that a row may touch
  char *y = (char *)p.y + (int64_t)w.row * p.y_stride + (w.column + from) / (per / 4);
#pragma unroll 2
  for (int i = threadIdx.x; i < rows * words; i += blockDim.x) {
    int row = rows == 1 ? 0 : i / words, k = i - row * words;
    char *first = y + row * p.y_stride;
    int at = 4 * k - (int)((uintptr_t)first & 3);
    if (at < bytes) put_word(p, t, memory, times, row, at * (per / 4), length, first + at, per, in, kind);
  }
}

INLINE void quantize(const QuantizeParams &p, int in, int kind, char *memory) {
  uint32_t *most = (uint32_t *)(memory + p.room);
  float *times = (float *)most + (p.cluster > 1); // other blocks read the first of `most` late
  Work w = work_of(p);
  if (!w.rows) return;
  int of_row = p.group ? (int)((w.columns + p.group - 1) / p.group) : 1, groups = w.rows * of_row;
  for (int i = threadIdx.x; i < groups; i += blockDim.x) most[i] = 0;
  int64_t last = w.columns > p.piece ? (w.columns - 1) / p.piece * p.piece : 0;
  for (int64_t from = 0; from <= last; from += p.piece) {
    Tile t = tile_of(p, w, from, in);
    if (from) __syncthreads();
    tile_fill(t, memory, in);
    __syncthreads();
    find_most(p, t, memory, most, in, kind);
  }
  __syncthreads();
  if (p.cluster > 1) {
    cluster_barrier();
    if (threadIdx.x < 32) {
      uint32_t all = cluster_most(most);
      if (threadIdx.x == 0) times[0] = scale_group(p, __uint_as_float(all), w.row, w.part == 0);
    }
    cluster_arrive();
  } else {
    for (int i = threadIdx.x; i < groups; i += blockDim.x) {
      int row = of_row == 1 ? i : i / of_row;
      int64_t g = (w.row + row) * p.groups + (p.group ? w.column / p.group : 0) + (i - row * of_row);
      times[i] = scale_group(p, __uint_as_float(most[i]), (uint64_t)g, true);
    }
  }
  __syncthreads();
  for (int64_t from = last; from >= 0; from -= p.piece) { // the last piece is still there
    Tile t = tile_of(p, w, from, in);
    if (from != last) {
      __syncthreads();
      tile_fill(t, memory, in);
      __syncthreads();
    }
    if (p.how == QUANTIZE_NVFP4) put_tile(p, w, t, from, memory, times, 8, in, kind);
    else put_tile(p, w, t, from, memory, times, 4, in, kind);
  }
  if (p.cluster > 1) cluster_wait();
}

#define QUANTIZE(in)                                                                                         \
  KERNEL __launch_bounds__(QUANTIZE_THREADS, 5) sol_quantize_##in(const __grid_constant__ QuantizeParams p) { \
    extern __shared__ __align__(128) char memory[];                                                          \
    begin_kernel();                                                                                          \
    quantize(p, in, in == 4 ? KIND_FP32 : p.x_kind, memory);                                                 \
  }
QUANTIZE(2)
QUANTIZE(4)
