// Rotary position embedding. A thread takes a chunk of pairs and holds both sides, so it may work in place.
#include "rope.h"

#include "elementwise.cuh"
#include "tile.cuh"

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

// What a thread of a wide kernel does: an item of some heads of a token. Both sides of the same pairs, or two chunks that are
// only copied; of neighbours one chunk a head. So the tables' part is read and widened once for all of them.
typedef struct RopeWork {
  uint32_t token, head, item;
  uint32_t first, apart; // elements of a head: of the first chunk, from there to the second
  bool turns, second;    // there is a second chunk
} RopeWork;

INLINE RopeWork rope_work(const RopeParams &p, uint32_t i, int neighbours, int per, int heads) {
  RopeWork w;
  uint32_t group = divide32(i, p.head32);
  w.token = divide32(group, p.groups32);
  w.item = i - group * p.head32.by;
  w.head = (group - w.token * p.groups32.by) * heads;
  w.turns = w.item < (uint32_t)p.turns;
  w.first = w.item * per;
  w.apart = (uint32_t)p.half;
  if (!neighbours && !w.turns) w.first += (uint32_t)p.half, w.apart = (p.head32.by - (uint32_t)p.turns) * per;
  w.second = !neighbours && w.first + w.apart < (uint32_t)p.d;
  return w;
}

// The tables' elements under the work, on a row that there is.
INLINE int64_t rope_at(const RopeParams &p, int64_t row, uint32_t item, int count) {
  return (int64_t)((uint64_t)(uint32_t)row * (uint32_t)p.half + item * count);
}

// Prefetches them into L2.
INLINE void rope_ask(const RopeParams &p, int64_t row, uint32_t item, int count, int weight_kind) {
  if ((uint64_t)row >= (uint64_t)p.rows) return;
  int64_t at = rope_at(p, row, item, count) * (weight_kind == KIND_FP32 ? 4 : 2);
  prefetch_l2((const char *)p.cos + at);
  prefetch_l2((const char *)p.sin + at);
}

// Before the predecessor has ended, where threads are few: see may_hint. A position that it still writes costs a needless
// line in L2.
INLINE void rope_hint(const RopeParams &p, RopeWork w, const char *x, int in, int heads, int count, int weight_kind) {
#pragma unroll
  for (int k = 0; k < heads; k++) {
    if (w.item % 8 || w.head + k >= (uint32_t)p.heads) break;
    prefetch_l2(x + k * (uint32_t)p.d * in);
    if (w.second) prefetch_l2(x + (k * (uint32_t)p.d + w.apart) * in);
  }
  if (w.head || !w.turns) return;
  int64_t row = w.token;
  if (p.positions)
    row = p.wide_ids ? __ldcg((const long long *)p.positions + row) : __ldcg((const int *)p.positions + row);
  rope_ask(p, row, w.item, count, weight_kind);
}

