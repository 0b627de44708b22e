//! arch sm_80
//! alloc a 8*4*8 random-f64
//! alloc b 4*8*8 random-f64
//! alloc c 8*8*8 random-f64
//! alloc d 8*8*8 poison
//! alloc errors 32 zero
//! launch mma_f64 grid=1 block=32 args=a,b,c,d
//! launch mma_f64_check grid=1 block=64 args=a,b,c,d,errors
//! checks 64
// mma.sync m8n8k4 on f64.
#include "check.cuh"

// a is (8, 4) by rows, b is (4, 8) by rows, c is (8, 8)
extern "C" __global__ void mma_f64(const double *a, const double *b, const double *c, double *d) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  double d0, d1;
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
      : "=d"(d0), "=d"(d1)
      : "d"(a[g * 4 + t]), "d"(b[t * 8 + g]), "d"(c[g * 8 + 2 * t]), "d"(c[g * 8 + 2 * t + 1]));
  d[g * 8 + 2 * t] = d0, d[g * 8 + 2 * t + 1] = d1;
}

extern "C" __global__ void mma_f64_check(const double *a, const double *b, const double *c, const double *d,
                                         unsigned *errors) {
  int i = threadIdx.x;
  double sum = c[i];
  for (int k = 0; k < 4; k++) sum += a[i / 8 * 4 + k] * b[k * 8 + i % 8];
  EXPECT_NEAR(i, d[i], sum, 1e-14, 1e-15);
}
