// y = f(a, b), element by element, between any two types. A new f is a line in map_apply.
#include "map.h"

#include "bytes.cuh"
#include "fp8.cuh"
#include "single.cuh"

INLINE float map_apply(int f, float a, float b) {
  if (f == MAP_ADD) return __fadd_rn(a, b);
  if (f == MAP_RELU) return a < 0 ? 0 : a; // a NaN is not below 0
  if (f == MAP_GELU_MUL) // tanh form, as bias_gelu's
    return __fmul_rn(over_one_plus_exp2(a, __fmul_rn(a, __fmaf_rn(-0.10294323960f, __fmul_rn(a, a), -2.3022081985f))), b);
  if (f == MAP_RELU_MUL) return __fmul_rn(a < 0 ? 0 : a, b);
  if (f == MAP_SIGMOID_MUL) return __fmul_rn(over_one_plus_exp2(1, __fmul_rn(a, -1.4426950409f)), b);
  if (f == MAP_SILU_MUL) return __fmul_rn(over_one_plus_exp2(a, __fmul_rn(a, -1.4426950409f)), b);
  return a;
}

// The choice of f is made once for a chunk, not for each of its elements.
INLINE void map_all(int f, int per, float *a, const float *b) {
#define MAP_CASE(name)                                                                                       \
  case name:                                                                                                 \
    _Pragma("unroll") for (int j = 0; j < per; j++) a[j] = map_apply(name, a[j], b[j]);                      \
    break;
  switch (f) {
    MAP_CASE(MAP_ADD)
    MAP_CASE(MAP_RELU)
    MAP_CASE(MAP_GELU_MUL)
    MAP_CASE(MAP_RELU_MUL)
    MAP_CASE(MAP_SIGMOID_MUL)
    MAP_CASE(MAP_SILU_MUL)
  }
#undef MAP_CASE
}

// Between elements as they are stored and floats, `per` of them. An int32 that is not scaled goes through fp32, too: that
// rounds it as its conversion to a narrower type would first.
INLINE void map_widen(const uint32_t *w, int per, int size, int kind, float *f) {
  if (size == 4 && kind == KIND_INT32) {
#pragma unroll
    for (int i = 0; i < per; i++) f[i] = (float)(int32_t)w[i];
    return;
  }
  if (size > 1) {
    to_floats(w, per, kind_of(size, kind), f);
    return;
  }
  if (kind == KIND_INT8) {
#pragma unroll
    for (int i = 0; i < per; i++) f[i] = (float)(int8_t)(w[i / 4] >> i % 4 * 8);
  } else {
#pragma unroll
    for (int i = 0; i < per; i += 2) {
      float2 two = e4m3_pair(w[i / 4] >> i % 4 * 8);
      f[i] = two.x, f[i + 1] = two.y;
    }
  }
}

INLINE void map_narrow(const float *f, int per, int size, int kind, uint32_t *w) {
  if (size == 4 && kind == KIND_INT32) {
#pragma unroll
    for (int i = 0; i < per; i++) w[i] = (uint32_t)__float2int_rn(f[i]); // saturates; a NaN is 0
    return;
  }
  if (size > 1) {
    from_floats(f, per, kind_of(size, kind), w);
    return;
  }
  if (per % 4) { // two
    w[0] = kind == KIND_FP8 ? fp8_pair(f[0], f[1]) : int8_of(f[0]) | int8_of(f[1]) << 8;
  } else if (kind == KIND_FP8) {
#pragma unroll
    for (int i = 0; i < per; i += 4) w[i / 4] = fp8_pair(f[i], f[i + 1]) | fp8_pair(f[i + 2], f[i + 3]) << 16;
  } else {
#pragma unroll
    for (int i = 0; i < per; i += 4) w[i / 4] = int8_four(f + i);
  }
}

// The scales are loaded with the first elements, not after them: a thread waits once.
typedef struct MapScales {
  float a, y;
} MapScales;

INLINE MapScales map_scales(const MapParams &p) {
  MapScales s;
  s.a = p.a_scale ? __ldg(p.a_scale) : 1;
  s.y = p.y_scale ? __ldg(p.y_scale) : 1;
  return s;
}

