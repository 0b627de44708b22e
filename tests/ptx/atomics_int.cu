//! alloc a 16*4 values-u32:5,0,7,0x7fffffff,0,0xffffffff,0,0xffffffff,100,0,0,0
//! alloc old 8*160*4 poison
//! alloc b 8*8 zero
//! alloc errors 32 zero
//! launch atomics_int grid=5 block=32 args=a,old
//! launch atomics_wide grid=5 block=32 args=b
//! launch atomics_int_check grid=1 block=1 args=a,old,b,errors
//! checks 182
// Every integer atomic in global memory, 32 and 64 bits, with and without the old value.
#include "check.cuh"

extern "C" __global__ void atomics_int(unsigned *a, unsigned *old) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, n = 160;
  old[i] = atomicAdd(&a[0], 3u);
  old[n + i] = (unsigned)atomicSub((int *)&a[1], 2);
  atomicMax(&a[2], (unsigned)i * 5);
  atomicMin((int *)&a[3], 50 - i);
  atomicOr(&a[4], 1u << i % 32);
  atomicAnd(&a[5], ~(1u << i % 31));
  atomicXor(&a[6], check_hash(i));
  atomicMin(&a[7], 1000u - (unsigned)i);
  old[2 * n + i] = atomicExch(&a[8], 1000u + i);
  old[3 * n + i] = atomicInc(&a[9], 20u);
  old[4 * n + i] = atomicDec(&a[10], 30u);
  atomicMax((int *)&a[11], i - 200);
}

extern "C" __global__ void atomics_wide(unsigned long long *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long wide = (unsigned long long)check_hash(i) << 32 | check_hash(~i);
  atomicAdd(&b[0], wide);
  atomicMax(&b[1], wide);
  atomicMin((long long *)&b[2], (long long)wide);
  atomicOr(&b[3], 1ull << i % 64);
  atomicXor(&b[4], wide);
  if (i == 0) atomicExch(&b[5], 0x123456789abcdefull);
  for (bool done = false; !done;) { // addition of squares by compare and swap
    unsigned long long seen = *(volatile unsigned long long *)&b[6];
    done = atomicCAS(&b[6], seen, seen + (unsigned long long)i * i) == seen;
  }
  atomicAnd(&b[7], 0ull);
}

// Old values of additions are the multiples of the step, each once.
extern "C" __global__ void atomics_int_check(const unsigned *a, const unsigned *old,
                                             const unsigned long long *b, unsigned *errors) {
  const int n = 160;
  unsigned fold = 0, sum[5] = {}, left = 0;
  unsigned long long total = 0, most = 0, bits = 0, squares = 0;
  long long least = 0;
  for (int i = 0; i < n; i++) {
    fold ^= check_hash(i);
    for (int k = 0; k < 5; k++) sum[k] += old[k * n + i];
    EXPECT(i, old[i] % 3 == 2 && old[i] < 5 + 3 * n && old[3 * n + i] <= 20 && old[4 * n + i] <= 30);
    unsigned long long wide = (unsigned long long)check_hash(i) << 32 | check_hash(~i);
    total += wide, bits ^= wide, squares += (unsigned long long)i * i;
    if (wide > most) most = wide;
    if ((long long)wide < least) least = (long long)wide;
    left = left == 0 || left > 30 ? 30 : left - 1;
  }
  EXPECT_EQ(0, a[0], 5u + 480u);
  EXPECT_EQ(0, sum[0], 5u * n + 3u * (n * (n - 1) / 2));
  EXPECT_EQ(1, (int)a[1], -320);
  EXPECT_EQ(1, (int)sum[1], -2 * (n * (n - 1) / 2));
  EXPECT_EQ(2, a[2], 5u * 159u);
  EXPECT_EQ(3, (int)a[3], 50 - 159);
  EXPECT_EQ(4, a[4], 0xffffffffu);
  EXPECT_EQ(5, a[5], 0x80000000u);
  EXPECT_EQ(6, a[6], fold);
  EXPECT_EQ(7, a[7], 841u);
  EXPECT_EQ(8, sum[2] + a[8], 100u + 1000u * n + n * (n - 1) / 2); // what came out is what went in
  EXPECT_EQ(9, a[9], 160u % 21u);
  EXPECT_EQ(10, a[10], left);
  EXPECT_EQ(11, a[11], 0u);
  EXPECT_EQ(12, b[0], total);
  EXPECT_EQ(13, b[1], most);
  EXPECT_EQ(14, (long long)b[2], least);
  EXPECT_EQ(15, b[3], ~0ull);
  EXPECT_EQ(16, b[4], bits);
  EXPECT_EQ(17, b[5], 0x123456789abcdefull);
  EXPECT_EQ(18, b[6], squares);
  EXPECT_EQ(19, b[7], 0ull);
}
