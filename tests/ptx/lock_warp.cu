//! alloc state 8*4 zero
//! alloc order 128*4 poison
//! alloc errors 32 zero
//! launch lock_spin grid=1 block=64 args=state,order
//! launch lock_flag grid=1 block=64 args=state,order
//! launch hand_over grid=1 block=32 args=state+16
//! launch lock_warp_check grid=1 block=1 args=state,order,errors
//! checks 7
// Locks between lanes of one warp: each lane spins until the lane that holds the lock lets go, which needs
// the forward progress of single lanes (Volta and later). The last kernel passes a baton from lane to lane,
// downwards.
#include "check.cuh"

extern "C" __global__ void lock_spin(unsigned *state, unsigned *order) {
  volatile unsigned *guarded = state;
  while (atomicCAS(&state[1], 0u, 1u) != 0) {
  }
  __threadfence();
  unsigned place = guarded[0];
  order[place] = threadIdx.x;
  guarded[0] = place + 1;
  __threadfence();
  atomicExch(&state[1], 0u);
}

extern "C" __global__ void lock_flag(unsigned *state, unsigned *order) {
  volatile unsigned *guarded = state;
  for (bool done = false; !done;) {
    if (atomicCAS(&state[2], 0u, 1u) != 0) continue;
    __threadfence();
    unsigned place = guarded[0];
    order[place] = threadIdx.x;
    guarded[0] = place + 1;
    __threadfence();
    atomicExch(&state[2], 0u);
    done = true;
  }
}

extern "C" __global__ void hand_over(volatile unsigned *baton) {
  unsigned turn = 31 - threadIdx.x;
  while (baton[0] != turn) {
  }
  baton[1] = baton[1] * 3 + threadIdx.x;
  __threadfence();
  baton[0] = turn + 1;
}

extern "C" __global__ void lock_warp_check(const unsigned *state, const unsigned *order, unsigned *errors) {
  EXPECT_EQ(0, state[0], 128u);
  EXPECT_EQ(1, state[1], 0u);
  EXPECT_EQ(2, state[2], 0u);
  for (int half = 0; half < 2; half++) { // every thread once
    unsigned long long seen = 0;
    for (int i = 0; i < 64; i++) seen |= 1ull << (order[64 * half + i] & 63);
    EXPECT_EQ(half, seen, ~0ull);
  }
  unsigned sum = 0;
  for (int lane = 31; lane >= 0; lane--) sum = sum * 3 + lane;
  EXPECT_EQ(3, state[4], 32u);
  EXPECT_EQ(4, state[5], sum);
}
