//! alloc x 1500*4 random-u32
//! alloc flags 1500*4 random-u32:8
//! alloc sums 1500*4 poison
//! alloc segments 1500*4 poison
//! alloc compact 1500*4 poison
//! alloc count 4 poison
//! alloc errors 32 zero
//! launch scan_warp grid=1 block=512 args=x,flags,sums,segments,compact,count,i32:1500
//! launch scan_warp_check grid=1 block=1 args=x,flags,sums,segments,compact,count,i32:1500,errors
//! checks 3195
// Inclusive scan by warp shuffles carried over by one block, a scan that starts anew at flags inside each
// warp, and a stable compaction by ballot.
#include "check.cuh"

extern "C" __global__ void scan_warp(const unsigned *x, const unsigned *flags, unsigned *sums,
                                     unsigned *segments, unsigned *compact, unsigned *count, int n) {
  __shared__ unsigned warp_sum[16], warp_kept[16];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned carry = 0, kept = 0;
  for (int base = 0; base < n; base += blockDim.x) {
    int i = base + threadIdx.x;
    unsigned v = i < n ? x[i] : 0, own = v, head = i < n && flags[i] == 0;
    for (int step = 1; step < 32; step *= 2) {
      unsigned below = __shfl_up_sync(0xffffffffu, v, step);
      if (lane >= step) v += below;
    }
    // The nearest flag at or below this lane bounds the segment.
    unsigned heads = __ballot_sync(0xffffffffu, head) & (0xffffffffu >> (31 - lane));
    int start = heads ? 31 - __clz((int)heads) : 0;
    unsigned before = __shfl_sync(0xffffffffu, v, (start + 31) & 31);
    unsigned chosen = __ballot_sync(0xffffffffu, head);
    if (lane == 31) warp_sum[warp] = v, warp_kept[warp] = (unsigned)__popc(chosen);
    __syncthreads();
    unsigned sum_below = 0, kept_below = 0, sum_all = 0, kept_all = 0;
    for (int w = 0; w < 16; w++) {
      if (w == warp) sum_below = sum_all, kept_below = kept_all;
      sum_all += warp_sum[w], kept_all += warp_kept[w];
    }
    if (i < n) sums[i] = carry + sum_below + v;
    if (i < n) segments[i] = start ? v - before : v;
    if (head) compact[kept + kept_below + __popc(chosen & ((1u << lane) - 1))] = own;
    carry += sum_all, kept += kept_all;
    __syncthreads();
  }
  if (threadIdx.x == 0) *count = kept;
}

extern "C" __global__ void scan_warp_check(const unsigned *x, const unsigned *flags, const unsigned *sums,
                                           const unsigned *segments, const unsigned *compact,
                                           const unsigned *count, int n, unsigned *errors) {
  unsigned sum = 0, segment = 0, kept = 0;
  for (int i = 0; i < n; i++) {
    sum += x[i];
    segment = flags[i] == 0 || i % 32 == 0 ? x[i] : segment + x[i];
    EXPECT_EQ(i, sums[i], sum);
    EXPECT_EQ(i, segments[i], segment);
    if (flags[i] != 0) continue;
    EXPECT_EQ(i, compact[kept], x[i]);
    kept++;
  }
  EXPECT_EQ(0, *count, kept);
}
