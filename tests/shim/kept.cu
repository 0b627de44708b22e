// What one kernel leaves in L2 for the next: `fill` writes y, `use` reads it, `use_zeros` reads what cudaMemset wrote,
// `use_input` what cudaMemcpy brought from the host, and `sweep` reads and writes more than L2 holds. In a persisting window of the
// stream `fill_kept` writes y; after another sweep `use_kept` finds it there, and `use_reset`, after a reset and a sweep, does not.
#include <cstdio>
#include <vector>

__global__ void fill(float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = i;
}
__device__ void add_one(float *z, const float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = y[i] + 1;
}
__global__ void use(float *z, const float *y, int n) {
  add_one(z, y, n);
}
__global__ void fill_kept(float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1;
}
__global__ void use_kept(float *z, const float *y, int n) {
  add_one(z, y, n);
}
__global__ void use_reset(float *z, const float *y, int n) {
  add_one(z, y, n);
}
__global__ void use_zeros(float *z, const float *y, int n) {
  add_one(z, y, n);
}
__global__ void use_input(float *z, const float *y, int n) {
  add_one(z, y, n);
}
__device__ void add_one_to_all(float *z, const float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) z[i] = y[i] + 1;
}

__global__ void sweep(float *z, const float *y, int n) {
  add_one_to_all(z, y, n);
}
__global__ void sweep_again(float *z, const float *y, int n) {
  add_one_to_all(z, y, n);
}

int main() {
  const int n = 1 << 18, large = 12 << 20;
  float *y, *z, *zeros, *input, *from, *to;
  std::vector<float> host(n, 1.0f);
  cudaMalloc(&y, n * 4), cudaMalloc(&z, n * 4), cudaMalloc(&zeros, n * 4), cudaMalloc(&input, n * 4);
  cudaMalloc(&from, large * 4), cudaMalloc(&to, large * 4);
  cudaMemset(zeros, 0, n * 4);
  cudaMemcpy(input, host.data(), n * 4, cudaMemcpyHostToDevice);
  fill<<<n / 256, 256>>>(y, n);
  use<<<n / 256, 256>>>(z, y, n);
  use_zeros<<<n / 256, 256>>>(z, zeros, n);
  use_input<<<n / 256, 256>>>(z, input, n);
  sweep<<<264, 1024>>>(to, from, large);

  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, n * 4);
  cudaLaunchAttributeValue value = {};
  value.accessPolicyWindow = {y, n * 4, 1.0f, cudaAccessPropertyPersisting, cudaAccessPropertyStreaming};
  cudaStreamSetAttribute(stream, cudaLaunchAttributeAccessPolicyWindow, &value);
  fill_kept<<<n / 256, 256, 0, stream>>>(y, n);
  sweep_again<<<264, 1024>>>(to, from, large);
  use_kept<<<n / 256, 256>>>(z, y, n);
  cudaCtxResetPersistingL2Cache();
  sweep_again<<<264, 1024>>>(to, from, large);
  use_reset<<<n / 256, 256>>>(z, y, n);
  cudaMemcpy(host.data(), z, n * 4, cudaMemcpyDeviceToHost);
  printf("%s, %g\n", cudaGetErrorString(cudaDeviceSynchronize()), host[n - 1]);
  return host[n - 1] != 2;
}
