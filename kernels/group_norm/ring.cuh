// Group norm of groups that all SMs share, one after another: a block has one part of each, and keeps as much as fits its shared memory. While it waits for the sums of others it loads what comes next.
//
// Shared memory is a ring of slots. One warp fills slots (cp.async.bulk), one collects the sums of a group (parts.cuh), the others sum
// up a part when it has come and write it when the sums are there. A part of more slots than there are is read twice but for what they hold.
//
// The last block of the grid writes the start of each group, where the others exchange sums, and what they gave up.
#ifndef SOL_KERNELS_GROUP_NORM_RING_CUH
#define SOL_KERNELS_GROUP_NORM_RING_CUH

#include "hopper.cuh"
#include "pieces.cuh"

enum { RING_EACH = 2 };   // chunks of a slot that a thread has
enum { RING_READY = 4 };  // groups whose sums are known before they are needed, at most
enum { RING_WARPS = 32 };

typedef struct RingShared {
  uint64_t full[RING_SLOTS], empty[RING_SLOTS], ready[RING_READY], taken[RING_READY];
  float warps[2][RING_WARPS][3]; // count, mean, squares
  float2 stats[RING_READY];      // mean, and what elements are multiplied by
  bool there[RING_READY];
} RingShared;

INLINE void barrier_arrive_here(uint64_t *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

// A place in the ring.
typedef struct Turn {
  int slot;
  uint32_t parity;
} Turn;
INLINE void turn_on(Turn &t, int by, int slots) {
  for (t.slot += by; t.slot >= slots; t.slot -= slots) t.parity ^= 1;
}

// What a block has of a group.
typedef struct RingPart {
  Span x;
  char *y;
  int turns, again; // slots that it takes; of them, how many are read twice, the first
} RingPart;

INLINE RingPart ring_part(const GroupNormParams &p, uint64_t row, uint32_t part, int in, int threads) {
  RingPart a;
  int64_t at = (int64_t)row * p.n;
  int head = (int)(-(uint32_t)((uintptr_t)p.x + at * in) & 15) / in;
  int64_t begin = part_begin(p.parts, part, head, p.n), end = part_begin(p.parts, part + 1, head, p.n);
  a.x = span_of((const char *)p.x + (at + begin) * in, end - begin, in);
  a.y = (char *)p.y + (at + begin) * (p.y_kind == KIND_FP32 ? 4 : 2);
  a.turns = (int)((uint32_t)(a.x.chunks + RING_EACH * threads - 1) / (uint32_t)(RING_EACH * threads));
  a.again = max(0, a.turns - p.turns);
  return a;
}

INLINE void bulk_load(void *to, const void *from, int bytes, uint64_t *bar, uint64_t policy) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                   shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(bar)), "l"(policy)
               : "memory");
}

// ---- The warp that loads

INLINE void ring_load(const GroupNormParams &p, RingShared *s, uint4 *memory, int in, int threads) {
  if (threadIdx.x % 32) return;
  Turn t = {0, 1};
  int slot_chunks = RING_EACH * threads;
  uint64_t keep, first;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  for (uint64_t row = 0; row < p.parts.rows; row++) {
    RingPart a = ring_part(p, row, blockIdx.x, in, threads);
    for (int k = 0; k < a.turns + a.again; k++) {
      int turn = k < a.turns ? k : a.turns + a.again - 1 - k; // what was read last may still be in L2
      int chunks = min(slot_chunks, (int)a.x.chunks - turn * slot_chunks);
      barrier_wait(&s->empty[t.slot], t.parity);
      barrier_expect(&s->full[t.slot], chunks * 16);
      bool twice = k < a.again && k >= a.again - p.remember;
      bulk_load(memory + t.slot * slot_chunks, a.x.body + (int64_t)turn * slot_chunks * 16, chunks * 16, &s->full[t.slot], twice ? keep : first);
      turn_on(t, 1, p.turns);
    }
    if (p.ahead && row + 1 < p.parts.rows) {
      RingPart b = ring_part(p, row + 1, blockIdx.x, in, threads);
      int bytes = (int)min((int64_t)p.ahead, b.x.chunks * 16);
      if (bytes) asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(b.x.body)), "r"(bytes) : "memory");
    }
  }
}

