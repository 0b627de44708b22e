// Managed memory: kernels that touch pages which the host had last, which nobody had, or which are there already.
#include "kinds.cuh"

__global__ void sum_after_host(float *out, const float *in, int n) {
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
}
__global__ void sum_kept(float *out, const float *in, int n) {
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
}
__global__ void sum_prefetched(float *out, const float *in, int n) {
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
}
__global__ void write_fresh(float *out, int n) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) out[i] = (float)i;
}
__global__ void write_for_host(float *out, int n) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) out[i] = (float)i;
}
__global__ void count_for_host(int *count, const uint32_t *in, int n) {
  int mine = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) mine += in[i] & 1;
  atomicAdd(count, mine);
}
__global__ void some_pages(float *out, const float *in, int stride) {
  out[self()] = in[(size_t)(self() / 32) * stride];
}

template <typename T> static T *managed(size_t count) {
  T *p = nullptr;
  if (cudaMallocManaged(&p, count * sizeof(T)) != cudaSuccess) printf("no memory\n");
  return p;
}
static void fill(float *p, size_t count, size_t step) {
  for (size_t i = 0; i < count; i += step) p[i] = 1;
}

int main() {
  const int n = 1 << 21, threads = 256, blocks = 264, few = 1 << 14;
  float *out = array<float>(threads * blocks), *in = managed<float>(n), *kept = managed<float>(n), *sent = managed<float>(n), *back = managed<float>(n / 4);
  uint32_t *bits = filled<uint32_t>(n, 1000);
  int *count = managed<int>(1), seen = 0;
  fill(kept, n, 1);
  for (int t = 0; t < TIMES; t++) {
    fill(in, n, 1);
    sum_after_host<<<blocks, threads>>>(out, in, n);
    cudaDeviceSynchronize();
  }
  LAUNCH(sum_kept, blocks, threads, out, kept, n);
  cudaDeviceSynchronize();
  for (int t = 0; t < TIMES; t++) {
    fill(sent, n, 1);
    cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0};
    cudaMemPrefetchAsync(sent, sizeof(float) * n, gpu, 0, 0);
    sum_prefetched<<<blocks, threads>>>(out, sent, n);
    cudaDeviceSynchronize();
  }
  for (int t = 0; t < TIMES; t++) {
    float *fresh = managed<float>(n);
    write_fresh<<<blocks, threads>>>(fresh, n);
    cudaDeviceSynchronize();
    cudaFree(fresh);
  }
  for (int t = 0; t < TIMES; t++) {
    write_for_host<<<blocks, threads>>>(back, n / 4);
    cudaDeviceSynchronize();
    for (int i = 0; i < n / 4; i += 100) seen += back[i] > 5;
  }
  for (int t = 0; t < TIMES; t++) {
    count_for_host<<<blocks, threads>>>(count, bits, n);
    cudaDeviceSynchronize();
    seen += *count;
  }
  for (int t = 0; t < TIMES; t++) {
    fill(in, n, few);
    some_pages<<<n / few * 32 / threads, threads>>>(out, in, few);
    cudaDeviceSynchronize();
  }
  return done() + (seen == 1);
}