INLINE void rope_chunks(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  const int per = CHUNK_OF(in, out), count = neighbours ? per / 2 : per, words = per * in / 4;
  const int heads = neighbours ? ROPE_NEIGHBOURS : ROPE_HEADS, sides = neighbours ? 1 : 2;
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, d = (uint32_t)p.d;
  RopeWork w = rope_work(p, i, neighbours, per, heads);
  uint64_t place = w.head * d + w.first;
  const char *x = (const char *)p.x + (uint64_t)w.token * ((uint32_t)p.x_stride * in) + place * in;
  char *y = (char *)p.y + (uint64_t)w.token * ((uint32_t)p.y_stride * out) + place * out;
  if (p.hints && i < (uint32_t)p.items) rope_hint(p, w, x, in, heads, count, weight_kind);
  begin_kernel();
  if (i >= (uint32_t)p.items) return;
  bool asks = p.ahead && !w.head && w.turns && w.token + p.ahead < p.tokens;
  int64_t row = rope_row(p, w.token), later = asks ? rope_row(p, w.token + p.ahead) : -1;
  uint32_t raw[4][4], raw_c[8], raw_s[8]; // raw: as many as a thread may have chunks
  float f[2][8], c[8], s[8];
#pragma unroll
  for (int k = 0; k < heads * sides; k++) {
    bool has = w.head + k / sides < (uint32_t)p.heads && (k % sides == 0 || w.second);
    if (has) load_aligned(x + (k / sides * d + (k % sides ? w.apart : 0)) * in, words, 0, raw[k]);
  }
  bool turns = w.turns && row >= 0;
  if (turns) {
    load_weights(p.cos, rope_at(p, row, w.item, count), count, weight_kind, raw_c);
    load_weights(p.sin, rope_at(p, row, w.item, count), count, weight_kind, raw_s);
    rope_ask(p, later, w.item, count, weight_kind);
    to_floats(raw_c, count, weight_kind, c);
    to_floats(raw_s, count, weight_kind, s);
  }
#pragma unroll
  for (int k = 0; k < heads; k++) {
    if (w.head + k >= (uint32_t)p.heads) break;
    to_floats(raw[k * sides], per, kind, f[0]);
    if (!neighbours) to_floats(raw[k * sides + 1], per, kind, f[1]);
    if (turns && neighbours) turn_neighbours(f[0], c, s, count);
    else if (turns) turn_halves(f[0], f[1], c, s, count);
    store_chunk(y + k * d * out, 0, per, out, y_kind, f[0]);
    if (w.second) store_chunk(y + (k * d + w.apart) * out, 0, per, out, y_kind, f[1]);
  }
}

// A branch on a type between a thread's loads would keep them from being in flight together: where all are of one type,
// it is a constant here.
INLINE void rope_wide(int in, int out, int neighbours, const RopeParams &p) {
  bool alike = p.x_kind == p.weight_kind && p.x_kind == p.y_kind;
  if (in == 4 && out == 4) rope_chunks(in, out, neighbours, KIND_FP32, KIND_FP32, KIND_FP32, p);
  else if (in == 2 && out == 2 && alike && p.x_kind == KIND_BF16)
    rope_chunks(in, out, neighbours, KIND_BF16, KIND_BF16, KIND_BF16, p);
  else if (in == 2 && out == 2 && alike) rope_chunks(in, out, neighbours, KIND_FP16, KIND_FP16, KIND_FP16, p);
  else rope_chunks(in, out, neighbours, kind_of(in, p.x_kind), in == 4 ? KIND_FP32 : p.weight_kind, p.y_kind, p);
}

// Heads of any width at any address: a block stages those of some tokens, or some of a token, in shared memory, turns their
// pairs there and writes all of it, 16 bytes at a time both ways. Where x and y are alike, elements that are only copied are not
// touched in between.
typedef struct RopeTile {
  Tile x, y;
  uint64_t token;
  int heads; // of a token
} RopeTile;

INLINE RopeTile rope_tile(const RopeParams &p, int in, int out) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  RopeTile t;
  t.token = p.parts > 1 ? block / p.parts : block * p.tile_rows;
  int64_t head = p.parts > 1 ? (int64_t)(block % p.parts) * p.part : 0;
  t.heads = (int)min(p.part, p.heads - head);
  t.x.rows = t.token >= p.tile_tokens ? 0 : (int)min((uint64_t)p.tile_rows, p.tile_tokens - t.token);
  t.x.at = (const char *)p.x + ((int64_t)t.token * p.x_stride + head * p.d) * in;
  t.x.stride = p.x_stride * in;
  t.x.bytes = t.heads * (int)p.d * in;
  t.x.pitch = p.x_pitch;
  t.y = t.x;
  t.y.at = (const char *)p.y + ((int64_t)t.token * p.y_stride + head * p.d) * out;
  t.y.stride = p.y_stride * out;
  t.y.bytes = t.heads * (int)p.d * out;
  t.y.pitch = p.y_pitch;
  return t;
}

