// Rotary position embedding. A thread takes a chunk of pairs and holds both sides, so it may work in place.
#include "rope_joined.cuh"

#include "ends.cuh"
#include "tile.cuh"

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

// What a thread of a wide kernel does: an item of some heads of a token, groups32.by heads apart, so that neighbouring threads have neighbouring ones. Both sides of the same pairs, or two chunks that are
// only copied; of neighbours one chunk a head. So the tables' part is read and widened once for all of them.
typedef struct RopeWork {
  uint32_t token, head, item;
  uint32_t first, apart; // elements of a head: of the first chunk, from there to the second
  bool turns, second;    // there is a second chunk
} RopeWork;

INLINE RopeWork rope_work(const RopeParams &p, uint32_t i, int neighbours, int per) {
  RopeWork w;
  uint32_t group = divide32(i, p.head32);
  w.token = divide32(group, p.groups32);
  w.item = i - group * p.head32.by;
  w.head = group - w.token * p.groups32.by;
  w.turns = w.item < (uint32_t)p.turns;
  w.first = w.item * per;
  w.apart = (uint32_t)p.half;
  if (!neighbours && !w.turns) w.first += (uint32_t)p.half, w.apart = (p.head32.by - (uint32_t)p.turns) * per;
  w.second = !neighbours && w.first + w.apart < (uint32_t)p.d;
  return w;
}

// Before the predecessor has ended, where threads are few: see may_hint. A position that it still writes costs a needless
// line in L2.
INLINE void rope_hint(const RopeParams &p, RopeWork w, const char *x, int in, int heads, int count, int weight_kind) {
#pragma unroll
  for (int k = 0; k < heads; k++) {
    uint32_t step = p.groups32.by * (uint32_t)p.d;
    if (w.item % 8 || w.head + k * p.groups32.by >= (uint32_t)p.heads) break;
    prefetch_l2(x + k * step * in);
    if (w.second) prefetch_l2(x + (k * step + w.apart) * in);
  }
  if (w.head || !w.turns) return;
  int64_t row = w.token;
  if (p.positions)
    row = p.wide_ids ? __ldcg((const long long *)p.positions + row) : __ldcg((const int *)p.positions + row);
  rope_ask(p, row, w.item, count, weight_kind);
}

// per: elements of an access; heads: of a thread.
INLINE void rope_accesses(int per, int heads, int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  const int count = neighbours ? per / 2 : per, words = per * in / 4, sides = neighbours ? 1 : 2;
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, step = p.groups32.by * (uint32_t)p.d;
  RopeWork w = rope_work(p, i, neighbours, per);
  uint64_t place = w.head * (uint32_t)p.d + w.first;
  const char *x = (const char *)p.x + (uint64_t)w.token * ((uint32_t)p.x_stride * in) + place * in;
  char *y = (char *)p.y + (uint64_t)w.token * ((uint32_t)p.y_stride * out) + place * out;
  if (p.hints && i < (uint32_t)p.items) rope_hint(p, w, x, in, heads, count, weight_kind);
  begin_kernel();
  if (i >= (uint32_t)p.items) return;
  // Of accesses that are less than a chunk one thread asks for half a line of the tables.
  const int bytes = count * (weight_kind == KIND_FP32 ? 4 : 2), line = per < CHUNK_OF(in, out) && bytes < 64 ? 64 / bytes : 1;
  bool asks = p.ahead && !w.head && w.turns && w.item % line == 0 && w.token + p.ahead < p.tokens;
  int64_t row = rope_row(p, w.token), later = asks ? rope_row(p, w.token + p.ahead) : -1;
  uint32_t raw[8][4], raw_c[8], raw_s[8]; // raw: as many as a thread may have chunks
  float f[2][8], c[8], s[8];
#pragma unroll
  for (int k = 0; k < heads * sides; k++) {
    bool has = w.head + k / sides * p.groups32.by < (uint32_t)p.heads && (k % sides == 0 || w.second);
    if (has) load_aligned(x + (k / sides * step + (k % sides ? w.apart : 0)) * in, words, 0, raw[k]);
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
    if (w.head + k * p.groups32.by >= (uint32_t)p.heads) break;
    to_floats(raw[k * sides], per, kind, f[0]);
    if (!neighbours) to_floats(raw[k * sides + 1], per, kind, f[1]);
    if (turns && neighbours) turn_neighbours(f[0], c, s, count);
    else if (turns) turn_halves(f[0], f[1], c, s, count);
    store_chunk(y + k * step * out, 0, per, out, y_kind, f[0]);
    if (w.second) store_chunk(y + (k * step + w.apart) * out, 0, per, out, y_kind, f[1]);
  }
}

