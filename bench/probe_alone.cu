// What SMs get from L2 when few of them ask ("alone": plain loads, one block of 1024 threads an SM, 8 loads of a thread in flight), and what
// stores of many warps to one sector take ("flags": every warp stores the same word, or words of one sector, or of sectors apart).
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_alone bench/probe_alone.cu && ./probe_alone > bench/results/DATE-GPU-alone.json
#include <cstdio>
#include <cuda_runtime.h>
static const char *comma = "";
template <typename T> __global__ void sums(const T *in, float *out, int n, long long *clocks) {
  float s = 0;
  in += (size_t)(blockIdx.x % 8) * n;
  __syncthreads();
  long long from = clock64();
#pragma unroll 8
  for (int i = threadIdx.x; i < n; i += 1024) s += *(const float *)&in[i];
  __syncthreads();
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - from;
  if (s == 12345) *out = s;
}
__global__ void flags(volatile int *out, int times, int step) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  for (int i = 0; i < times; i++) out[warp * step] = i;
}
template <typename T> static void alone(const T *in, float *out, long long *clocks, const char *what) {
  const int n = (1 << 20) / sizeof(T);
  for (int blocks : {1, 2, 4, 8, 16, 32, 64, 132}) {
    long long c[132];
    for (int i = 0; i < 3; i++) sums<T><<<blocks, 1024>>>(in, out, n, clocks);
    cudaMemcpy(c, clocks, blocks * 8, cudaMemcpyDeviceToHost);
    double sum = 0;
    for (int i = 0; i < blocks; i++) sum += (double)c[i];
    printf("%s\n{\"what\": \"%s\", \"sms\": %d, \"bytes_a_clock\": %.1f}", comma, what, blocks, (double)n * sizeof(T) / (sum / blocks));
    comma = ",";
  }
}
int main() {
  float *in, *out;
  long long *clocks;
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  if (cudaMalloc(&in, 16 << 20) || cudaMalloc(&out, 64 << 20) || cudaMalloc(&clocks, 132 * 8)) return printf("no memory\n"), 1;
  printf("{\"schema\": 1,\n\"gpu\": \"%s\",\n\"command\": \"probe_alone (bench/probe_alone.cu)\",\n\"alone\": [", p.name);
  alone((const float *)in, out, clocks, "float");
  alone((const float4 *)in, out, clocks, "float4");
  printf("],\n\"flags\": [");
  comma = "";
  cudaEvent_t from, to;
  cudaEventCreate(&from), cudaEventCreate(&to);
  for (int blocks : {1, 132, 528})
    for (int step : {0, 1, 8, 32, 128}) {
      const int times = 100;
      float ms = 0;
      for (int i = 0; i < 2; i++) {
        cudaEventRecord(from), flags<<<blocks, 256>>>((volatile int *)out, times, step), cudaEventRecord(to);
        cudaEventSynchronize(to), cudaEventElapsedTime(&ms, from, to);
      }
      printf("%s\n{\"warps\": %d, \"step\": %d, \"us\": %.2f, \"ns_each\": %.4f}", comma, blocks * 8, step * 4, ms * 1e3, ms * 1e6 / (blocks * 8.0 * times));
      comma = ",";
    }
  printf("]}\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
