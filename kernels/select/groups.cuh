// A random element of a row by the weights of all of them, the row read once: group by group (weight.h), each in the registers of a warp,
// against its own largest element. What is kept of a group is that element and the sum of its hulls. Then one warp draws a group
// and one of its elements: of short rows the sums of all chunks are kept, too; of longer ones the group is read again.
#ifndef SOL_KERNELS_SELECT_GROUPS_CUH
#define SOL_KERNELS_SELECT_GROUPS_CUH

#include "coarse.cuh"
#include "weigh.cuh"

// SELECT_GROUP columns of a row, or fewer at its end: in chunks and edges (span.cuh), NaN where a lane has none.
template <int kind> struct Piece {
  enum { size = kind == KIND_FP32 ? 4 : 2, per = 16 / size, chunks = SELECT_GROUP / 32 / per };
  Span x;
  Vec v[chunks];
  uint32_t edge, begin;
  uint32_t sum[chunks], edge_sum; // of the hulls
  SelectScale scale;
  Coarse coarse; // elements of 16 bits
  bool any;      // whether there is anything but NaN; of an infinite largest element alone
};

template <int kind> INLINE void place_piece(Piece<kind> &p, const char *row, uint32_t n, uint32_t begin) {
  p.begin = begin;
  p.x = span_of(row + (uint64_t)begin * p.size, min(n - begin, (uint32_t)SELECT_GROUP), p.size);
}

template <int kind> INLINE void load_piece(Piece<kind> &p, const char *row, uint32_t n, uint32_t begin) {
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
  if (lane < p.x.edges) {
    int64_t c = span_edge(&p.x, lane);
    p.edge = kind == KIND_FP32 ? ((const uint32_t *)p.x.at)[c] : 0xffff0000u | ((const uint16_t *)p.x.at)[c];
  }
}

// The largest of a warp's numbers that are not NaN; -infinity where there is none.
INLINE float lanes_top(float f) {
  uint32_t u = __float_as_uint(f), key = lanes_most(u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u));
  return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : ~0u));
}

template <int kind> INLINE float piece_top(const Piece<kind> &p) {
  uint32_t word = larger_word<kind, 0>(span_lowest(kind), p.edge);
#pragma unroll
  for (int u = 0; u < p.chunks; u++) word = larger_word<kind, 0>(word, chunk_word<kind>(p.v[u]));
  return lanes_top(word_top<kind>(word));
}

template <int kind> INLINE uint32_t only_equal(uint32_t word, float top) { // 0 where an element is equal, elsewhere -infinity
  if (kind == KIND_FP32) return __uint_as_float(word) == top ? 0 : span_lowest(kind);
#if __CUDA_ARCH__ >= 900 // few registers: this is rare, and in the way of what is not
  uint32_t equal, with = twice(narrow_one(top, kind));
  if (kind == KIND_FP16) asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(equal) : "r"(word), "r"(with));
  else asm("set.eq.u32.bf16x2 %0, %1, %2;" : "=r"(equal) : "r"(word), "r"(with));
  return span_lowest(kind) & ~equal;
#else
  float2 two = widen2(word, kind);
  return (two.x == top ? 0 : span_lowest(kind) & 0xffff) | (two.y == top ? 0 : span_lowest(kind) & 0xffff0000u);
#endif
}

// The scale of a group with that largest element. Where that is infinite, or very large, only those equal to it have any weight: they become
// 0, and all others -infinity.
template <int kind> INLINE void set_scale(Piece<kind> &p, float top, const SampleParams &s) {
  p.any = true;
  if (!(fabsf(top) <= 0x1.fffffep127f)) {
    uint32_t lowest = span_lowest(kind), other = 0;
#pragma unroll
    for (int u = 0; u < p.chunks; u++)
#pragma unroll
      for (int j = 0; j < 4; j++) other |= lowest ^ (p.v[u].u[j] = only_equal<kind>(p.v[u].u[j], top));
    other |= lowest ^ (p.edge = only_equal<kind>(p.edge, top));
    p.any = __any_sync(~0u, other != 0);
    top = 0;
  }
  if (kind == KIND_FP32) p.scale = select_scale(top, s.per);
  else p.coarse = coarse_of<kind>(top, s.steps);
}

