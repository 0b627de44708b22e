// Grey values, 0 to 1023, kept as floats: each would fit into half the bytes.
#include "check.h"

enum { N = 1 << 21 };
typedef float4 Four; // of values, as they are stored

__device__ float4 unpack(Four v) {
  return v;
}

__global__ void brighten(float4 *y, const Four *x, float a) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float4 v = unpack(x[i]);
  y[i] = make_float4(a * v.x, a * v.y, a * v.z, a * v.w);
}

static void *stored(const float *h) {
  return to_device(h, N * sizeof *h);
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
