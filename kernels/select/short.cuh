// A random element of a row of up to 256: some lanes, a power of two, share it, each with up to eight consecutive columns in
// registers (narrow.cuh). What top_k and top_p leave is found by bisection: the least key down to which elements are kept, and
// how many of those that have it.
#ifndef SOL_KERNELS_SELECT_SHORT_CUH
#define SOL_KERNELS_SELECT_SHORT_CUH

#include "draw.cuh"
#include "narrow.cuh"

enum { NO_KEY = 0 }; // of a NaN, and of what is not there

// A number for every value, in their order: -0 and +0 have the same.
INLINE uint32_t key_of_value(float f) {
  uint32_t u = __float_as_uint(f + 0.0f);
  return f != f ? (uint32_t)NO_KEY : u ^ ((uint32_t)((int32_t)u >> 31) | 0x80000000u);
}
INLINE float value_of_key(uint32_t key) {
  return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : ~0u));
}

// The lanes of a row, which follow each other.
typedef struct Lanes {
  int count, lane;
} Lanes;

INLINE uint64_t row_sum(Lanes l, uint64_t v) {
#pragma unroll 1
  for (int o = l.count / 2; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  return v;
}
INLINE uint32_t row_most(Lanes l, uint32_t v) {
#pragma unroll 1
  for (int o = l.count / 2; o; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o));
  return v;
}
INLINE uint64_t row_before(Lanes l, uint64_t v) { // the sum of the lanes before this one
  uint64_t upto = v;
#pragma unroll 1
  for (int o = 1; o < l.count; o *= 2) {
    uint64_t other = __shfl_up_sync(~0u, upto, o);
    if (l.lane >= o) upto += other;
  }
  return upto - v;
}

// A lane's columns.
typedef struct Columns {
  uint32_t key[NARROW_EACH], weight[NARROW_EACH];
} Columns;

INLINE uint64_t measure_short(Lanes l, const Columns &c, bool counts, uint32_t least) {
  uint32_t sum = 0;
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++)
    if (c.key[k] >= least) sum += counts ? c.weight[k] != 0 : c.weight[k];
  return row_sum(l, sum);
}

// Keeps of the elements with the least key that is kept so many, those of the lowest columns, and nothing below it.
INLINE void keep_short(Lanes l, Columns &c, uint32_t least, uint32_t kept) {
  uint32_t equal = 0;
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) equal += c.key[k] == least;
  uint32_t before = (uint32_t)row_before(l, equal);
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) {
    if (c.key[k] < least || (c.key[k] == least && before >= kept)) c.weight[k] = 0;
    before += c.key[k] == least;
  }
}

// Between two keys: by turns half of the values' distance and half of the keys'.
INLINE uint32_t middle_of(uint32_t low, uint32_t high, int turn) {
  uint32_t by_value = key_of_value(0.5f * value_of_key(low) + 0.5f * value_of_key(high));
  return min(max(turn % 4 < 3 ? by_value : low + (high - low) / 2, low + 1), high);
}

// Keeps what is needed for `target`, of the count or of the sum, the largest first; all rows of a warp together. Rows where
// all are needed have none to begin with (`search` false).
INLINE void cut_short(Lanes l, Columns &c, bool search, bool counts, uint64_t all, uint64_t target, float top, float per) {
  uint32_t most = 0, least = 0; // complement of the lowest key with a weight
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++)
    if (c.weight[k]) most = max(most, c.key[k]), least = max(least, ~c.key[k]);
  uint32_t high = row_most(l, most), low = ~row_most(l, least), unit = 1;
  uint64_t from = all, to = 0; // of at least `low`; of more than `high`
  bool done = !search;
