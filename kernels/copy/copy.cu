// y = x. One access a thread, blocks in order: on an H200 that beats every deeper pipeline (README.md).
#include "copy.h"

#include "elementwise.cuh"

#define BODY(type)                                                                                           \
  {                                                                                                          \
    uint64_t i = thread_index(), row = 0, column = i;                                                        \
    if (!p.flat) {                                                                                           \
      row = divide(i, p.spread.divider);                                                                     \
      column = i - row * p.spread.divider.by;                                                                \
    }                                                                                                        \
    if (may_hint() && i < p.spread.chunks && threadIdx.x % 8 == 0)                                           \
      prefetch_l2((const type *)p.x + (int64_t)row * p.x_stride + (int64_t)column);                          \
    begin_kernel();                                                                                          \
    if (i >= p.spread.chunks) return;                                                                        \
    unit_ends((const type *)p.y + (int64_t)row * p.y_stride, p.spread.ends, column, p.spread.divider.by);    \
    ((type *)p.y)[(int64_t)row * p.y_stride + (int64_t)column] =                                             \
        ((const type *)p.x)[(int64_t)row * p.x_stride + (int64_t)column];                                    \
  }
#define TYPE_16 uint4
#define TYPE_8  uint2
#define TYPE_4  uint32_t
#define TYPE_2  uint16_t
#define TYPE_1  uint8_t
#define COPY(name, bytes) KERNEL __launch_bounds__(256) name(CopyParams p) BODY(TYPE_##bytes)
#include "copy.def"

// Dense, two accesses a thread: where that puts everything on the GPU at once.
KERNEL __launch_bounds__(128) sol_copy_two(CopyParams p) {
  uint64_t i = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * 256 + threadIdx.x;
  uint4 a, b;
  if (may_hint() && threadIdx.x % 8 == 0) {
    if (i < p.spread.chunks) prefetch_l2((const uint4 *)p.x + i);
    if (i + 128 < p.spread.chunks) prefetch_l2((const uint4 *)p.x + i + 128);
  }
  begin_kernel();
  if (i < p.spread.chunks) a = ((const uint4 *)p.x)[i];
  if (i + 128 < p.spread.chunks) b = ((const uint4 *)p.x)[i + 128];
  if (i < p.spread.chunks) ((uint4 *)p.y)[i] = a;
  if (i + 128 < p.spread.chunks) ((uint4 *)p.y)[i + 128] = b;
}

// Rows that start and end anywhere: whole 16 bytes of y, cut out of two accesses to x where the two are shifted. `c` counts
// bytes, whole elements of them.
INLINE void copy_chunk(const CopyParams &p, Chunk c, int size) {
  const char *x = (const char *)p.x + (int64_t)c.row * p.x_stride;
  char *y = (char *)p.y + (int64_t)c.row * p.y_stride;
  int64_t length = p.spread.length / size;
  Raw a;
  Extent e = extent_of(p.x, p.x_stride, p.spread, 1);
  chunk_ends(p.spread, y, c, 16);
  c.first /= size;
  load_chunk(e, x, c, length, 16 / size, size, &a);
  cut_chunk(&a, 16 / size, size);
  if (c.full) store_aligned(y + c.first * size, 4, a.w);
  else store_words_some(y, c.first, length, 16 / size, size, a.w);
}

KERNEL __launch_bounds__(256, 8) sol_copy_any(const __grid_constant__ CopyParams p) {
  Chunk c;
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.y, p.y_stride, 16, 1, &c)) return;
  if (p.size == 4) copy_chunk(p, c, 4);
  else if (p.size == 2) copy_chunk(p, c, 2);
  else copy_chunk(p, c, 1);
}

// From one kind to another.
INLINE void convert_any(int in, int out, CopyParams p) {
  const int per = CHUNK_OF(in, out);
  Chunk c;
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.y, p.y_stride, per, out, &c)) return;
  const char *x = (const char *)p.x + (int64_t)c.row * p.x_stride * in;
  char *y = (char *)p.y + (int64_t)c.row * p.y_stride * out;
  Raw a;
  float f[8];
  chunk_ends(p.spread, y, c, per);
  load_chunk(extent_of(p.x, p.x_stride, p.spread, in), x, c, p.spread.length, per, in, &a);
  cut_chunk(&a, per, in);
  to_floats(a.w, per, kind_of(in, p.x_kind), f);
  store_within(y, c, p.spread.length, per, out, p.y_kind, f);
}

// Dense, on 16 bytes, a whole number of chunks.
INLINE void convert_lean(int in, int out, CopyParams p) {
  const int per = CHUNK_OF(in, out);
  uint64_t i = thread_index();
  uint32_t w[8];
  float f[8];
  begin_kernel();
  if (i >= p.spread.chunks) return;
  load_aligned((const char *)p.x + i * (per * in), per * in / 4, 0, w);
  to_floats(w, per, kind_of(in, p.x_kind), f);
  store_chunk(p.y, (int64_t)(i * per), per, out, p.y_kind, f);
}

#define CONVERT(in, out)                                                                                     \
  KERNEL __launch_bounds__(256) sol_copy_lean_##in##_##out(CopyParams p) { convert_lean(in, out, p); }       \
  KERNEL __launch_bounds__(256) sol_copy_any_##in##_##out(CopyParams p) { convert_any(in, out, p); }
#include "copy.def"
