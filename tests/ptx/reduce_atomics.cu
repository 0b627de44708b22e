//! alloc x 4001*4 random-u32:1000
//! alloc out 4*4 zero
//! alloc kept 4001*4 poison
//! alloc seen 4001*4 zero
//! alloc errors 32 zero
//! launch sum_plain grid=16 block=256 args=x,out,i32:4001
//! launch sum_warps grid=16 block=256 args=x,out,i32:4001
//! launch keep_even grid=16 block=256 args=x,kept,out,i32:4001
//! launch atomics_check grid=1 block=1 args=x,kept,seen,out,i32:4001,errors
//! checks 8005
// Sums by an atomic per thread, an atomic per warp, and a filter whose slots are handed out per warp.
#include "check.cuh"

extern "C" __global__ void sum_plain(const unsigned *x, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&out[0], x[i]);
}

extern "C" __global__ void sum_warps(const unsigned *x, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = i < n ? x[i] : 0;
  for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  if (threadIdx.x % 32 == 0) atomicAdd(&out[1], v);
}

extern "C" __global__ void keep_even(const unsigned *x, unsigned *kept, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool wanted = i < n && x[i] % 2 == 0;
  unsigned who = __ballot_sync(0xffffffffu, wanted), lane = threadIdx.x % 32, start = 0;
  if (lane == 0 && who) start = atomicAdd(&out[2], (unsigned)__popc(who));
  start = __shfl_sync(0xffffffffu, start, 0);
  if (wanted) kept[start + __popc(who & ((1u << lane) - 1))] = (unsigned)i;
}

extern "C" __global__ void atomics_check(const unsigned *x, const unsigned *kept, unsigned *seen,
                                         const unsigned *out, int n, unsigned *errors) {
  unsigned sum = 0, even = 0;
  for (int i = 0; i < n; i++) sum += x[i], even += x[i] % 2 == 0;
  EXPECT_EQ(0, out[0], sum);
  EXPECT_EQ(1, out[1], sum);
  EXPECT_EQ(2, out[2], even);
  // Each kept index once, in any order.
  for (unsigned k = 0; k < even; k++) {
    EXPECT(k, kept[k] < (unsigned)n);
    if (kept[k] < (unsigned)n) seen[kept[k]]++;
  }
  for (int i = 0; i < n; i++) EXPECT_EQ(i, seen[i], x[i] % 2 == 0 ? 1u : 0u);
  for (int k = (int)even; k < n; k++) EXPECT_EQ(k, kept[k], 0xa5a5a5a5u);
}
