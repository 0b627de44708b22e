//! arch sm_80
//! alloc x 3*96*4 random-u32
//! alloc y 3*96*4 poison
//! alloc z 3*96*4 poison
//! alloc errors 32 zero
//! launch phases grid=3 block=96 args=x,y
//! launch async_arrive grid=3 block=96 args=x,z
//! launch mbarrier_check grid=3 block=96 args=x,y,z,errors
//! checks 576
// mbarrier by hand: init, arrive, arrive with a count, test_wait with state and with parity, pending count,
// invalidation; cp.async that arrives when its copies are done.
#include "check.cuh"

__device__ unsigned address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ bool test_parity(unsigned bar, unsigned parity) {
  unsigned done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(bar), "r"(parity)
               : "memory");
  return done != 0;
}

extern "C" __global__ void phases(const unsigned *x, unsigned *y) {
  __shared__ __align__(8) unsigned long long barrier;
  __shared__ unsigned s[96];
  unsigned bar = address(&barrier), t = threadIdx.x, i = blockIdx.x * 96 + t, v = x[i];
  // The last warp arrives once for all its lanes, with a count.
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(96) : "memory");
  __syncthreads();
  for (unsigned phase = 0; phase < 4; phase++) {
    s[t] = v;
    unsigned long long state = 0;
    __syncwarp();
    if (t < 64)
      asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
    else if (t == 64)
      asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 31;" : "=l"(state) : "r"(bar) : "memory");
    if (t == 64) {
      unsigned pending;
      asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
      if (pending < 32 || pending > 96) v += 1000; // at least the 32 of this warp were missing before
      asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(bar) : "memory");
    }
    if (t < 32) {
      unsigned done;
      do
        asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(bar), "l"(state)
                     : "memory");
      while (!done);
    } else {
      while (!test_parity(bar, phase & 1)) {
      }
    }
    v = v * 5 + s[95 - t];
    __syncthreads(); // before s is written again
  }
  if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(bar) : "memory");
  y[i] = v;
}

extern "C" __global__ void async_arrive(const unsigned *x, unsigned *z) {
  __shared__ __align__(8) unsigned long long barrier;
  __shared__ __align__(16) unsigned s[96];
  unsigned bar = address(&barrier), t = threadIdx.x, i = blockIdx.x * 96 + t;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 96;" ::"r"(bar) : "memory");
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address(&s[t])), "l"(x + i) : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar) : "memory");
  while (!test_parity(bar, 0)) {
  }
  z[i] = s[(t + 40) % 96];
}

extern "C" __global__ void mbarrier_check(const unsigned *x, const unsigned *y, const unsigned *z,
                                          unsigned *errors) {
  __shared__ unsigned s[5][96];
  unsigned t = threadIdx.x, i = blockIdx.x * 96 + t;
  s[0][t] = x[i];
  for (int phase = 0; phase < 4; phase++) {
    __syncthreads();
    s[phase + 1][t] = s[phase][t] * 5 + s[phase][95 - t];
  }
  EXPECT_EQ(i, y[i], s[4][t]);
  EXPECT_EQ(i, z[i], x[blockIdx.x * 96 + (t + 40) % 96]);
}
