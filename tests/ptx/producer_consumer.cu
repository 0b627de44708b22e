//! arch sm_80
//! alloc x 4*12*64*4 random-u32
//! alloc y 4*12*64*4 poison
//! alloc errors 32 zero
//! launch ring grid=4 block=96 args=x,y,i32:12
//! launch ring_check grid=4 block=64 args=x,y,i32:12,errors
//! checks 3072
// Warp-specialised: one warp fills a ring of three buffers, two warps empty it; full and empty mbarriers with
// phases. The consumers lag behind on purpose.
#include "check.cuh"

#define SLOTS 3

__device__ unsigned address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void arrive(unsigned long long *bar) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(address(bar)) : "memory");
}
__device__ void wait(unsigned long long *bar, unsigned parity) {
  unsigned done;
  do
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(address(bar)), "r"(parity)
                 : "memory");
  while (!done);
}

// x and y are (gridDim.x, tiles, 64)
extern "C" __global__ void ring(const unsigned *x, unsigned *y, int tiles) {
  __shared__ __align__(8) unsigned long long full[SLOTS], empty[SLOTS];
  __shared__ unsigned s[SLOTS][64];
  int t = threadIdx.x;
  if (t < SLOTS) {
    asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(address(&full[t])) : "memory");
    asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(address(&empty[t])) : "memory");
  }
  __syncthreads();
  x += blockIdx.x * tiles * 64, y += blockIdx.x * tiles * 64;
  if (t < 32) {
    for (int k = 0; k < tiles; k++) {
      int slot = k % SLOTS;
      wait(&empty[slot], (k / SLOTS & 1) ^ 1); // the first round passes at once
      s[slot][t] = x[k * 64 + t], s[slot][t + 32] = x[k * 64 + 32 + t];
      arrive(&full[slot]);
    }
  } else {
    unsigned carry = 1;
    for (int k = 0; k < tiles; k++) {
      int slot = k % SLOTS;
      wait(&full[slot], k / SLOTS & 1);
      for (int pause = 0; pause < (t & 7); pause++) carry += s[slot][(t + pause) % 64] & 1;
      carry = carry * 3 + s[slot][95 - t];
      arrive(&empty[slot]);
      y[k * 64 + t - 32] = carry;
    }
  }
}

extern "C" __global__ void ring_check(const unsigned *x, const unsigned *y, int tiles, unsigned *errors) {
  unsigned t = threadIdx.x + 32, carry = 1;
  x += blockIdx.x * tiles * 64, y += blockIdx.x * tiles * 64;
  for (int k = 0; k < tiles; k++) {
    for (unsigned pause = 0; pause < (t & 7); pause++) carry += x[k * 64 + (t + pause) % 64] & 1;
    carry = carry * 3 + x[k * 64 + 95 - t];
    EXPECT_EQ(k * 64 + threadIdx.x, y[k * 64 + threadIdx.x], carry);
  }
}
