// Rotary position embedding. A thread takes a chunk of pairs and holds both sides, so it may work in place.
#include "rope.h"

#include "elementwise.cuh"
#include "pieces.cuh"
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

// Heads of any width at any address (pieces.cuh). A thread has two chunks of a head: both sides of the same pairs, or two of
// neighbours or of what is only copied, as far apart as a warp's accesses stay next to each other. A run is what the chunks of
// consecutive threads make together.
typedef struct RopeRun {
  int64_t first, left; // of the head's columns: the chunk's first, and how many the run still has from there on
} RopeRun;

INLINE RopeRun rope_run(int64_t begin, int64_t end, int64_t item, int per) {
  RopeRun r;
  r.first = begin + item * per;
  r.left = end - r.first;
  return r;
}

// The two runs of the part from `begin` to `end`, of `items` chunks each.
INLINE void rope_runs(int64_t begin, int64_t end, int64_t items, int64_t item, int per, RopeRun *r) {
  int64_t middle = min(begin + items * per, end);
  r[0] = rope_run(begin, middle, item, per);
  r[1] = rope_run(middle, end, item, per);
}

INLINE void rope_any(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  const int per = CHUNK_OF(in, out), count = neighbours ? per / 2 : per, tables = neighbours ? 2 : 1;
  uint64_t i = thread_index(), head = divide(i, p.head), token = divide(head, p.groups);
  int64_t item = (int64_t)(i - head * p.head.by), skip = (int64_t)(head - token * p.groups.by) * p.d, rest = 2 * p.half;
  bool turns = item < p.turns;
  int lane = threadIdx.x % 32;
  RopeRun r[2];
  Raw raw[2];
  Weights c[2], s[2];
  float f[2][8], cosines[8], sines[8];
  uint32_t w[4];
  if (!turns) {
    item -= p.turns;
    rope_runs(rest, p.d, (int64_t)p.head.by - p.turns, item, per, r);
  } else if (neighbours) {
    rope_runs(0, rest, p.turns, item, per, r);
  } else {
    r[0] = rope_run(0, p.half, item, per);
    r[1] = rope_run(p.half, rest, item, per);
  }
  const char *x = (const char *)p.x + ((int64_t)token * p.x_stride + skip) * in;
  char *y = (char *)p.y + ((int64_t)token * p.y_stride + skip) * out;
  Extent extent = {(const char *)p.x, (const char *)p.x + (p.last * p.x_stride + p.heads * p.d) * in};
  begin_kernel();
  int64_t row = turns && i < p.items ? rope_row(p, token) : -1;
  if (i >= p.items) r[0].left = r[1].left = 0;
#pragma unroll
  for (int k = 0; k < 2; k++) {
    Chunk chunk = {0, r[k].first, r[k].left >= per};
    if (r[k].left > 0) load_chunk(extent, x, chunk, p.d, per, in, &raw[k]);
  }
#pragma unroll
  for (int k = 0; k < tables; k++) {
    int64_t at = row * p.half + (neighbours ? r[k].first / 2 : r[k].first);
    if (row < 0 || r[k].left <= 0) continue;
    load_weights_at(p.cos, p.rows * p.half, at, count, weight_kind, &c[k]);
    load_weights_at(p.sin, p.rows * p.half, at, count, weight_kind, &s[k]);
  }
  bool asks = p.ahead && !skip && turns && token + p.ahead <= (uint64_t)p.last;
  if (asks) rope_ask(p, rope_row(p, token + p.ahead), (uint32_t)item, neighbours ? per : count, weight_kind);
#pragma unroll
  for (int k = 0; k < 2; k++) {
    cut_chunk(&raw[k], per, in);
    to_floats(raw[k].w, per, kind, f[k]);
    if (row < 0 || !neighbours) continue;
    widen_weights(count, weight_kind, &c[k], cosines);
    widen_weights(count, weight_kind, &s[k], sines);
    turn_neighbours(f[k], cosines, sines, count);
  }
  if (row >= 0 && !neighbours) {
    widen_weights(count, weight_kind, &c[0], cosines);
    widen_weights(count, weight_kind, &s[0], sines);
    turn_halves(f[0], f[1], cosines, sines, count);
  }
#pragma unroll
  for (int k = 0; k < 2; k++) {
    int bytes = r[k].left <= 0 ? 0 : r[k].left < per ? (int)r[k].left * out : per * out;
    from_floats(f[k], per, y_kind, w);
    give_piece(y + r[k].first * out, bytes, lane > 0 && item > 0, lane < 31 && r[k].left > per, per * out / 4, out, w);
  }
}

