// malloc and free on the device, by size and by how many call at once.
// usage: probe_heap > heap.json; nvcc -O3 -arch=sm_90a bench/probe_heap.cu
#include <cstdio>
#include <cuda_runtime.h>

__global__ void calls(void **room, int lanes, size_t bytes, int times, bool gives) {
  if ((int)threadIdx.x >= lanes) return;
  int me = blockIdx.x * lanes + threadIdx.x;
  for (int t = 0; t < times; t++) {
    void *p = malloc(bytes);
    if (p) *(volatile int *)p = me;
    if (gives)
      free(p);
    else
      room[(size_t)me * times + t] = p;
  }
}
__global__ void gives_back(void **room, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) free(room[i]);
}

int main() {
  void **room;
  cudaMalloc(&room, 1 << 22);
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20);
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  bool any = false;
  for (size_t bytes : {16, 128, 800, 4000})
    for (int blocks : {1, 16, 132, 528})
      for (int lanes : {1, 32})
        for (bool gives : {true, false}) {
          if (blocks * lanes > 4224) continue;
          float us[2];
          for (int k = 0; k < 2; k++) {
            int times = k ? 3 : 1;
            float best = 1e9f;
            for (int t = 0; t < 3; t++) {
              cudaEventRecord(a);
              calls<<<blocks, 32>>>(room, lanes, bytes, times, gives);
              cudaEventRecord(b), cudaEventSynchronize(b);
              float ms;
              cudaEventElapsedTime(&ms, a, b);
              if (t && ms < best) best = ms;
              if (!gives) gives_back<<<(blocks * lanes * times + 31) / 32, 32>>>(room, blocks * lanes * times);
            }
            us[k] = best * 1e3f;
          }
          printf("%s{\"bytes\": %zu, \"blocks\": %d, \"lanes\": %d, \"frees\": %d, \"once_us\": %.1f, \"three_us\": %.1f}", any ? ",\n" : "[", bytes, blocks, lanes, gives, us[0], us[1]);
          any = true;
        }
  printf("]\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
