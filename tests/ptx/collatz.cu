//! alloc steps 3000*4 poison
//! alloc errors 32 zero
//! launch collatz grid=12 block=256 args=steps,i32:3000
//! launch collatz_check grid=12 block=256 args=steps,i32:3000,errors
//! checks 2002
// Collatz trajectories, 64-bit: each lane's number of trips is its own.
#include "check.cuh"

extern "C" __global__ void collatz(unsigned *steps, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned long long v = (unsigned long long)i + 1;
  unsigned count = 0;
  while (v != 1) {
    if (v & 1)
      v = 3 * v + 1;
    else
      v >>= 1;
    count++;
  }
  steps[i] = count;
}

// The first step joins the trajectory of another number, which is one step shorter.
extern "C" __global__ void collatz_check(const unsigned *steps, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = i + 1, next = v & 1 ? 3 * v + 1 : v / 2;
  if (v == 1)
    EXPECT_EQ(i, steps[i], 0u);
  else if (next <= n)
    EXPECT_EQ(i, steps[i], steps[next - 1] + 1);
  // The longest below 3000 starts at 2919 and takes 216 steps; 27 takes 111.
  if (v == 2919) EXPECT_EQ(i, steps[i], 216u);
  if (v == 27) EXPECT_EQ(i, steps[i], 111u);
}
