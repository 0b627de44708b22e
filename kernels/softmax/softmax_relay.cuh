// Long rows, read twice: once for their sums, and again, out of L2, to be written. Some blocks have parts of rows to sum, and between them in the grid are blocks that
// write parts of rows some MB before: by then their sums are there, and their elements still in L2. So no block waits for others of its row, and reads and writes
// mix all the time.
//
// Sums of parts are posted at the start of the row's output (parts.cuh). Each block that writes counts itself in the first post once it has read them all; the last of a row to do so
// writes that start. A block waits only for blocks before it in the grid, and those wait for none.
#ifndef SOL_KERNELS_SOFTMAX_RELAY_CUH
#define SOL_KERNELS_SOFTMAX_RELAY_CUH

#include "parts.cuh"
#include "softmax/softmax_apart.cuh"
#include "softmax/softmax_row.cuh"

#if __CUDA_ARCH__ >= 800
enum { RELAY_EACH = SOFTMAX_RELAY_CHUNKS / SOFTMAX_RELAY_THREADS, RELAY_WARPS = SOFTMAX_RELAY_THREADS / 32 };

typedef struct RelayShared {
  RowFold fold;
  float2 posts[SOFTMAX_RELAY_PARTS / 32];
} RelayShared;

// A part of a row; `sums`: its sum, or its output.
typedef struct Relay {
  uint64_t row;
  uint32_t part;
  bool sums;
} Relay;

INLINE Relay relay_of_block(const SoftmaxParams *p) {
  uint64_t part;
  Relay r;
  split((uint64_t)blockIdx.y * gridDim.x + blockIdx.x, 2 * p->parts.parts, &r.row, &part);
  r.part = (uint32_t)part / 2, r.sums = part % 2 == 0;
  if (!r.sums) r.row -= p->lag; // of a row that is not there: beyond the last
  return r;
}

INLINE uint64_t relay_policy(int which) {
  uint64_t policy;
  if (which == 2) asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  else if (which == 1) asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

// Chunks of a row from one of them on, and where they are written. A warp has RELAY_SEGMENT of them, its lanes every 32nd.
typedef struct RelayPiece {
  const char *x;
  Target y;
  int count, skip; // chunks; of them, not to be written yet: the first
  int label;       // the label's place among the piece's elements, if it is there
} RelayPiece;

INLINE RelayPiece relay_piece(const SoftmaxParams *p, Relay at, const Span &x, int in) {
  const int per = 16 / in, out = p->y_kind == KIND_FP32 ? 4 : 2;
  int64_t first = (int64_t)at.part * p->parts.length;
  RelayPiece a = {x.body + first * 16, {(char *)p->y + (int64_t)at.row * p->y_stride + (x.head + first * per) * out, p->y_kind, 1}, 0, 0, -1};
  a.count = (int)max(min(p->parts.length, x.chunks - first), (int64_t)0);
  a.skip = at.part == 0 ? p->parts.front : 0;
  return a;
}

// This thread's chunk number k of its piece.
INLINE int relay_chunk(int k) { return (threadIdx.x / 32 * RELAY_EACH + k) * 32 + threadIdx.x % 32; }

INLINE Vec relay_load(const char *from, int chunk, int count, uint32_t rest, uint64_t policy) {
  Vec v;
  v.v = make_uint4(rest, rest, rest, rest);
  if (chunk < count)
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(v.u[0]), "=r"(v.u[1]), "=r"(v.u[2]), "=r"(v.u[3])
                 : "l"(__cvta_generic_to_global(from + chunk * 16)), "l"(policy));
  return v;
}

// Where y's elements are twice as large, a lane has half a chunk from each half of what the warp's lanes have in turn k, so that a store has neighbours.
INLINE int relay_half(int k, int half) { return 2 * (relay_chunk(k) - (int)threadIdx.x % 32) + 32 * half + threadIdx.x % 32; }
INLINE Vec relay_load_halves(const char *from, int k, int count, uint64_t policy) {
  Vec v;
  v.v = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int half = 0; half < 2; half++)
    if (relay_half(k, half) < 2 * count)
      asm volatile("ld.global.L1::no_allocate.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
                   : "=r"(v.u[2 * half]), "=r"(v.u[2 * half + 1])
                   : "l"(__cvta_generic_to_global(from + relay_half(k, half) * 8)), "l"(policy));
  return v;
}

