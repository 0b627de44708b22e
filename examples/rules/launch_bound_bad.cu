// A hundred small steps, launched one by one: what the GPU does most of the time is start kernels.
#include "check.h"

enum { N = 1 << 12, STEPS = 100 };

__global__ void relax(float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = 0.5f * x[i] + 1.0f;
}

static void launch_all(cudaStream_t stream, float *x) {
  for (int k = 0; k < STEPS; k++) relax<<<N / 256, 256, 0, stream>>>(x);
}

int main(void) {
  float *h = random_floats(N), *x = (float *)to_device(h, N * sizeof *x);
  cudaStream_t stream;
  CUDA(cudaStreamCreate(&stream));
  launch_all(stream, x);
  CUDA(cudaStreamSynchronize(stream));
  float *r = (float *)to_host(x, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) {
    float v = h[i];
    for (int k = 0; k < STEPS; k++) v = 0.5f * v + 1.0f;
    wrong += r[i] != v;
  }
  return verdict(wrong, N);
}
