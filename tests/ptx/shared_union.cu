//! alloc x 512*4 random-u32
//! alloc y 512*4 poison
//! alloc errors 32 zero
//! launch shared_union grid=4 block=128 args=x,y
//! launch shared_union_check grid=4 block=128 args=x,y,errors
//! checks 512
// A union in shared memory whose members take turns between barriers, beside a struct and a two-dimensional
// array.
#include "check.cuh"

union Scratch {
  float4 vectors[32];
  unsigned long long pairs[64];
  unsigned short halves[256];
  unsigned words[128];
};

extern "C" __global__ void shared_union(const unsigned *x, unsigned *y) {
  __shared__ Scratch scratch;
  __shared__ struct {
    unsigned char flag;
    unsigned total;
    unsigned short each[3];
  } notes;
  __shared__ unsigned table[4][33];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  if (t == 0) notes.total = 0, notes.flag = 7, notes.each[0] = notes.each[1] = notes.each[2] = 1;
  scratch.words[t] = x[i];
  __syncthreads();
  unsigned short half = scratch.halves[255 - t];
  float4 vector = scratch.vectors[t % 32];
  table[t / 32][t % 32] = __float_as_uint(t & 1 ? vector.x : vector.w);
  __syncthreads();
  if (t < 64) scratch.pairs[t] = (unsigned long long)half << 40 | t;
  atomicAdd(&notes.total, (unsigned)half);
  if (t < 3) notes.each[t] += (unsigned short)(notes.flag * t);
  __syncthreads();
  unsigned long long pair = scratch.pairs[t % 64];
  y[i] = (unsigned)(pair >> 32) ^ (unsigned)pair ^ notes.total ^ table[3 - t / 32][31 - t % 32] ^
         notes.each[t % 3] << 20;
}

extern "C" __global__ void shared_union_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  const unsigned *row = x + blockIdx.x * 128;
  const unsigned short *halves = (const unsigned short *)row;
  int t = threadIdx.x, other = (3 - t / 32) * 32 + 31 - t % 32;
  unsigned total = 0;
  for (int k = 0; k < 128; k++) total += halves[255 - k];
  unsigned word = row[other % 32 * 4 + (other & 1 ? 0 : 3)];
  unsigned pair = (unsigned)halves[255 - t % 64] << 8 ^ (unsigned)(t % 64);
  EXPECT_EQ(t, y[blockIdx.x * 128 + t], pair ^ total ^ word ^ (1 + 7u * (t % 3)) << 20);
}