INLINE void rope_chunks(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  rope_accesses(CHUNK_OF(in, out), neighbours ? ROPE_NEIGHBOURS : ROPE_HEADS, in, out, neighbours, kind, weight_kind, y_kind, p);
}

INLINE void rope_eights(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  rope_accesses(8 / in, ROPE_EIGHTS, in, out, neighbours, kind, weight_kind, y_kind, p);
}

INLINE void rope_fours(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  rope_accesses(4 / in, ROPE_FOURS, in, out, neighbours, kind, weight_kind, y_kind, p);
}

// Heads of any width at any address, straight from memory: an access has as many elements, one or two, as all places are multiples
// of. Neighbouring threads have neighbouring accesses, then the next head's, then the next token's.

INLINE void direct_load(const char *at, int bytes, uint32_t *w) {
  if (bytes == 2) w[0] = *(const uint16_t *)at;
  else load_aligned(at, bytes / 4, 0, w);
}

INLINE void direct_table(const void *table, int64_t at, int count, int size, uint32_t *w) {
  const char *from = (const char *)table + at * size;
  if (count * size == 2) w[0] = __ldg((const uint16_t *)from);
  else load_aligned(from, count * size / 4, 1, w);
}

INLINE float2 direct_floats(const uint32_t *w, int size, int kind) {
  return size == 4 ? make_float2(__uint_as_float(w[0]), __uint_as_float(w[1])) : widen2(w[0], kind);
}

INLINE void direct_store(char *at, int count, int out, int kind, float2 f) {
  if (count == 1) store_one(at, 0, kind, f.x);
  else if (out == 4) *(float2 *)at = f;
  else *(uint32_t *)at = narrow2(f.x, f.y, kind);
}

// A thread's work: `per` elements an access; the same pairs of `heads` heads, whose cosines and sines it reads once, of `tokens` tokens.
// Few heads leave little to load for a token: then a thread has several tokens.
typedef struct RopeDirect {
  int in, out, weight;   // bytes
  int neighbours, per;
  int tokens, heads;
  int kind, y_kind;
} RopeDirect;