// Heads of any width at any address, through shared memory: tokens, or some heads of one, are copied there and back by whole cells
// (tile.cuh), and between the two threads take pairs one by one. That costs far fewer instructions than
// cutting chunks out of global memory and putting them together again: heads off their alignment are bound by instructions.

// Prefetches into L2 the tables' rows of the block's tokens, while these are on their way.
INLINE void rope_tables(const RopeParams &p, TilePart s, int weight_kind) {
  const int line = 128 / (weight_kind == KIND_FP32 ? 4 : 2); // elements
  int lines = ((int)p.half + line - 1) / line;
  for (int i = threadIdx.x; i < s.rows * lines; i += blockDim.x) {
    int token = i / lines;
    rope_ask(p, rope_row(p, s.row + token), (uint32_t)(i - token * lines), line, weight_kind);
  }
}

// An item of a head in shared memory, from `x` on and to `y`: pairs from `first` on, or what is only copied; a few elements one by one.
INLINE void rope_singly(const RopeParams &p, int64_t row, const char *x, char *y, int first, int count, bool turns, int kind,
                        int weight_kind, int y_kind) {
#pragma unroll 1
  for (int j = first; j < first + count; j++) {
    int a = turns && p.neighbours ? 2 * j : j, b = p.neighbours ? a + 1 : j + (int)p.half;
    float u = load_one(x, a, kind), v = turns ? load_one(x, b, kind) : 0, c = 1, s = 0;
    if (turns && row >= 0) {
      c = load_one(p.cos, row * p.half + j, weight_kind), s = load_one(p.sin, row * p.half + j, weight_kind);
      store_one(y, a, y_kind, turn_a(u, v, c, s)), store_one(y, b, y_kind, turn_b(u, v, c, s));
    } else {
      store_one(y, a, y_kind, u);
      if (turns) store_one(y, b, y_kind, v);
    }
  }
}

INLINE void rope_item(int in, int out, int neighbours, const RopeParams &p, int64_t row, char *memory, int from, int to, int item, int kind,
                      int weight_kind, int y_kind) {
  const int pairs = ROPE_TILE_PAIRS, per = 2 * pairs;
  int half = (int)p.half, d = (int)p.d;
  bool turns = item < (int)p.turns;
  int first = turns ? item * pairs : 2 * half + (item - (int)p.turns) * per, left = turns ? half : d - first;
  if (left <= 0) return;
  if (left < (turns ? pairs : per)) {
    rope_singly(p, row, memory + from, memory + to, first, left, turns, kind, weight_kind, y_kind);
    return;
  }
  int again = turns ? max(first - (half - pairs), 0) : 0; // pairs of the item before, which the head's last has, too: that stores them
  first -= again;
  int a = turns && neighbours ? 2 * first : first, b = turns && !neighbours ? first + half : a + pairs;
  uint32_t w[4];
  float f[per], c[pairs], s[pairs];
  tile_take(memory, from + a * in, pairs * in / 4, in, p.x_unit, w);
  to_floats(w, pairs, kind, f);
  tile_take(memory, from + b * in, pairs * in / 4, in, p.x_unit, w);
  to_floats(w, pairs, kind, f + pairs);
  if (turns && row >= 0) {
    load_four(p.cos, row * half + first, p.table_bytes, weight_kind, c);
    load_four(p.sin, row * half + first, p.table_bytes, weight_kind, s);
    if (neighbours) turn_neighbours(f, c, s, pairs);
    else turn_halves(f, f + pairs, c, s, pairs);
  }
  if (again) {
    int apart = neighbours ? 1 : half;
#pragma unroll
    for (int j = 1; j < pairs; j++) {
      if (j < again) continue;
      store_one(memory + to, neighbours ? a + 2 * j : a + j, y_kind, neighbours ? f[2 * j] : f[j]);
      store_one(memory + to, (neighbours ? a + 2 * j : a + j) + apart, y_kind, neighbours ? f[2 * j + 1] : f[pairs + j]);
    }
    return;
  }
  from_floats(f, pairs, y_kind, w);
  tile_give(memory, to + a * out, pairs * out / 4, out, p.y_unit, w);
  from_floats(f + pairs, pairs, y_kind, w);
  tile_give(memory, to + b * out, pairs * out / 4, out, p.y_unit, w);
}

