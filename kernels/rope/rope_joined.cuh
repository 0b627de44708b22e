// Heads that are no whole chunks of 16 bytes, where a token is: so many neighbouring heads as are whole chunks count as one joined head. A thread has
// the same chunk of some joined heads of a token, so that the columns in it, and the cosines and sines under them, are the same for all.
#ifndef SOL_KERNELS_ROPE_JOINED_CUH
#define SOL_KERNELS_ROPE_JOINED_CUH

#include "ends.cuh"
#include "funnel.cuh"
#include "rope.cuh"

// Where chunk `unit` of a joined head starts, as a column of the head that it starts in.
INLINE uint32_t joined_column(const RopeParams &p, uint32_t unit, int per) {
  uint32_t first = unit * per;
  return first - divide32(first, p.d32) * (uint32_t)p.d;
}

// An element of a table, as it is stored. All that a thread loads is loaded before any is converted, and whatever it is for: a branch between two loads
// keeps them from being in flight together.
INLINE uint32_t joined_load(const void *table, int64_t at, int weight) {
  return weight == 4 ? __ldg((const uint32_t *)table + at) : __ldg((const uint16_t *)table + at);
}

INLINE float joined_float(uint32_t raw, int weight, int kind) { return weight == 4 ? __uint_as_float(raw) : widen2(raw, kind).x; }

// ---- Pairs of neighbours: a chunk has whole pairs, each with a cosine and a sine of its own.

typedef struct RopePairs {
  float c[4], s[4];
  uint32_t turned; // a bit for each pair that is
} RopePairs;

// weight: bytes of an element of the tables.
INLINE RopePairs joined_pairs(const RopeParams &p, int64_t row, uint32_t column, int count, int weight, int kind) {
  RopePairs t;
  uint32_t c[4], s[4];
  t.turned = 0;
  if (row < 0) return t;
  int64_t first = rope_at(p, row, 0, 1);
#pragma unroll
  for (int j = 0; j < count; j++) {
    bool turned = column / 2 < (uint32_t)p.half;
    int64_t at = first + (turned ? column / 2 : 0);
    c[j] = joined_load(p.cos, at, weight), s[j] = joined_load(p.sin, at, weight);
    t.turned |= turned ? 1 << j : 0;
    column = column + 2 == (uint32_t)p.d ? 0 : column + 2;
  }
#pragma unroll
  for (int j = 0; j < count; j++) t.c[j] = joined_float(c[j], weight, kind), t.s[j] = joined_float(s[j], weight, kind);
  return t;
}

INLINE void joined_turn_pairs(const RopePairs &t, int count, float *f) {
#pragma unroll
  for (int j = 0; j < count; j++) {
    float a = f[2 * j], b = f[2 * j + 1];
    bool turned = t.turned >> j & 1;
    f[2 * j] = turned ? turn_a(a, b, t.c[j], t.s[j]) : a;
    f[2 * j + 1] = turned ? turn_b(a, b, t.c[j], t.s[j]) : b;
  }
}

// head32.by: chunks of a joined head; groups32.by: threads with the same chunk of a token.
INLINE void rope_loose(int in, int out, int weight, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  const int per = CHUNK_OF(in, out), words = per * in / 4;
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, group = divide32(i, p.head32), token = divide32(group, p.groups32);
  uint32_t unit = i - group * p.head32.by, head = group - token * p.groups32.by, step = p.groups32.by * p.head32.by * per;
  uint32_t place = (head * p.head32.by + unit) * per, column = joined_column(p, unit, per);
  int heads = (int)((p.joined - head + p.groups32.by - 1) / p.groups32.by);
  const char *x = (const char *)p.x + ((uint64_t)token * (uint32_t)p.x_stride + place) * in;
  char *y = (char *)p.y + ((uint64_t)token * (uint32_t)p.y_stride + place) * out;
  if (p.hints && i < (uint32_t)p.items)
    for (int k = 0; k < heads; k++) prefetch_l2(x + k * step * in);
  begin_kernel();
  if (i >= (uint32_t)p.items) return;
  if (p.ends && !head && !unit) ends_prefetch(y, 0, p.ends, 1, 0, 1);
  bool asks = p.ahead && !head && column < 2 * (uint32_t)p.half && token + p.ahead < p.tokens;
  int64_t row = rope_row(p, token), later = asks ? rope_row(p, token + p.ahead) : -1;
  uint32_t raw[ROPE_LOOSE][4];
#pragma unroll
  for (int k = 0; k < ROPE_LOOSE; k++)
    if (k < heads) load_aligned(x + k * step * in, words, 0, raw[k]);
  RopePairs t = joined_pairs(p, row, column, per / 2, weight, weight_kind);
  rope_ask(p, later, column / 2, 1, weight_kind);
#pragma unroll
  for (int k = 0; k < ROPE_LOOSE; k++) {
    float f[8];
    if (k >= heads) break;
    to_floats(raw[k], per, kind, f);
    joined_turn_pairs(t, per / 2, f);
    store_chunk(y + k * step * out, 0, per, out, y_kind, f);
  }
}

// ---- Pairs half the rotated part apart, elements of 2 bytes: an element's partner is as far before or after it, which may be anywhere in a chunk
// that another thread has. All threads put their chunks into shared memory, and take out two windows of 16 bytes: what lies p.half elements
// after their own, and what lies as far before it.

// Of a thread's eight elements: result = own * c + partner * s, with the partner's sign in s.
typedef struct RopeWindow {
  float c[8], s[8];
  uint32_t after[4], before[4]; // masks of the elements whose partners are in the window after, before
} RopeWindow;

