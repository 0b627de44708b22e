// Group norm of groups that a block, a cluster, or blocks all over the GPU (parts.cuh) hold in shared memory, or as much of it as there is space for. Weights and biases are
// in shared memory, too. The output is aligned as the input is, and channels have at least a chunk's elements.
#ifndef SOL_KERNELS_GROUP_NORM_PIECES_CUH
#define SOL_KERNELS_GROUP_NORM_PIECES_CUH

#include "group_norm.h"

#include "elementwise.cuh"
#include "funnel.cuh"
#include "parts.cuh"
#include "row.cuh"
#include "stats.cuh"

INLINE float2 affine_load(const GroupNormParams &p, uint64_t channel) {
  return make_float2(p.weight ? load_one(p.weight, (int64_t)channel, p.weight_kind) : 1,
                     p.bias ? load_one(p.bias, (int64_t)channel, p.weight_kind) : 0);
}

// A piece of a group, which is a whole group or one of its parts: elements, and weights and biases of its channels in shared memory. Channels have
// a chunk's elements at least, so a chunk has those of two at most. Columns count from the piece's start.
typedef struct Piece {
  Span x;
  char *y;
  uint4 *mine; // this thread's chunks in shared memory, blockDim.x apart
  int of_group;         // chunks that a thread copies as a group
  int count, kept, own; // of its chunks; of those that are in shared memory; of the next, in registers: the others are read again
  float2 *affines; // weight and bias of the channels from the first on
  int first_end;   // column where the second channel starts
  float mean, over;
} Piece;

typedef struct GroupShared {
  StatsRoom room[2];
  ClusterExchange exchange;
  bool left[PARTS_MOST];
} GroupShared;

// Copies are in so many groups: the first are summed while others are on their way.
enum { PIECE_GROUPS = 4 };

// Chunks that a thread has in registers. Constant indices throughout, or they would not be in registers.
typedef struct Own {
  Vec v[GROUP_NORM_OWN];
} Own;

// Columns begin to end - 1 of the group. memory: for chunks, then for weights and biases. own: whether a thread may have chunks in registers.
INLINE Piece piece_of(const GroupNormParams &p, uint64_t row, int64_t begin, int64_t end, int in, bool own, uint4 *memory) {
  Piece a;
  int64_t at = (int64_t)row * p.n + begin;
  a.x = span_of((const char *)p.x + at * in, end - begin, in);
  a.y = (char *)p.y + at * (p.y_kind == KIND_FP32 ? 4 : 2);
  a.mine = memory + threadIdx.x;
  a.affines = (float2 *)(memory + p.turns * (int)blockDim.x);
  int chunks = (int)a.x.chunks - (int)threadIdx.x;
  a.count = chunks > 0 ? (int)((uint32_t)(chunks - 1) / blockDim.x) + 1 : 0;
  a.kept = min(a.count, p.turns), a.of_group = (p.turns + PIECE_GROUPS - 1) / PIECE_GROUPS;
  a.own = own ? min(a.count - a.kept, GROUP_NORM_OWN) : 0;
  return a;
}

INLINE int group_end(const Piece &a, int group) { return min(a.kept, (group + 1) * a.of_group); }

