//! alloc bytes 2*16*16 random-u32
//! alloc small 2*16*16*4 integers-f32:15
//! alloc i8 256*4 poison
//! alloc u8 256*4 poison
//! alloc bf 256*4 poison
//! alloc tf 256*4 poison
//! alloc f64 64*8 poison
//! alloc errors 32 zero
//! launch wmma_ints grid=1 block=32 args=bytes,i8,u8
//! launch wmma_floats grid=1 block=32 args=small,bf,tf,f64
//! launch wmma_types_check grid=1 block=256 args=bytes,small,i8,u8,bf,tf,f64,errors
//! checks 512
// wmma with signed and unsigned bytes; from sm_80 on also bf16, tf32 and f64.
#include "check.cuh"
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void wmma_ints(const signed char *x, int *i8, int *u8) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::row_major> b;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, unsigned char, wmma::row_major> ua;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, unsigned char, wmma::col_major> ub;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
  wmma::load_matrix_sync(a, x, 16);
  wmma::load_matrix_sync(b, x + 256, 16);
  wmma::fill_fragment(sum, -7);
  wmma::mma_sync(sum, a, b, sum);
  wmma::store_matrix_sync(i8, sum, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(ua, (const unsigned char *)x, 16);
  wmma::load_matrix_sync(ub, (const unsigned char *)x + 256, 16);
  wmma::fill_fragment(sum, 2147000000); // saturates for large sums
  wmma::mma_sync(sum, ua, ub, sum, true);
  wmma::store_matrix_sync(u8, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void wmma_floats(const float *x, float *bf, float *tf, double *f64) {
#if __CUDA_ARCH__ >= 800
  __shared__ __align__(32) __nv_bfloat16 s[512];
  __shared__ __align__(32) double w[64];
  for (int i = threadIdx.x; i < 512; i += 32) s[i] = __float2bfloat16(x[i]);
  for (int i = threadIdx.x; i < 64; i += 32) w[i] = x[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::load_matrix_sync(a, s, 16);
  wmma::load_matrix_sync(b, s + 256, 16);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, a, b, sum);
  wmma::store_matrix_sync(bf, sum, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> ta;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> tb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> ts;
  wmma::fill_fragment(ts, 0.0f);
  for (int k = 0; k < 16; k += 8) {
    wmma::load_matrix_sync(ta, x + k, 16);
    wmma::load_matrix_sync(tb, x + 256 + k * 16, 16);
    for (int i = 0; i < ta.num_elements; i++) ta.x[i] = wmma::__float_to_tf32(ta.x[i]);
    wmma::mma_sync(ts, ta, tb, ts);
  }
  wmma::store_matrix_sync(tf, ts, 16, wmma::mem_row_major);
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> da;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> db;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> ds;
  wmma::load_matrix_sync(da, w, 4);
  wmma::load_matrix_sync(db, w + 32, 4);
  wmma::fill_fragment(ds, 0.25);
  wmma::mma_sync(ds, da, db, ds);
  wmma::store_matrix_sync(f64, ds, 8, wmma::mem_row_major);
#endif
}

extern "C" __global__ void wmma_types_check(const signed char *x, const float *small, const int *i8,
                                            const int *u8, const float *bf, const float *tf,
                                            const double *f64, unsigned *errors) {
  int i = threadIdx.x, row = i / 16, column = i % 16, sum = 0, product = 0;
  long long usum = 2147000000;
  for (int k = 0; k < 16; k++) {
    sum += x[row * 16 + k] * x[256 + k * 16 + column];
    usum += (unsigned char)x[row * 16 + k] * (unsigned char)x[256 + column * 16 + k];
    product += (int)small[row * 16 + k] * (int)small[256 + k * 16 + column];
  }
  EXPECT_EQ(i, i8[i], sum - 7);
  EXPECT_EQ(i, u8[i], usum > 2147483647 ? 2147483647 : (int)usum);
#if __CUDA_ARCH__ >= 800
  EXPECT_EQ(i, bf[i], (float)product);
  EXPECT_EQ(i, tf[i], (float)product);
  int eight = 0;
  for (int k = 0; k < 4 && i < 64; k++) eight += (int)small[i / 8 * 4 + k] * (int)small[32 + i % 8 * 4 + k];
  if (i < 64) EXPECT_EQ(i, f64[i], eight + 0.25);
#endif
}
