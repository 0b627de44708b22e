//! arch sm_80
//! alloc a 16*16*2 integers-f16:10
//! alloc b 16*8*2 integers-f16:10
//! alloc c 16*8*4 integers-f32:99
//! alloc wide 128*4 poison
//! alloc narrow 128*4 poison
//! alloc brain 128*4 poison
//! alloc short8 128*4 poison
//! alloc errors 32 zero
//! launch mma_f16 grid=1 block=32 args=a,b,c,wide,narrow,brain,short8
//! launch mma_f16_check grid=1 block=128 args=a,b,c,wide,narrow,brain,short8,errors
//! checks 512
// mma.sync m16n8k16 with f16 inputs (f32 and f16 results) and bf16 inputs, and m16n8k8, by inline assembly.
#include "check.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__device__ unsigned pack_half(const half *x, int i, int step) {
  return (unsigned)__half_as_ushort(x[i]) | (unsigned)__half_as_ushort(x[i + step]) << 16;
}
__device__ unsigned pack_brain(const half *x, int i, int step) { // the same values as bf16
  unsigned low = __bfloat16_as_ushort(__float2bfloat16(__half2float(x[i])));
  return low | (unsigned)__bfloat16_as_ushort(__float2bfloat16(__half2float(x[i + step]))) << 16;
}

#define MMA_F32(kind, d, a, b, c)                                                                            \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." kind "." kind ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "  \
      "{%10,%11,%12,%13};"                                                                                   \
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                                       \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]),   \
        "f"(c[3]))

// a is (16, 16) by rows, b is (8, 16) by columns, c is (16, 8)
extern "C" __global__ void mma_f16(const half *a, const half *b, const float *c, float *wide, float *narrow,
                                   float *brain, float *short8) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned ra[4], rb[2], na[4], nb[2], h[2];
  float rc[4], d[4];
  for (int i = 0; i < 4; i++) {
    int at = (g + i % 2 * 8) * 16 + 2 * t + i / 2 * 8;
    ra[i] = pack_half(a, at, 1), na[i] = pack_brain(a, at, 1);
    rc[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  }
  for (int i = 0; i < 2; i++) {
    rb[i] = pack_half(b, g * 16 + 2 * t + 8 * i, 1), nb[i] = pack_brain(b, g * 16 + 2 * t + 8 * i, 1);
    h[i] = 0x3c003c00u; // 1, 1
  }
  MMA_F32("f16", d, ra, rb, rc);
  for (int i = 0; i < 4; i++) wide[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
  MMA_F32("bf16", d, na, nb, rc);
  for (int i = 0; i < 4; i++) brain[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
      : "+r"(h[0]), "+r"(h[1])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; i++)
    narrow[(g + i / 2 * 8) * 8 + 2 * t + i % 2] =
        __half2float(__ushort_as_half((unsigned short)(h[i / 2] >> 16 * (i % 2))));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(rb[0]), "f"(rc[0]), "f"(rc[1]), "f"(rc[2]), "f"(rc[3]));
  for (int i = 0; i < 4; i++) short8[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

extern "C" __global__ void mma_f16_check(const half *a, const half *b, const float *c, const float *wide,
                                         const float *narrow, const float *brain, const float *short8,
                                         unsigned *errors) {
  int i = threadIdx.x, row = i / 8, column = i % 8, sum = 0, eight = 0;
  for (int k = 0; k < 16; k++) {
    int product = (int)__half2float(a[row * 16 + k]) * (int)__half2float(b[column * 16 + k]);
    sum += product;
    if (k < 8) eight += product;
  }
  EXPECT_EQ(i, wide[i], (float)sum + c[i]);
  EXPECT_EQ(i, brain[i], (float)sum + c[i]);
  EXPECT_EQ(i, narrow[i], __half2float(__float2half((float)sum + 1.0f)));
  EXPECT_EQ(i, short8[i], (float)eight + c[i]);
}