INLINE float relay_top(const Vec *v, int in, int kind) {
  uint32_t top[4];
#pragma unroll
  for (int j = 0; j < 4; j++) {
    top[j] = v[0].u[j];
#pragma unroll
    for (int k = 1; k < RELAY_EACH; k++)
      top[j] = in == 2 ? larger2(top[j], v[k].u[j], kind)
                       : __float_as_uint(fmaxf(__uint_as_float(top[j]), __uint_as_float(v[k].u[j])));
  }
  if (in == 2) {
    float2 two = widen2(larger2(larger2(top[0], top[1], kind), larger2(top[2], top[3], kind), kind), kind);
    return fmaxf(two.x, two.y);
  }
  return fmaxf(fmaxf(__uint_as_float(top[0]), __uint_as_float(top[1])), fmaxf(__uint_as_float(top[2]), __uint_as_float(top[3])));
}

INLINE void relay_sum(const SoftmaxParams *p, Relay at, const Span &x, const Vec *v, RelayShared *shared, unsigned long long *posts,
                      int in, int kind) {
  const RowShape s = {SOFTMAX_RELAY_THREADS, 1, 1, 1, in, in, 1};
  const int t = threadIdx.x;
  float edge = at.part == 0 && t < x.edges ? load_one(x.at, span_edge(&x, t), kind) : -INFINITY;
  float top = fmaxf(edge, relay_top(v, in, kind)), mine = start_of(top);
  float sums[2] = {ex2((edge - mine) * LOG2E), 0};
#pragma unroll
  for (int k = 0; k < RELAY_EACH; k++) {
    float f[8];
    widen(&v[k], kind, in, f);
#pragma unroll
    for (int j = 0; j < 16 / in; j++) sums[j % 2] += ex2((f[j] - mine) * LOG2E);
  }
  float2 all = row_fold(s, &shared->fold, make_float2(top, sums[0] + sums[1]), FOLD_SOFTMAX);
  if (t == 0) post(p->parts, posts, at.part, all);
}

// One post, once it is there. The first has the count of its readers beside its sign.
INLINE float2 relay_take(const SoftmaxParams *p, const unsigned long long *posts, uint32_t part) {
  unsigned long long x, y;
  do {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(x), "=l"(y)
                 : "l"(__cvta_generic_to_global(posts + 2 * part))
                 : "memory");
  } while ((uint32_t)x != p->parts.sign[0] || (uint32_t)y - p->parts.sign[1] > (part ? 0 : p->parts.parts));
  return make_float2(__uint_as_float((uint32_t)(x >> 32)), __uint_as_float((uint32_t)(y >> 32)));
}

// The row's largest and sum, for every thread.
INLINE float2 relay_row(const SoftmaxParams *p, const unsigned long long *posts, RelayShared *shared) {
  const int t = threadIdx.x, used = (int)(p->parts.parts + 31) / 32; // warps' worth of posts
  const float2 none = make_float2(-INFINITY, 0);
#pragma unroll 1
  for (int i = t; i < 32 * used; i += SOFTMAX_RELAY_THREADS) {
    float2 v = lanes_fold(i < (int)p->parts.parts ? relay_take(p, posts, i) : none, FOLD_SOFTMAX, 32);
    if (t % 32 == 0) shared->posts[i / 32] = v;
  }
  __syncthreads();
  if (used == 1) return shared->posts[0];
  return lanes_fold(t % 16 < used ? shared->posts[t % 16] : none, FOLD_SOFTMAX, 16);
}

// Counts this block as one that has read the posts; true for the row's last.
INLINE bool relay_last(const SoftmaxParams *p, unsigned long long *posts) {
  uint32_t before = 0;
  if (threadIdx.x == 0)
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
                 : "=r"(before)
                 : "l"(__cvta_generic_to_global(posts + 1))
                 : "memory");
  return __shfl_sync(~0u, before, 0) - p->parts.sign[1] == p->parts.parts - 1;
}

INLINE Label relay_label(const SoftmaxParams *p, uint64_t row, const Span &x, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS) return l;
  l.at = target_at(p, row);
  if (l.at < 0 || l.at >= p->n) l.at = NO_LABEL;
  else l.x = load_one(x.at, l.at, kind);
  return l;
}
INLINE void relay_weigh(const SoftmaxParams *p, Relay at, Label *l, float2 row, Finish *z) {
  if (!LABELS) return;
  float below = l->x - row.x;
  z->times = l->at == NO_LABEL ? 0 : z->times * p->scale;
  if (at.part == 0 && threadIdx.x == 0) p->loss[at.row] = l->at == NO_LABEL ? 0 : logf(row.y) - below;
  l->x = (__fdividef(ex2(below * LOG2E), row.y) - 1) * p->scale;
}