// Hulls of the elements of a chunk, summed, and that of an edge.
template <int kind> INLINE uint32_t chunk_hulls(const Piece<kind> &p, const Vec &v) {
  uint32_t sum = 0, all;
  if constexpr (kind == KIND_FP32) {
#pragma unroll
    for (int i = 0; i < 4; i++) sum += select_hull(select_place(v.f[i], p.scale));
  } else {
    Vec hulls;
#pragma unroll
    for (int j = 0; j < 4; j++) hulls.u[j] = coarse_word<kind>(v.u[j], p.coarse);
    sum_coarse(hulls, coarse_shares(1), 1, &sum, &all);
  }
  return sum;
}
template <int kind> INLINE uint32_t edge_hull(const Piece<kind> &p, uint32_t bits) {
  if constexpr (kind == KIND_FP32) return select_hull(select_place(__uint_as_float(bits), p.scale));
  else return coarse_units(coarse_word<kind>(bits, p.coarse));
}

// The hulls of its elements: of each chunk, and of all lanes together.
template <int kind> INLINE uint32_t sum_piece(Piece<kind> &p) {
  const int lane = threadIdx.x % 32;
  uint32_t sum = p.edge_sum = lane < p.x.edges ? edge_hull(p, p.edge) : 0;
#pragma unroll
  for (int u = 0; u < p.chunks; u++) {
    p.sum[u] = 0;
    if (u * 32 >= (int)p.x.chunks) continue;
    p.sum[u] = chunk_hulls(p, p.v[u]);
    if (kind != KIND_FP32 && u * 32 + lane >= (int)p.x.chunks) p.sum[u] = 0;
    sum += p.sum[u];
  }
  return lanes_sum(sum);
}

// The hull of an element of 16 bits of a group with that largest element.
template <int kind> INLINE uint32_t hull_of_bits(uint32_t bits, float top, uint32_t steps) {
  if (isinf(top)) bits = only_equal<kind>(bits, top), top = 0;
  return coarse_units(coarse_word<kind>(bits, coarse_of<kind>(top, steps)));
}

// One trial among the elements of a piece whose hulls are known: which lane's chunk the random number falls on, and which of its elements. The
// column, or -1: not taken. top: of its group; random: what `wanted` comes of.
template <int kind>
INLINE int64_t draw_in_piece(const Piece<kind> &p, float top, const SampleParams &s, uint32_t wanted, uint64_t random) {
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
  uint32_t bits = lowest_bits<kind>();
  if (lane < count) bits = kind == KIND_FP32 ? ((const uint32_t *)p.x.at)[column + lane] : ((const uint16_t *)p.x.at)[column + lane];
  float x = value_of_bits<kind>(bits), place = select_place_of(x, top, s.per);
  uint32_t hull = kind == KIND_FP32 ? select_hull(place) : hull_of_bits<kind>(bits, top, s.steps);
  if (lane >= count) hull = 0;
  uint32_t upto = few_upto(hull), rest = wanted - (upto - hull);
  bool taken = upto > wanted && upto - hull <= wanted;
  taken &= kind == KIND_FP32 ? rest < select_hulled(place) : select_takes(x, top, s.per, kind == KIND_BF16, rest, random);
  uint32_t who = __ballot_sync(~0u, taken);
  return who ? (int64_t)(p.begin + (uint32_t)column + __ffs(who) - 1) : -1;
}

// What is kept of groups, in dynamic shared memory.
typedef struct Groups {
  uint64_t *hulls;
  uint32_t *top; // the bits of a float
} Groups;
INLINE float kept_top(const Groups &g, uint32_t i, int rank) { return __uint_as_float(remote_word(&g.top[i], rank)); }

