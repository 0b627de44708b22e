//! alloc count 4 zero
//! alloc errors 32 zero
//! launch print_some grid=3 block=40 args=count
//! launch print_some_check grid=1 block=1 args=count,errors
//! checks 1
//! prints block 0 thread 3 square 9
//! prints depth 0 of 0.5
//! prints block 0 thread 10 square 100
//! prints block 0 thread 17 square 289
//! prints depth 1 of 0.21
//! prints block 0 thread 24 square 576
//! prints block 0 thread 31 square 961
//! prints depth 2 of 0.37
//! prints block 0 thread 38 square 1444
//! prints block 1 thread 5 square 25
//! prints depth 0 of 1.5
//! prints block 1 thread 12 square 144
//! prints block 1 thread 19 square 361
//! prints depth 1 of 1.21
//! prints block 1 thread 26 square 676
//! prints block 1 thread 33 square 1089
//! prints depth 2 of 1.37
//! prints block 2 thread 0 square 0
//! prints depth 0 of 2.5
//! prints block 2 thread 7 square 49
//! prints block 2 thread 14 square 196
//! prints block 2 thread 21 square 441
//! prints depth 1 of 2.21
//! prints block 2 thread 28 square 784
//! prints block 2 thread 35 square 1225
//! prints depth 2 of 2.37
// printf from lanes that have diverged, in several warps and blocks; lines come in any order.
#include "check.cuh"
#include <stdio.h>

extern "C" __global__ void print_some(unsigned *count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i % 7 == 3) {
    printf("block %u thread %u square %u\n", blockIdx.x, threadIdx.x, threadIdx.x * threadIdx.x);
    atomicAdd(count, 1u);
  }
  for (unsigned k = 0; k <= threadIdx.x / 16; k++) {
    if (threadIdx.x % 16 != 5 || k != threadIdx.x / 16) continue;
    printf("depth %u of %u.%u\n", k, blockIdx.x, threadIdx.x);
    atomicAdd(count, 1u);
  }
}

extern "C" __global__ void print_some_check(const unsigned *count, unsigned *errors) {
  EXPECT_EQ(0, *count, 17u + 9u);
}
