//! arch sm_80
//! alloc a 16*8*4 integers-f32:500
//! alloc b 8*8*4 integers-f32:500
//! alloc c 16*8*4 integers-f32:10000
//! alloc d 128*4 poison
//! alloc d4 128*4 poison
//! alloc errors 32 zero
//! launch mma_tf32 grid=1 block=32 args=a,b,c,d,d4
//! launch mma_tf32_check grid=1 block=128 args=a,b,c,d,d4,errors
//! checks 256
// mma.sync on tf32: m16n8k8 and m16n8k4; whole numbers of ten bits, so nothing is lost.
#include "check.cuh"

__device__ unsigned to_tf32(float v) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return bits;
}

// a is (16, 8) by rows, b is (8 columns, 8), c is (16, 8)
extern "C" __global__ void mma_tf32(const float *a, const float *b, const float *c, float *out, float *out4) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned ra[4], rb[2];
  float rc[4], d[4];
  for (int i = 0; i < 4; i++) {
    ra[i] = to_tf32(a[(g + i % 2 * 8) * 8 + t + i / 2 * 4]);
    rc[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  }
  for (int i = 0; i < 2; i++) rb[i] = to_tf32(b[g * 8 + t + i * 4]);
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "f"(rc[0]), "f"(rc[1]),
        "f"(rc[2]), "f"(rc[3]));
  for (int i = 0; i < 4; i++) out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
  asm("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(rb[0]), "f"(rc[0]), "f"(rc[1]), "f"(rc[2]), "f"(rc[3]));
  for (int i = 0; i < 4; i++) out4[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

extern "C" __global__ void mma_tf32_check(const float *a, const float *b, const float *c, const float *d,
                                          const float *d4, unsigned *errors) {
  int i = threadIdx.x, sum = (int)c[i], four = sum;
  for (int k = 0; k < 8; k++) {
    int product = (int)a[i / 8 * 8 + k] * (int)b[i % 8 * 8 + k];
    sum += product;
    if (k < 4) four += product;
  }
  EXPECT_EQ(i, d[i], (float)sum);
  EXPECT_EQ(i, d4[i], (float)four);
}