// ---- The warp that collects sums

// Mean and squares of a group, of all its posts: by a warp. False: they have not come.
INLINE bool ring_take(const GroupNormParams &p, const unsigned long long *posts, int head, int polls, Stats *all) {
  enum { MOST = RING_PARTS / 32 };
  int lane = threadIdx.x % 32;
  Stats s[MOST];
  float mean = 0, squares = 0;
  bool there = true;
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    uint32_t part = i * 32 + lane;
    float2 v = make_float2(0, 0);
    bool got = part >= p.parts.parts;
    for (int k = 0; !got && (!polls || k < polls); k++) got = post_get(p.parts, posts, part, &v);
    there = there && got;
    s[i] = part_stats(p, part, head, v);
    mean += s[i].mean * (s[i].count / (float)p.n);
  }
  all->mean = warp_sum(mean);
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    float apart = s[i].mean - all->mean;
    if (s[i].count > 0) squares += fmaf(s[i].count * apart, apart, s[i].squares);
  }
  all->squares = warp_sum(squares);
  all->count = (float)p.n;
  return __all_sync(~0u, there);
}

INLINE float2 ring_scale(const GroupNormParams &p, Stats s) {
  return make_float2(s.mean, rsqrtf(s.squares / (float)p.n + p.eps));
}

INLINE void ring_collect(const GroupNormParams &p, RingShared *s, int in) {
  int at = 0;
  uint32_t parity = 1;
  for (uint64_t row = 0; row < p.parts.rows; row++) {
    int head;
    unsigned long long *posts = posts_of(group_of(p, row, in, &head));
    Stats all;
    barrier_wait(&s->taken[at], parity);
    bool there = ring_take(p, posts, head, p.parts.polls, &all);
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      part_tell(p.parts, posts, blockIdx.x, there ? PART_READ : PART_LEFT);
      s->stats[at] = ring_scale(p, all), s->there[at] = there;
      barrier_arrive_here(&s->ready[at]);
    }
    if (++at == RING_READY) at = 0, parity ^= 1;
  }
}

// ---- The others

INLINE Stats warp_stats(Stats s) {
  Stats all;
  all.count = warp_sum(s.count);
  float over = all.count > 0 ? __fdividef(1, all.count) : 0;
  all.mean = warp_sum(s.mean * (s.count * over));
  float apart = s.mean - all.mean;
  all.squares = warp_sum(s.count > 0 ? fmaf(s.count * apart, apart, s.squares) : 0);
  return all;
}

// Weights and biases of a part's channels.
INLINE void ring_affines(const GroupNormParams &p, float2 *affines, uint64_t row, int64_t begin, int64_t end, int threads) {
  uint64_t first = divide((uint64_t)begin, p.divider), group, batch;
  split(row, p.groups, &batch, &group);
  int channels = (int)(divide((uint64_t)(end - 1), p.divider) - first) + 1;
  for (int i = threadIdx.x; i < channels; i += threads) affines[i] = affine_load(p, group * p.channels + first + i);
}

INLINE void ring_chunk(const GroupNormParams &p, const Piece &a, Channel &c, int chunk, Vec v, int kind, int in) {
  const int per = 16 / in;
  int column = a.x.head + chunk * per;
  float f[8];
  widen(&v, kind, in, f);
  if (column >= c.end || column < c.end - (int)p.divider32.by) c = channel_of(p, a, column);
  finish_chunk(a, c, per, f, column);
  put_chunk(p, per, a.y, column, f);
}

INLINE Vec slot_chunk(const uint4 *memory, Turn t, int threads, int i) {
  Vec v;
  v.v = memory[(t.slot * RING_EACH + i) * threads + threadIdx.x];
  return v;
}

INLINE void slot_leave(RingShared *s, Turn t) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive_here(&s->empty[t.slot]);
}

