//! alloc x 4096*4 random-u32
//! alloc y 16*4096 poison
//! alloc errors 32 zero
//! launch vec_f4 grid=4 block=96 args=x,y,i32:333
//! launch vec_u2 grid=4 block=96 args=x,y+8192,i32:333
//! launch vec_us4 grid=4 block=96 args=x,y+16384,i32:333
//! launch vec_uc4 grid=4 block=96 args=x,y+24576,i32:333
//! launch vec_d2 grid=4 block=96 args=x,y+32768,i32:333
//! launch vec_c2 grid=4 block=96 args=x,y+40960,i32:333
//! launch vec_s1 grid=4 block=96 args=x,y+45056,i32:333
//! launch vec_l2 grid=4 block=96 args=x,y+49152,i32:333
//! launch vec_check grid=2 block=224 args=x,y,i32:333,errors
//! checks 23643
// Vector loads and stores of every width and element size; each kernel turns the elements of a vector around.
#include "check.cuh"

#define I                                                                                                    \
  int i = blockIdx.x * blockDim.x + threadIdx.x;                                                             \
  if (i >= n) return

extern "C" __global__ void vec_f4(const float4 *x, float4 *y, int n) {
  I;
  float4 v = x[i];
  y[i] = make_float4(v.w, v.x, v.y, v.z);
}
extern "C" __global__ void vec_u2(const uint2 *x, uint2 *y, int n) {
  I;
  y[i] = make_uint2(x[i].y, x[i].x);
}
extern "C" __global__ void vec_us4(const ushort4 *x, ushort4 *y, int n) {
  I;
  ushort4 v = x[i];
  y[i] = make_ushort4(v.w, v.z, v.y, v.x);
}
extern "C" __global__ void vec_uc4(const uchar4 *x, uchar4 *y, int n) {
  I;
  uchar4 v = x[i];
  y[i] = make_uchar4(v.w, v.z, v.y, v.x);
}
extern "C" __global__ void vec_d2(const double2 *x, double2 *y, int n) {
  I;
  double2 v = x[i];
  y[i] = make_double2(v.y, v.x);
}
extern "C" __global__ void vec_c2(const char2 *x, char2 *y, int n) {
  I;
  char2 v = x[i];
  y[i] = make_char2(v.y, v.x);
}
extern "C" __global__ void vec_s1(const short *x, int *y, int n) { // sign-extending
  I;
  y[i] = x[i];
}
extern "C" __global__ void vec_l2(const longlong2 *x, longlong2 *y, int n) {
  I;
  longlong2 v = x[i];
  y[i] = make_longlong2(v.y, v.x);
}

// Elements of `size` bytes, `count` of them a vector; element k of y is element from(k) of x.
__device__ void check_vectors(const unsigned char *x, const unsigned char *y, int i, int size, int count,
                              bool rotate, unsigned *errors) {
  for (int k = 0; k < count; k++) {
    int from = rotate ? (k + count - 1) % count : count - 1 - k;
    for (int b = 0; b < size; b++)
      EXPECT_EQ(i, y[(i * count + k) * size + b], x[(i * count + from) * size + b]);
  }
}

extern "C" __global__ void vec_check(const unsigned char *x, const unsigned char *y, int n,
                                     unsigned *errors) {
  I;
  check_vectors(x, y, i, 4, 4, true, errors);
  check_vectors(x, y + 8192, i, 4, 2, false, errors);
  check_vectors(x, y + 16384, i, 2, 4, false, errors);
  check_vectors(x, y + 24576, i, 1, 4, false, errors);
  check_vectors(x, y + 32768, i, 8, 2, false, errors);
  check_vectors(x, y + 40960, i, 1, 2, false, errors);
  unsigned low = x[2 * i] | x[2 * i + 1] << 8;
  EXPECT_EQ(i, ((const unsigned *)(y + 45056))[i], low & 0x8000 ? low | 0xffff0000u : low);
  check_vectors(x, y + 49152, i, 8, 2, false, errors);
}
