//! alloc x 600*4 random-u32
//! alloc y 600*4 poison
//! alloc big 2*4 poison
//! alloc errors 32 zero
//! launch several_views grid=6 block=100 smem=100*8+100*4+100*2+100 args=x,y
//! launch much_shared grid=2 block=256 smem=65536 args=big
//! launch dynamic_check grid=6 block=100 args=x,y,big,errors
//! checks 602
// Dynamic shared memory seen through several extern names and types, behind a static array; and 64 KiB of it.
#include "check.cuh"

extern __shared__ unsigned char raw[];
extern __shared__ unsigned long long wide[];

extern "C" __global__ void several_views(const unsigned *x, unsigned *y) {
  __shared__ unsigned fixed[100];
  int n = blockDim.x, t = threadIdx.x, i = blockIdx.x * n + t;
  unsigned *words = (unsigned *)(wide + n);
  unsigned short *halves = (unsigned short *)(words + n);
  unsigned char *bytes = raw + 8 * n + 4 * n + 2 * n;
  wide[t] = (unsigned long long)x[i] * x[i];
  words[t] = x[i] + 1;
  halves[t] = (unsigned short)(x[i] >> 16);
  bytes[t] = (unsigned char)x[i];
  fixed[t] = ~x[i];
  __syncthreads();
  int u = (t * 37 + 11) % n; // another thread's
  y[i] = (unsigned)(wide[u] >> 32) ^ words[u] ^ halves[u] << 8 ^ bytes[u] ^ fixed[u] ^ raw[8 * u];
}

extern "C" __global__ void much_shared(unsigned *big) {
  unsigned *words = (unsigned *)raw, sum = 0;
  for (int i = threadIdx.x; i < 16384; i += 256) words[i] = check_hash(i + blockIdx.x);
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += 256)
    for (int k = 0; k < 256; k += 16) sum += words[16383 - i * 256 - k];
  atomicExch(&words[0], 0u);
  __syncthreads();
  atomicAdd(&words[0], sum);
  __syncthreads();
  if (threadIdx.x == 0) big[blockIdx.x] = words[0];
}

extern "C" __global__ void dynamic_check(const unsigned *x, const unsigned *y, const unsigned *big,
                                         unsigned *errors) {
  int t = threadIdx.x, i = blockIdx.x * 100 + t, u = (t * 37 + 11) % 100;
  unsigned v = x[blockIdx.x * 100 + u];
  unsigned long long square = (unsigned long long)v * v;
  unsigned want =
      (unsigned)(square >> 32) ^ (v + 1) ^ (v >> 16 << 8) ^ (v & 255) ^ ~v ^ (unsigned)(square & 255);
  EXPECT_EQ(i, y[i], want);
  if (i < 2) {
    unsigned sum = 0;
    for (int k = 0; k < 16384; k += 16) sum += check_hash(16383 - k + i);
    EXPECT_EQ(i, big[i], sum);
  }
}