// The row of a block: its groups, and which of them are this block's.
typedef struct GroupRow {
  const char *at;
  uint32_t n, columns, begin, end; // groups
  uint64_t row;
  int rank, blocks;
  Groups kept; // of this block
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
  r.n = (uint32_t)p.n, r.columns = p.columns;
  uint32_t all = (r.n - 1) / r.columns + 1, each = (all + r.blocks - 1) / r.blocks;
  r.begin = min(each * r.rank, all), r.end = min(r.begin + each, all);
  r.kept.hulls = (uint64_t *)held;
  r.kept.top = (uint32_t *)((uint64_t *)held + each);
  return r;
}

// A group by this warp: its largest element, and the sum of its hulls. A piece stays in registers.
template <int kind>
INLINE uint64_t sum_group(Piece<kind> &piece, const GroupRow &r, const SampleParams &p, uint32_t group, float *top) {
  uint32_t begin = group * r.columns, end = min(r.n - begin, r.columns); // columns
  uint64_t sum = 0;
  bool any = false;
  load_piece(piece, r.at, r.n, begin);
  *top = piece_top(piece);
#pragma unroll 1
  for (uint32_t c = SELECT_GROUP; c < end; c += SELECT_GROUP) {
    load_piece(piece, r.at, r.n, begin + c);
    *top = fmaxf(*top, piece_top(piece));
  }
#pragma unroll 1
  for (uint32_t c = 0; c < end; c += SELECT_GROUP) {
    if (end > SELECT_GROUP) load_piece(piece, r.at, r.n, begin + c);
    set_scale(piece, *top, p);
    sum += sum_piece(piece), any |= piece.any;
  }
  return any ? sum : 0;
}

// One trial in a group, by the sum of its hulls.
template <int kind>
INLINE int64_t draw_in_group(Piece<kind> &piece, const GroupRow &r, const SampleParams &p, uint32_t group, float top, uint64_t hulls,
                             uint64_t random) {
  uint64_t wanted = __umul64hi(random, hulls);
  uint32_t begin = group * r.columns, end = min(r.n - begin, r.columns);
#pragma unroll 1
  for (uint32_t c = 0; c < end; c += SELECT_GROUP) {
    load_piece(piece, r.at, r.n, begin + c);
    set_scale(piece, top, p);
    uint32_t part = sum_piece(piece);
    if (wanted < part) break;
    wanted -= part;
  }
  return draw_in_piece(piece, top, p, (uint32_t)wanted, random);
}

// What the groups of a block weigh in the row: 32 of them, one a lane, from number `from` of the block on.
INLINE uint64_t group_weight(const GroupRow &r, int rank, uint32_t from, float top, float per) {
  uint32_t all = (r.n - 1) / r.columns + 1, each = (all + r.blocks - 1) / r.blocks, i = from + threadIdx.x % 32;
  if (i >= each || each * rank + i >= all) return 0;
  return select_group(remote_word(&r.kept.hulls[i], rank), select_place_of(kept_top(r.kept, i, rank), top, per));
}

// The row's groups are known: one of them and one of its elements, by one warp.
template <int kind> INLINE int64_t draw_grouped(Piece<kind> &piece, const SampleParams &p, const GroupRow &r, uint64_t stream) {
  const int lane = threadIdx.x % 32;
  uint32_t all = (r.n - 1) / r.columns + 1, each = (all + r.blocks - 1) / r.blocks;
  float top = -INFINITY;
  for (int b = 0; b < r.blocks; b++)
    for (uint32_t i = lane; i < each && each * b + i < all; i += 32) top = fmaxf(top, kept_top(r.kept, i, b));
  top = lanes_top(top);
  uint64_t whole = 0, of_block = 0; // of block number `lane`
  for (int b = 0; b < r.blocks; b++) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < each; i += 32) sum += group_weight(r, b, i, top, p.per);
    sum = lanes_all(sum);
    whole += sum;
    if (b == lane) of_block = sum;
  }
  if (!whole) return -1;