INLINE void piece_fill(const Piece &a) {
  const uint4 *from = (const uint4 *)a.x.body + threadIdx.x;
#pragma unroll 1
  for (int group = 0, k = 0; group < PIECE_GROUPS; group++) {
#pragma unroll 4
    for (; k < group_end(a, group); k++) fetch16(a.mine + k * blockDim.x, from + k * blockDim.x);
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
}

INLINE void wait_for_group(int group) {
  if (group == 0) asm volatile("cp.async.wait_group 3;" ::: "memory");
  if (group == 1) asm volatile("cp.async.wait_group 2;" ::: "memory");
  if (group == 2) asm volatile("cp.async.wait_group 1;" ::: "memory");
  if (group == 3) asm volatile("cp.async.wait_group 0;" ::: "memory");
}

INLINE void piece_fill_own(const Piece &a, Own &o) {
  const uint4 *from = (const uint4 *)a.x.body + threadIdx.x + a.kept * blockDim.x;
#pragma unroll
  for (int i = 0; i < GROUP_NORM_OWN; i++) o.v[i].v = load_if(from + i * blockDim.x, i < a.own);
}

// Between two passes: they stay packed as they were loaded. As floats they would take twice as many registers.
INLINE void own_keep(Own &o) {
#pragma unroll
  for (int i = 0; i < GROUP_NORM_OWN; i++)
    asm volatile("" : "+r"(o.v[i].u[0]), "+r"(o.v[i].u[1]), "+r"(o.v[i].u[2]), "+r"(o.v[i].u[3]));
}

// Chunk k, which is not in shared memory.
INLINE Vec piece_chunk(const Piece &a, int k) { return span_load(&a.x, (int64_t)k * blockDim.x + threadIdx.x, 0); }

// Weights and biases of the piece's channels; a barrier is left to the caller.
INLINE void piece_affines(const GroupNormParams &p, Piece &a, uint64_t row, int64_t begin, int64_t end) {
  uint64_t first = divide((uint64_t)begin, p.divider), group, batch;
  split(row, p.groups, &batch, &group);
  a.first_end = (int)min((int64_t)((first + 1) * p.divider.by) - begin, (int64_t)INT32_MAX);
  int channels = (int)(divide((uint64_t)(end - 1), p.divider) - first) + 1;
  for (int i = threadIdx.x; i < channels; i += blockDim.x) a.affines[i] = affine_load(p, group * p.channels + first + i);
}

// Prefetches into L2 what is as far on as p.ahead says, as much as the piece has.
INLINE void piece_ahead(const GroupNormParams &p, const Piece &a, int in) {
#if __CUDA_ARCH__ >= 900
  const char *at = a.x.body + p.ahead, *end = (const char *)p.x + (int64_t)p.parts.rows * p.n * in;
  int bytes = (int)a.x.chunks * 16;
  if (p.ahead && threadIdx.x == 0 && bytes && at + bytes <= end)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(bytes) : "memory");
#endif
}

INLINE float piece_edge(const Piece &a, int kind) {
  return (int)threadIdx.x < a.x.edges ? load_one(a.x.at, span_edge(&a.x, threadIdx.x), kind) : 0;
}

INLINE Stats piece_stats(const Piece &a, Running &r, float edge, int per, StatsRoom *room) {
  bool has_edge = (int)threadIdx.x < a.x.edges;
  if (has_edge) run_one(r, edge);
  return stats_block(run_end(r, a.count * per + has_edge), (float)a.x.n, room);
}

INLINE Running run_begin(const Piece &a, Vec first, float edge, int kind, int in) {
  Running r = {a.count ? chunk_mean(first, kind, in) : edge, {0, 0}, {0, 0}};
  return r;
}

enum { PIECE_BATCH = 4 }; // chunks that are read again together

// whole: all of the piece is in shared memory, a literal.
INLINE Stats held_stats(const Piece &a, const Own *own, bool whole, float edge, int kind, int in, StatsRoom *room) {
  Vec v;
  wait_for_group(0);
  v.v = *a.mine;
  Running r = run_begin(a, v, edge, kind, in);
#pragma unroll 1
  for (int group = 0; group < PIECE_GROUPS; group++) {
    wait_for_group(group);
#pragma unroll 2
    for (int k = group * a.of_group; k < group_end(a, group); k++) {
      v.v = a.mine[k * blockDim.x];
      run_chunk(r, v, kind, in);
    }
  }
  if (own)
#pragma unroll
    for (int i = 0; i < GROUP_NORM_OWN; i++)
      if (i < a.own) run_chunk(r, own->v[i], kind, in);
#pragma unroll 1
  for (int k = a.kept + a.own; !whole && k < a.count; k += PIECE_BATCH) {
    Vec more[PIECE_BATCH];
#pragma unroll
    for (int i = 0; i < PIECE_BATCH; i++) more[i] = piece_chunk(a, k + i);
#pragma unroll
    for (int i = 0; i < PIECE_BATCH; i++)
      if (k + i < a.count) run_chunk(r, more[i], kind, in);
  }
  return piece_stats(a, r, edge, 16 / in, room);
}

// The channel of a column, its weight and bias, and where it ends.
typedef struct Channel {
  int inside, end;
  float2 by;
} Channel;

INLINE float2 affine_of(const Piece &a, int inside) {
  float2 v = a.affines[inside];
  return make_float2(v.x * a.over, v.y);
}

INLINE Channel channel_of(const GroupNormParams &p, const Piece &a, int column) {
  Channel c;
  int beyond = column - a.first_end;
  c.inside = beyond < 0 ? 0 : (int)divide32((uint32_t)beyond, p.divider32) + 1;
  c.end = a.first_end + c.inside * (int)p.divider32.by;
  c.by = affine_of(a, c.inside);
  return c;
}

INLINE void finish_chunk(const Piece &a, Channel c, int per, float *f, int column) {
  int left = c.end - column;
  if (left >= per) {
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - a.mean, c.by.x, c.by.y);
  } else {
    float2 next = affine_of(a, c.inside + 1);
#pragma unroll
    for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - a.mean, j < left ? c.by.x : next.x, j < left ? c.by.y : next.y);
  }
}