// A block's part of x into shared memory, its cosines and sines on their way; where its part of y goes.
INLINE TilePart rope_fetch(int in, int out, int weight_kind, const RopeParams &p, char *memory, Tile *x, Tile *y) {
  TilePart s = tile_part(p.tile, (uint64_t)p.last + 1, p.heads * p.d);
  *x = tile_of(s, p.x, p.x_stride, in, p.tile.x_pitch);
  *y = tile_of(s, p.y, p.y_stride, out, p.tile.y_pitch);
  Extent extent = {(const char *)p.x, (const char *)p.x + (p.last * p.x_stride + p.heads * p.d) * in};
  begin_kernel();
  tile_fetch(*x, extent, memory, in);
  rope_tables(p, s, weight_kind);
  tile_arrived();
  return s;
}

INLINE void rope_tile(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  extern __shared__ __align__(128) char memory[];
  Tile x, y;
  TilePart s = rope_fetch(in, out, weight_kind, p, memory, &x, &y);
  int items = (int)p.head32.by, heads = s.columns / (int)p.d;
  for (int i = threadIdx.x; i < s.rows * heads * items; i += blockDim.x) {
    int head = (int)divide32((uint32_t)i, p.head32), item = i - head * items;
    int token = s.rows > 1 ? (int)divide32((uint32_t)head, p.groups32) : 0, column = (head - token * heads) * (int)p.d;
    int64_t row = rope_row(p, s.row + token);
    int from = tile_place(x, token) + column * in, to = p.tile.y_place + tile_place(y, token) + column * out;
#pragma unroll
    for (int k = 0; k < ROPE_TILE_EACH; k++)
      rope_item(in, out, neighbours, p, row, memory, from, to, item * ROPE_TILE_EACH + k, kind, weight_kind, y_kind);
  }
  __syncthreads();
  tile_send(y, memory + p.tile.y_place, out);
}

// ---- The same pair by pair, for the other types.

// One element as it is stored, and as a float: loads of a type that is known at run time, with no branch between them.
INLINE uint32_t load_raw(const void *p, int64_t i, int size) {
  return size == 4 ? ((const uint32_t *)p)[i] : ((const uint16_t *)p)[i];
}
INLINE float raw_float(uint32_t raw, int size, int kind) {
  if (size == 4) return __uint_as_float(raw);
  return kind == KIND_FP16 ? __half2float(__ushort_as_half((uint16_t)raw)) : __uint_as_float(raw << 16);
}

// Some heads in shared memory, and where they go.
typedef struct RopeHeads {
  char *memory;
  int x[ROPE_PAIRS_HEADS], y[ROPE_PAIRS_HEADS];
  int64_t row[ROPE_PAIRS_HEADS]; // of the tables; -1: it is not turned
  int count;
} RopeHeads;

// The pairs from `lane` on, one of `lanes` after the other: neighbouring threads have neighbouring pairs, so that accesses of any size at any
// address lie next to each other. Of all heads a pair is loaded before the first is used.
INLINE void rope_turn(int in, int weight, int held, int neighbours, const RopeParams &p, const RopeHeads &h, int lane, int kind,
                      int weight_kind, int y_kind) {
  const int half = (int)p.half;
#pragma unroll 1
  for (int j = lane; j < half; j += p.lanes) {
    int a = neighbours ? 2 * j : j, b = neighbours ? a + 1 : j + half;
    uint32_t u[ROPE_PAIRS_HEADS], v[ROPE_PAIRS_HEADS], c[ROPE_PAIRS_HEADS], s[ROPE_PAIRS_HEADS];
#pragma unroll
    for (int k = 0; k < held; k++) {
      if (k >= h.count) break;
      u[k] = load_raw(h.memory + h.x[k], a, in), v[k] = load_raw(h.memory + h.x[k], b, in);
      if (h.row[k] >= 0) c[k] = load_raw(p.cos, h.row[k] * half + j, weight), s[k] = load_raw(p.sin, h.row[k] * half + j, weight);
    }
#pragma unroll
    for (int k = 0; k < held; k++) {
      if (k >= h.count) break;
      float x = raw_float(u[k], in, kind), y = raw_float(v[k], in, kind), first = x, second = y;
      if (h.row[k] >= 0) {
        float cosine = raw_float(c[k], weight, weight_kind), sine = raw_float(s[k], weight, weight_kind);
        first = turn_a(x, y, cosine, sine), second = turn_b(x, y, cosine, sine);
      }
      store_one(h.memory + h.y[k], a, y_kind, first);
      store_one(h.memory + h.y[k], b, y_kind, second);
    }
  }
}

