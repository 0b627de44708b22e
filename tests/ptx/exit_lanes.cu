//! alloc x 512*4 random-u32
//! alloc y 512*4 poison
//! alloc sums 4*4 zero
//! alloc errors 32 zero
//! launch leaving grid=4 block=128 args=x,y,sums
//! launch leaving_check grid=4 block=128 args=x,y,sums,errors
//! checks 516
// Threads that end by `exit` deep inside a called function and inside a loop, while the others go on to
// barriers of the block and atomics.
#include "check.cuh"

__device__ __noinline__ unsigned weigh(unsigned v, unsigned *y) {
  for (unsigned k = 0; k < 10; k++) {
    if ((v >> k & 7) == 7) {
      *y = 7000 + k;
      asm volatile("exit;");
    }
    v = v * 5 + k;
  }
  return v;
}

extern "C" __global__ void leaving(const unsigned *x, unsigned *y, unsigned *sums) {
  __shared__ unsigned left;
  unsigned i = global_thread();
  if (threadIdx.x == 127) left = 0;
  __syncthreads();
  if (x[i] % 7 == 0 && threadIdx.x != 127) {
    y[i] = 1;
    asm volatile("exit;");
  }
  unsigned v = threadIdx.x == 127 ? 1000 : weigh(x[i], &y[i]); // the last thread stays
  y[i] = v;
  __syncthreads();
  atomicAdd(&left, 1u);
  __syncthreads();
  if (threadIdx.x == 127) sums[blockIdx.x] = left;
}

__device__ unsigned outcome(unsigned v, unsigned thread) { // what is left in y
  if (thread == 127) return 1000;
  if (v % 7 == 0) return 1;
  for (unsigned k = 0; k < 10; k++) {
    if ((v >> k & 7) == 7) return 7000 + k;
    v = v * 5 + k;
  }
  return v;
}

extern "C" __global__ void leaving_check(const unsigned *x, const unsigned *y, const unsigned *sums,
                                         unsigned *errors) {
  unsigned i = global_thread();
  EXPECT_EQ(i, y[i], outcome(x[i], threadIdx.x));
  if (threadIdx.x) return;
  unsigned left = 0;
  for (unsigned t = 0; t < 128; t++) {
    unsigned v = x[i + t], kind = outcome(v, t);
    left += kind != 1 && !(kind >= 7000 && kind < 7010);
  }
  EXPECT_EQ(i, sums[blockIdx.x], left);
}
