//! alloc x 320*4 random-u32
//! alloc y 8*320*4 poison
//! alloc errors 32 zero
//! launch votes grid=2 block=160 args=x,y,i32:320
//! launch votes_check grid=2 block=160 args=x,y,i32:320,errors
//! checks 2560
// Votes of whole warps and of parts of them: ballot, any, all, uniform; activemask where lanes have diverged.
#include "check.cuh"

extern "C" __global__ void votes(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  unsigned v = x[i];
  int same;
  y[i] = __ballot_sync(0xffffffffu, v & 1);
  y[n + i] = __any_sync(0xffffffffu, v % 40 == 0) | __all_sync(0xffffffffu, v % 40 != 0) << 1;
  asm volatile(
      "{ .reg .pred p, q; setp.ne.u32 p, %1, 0; vote.sync.uni.pred q, p, 0xffffffff; selp.s32 %0, 1, 0, q; }"
      : "=r"(same)
      : "r"(i / 32 % 3 == 0 ? lane == 7 : i / 32 % 3 - 1));
  y[2 * n + i] = same;
  if (lane % 3 == 0) { // 11 lanes
    const unsigned thirds = 0x49249249u;
    y[3 * n + i] = __ballot_sync(thirds, v >> 1 & 1);
    y[4 * n + i] = __any_sync(thirds, v % 20 == 0) | __all_sync(thirds, v % 20 != 0) << 1;
  } else {
    const unsigned others = 0xb6db6db6u;
    y[3 * n + i] = __ballot_sync(others, v >> 2 & 1);
    y[4 * n + i] = __all_sync(others, lane != 5) << 2;
  }
  y[5 * n + i] = __ballot_sync(0xffffffffu, true);
  if (v & 4)
    y[6 * n + i] = __activemask();
  else
    y[6 * n + i] = ~__activemask();
  y[7 * n + i] = __ballot_sync(0xffffffffu, v & 4);
}

extern "C" __global__ void votes_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = i % 32, warp = i / 32;
  const unsigned *row = x + warp * 32;
  unsigned odd = 0, any = 0, some = 0, part = 0, third = 0, fours = 0;
  for (int k = 0; k < 32; k++) {
    odd |= (row[k] & 1) << k, any |= row[k] % 40 == 0, fours |= (row[k] >> 2 & 1) << k;
    if (k % 3 == 0)
      part |= (row[k] >> 1 & 1) << k, third |= row[k] % 20 == 0;
    else
      some |= (row[k] >> 2 & 1) << k;
  }
  EXPECT_EQ(i, y[i], odd);
  EXPECT_EQ(i, y[n + i], any | !any << 1);
  EXPECT_EQ(i, y[2 * n + i], warp % 3 != 0);
  EXPECT_EQ(i, y[3 * n + i], lane % 3 == 0 ? part : some);
  EXPECT_EQ(i, y[4 * n + i], lane % 3 == 0 ? third | !third << 1 : 0u);
  EXPECT_EQ(i, y[5 * n + i], 0xffffffffu);
  // An active mask is not required to hold every lane on the same side, but itself, and none of the other
  // side.
  unsigned mask = row[lane] & 4 ? y[6 * n + i] : ~y[6 * n + i], side = row[lane] & 4 ? fours : ~fours;
  EXPECT(i, (mask >> lane & 1) && (mask & ~side) == 0);
  EXPECT_EQ(i, y[7 * n + i], fours);
}
