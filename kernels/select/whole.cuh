// A row of 16-bit elements in registers, neither cut nor weighed: so many lanes of a warp share it, each with up to 16 chunks of 16 bytes. Chunks
// are the buffer's, wherever a row starts, and what they have of other rows is NaN. An element is drawn by coarse hulls; the chunk that it is in is read once more, out
// of L1 or L2, so that no register holds the row until then.
#ifndef SOL_KERNELS_SELECT_WHOLE_CUH
#define SOL_KERNELS_SELECT_WHOLE_CUH

#include "coarse.cuh"
#include "rounds.cuh"
#include "weigh.cuh"

template <int kind_, int bits_> struct Whole {
  enum { kind = kind_, bits = bits_, lanes = 1 << bits_, rounds = WHOLE_ROUNDS, turn = WHOLE_TURN };
  Vec v[rounds];
  const char *from;      // this lane's first chunk
  int lane, n;           // of the row
  int before;            // bytes of the first chunk before the row
  int chunks, low, high; // of the row; those from `low` and before `high` are all within the tensor
  int used;              // rounds
  uint32_t upto[rounds]; // hulls of the rounds up to each, with what is beside the row
  uint32_t steps;        // of hulls
  float top;
  Coarse coarse;
};

// A row of n elements that begins at `at`.
template <class W> INLINE void place_whole(W &w, const SampleParams &p, const char *at, int n) {
  const char *begin = (const char *)p.x, *end = begin + (int64_t)(p.m - 1) * p.x_stride + p.n * 2;
  w.lane = threadIdx.x % W::lanes, w.n = n, w.used = p.rounds, w.steps = p.steps;
  w.before = (int)((uint32_t)(uintptr_t)at & 15);
  at -= w.before;
  w.chunks = (w.before + 2 * n + 15) / 16;
  w.low = at < begin, w.high = w.chunks - (at + 16 * w.chunks > end);
  w.from = at + 16 * w.lane;
}

// Chunks that are not all within the tensor: the first of its first row, the last of its last.
template <class W> INLINE void load_ends(W &w, const SampleParams &p) {
  const char *begin = (const char *)p.x, *end = begin + (int64_t)(p.m - 1) * p.x_stride + p.n * 2;
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    int c = i ? w.chunks - 1 : 0, mine = c - w.lane;
    if (mine % W::lanes || (c >= w.low && c < w.high)) continue;
    Vec v;
    v.v = load_singly(w.from + 16 * mine, begin, end, 2);
#pragma unroll
    for (int r = 0; r < W::rounds; r++)
      if (mine == r * W::lanes) w.v[r] = v;
  }
}

template <class W> INLINE void load_whole(W &w, const SampleParams &p) {
  const uint4 none = make_uint4(~0u, ~0u, ~0u, ~0u), *from = (const uint4 *)w.from;
  const int sure = (max((2 * w.n + 15) / 16, 1) - 1) / W::lanes; // rounds that every lane has, wherever the row begins
#pragma unroll
  for (int r = 0; r < W::rounds; r += W::turn) {
    if (r + W::turn <= sure) {
#pragma unroll
      for (int t = r; t < r + W::turn; t++) {
        if (!t) w.v[t].v = none;
        if (t || w.lane >= w.low) w.v[t].v = from[t * W::lanes];
      }
    } else if (r < w.used) {
#pragma unroll
      for (int t = r; t < r + W::turn; t++) {
        int c = t * W::lanes + w.lane;
        w.v[t].v = none;
        if (c < w.high && (t || c >= w.low)) w.v[t].v = from[t * W::lanes];
      }
    }
  }
  if (__any_sync(~0u, w.low > 0 || w.high < w.chunks)) load_ends(w, p);
  if (__any_sync(~0u, w.before)) mask_before(w.v[0], w.lane ? 0 : w.before, ~0u);
#pragma unroll
  for (int r = 0; r < W::rounds; r += W::turn) { // the rounds that rows end in
    if (r + W::turn <= sure || r >= w.used) continue;
#pragma unroll
    for (int t = r; t < r + W::turn; t++)
      if (t >= sure && t < w.used) mask_after(w.v[t], w.before + 2 * w.n - 16 * (t * W::lanes + w.lane), ~0u);
  }
}