// Sums up a part and posts them.
INLINE void ring_stats(const GroupNormParams &p, RingShared *s, const uint4 *memory, float2 *affines, uint64_t row, Turn &t, int in, int kind, int threads) {
  RingPart a = ring_part(p, row, blockIdx.x, in, threads);
  bool has_edge = (int)threadIdx.x < a.x.edges;
  float edge = has_edge ? load_one(a.x.at, span_edge(&a.x, threadIdx.x), kind) : 0;
  int64_t begin = (a.x.at - (const char *)p.x) / in - (int64_t)row * p.n;
  ring_affines(p, affines, row, begin, begin + a.x.n, threads);
  Running r = {edge, {0, 0}, {0, 0}};
  int count = 0;
  for (int k = 0; k < a.turns; k++, turn_on(t, 1, p.turns)) {
    barrier_wait(&s->full[t.slot], t.parity);
    int at = k * RING_EACH * threads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < RING_EACH; i++) {
      if (at + i * threads < (int)a.x.chunks) {
        Vec v = slot_chunk(memory, t, threads, i);
        if (k == 0 && i == 0) r.middle = chunk_mean(v, kind, in);
        run_chunk(r, v, kind, in), count++;
      }
    }
    if (k < a.again) slot_leave(s, t);
  }
  turn_on(t, a.again, p.turns);
  if (has_edge) run_one(r, edge);
  Stats mine = warp_stats(run_end(r, count * (16 / in) + has_edge));
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float(*room)[3] = s->warps[row % 2];
  if (lane == 0) room[warp][0] = mine.count, room[warp][1] = mine.mean, room[warp][2] = mine.squares;
  named_sync(1, threads);
  if (warp == 0) {
    Stats of = {0, 0, 0};
    if (lane < threads / 32) of.count = room[lane][0], of.mean = room[lane][1], of.squares = room[lane][2];
    of = warp_stats(of);
    int head;
    if (lane == 0) post(p.parts, posts_of(group_of(p, row, in, &head)), blockIdx.x, make_float2(of.mean, of.squares));
  }
}

// Writes a part: what is in the ring, then what is read again.
INLINE void ring_put(const GroupNormParams &p, RingShared *s, const uint4 *memory, float2 *affines, uint64_t row, Turn &t, int in, int kind, int threads) {
  RingPart a = ring_part(p, row, blockIdx.x, in, threads);
  int at = (int)(row % RING_READY);
  barrier_wait(&s->ready[at], (uint32_t)(row / RING_READY) & 1);
  float2 by = s->stats[at];
  bool there = s->there[at];
  __syncwarp();
  if (threadIdx.x % 32 == 0) barrier_arrive_here(&s->taken[at]);
  Piece piece;
  piece.x = a.x, piece.y = a.y, piece.affines = affines, piece.mean = by.x, piece.over = by.y;
  int64_t begin = (a.x.at - (const char *)p.x) / in - (int64_t)row * p.n;
  uint64_t first = divide((uint64_t)begin, p.divider);
  piece.first_end = (int)min((int64_t)((first + 1) * p.divider.by) - begin, (int64_t)INT32_MAX);
  int front = blockIdx.x ? 0 : p.parts.front;
  Channel c = {0, 0, {0, 0}};
  turn_on(t, a.again, p.turns);
  for (int k = 0; k < a.turns; k++, turn_on(t, 1, p.turns)) {
    int turn = k < a.turns - a.again ? a.again + k : a.turns - 1 - k;
    if (k >= a.turns - a.again) barrier_wait(&s->full[t.slot], t.parity);
    Vec v[RING_EACH];
#pragma unroll
    for (int i = 0; i < RING_EACH; i++)
      if ((turn * RING_EACH + i) * threads + (int)threadIdx.x < (int)a.x.chunks) v[i] = slot_chunk(memory, t, threads, i);
    slot_leave(s, t);
#pragma unroll
    for (int i = 0; i < RING_EACH; i++) {
      int chunk = (turn * RING_EACH + i) * threads + threadIdx.x;
      if (there && chunk >= front && chunk < (int)a.x.chunks) ring_chunk(p, piece, c, chunk, v[i], kind, in);
    }
  }
  if (there && (int)threadIdx.x < a.x.edges && (!front || (int)threadIdx.x >= a.x.head))
    put_edge(p, piece, load_one(a.x.at, span_edge(&a.x, threadIdx.x), kind));
}