// x = its mantissa, from 1 to 2, times the power of two that it returns; zeros, infinities and NaN stay as they are.
INLINE int map_exponent(float *x) {
  int e = fabsf(*x) < 0x1p-126f ? -64 : 0;
  if (e) *x = __fmul_rn(*x, 0x1p64f);
  uint32_t bits = __float_as_uint(*x), power = bits >> 23 & 255;
  if (power == 0 || power == 255) return 0;
  *x = __uint_as_float((bits & 0x807fffff) | 0x3f800000);
  return e + (int)power - 127;
}

// Whether int32 that is scaled becomes a type of up to two bytes: by map_ratio.
INLINE bool map_by_ratio(const MapParams &p, int in, int out) {
  return in == 4 && out < 4 && p.a_kind == KIND_INT32 && (p.a_scale || p.y_scale);
}

// a / y as the product of two floats: neither x * a nor the quotient need be what a float holds, only the result.
INLINE MapScales map_ratio(MapScales s) {
  int e = map_exponent(&s.a) - map_exponent(&s.y), half = min(max(e / 2, -125), 126), rest = min(max(e - half, -125), 126);
  MapScales r;
  r.a = __fmul_rn(__fdividef(s.a, s.y), __uint_as_float((uint32_t)(half + 127) << 23));
  r.y = __uint_as_float((uint32_t)(rest + 127) << 23);
  return r;
}

// x / scale, by the reciprocal. Where the scale is so small that this overflows, both are multiplied by a power of two first: a division
// would call a function, whose registers all threads would have to have.
INLINE void map_over(float *f, int per, float scale) {
  float inverse = __frcp_rn(scale);
  if (isinf(inverse)) {
    inverse = __frcp_rn(__fmul_rn(scale, 0x1p64f));
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = __fmul_rn(f[j], 0x1p64f);
  }
#pragma unroll
  for (int j = 0; j < per; j++) f[j] = __fmul_rn(f[j], inverse);
}

// y = f(a * a_scale, b) / y_scale of elements as floats, in place of those of a.
INLINE void map_floats(const MapParams &p, MapScales s, int per, int in, int out, float *f, const float *g) {
  bool ratio = map_by_ratio(p, in, out);
  if (p.a_scale || ratio) {
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = __fmul_rn(f[j], s.a);
  }
  if (ratio) {
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = __fmul_rn(f[j], s.y);
  }
  if (in > 1) map_all(p.f, per, f, g); // bytes are cast alone
  if (p.y_scale && !ratio) map_over(f, per, s.y);
}

// Everything between loading and storing a chunk.
INLINE void map_chunk(const MapParams &p, MapScales s, bool two, int per, int in, int out, const uint32_t *a, const uint32_t *b,
                      uint32_t *y) {
  float f[16], g[16];
  map_widen(a, per, in, p.a_kind, f);
  if (two) map_widen(b, per, in, p.a_kind, g);
  map_floats(p, s, per, in, out, f, g);
  map_narrow(f, per, out, p.y_kind, y);
}

// x / over, to the nearest, for floats `over` and scaled int32, with the inverse of `over`: a product, corrected by its remainder. What
// is not finite, and zeros, are as the product has them; the sign of a zero is not kept.
INLINE double exact_over(double x, double over, double inverse) {
  double q = __dmul_rn(x, inverse), exact = __fma_rn(__fma_rn(-over, q, x), inverse, q);
  return ((uint32_t)__double2hiint(q) & 0x7fffffff) - 1 < 0x7ff00000 - 1 ? exact : q;
}

// Everything between loading and storing a chunk, where one of the types is int32 that is scaled: the other is fp32, or x of 2 bytes.
// A scale of 1 that is not there multiplies and divides as others do.
INLINE void exact_chunk(const MapParams &p, MapScales s, double inverse, int per, int in, int out, const uint32_t *a, uint32_t *y) {
  bool whole = in == 4 && p.a_kind == KIND_INT32, to_whole = in == 2 || p.y_kind == KIND_INT32;
  float f[4];
  if (!whole) to_floats(a, per, kind_of(in, p.a_kind), f);
#pragma unroll
  for (int j = 0; j < per; j++) {
    double d = whole ? (double)(int32_t)a[j] : (double)f[j];
    d = exact_over(__dmul_rn(d, (double)s.a), (double)s.y, inverse);
    y[j] = !to_whole ? __float_as_uint((float)d) : d != d ? 0 : (uint32_t)__double2int_rn(d);
  }
}

