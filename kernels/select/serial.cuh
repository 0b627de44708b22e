// A random element of rows of a few elements, dense or close to each other (narrow.cuh): a block has a span of many in shared memory, one thread a row.
//
// What a first trial refuses, a few rows of a hundred, is listed, and one warp makes the other trials of all of a block: if every warp made those of its own
// rows, nearly every one would make a second and many a third for one lane.
#ifndef SOL_KERNELS_SELECT_SERIAL_CUH
#define SOL_KERNELS_SELECT_SERIAL_CUH

#include "narrow.cuh"
#include "short.cuh"

// The rows of a block, and those of them that were refused.
typedef struct SerialRows {
  NarrowTile tile;
  uint64_t first;
  uint16_t *refused;
} SerialRows;

// The row from byte `at` of narrow_memory on, as chunks that begin with it; what is after it is NaN.
template <int kind, int chunks> INLINE void serial_take(Short<kind, chunks> &s, const SampleParams &p, int at, bool there) {
  const uint32_t *from = (const uint32_t *)(narrow_memory + (at & -4));
  const int odd = (at & 2) * 8; // bits by which elements are beyond words
  s.used = chunks, s.lanes = 1, s.lane = 0, s.first = 0, s.n = there ? (int)p.n : 0;
#pragma unroll
  for (int r = 0; r < chunks; r++) {
    uint32_t word[5];
#pragma unroll
    for (int j = 0; j < (kind == KIND_FP32 ? 4 : 5); j++) word[j] = from[4 * r + j];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      s.v[r].u[j] = kind == KIND_FP32 ? word[j] : __funnelshift_r(word[j], word[j + 1], odd);
      if (r == chunks - 1) s.v[r].u[j] |= p.beyond[j];
    }
  }
}

// Where the rest of a random number falls among eight elements: how many of them are before, their sum, and the bits of the element. upto: the sums up to
// each of the first seven.
typedef struct SerialSpot {
  int at;
  float before;
  uint32_t bits;
} SerialSpot;
INLINE SerialSpot serial_find(const float *upto, const Vec &v, float rest) {
  const bool four = upto[3] <= rest;
  const float of_two = four ? upto[5] : upto[1];
  const bool two = of_two <= rest;
  const float of_one = four ? two ? upto[6] : upto[4] : two ? upto[2] : upto[0];
  const bool one = of_one <= rest;
  const uint32_t word = four ? two ? v.u[3] : v.u[2] : two ? v.u[1] : v.u[0];
  return SerialSpot{4 * four + 2 * two + one, one ? of_one : two ? of_two : four ? upto[3] : 0, one ? word >> 16 : word & 0xffff};
}

// The sums of coarse hulls up to each, all of them exact.
INLINE void serial_sums(const Vec &hulls, float *upto) {
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    float2 two = widen2(hulls.u[j], KIND_FP16);
    upto[2 * j] = sum + two.x, upto[2 * j + 1] = sum += two.x + two.y;
  }
}

// Trials by coarse hulls of a row of one chunk; whether this thread's row is done.
template <int kind>
INLINE bool serial_coarse(const SampleParams &p, const Short<kind, 1> &s, float top, uint64_t row, uint64_t stream, Trials trials) {
  const float start = 16, unit = 0x1p-19f; // the last bit of 16 is a unit: sums are whole numbers of them (coarse.cuh)
  auto units = [=](float sum) { return __float_as_uint(sum + start) - __float_as_uint(start); };
  uint64_t random = select_random(stream, trials.first);
  float upto[8];
  serial_sums(coarse_chunk<false, kind>(s.v[0], coarse_of<kind>(top, p.steps), 0), upto);
  const uint32_t whole = units(upto[7]) - (uint32_t)(s.per - (int)p.n) * SELECT_FLOOR;
  bool done = !s.n || top != top;
  if (done && s.n) put_id(p, row, -1); // nothing but NaN
#pragma unroll 1
  for (uint32_t trial = trials.first; trial != trials.end && __any_sync(~0u, !done); random = select_random(stream, ++trial)) {
    const float rest = (float)(uint32_t)__umul64hi(random, whole) * unit;
    SerialSpot spot = serial_find(upto, s.v[0], rest);
    if (!done && select_takes(value_of_bits<kind>(spot.bits), top, p.per, kind == KIND_BF16, units(rest - spot.before), random)) {
      put_id(p, row, spot.at);
      done = true;
    }
  }
  return done;
}

