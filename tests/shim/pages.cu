// Which pages of managed memory move to the GPU: what the host has touched since, of groups of 64 KiB.
#include <cstdlib>
#include <cuda_runtime.h>
#include <sys/mman.h>
__device__ void add_to(int *p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i]++;
}
#define KERNEL(name)                                                                                         \
  __global__ void name(int *p, int n) {                                                                      \
    add_to(p, n);                                                                                            \
  }
KERNEL(fresh) KERNEL(again) KERNEL(after_write) KERNEL(after_read) KERNEL(after_prefetch) KERNEL(after_fill) KERNEL(after_copy) KERNEL(on_device)
__global__ void one_each(int *p) {
  p[blockIdx.x * blockDim.x + threadIdx.x]++;
}

int main(int argc, char **) {
  if (argc > 1) // where the runtime would put it, as the shadow of a sanitizer does
    mmap((void *)0x080000000000, (size_t)1 << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  const int n = 1 << 17; // 512 KiB: eight groups, and one more where it does not start with one
  int *p, *q, got = 0, *back = (int *)malloc(n * 4);
  cudaMallocManaged(&p, n * 4), cudaMalloc(&q, n * 4), cudaMemset(q, 0, n * 4);
  fresh<<<1, 256>>>(p, n), again<<<1, 256>>>(p, n), cudaDeviceSynchronize();
  p[5] = 7; // one group
  after_write<<<1, 256>>>(p, n), cudaDeviceSynchronize();
  got = p[n - 1] + p[5]; // two
  after_read<<<1, 256>>>(p, n), cudaDeviceSynchronize();
  for (int i = 0; i < n; i++) p[i] = 1;
  cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0};
  cudaMemPrefetchAsync(p, n * 4, gpu, 0, 0);
  after_prefetch<<<1, 256>>>(p, n), cudaDeviceSynchronize();
  p[0] = 0, cudaMemset(p, 0, n * 4);
  after_fill<<<1, 256>>>(p, n), cudaDeviceSynchronize();
  cudaMemcpy(back, p, n * 4, cudaMemcpyDefault);
  after_copy<<<1, 256>>>(p, n), on_device<<<1, 256>>>(q, n), cudaDeviceSynchronize();
  for (int i = 0; i < n; i += 1024) p[i]++; // all of them
  one_each<<<n / 256, 256>>>(p), cudaDeviceSynchronize();
  return got == 11 && back[3] == 1 && p[3] == 3 && p[1024] == 4 ? 0 : 1;
}
