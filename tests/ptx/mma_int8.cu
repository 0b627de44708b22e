//! alloc a 16*32 random-u32
//! alloc b 8*32 random-u32
//! alloc c 16*8*4 random-u32
//! alloc s32 128*4 poison
//! alloc mixed 128*4 poison
//! alloc small 64*4 poison
//! alloc errors 32 zero
//! launch mma_int8 grid=1 block=32 args=a,b,c,s32,mixed
//! launch mma_int8_small grid=1 block=32 args=a,b,c,small
//! launch mma_int8_check grid=1 block=128 args=a,b,c,s32,mixed,small,errors
//! checks 64
// mma.sync on bytes: m16n8k32 s8, u8 times s8 with saturation (sm_80), m8n8k16 (sm_75).
#include "check.cuh"

// a is (16, 32) by rows, b is (8 columns, 32), c is (16, 8)
extern "C" __global__ void mma_int8(const unsigned *a, const unsigned *b, const int *c, int *s32,
                                    int *mixed) {
#if __CUDA_ARCH__ >= 800
  int g = threadIdx.x / 4, t = threadIdx.x % 4;
  unsigned ra[4], rb[2];
  int rc[4], d[4];
  for (int i = 0; i < 4; i++) {
    ra[i] = a[(g + i % 2 * 8) * 8 + t + i / 2 * 4];
    rc[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
  }
  for (int i = 0; i < 2; i++) rb[i] = b[g * 8 + t + i * 4];
#define MMA_S8(types)                                                                                        \
  asm("mma.sync.aligned.m16n8k32.row.col" types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};" \
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                                                       \
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "r"(rc[0]), "r"(rc[1]),      \
        "r"(rc[2]), "r"(rc[3]))
  MMA_S8(".s32.s8.s8.s32");
  for (int i = 0; i < 4; i++) s32[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
  for (int i = 0; i < 4; i++) rc[i] = rc[i] < 0 ? (int)0x80000010 : 0x7ffffff0; // near the ends
  MMA_S8(".satfinite.s32.u8.s8.s32");
  for (int i = 0; i < 4; i++) mixed[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
#endif
}

// The first 8x16 of a and the first 16 of each column of b.
extern "C" __global__ void mma_int8_small(const unsigned *a, const unsigned *b, const int *c, int *small) {
  int g = threadIdx.x / 4, t = threadIdx.x % 4, d0, d1;
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1}, {%2}, {%3}, {%4,%5};"
      : "=r"(d0), "=r"(d1)
      : "r"(a[g * 8 + t]), "r"(b[g * 8 + t]), "r"(c[g * 8 + 2 * t]), "r"(c[g * 8 + 2 * t + 1]));
  small[g * 8 + 2 * t] = d0, small[g * 8 + 2 * t + 1] = d1;
}

extern "C" __global__ void mma_int8_check(const signed char *a, const signed char *b, const int *c,
                                          const int *s32, const int *mixed, const int *small,
                                          unsigned *errors) {
  int i = threadIdx.x, row = i / 8, column = i % 8, sum = 0, half = 0, mixed_sum = 0;
  for (int k = 0; k < 32; k++) {
    sum += a[row * 32 + k] * b[column * 32 + k];
    mixed_sum += (unsigned char)a[row * 32 + k] * b[column * 32 + k];
    if (k == 15) half = sum;
  }
#if __CUDA_ARCH__ >= 800
  EXPECT_EQ(i, (unsigned)s32[i], (unsigned)sum + (unsigned)c[i]); // wraps
  long long exact = (c[i] < 0 ? -2147483632ll : 2147483632ll) + mixed_sum;
  EXPECT_EQ(i, mixed[i],
            exact < -2147483648ll  ? (int)0x80000000
            : exact > 2147483647ll ? 0x7fffffff
                                   : (int)exact);
#endif
  if (i < 64) EXPECT_EQ(i, (unsigned)small[i], (unsigned)half + (unsigned)c[i]);
}
