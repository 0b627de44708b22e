//! alloc y 4*64*4 poison
//! alloc times 4*64*8*3 poison
//! alloc errors 32 zero
//! launch clocks grid=4 block=64 args=y,times
//! launch clocks_check grid=4 block=64 args=y,times,errors
//! checks 1024
// Clocks go forward, the global timer never goes back, the SM's number is below their count.
#include "check.cuh"

extern "C" __global__ void clocks(unsigned *y, long long *times) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned sm, sms;
  unsigned long long before, after;
  long long start = clock64();
  clock_t low = clock();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
  unsigned v = i;
  for (int k = 0; k < 50; k++) v = v * 1664525u + 1013904223u;
  y[i] = v;
  __nanosleep(200);
  __threadfence();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
  long long end = clock64();
  times[3 * i] = end - start;
  times[3 * i + 1] = (long long)(after - before);
  times[3 * i + 2] = sm < sms && before > 0 &&
                     (unsigned)((unsigned)end - (unsigned)low) <= (unsigned long long)(end - start);
}

extern "C" __global__ void clocks_check(const unsigned *y, const long long *times, unsigned *errors) {
  int i = blockIdx.x * 64 + threadIdx.x;
  unsigned v = i;
  for (int k = 0; k < 50; k++) v = v * 1664525u + 1013904223u;
  EXPECT_EQ(i, y[i], v);
  EXPECT(i, times[3 * i] > 0);
  EXPECT(i, times[3 * i + 1] >= 0);
  EXPECT_EQ(i, times[3 * i + 2], 1);
}
