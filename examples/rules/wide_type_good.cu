// Grey values, 0 to 1023, kept in 16 bits: half the bytes, the same values.
#include <cuda_fp16.h>

#include "check.h"

enum { N = 1 << 21 };
typedef uint2 Four; // of values, as they are stored

__device__ float4 unpack(Four v) {
  float2 a = __half22float2(*(const __half2 *)&v.x), b = __half22float2(*(const __half2 *)&v.y);
  return make_float4(a.x, a.y, b.x, b.y);
}

__global__ void brighten(float4 *y, const Four *x, float a) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = unpack(x[i]);
  y[i] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
}

static void *stored(const float *h) {
  __half *half = (__half *)host_room(N * sizeof *half);
  for (size_t i = 0; i < N; i++) half[i] = __float2half(h[i]);
  return to_device(half, N * sizeof *half);
}

int main(void) {
  float *h = (float *)host_room(N * sizeof *h);
  unsigned state = 1;
  for (size_t i = 0; i < N; i++) h[i] = (float)(random_below_2_24(&state) % 1024);
  Four *x = (Four *)stored(h);
  float4 *y = (float4 *)device_room(N * sizeof *h);
  brighten<<<N / 4 / 256, 256>>>(y, x, 1.1f);
  float *r = (float *)to_host(y, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != 1.1f * h[i];
  return verdict(wrong, N);
}