INLINE void put_chunk(const GroupNormParams &p, int per, char *y, int column, const float *f) {
  uint32_t w[8];
  if (p.y_kind == KIND_FP32) {
    from_floats(f, per, KIND_FP32, w);
    store_aligned(y + (int64_t)column * 4, 4, w);
    if (per == 8) store_aligned(y + (int64_t)column * 4 + 16, 4, w + 4);
  } else {
    from_floats(f, per, p.y_kind, w);
    store_aligned(y + (int64_t)column * 2, per / 2, w);
  }
}

INLINE void put_one(const GroupNormParams &p, const Piece &a, Channel &c, int k, Vec v, int kind, int in) {
  const int per = 16 / in;
  int column = a.x.head + (k * (int)blockDim.x + (int)threadIdx.x) * per;
  float f[8];
  widen(&v, kind, in, f);
  if (column >= c.end) c = channel_of(p, a, column);
  finish_chunk(a, c, per, f, column);
  put_chunk(p, per, a.y, column, f);
}

INLINE void put_edge(const GroupNormParams &p, const Piece &a, float edge) {
  int column = (int)span_edge(&a.x, threadIdx.x);
  float2 by = channel_of(p, a, column).by;
  store_one(a.y, column, p.y_kind, fmaf(edge - a.mean, by.x, by.y));
}

// A piece, but for what is before chunk `front`. Chunks that were read last come first: they may still be in L2.
INLINE void held_put(const GroupNormParams &p, const Piece &a, const Own *own, bool whole, int front, float edge, int kind, int in) {
  Channel c = {0, 0, {0, 0}};
  int held = a.kept + a.own;
  if (own)
#pragma unroll
    for (int i = 0; i < GROUP_NORM_OWN; i++)
      if (i < a.own) put_one(p, a, c, a.kept + i, own->v[i], kind, in);
#pragma unroll 1
  for (int k = held + (a.count - held + PIECE_BATCH - 1) / PIECE_BATCH * PIECE_BATCH; !whole && k > held;) {
    Vec v[PIECE_BATCH];
    k -= PIECE_BATCH, c.end = 0;
#pragma unroll
    for (int i = 0; i < PIECE_BATCH; i++) v[i] = piece_chunk(a, k + i);
#pragma unroll
    for (int i = 0; i < PIECE_BATCH; i++)
      if (k + i < a.count) put_one(p, a, c, k + i, v[i], kind, in);
  }
  c.end = 0;
#pragma unroll 2
  for (int k = 0; k < a.kept; k++) {
    Vec v;
    v.v = a.mine[k * blockDim.x];
    if (k * (int)blockDim.x + (int)threadIdx.x >= front) put_one(p, a, c, k, v, kind, in);
  }
  if ((int)threadIdx.x < a.x.edges && (!front || (int)threadIdx.x >= a.x.head)) put_edge(p, a, edge);
}

INLINE void piece_scale(const GroupNormParams &p, Piece &a, Stats s) {
  a.mean = s.mean, a.over = rsqrtf(s.squares / (float)p.n + p.eps);
}

INLINE char *group_of(const GroupNormParams &p, uint64_t row, int in, int *head) {
  int64_t at = (int64_t)row * p.n;
  *head = (int)(-(uint32_t)((uintptr_t)p.x + at * in) & 15) / in;
  return (char *)p.y + at * (p.y_kind == KIND_FP32 ? 4 : 2);
}

// A part in shared memory, on its way: held_stats waits for it.
INLINE Piece part_piece(const GroupNormParams &p, uint64_t row, uint32_t part, int head, int in, Own *own, uint4 *memory) {
  int64_t begin = part_begin(p.parts, part, head, p.n), end = part_begin(p.parts, part + 1, head, p.n);
  Piece a = piece_of(p, row, begin, end, in, own != nullptr, memory);
  piece_fill(a);
  if (own) piece_fill_own(a, *own);
  piece_ahead(p, a, in);
  piece_affines(p, a, row, begin, end);
  return a;
}

// Part `part`'s, of its mean and squares.
INLINE Stats part_stats(const GroupNormParams &p, uint32_t part, int head, float2 v) {
  Stats s = {0, 0, 0};
  if (part >= p.parts.parts) return s;
  s.count = (float)(part_begin(p.parts, part + 1, head, p.n) - part_begin(p.parts, part, head, p.n));
  s.mean = v.x, s.squares = v.y;
  return s;
}

