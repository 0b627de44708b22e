//! alloc x 9001*4 random-f32
//! alloc part 12*16 poison
//! alloc whole 16 poison
//! alloc errors 32 zero
//! launch moments_blocks grid=12 block=192 args=x,part,i32:9001
//! launch moments_whole grid=1 block=32 args=part,whole,i32:12
//! launch moments_check grid=1 block=1 args=x,whole,i32:9001,errors
//! checks 4
// Sum, sum of squares, least and greatest as one structure, in two passes of warp shuffles and shared memory.
#include "check.cuh"

struct Moments {
  float sum, squares, least, most;
};

__device__ Moments merge(Moments a, Moments b) {
  return {a.sum + b.sum, a.squares + b.squares, fminf(a.least, b.least), fmaxf(a.most, b.most)};
}

__device__ Moments shuffle_down(Moments m, int step) {
  return {__shfl_down_sync(0xffffffffu, m.sum, step), __shfl_down_sync(0xffffffffu, m.squares, step),
          __shfl_down_sync(0xffffffffu, m.least, step), __shfl_down_sync(0xffffffffu, m.most, step)};
}

__device__ Moments none() {
  return {0, 0, INFINITY, -INFINITY};
}

__device__ Moments block_merge(Moments m) {
  __shared__ Moments warps[32];
  for (int step = 16; step > 0; step /= 2) m = merge(m, shuffle_down(m, step));
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = m;
  __syncthreads();
  m = threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : none();
  if (threadIdx.x < 32)
    for (int step = 16; step > 0; step /= 2) m = merge(m, shuffle_down(m, step));
  return m;
}

extern "C" __global__ void moments_blocks(const float *x, Moments *part, int n) {
  Moments m = none();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    m = merge(m, {x[i], x[i] * x[i], x[i], x[i]});
  m = block_merge(m);
  if (threadIdx.x == 0) part[blockIdx.x] = m;
}

extern "C" __global__ void moments_whole(const Moments *part, Moments *whole, int count) {
  Moments m = block_merge(threadIdx.x < count ? part[threadIdx.x] : none());
  if (threadIdx.x == 0) *whole = m;
}

extern "C" __global__ void moments_check(const float *x, const Moments *whole, int n, unsigned *errors) {
  double sum = 0, squares = 0;
  float least = x[0], most = x[0];
  for (int i = 0; i < n; i++) {
    sum += x[i], squares += (double)x[i] * x[i];
    if (x[i] < least) least = x[i];
    if (x[i] > most) most = x[i];
  }
  EXPECT_NEAR(0, whole->sum, sum, 1e-6, 1e-3);
  EXPECT_NEAR(1, whole->squares, squares, 1e-5, 0);
  EXPECT_EQ(2, whole->least, least);
  EXPECT_EQ(3, whole->most, most);
}
