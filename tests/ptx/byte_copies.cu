//! alloc x 4096 random-u32
//! alloc y 16*4096 poison
//! alloc errors 32 zero
//! launch byte_copy grid=16 block=64 args=x,y,i32:3001
//! launch byte_check grid=16 block=256 args=x,y,i32:3001,errors
//! checks 65536
// Copies between every pair of misalignments: bytes up to a word of the target, words put together from two
// words of the source by a funnel shift, bytes at the end. One block per pair.
#include "check.cuh"

extern "C" __global__ void byte_copy(const unsigned char *x, unsigned char *all, int n) {
  int from = blockIdx.x & 3, to = blockIdx.x >> 2;
  const unsigned char *source = x + from;
  unsigned char *target = all + blockIdx.x * 4096 + to;
  int head = (4 - to) & 3;
  if (threadIdx.x < head) target[threadIdx.x] = source[threadIdx.x];
  int words = (n - head) / 4, shift = 8 * ((from + head) & 3);
  const unsigned *aligned = (const unsigned *)((size_t)(source + head) & ~(size_t)3);
  unsigned *out = (unsigned *)(target + head);
  for (int i = threadIdx.x; i < words; i += blockDim.x)
    out[i] = shift ? __funnelshift_r(aligned[i], aligned[i + 1], shift) : aligned[i];
  for (int i = head + 4 * words + threadIdx.x; i < n; i += blockDim.x) target[i] = source[i];
}

extern "C" __global__ void byte_check(const unsigned char *x, const unsigned char *all, int n,
                                      unsigned *errors) {
  int from = blockIdx.x & 3, to = blockIdx.x >> 2;
  const unsigned char *y = all + blockIdx.x * 4096;
  for (int i = threadIdx.x; i < 4096; i += blockDim.x)
    EXPECT_EQ(blockIdx.x * 4096 + i, y[i], i >= to && i < to + n ? x[from + i - to] : 0xa5);
}