INLINE void rope_direct(RopeDirect r, const RopeParams &p) {
  const int in = r.in, out = r.out, per = r.per, sides = r.neighbours && per == 2 ? 1 : 2, count = r.neighbours ? 1 : per, slots = r.tokens * r.heads;
  uint64_t i = thread_index(), group, few;
  if (p.head32.by) group = divide32((uint32_t)i, p.head32), few = divide32((uint32_t)group, p.groups32);
  else group = divide(i, p.head), few = divide(group, p.groups);
  int64_t unit = (int64_t)(i - group * p.head.by), head = (int64_t)(group - few * p.groups.by), token = (int64_t)few * r.tokens;
  bool turns = unit < p.turns;
  // Of two accesses that are only copied the second is as far on as there are such units.
  int64_t first = unit * (r.neighbours ? 2 : per), apart = r.neighbours ? 1 : p.half;
  if (!turns && !r.neighbours) first += p.half, apart = ((int64_t)p.head.by - p.turns) * per;
  bool second = sides == 2 && first + apart < p.d;
  int64_t place = head * p.d + first, step = (int64_t)p.groups.by * p.d;
  const char *x = (const char *)p.x + (token * p.x_stride + place) * in;
  char *y = (char *)p.y + (token * p.y_stride + place) * out;
  int heads = (int)min((int64_t)r.heads, (p.heads - head + (int64_t)p.groups.by - 1) / (int64_t)p.groups.by), tokens = (int)min((int64_t)r.tokens, p.last + 1 - token);
  begin_kernel();
  if (i >= p.items) return;
  if (p.ends && !head && !unit) ends_prefetch(y, p.y_stride * out, p.ends, tokens, 0, 1);
  int64_t row[ROPE_TOKENS];
  uint32_t raw[ROPE_MANY][2][2], c[ROPE_TOKENS][2], s[ROPE_TOKENS][2];
#pragma unroll
  for (int k = 0; k < r.tokens; k++) row[k] = turns && k < tokens ? rope_row(p, token + k) : -1;
#pragma unroll
  for (int k = 0; k < slots; k++) {
    const char *from = x + (k / r.heads * p.x_stride + k % r.heads * step) * in;
    if (k / r.heads >= tokens || k % r.heads >= heads) continue;
    direct_load(from, per * in, raw[k][0]);
    if (second) direct_load(from + apart * in, per * in, raw[k][1]);
  }
#pragma unroll
  for (int k = 0; k < r.tokens; k++) {
    if (row[k] < 0) continue;
    direct_table(p.cos, row[k] * p.half + unit * count, count, r.weight, c[k]);
    direct_table(p.sin, row[k] * p.half + unit * count, count, r.weight, s[k]);
  }
  const int line = 64 / r.weight / count; // units of half a line of the tables
  if (turns && p.ahead && !head && unit % line == 0) {
#pragma unroll
    for (int k = 0; k < r.tokens; k++)
      if (token + k + p.ahead <= p.last) rope_ask(p, rope_row(p, token + k + p.ahead), (uint32_t)unit, count, r.weight == 4 ? KIND_FP32 : KIND_BF16);
  }
#pragma unroll
  for (int k = 0; k < slots; k++) {
    const int t = k / r.heads;
    if (t >= tokens || k % r.heads >= heads) continue;
    float2 cosine = direct_floats(c[t], r.weight, p.weight_kind), sine = direct_floats(s[t], r.weight, p.weight_kind);
    float2 a = direct_floats(raw[k][0], in, r.kind), b = direct_floats(raw[k][1], in, r.kind), f = a, g = b;
    if (row[t] >= 0 && sides == 1) {
      f = make_float2(turn_a(a.x, a.y, cosine.x, sine.x), turn_b(a.x, a.y, cosine.x, sine.x));
    } else if (row[t] >= 0) {
      f = make_float2(turn_a(a.x, b.x, cosine.x, sine.x), turn_a(a.y, b.y, cosine.y, sine.y));
      g = make_float2(turn_b(a.x, b.x, cosine.x, sine.x), turn_b(a.y, b.y, cosine.y, sine.y));
    }
    char *to = y + (t * p.y_stride + k % r.heads * step) * out;
    direct_store(to, per, out, r.y_kind, f);
    if (second) direct_store(to + apart * out, per, out, r.y_kind, g);
  }
}

// Heads of any width at any address, through shared memory: tokens, or some heads of one, are copied there and back by whole cells
// (tile.cuh), and between the two threads take words of two elements. That costs far fewer instructions than cutting chunks out of
// global memory and putting them together again: heads off their alignment are bound by instructions.

// Prefetches into L2 the tables' rows of the block's tokens, while these are on their way.
INLINE void rope_tables(const RopeParams &p, TilePart s, int weight_kind) {
  const int line = 128 / (weight_kind == KIND_FP32 ? 4 : 2); // elements
  int lines = ((int)p.half + line - 1) / line;
  for (int i = threadIdx.x; i < s.rows * lines; i += blockDim.x) {
    int token = i / lines;
    rope_ask(p, rope_row(p, s.row + token), (uint32_t)(i - token * lines), line, weight_kind);
  }
}

// A block's part of x into shared memory, its cosines and sines on their way; where its part of y goes.
INLINE TilePart rope_fetch(int in, int out, int weight_kind, const RopeParams &p, char *memory, Tile *x, Tile *y) {
  TilePart s = tile_part(p.tile, (uint64_t)p.last + 1, p.heads * p.d);
  *x = tile_of(s, p.x, p.x_stride, in, p.tile.x_pitch);
  *y = tile_of(s, p.y, p.y_stride, out, p.tile.y_pitch);
  Extent extent = {(const char *)p.x, (const char *)p.x + (p.last * p.x_stride + p.heads * p.d) * in};
  begin_kernel();
  if (p.ends && p.tile.segments.by == 1) ends_prefetch(y->at, y->stride, p.ends, y->rows, threadIdx.x, blockDim.x);
  tile_fetch(*x, extent, memory, in);
  rope_tables(p, s, weight_kind);
  tile_arrived();
  return s;
}

