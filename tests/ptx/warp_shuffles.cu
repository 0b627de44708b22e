//! alloc x 64*4 random-u32
//! alloc out 64*4*6*40*4 poison
//! alloc errors 32 zero
//! launch shuffles grid=1 block=64 args=x,out
//! launch shuffles_check grid=1 block=64 args=x,out,errors
//! checks 61440
// All four shuffles, with widths 1 to 32 and distances 0 to 39; what they return where the source is outside
// the segment, and the predicate that says so (by inline assembly).
#include "check.cuh"

extern "C" __global__ void shuffles(const unsigned *x, unsigned *out) {
  unsigned t = threadIdx.x, v = x[t];
  unsigned *at = out + t;
  for (int k = 0; k < 40; k++)
    for (int w = 0; w < 6; w++, at += 4 * 64) {
      int width = 1 << w;
      unsigned got, in;
      at[0] = __shfl_sync(0xffffffffu, v, k, width);
      at[64] = __shfl_up_sync(0xffffffffu, v, k % 32, width);
      at[128] = __shfl_down_sync(0xffffffffu, v, k % 32, width);
      asm volatile("{ .reg .pred p; shfl.sync.bfly.b32 %0|p, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, p; }"
                   : "=r"(got), "=r"(in)
                   : "r"(v), "r"(k % 32), "r"((32 - width) << 8 | 31));
      at[192] = got ^ in << 31;
    }
}

extern "C" __global__ void shuffles_check(const unsigned *x, const unsigned *out, unsigned *errors) {
  int t = threadIdx.x, lane = t % 32;
  const unsigned *row = x + t / 32 * 32, *at = out + t;
  for (int k = 0; k < 40; k++)
    for (int w = 0; w < 6; w++, at += 4 * 64) {
      int width = 1 << w, start = lane / width * width, d = k % 32, flipped = lane ^ d;
      EXPECT_EQ(k * 6 + w, at[0], row[start + k % width]);
      EXPECT_EQ(k * 6 + w, at[64], lane - d >= start ? row[lane - d] : row[lane]);
      EXPECT_EQ(k * 6 + w, at[128], lane + d < start + width ? row[lane + d] : row[lane]);
      // An exchange may reach down into the segments below, not beyond the end of its own.
      bool in = flipped < start + width;
      EXPECT_EQ(k * 6 + w, at[192], row[in ? flipped : lane] ^ (unsigned)in << 31);
    }
}
