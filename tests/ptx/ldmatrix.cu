//! alloc x 32*8*2 random-u32
//! alloc out 8*32*4*4 poison
//! alloc errors 32 zero
//! launch ldmatrix_all grid=1 block=32 args=x,out
//! launch ldmatrix_check grid=1 block=32 args=x,out,errors
//! checks 768
// ldmatrix x1, x2, x4, straight and transposed, with rows in odd places; stmatrix from sm_90 on.
#include "check.cuh"

extern "C" __global__ void ldmatrix_all(const unsigned short *x, unsigned *out) {
  __shared__ __align__(16) unsigned short s[32 * 24];
  unsigned lane = threadIdx.x, r[4] = {0, 0, 0, 0};
  for (int i = lane; i < 256; i += 32) s[i / 8 * 24 + i % 8] = x[i];
  __syncwarp();
  // Lane i gives the address of row i; rows are 48 bytes apart.
  unsigned row = (unsigned)__cvta_generic_to_shared(s + lane * 24);
  unsigned *at = out + lane * 4;
#define PUT(k)                                                                                               \
  for (int i = 0; i < 4; i++) at[k * 128 + i] = r[i], r[i] = 0
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row));
  PUT(0);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(row));
  PUT(1);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
  PUT(2);
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(row));
  PUT(3);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(row));
  PUT(4);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(16) unsigned short back[32 * 24];
  unsigned target = (unsigned)__cvta_generic_to_shared(back + lane * 24);
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(target), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
  __syncwarp();
  for (int i = 0; i < 4; i++) // transposed twice: the rows again
    at[6 * 128 + i] = back[lane * 24 + 2 * i] | (unsigned)back[lane * 24 + 2 * i + 1] << 16;
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(target), "r"(r[0]), "r"(r[1])
               : "memory");
  __syncwarp();
  for (int i = 0; i < 4; i++)
    at[7 * 128 + i] = back[lane * 24 + 2 * i] | (unsigned)back[lane * 24 + 2 * i + 1] << 16;
#endif
  PUT(5);
}

extern "C" __global__ void ldmatrix_check(const unsigned short *x, const unsigned *out, unsigned *errors) {
  int lane = threadIdx.x, g = lane / 4, t = lane % 4;
  for (int i = 0; i < 4; i++) {
    const unsigned short *m = x + i * 64; // matrix i
    unsigned straight = m[g * 8 + 2 * t] | (unsigned)m[g * 8 + 2 * t + 1] << 16;
    unsigned turned = m[2 * t * 8 + g] | (unsigned)m[(2 * t + 1) * 8 + g] << 16;
    EXPECT_EQ(lane * 4 + i, out[0 * 128 + lane * 4 + i], i < 1 ? straight : 0u);
    EXPECT_EQ(lane * 4 + i, out[1 * 128 + lane * 4 + i], i < 2 ? straight : 0u);
    EXPECT_EQ(lane * 4 + i, out[2 * 128 + lane * 4 + i], straight);
    EXPECT_EQ(lane * 4 + i, out[3 * 128 + lane * 4 + i], i < 1 ? turned : 0u);
    EXPECT_EQ(lane * 4 + i, out[4 * 128 + lane * 4 + i], i < 2 ? turned : 0u);
    EXPECT_EQ(lane * 4 + i, out[5 * 128 + lane * 4 + i], turned);
#if __CUDA_ARCH__ >= 900
    unsigned row = x[lane * 8 + 2 * i] | (unsigned)x[lane * 8 + 2 * i + 1] << 16;
    m = x + lane / 8 * 64;
    unsigned column = m[2 * i * 8 + lane % 8] | (unsigned)m[(2 * i + 1) * 8 + lane % 8] << 16;
    EXPECT_EQ(lane * 4 + i, out[6 * 128 + lane * 4 + i], row);
    EXPECT_EQ(lane * 4 + i, out[7 * 128 + lane * 4 + i], lane < 16 ? column : row);
#endif
  }
}
