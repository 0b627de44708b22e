//! arch sm_90
//! alloc x 4096*4 random-u32
//! alloc y 4096*4 poison
//! alloc sums 256*4 iota-u32
//! alloc floats 64*4 zero
//! alloc errors 32 zero
//! launch bulk_round_trip grid=4 block=64 args=x,y
//! launch bulk_reduce grid=6 block=64 args=x,sums,floats
//! launch bulk_check grid=16 block=256 args=x,y,sums,floats,errors
//! checks 4416
// cp.async.bulk: global to shared with an mbarrier that expects bytes, shared to global with bulk groups, and
// reductions on the way out.
#include "check.cuh"

__device__ unsigned address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ void wait(unsigned bar, unsigned parity) {
  unsigned done;
  do
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  while (!done);
}
__device__ void load(void *to, const void *from, unsigned bytes, unsigned bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          address(to)),
      "l"(from), "r"(bytes), "r"(bar)
      : "memory");
}
__device__ void expect(unsigned bar, unsigned bytes) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(bar),
               "r"(bytes)
               : "memory");
}

// Each block moves 1024 words in four pieces of unequal size, turned around within 16 words.
extern "C" __global__ void bulk_round_trip(const unsigned *x, unsigned *y) {
  __shared__ __align__(128) unsigned s[2][400];
  __shared__ __align__(8) unsigned long long barrier;
  const int starts[5] = {0, 16, 400, 752, 1024};
  unsigned bar = address(&barrier), t = threadIdx.x;
  x += blockIdx.x * 1024, y += blockIdx.x * 1024;
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  for (int k = 0; k < 4; k++) {
    unsigned *buffer = s[k & 1];
    int count = starts[k + 1] - starts[k];
    if (t == 0) {
      if (k >= 2) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); // the buffer has been read
      expect(bar, count * 4);
      load(buffer, x + starts[k], count * 2, bar); // in two halves
      load(buffer + count / 2, x + starts[k] + count / 2, count * 2, bar);
    }
    wait(bar, k & 1);
    for (int base = 0; base < count; base += 64) {
      int i = base + t;
      unsigned v = i < count ? buffer[i ^ 15] : 0;
      __syncthreads();
      if (i < count) buffer[i] = v;
      __syncthreads();
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(y + starts[k]),
                   "r"(address(buffer)), "r"(count * 4)
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void bulk_reduce(const unsigned *x, unsigned *sums, float *floats) {
  __shared__ __align__(16) unsigned s[256];
  __shared__ __align__(16) float f[64];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 64) s[i] = x[blockIdx.x * 256 + i];
  f[t] = (float)(t + blockIdx.x);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t > 0) return;
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], 512;" ::"l"(sums),
               "r"(address(s))
               : "memory");
  asm volatile(
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.max.u32 [%0], [%1], 512;" ::"l"(sums + 128),
      "r"(address(s + 128))
      : "memory");
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 256;" ::"l"(floats),
               "r"(address(f))
               : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" __global__ void bulk_check(const unsigned *x, const unsigned *y, const unsigned *sums,
                                      const float *floats, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  EXPECT_EQ(i, y[i], x[i ^ 15]);
  if (i >= 256) return;
  unsigned want = i;
  for (int b = 0; b < 6; b++) want = i < 128 ? want + x[b * 256 + i] : max(want, x[b * 256 + i]);
  EXPECT_EQ(i, sums[i], want);
  if (i < 64) EXPECT_EQ(i, floats[i], 6.0f * i + 15.0f);
}
