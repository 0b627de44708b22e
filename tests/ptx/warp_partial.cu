//! alloc x 128*4 random-u32
//! alloc y 4*128*4 poison
//! alloc errors 32 zero
//! launch partial grid=1 block=128 args=x,y,i32:128
//! launch partial_check grid=1 block=128 args=x,y,i32:128,errors
//! checks 512
// Shuffles among the lanes of one branch, shuffles of 64-bit and half values, a warp barrier for some lanes
// with data passed through shared memory, and a warp with fewer than 32 threads left.
#include "check.cuh"
#include <cuda_fp16.h>

extern "C" __global__ void partial(const unsigned *x, unsigned *y, int n) {
  __shared__ unsigned s[128];
  int t = threadIdx.x, lane = t % 32;
  unsigned v = x[t];
  if (lane < 12) {
    y[t] = __shfl_sync(0x00000fffu, v, (lane + 5) % 12);
    s[t] = v;
    __syncwarp(0x00000fffu);
    y[n + t] = s[t - lane + 11 - lane];
  } else {
    y[t] = __shfl_xor_sync(0xfffff000u, v, 3);
    s[t] = ~v;
    __syncwarp(0xfffff000u);
    y[n + t] = s[t - lane + 43 - lane];
  }
  unsigned long long wide = __shfl_down_sync(0xffffffffu, (unsigned long long)v << 17 | v, 4);
  double d = __shfl_up_sync(0xffffffffu, (double)v, 1);
  half2 h = __shfl_xor_sync(0xffffffffu,
                            __halves2half2(__ushort_as_half(v & 0x3fff), __ushort_as_half(v >> 18)), 16);
  y[2 * n + t] = (unsigned)(wide >> 10) ^ (unsigned)d ^ *(unsigned *)&h;
  y[3 * n + t] = 0;
  if (lane >= 9) return;
  y[3 * n + t] = __shfl_sync(0x1ffu, v, (lane + 4) % 9) + __ballot_sync(0x1ffu, lane & 1);
}

extern "C" __global__ void partial_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int t = threadIdx.x, lane = t % 32;
  const unsigned *row = x + t / 32 * 32;
  EXPECT_EQ(t, y[t], lane < 12 ? row[(lane + 5) % 12] : row[lane ^ 3]);
  EXPECT_EQ(t, y[n + t], lane < 12 ? row[11 - lane] : ~row[43 - lane]);
  unsigned far = row[lane < 28 ? lane + 4 : lane], near = row[lane ? lane - 1 : 0], other = row[lane ^ 16];
  unsigned long long wide = (unsigned long long)far << 17 | far;
  EXPECT_EQ(t, y[2 * n + t], (unsigned)(wide >> 10) ^ near ^ ((other & 0x3fff) | other >> 18 << 16));
  EXPECT_EQ(t, y[3 * n + t], lane < 9 ? row[(lane + 4) % 9] + 0xaau : 0u);
}
