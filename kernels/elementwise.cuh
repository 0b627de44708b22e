// Elementwise kernels: each thread takes one chunk of a row, loads it with 16-byte accesses wherever it may, and
// stores it so. Dense tensors are walked flat, as one long row: only their two ends are short of a chunk, however odd
// the rows. What cannot be loaded with one access (tensors shifted against each other, a column vector under odd
// rows) is cut out of two aligned ones. No byte outside the tensors is read.
#ifndef SOL_KERNELS_ELEMENTWISE_CUH
#define SOL_KERNELS_ELEMENTWISE_CUH

#include "common.cuh"
#include "elementwise.h"
#include "ends.cuh"

INLINE uint64_t divide(uint64_t i, Divider d) { return __umul64hi(i << 1, d.magic) >> d.shift; }

INLINE uint32_t divide32(uint32_t i, Divider32 d) { return (uint32_t)((uint64_t)i * d.magic >> d.shift); }

// The first thing a kernel does: it waits for the kernel before it, then lets the next one launch. (In the other order
// blocks of several waiting kernels would occupy the multiprocessors and displace those of the one that runs.)
INLINE void begin_kernel(void) {
  wait_for_predecessor();
  let_successor_start();
}

// Elements of a chunk: 16 bytes of the wider of the two sides.
#define CHUNK_OF(in, out) (16 / ((in) > (out) ? (in) : (out)))

typedef struct Chunk {
  uint64_t row;
  int64_t first; // its first element within the row; below 0: the row starts within the chunk
  int full;      // all of it lies within the row
} Chunk;

// i / divider.by, and what is left.
INLINE uint64_t spread_divide(uint64_t i, const Spread &s, uint64_t *rest) {
  if (s.small.by) {
    uint32_t q = divide32((uint32_t)i, s.small);
    *rest = (uint32_t)i - q * s.small.by;
    return q;
  }
  uint64_t q = divide(i, s.divider);
  *rest = i - q * s.divider.by;
  return q;
}

// Chunk `within` of the `threads` that this block has, of `per` elements of `out` bytes; false: there is none. Where rows start with a
// block, all that depends on the row is computed once for a warp.
INLINE bool take_chunk_of(uint32_t within, uint32_t threads, const Spread &s, int flat, const void *y, int64_t y_stride, int per, int out,
                          Chunk *c) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, i = block * threads + within;
  c->row = 0;
  if (s.parts.by) {
    uint32_t row = divide32((uint32_t)block, s.parts);
    c->row = row;
    i = ((uint32_t)block - row * s.parts.by) * (uint64_t)threads + within;
    if (row > s.last) return false;
  } else {
    if (i >= s.chunks) return false;
    if (!flat) c->row = spread_divide(i, s, &i);
  }
  uint32_t shift = (uint32_t)((uintptr_t)y + c->row * (uint64_t)y_stride * out) & (per * out - 1);
  c->first = (int64_t)(i * per) - (int64_t)(shift / out);
  c->full = c->first >= 0 && c->first + per <= s.length;
  return c->first < s.length;
}

// This thread's, where each has one.
INLINE bool take_chunk(const Spread &s, int flat, const void *y, int64_t y_stride, int per, int out, Chunk *c) {
  return take_chunk_of(threadIdx.x, blockDim.x, s, flat, y, y_stride, per, out, c);
}

// Prefetches the ends of the output's row at `row` that the chunk, of `per` elements, has.
INLINE void chunk_ends(const Spread &s, const char *row, Chunk c, int per) {
  if (!s.ends) return;
  if (c.first <= 0) end_prefetch(row, false);
  if (c.first + per >= s.length) end_prefetch(row + s.ends, true);
}

// Column of the chunk's first element (of element 0, where the row starts within it).
INLINE int64_t chunk_column(Spread s, int flat, Chunk c) {
  int64_t first = c.first < 0 ? 0 : c.first;
  uint64_t column = (uint64_t)first;
  if (flat) spread_divide(column, s, &column);
  return (int64_t)column;
}

// 4, 8 or 16 bytes at their natural alignment. `same`: they do not change while the kernel runs.
INLINE void load_aligned(const void *at, int words, int same, uint32_t *w) {
  if (words == 4) {
    uint4 v = same ? __ldg((const uint4 *)at) : *(const uint4 *)at;
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
  } else if (words == 2) {
    uint2 v = same ? __ldg((const uint2 *)at) : *(const uint2 *)at;
    w[0] = v.x, w[1] = v.y;
  } else {
    w[0] = same ? __ldg((const uint32_t *)at) : *(const uint32_t *)at;
  }
}

INLINE void store_aligned(void *at, int words, const uint32_t *w) {
  if (words == 4) *(uint4 *)at = make_uint4(w[0], w[1], w[2], w[3]);
  else if (words == 2) *(uint2 *)at = make_uint2(w[0], w[1]);
  else *(uint32_t *)at = w[0];
}

