//! alloc keys 2003*4 random-u32
//! alloc a 2003*8 poison
//! alloc b 2003*8 poison
//! alloc errors 32 zero
//! launch radix_start grid=8 block=256 args=keys,a,i32:2003
//! launch radix_pass grid=1 block=256 args=a,b,i32:2003,i32:0
//! launch radix_pass grid=1 block=256 args=b,a,i32:2003,i32:4
//! launch radix_pass grid=1 block=256 args=a,b,i32:2003,i32:8
//! launch radix_pass grid=1 block=256 args=b,a,i32:2003,i32:12
//! launch radix_pass grid=1 block=256 args=a,b,i32:2003,i32:16
//! launch radix_pass grid=1 block=256 args=b,a,i32:2003,i32:20
//! launch radix_pass grid=1 block=256 args=a,b,i32:2003,i32:24
//! launch radix_pass grid=1 block=256 args=b,a,i32:2003,i32:28
//! launch radix_check grid=8 block=256 args=keys,a,i32:2003,errors
//! checks 6008
// Stable radix sort of key and place, four bits a pass: counts per digit, their scan, then ranks by
// match_any.
#include "check.cuh"

extern "C" __global__ void radix_start(const unsigned *keys, uint2 *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = make_uint2(keys[i], (unsigned)i);
}

extern "C" __global__ void radix_pass(const uint2 *in, uint2 *out, int n, int shift) {
  __shared__ unsigned next[16], counts[8][16];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x < 16) next[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&next[in[i].x >> shift & 15], 1u);
  __syncthreads();
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (int d = 0; d < 16; d++) {
      unsigned count = next[d];
      next[d] = sum;
      sum += count;
    }
  }
  for (int base = 0; base < n; base += blockDim.x) {
    int i = base + threadIdx.x;
    if (threadIdx.x < 128) counts[threadIdx.x / 16][threadIdx.x % 16] = 0;
    __syncthreads();
    uint2 pair = i < n ? in[i] : make_uint2(0, 0);
    unsigned digit = i < n ? pair.x >> shift & 15 : 16;
    unsigned same = __match_any_sync(0xffffffffu, digit), below = same & ((1u << lane) - 1);
    if (digit < 16 && below == 0) counts[warp][digit] = (unsigned)__popc(same);
    __syncthreads();
    if (digit < 16) {
      unsigned place = next[digit] + (unsigned)__popc(below);
      for (int w = 0; w < warp; w++) place += counts[w][digit];
      out[place] = pair;
    }
    __syncthreads();
    if (threadIdx.x < 16)
      for (int w = 0; w < 8; w++) next[threadIdx.x] += counts[w][threadIdx.x];
    __syncthreads();
  }
}

extern "C" __global__ void radix_check(const unsigned *keys, const uint2 *a, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  EXPECT(i, a[i].y < (unsigned)n);
  EXPECT_EQ(i, a[i].x, keys[a[i].y % n]);
  if (i > 0) EXPECT(i, a[i - 1].x < a[i].x || (a[i - 1].x == a[i].x && a[i - 1].y < a[i].y));
}