INLINE void rope_heads(int in, int held, int neighbours, const RopeParams &p, const RopeHeads &h, int lane, int kind, int weight_kind, int y_kind) {
  if (in == 4 || weight_kind == KIND_FP32) rope_turn(in, 4, held, neighbours, p, h, lane, kind, KIND_FP32, y_kind);
  else rope_turn(in, 2, held, neighbours, p, h, lane, kind, kind, y_kind);
#pragma unroll
  for (int k = 0; k < held; k++) {
    if (k >= h.count) break;
#pragma unroll 1
    for (int j = 2 * (int)p.half + lane; j < (int)p.d; j += p.lanes)
      store_one(h.memory + h.y[k], j, y_kind, raw_float(load_raw(h.memory + h.x[k], j, in), in, kind));
  }
}

INLINE void rope_pairs(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  extern __shared__ __align__(128) char memory[];
  Tile x, y;
  TilePart s = rope_fetch(in, out, weight_kind, p, memory, &x, &y);
  const int held = in == 4 && out == 4 ? 1 : ROPE_PAIRS_HEADS; // of fp32 one is enough, and more blocks are better
  int heads = s.columns / (int)p.d, lane = threadIdx.x & (p.lanes - 1), step = ROPE_TILE_THREADS / p.lanes;
#pragma unroll 1
  for (int first = threadIdx.x / p.lanes; first < s.rows * heads; first += held * step) {
    RopeHeads h;
    h.memory = memory;
    h.count = min(held, (s.rows * heads - first + step - 1) / step);
#pragma unroll
    for (int k = 0; k < held; k++) {
      if (k >= h.count) break;
      int head = first + k * step, token = s.rows > 1 ? (int)divide32((uint32_t)head, p.groups32) : 0;
      int column = (head - token * heads) * (int)p.d;
      h.x[k] = tile_place(x, token) + column * in;
      h.y[k] = p.tile.y_place + tile_place(y, token) + column * out;
      h.row[k] = rope_row(p, s.row + token);
    }
    rope_heads(in, held, neighbours, p, h, lane, kind, weight_kind, y_kind);
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
#define ROPE_KERNEL(name, call, in, out, neighbours, blocks)                                                 \
  KERNEL __launch_bounds__(ROPE_THREADS, blocks) sol_rope_##name##in##_##out(const __grid_constant__ RopeParams p) { \
    ROPE_BY_KIND(call, in, out, neighbours)                                                                  \
  }
#define ROPE(in, out)                                                                                        \
  ROPE_KERNEL(, rope_chunks, in, out, 0, 12)                                                                 \
  ROPE_KERNEL(neighbours_, rope_chunks, in, out, 1, 12)                                                      \
  ROPE_KERNEL(any_, rope_any, in, out, 0, 5)                                                   \
  ROPE_KERNEL(any_neighbours_, rope_any, in, out, 1, 5)
#include "rope.def"

// 16-bit types alone: fp32 heads are no faster so, where accesses off their alignment meet in banks.
KERNEL __launch_bounds__(ROPE_TILE_THREADS, 9) sol_rope_tile(const __grid_constant__ RopeParams p) {
  ROPE_BY_KIND(rope_tile, 2, 2, p.neighbours)
}

#define ROPE_PAIRS(in, out)                                                                                       \
  KERNEL __launch_bounds__(ROPE_TILE_THREADS, in == 4 && out == 4 ? 9 : 6) sol_rope_pairs_##in##_##out(const __grid_constant__ RopeParams p) { \
    if (p.neighbours) {                                                                                      \
      ROPE_BY_KIND(rope_pairs, in, out, 1)                                                                    \
    } else {                                                                                                 \
      ROPE_BY_KIND(rope_pairs, in, out, 0)                                                                    \
    }                                                                                                        \
  }
ROPE_PAIRS(2, 4)
ROPE_PAIRS(4, 2)
ROPE_PAIRS(4, 4)