INLINE uint64_t map_first(int each) {
  return ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (MAP_THREADS * each) + threadIdx.x;
}

// Where chunk i lies in a tensor that is dense, or whose rows are whole chunks.
INLINE int64_t lean_place(const MapParams &p, uint64_t i, int per, int64_t stride) {
  if (p.flat) return (int64_t)(i * per);
  uint32_t row = divide32((uint32_t)i, p.row32);
  return row * stride + (int64_t)((uint32_t)i - row * p.row32.by) * per;
}

// Prefetches the ends of y's row that chunk i has.
INLINE void lean_ends(const MapParams &p, uint64_t i, int out) {
  if (!p.spread.ends) return;
  uint32_t row = divide32((uint32_t)i, p.row32);
  unit_ends((const char *)p.y + row * p.y_stride * out, p.spread.ends, (uint32_t)i - row * p.row32.by, p.row32.by);
}

// A chunk that starts at its boundary; the last of a dense tensor may be short.
INLINE void lean_load(const void *x, int64_t at, int64_t left, int per, int in, uint32_t *w) {
  Raw raw;
  if (left >= per) {
    load_aligned((const char *)x + at * in, per * in / 4, 0, w);
    return;
  }
  load_some((const char *)x + at * in, 0, left, per, in, &raw);
#pragma unroll
  for (int i = 0; i < per * in / 4; i++) w[i] = raw.w[i];
}

// Dense tensors and rows of whole chunks, all on their boundaries. `each` chunks a thread, as many apart as a block has threads: all
// loads are in flight before the first is used.
INLINE void map_lean(int in, int out, int inputs, bool exact, const MapParams &p) {
  const int per = CHUNK_OF(in, out), each = exact ? MAP_EXACT_EACH : MAP_EACH(in, out);
  uint64_t first = map_first(each);
  uint32_t a[2][4], b[2][4], w[4];
  begin_kernel();
  MapScales s = map_scales(p);
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint64_t i = first + k * MAP_THREADS;
    if (i >= p.spread.chunks) continue;
    int64_t left = p.flat ? p.spread.length - (int64_t)(i * per) : per;
    lean_ends(p, i, out);
    lean_load(p.a, lean_place(p, i, per, p.a_stride), left, per, in, a[k]);
    if (inputs > 1) lean_load(p.b, lean_place(p, i, per, p.b_stride), left, per, in, b[k]);
  }
  if (map_by_ratio(p, in, out)) s = map_ratio(s);
  double inverse = exact ? __drcp_rn((double)s.y) : 1;
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint64_t i = first + k * MAP_THREADS;
    if (i >= p.spread.chunks) continue;
    int64_t left = p.flat ? p.spread.length - (int64_t)(i * per) : per;
    char *y = (char *)p.y + lean_place(p, i, per, p.y_stride) * out;
    if (exact) exact_chunk(p, s, inverse, per, in, out, a[k], w);
    else map_chunk(p, s, inputs > 1, per, in, out, a[k], b[k], w);
    if (left >= per) store_aligned(y, per * out / 4, w);
    else store_part(y, 0, (int)left * out, per * out / 4, out, w);
  }
}

