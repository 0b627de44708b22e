// Time of kernels that touch managed memory which the host wrote last, that print, and that allocate: by bytes, lines and calls.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_managed bench/probe_managed.cu && ./probe_managed > bench/results/DATE-GPU-managed.json
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
__global__ void reads(const int *p, size_t n, int *out) {
  int sum = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) sum += p[i];
  if (sum == 12345) *out = sum;
}
__global__ void writes(int *p, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = (int)i;
}
// One word of each group of pages: by as many warps, or by one thread in sequence.
__global__ void groups(int *p, size_t stride, int n, int *out) {
  int sum = 0, at = (int)(blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (threadIdx.x % 32 == 0)
    for (int i = at; i < n; i += (int)(gridDim.x * blockDim.x) / 32) sum += p[i * stride + (sum & 1)];
  if (sum == 12345) *out = sum;
}
__global__ void prints(int n) {
  for (int i = 0; i < n; i++) printf("%d\n", i);
}
__global__ void allocates(int n) {
  for (int i = 0; i < n; i++) {
    void *p = malloc(64);
    if (p) *(volatile int *)p = i;
    free(p);
  }
}
template <typename F> static double us(F f) {
  cudaEvent_t a, b;
  float ms;
  cudaEventCreate(&a), cudaEventCreate(&b);
  cudaEventRecord(a), f(), cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
  return ms * 1e3;
}
int main() {
  cudaDeviceProp d;
  cudaGetDeviceProperties(&d, 0);
  const char *comma = "";
  int *out;
  cudaMalloc(&out, 4);
  FILE *to = fdopen(3, "w"); // the kernels print to the standard output
  if (!to) to = stderr;
  fprintf(to, "{\"gpu\": \"%s\", \"rows\": [\n", d.name);
  for (size_t bytes = 4096; bytes <= 64u << 20; bytes *= 4) {
    int *p;
    cudaMallocManaged(&p, bytes);
    memset(p, 1, bytes);
    size_t n = bytes / 4;
    double first = us([&] { reads<<<264, 256>>>(p, n, out); }), again = us([&] { reads<<<264, 256>>>(p, n, out); });
    cudaDeviceSynchronize();
    memset(p, 1, bytes);
    double back = us([&] { reads<<<264, 256>>>(p, n, out); });
    cudaDeviceSynchronize();
    cudaFree(p);
    cudaMallocManaged(&p, bytes);
    double fresh = us([&] { writes<<<264, 256>>>(p, n); }), written = us([&] { writes<<<264, 256>>>(p, n); });
    cudaDeviceSynchronize();
    memset(p, 1, bytes);
    double over = us([&] { writes<<<264, 256>>>(p, n); });
    fprintf(to, "%s{\"what\": \"managed\", \"bytes\": %zu, \"first\": %.1f, \"again\": %.1f, \"after the host\": %.1f, \"fresh write\": %.1f, \"write again\": %.1f, \"write after the host\": %.1f}",
            comma, bytes, first, again, back, fresh, written, over);
    comma = ",\n";
    cudaFree(p);
  }
  for (size_t stride : {(size_t)4096, (size_t)65536, (size_t)2 << 20})
    for (int n : {1, 4, 16, 64, 128}) {
      int *p, sum = 0;
      cudaMallocManaged(&p, stride * n);
      double took[4];
      for (int way = 0; way < 4; way++) { // by one thread or many, after a write of the host or a read
        for (int i = 0; i < n; i++)
          if (way < 2) p[i * stride / 4] = 0;
          else sum += *(volatile int *)&p[i * stride / 4];
        took[way] = us([&] { groups<<<way % 2 ? (n + 7) / 8 : 1, way % 2 ? 256 : 32>>>(p, stride / 4, n, out); });
        cudaDeviceSynchronize();
      }
      fprintf(to, "%s{\"what\": \"managed, a word of each group\", \"group\": %zu, \"groups\": %d, \"one by one\": %.1f, \"together\": %.1f, \"one by one, read by the host\": %.1f, \"together, read by the host\": %.1f}",
              comma, stride, n, took[0], took[1], took[2], took[3]);
      comma = ",\n";
      cudaFree(p);
      if (sum) return 1;
    }
  for (int threads : {1, 32, 256})
    for (int n : {0, 1, 16, 256}) {
      if (n * threads > 4096) continue;
      prints<<<1, threads>>>(0);
      cudaDeviceSynchronize();
      double t = us([&] { prints<<<1, threads>>>(n); });
      cudaDeviceSynchronize();
      fprintf(to, "%s{\"what\": \"printf\", \"threads\": %d, \"calls\": %d, \"us\": %.1f}", comma, threads, n, t);
    }
  for (int blocks : {1, 132})
    for (int threads : {1, 32, 256})
      for (int n : {0, 1, 16, 64}) {
        allocates<<<1, 1>>>(1);
        cudaDeviceSynchronize();
        double t = us([&] { allocates<<<blocks, threads>>>(n); });
        fprintf(to, "%s{\"what\": \"malloc and free\", \"blocks\": %d, \"threads\": %d, \"calls\": %d, \"us\": %.1f}", comma, blocks, threads, n, t);
      }
  fprintf(to, "],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
