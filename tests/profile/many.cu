// Many small kernels: what profiling costs. usage: many [LAUNCHES [ELEMENTS]]; prints the wall-clock time and, by
// events, the time of the launches.
#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void add(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}

int main(int argc, char **argv) {
  int launches = argc > 1 ? atoi(argv[1]) : 10000, n = argc > 2 ? atoi(argv[2]) : 1 << 16;
  float *x, ms = 0;
  cudaEvent_t begin, end;
  if (cudaMalloc(&x, n * sizeof *x) || cudaEventCreate(&begin) || cudaEventCreate(&end)) return 1;
  add<<<(n + 255) / 256, 256>>>(x, n);
  cudaDeviceSynchronize();
  auto start = std::chrono::steady_clock::now();
  cudaEventRecord(begin);
  for (int i = 0; i < launches; i++) add<<<(n + 255) / 256, 256>>>(x, n);
  cudaEventRecord(end);
  if (cudaDeviceSynchronize()) return 1;
  double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  cudaEventElapsedTime(&ms, begin, end);
  printf("%d launches: %.3f ms by the clock, %.3f ms by events\n", launches, wall * 1e3, ms);
  return 0;
}
