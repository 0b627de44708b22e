// Rotary position embedding. A thread takes a chunk of pairs and holds both sides, so it may work in place.
#include "rope.h"

#include "elementwise.cuh"

typedef struct Place {
  const char *x; // of the head
  char *y;
  int64_t item; // within the head
  int64_t row;  // of the tables; -1: the token is not rotated
} Place;

INLINE bool rope_place(RopeParams p, int in, int out, Place *at) {
  uint64_t i = thread_index();
  begin_kernel();
  if (i >= p.items) return false;
  uint64_t head = divide(i, p.head), token = divide(head, p.heads);
  int64_t first = (int64_t)(head - token * p.heads.by) * p.d;
  at->item = (int64_t)(i - head * p.head.by);
  at->x = (const char *)p.x + ((int64_t)token * p.x_stride + first) * in;
  at->y = (char *)p.y + ((int64_t)token * p.y_stride + first) * out;
  int64_t row = p.positions ? load_id(p.positions, token, p.wide_ids) : (int64_t)token;
  at->row = row >= 0 && row < p.rows ? row : -1;
  return true;
}

// The first of the pair, and the second.
INLINE float turn_a(float a, float b, float c, float s) { return __fmaf_rn(a, c, -__fmul_rn(b, s)); }
INLINE float turn_b(float a, float b, float c, float s) { return __fmaf_rn(b, c, __fmul_rn(a, s)); }

INLINE void load_weights(const void *table, int64_t first, int count, int kind, uint32_t *w) {
  if (kind == KIND_FP32) {
    const char *at = (const char *)table + first * 4;
    load_aligned(at, count > 4 ? 4 : count, 1, w);
    if (count > 4) load_aligned(at + 16, 4, 1, w + 4);
  } else {
    load_aligned((const char *)table + first * 2, count / 2, 1, w);
  }
}

INLINE void rope_wide(int in, int out, int neighbours, RopeParams p) {
  const int per = CHUNK_OF(in, out), count = neighbours ? per / 2 : per, words = per * in / 4;
  const int kind = kind_of(in, p.x_kind);
  Place at;
  if (!rope_place(p, in, out, &at)) return;
  uint32_t raw_a[4], raw_b[4], raw_c[8], raw_s[8];
  float a[8], b[8], c[8], s[8];
  if (at.item >= p.turns || (neighbours && at.row < 0)) { // nothing but copied
    int64_t first = (neighbours ? at.item : p.turns + at.item) * per;
    load_aligned(at.x + first * in, words, 0, raw_a);
    to_floats(raw_a, per, kind, a);
    store_chunk(at.y, first, per, out, p.y_kind, a);
    return;
  }
  int64_t first = at.item * per;
  load_aligned(at.x + first * in, words, 0, raw_a);
  if (!neighbours) load_aligned(at.x + (p.half + first) * in, words, 0, raw_b);
  if (at.row >= 0) {
    load_weights(p.cos, at.row * p.half + at.item * count, count, p.weight_kind, raw_c);
    load_weights(p.sin, at.row * p.half + at.item * count, count, p.weight_kind, raw_s);
    to_floats(raw_c, count, p.weight_kind, c);
    to_floats(raw_s, count, p.weight_kind, s);
  }
  to_floats(raw_a, per, kind, a);
  if (!neighbours) to_floats(raw_b, per, kind, b);
  if (at.row >= 0) {
#pragma unroll
    for (int j = 0; j < count; j++) {
      float x = neighbours ? a[2 * j] : a[j], y = neighbours ? a[2 * j + 1] : b[j];
      *(neighbours ? &a[2 * j] : &a[j]) = turn_a(x, y, c[j], s[j]);
      *(neighbours ? &a[2 * j + 1] : &b[j]) = turn_b(x, y, c[j], s[j]);
    }
  }
  store_chunk(at.y, first, per, out, p.y_kind, a);
  if (!neighbours) store_chunk(at.y, p.half + first, per, out, p.y_kind, b);
}

// One pair, or one element that is only copied, a thread. The kinds say how wide elements are.
INLINE void rope_narrow(int neighbours, RopeParams p) {
  Place at;
  int in = p.x_kind == KIND_FP32 ? 4 : 2, out = p.y_kind == KIND_FP32 ? 4 : 2;
  if (!rope_place(p, in, out, &at)) return;
  if (at.item >= p.turns) {
    int64_t e = p.half + at.item;
    store_one(at.y, e, p.y_kind, load_one(at.x, e, p.x_kind));
    return;
  }
  int64_t first = neighbours ? 2 * at.item : at.item, second = neighbours ? first + 1 : first + p.half;
  float a = load_one(at.x, first, p.x_kind), b = load_one(at.x, second, p.x_kind), x = a, y = b;
  if (at.row >= 0) {
    float c = load_one(p.cos, at.row * p.half + at.item, p.weight_kind);
    float s = load_one(p.sin, at.row * p.half + at.item, p.weight_kind);
    x = turn_a(a, b, c, s);
    y = turn_b(a, b, c, s);
  }
  store_one(at.y, first, p.y_kind, x);
  store_one(at.y, second, p.y_kind, y);
}

#define ROPE(in, out)                                                                                        \
  KERNEL __launch_bounds__(256) sol_rope_##in##_##out(RopeParams p) { rope_wide(in, out, 0, p); }            \
  KERNEL __launch_bounds__(256) sol_rope_neighbours_##in##_##out(RopeParams p) { rope_wide(in, out, 1, p); }
#include "rope.def"

KERNEL __launch_bounds__(256) sol_rope_narrow(RopeParams p) { rope_narrow(0, p); }
KERNEL __launch_bounds__(256) sol_rope_neighbours_narrow(RopeParams p) { rope_narrow(1, p); }
