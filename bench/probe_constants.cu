// What loads of constants take an SM: at an index in a register ("indexed", one word for all lanes or several), at one that is the same for
// the warp ("uniform"), and as kernel parameters under a condition ("parameters"), of 16 warps; and a loop without any, to subtract.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_constants bench/probe_constants.cu && ./probe_constants > bench/results/DATE-GPU-constants.json
#include <cstdio>
#include <cuda_runtime.h>
__constant__ float table[4096];
struct Many {
  float v[64];
};
static const char *comma = "";
template <int EACH> __global__ void indexed(float *out, int rounds, int words, long long *clocks) {
  int at = threadIdx.x % words;
  float s = 0;
  __syncthreads();
  long long from = clock64();
#pragma unroll 1
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int k = 0; k < EACH; k++) s += table[at + k * 37];
    asm volatile("" : "+r"(at));
  }
  __syncthreads();
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - from;
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
template <int EACH> __global__ void uniform(float *out, int rounds, int, long long *clocks) {
  float s = 0;
  __syncthreads();
  long long from = clock64();
#pragma unroll 1
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int k = 0; k < EACH; k++) s = s * table[r * EACH + k] + 1.0f;
  __syncthreads();
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - from;
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
template <int EACH> __global__ void operands(float *out, int rounds, int, long long *clocks) {
  float s = 0;
  __syncthreads();
  long long from = clock64();
#pragma unroll 1
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int k = 0; k < EACH; k++) s = s * table[k] + 1.0f;
  __syncthreads();
  if (threadIdx.x == 0) clocks[blockIdx.x] = clock64() - from;
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
template <typename K> static double measure(K kernel, float *out, long long *clocks, int rounds, int words, int threads) {
  long long c[132];
  for (int i = 0; i < 2; i++) kernel<<<132, threads>>>(out, rounds, words, clocks);
  cudaMemcpy(c, clocks, sizeof c, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < 132; i++) sum += (double)c[i];
  return sum / 132;
}
// Of one load: from 32 a round and 16 a round.
template <typename A, typename B> static void one(const char *what, A many, B few, float *out, long long *clocks, int words, int threads) {
  const int rounds = 64;
  double a = measure(many, out, clocks, rounds, words, threads), b = measure(few, out, clocks, rounds, words, threads);
  printf("%s\n{\"what\": \"%s\", \"words\": %d, \"warps\": %d, \"clocks_each\": %.3f, \"clocks_of_sixteen\": %.1f}", comma, what, words, threads / 32,
         (a - b) / rounds / 16 / (threads / 32), b / rounds);
  comma = ",";
}
int main() {
  float *out;
  long long *clocks;
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  if (cudaMalloc(&out, 132 * 1024 * 4) || cudaMalloc(&clocks, 132 * 8)) return printf("no memory\n"), 1;
  printf("{\"schema\": 1,\n\"gpu\": \"%s\",\n\"command\": \"probe_constants (bench/probe_constants.cu)\",\n\"constants\": [", p.name);
  for (int threads : {32, 256, 1024}) {
    for (int words : {1, 2, 4, 32}) one("indexed", indexed<32>, indexed<16>, out, clocks, words, threads);
    one("uniform", uniform<32>, uniform<16>, out, clocks, 1, threads);
    one("operands", operands<32>, operands<16>, out, clocks, 1, threads);
  }
  printf("]}\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
