//! alloc x 1024*4 random-u32
//! alloc y 1024*4 poison
//! alloc errors 32 zero
//! launch static_shared grid=4 block=256 args=x,y
//! launch static_shared_check grid=4 block=256 args=x,y,errors
//! checks 1024
// Many static shared arrays of different alignments, some inside called functions, the same in two calls.
#include "check.cuh"

__device__ __noinline__ unsigned rotate(unsigned v, int by) {
  __shared__ unsigned ring[256]; // one array, however often this is called
  __syncthreads();
  ring[threadIdx.x] = v;
  __syncthreads();
  return ring[(threadIdx.x + by) % 256];
}

__device__ unsigned count_bits(unsigned v) {
  __shared__ unsigned char nibble[16];
  __shared__ double scale[3];
  if (threadIdx.x < 16) nibble[threadIdx.x] = (unsigned char)__popc(threadIdx.x);
  if (threadIdx.x < 3) scale[threadIdx.x] = threadIdx.x + 1;
  __syncthreads();
  unsigned sum = 0;
  for (int k = 0; k < 32; k += 4) sum += nibble[v >> k & 15];
  return (unsigned)(scale[threadIdx.x % 3] * sum);
}

extern "C" __global__ void static_shared(const unsigned *x, unsigned *y) {
  __shared__ char odd[13];
  __shared__ __align__(128) unsigned aligned[32];
  int t = threadIdx.x, i = blockIdx.x * 256 + t;
  if (t < 13) odd[t] = (char)(3 * t);
  if (t < 32) aligned[t] = x[i] & 0xff;
  unsigned v = rotate(x[i], 3) ^ rotate(~x[i], 250);
  y[i] = v + count_bits(v) + odd[t % 13] + aligned[t % 32] + (unsigned)((size_t)aligned % 128);
}

extern "C" __global__ void static_shared_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  const unsigned *row = x + blockIdx.x * 256;
  int t = threadIdx.x;
  unsigned v = row[(t + 3) % 256] ^ ~row[(t + 250) % 256], bits = 0;
  for (int k = 0; k < 32; k++) bits += v >> k & 1;
  EXPECT_EQ(t, y[blockIdx.x * 256 + t], v + (t % 3 + 1) * bits + 3 * (t % 13) + (row[t % 32] & 0xff));
}
