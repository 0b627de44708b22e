//! alloc state 8*4 zero
//! alloc values 16*4 zero
//! alloc errors 32 zero
//! launch lock_blocks grid=30 block=32 args=state,values
//! launch ticket_blocks grid=30 block=64 args=state,values
//! launch lock_blocks_check grid=1 block=1 args=state,values,errors
//! checks 12
// Locks between blocks: a spin lock with back-off taken by one thread of each block, and a ticket lock that
// lets blocks in in the order of their tickets.
#include "check.cuh"

extern "C" __global__ void lock_blocks(unsigned *lock, volatile unsigned *values) {
  for (int round = 0; round < 3; round++) {
    if (threadIdx.x == 0) {
      while (atomicCAS(lock, 0u, 1u) != 0) __nanosleep(50);
      __threadfence();
    }
    __syncthreads();
    if (threadIdx.x < 8) values[threadIdx.x] += threadIdx.x + 1; // not atomic: the lock guards it
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(lock, 0u);
    __syncthreads();
  }
}

extern "C" __global__ void ticket_blocks(unsigned *state, volatile unsigned *values) {
  volatile unsigned *serving = state + 3;
  if (threadIdx.x == 0) {
    unsigned mine = atomicAdd(&state[2], 1u);
    while (*serving != mine) {
    }
    __threadfence();
    values[8] = values[8] * 5 + mine;
  }
  __syncthreads();
  if (threadIdx.x == 63) values[9] += threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *serving += 1;
}

extern "C" __global__ void lock_blocks_check(const unsigned *state, const unsigned *values,
                                             unsigned *errors) {
  for (int i = 0; i < 8; i++) EXPECT_EQ(i, values[i], 90u * (i + 1));
  EXPECT_EQ(8, state[0], 0u);
  unsigned want = 0;
  for (unsigned ticket = 0; ticket < 30; ticket++) want = want * 5 + ticket;
  EXPECT_EQ(9, values[8], want);
  EXPECT_EQ(10, values[9], 30u * 63u);
  EXPECT_EQ(11, state[3], 30u);
}
