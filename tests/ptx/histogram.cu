//! alloc x 2999 random-u32
//! alloc global 256*4 zero
//! alloc shared 256*4 zero
//! alloc matched 256*4 zero
//! alloc errors 32 zero
//! launch hist_global grid=8 block=256 args=x,global,i32:2999
//! launch hist_shared grid=8 block=256 args=x,shared,i32:2999
//! launch hist_matched grid=8 block=256 args=x,matched,i32:2999
//! launch hist_check grid=1 block=256 args=x,global,shared,matched,i32:2999,errors
//! checks 768
// Histograms of bytes: atomics in global memory, in shared memory, and one atomic per distinct value of a
// warp.
#include "check.cuh"

#define FOR_ALL for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)

// Few values occur often, so that lanes collide.
__device__ unsigned bin(unsigned char v) {
  return v & 1 ? v : v & 6;
}

extern "C" __global__ void hist_global(const unsigned char *x, unsigned *h, int n) {
  FOR_ALL atomicAdd(&h[bin(x[i])], 1u);
}

extern "C" __global__ void hist_shared(const unsigned char *x, unsigned *h, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  FOR_ALL atomicAdd(&s[bin(x[i])], 1u);
  __syncthreads();
  if (s[threadIdx.x]) atomicAdd(&h[threadIdx.x], s[threadIdx.x]);
}

extern "C" __global__ void hist_matched(const unsigned char *x, unsigned *h, int n) {
  int end = (n + 31) / 32 * 32, lane = threadIdx.x % 32; // whole warps go round together
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x) {
    unsigned value = i < n ? bin(x[i]) : 256, same = __match_any_sync(0xffffffffu, value);
    if (value < 256 && __ffs((int)same) - 1 == lane) atomicAdd(&h[value], (unsigned)__popc(same));
  }
}

extern "C" __global__ void hist_check(const unsigned char *x, const unsigned *global, const unsigned *shared,
                                      const unsigned *matched, int n, unsigned *errors) {
  unsigned count = 0;
  for (int i = 0; i < n; i++) count += bin(x[i]) == threadIdx.x;
  EXPECT_EQ(threadIdx.x, global[threadIdx.x], count);
  EXPECT_EQ(threadIdx.x, shared[threadIdx.x], count);
  EXPECT_EQ(threadIdx.x, matched[threadIdx.x], count);
}