INLINE void rope_pairs(const RopeParams &p, const RopeTile &t, const char *from, char *to, int kind, int weight_kind, int y_kind) {
  int in = kind == KIND_FP32 ? 4 : 2, out = y_kind == KIND_FP32 ? 4 : 2;
  int half = (int)p.half, d = (int)p.d, count = t.x.rows * t.heads * half;
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    int head = (int)divide32(i, p.head32), pair = i - head * half, row = p.parts > 1 ? 0 : (int)divide32(head, p.groups32);
    int first = p.neighbours ? 2 * pair : pair, second = p.neighbours ? first + 1 : first + half;
    int skip = (head - row * t.heads) * d;
    const char *x = from + tile_place(t.x, row) + skip * in;
    float a = load_one(x, first, kind), b = load_one(x, second, kind), u = a, v = b;
    int64_t at = rope_row(p, t.token + row);
    if (at >= 0) {
      float c = load_one(p.cos, at * half + pair, weight_kind), s = load_one(p.sin, at * half + pair, weight_kind);
      u = turn_a(a, b, c, s);
      v = turn_b(a, b, c, s);
    }
    char *y = to + tile_place(t.y, row) + skip * out;
    store_one(y, first, y_kind, u);
    store_one(y, second, y_kind, v);
  }
}

INLINE void rope_rest(const RopeParams &p, const RopeTile &t, const char *from, char *to, int in, int out) {
  int d = (int)p.d, rest = d - 2 * (int)p.half, count = t.x.rows * t.heads * rest;
#pragma unroll 4
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    int head = i / rest, e = d - rest + i - head * rest, row = p.parts > 1 ? 0 : (int)divide32(head, p.groups32);
    int at = (head - row * t.heads) * d + e;
    store_one(to + tile_place(t.y, row), at, p.y_kind, load_one(from + tile_place(t.x, row), at, p.x_kind));
  }
}

KERNEL __launch_bounds__(256, 5) sol_rope_tile(const __grid_constant__ RopeParams p) {
  extern __shared__ __align__(128) char memory[];
  int in = p.x_kind == KIND_FP32 ? 4 : 2, out = p.y_kind == KIND_FP32 ? 4 : 2;
  char *result = memory + p.room; // 0: turned in place
  begin_kernel();
  RopeTile t = rope_tile(p, in, out);
  if (!t.x.rows) return;
  if (in == 4) tile_fill(t.x, memory, 4);
  else tile_fill(t.x, memory, 2);
  __syncthreads();
  bool alike = p.x_kind == p.weight_kind && p.x_kind == p.y_kind;
  if (alike && p.x_kind == KIND_BF16) rope_pairs(p, t, memory, result, KIND_BF16, KIND_BF16, KIND_BF16);
  else if (alike && p.x_kind == KIND_FP16) rope_pairs(p, t, memory, result, KIND_FP16, KIND_FP16, KIND_FP16);
  else if (alike) rope_pairs(p, t, memory, result, KIND_FP32, KIND_FP32, KIND_FP32);
  else rope_pairs(p, t, memory, result, p.x_kind, p.weight_kind, p.y_kind);
  if (p.room) rope_rest(p, t, memory, result, in, out);
  __syncthreads();
  tile_drain(t.y, result, out);
}

// Heads that no shared memory holds: one pair, or one element that is only copied, a thread.
KERNEL __launch_bounds__(256) sol_rope_narrow(const __grid_constant__ RopeParams p) {
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
  int64_t first = p.neighbours ? 2 * item : item, second = p.neighbours ? first + 1 : first + p.half;
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
  KERNEL __launch_bounds__(ROPE_THREADS, 12) sol_rope_##in##_##out(const __grid_constant__ RopeParams p) {             \
    rope_wide(in, out, 0, p);                                                                                \
  }                                                                                                          \
  KERNEL __launch_bounds__(ROPE_THREADS, 12) sol_rope_neighbours_##in##_##out(const __grid_constant__ RopeParams p) {  \
    rope_wide(in, out, 1, p);                                                                                \
  }
#include "rope.def"
