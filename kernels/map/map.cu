// y = f(a, b), element by element, between any two types. A new f is a line in map_apply.
#include "map.h"

#include "elementwise.cuh"
#include "fp8.cuh"

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

// To the nearest, ties to even, within -128..127; a NaN is 0.
INLINE uint32_t int8_of(float f) {
  int32_t i;
  asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(i) : "f"(f));
  return (uint32_t)i & 255;
}

// e4m3: an fp16 whose exponent is 8 too low, but for its NaN.
INLINE float e4m3_value(uint32_t byte) {
  float f = __half2float(__ushort_as_half((uint16_t)((byte & 128) << 8 | (byte & 127) << 7))) * 256;
  return (byte & 127) == 127 ? NAN : f;
}

// Between elements as they are stored and floats, `per` of them, of one byte, too.
INLINE void map_widen(const uint32_t *w, int per, int size, int kind, float *f) {
  if (size > 1) {
    to_floats(w, per, kind_of(size, kind), f);
    return;
  }
#pragma unroll
  for (int i = 0; i < per; i++) {
    uint32_t byte = w[i / 4] >> i % 4 * 8 & 255;
    f[i] = kind == KIND_INT8 ? (float)(int8_t)byte : e4m3_value(byte);
  }
}

INLINE void map_narrow(const float *f, int per, int size, int kind, uint32_t *w) {
  if (size > 1) {
    from_floats(f, per, kind_of(size, kind), w);
    return;
  }
#pragma unroll
  for (int i = 0; i < per; i += 2) {
    uint32_t two = kind == KIND_FP8 ? fp8_pair(f[i], f[i + 1]) : int8_of(f[i]) | int8_of(f[i + 1]) << 8;
    w[i / 4] = i % 4 ? w[i / 4] | two << 16 : two;
  }
}

// Everything between loading and storing a chunk.
INLINE void map_chunk(const MapParams &p, int per, int in, int out, const uint32_t *a, const uint32_t *b, uint32_t *y) {
  float f[16], g[16];
  map_widen(a, per, in, p.a_kind, f);
  if (p.a_scale) {
    float scale = __ldg(p.a_scale);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = __fmul_rn(f[j], scale);
  }
  if (in > 1 && p.b) map_widen(b, per, in, p.a_kind, g);
  if (in > 1) map_all(p.f, per, f, g); // bytes are cast alone
  if (p.y_scale) {
    float scale = __ldg(p.y_scale), inverse = __frcp_rn(scale);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = over_scale(f[j], scale, inverse);
  }
  map_narrow(f, per, out, p.y_kind, y);
}

INLINE void map_body(int in, int out, const MapParams &p) {
  const int per = CHUNK_OF(in, out);
  Chunk c;
  Raw a, b;
  uint32_t w[8];
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.y, p.y_stride, per, out, &c)) return;
  const char *x = (const char *)p.a + (int64_t)c.row * p.a_stride * in;
  const char *z = (const char *)p.b + (int64_t)c.row * p.b_stride * in;
  char *y = (char *)p.y + (int64_t)c.row * p.y_stride * out;
  if (c.full) {
    load_chunk(x, c.first, p.spread.length, per, in, 0, &a);
    if (in > 1 && p.b) load_chunk(z, c.first, p.spread.length, per, in, 0, &b);
  } else {
    load_some(x, c.first, p.spread.length, per, in, &a);
    if (in > 1 && p.b) load_some(z, c.first, p.spread.length, per, in, &b);
  }
  map_chunk(p, per, in, out, a.w, b.w, w);
  if (c.full) store_aligned(y + c.first * out, per * out / 4, w);
  else store_words_some(y, c.first, p.spread.length, per, out, w);
}

#define MAP(in, out)                                                                                         \
  KERNEL __launch_bounds__(256) sol_map_##in##_##out(const __grid_constant__ MapParams p) {                  \
    map_body(in, out, p);                                                                                    \
  }
#include "map.def"

INLINE double load_wide(const void *p, int64_t i, int kind) {
  if (kind == KIND_FP64) return ((const double *)p)[i];
  if (kind == KIND_INT32) return (double)((const int32_t *)p)[i];
  if (kind == KIND_INT64) return (double)((const int64_t *)p)[i];
  if (kind == KIND_INT8) return (double)((const int8_t *)p)[i];
  if (kind == KIND_FP8)
    return (double)e4m3_value(((const uint8_t *)p)[i]);
  return (double)load_one(p, i, kind);
}

INLINE void store_wide(void *p, int64_t i, int kind, double f) {
  if (kind == KIND_FP64) ((double *)p)[i] = f;
  else if (kind == KIND_INT32) ((int32_t *)p)[i] = f != f ? 0 : __double2int_rn(f);    // both saturate
  else if (kind == KIND_INT64) ((int64_t *)p)[i] = f != f ? 0 : __double2ll_rn(f);
  else if (kind == KIND_INT8) ((int8_t *)p)[i] = (int8_t)int8_of((float)f);
  else store_one(p, i, kind, (float)f);
}

enum { WIDE_EACH = 4 };

// In double precision: for types of 8 bytes and int32. Neighbouring threads have neighbouring elements.
KERNEL __launch_bounds__(256) sol_map_wide(const __grid_constant__ MapParams p) {
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (256 * WIDE_EACH) + threadIdx.x;
  double f[WIDE_EACH];
  begin_kernel();
  double times = p.a_scale ? (double)__ldg(p.a_scale) : 1, over = p.y_scale ? (double)__ldg(p.y_scale) : 1;
#pragma unroll
  for (int k = 0; k < WIDE_EACH; k++) {
    uint64_t i = first + k * 256, row = p.flat ? 0 : divide(i, p.spread.divider);
    int64_t column = (int64_t)(i - row * p.spread.divider.by);
    if (i < p.spread.chunks) f[k] = load_wide(p.a, (int64_t)row * p.a_stride + column, p.a_kind);
  }
#pragma unroll
  for (int k = 0; k < WIDE_EACH; k++) {
    uint64_t i = first + k * 256, row = p.flat ? 0 : divide(i, p.spread.divider);
    int64_t column = (int64_t)(i - row * p.spread.divider.by);
    if (p.a_scale) f[k] = __dmul_rn(f[k], times);
    if (p.y_scale) f[k] = __ddiv_rn(f[k], over);
    if (i < p.spread.chunks) store_wide(p.y, (int64_t)row * p.y_stride + column, p.y_kind, f[k]);
  }
}