// Two elements of 2 bytes at byte `at` of shared memory, or, not `both`, the first of them. whole: all such places are multiples of 4.
INLINE uint32_t rope_word(const char *memory, int at, bool whole, bool both) {
  uint32_t low = *(const uint32_t *)(memory + (at & -4));
  if (whole) return low;
  uint32_t high = *(const uint32_t *)(memory + (at + (both ? 2 : 0) & -4));
  return __byte_perm(low, high, at & 2 ? 0x5432 : 0x3210);
}

// Two neighbouring results, or, not `both`, the first of them.
INLINE void rope_give(char *memory, int at, int out, bool whole, bool both, float a, float b, int kind) {
  if (out == 2 && whole && both) {
    *(uint32_t *)(memory + at) = narrow2(a, b, kind);
    return;
  }
  store_one(memory + at, 0, kind, a);
  if (both) store_one(memory + at, 1, kind, b);
}

// What a thread has of each head: one pair, or two neighbouring ones of 2-byte elements half the rotated part apart; or two elements
// that are only copied.
typedef struct RopeUnit {
  int first, apart; // of the head's elements; from there to the other side of the pairs
  bool turns, both; // there are two pairs, or two elements to copy
  float c[2], s[2];
} RopeUnit;

INLINE RopeUnit rope_unit(int in, int neighbours, int weight_kind, const RopeParams &p, int64_t row, int j) {
  const int pairs = in == 2 && !neighbours ? 2 : 1;
  int half = (int)p.half, turns = (int)p.turns, first = j * pairs;
  RopeUnit u;
  u.turns = j < turns;
  u.first = u.turns ? (neighbours ? 2 * j : first) : 2 * half + (j - turns) * 2;
  u.apart = neighbours ? 1 : half;
  u.both = u.turns ? pairs == 2 && first + 1 < half : u.first + 1 < (int)p.d;
  if (u.turns && row >= 0) {
    int64_t at = row * half + first;
    u.c[0] = load_one(p.cos, at, weight_kind), u.s[0] = load_one(p.sin, at, weight_kind);
    at += u.both;
    if (pairs == 2) u.c[1] = load_one(p.cos, at, weight_kind), u.s[1] = load_one(p.sin, at, weight_kind);
  }
  return u;
}

// A unit of one head, at bytes x and y of shared memory. turns: pairs are turned; whole: words of x and y are; literals.
INLINE void rope_turn(int in, int out, int neighbours, const RopeUnit &u, bool turns, bool whole, char *memory, int x, int y, int kind, int y_kind) {
  float2 a, b;
  if (in == 4) {
    a = make_float2(*(const float *)(memory + x), 0), b = make_float2(*(const float *)(memory + x + u.apart * 4), 0);
    if (turns) b.y = turn_b(a.x, b.x, u.c[0], u.s[0]), a.x = turn_a(a.x, b.x, u.c[0], u.s[0]), b.x = b.y;
    store_one(memory + y, 0, y_kind, a.x);
    store_one(memory + y, u.apart, y_kind, b.x);
    return;
  }
  a = widen2(rope_word(memory, x, whole, neighbours || u.both), kind);
  if (neighbours) {
    b = a;
    if (turns) b = make_float2(turn_a(a.x, a.y, u.c[0], u.s[0]), turn_b(a.x, a.y, u.c[0], u.s[0]));
    rope_give(memory, y, out, whole, true, b.x, b.y, y_kind);
    return;
  }
  b = widen2(rope_word(memory, x + u.apart * 2, whole, u.both), kind);
  if (turns) {
    float2 f = a, g = b;
    a = make_float2(turn_a(f.x, g.x, u.c[0], u.s[0]), turn_a(f.y, g.y, u.c[1], u.s[1]));
    b = make_float2(turn_b(f.x, g.x, u.c[0], u.s[0]), turn_b(f.y, g.y, u.c[1], u.s[1]));
  }
  rope_give(memory, y, out, whole, u.both, a.x, a.y, y_kind);
  rope_give(memory, y + u.apart * out, out, whole, u.both, b.x, b.y, y_kind);
}

