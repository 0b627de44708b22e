//! alloc counters 4*4 zero
//! alloc done 3000*4 zero
//! alloc errors 32 zero
//! launch persistent grid=6 block=64 args=counters,done,i32:3000
//! launch persistent_check grid=12 block=250 args=counters,done,errors
//! checks 3002
// Persistent blocks that take chunks of work of unequal size from a counter, first a block at a time, then a
// warp.
#include "check.cuh"

extern "C" __global__ void persistent(unsigned *counters, unsigned *done, int n) {
  __shared__ unsigned next;
  for (;;) { // a block takes 100 items
    __syncthreads();
    if (threadIdx.x == 0) next = atomicAdd(&counters[0], 100u);
    __syncthreads();
    if (next >= (unsigned)n) break;
    for (unsigned i = next + threadIdx.x; i < next + 100; i += blockDim.x) {
      unsigned v = i;
      for (unsigned k = 0; k < i % 17; k++) v = v * 3 + 1;
      atomicAdd(&done[i], v);
    }
  }
  unsigned lane = threadIdx.x % 32;
  for (;;) { // a warp takes 32
    unsigned start = 0;
    if (lane == 0) start = atomicAdd(&counters[1], 32u);
    start = __shfl_sync(0xffffffffu, start, 0);
    if (start >= (unsigned)n) break;
    if (start + lane < (unsigned)n) atomicXor(&done[start + lane], 0x80000000u);
  }
}

extern "C" __global__ void persistent_check(const unsigned *counters, const unsigned *done,
                                            unsigned *errors) {
  unsigned i = global_thread(), v = i;
  for (unsigned k = 0; k < i % 17; k++) v = v * 3 + 1;
  EXPECT_EQ(i, done[i], v ^ 0x80000000u);
  if (i > 0) return;
  EXPECT_EQ(0, counters[0], 3000u + 6 * 100);     // each block once in vain
  EXPECT_EQ(1, counters[1], 94 * 32u + 12 * 32u); // each warp once in vain
}
