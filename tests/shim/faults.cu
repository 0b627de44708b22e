// A fault of a kernel: usage faults KIND. Prints what the calls after it give back.
#include <cassert>

#include "check.h"

__global__ void out_of_bounds(int *x, int n) {
  x[threadIdx.x + n] = 1;
}
__global__ void null_write(int *x) {
  x[threadIdx.x] = 1;
}
__global__ void misaligned(char *x) {
  *(int *)(x + 1) = 5;
}
__global__ void failing(int n) {
  assert(n < 0 && "never so");
}
__global__ void trap() {
  __trap();
}
__global__ void spin(volatile int *x) {
  while (*x == 0) {
  }
}
__global__ void fine(int *x) {
  *x = 1;
}

int main(int argc, char **argv) {
  const char *kind = argc > 1 ? argv[1] : "";
  int *x, h = 0;
  OK(cudaMalloc(&x, 100 * sizeof(int)));
  OK(cudaMemset(x, 0, 100 * sizeof(int)));
  if (!strcmp(kind, "bounds")) out_of_bounds<<<1, 32>>>(x, 90);
  if (!strcmp(kind, "null")) null_write<<<1, 32>>>(nullptr);
  if (!strcmp(kind, "align")) misaligned<<<1, 1>>>((char *)x);
  if (!strcmp(kind, "assert")) failing<<<1, 1>>>(3);
  if (!strcmp(kind, "trap")) trap<<<1, 1>>>();
  if (!strcmp(kind, "spin")) spin<<<1, 1>>>(x);
  if (!strcmp(kind, "free")) cudaFree(x), fine<<<1, 1>>>(x);
  printf("launch %s\n", cudaGetErrorName(cudaGetLastError()));
  printf("synchronize %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  printf("malloc %s\n", cudaGetErrorName(cudaMalloc(&x, 4)));
  printf("last %s\n", cudaGetErrorName(cudaGetLastError()));
  printf("copy %s\n", cudaGetErrorName(cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost)));
  return 0;
}