INLINE void rope_copy(int in, int out, const RopeUnit &u, bool whole, char *memory, int x, int y, int kind, int y_kind) {
  float2 a;
  if (in == 4) a = make_float2(*(const float *)(memory + x), u.both ? *(const float *)(memory + x + 4) : 0);
  else a = widen2(rope_word(memory, x, whole, u.both), kind);
  rope_give(memory, y, out, whole, u.both, a.x, a.y, y_kind);
}

// The same of `count` heads, each `step` elements after the one before. No condition that is the same for all of them is asked for each.
INLINE void rope_heads(int in, int out, int neighbours, const RopeUnit &u, bool turns, bool whole, char *memory, int x, int y, int count, int step,
                       int kind, int y_kind) {
#pragma unroll 2
  for (; count > 0; count--, x += step * in, y += step * out) {
    if (u.turns) rope_turn(in, out, neighbours, u, turns, whole, memory, x, y, kind, y_kind);
    else rope_copy(in, out, u, whole, memory, x, y, kind, y_kind);
  }
}

// A thread has a unit of some heads of a token, whose cosines and sines it reads once. Neighbouring threads have neighbouring units, so that
// accesses at any address lie next to each other.
INLINE void rope_words(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  extern __shared__ __align__(128) char memory[];
  Tile x, y;
  TilePart s = rope_fetch(in, out, weight_kind, p, memory, &x, &y);
  const int units = (int)p.head32.by, heads = s.columns / (int)p.d, step = p.lanes * (int)p.d;
  const bool whole = p.x_unit >= 4 && p.y_unit >= 4;
  int group = (int)divide32(threadIdx.x, p.head32), token = group / p.lanes, head = group - token * p.lanes;
  int tokens = max(ROPE_TILE_THREADS / (units * p.lanes), 1); // at a time
#pragma unroll 1
  for (; token < s.rows && group < tokens * p.lanes; token += tokens) {
    int64_t row = rope_row(p, s.row + token);
    int from = tile_place(x, token) + head * (int)p.d * in, to = p.tile.y_place + tile_place(y, token) + head * (int)p.d * out;
#pragma unroll 1
    for (int j = (int)threadIdx.x - group * units; j < units; j += ROPE_TILE_THREADS) {
      RopeUnit u = rope_unit(in, neighbours, weight_kind, p, row, j);
      int a = from + u.first * in, b = to + u.first * out;
      int count = (heads - head + p.lanes - 1) / p.lanes;
      if (!u.turns && whole) rope_heads(in, out, neighbours, u, false, true, memory, a, b, count, step, kind, y_kind);
      else if (row >= 0 && whole) rope_heads(in, out, neighbours, u, true, true, memory, a, b, count, step, kind, y_kind);
      else if (row >= 0) rope_heads(in, out, neighbours, u, true, false, memory, a, b, count, step, kind, y_kind);
      else rope_heads(in, out, neighbours, u, false, false, memory, a, b, count, step, kind, y_kind);
    }
  }
  __syncthreads();
  tile_send(y, memory + p.tile.y_place, out);
}

// A branch on a type between a thread's loads would keep them from being in flight together: where all are of one type,
// it is a constant here.
#define ROPE_BY_KIND(call, in, out, neighbours)                                                              \
  bool alike = p.x_kind == p.weight_kind && p.x_kind == p.y_kind;                                            \
  if (in == 4 && out == 4 && alike) call(in, out, neighbours, KIND_FP32, KIND_FP32, KIND_FP32, p);           \
  else if (in == 2 && out == 2 && alike && p.x_kind == KIND_BF16)                                            \
    call(in, out, neighbours, KIND_BF16, KIND_BF16, KIND_BF16, p);                                           \
  else if (in == 2 && out == 2 && alike) call(in, out, neighbours, KIND_FP16, KIND_FP16, KIND_FP16, p);      \
  else call(in, out, neighbours, kind_of(in, p.x_kind), in == 4 ? KIND_FP32 : p.weight_kind, kind_of(out, p.y_kind), p);