// What a thread has of a piece, where chunks of y are aligned as x's are.
INLINE void relay_write(const SoftmaxParams *p, const RelayPiece &a, int in, int kind, const Vec *v, float2 row, Finish z, float gradient) {
  const int per = 16 / in;
#pragma unroll
  for (int k = 0; k < RELAY_EACH; k++) {
    int i = relay_chunk(k);
    float f[8];
    if (i < a.skip || i >= a.count) continue;
    widen(&v[k], kind, in, f);
    finish_chunk(p, a.y, i * per, in, f, row, z);
    if (LABELS && a.label / per == i && a.label >= 0) store_one(a.y.at, a.label, a.y.kind, gradient);
  }
}

// The same where they are not, or elements have another size: by aligned cells (softmax_apart.cuh). Every thread of the row knows the label's gradient.
INLINE void relay_write_apart(const SoftmaxParams *p, const RelayPiece &a, int in, int out, int kind, const Vec *v, float2 row, Finish z,
                              float gradient) {
  const int units = in < out ? 2 : 1, per = 16 / in / units, words = per * out / 4, y_kind = out == 4 ? KIND_FP32 : p->y_kind;
  const int lane = threadIdx.x % 32, each = per * units, start = relay_chunk(0) - lane;
  int begin = max(start, a.skip) * each * out, end = min(start + 32 * RELAY_EACH, a.count) * each * out;
  int column = start * each + lane * per;
  ApartCells c = apart_cells(a.y.at, begin, end, column * out, lane, 32, words);
#pragma unroll
  for (int k = 0; k < RELAY_EACH * units; k++, column += 32 * per) {
    float f[8];
    uint32_t w[4];
    widen(&v[k / units], kind, in, f);
    float *g = f + k % units * per;
#pragma unroll
    for (int j = 0; j < per; j++) g[j] = LABELS && column + j == a.label ? gradient : result(g[j], row, z, p->log);
    from_floats(g, per, y_kind, w);
    apart_put(c, column * out, words, out, w);
  }
  apart_end(c, column * out, words, out);
}

// The start of a row, where the posts were, and its single elements: by a warp.
INLINE void relay_front(const SoftmaxParams *p, Relay at, int in, int kind, float2 row, Finish z, Label label) {
  const int t = threadIdx.x;
  RowPlace place = {at.row, t, 32};
  Span x = row_span(p, place, in);
  char *y = (char *)p->y + (int64_t)at.row * p->y_stride;
  int front = x.head + (int)min((int64_t)p->parts.front, x.chunks) * (16 / in), tail = x.edges - x.head;
#pragma unroll 1
  for (int i = t; i < front + tail; i += 32) {
    int64_t column = i < front ? i : x.n - tail + (i - front);
    float f = load_one(x.at, column, kind);
    store_one(y, column, p->y_kind, LABELS && column == label.at ? label.x : result(f, row, z, p->log));
  }
}

// apart: y is not aligned as x is, or its elements have another size.
INLINE void softmax_relay(const SoftmaxParams *p, int in, bool apart, RelayShared *shared, int kind) {
  const int t = threadIdx.x, per = 16 / in;
  Relay at = relay_of_block(p);
  if (at.row >= p->m) return;
  RowPlace place = {at.row, t, SOFTMAX_RELAY_THREADS};
  Span x = row_span(p, place, in);
  RelayPiece a = relay_piece(p, at, x, in);
  unsigned long long *posts = posts_of((char *)p->y + (int64_t)at.row * p->y_stride);
  uint64_t policy = relay_policy(at.sums ? p->flavour / 10 : p->flavour % 10);
  bool halves = apart && in == 2 && p->y_kind == KIND_FP32 && !at.sums;
  Vec v[RELAY_EACH];
#pragma unroll
  for (int k = 0; k < RELAY_EACH; k++)
    v[k] = halves ? relay_load_halves(a.x, k, a.count, policy) : relay_load(a.x, relay_chunk(k), a.count, span_lowest(kind), policy);
  if (at.sums) {
    relay_sum(p, at, x, v, shared, posts, in, kind);
    return;
  }
  Label label = relay_label(p, at.row, x, kind);
  if (LABELS) {
    int64_t place = label.at - x.head - (int64_t)at.part * p->parts.length * per;
    a.label = label.at >= 0 && place >= 0 && place < a.count * per ? (int)place : -1;
  }
  float2 row = relay_row(p, posts, shared);
  bool last = t < 32 && relay_last(p, posts);
  Finish z = finish_of(row, row.x, p->log);
  relay_weigh(p, at, &label, row, &z);
  if (!apart) relay_write(p, a, in, kind, v, row, z, label.x);
  else if (p->y_kind == KIND_FP32) relay_write_apart(p, a, in, 4, kind, v, row, z, label.x);
  else relay_write_apart(p, a, in, 2, kind, v, row, z, label.x);
  if (last) relay_front(p, at, in, kind, row, z, label);
}
#endif

#endif
