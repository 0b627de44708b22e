// Arrays in local memory that each lane indexes on its own, and sleeping. "own": a thread loads from, adds to or stores to a random
// word of its array of N words: clocks of an SM for each warp's access. "sleep": what __nanosleep takes, of one warp and of many.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_own bench/probe_own.cu && ./probe_own > bench/results/DATE-GPU-own.json
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
static const char *comma = "";
enum how { LOAD, STORE, ADD, TOGETHER };
template <int N, int HOW> __global__ void own(uint32_t *out, int turns, long long *clocks) {
  uint32_t a[N], self = blockIdx.x * blockDim.x + threadIdx.x, x = (HOW == TOGETHER ? self / 32 : self) * 2654435761u + 1, s = 0;
  for (int i = 0; i < N; i++) a[i] = x * i;
  long long from = clock64();
#pragma unroll 4
  for (int i = 0; i < turns; i++) {
    x = x * 1664525u + 1013904223u;
    uint32_t at = x >> 16 & (N - 1);
    if (HOW == LOAD || HOW == TOGETHER) s += a[at];
    if (HOW == STORE) a[at] = x;
    if (HOW == ADD) a[at] += x;
  }
  long long took = clock64() - from;
  for (int i = 0; i < N; i++) s += a[i] * i;
  out[self] = s;
  if (threadIdx.x == 0) clocks[blockIdx.x] = took;
}
template <int N, int HOW> static void one(uint32_t *out, long long *clocks, int per_sm, int threads) {
  static const char *const NAME[] = {"load", "store", "add", "load together"};
  const int turns = 256, blocks = 132 * per_sm;
  long long most = 0, c[2112];
  for (int i = 0; i < 2; i++) own<N, HOW><<<blocks, threads>>>(out, turns, clocks);
  cudaMemcpy(c, clocks, blocks * 8, cudaMemcpyDeviceToHost);
  double sum = 0;
  for (int i = 0; i < blocks; i++) sum += c[i], most = c[i] > most ? c[i] : most;
  printf("%s\n{\"words\": %d, \"how\": \"%s\", \"warps\": %d, \"clocks\": %.2f, \"clocks_of_a_warp\": %.1f}", comma, N, NAME[HOW], per_sm * threads / 32,
         sum / blocks / turns / (per_sm * threads / 32), sum / blocks / turns);
  comma = ",";
}
template <int N> static void size(uint32_t *out, long long *clocks) {
  for (int per : {1, 4, 8, 16})
    one<N, LOAD>(out, clocks, per, 128), one<N, STORE>(out, clocks, per, 128), one<N, ADD>(out, clocks, per, 128), one<N, TOGETHER>(out, clocks, per, 128);
}
__global__ void sleep(unsigned ns, int times, long long *clocks, unsigned long long *took) {
  unsigned long long start, end;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  long long from = clock64();
  for (int i = 0; i < times; i++) __nanosleep(ns);
  long long c = clock64() - from;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
  if (threadIdx.x % 32 == 0) clocks[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = c / times, took[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = (end - start) / times;
}
int main() {
  uint32_t *out;
  long long *clocks, c[1056];
  unsigned long long *ns, t[1056];
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  if (cudaMalloc(&out, 132 * 2048 * 4) || cudaMalloc(&clocks, 1 << 20) || cudaMalloc(&ns, 1 << 20)) return printf("no memory\n"), 1;
  printf("{\"schema\": 1,\n\"gpu\": \"%s\",\n\"command\": \"probe_own (bench/probe_own.cu)\",\n\"own\": [", p.name);
  size<16>(out, clocks), size<64>(out, clocks), size<256>(out, clocks), size<1024>(out, clocks), size<4096>(out, clocks);
  printf("],\n\"sleep\": [");
  comma = "";
  for (int blocks : {1, 264})
    for (unsigned wait : {0u, 1u, 32u, 64u, 100u, 200u, 500u, 1000u, 3000u, 10000u, 30000u, 100000u}) {
      int warps = blocks == 1 ? 1 : 1056;
      for (int i = 0; i < 2; i++) sleep<<<blocks, blocks == 1 ? 32 : 128>>>(wait, 6, clocks, ns);
      cudaMemcpy(c, clocks, warps * 8, cudaMemcpyDeviceToHost), cudaMemcpy(t, ns, warps * 8, cudaMemcpyDeviceToHost);
      long long least = 1ll << 60, most = 0;
      double sum = 0, sum_ns = 0;
      for (int i = 0; i < warps; i++) least = c[i] < least ? c[i] : least, most = c[i] > most ? c[i] : most, sum += c[i], sum_ns += t[i];
      printf("%s\n{\"ns\": %u, \"warps\": %d, \"clocks\": %.0f, \"least\": %lld, \"most\": %lld, \"took_ns\": %.0f}", comma, wait, warps, sum / warps, least, most, sum_ns / warps);
      comma = ",";
    }
  printf("]}\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
