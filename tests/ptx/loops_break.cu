//! alloc x 1300*4 random-u32
//! alloc y 4*1300*4 poison
//! alloc errors 32 zero
//! launch loops grid=13 block=100 args=x,y,i32:1300
//! launch loops_check grid=13 block=100 args=x,y,i32:1300,errors
//! checks 6500
// Loops of every kind with break and continue: for, while, do, nested with a labelled way out; lanes of one
// warp finish at different times.
#include "check.cuh"

extern "C" __global__ void loops(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], count = 0, sum = 0;
  for (unsigned k = 0; k < 32; k++) {
    if (!(v >> k & 1)) continue;
    if (++count == 9) break;
    sum += k;
  }
  y[i] = sum;
  unsigned a = v | 1, b = (v >> 13) + 1;
  while (b) { // greatest common divisor
    unsigned r = a % b;
    a = b, b = r;
  }
  y[n + i] = a;
  unsigned state = v, trips = 0;
  do {
    state = state * 1664525u + 1013904223u;
    trips++;
  } while (state >> 27 != 0 && trips < 200);
  y[2 * n + i] = trips;
  unsigned found = 0;
  for (unsigned p = 2; p < 40; p++) {
    for (unsigned q = 2; q <= p; q++) {
      if (q * q > p) break;
      if (p % q == 0) goto next;
    }
    if ((v & 0xffff) % p == 0 && ++found == 3) {
      found = 100 + p;
      goto out;
    }
  next:;
  }
out:
  y[3 * n + i] = found;
}

extern "C" __global__ void loops_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], sum = 0, left = v;
  for (int k = 0; k < 8 && left; k++) sum += (unsigned)__ffs((int)left) - 1, left &= left - 1;
  EXPECT_EQ(i, y[i], sum);
  unsigned a = y[n + i];
  EXPECT(i, a > 0 && (v | 1) % a == 0 && ((v >> 13) + 1) % a == 0);
  // No common divisor of the cofactors: by the binary method.
  unsigned p = (v | 1) / a, q = ((v >> 13) + 1) / a;
  while (p != q) {
    if (!(p & 1))
      p >>= 1;
    else if (!(q & 1))
      q >>= 1;
    else if (p > q)
      p = (p - q) >> 1;
    else
      q = (q - p) >> 1;
  }
  EXPECT_EQ(i, p, 1u);
  unsigned state = v, trips = 0;
  for (unsigned k = 1; k <= 200 && !trips; k++) {
    state = state * 1664525u + 1013904223u;
    if (state < 1u << 27 || k == 200) trips = k;
  }
  EXPECT_EQ(i, y[2 * n + i], trips);
  const unsigned primes[12] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  unsigned found = 0;
  for (int k = 0; k < 12 && found < 100; k++)
    if ((v & 0xffff) % primes[k] == 0) found = found == 2 ? 100 + primes[k] : found + 1;
  EXPECT_EQ(i, y[3 * n + i], found);
}
