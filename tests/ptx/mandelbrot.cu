//! alloc counts 61*47*4 poison
//! alloc errors 32 zero
//! launch mandelbrot grid=4,6 block=16,8 args=counts,i32:61,i32:47,i32:60
//! launch mandelbrot_check grid=24 block=128 args=counts,i32:61,i32:47,i32:60,errors
//! checks 2867
// Iteration counts of the Mandelbrot set in fixed point: lanes leave the loop at very different times.
#include "check.cuh"

extern "C" __global__ void mandelbrot(int *counts, int width, int height, int limit) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  // 24 fractional bits; products of two such fit in 64.
  long long cx = (3ll * x << 24) / width - (2ll << 24), cy = (2ll * y << 24) / height - (1ll << 24), zx = 0,
            zy = 0;
  int count = 0;
  while (count < limit) {
    long long xx = zx * zx >> 24, yy = zy * zy >> 24;
    if (xx + yy > 4ll << 24) break;
    zy = (zx * zy >> 23) + cy;
    zx = xx - yy + cx;
    count++;
  }
  counts[y * width + x] = count;
}

extern "C" __global__ void mandelbrot_check(const int *counts, int width, int height, int limit,
                                            unsigned *errors) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < width * height; i += gridDim.x * blockDim.x) {
    long long c[2] = {(3ll * (i % width) << 24) / width - (2ll << 24),
                      (2ll * (i / width) << 24) / height - (1ll << 24)};
    long long z[2] = {0, 0};
    int count = 0;
    for (int trip = 0; trip < limit; trip++) { // no early end: every lane does all trips
      long long xx = z[0] * z[0] >> 24, yy = z[1] * z[1] >> 24;
      bool bounded = xx + yy <= 4ll << 24;
      count += bounded;
      long long next = (z[0] * z[1] >> 23) + c[1];
      z[0] = bounded ? xx - yy + c[0] : 8ll << 24, z[1] = bounded ? next : 0;
    }
    EXPECT_EQ(i, counts[i], count);
  }
}
