// A random element of a row by the weights of all of them, the row read once: group by group (weight.h), each in the registers of a warp,
// against its own largest element. What is kept of a group is that element and the sum of its hulls. Then one warp draws a group
// and one of its elements: of short rows the sums of all chunks are kept, too; of longer ones the group is read again.
#ifndef SOL_KERNELS_SELECT_GROUPS_CUH
#define SOL_KERNELS_SELECT_GROUPS_CUH

#include "weigh.cuh"
#include "whole.cuh"

// SELECT_GROUP columns of a row of fp32, or fewer at its end: in chunks and edges (span.cuh), NaN where a lane has none.
struct Piece {
  enum { per = 4, columns = SELECT_GROUP, chunks = columns / 32 / per };
  Span x;
  Vec v[chunks];
  uint32_t edge, begin;
  uint32_t sum[chunks], edge_sum; // of the hulls
  SelectScale scale;
  bool any; // whether there is anything but NaN; of an infinite largest element alone
};

INLINE void place_piece(Piece &p, const char *row, uint32_t n, uint32_t begin) {
  p.begin = begin;
  p.x = span_of(row + (uint64_t)begin * 4, min(n - begin, (uint32_t)SELECT_GROUP), 4);
}

INLINE void load_piece(Piece &p, const char *row, uint32_t n, uint32_t begin) {
  const int lane = threadIdx.x % 32;
  place_piece(p, row, n, begin);
  const uint4 *from = (const uint4 *)p.x.body + lane;
  p.edge = ~0u;
  if (p.x.chunks == 32 * p.chunks) { // all of a group in chunks
#pragma unroll
    for (int u = 0; u < p.chunks; u++) p.v[u].v = from[32 * u];
    return;
  }
#pragma unroll
  for (int u = 0; u < p.chunks; u++) {
    p.v[u].v = make_uint4(~0u, ~0u, ~0u, ~0u);
    if (u * 32 + lane < (int)p.x.chunks) p.v[u].v = from[32 * u];
  }
  if (lane < p.x.edges) p.edge = ((const uint32_t *)p.x.at)[span_edge(&p.x, lane)];
}

// The largest of a warp's numbers that are not NaN; -infinity where there is none.
INLINE float lanes_top(float f) {
  uint32_t u = __float_as_uint(f), key = lanes_most(u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u));
  return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : ~0u));
}

INLINE float piece_top(const Piece &p) {
  uint32_t word = larger_word<KIND_FP32, 0>(span_lowest(KIND_FP32), p.edge);
#pragma unroll
  for (int u = 0; u < p.chunks; u++) word = larger_word<KIND_FP32, 0>(word, chunk_word<KIND_FP32>(p.v[u]));
  return lanes_top(__uint_as_float(word));
}

// The scale of a group with that largest element. Where that is infinite, only those equal to it have any weight.
INLINE void set_scale(Piece &p, float top, const SampleParams &s) {
  p.any = true;
  if (!(fabsf(top) <= 0x1.fffffep127f)) {
    uint32_t lowest = span_lowest(KIND_FP32), other = 0;
#pragma unroll
    for (int u = 0; u < p.chunks; u++)
#pragma unroll
      for (int j = 0; j < 4; j++) other |= lowest ^ (p.v[u].u[j] = only_equal<KIND_FP32>(p.v[u].u[j], top));
    other |= lowest ^ (p.edge = only_equal<KIND_FP32>(p.edge, top));
    p.any = __any_sync(~0u, other != 0);
    top = 0;
  }
  p.scale = select_scale(top, s.per);
}

// Hulls of the elements of a chunk, summed.
INLINE uint32_t chunk_hulls(const Piece &p, const Vec &v) {
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < 4; i++) sum += select_hull(select_place(v.f[i], p.scale));
  return sum;
}

// The hulls of its elements: of each chunk, and of all lanes together.
INLINE uint32_t sum_piece(Piece &p) {
  const int lane = threadIdx.x % 32;
  uint32_t sum = p.edge_sum = lane < p.x.edges ? select_hull(select_place(__uint_as_float(p.edge), p.scale)) : 0;
#pragma unroll
  for (int u = 0; u < p.chunks; u++) {
    p.sum[u] = 0;
    if (u * 32 >= (int)p.x.chunks) continue;
    sum += p.sum[u] = chunk_hulls(p, p.v[u]);
  }
  return lanes_sum(sum);
}