// ---- A block or a cluster has a group

// Those of all blocks of the cluster.
INLINE Stats stats_cluster(const GroupNormParams &p, int head, Stats mine, ClusterExchange *exchange) {
  exchange_all(exchange, (int)p.parts.parts, make_float2(mine.mean, mine.squares));
  uint32_t lane = threadIdx.x % 32;
  Stats s = part_stats(p, lane, head, exchange->from[lane & 15]), all;
  all.count = (float)p.n;
  all.mean = warp_sum(s.mean * (s.count / all.count));
  all.squares = warp_sum(s.count > 0 ? fmaf(s.count * (s.mean - all.mean), s.mean - all.mean, s.squares) : 0);
  return all;
}

INLINE void group_cluster(const GroupNormParams &p, int in, int kind, GroupShared *shared, uint4 *memory) {
  uint64_t row, rank;
  int head;
  bool alone = p.parts.parts == 1;
  if (!alone) exchange_init(&shared->exchange);
  split((uint64_t)blockIdx.y * gridDim.x + blockIdx.x, p.parts.parts, &row, &rank);
  begin_kernel();
  if (row >= p.parts.rows && alone) return;
  row = min(row, p.parts.rows - 1); // a cluster that is one too many does what the last does
  group_of(p, row, in, &head);
  Piece a = part_piece(p, row, (uint32_t)rank, head, in, nullptr, memory);
  float edge = piece_edge(a, kind);
  Stats s = held_stats(a, nullptr, true, edge, kind, in, &shared->room[0]);
  piece_scale(p, a, alone ? s : stats_cluster(p, head, s, &shared->exchange));
  held_put(p, a, nullptr, true, 0, edge, kind, in);
}

// ---- Blocks all over the GPU hold it

INLINE void part_hold(const GroupNormParams &p, Part at, int in, int kind, GroupShared *shared, uint4 *memory) {
  int head;
  unsigned long long *posts = posts_of(group_of(p, at.row, in, &head));
  Own own;
  Piece a = part_piece(p, at.row, at.part, head, in, &own, memory);
  float edge = piece_edge(a, kind);
  Stats s = held_stats(a, &own, false, edge, kind, in, &shared->room[0]);
  own_keep(own);
  if (threadIdx.x == 0) post(p.parts, posts, at.part, make_float2(s.mean, s.squares));
  float2 v;
  bool there = posts_take(p.parts, posts, p.parts.polls, &v);
  if (threadIdx.x == 0) part_tell(p.parts, posts, at.part, there ? PART_READ : PART_LEFT);
  if (!there) return;
  piece_scale(p, a, stats_block(part_stats(p, threadIdx.x, head, v), (float)p.n, &shared->room[1]));
  held_put(p, a, &own, false, at.part ? 0 : p.parts.front, edge, kind, in);
}

// Writes what blocks have given up.
INLINE void part_last(const GroupNormParams &p, uint64_t row, int in, int kind, GroupShared *shared, uint4 *memory) {
  int head;
  float2 v;
  unsigned long long *posts = posts_of(group_of(p, row, in, &head));
  if (threadIdx.x < p.parts.parts) shared->left[threadIdx.x] = part_ask(p.parts, posts, threadIdx.x) == PART_LEFT;
  __syncwarp();
  posts_take(p.parts, posts, 0, &v);
  Stats s = stats_block(part_stats(p, threadIdx.x, head, v), (float)p.n, &shared->room[1]);
  for (uint32_t part = 0; part <= p.parts.parts; part++) { // then the start of the row
    bool start = part == p.parts.parts;
    if (!start && !shared->left[part]) continue;
    int64_t begin = start ? 0 : part_begin(p.parts, part, head, p.n);
    int64_t end = start ? head + p.parts.front * (16 / in) : part_begin(p.parts, part + 1, head, p.n);
    Piece a = piece_of(p, row, begin, end, in, false, memory);
    piece_fill(a);
    piece_affines(p, a, row, begin, end);
    float edge = piece_edge(a, kind);
    piece_scale(p, a, s);
    wait_for_fetches();
    __syncthreads(); // for weights and biases
    held_put(p, a, nullptr, false, part ? 0 : p.parts.front, edge, kind, in);
    __syncthreads();
  }
}

INLINE void group_parts(const GroupNormParams &p, int in, int kind, GroupShared *shared, uint4 *memory) {
  Part at = part_of_block(p.parts);
  if (at.row >= p.parts.rows) return; // the first row has none before it
  if (at.last) part_last(p, at.row, in, kind, shared, memory);
  else part_hold(p, at, in, kind, shared, memory);
}

#endif
