// Rotary position embedding. A thread takes a chunk of pairs and holds both sides, so it may work in place.
#include "rope.h"

#include "elementwise.cuh"

// The row of the tables for a token; -1: it is not rotated.
INLINE int64_t rope_row(const RopeParams &p, uint64_t token) {
  int64_t row = p.positions ? load_id(p.positions, token, p.wide_ids) : (int64_t)token;
  return row >= 0 && row < p.rows ? row : -1;
}

// The first of the pair, and the second.
INLINE float turn_a(float a, float b, float c, float s) { return __fmaf_rn(a, c, -__fmul_rn(b, s)); }
INLINE float turn_b(float a, float b, float c, float s) { return __fmaf_rn(b, c, __fmul_rn(a, s)); }

INLINE void turn_neighbours(float *f, const float *c, const float *s, int count) {
#pragma unroll
  for (int j = 0; j < count; j++) {
    float x = f[2 * j], y = f[2 * j + 1];
    f[2 * j] = turn_a(x, y, c[j], s[j]);
    f[2 * j + 1] = turn_b(x, y, c[j], s[j]);
  }
}

INLINE void turn_halves(float *a, float *b, const float *c, const float *s, int count) {
#pragma unroll
  for (int j = 0; j < count; j++) {
    float x = a[j], y = b[j];
    a[j] = turn_a(x, y, c[j], s[j]);
    b[j] = turn_b(x, y, c[j], s[j]);
  }
}

INLINE void load_weights(const void *table, int64_t first, int count, int kind, uint32_t *w) {
  if (kind == KIND_FP32) {
    const char *at = (const char *)table + first * 4;
    load_aligned(at, count > 4 ? 4 : count, 1, w);
    if (count > 4) load_aligned(at + 16, 4, 1, w + 4);
  } else {
    load_aligned((const char *)table + first * 2, count / 2, 1, w);
  }
}

// A thread takes several chunks: both sides of the same pairs of several heads, or two of each that are only copied; of
// neighbours the same chunk of several heads. So the tables' part is read and widened once for all of them.
INLINE void rope_chunks(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  const int per = CHUNK_OF(in, out), count = neighbours ? per / 2 : per, words = per * in / 4;
  const int chunks = neighbours ? ROPE_NEIGHBOURS : 2 * ROPE_HEADS;
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  begin_kernel();
  if (i >= p.items) return;
  uint32_t group = divide32(i, p.head32), token = divide32(group, p.groups32);
  int head = (int)(group - token * p.groups32.by) * (neighbours ? ROPE_NEIGHBOURS : ROPE_HEADS), left = (int)p.heads - head;
  int item = (int)(i - group * p.head32.by), first = item * per, second = first + (int)p.half;
  bool turns = item < p.turns, both = true;
  if (!neighbours && !turns) {
    first = 2 * (int)p.half + 2 * (item - (int)p.turns) * per, second = first + per;
    both = second < p.d;
  }
  const char *x = (const char *)p.x + ((int64_t)token * p.x_stride + (int64_t)head * p.d) * in;
  char *y = (char *)p.y + ((int64_t)token * p.y_stride + (int64_t)head * p.d) * out;
  int64_t row = rope_row(p, token), at[4]; // as many as `chunks` may be
  bool has[4];
  uint32_t raw[4][4], raw_c[8], raw_s[8];
  float f[2][8], c[8], s[8];
#pragma unroll
  for (int k = 0; k < chunks; k++) { // what is not there: the first once more
    has[k] = neighbours ? k < left : k / 2 < left && (k % 2 == 0 || both);
    at[k] = neighbours ? k * p.d + first : k / 2 * p.d + (k % 2 ? second : first);
    load_aligned(x + (has[k] ? at[k] : first) * in, words, 0, raw[k]);
  }
  turns = turns && row >= 0;
  if (turns) {
    load_weights(p.cos, row * p.half + item * count, count, weight_kind, raw_c);
    load_weights(p.sin, row * p.half + item * count, count, weight_kind, raw_s);
    to_floats(raw_c, count, weight_kind, c);
    to_floats(raw_s, count, weight_kind, s);
  }
#pragma unroll
  for (int k = 0; k < chunks; k += 2) {
    to_floats(raw[k], per, kind, f[0]);
    to_floats(raw[k + 1], per, kind, f[1]);
    if (turns && neighbours) turn_neighbours(f[0], c, s, count), turn_neighbours(f[1], c, s, count);
    else if (turns) turn_halves(f[0], f[1], c, s, count);
    if (has[k]) store_chunk(y, at[k], per, out, y_kind, f[0]);
    if (has[k + 1]) store_chunk(y, at[k + 1], per, out, y_kind, f[1]);
  }
}

