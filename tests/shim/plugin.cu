// A shared object with a copy of the runtime of its own; plugin_main.c opens it, uses it and closes it, three times.
#include <cuda_runtime.h>

__global__ void twice(int *x) {
  x[threadIdx.x] *= 2;
}

extern "C" int plugin_run(int value) {
  int host[32], *device;
  for (int &x : host) x = value;
  if (cudaMalloc(&device, sizeof host)) return -1;
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  twice<<<1, 32>>>(device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  cudaFree(device);
  return cudaGetLastError() ? -2 : host[5];
}
