//! alloc x 4*128*4 random-u32
//! alloc y 4*128*4 poison
//! alloc errors 32 zero
//! launch split_barrier grid=4 block=128 args=x,y
//! launch split_barrier_check grid=4 block=128 args=x,y,errors
//! checks 512
// cuda::barrier: arrive, do something else, wait; several phases; one half of the block drops out after the
// third.
#include "check.cuh"
#include <cuda/barrier>

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void split_barrier(const unsigned *x, unsigned *y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ unsigned s[2][128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  if (t == 0) init(&barrier, 128);
  __syncthreads();
  unsigned v = x[i];
  for (int phase = 0; phase < 3; phase++) {
    s[phase & 1][t] = v;
    auto token = barrier.arrive();
    unsigned own = v * 7 + phase; // independent of the others
    barrier.wait(std::move(token));
    v = own + s[phase & 1][(t + 1) % 128];
  }
  if (t >= 64) {
    y[i] = v;
    barrier.arrive_and_drop();
    return;
  }
  s[1][t] = v;
  barrier.arrive_and_wait();
  v += s[1][63 - t];
  barrier.arrive_and_wait();
  y[i] = v;
}

extern "C" __global__ void split_barrier_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  __shared__ unsigned s[4][128];
  int t = threadIdx.x;
  s[0][t] = x[blockIdx.x * 128 + t];
  __syncthreads();
  for (int phase = 0; phase < 3; phase++) {
    s[phase + 1][t] = s[phase][t] * 7 + phase + s[phase][(t + 1) % 128];
    __syncthreads();
  }
  EXPECT_EQ(t, y[blockIdx.x * 128 + t], t < 64 ? s[3][t] + s[3][63 - t] : s[3][t]);
}
