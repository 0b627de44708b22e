//! alloc x 4*160*4 random-u32
//! alloc y 4*160*4 poison
//! alloc votes 4*160*4 poison
//! alloc errors 32 zero
//! launch specialised grid=4 block=160 args=x,y
//! launch barrier_reduce grid=4 block=160 args=x,votes
//! launch named_check grid=4 block=160 args=x,y,votes,errors
//! checks 1152
// Named barriers: one warp produces into two buffers, four consume; producers arrive without waiting. Then
// barriers of two halves of a block at once, with reductions of a predicate.
#include "check.cuh"

#define BAR(op, id, count) asm volatile("bar." op " %0, %1;" ::"r"(id), "r"(count) : "memory")

extern "C" __global__ void specialised(const unsigned *x, unsigned *y) {
  __shared__ unsigned s[2][32];
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  x += blockIdx.x * 160, y += blockIdx.x * 160;
  // Barriers 1, 2: buffer full. 3, 4: buffer empty. All of 160 threads take part in each.
  if (warp == 0) {
    for (int k = 0; k < 5; k++) {
      if (k >= 2) BAR("sync", 3 + (k & 1), 160);
      s[k & 1][lane] = x[k * 32 + lane] * 2 + k;
      __threadfence_block();
      BAR("arrive", 1 + (k & 1), 160);
    }
  } else {
    unsigned sum = 0;
    for (int k = 0; k < 5; k++) {
      BAR("sync", 1 + (k & 1), 160);
      sum = sum * 3 + s[k & 1][(lane + warp) % 32];
      if (k < 3) BAR("arrive", 3 + (k & 1), 160);
    }
    y[t] = sum;
  }
}

extern "C" __global__ void barrier_reduce(const unsigned *x, unsigned *votes) {
  int t = threadIdx.x, i = blockIdx.x * 160 + t, half = t < 64 ? 0 : 1;
  unsigned odd = x[i] & 1, count;
  int all, any;
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %3, 0;\n"
               "barrier.red.popc.u32 %0, %4, %5, p;\n"
               "barrier.red.and.pred q, %4, %5, !p; selp.s32 %1, 1, 0, q;\n"
               "barrier.red.or.pred q, %4, %5, p; selp.s32 %2, 1, 0, q; }"
               : "=r"(count), "=r"(all), "=r"(any)
               : "r"(odd), "r"(5 + half), "r"(half ? 96 : 64)
               : "memory");
  votes[i] = count | all << 8 | any << 9;
}

extern "C" __global__ void named_check(const unsigned *x, const unsigned *y, const unsigned *votes,
                                       unsigned *errors) {
  int t = threadIdx.x, warp = t / 32, lane = t % 32;
  x += blockIdx.x * 160, y += blockIdx.x * 160, votes += blockIdx.x * 160;
  unsigned sum = 0, count = 0;
  for (int k = 0; k < 5; k++) sum = sum * 3 + x[k * 32 + (lane + warp) % 32] * 2 + k;
  if (warp > 0) EXPECT_EQ(t, y[t], sum);
  for (int k = t < 64 ? 0 : 64; k < (t < 64 ? 64 : 160); k++) count += x[k] & 1;
  EXPECT_EQ(t, votes[t], count | (count == 0) << 8 | (count != 0) << 9);
}
