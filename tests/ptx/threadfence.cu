//! alloc flags 16*4 zero
//! alloc data 16*64*4 poison
//! alloc seen 16*64*4 poison
//! alloc errors 32 zero
//! launch pass_on grid=16 block=64 args=flags,data,seen
//! launch acquire_release grid=2 block=32 args=flags,data
//! launch fence_check grid=16 block=64 args=flags,data,seen,errors
//! checks 3072
// Message passing between blocks: data, fence, flag; the next block waits for the flag, reads the data, adds
// its own. The second kernel does the same with ld.acquire, st.release and red.release.
#include "check.cuh"

extern "C" __global__ void pass_on(unsigned *flags, unsigned *data, unsigned *seen) {
  int b = blockIdx.x, t = threadIdx.x;
  unsigned before = 1;
  if (b > 0) {
    if (t == 0)
      while (atomicAdd(&flags[b - 1], 0u) == 0) {
      }
    __syncthreads();
    __threadfence();
    before = __ldcg(&data[(b - 1) * 64 + t]);
  }
  seen[b * 64 + t] = before;
  data[b * 64 + t] = before * 3 + t;
  __threadfence();
  __syncthreads();
  if (t == 0) atomicExch(&flags[b], 1u);
}

// Block 0 writes and releases, block 1 acquires; flags[0] goes on from 1.
extern "C" __global__ void acquire_release(unsigned *flags, unsigned *data) {
  unsigned t = threadIdx.x, flag;
  if (blockIdx.x == 0) {
    data[t] = 5000 + t;
    __syncwarp();
    if (t == 0)
      asm volatile("fence.acq_rel.gpu; st.release.gpu.global.u32 [%0], %1;" ::"l"(flags), "r"(2) : "memory");
    if (t == 7) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(flags + 1), "r"(40) : "memory");
  } else {
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(flag) : "l"(flags) : "memory");
    while (flag != 2);
    unsigned v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(data + t) : "memory");
    data[64 + t] = v + 1;
  }
}

extern "C" __global__ void fence_check(const unsigned *flags, const unsigned *data, const unsigned *seen,
                                       unsigned *errors) {
  int b = blockIdx.x, t = threadIdx.x;
  unsigned v = 1;
  for (int k = 0; k < b; k++) v = v * 3 + t;
  EXPECT_EQ(b * 64 + t, seen[b * 64 + t], v);
  bool redone = b < 2 && t < 32;
  EXPECT_EQ(b * 64 + t, data[b * 64 + t], redone ? 5000u + t + b : v * 3 + t);
  EXPECT_EQ(b, flags[b], b == 0 ? 2u : b == 1 ? 41u : 1u);
}