// One trial among the elements of a piece whose hulls are known: which lane's chunk the random number falls on, and which of its elements. The
// column, or -1: not taken. top: of its group.
INLINE int64_t draw_in_piece(const Piece &p, float top, const SampleParams &s, uint32_t wanted) {
  const int lane = threadIdx.x % 32, tail = p.x.edges - p.x.head;
  int column = 0, count = p.x.head; // of elements in a row, one of which it is
  bool found = false;
  if (count) {
    uint32_t part = lanes_sum(lane < count ? p.edge_sum : 0);
    found = wanted < part;
    if (!found) wanted -= part;
  }
  uint32_t sum = 0;
#pragma unroll
  for (int u = 0; u < p.chunks; u++) {
    uint32_t part = lanes_sum(p.sum[u]);
    if (!found && wanted < part) found = true, sum = p.sum[u], column = p.x.head + u * 32 * p.per, count = 0;
    if (!found) wanted -= part;
  }
  if (!found) column = (int)p.x.n - tail, count = tail;
  if (!count) {
    uint32_t upto = few_upto(sum), from = __ffs(__ballot_sync(~0u, upto > wanted)) - 1;
    wanted -= __shfl_sync(~0u, upto - sum, from);
    column += (int)from * p.per, count = p.per;
  }
  float x = lane < count ? ((const float *)p.x.at)[column + lane] : -INFINITY, place = select_place_of(x, top, s.per);
  uint32_t hull = lane < count ? select_hull(place) : 0;
  uint32_t upto = few_upto(hull), rest = wanted - (upto - hull);
  uint32_t who = __ballot_sync(~0u, upto > wanted && upto - hull <= wanted && rest < select_hulled(place));
  return who ? (int64_t)(p.begin + (uint32_t)column + __ffs(who) - 1) : -1;
}

// The row of a block: its groups, and which of them are this block's.
typedef struct GroupRow {
  const char *at;
  uint64_t row;
  int rank, blocks;
} GroupRow;

INLINE GroupRow group_row(const SampleParams &p) {
  GroupRow r;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  r.blocks = cluster_blocks(), r.rank = 0;
#if __CUDA_ARCH__ >= 900
  if (r.blocks > 1) r.rank = (int)cluster_rank();
#endif
  r.row = block / r.blocks;
  r.at = (const char *)p.x + (int64_t)r.row * p.x_stride;
  return r;
}
INLINE uint32_t groups_of(const SampleParams &p) { return ((uint32_t)p.n - 1) / p.columns + 1; }

// What is kept of a block's groups, in dynamic shared memory: the sums of their hulls, then the bits of their largest elements.
INLINE uint64_t *kept_hulls(uint32_t i) { return (uint64_t *)held + i; }
INLINE uint32_t *kept_bits(const SampleParams &p, uint32_t i) { return (uint32_t *)((uint64_t *)held + p.each) + i; }
INLINE float kept_top(const SampleParams &p, uint32_t i, int rank) { return __uint_as_float(remote_word(kept_bits(p, i), rank)); }

// A group by this warp: its largest element, and the sum of its hulls. A piece stays in registers.
INLINE uint64_t sum_group(Piece &piece, const GroupRow &r, const SampleParams &p, uint32_t group, float *top) {
  uint32_t begin = group * p.columns, end = min((uint32_t)p.n - begin, p.columns); // columns
  uint64_t sum = 0;
  bool any = false;
  load_piece(piece, r.at, (uint32_t)p.n, begin);
  *top = piece_top(piece);
#pragma unroll 1
  for (uint32_t c = SELECT_GROUP; c < end; c += SELECT_GROUP) {
    load_piece(piece, r.at, (uint32_t)p.n, begin + c);
    *top = fmaxf(*top, piece_top(piece));
  }
#pragma unroll 1
  for (uint32_t c = 0; c < end; c += SELECT_GROUP) {
    if (end > SELECT_GROUP) load_piece(piece, r.at, (uint32_t)p.n, begin + c);
    set_scale(piece, *top, p);
    sum += sum_piece(piece), any |= piece.any;
  }
  return any ? sum : 0;
}
// A group that is longer than what registers have is read twice: for its largest element, and for the sums.
template <int kind>
INLINE uint64_t sum_group(Whole<kind, 5> &w, const GroupRow &r, const SampleParams &p, uint32_t group, float *top) {
  uint32_t begin = group * p.columns, end = min((uint32_t)p.n - begin, p.columns), c = 0;
  bool any = false, known = false, at_once = end <= SELECT_WHOLE;
  uint64_t sum = 0;
  *top = -INFINITY;
#pragma unroll 1
  do {
    forget_sums(w);
    load_part(w, p, r.at, begin + c, end - c);
    float of_part = top_of_whole(w);
    any |= of_part == of_part, *top = fmaxf(*top, of_part);
    if (at_once || known) sum += sum_whole(w, *top);
    c += SELECT_WHOLE;
    if (c >= end && !known) known = true, c = at_once ? c : 0;
  } while (c < end);
  return any ? sum : 0;
}