// Drops the first `bytes` of 2 * words words and keeps the next `words`.
INLINE void cut_words(uint32_t *w, int words, uint32_t bytes) {
  if (words == 4) {
#pragma unroll
    for (int i = 0; i < 6; i++) w[i] = bytes & 8 ? w[i + 2] : w[i];
  }
#pragma unroll
  for (int i = 0; i <= words; i++) w[i] = bytes & 4 ? w[i + 1] : w[i];
#pragma unroll
  for (int i = 0; i < words; i++) w[i] = __funnelshift_r(w[i], w[i + 1], (bytes & 3) * 8);
}

// `words` words of elements of `size` bytes from `at`, anywhere in [begin, end). w has space for twice that.
INLINE void load_words(const char *at, const char *begin, const char *end, int words, int size, int same,
                       uint32_t *w) {
  uint32_t beyond = (uint32_t)(uintptr_t)at & (4 * words - 1);
  if (!beyond) {
    load_aligned(at, words, same, w);
  } else if (at - beyond >= begin && at - beyond + 8 * words <= end) {
    load_aligned(at - beyond, words, same, w);
    load_aligned(at - beyond + 4 * words, words, same, w + words);
    cut_words(w, words, beyond);
  } else {
#pragma unroll
    for (int i = 0; i < words; i++) {
      if (size == 4) w[i] = ((const uint32_t *)at)[i];
      else if (size == 2) w[i] = ((const uint16_t *)at)[2 * i] | (uint32_t)((const uint16_t *)at)[2 * i + 1] << 16;
      else w[i] = (uint8_t)at[4 * i] | (uint8_t)at[4 * i + 1] << 8 | (uint8_t)at[4 * i + 2] << 16 |
                  (uint32_t)(uint8_t)at[4 * i + 3] << 24;
    }
  }
}

// Between elements as they are stored in memory and floats, `per` of them.
INLINE void to_floats(const uint32_t *w, int per, int kind, float *f) {
  if (kind == KIND_FP32) {
#pragma unroll
    for (int i = 0; i < per; i++) f[i] = __uint_as_float(w[i]);
  } else if (kind == KIND_FP16) {
#pragma unroll
    for (int i = 0; i < per / 2; i++) {
      float2 two = widen2(w[i], KIND_FP16);
      f[2 * i] = two.x, f[2 * i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < per / 2; i++) {
      float2 two = widen2(w[i], KIND_BF16);
      f[2 * i] = two.x, f[2 * i + 1] = two.y;
    }
  }
}

INLINE void from_floats(const float *f, int per, int kind, uint32_t *w) {
  if (kind == KIND_FP32) {
#pragma unroll
    for (int i = 0; i < per; i++) w[i] = __float_as_uint(f[i]);
  } else if (kind == KIND_FP8) {
#pragma unroll
    for (int i = 0; i < per / 4; i++) {
      uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(f[4 * i], f[4 * i + 1]), __NV_SATFINITE, __NV_E4M3);
      uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(f[4 * i + 2], f[4 * i + 3]), __NV_SATFINITE, __NV_E4M3);
      w[i] = low | high << 16;
    }
  } else if (kind == KIND_FP16) {
#pragma unroll
    for (int i = 0; i < per / 2; i++) w[i] = narrow2(f[2 * i], f[2 * i + 1], KIND_FP16);
  } else {
#pragma unroll
    for (int i = 0; i < per / 2; i++) w[i] = narrow2(f[2 * i], f[2 * i + 1], KIND_BF16);
  }
}

// What the compiler may know of a kind that is chosen at run time: whether it is fp32 follows from the size.
INLINE int kind_of(int size, int kind) { return size == 4 ? KIND_FP32 : size == 1 ? KIND_FP8 : kind; }

// Elements as they are stored in memory; cut out and converted once all of a thread's loads are in flight. (Loading may use
// twice the space that the elements need.)
typedef struct Raw {
  uint32_t w[12];
  uint32_t beyond; // the elements begin so many bytes after w does
} Raw;

// A tensor from its first element to the end of its last row: what is between its rows may be read together with them.
typedef struct Extent {
  const char *begin, *end;
} Extent;

INLINE Extent extent_of(const void *tensor, int64_t stride, Spread s, int size) {
  Extent e;
  e.begin = (const char *)tensor;
  e.end = e.begin + (s.last * stride + s.length) * size;
  return e;
}

// The elements of a partial chunk that are within the row: one by one, all in flight at once.
INLINE void load_some(const void *row, int64_t first, int64_t length, int per, int size, Raw *raw) {
  int lo = (int)max(-first, (int64_t)0), hi = (int)min(length - first, (int64_t)per);
  uint32_t within = lo >= per || hi <= 0 ? 0 : ((1u << hi) - 1) & ~0u << lo; // by element
  const char *at = (const char *)row + first * size;
#pragma unroll
  for (int j = 0; j < per; j++) {
    bool inside = within & 1u << j;
    if (size == 4) {
      raw->w[j] = inside ? ((const uint32_t *)at)[j] : 0;
    } else if (size == 2) {
      uint32_t h = inside ? ((const uint16_t *)at)[j] : 0;
      raw->w[j / 2] = j % 2 ? raw->w[j / 2] | h << 16 : h;
    } else {
      uint32_t b = inside ? ((const uint8_t *)at)[j] : 0;
      raw->w[j / 4] = j % 4 ? raw->w[j / 4] | b << j % 4 * 8 : b;
    }
  }
}

