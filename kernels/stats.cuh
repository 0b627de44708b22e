// Mean and variance of a thread's elements, and of all threads of a block together, without squares of large numbers being subtracted.
#ifndef SOL_KERNELS_STATS_CUH
#define SOL_KERNELS_STATS_CUH

#include "parts.cuh"

typedef struct Stats { // squares: of the distances from the mean
  float count, mean, squares;
} Stats;

// Sums over a thread's elements, of what they are above a middle: the mean of the thread's own first chunk. However far that is from the
// others, no more is lost than a thread's elements times a rounding, as what they are apart counts in the variance.
typedef struct Running {
  float middle;
  float2 sum, squares;
} Running;

INLINE void run_one(Running &r, float f) {
  float d = f - r.middle;
  r.sum.x += d;
  r.squares.x = fmaf(d, d, r.squares.x);
}

INLINE void run_chunk(Running &r, Vec v, int kind, int in) {
  float f[8];
  widen(&v, kind, in, f);
#pragma unroll
  for (int j = 0; j < 16 / in; j += 2) {
    float d = f[j] - r.middle, e = f[j + 1] - r.middle;
    r.sum.x += d, r.sum.y += e;
    r.squares.x = fmaf(d, d, r.squares.x), r.squares.y = fmaf(e, e, r.squares.y);
  }
}

INLINE float chunk_mean(Vec v, int kind, int in) {
  float f[8], sum = 0;
  widen(&v, kind, in, f);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) sum = fmaf(f[j], in / 16.f, sum);
  return sum;
}

INLINE Stats run_end(const Running &r, int count) {
  Stats s;
  float sum = r.sum.x + r.sum.y, apart = count ? __fdividef(sum, (float)count) : 0;
  s.count = (float)count;
  s.mean = r.middle + apart;
  s.squares = fmaf(-sum, apart, r.squares.x + r.squares.y);
  return s;
}

// Those of all threads of the block, which have `count` elements. `room` is used once.
typedef struct StatsRoom {
  float part[2][32];
} StatsRoom;
INLINE Stats stats_block(Stats s, float count, StatsRoom *room) {
  Stats all;
  all.count = count;
  all.mean = parts_sum(s.mean * (s.count / count), room->part[0]);
  float apart = s.mean - all.mean;
  all.squares = parts_sum(s.count > 0 ? fmaf(s.count * apart, apart, s.squares) : 0, room->part[1]);
  return all;
}

#endif