// One trial in a group, by the sum of its hulls: the column, or -1. held: it is in registers.
INLINE int64_t draw_in_group(Piece &piece, const GroupRow &r, const SampleParams &p, uint32_t group, float top, uint64_t hulls, uint64_t random,
                             bool held) {
  uint64_t wanted = __umul64hi(random, hulls);
  uint32_t begin = group * p.columns, end = min((uint32_t)p.n - begin, p.columns);
#pragma unroll 1
  for (uint32_t c = 0; c < end && !held; c += SELECT_GROUP) {
    load_piece(piece, r.at, (uint32_t)p.n, begin + c);
    set_scale(piece, top, p);
    uint32_t part = sum_piece(piece);
    if (wanted < part) break;
    wanted -= part;
  }
  return draw_in_piece(piece, top, p, (uint32_t)wanted);
}
template <int kind>
INLINE int64_t draw_in_group(Whole<kind, 5> &w, const GroupRow &r, const SampleParams &p, uint32_t group, float top, uint64_t hulls, uint64_t random,
                             bool held) {
  uint64_t wanted = __umul64hi(random, hulls);
  uint32_t begin = group * p.columns, end = min((uint32_t)p.n - begin, p.columns), c = 0;
#pragma unroll 1
  for (; c < end && !held; c += SELECT_WHOLE) {
    load_part(w, p, r.at, begin + c, end - c);
    uint32_t part = sum_whole(w, top);
    if (wanted < part) break;
    wanted -= part;
  }
  int column;
  uint32_t who = __ballot_sync(~0u, draw_in_whole(w, p, (uint32_t)wanted, random, &column));
  return who ? (int64_t)begin + c + __shfl_sync(~0u, column, __ffs(who) - 1) : -1;
}

// What the groups of a block weigh in the row: 32 of them, one a lane, from number `from` of the block on.
INLINE uint64_t group_weight(const SampleParams &p, int rank, uint32_t from, float top) {
  uint32_t i = from + threadIdx.x % 32;
  if (i >= (uint32_t)p.each || p.each * rank + i >= groups_of(p)) return 0;
  return select_group(remote_word(kept_hulls(i), rank), select_place_of(kept_top(p, i, rank), top, p.per));
}

// The row's groups are known: one of them and one of its elements. The first trial is made by the warp that has its group, which is `held`
// in registers if it was the warp's last; for the others the result is ANOTHER.
enum { ANOTHER = -2 };
template <class P> INLINE int64_t draw_grouped(P &piece, const SampleParams &p, const GroupRow &r, uint64_t stream, uint32_t held) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const uint32_t all = groups_of(p), each = (uint32_t)p.each;
  float top = -INFINITY;
  for (int b = 0; b < r.blocks; b++)
    for (uint32_t i = lane; i < each && each * b + i < all; i += 32) top = fmaxf(top, kept_top(p, i, b));
  top = lanes_top(top);
  uint64_t whole = 0, of_block = 0; // of block number `lane`
  for (int b = 0; b < r.blocks; b++) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < each; i += 32) sum += group_weight(p, b, i, top);
    sum = lanes_all(sum);
    whole += sum;
    if (b == lane) of_block = sum;
  }
  if (!whole) return warp ? ANOTHER : -1;
#pragma unroll 1
  for (uint32_t trial = 0;; trial++) {
    uint64_t wanted = __umul64hi(select_random_group(stream, trial), whole);
    int rank = r.blocks > 1 ? find_part(of_block, &wanted) : 0;
    uint32_t i = 0;
    uint64_t weight, part;
#pragma unroll 1
    for (;; i += 32, wanted -= part) {
      weight = group_weight(p, rank, i, top), part = lanes_all(weight);
      if (wanted < part) break;
    }
    i += find_part(weight, &wanted);
    uint32_t group = each * rank + i;
    if (!trial && r.blocks == 1 && (int)(group % warps) != warp) return ANOTHER;
    int64_t id = draw_in_group(piece, r, p, group, kept_top(p, i, rank), remote_word(kept_hulls(i), rank), select_random(stream, trial), group == held);
    if (id >= 0) return id;
    held = p.columns <= P::columns ? group : ~0u; // by this warp, of whatever block
  }
}

