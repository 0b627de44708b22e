//! alloc x 300*4 random-u32
//! alloc y 5*300*4 poison
//! alloc errors 32 zero
//! launch calls grid=3 block=100 args=x,y,i32:300
//! launch calls_check grid=3 block=100 args=x,y,i32:300,errors
//! checks 1500
// Calls that are not inlined: many arguments of mixed sizes, structures by value in and out, vectors,
// pointers to the caller's variables, predicates, calls in divergent code and in loops.
#include "check.cuh"

struct Big {
  unsigned v[9];
  unsigned char tag;
};

__device__ __noinline__ unsigned mixed(unsigned char a, short b, unsigned c, long long d, float e, double f,
                                       const unsigned *g, bool h, unsigned short i, signed char j) {
  return a + (unsigned)(int)b + c + (unsigned)d + (unsigned)(d >> 32) + (unsigned)(e * 2) +
         (unsigned)(f * 4) + *g + h * 1000 + i + (unsigned)(int)j;
}
__device__ __noinline__ Big rotate(Big in, int by) {
  Big out;
  for (int k = 0; k < 9; k++) out.v[k] = in.v[(k + by) % 9] + in.tag;
  out.tag = (unsigned char)(in.tag + by);
  return out;
}
__device__ __noinline__ float4 scale(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}
__device__ __noinline__ void exchange(unsigned *a, unsigned *b) {
  unsigned v = *a;
  *a = *b, *b = v;
}
__device__ __noinline__ bool is_prime(unsigned v) {
  if (v < 2) return false;
  for (unsigned k = 2; k * k <= v; k++)
    if (v % k == 0) return false;
  return true;
}

extern "C" __global__ void calls(const unsigned *x, unsigned *y, int n) {
  unsigned i = global_thread(), v = x[i], w = ~v;
  y[i] = mixed((unsigned char)v, (short)(v >> 3), v, (long long)((unsigned long long)v * v), (float)(v & 255),
               (double)(v & 4095), x + i, v & 1, (unsigned short)(v >> 7), (signed char)(v >> 11));
  Big big;
  for (int k = 0; k < 9; k++) big.v[k] = v + k;
  big.tag = (unsigned char)i;
  for (unsigned k = 0; k < v % 4; k++) big = rotate(big, (int)k + 1);
  y[n + i] = big.v[i % 9] ^ big.tag;
  float4 f = scale(make_float4((float)(v & 15), 1, 2, 3), v & 16 ? 2.0f : 0.5f);
  y[2 * n + i] = (unsigned)(2 * (f.x + f.y + f.z + f.w));
  if (v & 32) exchange(&v, &w);
  y[3 * n + i] = v - w;
  y[4 * n + i] = is_prime(i) ? 1 : 0;
}

extern "C" __global__ void calls_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  unsigned i = global_thread(), v = x[i], want;
  unsigned long long square = (unsigned long long)v * v;
  want =
      (v & 255) + (unsigned)(int)(short)(v >> 3) + v + (unsigned)square + (unsigned)((long long)square >> 32);
  want += 2 * (v & 255) + 4 * (v & 4095) + v + (v & 1) * 1000 + (v >> 7 & 0xffff) +
          (unsigned)(int)(signed char)(v >> 11);
  EXPECT_EQ(i, y[i], want);
  unsigned at = i % 9, tag = i & 255, added = 0;
  for (unsigned k = v % 4; k > 0; k--) at = (at + k) % 9; // where the element came from
  for (unsigned k = 0; k < v % 4; k++) added += tag, tag = (tag + k + 1) & 255;
  EXPECT_EQ(i, y[n + i], (v + at + added) ^ tag);
  EXPECT_EQ(i, y[2 * n + i], v & 16 ? 4 * ((v & 15) + 6) : (v & 15) + 6);
  EXPECT_EQ(i, y[3 * n + i], v & 32 ? ~v - v : v - ~v);
  unsigned divisors = 0;
  for (unsigned k = 1; k <= i; k++) divisors += i % k == 0;
  EXPECT_EQ(i, y[4 * n + i], divisors == 2 ? 1u : 0u);
}
