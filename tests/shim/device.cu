// What a program may ask about the device and its kernels; checked for consistency, and by name in the test.
#include "check.h"

__global__ void __launch_bounds__(256, 2) bounded(float *x) {
  x[threadIdx.x] = 1;
}
__global__ void big(float *x) {
  extern __shared__ float buffer[];
  __shared__ float fixed[100];
  buffer[threadIdx.x] = x[threadIdx.x];
  fixed[threadIdx.x % 100] = 2;
  __syncthreads();
  x[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x] + fixed[0];
}
__global__ void nothing() {}

int main() {
  int count = 0, device = -1, value = 0;
  OK(cudaGetDeviceCount(&count));
  CHECK(count == 1);
  OK(cudaSetDevice(0));
  IS(cudaSetDevice(1), cudaErrorInvalidDevice);
  OK(cudaGetDevice(&device));
  CHECK(device == 0);
  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 0));
  IS(cudaGetDeviceProperties(&p, 7), cudaErrorInvalidDevice);
  printf("%s, sm_%d%d, %d SMs\n", p.name, p.major, p.minor, p.multiProcessorCount);
  CHECK(p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.totalGlobalMem > (1u << 30));
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK(value == p.multiProcessorCount);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK((size_t)value == p.sharedMemPerBlockOptin && value >= 48 * 1024);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0));
  CHECK(value > 0);
  IS(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)99999, 0), cudaErrorInvalidValue);
  int driver = 0, runtime = 0;
  OK(cudaDriverGetVersion(&driver));
  OK(cudaRuntimeGetVersion(&runtime));
  CHECK(driver >= 13000 && runtime >= 13000);
  OK(cudaDeviceCanAccessPeer(&value, 0, 0));
  CHECK(value == 0);
  size_t limit = 0;
  OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  OK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
  CHECK(limit == 4096);

  cudaFuncAttributes a;
  OK(cudaFuncGetAttributes(&a, bounded));
  CHECK(a.maxThreadsPerBlock == 256 && a.numRegs > 0 && a.sharedSizeBytes == 0 && a.ptxVersion >= 75);
  OK(cudaFuncGetAttributes(&a, big));
  CHECK(a.sharedSizeBytes == 400 && a.maxThreadsPerBlock == 1024);
  float *x, h[1024];
  OK(cudaMalloc(&x, 4096));
  OK(cudaMemset(x, 0, 4096));
  bounded<<<1, 512>>>(x);
  IS(cudaGetLastError(), cudaErrorInvalidValue);
  big<<<1, 1025>>>(x);
  IS(cudaGetLastError(), cudaErrorInvalidValue);
  big<<<0, 32>>>(x);
  IS(cudaPeekAtLastError(), cudaErrorInvalidValue);
  big<<<1, 32, 60 * 1024>>>(x);
  IS(cudaGetLastError(), cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 * 1024));
  big<<<1, 1024, 60 * 1024>>>(x);
  OK(cudaGetLastError());
  OK(cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[5] == 2);
  IS(cudaFuncSetAttribute(big, cudaFuncAttributeMaxDynamicSharedMemorySize, 400 * 1024),
     cudaErrorInvalidValue);
  const char *name = nullptr;
  OK(cudaFuncGetName(&name, (const void *)nothing));
  CHECK(name && strcmp(name, "_Z7nothingv") == 0);

  int blocks = 0, grid = 0, block = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 1024, 0));
  CHECK(blocks == p.maxThreadsPerMultiProcessor / 1024);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
  CHECK(blocks == p.maxBlocksPerMultiProcessor);
  OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, big, 0, 0));
  CHECK(block >= 32 && block <= 1024 && grid >= p.multiProcessorCount);
  size_t room = 0;
  OK(cudaOccupancyAvailableDynamicSMemPerBlock(&room, big, 2, 256));
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, big, 256, room));
  CHECK(room > 0 && blocks >= 2);
  nothing<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
  CHECK(strcmp(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument") == 0);
  CHECK(strcmp(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation") == 0);
  return failures != 0;
}