// Rows that start and end anywhere. exact: in double precision, for int32 that is scaled.
INLINE void map_any(int in, int out, int inputs, bool exact, const MapParams &p) {
  const int per = CHUNK_OF(in, out), each = exact ? MAP_EXACT_EACH : MAP_ANY_EACH(in, out);
  Chunk c[2];
  Raw a[2], b[2];
  bool there[2];
  uint32_t w[8];
  begin_kernel();
  MapScales s = map_scales(p);
#pragma unroll
  for (int k = 0; k < each; k++) {
    there[k] = take_chunk_of(threadIdx.x + k * MAP_THREADS, MAP_THREADS * each, p.spread, p.flat, p.y, p.y_stride, per, out, &c[k]);
    if (!there[k]) continue;
    const char *x = (const char *)p.a + (int64_t)c[k].row * p.a_stride * in;
    const char *z = (const char *)p.b + (int64_t)c[k].row * p.b_stride * in;
    chunk_ends(p.spread, (const char *)p.y + (int64_t)c[k].row * p.y_stride * out, c[k], per);
    load_chunk(extent_of(p.a, p.a_stride, p.spread, in), x, c[k], p.spread.length, per, in, &a[k]);
    if (inputs > 1) load_chunk(extent_of(p.b, p.b_stride, p.spread, in), z, c[k], p.spread.length, per, in, &b[k]);
  }
  if (map_by_ratio(p, in, out)) s = map_ratio(s);
  double inverse = exact ? __drcp_rn((double)s.y) : 1;
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (!there[k]) continue;
    char *y = (char *)p.y + (int64_t)c[k].row * p.y_stride * out;
    cut_chunk(&a[k], per, in);
    if (inputs > 1) cut_chunk(&b[k], per, in);
    if (exact) exact_chunk(p, s, inverse, per, in, out, a[k].w, w);
    else map_chunk(p, s, inputs > 1, per, in, out, a[k].w, b[k].w, w);
    if (c[k].full) store_aligned(y + c[k].first * out, per * out / 4, w);
    else store_words_some(y, c[k].first, p.spread.length, per, out, w);
  }
}

// An element as it is stored, as a float, and back.
INLINE float map_widen_one(uint32_t u, int size, int kind) {
  uint32_t w[2] = {u, 0};
  float f[2];
  map_widen(w, 2, size, kind, f);
  return f[0];
}
INLINE uint32_t map_narrow_one(float value, int size, int kind) {
  float f[2] = {value, 0};
  uint32_t w[2];
  map_narrow(f, 2, size, kind, w);
  return w[0];
}

// Short rows that are apart: several elements of a thread.
INLINE void map_short(int in, int out, int inputs, const MapParams &p) {
  Singles at = singles_place(p.spread);
  uint32_t a[SINGLE_EACH], b[SINGLE_EACH];
  float f[SINGLE_EACH], g[SINGLE_EACH];
  begin_kernel();
  MapScales s = map_scales(p);
  singles_ends(at, p.spread, p.y, p.y_stride * out, out);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    a[k] = singles_load(singles_at(at, k, p.a, p.a_stride * in, in), in);
    if (inputs > 1) b[k] = singles_load(singles_at(at, k, p.b, p.b_stride * in, in), in);
  }
  if (map_by_ratio(p, in, out)) s = map_ratio(s);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    f[k] = map_widen_one(a[k], in, p.a_kind);
    if (inputs > 1) g[k] = map_widen_one(b[k], in, p.a_kind);
  }
  map_floats(p, s, SINGLE_EACH, in, out, f, g);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++)
    if (at.there[k]) singles_store(singles_at(at, k, p.y, p.y_stride * out, out), out, map_narrow_one(f[k], out, p.y_kind));
}

// The last element of a tensor, of a dense y.
INLINE void map_last(int in, int out, int inputs, const MapParams &p, MapScales s) {
  const uint32_t n = p.spread.small.by;
  float f, g = 0;
  f = map_widen_one(singles_load((const char *)p.a + (p.spread.last * p.a_stride + n - 1) * in, in), in, p.a_kind);
  if (inputs > 1) g = map_widen_one(singles_load((const char *)p.b + (p.spread.last * p.b_stride + n - 1) * in, in), in, p.a_kind);
  map_floats(p, s, 1, in, out, &f, &g);
  singles_store((const char *)p.y + ((int64_t)p.spread.chunks - 1) * out, out, map_narrow_one(f, out, p.y_kind));
}