INLINE void ring_work(const GroupNormParams &p, RingShared *s, uint4 *memory, int in, int kind, int threads) {
  float2 *affines = (float2 *)(memory + p.turns * RING_EACH * threads);
  Turn in_stats = {0, 0}, in_put = {0, 0};
  uint64_t rows = p.parts.rows, before = p.depth - 1;
  for (uint64_t row = 0; row < rows + before; row++) {
    if (row < rows) ring_stats(p, s, memory, affines + row % (before + 2) * p.affines, row, in_stats, in, kind, threads);
    if (row >= before)
      ring_put(p, s, memory, affines + (row - before) % (before + 2) * p.affines, row - before, in_put, in, kind, threads);
  }
}

// ---- The last block

// Columns begin to end - 1 of a group, by a warp.
INLINE void ring_range(const GroupNormParams &p, uint64_t row, int64_t begin, int64_t end, float2 by, int in, int kind) {
  const int per = 16 / in;
  int64_t at = (int64_t)row * p.n + begin;
  Span x = span_of((const char *)p.x + at * in, end - begin, in);
  char *y = (char *)p.y + at * (p.y_kind == KIND_FP32 ? 4 : 2);
  uint64_t group, batch;
  split(row, p.groups, &batch, &group);
  group *= p.channels;
  int lane = threadIdx.x % 32;
#pragma unroll 1
  for (int64_t i = lane; i < x.chunks; i += 32) {
    Vec v = span_load(&x, i, 0);
    int64_t column = x.head + i * per;
    uint64_t inside = divide((uint64_t)(begin + column), p.divider);
    int left = (int)min((int64_t)((inside + 1) * p.divider.by) - begin - column, (int64_t)per);
    float2 a = affine_load(p, group + inside), b = left < per ? affine_load(p, group + inside + 1) : a;
    float f[8];
    widen(&v, kind, in, f);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - by.x, (j < left ? a.x : b.x) * by.y, j < left ? a.y : b.y);
    put_chunk(p, per, y + column * (p.y_kind == KIND_FP32 ? 4 : 2), 0, f);
  }
  if (lane < x.edges) {
    int64_t column = span_edge(&x, lane);
    float2 a = affine_load(p, group + divide((uint64_t)(begin + column), p.divider));
    store_one(y, column, p.y_kind, fmaf(load_one(x.at, column, kind) - by.x, a.x * by.y, a.y));
  }
}

INLINE void ring_last(const GroupNormParams &p, int in, int kind) {
  int lane = threadIdx.x % 32;
  for (uint64_t row = threadIdx.x / 32; row < p.parts.rows; row += blockDim.x / 32) {
    int head;
    unsigned long long *posts = posts_of(group_of(p, row, in, &head));
    uint32_t left = 0; // parts i * 32 + lane
    for (uint32_t i = 0; i * 32 + lane < p.parts.parts; i++)
      if (part_ask(p.parts, posts, i * 32 + lane) == PART_LEFT) left |= 1u << i;
    __syncwarp();
    Stats all;
    ring_take(p, posts, head, 0, &all);
    float2 by = ring_scale(p, all);
    for (uint32_t part = 0; part < p.parts.parts; part++) {
      if (!(__shfl_sync(~0u, left, part % 32) >> part / 32 & 1)) continue;
      int64_t begin = part ? part_begin(p.parts, part, head, p.n) : head + p.parts.front * (16 / in);
      ring_range(p, row, begin, part_begin(p.parts, part + 1, head, p.n), by, in, kind);
    }
    ring_range(p, row, 0, head + p.parts.front * (16 / in), by, in, kind);
  }
}

INLINE void group_ring(const GroupNormParams &p, int in, int kind, RingShared *s, uint4 *memory) {
  int threads = (int)blockDim.x - 64, warp = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    for (int i = 0; i < p.turns; i++) barrier_init(&s->full[i], 1), barrier_init(&s->empty[i], threads / 32);
    for (int i = 0; i < RING_READY; i++) barrier_init(&s->ready[i], 1), barrier_init(&s->taken[i], threads / 32);
    barrier_init_done();
  }
  __syncthreads();
  begin_kernel();
  if (blockIdx.x == p.parts.parts) ring_last(p, in, kind);
  else if (warp == threads / 32) ring_load(p, s, memory, in, threads);
  else if (warp > threads / 32) ring_collect(p, s, in);
  else ring_work(p, s, memory, in, kind, threads);
}
#endif