// A chunk of the row at `row`, wherever that starts: two aligned accesses, of which cut_chunk takes the elements that are within
// the row, and whatever else. At the very ends of the tensor one by one. Loads only: nothing waits for them here.
INLINE void load_chunk(Extent e, const void *row, Chunk c, int64_t length, int per, int size, Raw *raw) {
  const int words = per * size / 4, bytes = per * size;
  const char *at = (const char *)row + c.first * size, *from = at - ((uint32_t)(uintptr_t)at & (bytes - 1));
  raw->beyond = (uint32_t)(uintptr_t)at & (bytes - 1);
  if (c.full && !raw->beyond) {
    load_aligned(at, words, 0, raw->w);
  } else if ((from >= e.begin || from + bytes <= e.begin) && from + (raw->beyond ? 2 : 1) * bytes <= e.end) {
    if (from >= e.begin) load_aligned(from, words, 0, raw->w); // what is before the tensor is not wanted
    if (raw->beyond) load_aligned(from + bytes, words, 0, raw->w + words);
  } else {
    load_some(row, c.first, length, per, size, raw);
    raw->beyond = 0;
  }
}

INLINE void cut_chunk(Raw *raw, int per, int size) {
  if (raw->beyond) cut_words(raw->w, per * size / 4, raw->beyond);
}

// Bytes lo to hi - 1 of a chunk of `words` words that `at` starts, aligned to its size; lo and hi are whole elements. Whole
// pieces of 8 and 4 bytes, and what is left of the words at both ends: each store has a predicate, for branches would part a warp's
// lanes (which was slower, with fewer instructions).
INLINE void store_part(char *at, int lo, int hi, int words, int size, const uint32_t *w) {
  uint32_t first = w[0], last = w[0]; // the words that lo and hi - 1 are in
#pragma unroll
  for (int i = 0; i < words; i++) {
    bool pair = words == 4 && lo <= i / 2 * 8 && hi >= i / 2 * 8 + 8;
    if (pair && i % 2 == 0) *(uint2 *)(at + 4 * i) = make_uint2(w[i], w[i + 1]);
    if (!pair && lo <= 4 * i && hi >= 4 * i + 4) *(uint32_t *)(at + 4 * i) = w[i];
    if (lo >= 4 * i) first = w[i];
    if (hi > 4 * i) last = w[i];
  }
  if (size == 2) {
    if (lo < hi && lo & 2) *(uint16_t *)(at + lo) = (uint16_t)(first >> 16);
    if (lo < hi && hi & 2) *(uint16_t *)(at + hi - 2) = (uint16_t)last;
  } else if (size == 1) {
    int lo_end = min(hi, (lo + 3) & ~3), hi_begin = max(hi & ~3, lo_end);
#pragma unroll
    for (int j = 0; j < 3; j++) {
      if (lo + j < lo_end) at[lo + j] = (char)(first >> (lo + j) % 4 * 8);
      if (hi_begin + j < hi) at[hi_begin + j] = (char)(last >> 8 * j);
    }
  }
}

// The elements of a partial chunk that are within the row.
INLINE void store_words_some(void *row, int64_t first, int64_t length, int per, int size, const uint32_t *w) {
  int lo = first < 0 ? (int)-first : 0, hi = length - first < per ? (int)(length - first) : per;
  store_part((char *)row + first * size, lo * size, hi * size, per * size / 4, size, w);
}

INLINE void store_chunk(void *row, int64_t first, int per, int size, int kind, const float *f) {
  uint32_t w[8];
  from_floats(f, per, kind_of(size, kind), w);
  store_aligned((char *)row + first * size, per * size / 4, w);
}

// The chunk c of the row, or what of it is within the row.
INLINE void store_within(void *row, Chunk c, int64_t length, int per, int size, int kind, const float *f) {
  uint32_t w[8];
  from_floats(f, per, kind_of(size, kind), w);
  if (c.full) store_aligned((char *)row + c.first * size, per * size / 4, w);
  else store_words_some(row, c.first, length, per, size, w);
}

// x / (1 + 2^t), with both parts approximated to about an ulp; 0 or -0 where 2^t overflows.
INLINE float over_one_plus_exp2(float x, float t) {
  float e, r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(t));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(__fadd_rn(1, e)));
  return __fmul_rn(x, r);
}

// x / scale for fp8. The reciprocal serves unless the scale is so small that it overflows.
INLINE float over_scale(float x, float scale, float inverse) {
  return isinf(inverse) ? __fdiv_rn(x, scale) : __fmul_rn(x, inverse);
}

// An id of 4 or 8 bytes.
INLINE int64_t load_id(const void *ids, uint64_t i, int wide) {
  return wide ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];
}

#endif
