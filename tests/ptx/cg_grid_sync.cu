//! alloc a 1000*4 integers-f32:99 seed=3
//! alloc b 1000*4 poison
//! alloc start 1000*4 integers-f32:99 seed=3
//! alloc sums 16*4 zero
//! alloc errors 32 zero
//! launch smooth grid=8 block=64 cooperative args=a,b,sums,i32:1000
//! launch smooth_check grid=4 block=250 args=start,a,sums,i32:1000,errors
//! checks 1012
// A cooperative launch: all blocks meet at grid barriers between the steps of an iteration, and reduce in
// between.
#include "check.cuh"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void smooth(float *a, float *b, float *sums, int n) {
  cg::grid_group grid = cg::this_grid();
  for (int step = 0; step < 6; step++) {
    float *in = step & 1 ? b : a, *out = step & 1 ? a : b;
    float mine = 0;
    for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size()) {
      out[i] = in[(i + n - 1) % n] - in[i] + in[(i + 1) % n];
      mine += out[i];
    }
    for (int k = 16; k > 0; k /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, k);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[step], mine);
    grid.sync();
    if (grid.thread_rank() == 0) sums[8 + step] = *(volatile float *)&sums[step] * 2;
  }
}

// The sum stays the same at each step; values after six steps from the coefficients of (1/x - 1 + x)^6.
extern "C" __global__ void smooth_check(const float *start, const float *a, const float *sums, int n,
                                        unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, c[13] = {1}, d[13];
  for (int step = 0; step < 6; step++) {
    for (int k = 12; k >= 0; k--) d[k] = (k > 1 ? c[k - 2] : 0) - (k > 0 ? c[k - 1] : 0) + c[k];
    for (int k = 0; k < 13; k++) c[k] = d[k];
  }
  int value = 0;
  for (int k = 0; k < 13; k++) value += c[k] * (int)start[(i + k - 6 + n) % n];
  EXPECT_EQ(i, a[i], (float)value);
  if (i >= 6) return;
  int total = 0;
  for (int k = 0; k < n; k++) total += (int)start[k];
  EXPECT_EQ(i, sums[i], (float)total);
  EXPECT_EQ(i, sums[8 + i], (float)(2 * total));
}