// Elements that are not turned: c is 1, s is -0 and the partner 0, which leaves the element as it is, the sign of zeros included.
INLINE RopeWindow joined_window(const RopeParams &p, int64_t row, uint32_t column, int weight_kind) {
  RopeWindow w;
  uint32_t half = (uint32_t)p.half;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    const uint32_t mask = j % 2 ? 0xffff0000u : 0xffff;
    bool first = row >= 0 && column < half, second = row >= 0 && column >= half && column < 2 * half;
    w.c[j] = 1, w.s[j] = -0.0f;
    if (j % 2 == 0) w.after[j / 2] = w.before[j / 2] = 0;
    if (first || second) {
      int64_t at = rope_at(p, row, first ? column : column - half, 1);
      float s = load_one(p.sin, at, weight_kind);
      w.c[j] = load_one(p.cos, at, weight_kind), w.s[j] = first ? -s : s;
    }
    w.after[j / 2] |= first ? mask : 0, w.before[j / 2] |= second ? mask : 0;
    column = column + 1 == (uint32_t)p.d ? 0 : column + 1;
  }
  return w;
}

// The 16 bytes from byte `at` of shared memory on.
INLINE uint4 joined_cut(const char *memory, int at) {
  const uint4 *from = (const uint4 *)(memory + (at & -16));
  return at & 15 ? funnel(from[0], from[1], at & 15, 2) : from[0];
}

INLINE uint4 joined_turn(const RopeWindow &w, uint4 own, uint4 after, uint4 before, int kind, int y_kind) {
  const uint32_t u[4] = {own.x, own.y, own.z, own.w}, a[4] = {after.x, after.y, after.z, after.w};
  const uint32_t b[4] = {before.x, before.y, before.z, before.w};
  uint32_t to[4];
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float2 f = widen2(u[j], kind), g = widen2((a[j] & w.after[j]) | (b[j] & w.before[j]), kind);
    f.x = __fmaf_rn(f.x, w.c[2 * j], __fmul_rn(g.x, w.s[2 * j]));
    f.y = __fmaf_rn(f.y, w.c[2 * j + 1], __fmul_rn(g.y, w.s[2 * j + 1]));
    to[j] = narrow2(f.x, f.y, y_kind);
  }
  return make_uint4(to[0], to[1], to[2], to[3]);
}

// A block has some tokens, or some of the threads of one. head32.by: chunks of a joined head; groups32.by: threads of a block with the same chunk
// of a token; blocks32.by: blocks on a token.
INLINE void rope_windows(int, int, int, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  extern __shared__ __align__(16) char windows[]; // 16 bytes, a chunk of each thread for each of its heads, 16 bytes
  uint32_t tokens = divide32(blockIdx.x, p.blocks32), part = blockIdx.x - tokens * p.blocks32.by;
  uint32_t group = divide32(threadIdx.x, p.head32), token = divide32(group, p.groups32);
  uint32_t unit = threadIdx.x - group * p.head32.by, all = p.groups32.by * p.blocks32.by, head = part * p.groups32.by + group - token * p.groups32.by;
  bool there = token < p.block_tokens && tokens * p.block_tokens + token < p.tokens && head < p.joined;
  token += tokens * p.block_tokens;
  int heads = there ? (int)((p.joined - head + all - 1) / all) : 0, half = 2 * (int)p.half;
  uint32_t place = (head * p.head32.by + unit) * 8, step = all * p.head32.by * 16, column = joined_column(p, unit, 8);
  const char *x = (const char *)p.x + ((uint64_t)token * (uint32_t)p.x_stride + place) * 2;
  char *y = (char *)p.y + ((uint64_t)token * (uint32_t)p.y_stride + place) * 2;
  begin_kernel();
  if (p.ends && there && !head && !unit) ends_prefetch(y, 0, p.ends, 1, 0, 1);
  bool asks = there && p.ahead && !head && column < (uint32_t)p.half && token + p.ahead < p.tokens;
  int64_t row = there ? rope_row(p, token) : -1, later = asks ? rope_row(p, token + p.ahead) : -1;
#pragma unroll
  for (int k = 0; k < ROPE_WINDOWS; k++) {
    char *to = windows + 16 + (k * blockDim.x + threadIdx.x) * 16;
    if (k < heads) fetch16(to, x + k * step);
    else *(uint4 *)to = make_uint4(0, 0, 0, 0);
  }
  if (threadIdx.x < 2) *(uint4 *)(windows + threadIdx.x * (16 + ROPE_WINDOWS * blockDim.x * 16)) = make_uint4(0, 0, 0, 0);
  RopeWindow w = joined_window(p, row, column, weight_kind);
  rope_ask(p, later, column, 1, weight_kind);
  wait_for_fetches();
  __syncthreads();
  bool after = w.after[0] | w.after[1] | w.after[2] | w.after[3], before = w.before[0] | w.before[1] | w.before[2] | w.before[3];
#pragma unroll 1
  for (int k = 0; k < heads; k++) {
    int at = 16 + (int)(k * blockDim.x + threadIdx.x) * 16;
    uint4 own = *(const uint4 *)(windows + at), a = make_uint4(0, 0, 0, 0), b = a;
    if (after) a = joined_cut(windows, at + half);
    if (before) b = joined_cut(windows, at - half);
    *(uint4 *)(y + k * step) = joined_turn(w, own, a, b, kind, y_kind);
  }
}

#endif
