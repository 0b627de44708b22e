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

// Eight elements: two words of 8 bits each, or one of 4.
INLINE void pack(int how, const float *f, uint32_t *w) {
  if (how == QUANTIZE_NVFP4) {
    w[0] = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) w[0] |= quantize_e2m1(f[j]) << 4 * j;
  } else if (how == QUANTIZE_INT8) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const float *g = f + 4 * j;
      w[j] = __byte_perm(__byte_perm(int8_of(g[0]), int8_of(g[1]), 0x40), __byte_perm(int8_of(g[2]), int8_of(g[3]), 0x40), 0x5410);
    }
  } else {
    w[0] = fp8_pair(f[0], f[1]) | fp8_pair(f[2], f[3]) << 16;
    w[1] = fp8_pair(f[4], f[5]) | fp8_pair(f[6], f[7]) << 16;
  }
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

// The largest magnitude of the elements in bytes begin to end - 1 of shared memory, of those that lane `lane` of `lanes` has:
// by 16 bytes, or, a few, by words.
INLINE float most_of(const char *memory, int begin, int end, int lane, int lanes, int in, int kind) {
  float most = 0;
  uint32_t two = 0;
  if (end - begin >= 64) {
    const uint4 *at = (const uint4 *)memory;
#pragma unroll 2
    for (int i = begin / 16 + lane; i < (end + 15) / 16; i += lanes) {
      uint4 v = at[i];
      uint32_t w[4] = {v.x, v.y, v.z, v.w};
      bool inside = 16 * i >= begin && 16 * i + 16 <= end;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int here = 16 * i + 4 * j;
        if (in == 4) {
          most = fmaxf(most, inside || (here >= begin && here < end) ? fabsf(__uint_as_float(w[j])) : 0);
        } else {
          uint32_t u = w[j] & 0x7fff7fffu;
          if (!inside) u &= (here >= begin && here < end ? 0xffffu : 0) | (here + 2 >= begin && here + 2 < end ? 0xffff0000u : 0);
          two = larger2(two, u, kind);
        }
      }
    }
  } else {
    const uint32_t *word = (const uint32_t *)memory;
    for (int i = begin / 4 + lane; i < (end + 3) / 4; i += lanes) {
      uint32_t u = word[i];
      if (in == 4) most = fmaxf(most, fabsf(__uint_as_float(u)));
      else two = larger2(two, u & 0x7fff7fffu & (4 * i < begin ? 0xffff0000u : ~0u) & (4 * i + 4 > end ? 0xffffu : ~0u), kind);
    }
  }
  float2 f = widen2(two, kind);
  return in == 4 ? most : fmaxf(f.x, f.y);
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

// What put_eight needs to know of the tile.
typedef struct Puts {
  const char *memory;
  const float *times;
  int columns, of_row; // of a row of the tile: columns and groups
  int length;          // elements of a row of y, or of all of them where rows follow each other
  int shift;           // log2 of the columns of a group; 31: the row is one
} Puts;

// Eight elements of y's row `row` from j on, or, where rows follow each other, of all of them; what is beyond them is neither
// read nor written.
INLINE void put_eight(const QuantizeParams &p, const Tile &t, const Puts &s, int row, int j, char *y, int how, int in, int kind) {
  int column = j, bytes = how == QUANTIZE_NVFP4 ? 4 : 8;
  if (!t.pitch && t.rows > 1) row = j < 0 ? 0 : (int)divide32(j, p.by_columns), column = j - row * s.columns;
  float f[8];
  uint32_t w[8];
  if (j >= 0 && column + 8 <= s.columns && column >> s.shift == (column + 7) >> s.shift) {
    float by = s.times[row * s.of_row + (column >> s.shift)];
    int at = tile_place(t, row) + column * in;
    tile_words(s.memory, at, 4, in, w);
    if (in == 4) tile_words(s.memory, at + 16, 4, in, w + 4);
    to_floats(w, 8, kind, f);
#pragma unroll
    for (int i = 0; i < 8; i++) f[i] = __fmul_rn(f[i], by);
    pack(how, f, w);
    store_aligned(y, bytes / 4, w);
    return;
  }
#pragma unroll 1
  for (int i = 0; i < 8; i += 8 / bytes) {
    if (j + i < 0 || j + i >= s.length) continue;
    int c = column + i, r = row;
    while (c >= s.columns) c -= s.columns, r++;
#pragma unroll
    for (int k = 0; k < 8 / bytes; k++)
      f[k] = __fmul_rn(load_one(s.memory + tile_place(t, r), c + k, kind), s.times[r * s.of_row + ((c + k) >> s.shift)]);
    uint32_t byte = how == QUANTIZE_NVFP4   ? quantize_e2m1(f[0]) | quantize_e2m1(f[1]) << 4
                    : how == QUANTIZE_INT8 ? int8_of(f[0])
                                           : e4m3_code(f[0]);
    y[i * bytes / 8] = (char)byte;
  }
}

// y's part of the tile, on boundaries of what eight elements become.
INLINE void put_tile(const QuantizeParams &p, const Work &w, const Tile &t, int64_t from, const char *memory, const float *times,
                     int how, int in, int kind) {
  const int unit = how == QUANTIZE_NVFP4 ? 4 : 8, dense = how == QUANTIZE_NVFP4 ? 2 : 1;
  Puts s;
  s.memory = memory, s.times = times;
  s.columns = t.bytes / in;
  s.shift = p.group ? 31 - __clz(p.group) : 31;
  s.of_row = p.group ? (s.columns + p.group - 1) >> s.shift : 1;
  s.length = (t.pitch ? 1 : t.rows) * s.columns;
  int rows = t.pitch ? t.rows : 1, bytes = s.length / dense, each = (bytes + 2 * unit - 2) / unit; // units that a row may touch
  char *y = (char *)p.y + (int64_t)w.row * p.y_stride + (w.column + from) / dense;
  for (int i = threadIdx.x; i < rows * each; i += blockDim.x) {
    int row = rows == 1 ? 0 : i / each, k = i - row * each;
    char *first = y + row * p.y_stride;
    int at = unit * k - (int)((uintptr_t)first & (unit - 1));
    if (at < bytes) put_eight(p, t, s, row, at * dense, first + at, how, in, kind);
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
    if (p.how == QUANTIZE_NVFP4) put_tile(p, w, t, from, memory, times, QUANTIZE_NVFP4, in, kind);
    else if (p.how == QUANTIZE_INT8) put_tile(p, w, t, from, memory, times, QUANTIZE_INT8, in, kind);
    else put_tile(p, w, t, from, memory, times, QUANTIZE_FP8, in, kind);
  }
  if (p.cluster > 1) cluster_wait();
}

#define QUANTIZE(in)                                                                                         \
  KERNEL __launch_bounds__(QUANTIZE_THREADS, 4) sol_quantize_##in(const __grid_constant__ QuantizeParams p) { \
    extern __shared__ __align__(128) char memory[];                                                          \
    begin_kernel();                                                                                          \
    if (in == 4) quantize(p, in, KIND_FP32, memory);                                                         \
    else if (p.x_kind == KIND_FP16) quantize(p, in, KIND_FP16, memory);                                      \
    else quantize(p, in, KIND_BF16, memory);                                                                 \
  }
QUANTIZE(2)
QUANTIZE(4)
