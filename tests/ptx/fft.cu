//! alloc x 3*256*8 random-f32
//! alloc y 3*256*8 poison
//! alloc errors 32 zero
//! launch fft grid=3 block=128 args=x,y
//! launch fft_check grid=3 block=256 args=x,y,errors
//! checks 1536
// A complex fast Fourier transform of 256 points in shared memory: bit reversal, butterflies, sincospif.
#include "check.cuh"

extern "C" __global__ void fft(const float2 *x, float2 *y) {
  __shared__ float2 s[256];
  int t = threadIdx.x;
  for (int i = t; i < 256; i += 128) s[__brev(i) >> 24] = x[blockIdx.x * 256 + i];
  for (int half = 1; half < 256; half *= 2) {
    __syncthreads();
    int k = t % half, low = 2 * t - k, high = low + half;
    float sine, cosine;
    sincospif(-(float)k / (float)half, &sine, &cosine);
    float2 a = s[low], b = s[high];
    float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    s[low] = make_float2(a.x + turned.x, a.y + turned.y);
    s[high] = make_float2(a.x - turned.x, a.y - turned.y);
  }
  __syncthreads();
  for (int i = t; i < 256; i += 128) y[blockIdx.x * 256 + i] = s[i];
}

// The definition, with the roots of unity from a table in double.
extern "C" __global__ void fft_check(const float2 *x, const float2 *y, unsigned *errors) {
  __shared__ double2 roots[256];
  int t = threadIdx.x;
  roots[t] = make_double2(cospi(t / 128.0), -sinpi(t / 128.0));
  __syncthreads();
  x += blockIdx.x * 256, y += blockIdx.x * 256;
  double re = 0, im = 0;
  for (int k = 0; k < 256; k++) {
    double2 w = roots[k * t & 255];
    re += x[k].x * w.x - x[k].y * w.y, im += x[k].x * w.y + x[k].y * w.x;
  }
  EXPECT_NEAR(t, y[t].x, re, 0, 3e-5);
  EXPECT_NEAR(t, y[t].y, im, 0, 3e-5);
}
