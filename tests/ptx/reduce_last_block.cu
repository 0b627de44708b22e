//! alloc x 6007*4 random-u32
//! alloc part 23*8 poison
//! alloc ticket 4 zero
//! alloc result 2*8 poison
//! alloc errors 32 zero
//! launch last_block grid=23 block=128 args=x,part,ticket,result,i32:6007
//! launch last_block grid=23 block=128 args=x,part,ticket,result+8,i32:6007
//! launch last_block_check grid=1 block=1 args=x,ticket,result,i32:6007,errors
//! checks 3
// The block that arrives last adds up what all blocks left behind a fence; the ticket wraps by atomicInc.
#include "check.cuh"

extern "C" __global__ void last_block(const unsigned *x, volatile unsigned long long *part, unsigned *ticket,
                                      unsigned long long *result, int n) {
  __shared__ unsigned long long sum;
  __shared__ bool last;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  unsigned long long mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0) {
    part[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x == 0) {
    unsigned long long total = 0;
    for (unsigned b = 0; b < gridDim.x; b++) total += part[b];
    *result = total;
  }
}

extern "C" __global__ void last_block_check(const unsigned *x, const unsigned *ticket,
                                            const unsigned long long *result, int n, unsigned *errors) {
  unsigned long long sum = 0;
  for (int i = 0; i < n; i++) sum += x[i];
  EXPECT_EQ(0, result[0], sum);
  EXPECT_EQ(1, result[1], sum);
  EXPECT_EQ(2, *ticket, 0u);
}
