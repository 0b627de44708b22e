//! alloc out 7*12*4 poison
//! alloc errors 32 zero
//! launch atomics_shared grid=7 block=90 args=out
//! launch atomics_shared_check grid=1 block=7 args=out,errors
//! checks 84
// Atomics in shared memory: all lanes on one word, and scattered; block scope; f32 and f64 sums; through a
// generic pointer.
#include "check.cuh"

extern "C" __global__ void atomics_shared(unsigned *out) {
  __shared__ unsigned s[8];
  __shared__ unsigned long long wide;
  __shared__ float single;
  __shared__ double twofold;
  unsigned t = threadIdx.x, b = blockIdx.x, local = t * b;
  if (t < 8) s[t] = t == 2 ? 1000 : 0;
  if (t == 0) wide = 1, single = 0.5f, twofold = 0.25;
  __syncthreads();
  atomicAdd(&s[0], t + b);
  atomicAdd_block(&s[t % 2], 1u);
  atomicMin(&s[2], 500 - t);
  atomicMax((int *)&s[3], (int)(t * b) - 100);
  atomicOr(&s[4], 1u << t % 30);
  atomicXor(&s[5], check_hash(local));
  atomicInc(&s[6], 6u);
  unsigned *either = t % 2 ? &s[7] : &local; // in shared or in local memory
  if (t % 2)
    atomicAdd(either, 2u);
  else
    *either += 2;
  atomicAdd(&wide, 1ull << t % 40);
  atomicAdd(&single, (float)t);
  atomicAdd(&twofold, (double)t * 0.5);
  __syncthreads();
  if (t < 8) out[b * 12 + t] = s[t];
  if (t == 8) out[b * 12 + 8] = (unsigned)(wide >> 20);
  if (t == 9) out[b * 12 + 9] = __float_as_uint(single);
  if (t == 10) out[b * 12 + 10] = (unsigned)(twofold * 4);
  if (t == 88) out[b * 12 + 11] = local;
}

extern "C" __global__ void atomics_shared_check(const unsigned *out, unsigned *errors) {
  unsigned b = threadIdx.x, sum = 0, fold = 0;
  unsigned long long wide = 1;
  for (unsigned t = 0; t < 90; t++) sum += t + b, fold ^= check_hash(t * b), wide += 1ull << t % 40;
  out += b * 12;
  EXPECT_EQ(b, out[0], sum + 45);
  EXPECT_EQ(b, out[1], 45u);
  EXPECT_EQ(b, out[2], 411u);
  EXPECT_EQ(b, (int)out[3], max((int)(89 * b) - 100, 0));
  EXPECT_EQ(b, out[4], 0x3fffffffu);
  EXPECT_EQ(b, out[5], fold);
  EXPECT_EQ(b, out[6], 90u % 7);
  EXPECT_EQ(b, out[7], 90u);
  EXPECT_EQ(b, out[8], (unsigned)(wide >> 20));
  EXPECT_EQ(b, __uint_as_float(out[9]), 89 * 90 / 2 + 0.5f);
  EXPECT_EQ(b, out[10], 89u * 90u + 1u);
  EXPECT_EQ(b, out[11], 88u * b + 2u);
}