// Rows that are apart of inputs and not of y, and not on chunks: pairs of y.
INLINE void map_pairs(int in, int out, int inputs, const MapParams &p) {
  Pairs at = pairs_place(p.spread);
  const uint32_t n = p.spread.small.by;
  uint32_t a[SINGLE_EACH][2], b[SINGLE_EACH][2], w[2];
  float f[2 * SINGLE_EACH], g[2 * SINGLE_EACH];
  begin_kernel();
  MapScales s = map_scales(p);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    pairs_load(at, k, p.a, p.a_stride * in, n, in, a[k]);
    if (inputs > 1) pairs_load(at, k, p.b, p.b_stride * in, n, in, b[k]);
  }
  if (map_by_ratio(p, in, out)) s = map_ratio(s);
  if (p.spread.chunks % 2 && thread_index() == 0) map_last(in, out, inputs, p, s);
#pragma unroll
  for (int k = 0; k < 2 * SINGLE_EACH; k++) {
    f[k] = map_widen_one(a[k / 2][k % 2], in, p.a_kind);
    if (inputs > 1) g[k] = map_widen_one(b[k / 2][k % 2], in, p.a_kind);
  }
  map_floats(p, s, 2 * SINGLE_EACH, in, out, f, g);
#pragma unroll
  for (int k = 0; k < SINGLE_EACH; k++) {
    map_narrow(f + 2 * k, 2, out, p.y_kind, w);
    pairs_store(at, k, p.y, out, w);
  }
}

#define MAP_LEAN(in, out, inputs, blocks)                                                                    \
  KERNEL __launch_bounds__(MAP_THREADS, blocks) sol_map_lean_##in##_##out##_##inputs(const __grid_constant__ MapParams p) { \
    map_lean(in, out, inputs, false, p);                                                                            \
  }
#define MAP_ANY(in, out, inputs, blocks)                                                                     \
  KERNEL __launch_bounds__(MAP_THREADS, blocks) sol_map_any_##in##_##out##_##inputs(const __grid_constant__ MapParams p) { \
    map_any(in, out, inputs, false, p);                                                                      \
  }
#define MAP_SHORT(in, out, inputs)                                                                           \
  KERNEL __launch_bounds__(SINGLE_THREADS, 6) sol_map_short_##in##_##out##_##inputs(const __grid_constant__ MapParams p) { \
    map_short(in, out, inputs, p);                                                                           \
  }
#define MAP_PAIRS(in, out, inputs)                                                                           \
  KERNEL __launch_bounds__(SINGLE_THREADS, inputs > 1 ? 4 : 5) sol_map_pairs_##in##_##out##_##inputs(const __grid_constant__ MapParams p) { \
    map_pairs(in, out, inputs, p);                                                                           \
  }
#define MAP_EXACT(in, out)                                                                                   \
  KERNEL __launch_bounds__(MAP_THREADS, 6) sol_map_exact_lean_##in##_##out(const __grid_constant__ MapParams p) { \
    map_lean(in, out, 1, true, p);                                                                           \
  }                                                                                                          \
  KERNEL __launch_bounds__(MAP_THREADS, 5) sol_map_exact_any_##in##_##out(const __grid_constant__ MapParams p) { \
    map_any(in, out, 1, true, p);                                                                            \
  }
#include "map.def"

// In double precision, for types of 8 bytes and for int32 to or from a byte that is scaled: two elements at a time, 16 bytes of the widest.
// Sizes and kinds are known at run time; a branch on them is around all loads of a thread, not between them.
typedef struct Two {
  uint32_t w[4];
} Two;

// low, high: whether the first and the second are there.
INLINE void load_two(const char *at, int size, bool low, bool high, Two *t) {
  bool whole = low && high && ((uintptr_t)at & (2 * size - 1)) == 0;
  t->w[0] = 0;
  if (size == 8) {
    if (whole) load_aligned(at, 4, 0, t->w);
    else {
      if (low) load_aligned(at, 2, 0, t->w);
      if (high) load_aligned(at + 8, 2, 0, t->w + 2);
    }
  } else if (size == 4) {
    if (whole) load_aligned(at, 2, 0, t->w);
    else {
      if (low) t->w[0] = *(const uint32_t *)at;
      if (high) t->w[1] = *(const uint32_t *)(at + 4);
    }
  } else if (size == 2) {
    if (whole) t->w[0] = *(const uint32_t *)at;
    else t->w[0] = (low ? *(const uint16_t *)at : 0) | (high ? (uint32_t) * (const uint16_t *)(at + 2) << 16 : 0);
  } else {
    if (whole) t->w[0] = *(const uint16_t *)at;
    else t->w[0] = (low ? *(const uint8_t *)at : 0) | (high ? (uint32_t) * (const uint8_t *)(at + 1) << 8 : 0);
  }
}