#pragma unroll 1
  for (uint32_t trial = 0;; trial++) {
    uint64_t wanted = __umul64hi(select_random_group(stream, trial), whole);
    int rank = r.blocks > 1 ? find_part(of_block, &wanted) : 0;
    uint32_t i = 0;
    uint64_t weight, part;
#pragma unroll 1
    for (;; i += 32, wanted -= part) {
      weight = group_weight(r, rank, i, top, p.per), part = lanes_all(weight);
      if (wanted < part) break;
    }
    i += find_part(weight, &wanted);
    uint64_t hulls = remote_word(&r.kept.hulls[i], rank);
    float of_group = kept_top(r.kept, i, rank);
    int64_t id = draw_in_group(piece, r, p, each * rank + i, of_group, hulls, select_random(stream, trial));
    if (id >= 0) return id;
  }
}

template <int kind> INLINE void sample_groups(const SampleParams &p) {
  Piece<kind> piece;
  GroupRow r = group_row(p);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  uint64_t seed = (uint64_t)p.seeds[r.row]; // in flight along with the row
#pragma unroll 1
  for (uint32_t g = r.begin + warp; g < r.end; g += warps) {
    float top;
    uint64_t hulls = sum_group(piece, r, p, g, &top);
    if (lane == 0) r.kept.hulls[g - r.begin] = hulls, r.kept.top[g - r.begin] = __float_as_uint(top);
  }
  if (r.blocks > 1) cluster_barrier();
  else __syncthreads();
  if (warp == 0 && r.rank == 0) {
    int64_t id = draw_grouped(piece, p, r, select_stream(seed, p.step));
    if (lane == 0) put_id(p, r.row, id);
  }
  if (r.blocks > 1) cluster_barrier(); // the first block reads what the others have kept
}

// ---- Rows of few groups, each by one warp, which has several rows

// The sums of this lane's chunks of a row's groups.
template <int kind> INLINE void keep_sums(const Piece<kind> &piece, uint32_t *sums, uint32_t group) {
  sums += group * 32 * (piece.chunks + 1) + threadIdx.x % 32;
#pragma unroll
  for (int u = 0; u < piece.chunks; u++) sums[32 * u] = piece.sum[u];
  sums[32 * piece.chunks] = piece.edge_sum;
}
template <int kind> INLINE void take_sums(Piece<kind> &piece, const uint32_t *sums, uint32_t group) {
  sums += group * 32 * (piece.chunks + 1) + threadIdx.x % 32;
#pragma unroll
  for (int u = 0; u < piece.chunks; u++) piece.sum[u] = sums[32 * u];
  piece.edge_sum = sums[32 * piece.chunks];
}

// Lane g has what is kept of group g: the sum of its hulls and its largest element.
template <int kind>
INLINE int64_t draw_few(const SampleParams &p, const char *at, uint32_t *sums, uint32_t groups, uint32_t hulls, float top, uint64_t stream) {
  Piece<kind> piece;
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
    uint64_t random = select_random(stream, trial);
    uint32_t wanted = (uint32_t)__umul64hi(random, __shfl_sync(~0u, hulls, g));
    place_piece(piece, at, (uint32_t)p.n, g * SELECT_GROUP);
    take_sums(piece, sums, g);
    int64_t id = draw_in_piece(piece, __shfl_sync(~0u, top, g), p, wanted, random);
    if (id >= 0) return id;
  }
}

template <int kind> INLINE void sample_few(const SampleParams &p) {
  Piece<kind> piece;
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
    int64_t id = draw_few<kind>(p, at, sums, groups, hulls, top, select_stream(seed, p.step));
    if (lane == 0) put_id(p, row, id);
  }
}

#define GROUPS(kind, name, run, threads, blocks)                                                             \
  KERNEL __launch_bounds__(threads, blocks) sol_groups_##kind##_##name(const __grid_constant__ SampleParams p) { \
    begin_kernel();                                                                                          \
    run<KIND_##kind>(p);                                                                                     \
  }
GROUPS(FP32, warp, sample_few, 128, 6)
GROUPS(FP16, warp, sample_few, 128, 8)
GROUPS(BF16, warp, sample_few, 128, 8)
GROUPS(FP32, block, sample_groups, 256, 3)
GROUPS(FP16, block, sample_groups, 256, 4)
GROUPS(BF16, block, sample_groups, 256, 4)

#endif