#pragma unroll 1
  for (int turn = 0;; turn++) {
    if (!counts) unit = select_weight(value_of_key(low), top, per);
    done |= low >= high || target > from - unit; // the last one is needed, whichever it is
    if (!__any_sync(~0u, !done)) break;
    uint32_t middle = done ? low : middle_of(low, high, turn);
    uint64_t m = measure_short(l, c, counts, middle);
    if (done) continue;
    if (m >= target)
      low = middle, from = m;
    else
      high = middle - 1, to = m;
  }
  bool some = search && target <= from - unit; // of the equal ones
  uint32_t kept = some ? (uint32_t)((target - to + unit - 1) / unit) : ~0u;
  keep_short(l, c, search ? low : 0, kept);
}

INLINE void cut_columns(const SampleParams &p, Lanes l, Columns &c, float top) {
  if (p.k) {
    uint64_t all = measure_short(l, c, true, 0);
    cut_short(l, c, all > (uint64_t)p.k, true, all, (uint64_t)p.k, top, p.per);
  }
  if (p.share) {
    uint64_t all = measure_short(l, c, false, 0), target = __umul64hi(all, p.share << 32);
    cut_short(l, c, all > 0, false, all, target ? target : 1, top, p.per);
  }
}

// Writes the column that the random number falls on, by the lane that has it.
INLINE void draw_short(const SampleParams &p, Lanes l, const Columns &c, int first, uint64_t row, int64_t seed) {
  uint32_t mine = 0;
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) mine += c.weight[k];
  uint64_t before = row_before(l, mine), all = __shfl_sync(~0u, before + mine, l.count - 1, l.count);
  uint64_t wanted = __umul64hi(select_random((uint64_t)seed, p.step), all) - before;
  if (row >= p.m) return;
  if (!all && l.lane == 0) put_id(p, row, -1); // nothing but NaN
  if (wanted >= mine) return; // less than 0, too
  uint32_t upto = 0;
  int column = first;
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) {
    upto += c.weight[k];
    column += upto <= (uint32_t)wanted;
  }
  put_id(p, row, column);
}

// A row of the block's, by its lanes. Infinite ones among the largest are equal, and nothing else weighs anything.
INLINE void sample_short(const SampleParams &p, const NarrowTile &x, Lanes l, int at, int rows, uint64_t row, int kind) {
  const int each = ((int)p.n + l.count - 1) / l.count, first = l.lane * each;
  const char *held = narrow_row(x, at);
  int64_t seed = at < rows ? p.seeds[row] : 0;
  int end = at < rows ? min(each, (int)p.n - first) : 0;
  Columns c;
  float f[NARROW_EACH], top = NAN;
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) {
    f[k] = NAN;
    if (k < end) f[k] = load_one(held, first + k, kind);
    top = fmaxf(top, f[k]);
  }
#pragma unroll 1
  for (int o = l.count / 2; o; o >>= 1) top = fmaxf(top, __shfl_xor_sync(~0u, top, o));
#pragma unroll
  for (int k = 0; k < NARROW_EACH; k++) {
    c.key[k] = key_of_value(f[k]);
    c.weight[k] = k < each ? select_weight(f[k], top, p.per) : 0;
  }
  if (p.k || p.share) cut_columns(p, l, c, top);
  draw_short(p, l, c, first, at < rows ? row : p.m, seed);
}

KERNEL __launch_bounds__(NARROW_THREADS) sol_sample_short(const __grid_constant__ SampleParams p) {
  const int size = p.x_kind == KIND_FP32 ? 4 : 2, bits = p.narrow.lane_bits;
  int rows = narrow_rows(&p.narrow, p.m);
  NarrowTile x = narrow_tile(&p.narrow, NARROW_X, p.x, p.x_stride, size, rows);
  Lanes l = {1 << bits, (int)threadIdx.x & ((1 << bits) - 1)};
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p.narrow.rows;
  let_successor_start();
  wait_for_predecessor();
  narrow_fetch(x, size);
  narrow_arrived();
#pragma unroll 1
  for (int turn = 0; turn < rows; turn += blockDim.x >> bits) {
    int at = turn + (int)(threadIdx.x >> bits);
    sample_short(p, x, l, at, rows, first + at, p.x_kind);
  }
}

#endif
