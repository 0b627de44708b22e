//! arch sm_90
//! alloc y 3*192*4 poison
//! alloc errors 32 zero
//! launch elect grid=2 block=96 args=y,i32:192
//! launch elect_check grid=2 block=96 args=y,i32:192,errors
//! checks 1152
// elect.sync: one lane of the mask is chosen and all are told which, in whole warps and in parts.
#include "check.cuh"

__device__ bool chosen(unsigned mask, unsigned *leader) {
  unsigned yes;
  asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }"
               : "=r"(*leader), "=r"(yes)
               : "r"(mask));
  return yes != 0;
}

extern "C" __global__ void elect(unsigned *y, int n) {
  unsigned i = blockIdx.x * 96 + threadIdx.x, lane = threadIdx.x % 32, leader;
  bool me = chosen(0xffffffffu, &leader);
  y[i] = leader | me << 8;
  y[n + i] = __ballot_sync(0xffffffffu, me);
  if (lane >= 13)
    me = chosen(0xffffe000u, &leader);
  else
    me = chosen(0x00001fffu, &leader);
  y[2 * n + i] = leader | me << 8;
}

extern "C" __global__ void elect_check(const unsigned *y, int n, unsigned *errors) {
  unsigned i = blockIdx.x * 96 + threadIdx.x, lane = threadIdx.x % 32;
  unsigned leader = y[i] & 255, part = y[2 * n + i] & 255;
  EXPECT(i, leader < 32);
  EXPECT_EQ(i, y[i] >> 8, leader == lane ? 1u : 0u);
  EXPECT_EQ(i, y[n + i], 1u << leader);
  EXPECT_EQ(i, leader, y[i - lane] & 255); // all lanes name the same
  EXPECT(i, part < 32 && (part >= 13) == (lane >= 13));
  EXPECT_EQ(i, y[2 * n + i] >> 8, part == lane ? 1u : 0u);
}
