// Scores that wgmma left in registers, and tensor copies of four dimensions: what attention needs beyond hopper.cuh and wgmma.cuh.
#ifndef SOL_KERNELS_ATTENTION_HOPPER_CUH
#define SOL_KERNELS_ATTENTION_HOPPER_CUH

#include "attention/attention_parts.cuh"
#include "mma.cuh"
#include "wgmma.cuh"

INLINE void tensor_load_4d(void *to, const void *map, uint64_t *bar, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

INLINE void named_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}

// Values that wgmma wrote are not to be used before this, which stands after the wait.
template <int count> INLINE void settle(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Caps and masks scores, as cap_scores and mask_scores do, and raises the largest of each row, 32 columns at a time: those that no row of the
// warp sees (all: any does) are left alone. Returns a bit for each 32 columns looked at.
template <int tiles>
INLINE uint32_t look_at_scores(float (&s)[tiles][4], const ScoreUnit &u, const int (&from)[2], const int (&to)[2], Seen all, float (&most)[2]) {
  uint32_t seen = 0;
#pragma unroll
  for (int g = 0; g < tiles / 4; g++) {
    if (g * 32 >= all.to || g * 32 + 32 <= all.from) continue;
    seen |= 1u << g;
    if (u.cap != 0) cap_scores(*(float(*)[4][4]) & s[g * 4], u.before, u.cap);
#pragma unroll
    for (int i = g * 16; i < g * 16 + 16; i++) {
      int column = i / 4 * 8 + i % 2, row = i % 4 / 2;
      float *one = &s[i / 4][i % 4];
      *one = column >= from[row] && column < to[row] ? *one : -INFINITY;
      most[row] = fmaxf(most[row], *one);
    }
  }
  return seen;
}

// As softmax_tile, of the columns looked at; the weights of others are zero. most: of the scores.
template <int tiles> INLINE void weigh_scores(float (&s)[tiles][4], uint32_t seen, const float (&most)[2], Softmax *x, float unit, float (&by)[2]) {
  float base[2], sum[2] = {};
#pragma unroll
  for (int row = 0; row < 2; row++) {
    float all = fmaxf(x->most[row], quad_max(most[row]));
    base[row] = all == -INFINITY ? 0 : all * unit; // all left out: 2^-infinity is 0
    by[row] = exp_two(x->most[row] * unit - base[row]), x->most[row] = all;
  }
#pragma unroll
  for (int g = 0; g < tiles / 4; g++)
    if (seen >> g & 1) {
#pragma unroll
      for (int i = g * 16; i < g * 16 + 16; i++) sum[i % 4 / 2] += s[i / 4][i % 4] = exp_two(s[i / 4][i % 4] * unit - base[i % 4 / 2]);
    } else
#pragma unroll
      for (int i = g * 16; i < g * 16 + 16; i++) s[i / 4][i % 4] = 0;
#pragma unroll
  for (int row = 0; row < 2; row++) x->sum[row] = x->sum[row] * by[row] + sum[row];
}

#endif