template <class P> INLINE void sample_groups(const SampleParams &p) {
  P piece;
  GroupRow r = group_row(p);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  uint64_t seed = (uint64_t)p.seeds[r.row]; // in flight along with the row
  uint32_t held = ~0u;
#pragma unroll 1
  for (uint32_t i = warp; i < (uint32_t)p.each; i += warps) {
    uint32_t g = p.each * r.rank + i;
    if (g >= groups_of(p)) break;
    float top;
    uint64_t hulls = sum_group(piece, r, p, g, &top);
    if (lane == 0) *kept_hulls(i) = hulls, *kept_bits(p, i) = __float_as_uint(top);
    if (p.columns <= P::columns) held = g;
  }
  if (r.blocks > 1) cluster_barrier();
  else __syncthreads();
  if (r.blocks == 1 || (warp == 0 && r.rank == 0)) {
    int64_t id = draw_grouped(piece, p, r, select_stream(seed, p.step), held);
    if (lane == 0 && id != ANOTHER) put_id(p, r.row, id);
  }
  if (r.blocks > 1) cluster_barrier(); // the first block reads what the others have kept
}

// ---- Rows of few groups, each by one warp, which has several rows

// The sums of this lane's chunks of a row's groups.
INLINE void keep_sums(const Piece &piece, uint32_t *sums, uint32_t group) {
  sums += group * 32 * (piece.chunks + 1) + threadIdx.x % 32;
#pragma unroll
  for (int u = 0; u < piece.chunks; u++) sums[32 * u] = piece.sum[u];
  sums[32 * piece.chunks] = piece.edge_sum;
}
INLINE void take_sums(Piece &piece, const uint32_t *sums, uint32_t group) {
  sums += group * 32 * (piece.chunks + 1) + threadIdx.x % 32;
#pragma unroll
  for (int u = 0; u < piece.chunks; u++) piece.sum[u] = sums[32 * u];
  piece.edge_sum = sums[32 * piece.chunks];
}

// Lane g has what is kept of group g: the sum of its hulls and its largest element.
INLINE int64_t draw_few(const SampleParams &p, const char *at, uint32_t *sums, uint32_t groups, uint32_t hulls, float top, uint64_t stream) {
  Piece piece;
  uint64_t upto = hulls;
  if (groups > 1) {
    float of_row = lanes_top(top);
    upto = lanes_upto(select_group(hulls, select_place_of(top, of_row, p.per)));
  }
  uint64_t whole = __shfl_sync(~0u, upto, groups - 1);
  if (!whole) return -1;
#pragma unroll 1
  for (uint32_t trial = 0;; trial++) {
    int g = 0;
    if (groups > 1) g = __ffs(__ballot_sync(~0u, upto > __umul64hi(select_random_group(stream, trial), whole))) - 1;
    uint32_t wanted = (uint32_t)__umul64hi(select_random(stream, trial), __shfl_sync(~0u, hulls, g));
    place_piece(piece, at, (uint32_t)p.n, g * SELECT_GROUP);
    take_sums(piece, sums, g);
    int64_t id = draw_in_piece(piece, __shfl_sync(~0u, top, g), p, wanted);
    if (id >= 0) return id;
  }
}

INLINE void sample_few(const SampleParams &p) {
  Piece piece;
  uint64_t warp = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  uint64_t row = warp * p.rounds, end = min(row + p.rounds, p.m);
  uint32_t groups = ((uint32_t)p.n - 1) / SELECT_GROUP + 1, lane = threadIdx.x % 32;
  uint32_t *sums = (uint32_t *)held + threadIdx.x / 32 * groups * 32 * (piece.chunks + 1);
  const char *at = (const char *)p.x + (int64_t)row * p.x_stride;
#pragma unroll 1
  for (; row < end; row++, at += p.x_stride) {
    uint64_t seed = (uint64_t)p.seeds[row];
    uint32_t hulls = 0;
    float top = -INFINITY;
#pragma unroll 1
    for (uint32_t g = 0; g < groups; g++) {
      load_piece(piece, at, (uint32_t)p.n, g * SELECT_GROUP);
      float of_group = piece_top(piece);
      set_scale(piece, of_group, p);
      uint32_t sum = sum_piece(piece);
      if (lane == g) hulls = piece.any ? sum : 0, top = of_group;
      keep_sums(piece, sums, g);
    }
    int64_t id = draw_few(p, at, sums, groups, hulls, top, select_stream(seed, p.step));
    if (lane == 0) put_id(p, row, id);
  }
}

#define GROUPS(kind, name, run, threads, blocks)                                                             \
  KERNEL __launch_bounds__(threads, blocks) sol_groups_##kind##_##name(const __grid_constant__ SampleParams p) { \
    begin_kernel();                                                                                          \
    run(p);                                                                                                  \
  }
#ifndef NO_WHOLE
GROUPS(FP32, warp, sample_few, 128, 6)
GROUPS(FP32, block, sample_groups<Piece>, 256, 3)
GROUPS(FP16, block, (sample_groups<Whole<KIND_FP16, 5>>), 32 * WHOLE_MOST, 2)
GROUPS(BF16, block, (sample_groups<Whole<KIND_BF16, 5>>), 32 * WHOLE_MOST, 2)
#endif

#endif
