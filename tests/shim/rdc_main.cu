// Two translation units linked on the device (-rdc=true): functions, variables and pointers across them.
#include "check.h"

extern __device__ int shared_value;
extern __constant__ int factors[4];
__device__ int twice(int x);
typedef int (*Function)(int);
extern __device__ Function chosen;
void launch_other(int *x);

__global__ void use(int *out) {
  out[threadIdx.x] = twice(threadIdx.x) * factors[threadIdx.x % 4] + shared_value;
}
__global__ void indirect(int *out) {
  out[threadIdx.x] = chosen(threadIdx.x);
}

int main() {
  int *x, h[8];
  OK(cudaMalloc(&x, sizeof h));
  use<<<1, 8>>>(x);
  OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 9 && h[7] == 14 * 40 + 9);
  int value = 1000, f[4] = {1, 1, 1, 1};
  OK(cudaMemcpyToSymbol(shared_value, &value, sizeof value));
  OK(cudaMemcpyToSymbol(factors, f, sizeof f));
  use<<<1, 8>>>(x);
  launch_other(x);
  OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 1001 && h[7] == 1015);
  indirect<<<1, 8>>>(x);
  OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[3] == 9);
  return failures != 0;
}
