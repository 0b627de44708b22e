//! alloc a 32*48*2 integers-f16:6
//! alloc b 48*64*2 integers-f16:6
//! alloc c 32*64*4 integers-f32:50
//! alloc d 32*64*4 poison
//! alloc half 32*64*2 poison
//! alloc wide 8*32*4 poison
//! alloc tall 32*8*4 poison
//! alloc errors 32 zero
//! launch wmma_product grid=4,2 block=32 args=a,b,c,d,half
//! launch wmma_shapes grid=1 block=32 args=a,b,wide,tall
//! launch wmma_check grid=8 block=256 args=a,b,c,d,half,wide,tall,errors
//! checks 4608
// wmma with fp16 inputs: f32 and f16 accumulators, row and column layouts, all three shapes, fill, fragment
// elements.
#include "check.cuh"
#include <mma.h>
using namespace nvcuda;

// a is (32, 48), b is (64, 48) read as columns, c and d are (32, 64)
extern "C" __global__ void wmma_product(const half *a, const half *b, const float *c, float *d, half *h) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fragment<wmma::accumulator, 16, 16, 16, half> narrow;
  int row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::load_matrix_sync(sum, c + row * 64 + column, 64, wmma::mem_row_major);
  wmma::fill_fragment(narrow, __float2half(1.0f));
  for (int k = 0; k < 48; k += 16) {
    wmma::load_matrix_sync(fa, a + row * 48 + k, 48);
    wmma::load_matrix_sync(fb, b + column * 48 + k, 48);
    wmma::mma_sync(sum, fa, fb, sum);
    wmma::mma_sync(narrow, fa, fb, narrow);
  }
  for (int i = 0; i < sum.num_elements; i++) sum.x[i] *= 2.0f;
  wmma::store_matrix_sync(d + row * 64 + column, sum, 64, wmma::mem_row_major);
  wmma::store_matrix_sync(h + column * 32 + row, narrow, 32, wmma::mem_col_major);
}

// The first 8x16 times 16x32 and 32x16 times 16x8 of the same buffers, a by columns and b by rows.
extern "C" __global__ void wmma_shapes(const half *a, const half *b, float *wide, float *tall) {
  __shared__ __align__(32) half sa[32 * 16], sb[16 * 32];
  for (int i = threadIdx.x; i < 512; i += 32) sa[i] = a[i], sb[i] = b[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 8, 32, 16, half, wmma::col_major> a8;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, half, wmma::row_major> b32;
  wmma::fragment<wmma::accumulator, 8, 32, 16, float> d8;
  wmma::load_matrix_sync(a8, sa, 32);
  wmma::load_matrix_sync(b32, sb, 32);
  wmma::fill_fragment(d8, 0.5f);
  wmma::mma_sync(d8, a8, b32, d8);
  wmma::store_matrix_sync(wide, d8, 32, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> a32;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> b8;
  wmma::fragment<wmma::accumulator, 32, 8, 16, float> d32;
  wmma::load_matrix_sync(a32, sa, 32);
  wmma::load_matrix_sync(b8, sb, 32);
  wmma::fill_fragment(d32, -0.5f);
  wmma::mma_sync(d32, a32, b8, d32);
  wmma::store_matrix_sync(tall, d32, 8, wmma::mem_row_major);
}

extern "C" __global__ void wmma_check(const half *a, const half *b, const float *c, const float *d,
                                      const half *h, const float *wide, const float *tall, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / 64, column = i % 64, sum = 0;
  for (int k = 0; k < 48; k++)
    sum += (int)__half2float(a[row * 48 + k]) * (int)__half2float(b[column * 48 + k]);
  EXPECT_EQ(i, d[i], 2.0f * ((float)sum + c[i]));
  EXPECT_EQ(i, __half2float(h[column * 32 + row]), __half2float(__float2half((float)sum + 1.0f)));
  if (i >= 256) return;
  int m = i / 32, n = i % 32, w = 0, t = 0;
  for (int k = 0; k < 16; k++) {
    w += (int)__half2float(a[k * 32 + m]) * (int)__half2float(b[k * 32 + n]);
    t += (int)__half2float(a[k * 32 + i / 8]) * (int)__half2float(b[k * 32 + i % 8]);
  }
  EXPECT_EQ(i, wide[i], (float)w + 0.5f);
  EXPECT_EQ(i, tall[i], (float)t - 0.5f);
}