// Two that are there start at a multiple of their size.
INLINE void store_two(char *at, int size, bool low, bool high, const uint32_t *w) {
  bool whole = low && high;
  if (size == 8) {
    if (whole) store_aligned(at, 4, w);
    else if (low) store_aligned(at, 2, w);
    else if (high) store_aligned(at + 8, 2, w + 2);
  } else if (size == 4) {
    if (whole) store_aligned(at, 2, w);
    else if (low) *(uint32_t *)at = w[0];
    else if (high) *(uint32_t *)(at + 4) = w[1];
  } else if (size == 2) {
    if (whole) *(uint32_t *)at = w[0];
    else if (low) *(uint16_t *)at = (uint16_t)w[0];
    else if (high) *(uint16_t *)(at + 2) = (uint16_t)(w[0] >> 16);
  } else {
    if (whole) *(uint16_t *)at = (uint16_t)w[0];
    else if (low) *(uint8_t *)at = (uint8_t)w[0];
    else if (high) *(uint8_t *)(at + 1) = (uint8_t)(w[0] >> 8);
  }
}

INLINE double double_of(const uint32_t *w) { return __hiloint2double((int)w[1], (int)w[0]); }
INLINE long long long_of(const uint32_t *w) { return (long long)((uint64_t)w[1] << 32 | w[0]); }

INLINE void widen_two(const uint32_t *w, int kind, double *d) {
  float f[2];
  if (kind == KIND_FP64) d[0] = double_of(w), d[1] = double_of(w + 2);
  else if (kind == KIND_INT64) d[0] = (double)long_of(w), d[1] = (double)long_of(w + 2);
  else if (kind == KIND_INT32) d[0] = (double)(int32_t)w[0], d[1] = (double)(int32_t)w[1];
  else {
    if (kind == KIND_INT8 || kind == KIND_FP8) map_widen(w, 2, 1, kind, f);
    else to_floats(w, 2, kind, f);
    d[0] = (double)f[0], d[1] = (double)f[1];
  }
}

INLINE void narrow_two(const double *d, int kind, uint32_t *w) {
  if (kind == KIND_FP64 || kind == KIND_INT64) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      uint64_t u = kind == KIND_FP64  ? (uint64_t)__double_as_longlong(d[j])
                   : d[j] != d[j] ? 0
                                  : (uint64_t)__double2ll_rn(d[j]); // saturates
      w[2 * j] = (uint32_t)u, w[2 * j + 1] = (uint32_t)(u >> 32);
    }
  } else if (kind == KIND_INT32) {
#pragma unroll
    for (int j = 0; j < 2; j++) w[j] = d[j] != d[j] ? 0 : (uint32_t)__double2int_rn(d[j]);
  } else {
    float f[2] = {(float)d[0], (float)d[1]};
    if (kind == KIND_INT8 || kind == KIND_FP8) map_narrow(f, 2, 1, kind, w);
    else from_floats(f, 2, kind, w);
  }
}

// x / over, to the nearest, for a float `over` and its inverse: a product, corrected by its remainder. A quotient by 24 bits is never so
// near the middle of two numbers that this is not enough; but for the largest and the smallest.
INLINE double wide_over(double x, double over, double inverse) {
  double q = __dmul_rn(x, inverse), size = fabs(q);
  if (size >= 0x1p-900 && size <= 0x1p900) return __fma_rn(__fma_rn(-over, q, x), inverse, q);
  return x == 0 && inverse <= 0x1p900 ? q : __ddiv_rn(x, over);
}

