//! alloc x 640*4 random-u32
//! alloc y 640*4 poison
//! alloc where 640*4 poison
//! alloc errors 32 zero
//! launch generic grid=5 block=128 args=x,y,where
//! launch generic_check grid=5 block=128 args=x,y,where,errors
//! checks 1280
// One load and store through generic pointers that lead to global, shared, local and constant memory, lane by
// lane; conversions between generic addresses and those of a space, there and back.
#include "check.cuh"

__constant__ unsigned fixed[8] = {11, 22, 33, 44, 55, 66, 77, 88};
__device__ unsigned counter[8] = {1, 2, 3, 4, 5, 6, 7, 8};

__device__ __noinline__ unsigned sum_up(const unsigned *p, int n) {
  unsigned sum = 0;
  for (int k = 0; k < n; k++) sum = sum * 5 + p[k];
  return sum;
}

extern "C" __global__ void generic(const unsigned *x, unsigned *y, unsigned *where) {
  __shared__ unsigned shared[128 * 4];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  unsigned local[4] = {x[i], x[i] + 1, x[i] + 2, x[i] + 3};
  for (int k = 0; k < 4; k++) shared[4 * t + k] = x[i] * (k + 1);
  const unsigned *p = t % 4 == 0   ? local
                      : t % 4 == 1 ? shared + 4 * t
                      : t % 4 == 2 ? fixed + t % 5
                                   : counter + t % 5;
  y[i] = sum_up(p, 4);
  unsigned *q = t % 2 ? shared + 4 * t : local + (t & 2);
  *q = 77; // generic store
  unsigned word = (shared[4 * t] == 77) | (local[0] == 77) << 1 | (local[2] == 77) << 2;
  unsigned inner = (unsigned)__cvta_generic_to_shared(shared + 4 * t), back;
  asm volatile("ld.shared.u32 %0, [%1+4];" : "=r"(back) : "r"(inner) : "memory");
  word |= (back == x[i] * 2) << 3;
  word |= (__cvta_shared_to_generic(inner) == shared + 4 * t) << 4;
  word |= (*(const unsigned *)__cvta_global_to_generic(__cvta_generic_to_global(x + i)) == x[i]) << 5;
  where[i] = word;
}

extern "C" __global__ void generic_check(const unsigned *x, const unsigned *y, const unsigned *where,
                                         unsigned *errors) {
  int t = threadIdx.x, i = blockIdx.x * 128 + t, kind = t % 4;
  unsigned sum = 0;
  for (int k = 0; k < 4; k++)
    sum = sum * 5 + (kind == 0   ? x[i] + k
                     : kind == 1 ? x[i] * (k + 1)
                     : kind == 2 ? 11u * (t % 5 + k + 1)
                                 : t % 5 + k + 1u);
  EXPECT_EQ(i, y[i], sum);
  EXPECT_EQ(i, where[i], 0x38u | (kind % 2 ? 1u : kind == 0 ? 2u : 4u));
}
