//! alloc x 256*4 random-u32:9
//! alloc y 6*256*4 poison
//! alloc errors 32 zero
//! launch matches grid=2 block=128 args=x,y,i32:256
//! launch matches_check grid=2 block=128 args=x,y,i32:256,errors
//! checks 1536
// match_any and match_all of 32 and 64 bits, whole warps and parts.
#include "check.cuh"

extern "C" __global__ void matches(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = i / 32, all;
  unsigned v = x[i];
  y[i] = __match_any_sync(0xffffffffu, v);
  y[n + i] = __match_any_sync(0xffffffffu, (unsigned long long)v << 33 | 5);
  y[2 * n + i] = __match_all_sync(0xffffffffu, warp & 1 ? 42u : v, &all);
  y[3 * n + i] = all != 0;
  if (lane >= 20) {
    y[4 * n + i] = __match_any_sync(0xfff00000u, v % 2);
    y[5 * n + i] = __match_all_sync(0xfff00000u, 1.5 * (warp % 2 ? 1 : lane), &all);
  } else {
    y[4 * n + i] = __match_any_sync(0x000fffffu, (int)v - 4);
    y[5 * n + i] = __match_all_sync(0x000fffffu, 7ull << 40, &all);
  }
}

extern "C" __global__ void matches_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = i % 32, warp = i / 32;
  const unsigned *row = x + warp * 32;
  unsigned same = 0, parity = 0, constant = 0xffffffffu;
  for (int k = 0; k < 32; k++) {
    if (row[k] == row[lane]) same |= 1u << k;
    if (row[k] % 2 == row[lane] % 2) parity |= 1u << k;
    if (row[k] != row[0]) constant = 0;
  }
  EXPECT_EQ(i, y[i], same);
  EXPECT_EQ(i, y[n + i], same);
  EXPECT_EQ(i, y[2 * n + i], warp & 1 ? 0xffffffffu : constant);
  EXPECT_EQ(i, y[3 * n + i], warp & 1 ? 1u : constant & 1);
  EXPECT_EQ(i, y[4 * n + i], lane >= 20 ? parity & 0xfff00000u : same & 0xfffffu);
  EXPECT_EQ(i, y[5 * n + i], lane >= 20 ? (warp & 1 ? 0xfff00000u : 0u) : 0xfffffu);
}