// Branches on types between a thread's loads keep them apart: where all are of one type, that is known here.
INLINE void rope_wide(int in, int out, int neighbours, const RopeParams &p) {
  bool alike = p.x_kind == p.weight_kind && p.x_kind == p.y_kind;
  if (in == 4 && out == 4) rope_chunks(in, out, neighbours, KIND_FP32, KIND_FP32, KIND_FP32, p);
  else if (in == 2 && out == 2 && alike && p.x_kind == KIND_BF16)
    rope_chunks(in, out, neighbours, KIND_BF16, KIND_BF16, KIND_BF16, p);
  else if (in == 2 && out == 2 && alike) rope_chunks(in, out, neighbours, KIND_FP16, KIND_FP16, KIND_FP16, p);
  else rope_chunks(in, out, neighbours, kind_of(in, p.x_kind), in == 4 ? KIND_FP32 : p.weight_kind, p.y_kind, p);
}

// One pair, or one element that is only copied, a thread. The kinds say how wide elements are.
INLINE void rope_narrow(int neighbours, const RopeParams &p) {
  int in = p.x_kind == KIND_FP32 ? 4 : 2, out = p.y_kind == KIND_FP32 ? 4 : 2;
  uint64_t i = thread_index();
  begin_kernel();
  if (i >= p.items) return;
  uint64_t head = divide(i, p.head), token = divide(head, p.groups);
  int64_t item = (int64_t)(i - head * p.head.by), skip = (int64_t)(head - token * p.groups.by) * p.d;
  const char *x_at = (const char *)p.x + ((int64_t)token * p.x_stride + skip) * in;
  char *y_at = (char *)p.y + ((int64_t)token * p.y_stride + skip) * out;
  if (item >= p.turns) {
    int64_t e = p.half + item;
    store_one(y_at, e, p.y_kind, load_one(x_at, e, p.x_kind));
    return;
  }
  int64_t first = neighbours ? 2 * item : item, second = neighbours ? first + 1 : first + p.half;
  float a = load_one(x_at, first, p.x_kind), b = load_one(x_at, second, p.x_kind), x = a, y = b;
  int64_t row = rope_row(p, token);
  if (row >= 0) {
    float c = load_one(p.cos, row * p.half + item, p.weight_kind);
    float s = load_one(p.sin, row * p.half + item, p.weight_kind);
    x = turn_a(a, b, c, s);
    y = turn_b(a, b, c, s);
  }
  store_one(y_at, first, p.y_kind, x);
  store_one(y_at, second, p.y_kind, y);
}

#define ROPE(in, out)                                                                                        \
  KERNEL __launch_bounds__(256, 6) sol_rope_##in##_##out(const __grid_constant__ RopeParams p) {             \
    rope_wide(in, out, 0, p);                                                                                \
  }                                                                                                          \
  KERNEL __launch_bounds__(256, 4) sol_rope_neighbours_##in##_##out(const __grid_constant__ RopeParams p) {  \
    rope_wide(in, out, 1, p);                                                                                \
  }
#include "rope.def"

KERNEL __launch_bounds__(256) sol_rope_narrow(const __grid_constant__ RopeParams p) { rope_narrow(0, p); }
KERNEL __launch_bounds__(256) sol_rope_neighbours_narrow(const __grid_constant__ RopeParams p) { rope_narrow(1, p); }