// Trials of row `row` of the block, all lanes of a warp together; whether it is done.
template <int kind, int chunks>
INLINE bool serial_draw(const SampleParams &p, const SerialRows &rows, int row, bool there, uint64_t seed, Trials trials) {
  Short<kind, chunks> s;
  serial_take(s, p, rows.tile.place + row * rows.tile.pitch, there);
  const uint64_t stream = select_stream(seed, p.step);
  float top = scale_row<false>(p, s);
  if constexpr (kind != KIND_FP32 && chunks == 1) return serial_coarse(p, s, top, rows.first + row, stream, trials);
  else if constexpr (kind != KIND_FP32) return draw_coarse<false>(p, s, top, rows.first + row, stream, trials);
  else return draw_hulls<false>(p, s, top, rows.first + row, stream, trials);
}

// The block's rows, and zeros around them where words and chunks of rows reach beyond.
template <int kind> INLINE void serial_fetch(const SampleParams &p, const NarrowTile &tile, int rows) {
  const int size = kind == KIND_FP32 ? 4 : 2;
  NarrowTile span = tile; // what is between rows, too, but nothing after the last one
  span.rows = 1, span.bytes = (rows - 1) * tile.bytes + (int)p.n * size;
  narrow_fetch(span, size);
  const int begin = tile.place, end = begin + span.bytes;
  if (size == 2 && threadIdx.x == 0) {
    if (begin & 2) *(uint16_t *)(narrow_memory + begin - 2) = 0;
    if (end & 2) *(uint16_t *)(narrow_memory + end) = 0;
  }
  if (threadIdx.x < SERIAL_BEYOND / 4) *(uint32_t *)(narrow_memory + ((end + 2) & -4) + threadIdx.x * 4) = 0;
}

template <int kind, int chunks> INLINE void sample_serial(const SampleParams &p) {
  __shared__ uint32_t count;
  const int rows = narrow_rows(&p.narrow, p.m);
  if (!rows) return;
  SerialRows s;
  s.tile = narrow_tile(&p.narrow, NARROW_X, p.x, p.x_stride, kind == KIND_FP32 ? 4 : 2, rows);
  s.first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * p.narrow.rows;
  s.refused = (uint16_t *)(narrow_memory + p.narrow.place[NARROW_IDS]);
  const int64_t *seeds = p.seeds + s.first, *next = seeds + threadIdx.x;
  serial_fetch<kind>(p, s.tile, rows);
  if (threadIdx.x == 0) count = 0;
  int row = threadIdx.x;
  uint64_t seed = 0;
  if (row < rows) seed = (uint64_t)*next; // in flight along with the rows
  narrow_arrived();
#pragma unroll 1
  for (int turn = 0; turn < rows; turn += NARROW_THREADS, row += NARROW_THREADS) {
    const uint64_t here = seed;
    next += NARROW_THREADS;
    if (row + NARROW_THREADS < rows) seed = (uint64_t)*next;
    if (!serial_draw<kind, chunks>(p, s, min(row, rows - 1), row < rows, here, Trials{0, 1})) s.refused[atomicAdd(&count, 1)] = (uint16_t)row;
  }
  __syncthreads();
  if (threadIdx.x >= 32) return;
#pragma unroll 1
  for (int turn = 0; turn < count; turn += 32) {
    const bool there = turn + threadIdx.x < count;
    row = s.refused[there ? turn + threadIdx.x : 0];
    serial_draw<kind, chunks>(p, s, row, there, (uint64_t)seeds[row], Trials{1, ~0u});
  }
}

#define SERIAL_KERNEL(kind, chunks, blocks)                                                                  \
  KERNEL __launch_bounds__(NARROW_THREADS, blocks) sol_serial_##kind##_##chunks(const __grid_constant__ SampleParams p) { \
    begin_kernel();                                                                                          \
    sample_serial<KIND_##kind, chunks>(p);                                                                   \
  }
#define SERIAL_KERNELS(kind) SERIAL_KERNEL(kind, 1, 12) SERIAL_KERNEL(kind, 2, 12) SERIAL_KERNEL(kind, 3, 9) SERIAL_KERNEL(kind, 4, 8)
SERIAL_KERNELS(FP32)
SERIAL_KERNELS(FP16)
SERIAL_KERNELS(BF16)

#endif