// chunks: pairs of elements that start at a pair's boundary of y; the first and the last of a row may be one alone.
KERNEL __launch_bounds__(MAP_THREADS, 5) sol_map_wide(const __grid_constant__ MapParams p) {
  uint64_t first = map_first(MAP_WIDE_EACH);
  const char *a[MAP_WIDE_EACH];
  char *y[MAP_WIDE_EACH];
  bool low[MAP_WIDE_EACH], high[MAP_WIDE_EACH];
  Two t[MAP_WIDE_EACH];
  begin_kernel();
  double d[MAP_WIDE_EACH][2], times = p.a_scale ? (double)__ldg(p.a_scale) : 1, over = p.y_scale ? (double)__ldg(p.y_scale) : 1;
#pragma unroll
  for (int k = 0; k < MAP_WIDE_EACH; k++) {
    uint64_t i = first + k * MAP_THREADS, row = p.flat || i >= p.spread.chunks ? 0 : spread_divide(i, p.spread, &i);
    y[k] = (char *)p.y + (int64_t)row * p.y_stride * p.y_size;
    int64_t column = 2 * (int64_t)i - ((uintptr_t)y[k] & p.y_size ? 1 : 0);
    bool there = first + k * MAP_THREADS < p.spread.chunks;
    low[k] = there && column >= 0 && column < p.spread.length;
    high[k] = there && column + 1 < p.spread.length;
    a[k] = (const char *)p.a + ((int64_t)row * p.a_stride + column) * p.a_size;
    y[k] += column * p.y_size;
  }
#define EACH_TWO(size_of, size, call)                                                                        \
  if (size_of == size) {                                                                                     \
    _Pragma("unroll") for (int k = 0; k < MAP_WIDE_EACH; k++) call;                            \
  }
  EACH_TWO(p.a_size, 8, load_two(a[k], 8, low[k], high[k], &t[k]))
  else EACH_TWO(p.a_size, 4, load_two(a[k], 4, low[k], high[k], &t[k]))
  else EACH_TWO(p.a_size, 2, load_two(a[k], 2, low[k], high[k], &t[k]))
  else EACH_TWO(p.a_size, 1, load_two(a[k], 1, low[k], high[k], &t[k]))
#define EACH_KIND(kind_of, call)                                                                             \
  EACH_TWO(kind_of, KIND_FP64, call(KIND_FP64))                                                              \
  else EACH_TWO(kind_of, KIND_INT64, call(KIND_INT64))                                                       \
  else EACH_TWO(kind_of, KIND_INT32, call(KIND_INT32))                                                       \
  else EACH_TWO(kind_of, KIND_FP32, call(KIND_FP32))                                                         \
  else EACH_TWO(kind_of, KIND_FP16, call(KIND_FP16))                                                         \
  else EACH_TWO(kind_of, KIND_BF16, call(KIND_BF16))                                                         \
  else EACH_TWO(kind_of, KIND_INT8, call(KIND_INT8))                                                         \
  else EACH_TWO(kind_of, KIND_FP8, call(KIND_FP8))
#define WIDEN_TWO(kind)  widen_two(t[k].w, kind, d[k])
#define NARROW_TWO(kind) narrow_two(d[k], kind, t[k].w)
  EACH_KIND(p.a_kind, WIDEN_TWO)
  double inverse = p.y_scale ? __drcp_rn(over) : 1;
#pragma unroll
  for (int k = 0; k < MAP_WIDE_EACH; k++) {
#pragma unroll
    for (int j = 0; j < 2; j++) {
      if (p.a_scale) d[k][j] = __dmul_rn(d[k][j], times);
      if (p.y_scale) d[k][j] = wide_over(d[k][j], over, inverse);
    }
  }
  EACH_KIND(p.y_kind, NARROW_TWO)
  EACH_TWO(p.y_size, 8, store_two(y[k], 8, low[k], high[k], t[k].w))
  else EACH_TWO(p.y_size, 4, store_two(y[k], 4, low[k], high[k], t[k].w))
  else EACH_TWO(p.y_size, 2, store_two(y[k], 2, low[k], high[k], t[k].w))
  else EACH_TWO(p.y_size, 1, store_two(y[k], 1, low[k], high[k], t[k].w))
#undef EACH_KIND
#undef EACH_TWO
}