// A chunk of the row once more.
template <class W> INLINE Vec chunk_again(const W &w, const SampleParams &p, int round) {
  const char *begin = (const char *)p.x, *end = begin + (int64_t)(p.m - 1) * p.x_stride + p.n * 2, *at = w.from + round * W::lanes * 16;
  int c = round * W::lanes + w.lane;
  Vec v;
  v.v = make_uint4(~0u, ~0u, ~0u, ~0u);
  if (c >= w.low && c < w.high) v.v = *(const uint4 *)at;
  if (__any_sync(~0u, c == 0 || c >= w.chunks - 1)) {
    if (c < w.chunks && (c < w.low || c >= w.high)) v.v = load_singly(at, begin, end, 2);
    mask_before(v, c ? 0 : w.before, ~0u);
    mask_after(v, w.before + 2 * w.n - 16 * c, ~0u);
  }
  return v;
}

// The largest element; NaN where there is no other.
template <class W> INLINE float top_of_whole(const W &w) {
  uint32_t word = ~0u;
#pragma unroll
  for (int r = 0; r < W::rounds; r += W::turn)
    if (r < w.used)
#pragma unroll
      for (int t = r; t < r + W::turn; t++) word = larger_word<W::kind, 0>(word, chunk_word<W::kind>(w.v[t]));
#pragma unroll
  for (int o = W::lanes / 2; o; o >>= 1) word = larger_word<W::kind, 0>(word, __shfl_xor_sync(~0u, word, o));
  return word_top<W::kind>(word);
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

// Of an infinite largest element only those equal to it have any weight: they become 0, and all others -infinity.
template <class W> INLINE void equal_alone(Vec &v, float top) {
#pragma unroll
  for (int j = 0; j < 4; j++) v.u[j] = only_equal<W::kind>(v.u[j], top);
}

template <class W> INLINE Vec whole_hulls(const Vec &v, const Coarse &coarse) {
  Vec hulls;
#pragma unroll
  for (int j = 0; j < 4; j++) hulls.u[j] = coarse_word<W::kind>(v.u[j], coarse);
  return hulls;
}

// Hulls of the row with that largest element, round by round; their sum.
template <class W> INLINE uint32_t sum_whole(W &w, float top) {
  const uint32_t shares = coarse_shares(W::lanes);
  uint32_t own, sum = 0;
  w.top = top;
  bool infinite = !(fabsf(top) <= 0x1.fffffep127f);
  if (__any_sync(~0u, infinite))
#pragma unroll
    for (int r = 0; r < W::rounds; r++)
      if (infinite && r < w.used) equal_alone<W>(w.v[r], top);
  w.coarse = coarse_of<W::kind>(infinite ? 0 : top, w.steps);
#pragma unroll
  for (int r = 0; r < W::rounds; r += W::turn) {
#pragma unroll
    for (int t = r; t < r + W::turn; t++) w.upto[t] = 0;
    if (r >= w.used) continue;
#pragma unroll
    for (int t = r; t < r + W::turn; t++) {
      uint32_t all;
      sum_coarse(whole_hulls<W>(w.v[t], w.coarse), shares, W::lanes, &own, &all);
      if (W::lanes == 32) w.upto[t] = lanes_sum(own);
      else {
#pragma unroll
        for (int o = 4; o < W::lanes; o *= 2) all += __shfl_xor_sync(~0u, all, o);
        w.upto[t] = all;
      }
    }
  }
#pragma unroll
  for (int r = 0; r < W::rounds; r++) w.upto[r] = sum += w.upto[r];
  const int places = (w.used + W::turn - 1) / W::turn * W::turn * W::lanes * 8;
  return sum - (uint32_t)(places - w.n) * SELECT_FLOOR;
}

// One trial by a random number, which falls on `wanted` of the sum: whether this lane has the element that was taken, and its column.
template <class W> INLINE bool draw_in_whole(const W &w, const SampleParams &p, uint32_t wanted, uint64_t random, int *column) {
  uint32_t upto[W::rounds], less = 0, own, all;
  int round = 0;
  wanted += (uint32_t)w.before / 2 * SELECT_FLOOR;
#pragma unroll
  for (int r = 0; r < W::rounds; r++) upto[r] = w.upto[r];
#pragma unroll
  for (int level = WHOLE_LEVELS - 1; level >= 0; level--) { // 2^(level + 1) of them are left
    const int half = 1 << level;
    bool further = wanted >= upto[half - 1];
    if (further) round += half, less = upto[half - 1];
#pragma unroll
    for (int r = 0; r < WHOLE_ROUNDS / 2; r++)
      if (r < half && further) upto[r] = upto[r + half];
  }
  Vec v = chunk_again(w, p, round);
  if (__any_sync(~0u, isinf(w.top)))
    if (isinf(w.top)) equal_alone<W>(v, w.top);
  Vec hulls = whole_hulls<W>(v, w.coarse);
  sum_coarse(hulls, coarse_shares(W::lanes), W::lanes, &own, &all);
  uint32_t rest = wanted - less, before = own;
#pragma unroll
  for (int o = 1; o < W::lanes; o *= 2) {
    uint32_t other = __shfl_up_sync(~0u, before, o, W::lanes);
    if (w.lane >= o) before += other;
  }
  rest -= before - own;
  bool mine = rest < own; // less than 0, too, is not
  int at = find_coarse(hulls, &rest);
  *column = (round * W::lanes + w.lane) * 8 - w.before / 2 + at;
  return mine && select_takes(value_of_bits<W::kind>(bits_at<W::kind>(v, at)), w.top, p.per, W::kind == KIND_BF16, rest, random);
}

// Rows of lanes of a warp each.
template <int kind, int bits> INLINE void sample_whole(const SampleParams &p) {
  typedef Whole<kind, bits> W;
  W w;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  uint64_t row = block * (WHOLE_THREADS >> bits) + (threadIdx.x >> bits), last = min(row, p.m - 1);
  uint64_t seed = (uint64_t)p.seeds[last]; // in flight along with the row
  place_whole(w, p, (const char *)p.x + (int64_t)last * p.x_stride, (int)p.n);
  load_whole(w, p);
  const uint64_t stream = select_stream(seed, p.step);
  uint64_t random = select_random(stream, 0);
  uint32_t sum = sum_whole(w, top_of_whole(w));
  bool done = row >= p.m || w.top != w.top;
  if (w.top != w.top && row < p.m && w.lane == 0) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = 0; __any_sync(~0u, !done); random = select_random(stream, ++trial)) {
    int column;
    bool taken = draw_in_whole(w, p, (uint32_t)__umul64hi(random, sum), random, &column) && !done;
    if (taken) put_id(p, row, column);
    done |= (__ballot_sync(~0u, taken) & row_mask(W::lanes)) != 0;
  }
}

#define WHOLE_KERNEL(kind, bits) \
  KERNEL __launch_bounds__(WHOLE_THREADS, WHOLE_BLOCKS) sol_whole_##kind##_##bits(const __grid_constant__ SampleParams p) { \
    begin_kernel(); \
    sample_whole<KIND_##kind, bits>(p); \
  }
#define WHOLE_KERNELS(kind) WHOLE_KERNEL(kind, 1) WHOLE_KERNEL(kind, 2) WHOLE_KERNEL(kind, 3) WHOLE_KERNEL(kind, 4) WHOLE_KERNEL(kind, 5)
WHOLE_KERNELS(FP16)
WHOLE_KERNELS(BF16)

#endif