#define ROPE_BY_WEIGHT(call, in, out)                                                                        \
  int kind = kind_of(in, p.x_kind), y_kind = kind_of(out, p.y_kind);                                         \
  bool alike = in == 2 && out == 2 && p.x_kind == p.weight_kind && p.x_kind == p.y_kind;                     \
  if (in == 4 || p.weight_kind == KIND_FP32) call(in, out, 4, kind, KIND_FP32, y_kind, p);                   \
  else if (alike && kind == KIND_BF16) call(in, out, 2, KIND_BF16, KIND_BF16, KIND_BF16, p);                 \
  else if (alike) call(in, out, 2, KIND_FP16, KIND_FP16, KIND_FP16, p);                                      \
  else call(in, out, 2, kind, p.weight_kind, y_kind, p);
#define ROPE_KERNEL(name, call, in, out, neighbours, blocks)                                                 \
  KERNEL __launch_bounds__(ROPE_THREADS, blocks) sol_rope_##name##in##_##out(const __grid_constant__ RopeParams p) { \
    ROPE_BY_KIND(call, in, out, neighbours)                                                                  \
  }
#define ROPE(in, out)                                                                                        \
  ROPE_KERNEL(, rope_chunks, in, out, 0, 12)                                                                 \
  ROPE_KERNEL(neighbours_, rope_chunks, in, out, 1, 12)                                                      \
  KERNEL __launch_bounds__(ROPE_THREADS, 9) sol_rope_loose_##in##_##out(const __grid_constant__ RopeParams p) { \
    ROPE_BY_WEIGHT(rope_loose, in, out)                                                                      \
  }
#include "rope.def"
ROPE_KERNEL(eights_, rope_eights, 2, 2, 0, 12)
ROPE_KERNEL(fours_, rope_fours, 2, 2, 0, 12)

KERNEL __launch_bounds__(ROPE_WINDOW_THREADS, 8) sol_rope_windows_2_2(const __grid_constant__ RopeParams p) {
  ROPE_BY_KIND(rope_windows, 2, 2, 0)
}

#define ROPE_WORDS(in, out)                                                                                  \
  KERNEL __launch_bounds__(ROPE_TILE_THREADS, 9) sol_rope_words_##in##_##out(const __grid_constant__ RopeParams p) { \
    if (p.neighbours) {                                                                                      \
      ROPE_BY_KIND(rope_words, in, out, 1)                                                                    \
    } else {                                                                                                 \
      ROPE_BY_KIND(rope_words, in, out, 0)                                                                    \
    }                                                                                                        \
  }
ROPE_WORDS(2, 2)

// Which of two 2-byte types x has matters after all loads: it is asked then. How wide an access is matters before.
INLINE void rope_directly(int in, int out, int neighbours, int per, const RopeParams &p) {
  const int kind = kind_of(in, p.x_kind), y_kind = kind_of(out, p.y_kind);
  if (in == 4 || p.weight_kind == KIND_FP32) {
    if (p.few) rope_direct((RopeDirect){in, out, 4, neighbours, per, ROPE_TOKENS, ROPE_FEW, kind, y_kind}, p);
    else rope_direct((RopeDirect){in, out, 4, neighbours, per, 1, ROPE_MANY, kind, y_kind}, p);
  } else {
    if (p.few) rope_direct((RopeDirect){in, out, 2, neighbours, per, ROPE_TOKENS, ROPE_FEW, kind, y_kind}, p);
    else rope_direct((RopeDirect){in, out, 2, neighbours, per, 1, ROPE_MANY, kind, y_kind}, p);
  }
}

#define ROPE_DIRECTLY(in, out)                                                                               \
  KERNEL __launch_bounds__(ROPE_THREADS, 10) sol_rope_direct_##in##_##out(const __grid_constant__ RopeParams p) { \
    if (p.neighbours && p.per == 2) rope_directly(in, out, 1, 2, p);                                         \
    else if (p.neighbours) rope_directly(in, out, 1, 1, p);                                                  \
    else if (p.per == 2) rope_directly(in, out, 0, 2, p);                                                    \
    else rope_directly(in, out, 0, 1, p);                                                                    \
  }
ROPE_DIRECTLY(2, 2)
ROPE_DIRECTLY(2, 4)
ROPE_DIRECTLY(4, 2)
ROPE_DIRECTLY(4, 4)
