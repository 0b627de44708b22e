// Clocks of an SM for a load request that L1 serves, by the lines that its lanes touch.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_lines bench/probe_lines.cu && ./probe_lines
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

constexpr int BYTES = 32768, LOADS = 8, ROUNDS = 64;

template <typename T>
__global__ void loads(const char *in, unsigned *out, long long *clocks, int lines, int scattered) {
  unsigned lane = threadIdx.x % 32, sum = 0, group = lane * lines / 32;
  unsigned at = (scattered ? group * 37 % (BYTES / 128) : group) * 128 + lane * sizeof(T) % 128;
  for (int i = threadIdx.x * 4; i < BYTES; i += blockDim.x * 4) sum += *(const unsigned *)(in + i);
  __syncthreads();
  long long from = clock64();
  for (int r = 0; r < ROUNDS; r++) {
    unsigned v[LOADS];
#pragma unroll
    for (int k = 0; k < LOADS; k++)
      v[k] = *(const T *)(in + ((at + (r * LOADS + k) * 128 * 5) & (BYTES - 1)));
#pragma unroll
    for (int k = 0; k < LOADS; k++) sum += v[k];
  }
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 0) *clocks = clock64() - from;
  out[threadIdx.x] = sum;
}

template <typename T> static void all(const char *what, const char *in, unsigned *out, long long *clocks) {
  for (int scattered : {0, 1})
    for (int lines : {1, 2, 4, 8, 16, 32})
      for (int threads : {256, 1024}) {
        long long c;
        loads<T><<<132, threads>>>(in, out, clocks, lines, scattered);
        cudaMemcpy(&c, clocks, 8, cudaMemcpyDeviceToHost);
        double requests = threads / 32.0 * LOADS * ROUNDS;
        printf(
            "{\"what\": \"%s\", \"scattered\": %d, \"lines\": %d, \"threads\": %d, \"clocks_each\": %.2f}\n",
            what, scattered, lines, threads, c / requests);
      }
}

int main() {
  char *in;
  unsigned *out;
  long long *clocks;
  cudaMalloc(&in, BYTES), cudaMalloc(&out, 4096), cudaMalloc(&clocks, 8);
  cudaMemset(in, 1, BYTES);
  all<uint8_t>("1 byte", in, out, clocks);
  all<uint32_t>("4 bytes", in, out, clocks);
}
