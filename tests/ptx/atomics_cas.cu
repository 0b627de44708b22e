//! alloc small 32*2 zero
//! alloc words 8*4 zero
//! alloc wide 2*16 zero
//! alloc errors 32 zero
//! launch cas_all grid=4 block=64 args=small,words,wide
//! launch cas_check grid=1 block=1 args=small,words,wide,errors
//! checks 39
// Compare-and-swap of 16, 32 and 64 bits, in global and shared memory; 128 bits from sm_90 on. Neighbours in
// the same word stay as they are.
#include "check.cuh"

__device__ void add_short(unsigned short *p, unsigned short by) {
  unsigned short seen = *(volatile unsigned short *)p, was;
  do {
    was = seen;
    seen = atomicCAS(p, was, (unsigned short)(was + by));
  } while (seen != was);
}

extern "C" __global__ void cas_all(unsigned short *small, unsigned *words, unsigned long long *wide) {
  __shared__ unsigned short halves[4];
  __shared__ unsigned most;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < 4) halves[threadIdx.x] = 0;
  if (threadIdx.x == 0) most = 0;
  __syncthreads();
  add_short(&small[i % 31], (unsigned short)(i + 1));
  add_short(&halves[i % 3], 2);
  for (unsigned seen = most, was; seen < (unsigned)i; seen = was) { // maximum by CAS, stops early
    was = atomicCAS(&most, seen, (unsigned)i);
    if (was == seen) break;
  }
  atomicCAS(&words[0], 0u, (unsigned)i + 1);  // the first one wins
  atomicCAS(&words[1], 77u, (unsigned)i + 1); // never equal
  __syncthreads();
  if (threadIdx.x < 4) atomicAdd(&words[2 + threadIdx.x], (unsigned)halves[threadIdx.x]);
  if (threadIdx.x == 0) atomicMax(&words[6], most);
#if __CUDA_ARCH__ >= 900
  // A pair that moves as one: count in the low half, sum in the high half.
  ulonglong2 *pair = (ulonglong2 *)wide, seen = {0, 0}, was;
  do {
    was = seen;
    ulonglong2 next = {was.x + 1, was.y + (unsigned long long)i};
    asm volatile("{ .reg .b128 c, n, d;\n"
                 "mov.b128 c, {%3, %4}; mov.b128 n, {%5, %6};\n"
                 "atom.relaxed.gpu.global.cas.b128 d, [%2], c, n;\n"
                 "mov.b128 {%0, %1}, d; }"
                 : "=l"(seen.x), "=l"(seen.y)
                 : "l"(pair), "l"(was.x), "l"(was.y), "l"(next.x), "l"(next.y)
                 : "memory");
  } while (seen.x != was.x || seen.y != was.y);
#endif
}

extern "C" __global__ void cas_check(const unsigned short *small, const unsigned *words,
                                     const unsigned long long *wide, unsigned *errors) {
  for (int k = 0; k < 31; k++) {
    unsigned sum = 0;
    for (int i = k; i < 256; i += 31) sum += i + 1;
    EXPECT_EQ(k, small[k], (unsigned short)sum);
  }
  EXPECT_EQ(31, small[31], 0);
  EXPECT(32, words[0] >= 1 && words[0] <= 256);
  EXPECT_EQ(33, words[1], 0u);
  unsigned counts[3] = {};
  for (int i = 0; i < 256; i++) counts[i % 3] += 2;
  for (int k = 0; k < 3; k++) EXPECT_EQ(34 + k, words[2 + k], counts[k]);
  EXPECT_EQ(37, words[5], 0u);
  EXPECT_EQ(38, words[6], 255u);
#if __CUDA_ARCH__ >= 900
  EXPECT_EQ(39, wide[0], 256ull);
  EXPECT_EQ(40, wide[1], 255ull * 256 / 2);
#endif
}
