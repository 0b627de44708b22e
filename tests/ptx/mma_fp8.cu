//! arch sm_90
//! alloc a 16*32 random-u32
//! alloc b 8*32 random-u32
//! alloc c 16*8*4 integers-f32:20
//! alloc e4 128*4 poison
//! alloc e5 128*4 poison
//! alloc errors 32 zero
//! launch mma_fp8 grid=1 block=32 args=a,b,c,e4,e5
//! launch mma_fp8_check grid=1 block=128 args=a,b,c,e4,e5,errors
//! checks 256
// mma.sync m16n8k32 on fp8, e4m3 and e4m3 times e5m2; inputs are 0, 1, 2, 4 with either sign.
#include "check.cuh"

// Two bits of each byte choose the value, one the sign.
__device__ int value(unsigned char v) {
  return (v & 4 ? -1 : 1) * ((1 << (v & 3)) >> 1);
}
__device__ unsigned encode(unsigned word, bool e5m2) {
  unsigned out = 0;
  for (int i = 0; i < 32; i += 8) {
    unsigned v = word >> i, power = v & 3; // 1 is 0x38 in e4m3 and 0x3c in e5m2
    unsigned bits = power == 0 ? 0 : e5m2 ? 0x3cu + 4 * (power - 1) : 0x38u + 8 * (power - 1);
    out |= (bits | (v & 4) << 5) << i;
  }
  return out;
}

extern "C" __global__ void mma_fp8(const unsigned *a, const unsigned *b, const float *c, float *e4,
                                   float *e5) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned ra[4], rb[2], sb[2];
  float rc[4], d[4];
  for (int i = 0; i < 4; i++) {
    ra[i] = encode(a[(g + i % 2 * 8) * 8 + t + i / 2 * 4], false);
    rc[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  }
  for (int i = 0; i < 2; i++) {
    rb[i] = encode(b[g * 8 + t + i * 4], false);
    sb[i] = encode(b[g * 8 + t + i * 4], true);
  }
#define MMA_FP8(types, b)                                                                                    \
  asm("mma.sync.aligned.m16n8k32.row.col." types                                                             \
      " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                                           \
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                                       \
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(b[0]), "r"(b[1]), "f"(rc[0]), "f"(rc[1]),        \
        "f"(rc[2]), "f"(rc[3]))
  MMA_FP8("f32.e4m3.e4m3.f32", rb);
  for (int i = 0; i < 4; i++) e4[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
  MMA_FP8("f32.e4m3.e5m2.f32", sb);
  for (int i = 0; i < 4; i++) e5[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}

extern "C" __global__ void mma_fp8_check(const unsigned char *a, const unsigned char *b, const float *c,
                                         const float *e4, const float *e5, unsigned *errors) {
  int i = threadIdx.x, sum = (int)c[i];
  for (int k = 0; k < 32; k++) sum += value(a[i / 8 * 32 + k]) * value(b[i % 8 * 32 + k]);
  EXPECT_EQ(i, e4[i], (float)sum);
  EXPECT_EQ(i, e5[i], (float)sum);
}
