// Addresses far apart: what the translation of addresses costs. "chain": one thread, each load's address needs the value before it;
// "all": every SM, each lane loads words at random, eight in flight; "lines": the same, a warp a line. Over a range of memory, or over
// a number of pages of 2 MiB of which one line each is read ("pages"), so that the data are in L2 while the translations may not be.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_far bench/probe_far.cu && ./probe_far > bench/results/DATE-GPU-far.json
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

__device__ static uint32_t mix(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}
__device__ static uint32_t word(const char *p) {
  uint32_t v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}
// The address of the i-th access: of `units` units of `step` bytes, one at random. A page's line is another one in each page.
__device__ static const char *place(const char *base, uint32_t i, uint32_t units, size_t step) {
  uint32_t u = mix(i) % units;
  return base + u * step + (step > 65536 ? (mix(u) & 0x3fff) * 128 : 0);
}
__global__ void chain(const char *base, uint32_t units, size_t step, int count, uint32_t zero, long long *clocks) {
  uint32_t v = 0;
  for (int i = 0; i < count; i++) v = word(place(base, i + (v & zero), units, step));
  long long from = clock64();
  for (int i = 0; i < count; i++) v = word(place(base, i * 7 + 1000000 + (v & zero), units, step));
  *clocks = (clock64() - from) / count + (v & zero);
}
template <bool WARP> __global__ void all(const char *base, uint32_t units, size_t step, int rounds, uint32_t *out) {
  uint32_t self = blockIdx.x * blockDim.x + threadIdx.x, id = WARP ? self / 32 : self, s = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int k = 0; k < 8; k++) s += word(place(base, (id * 977 + r) * 8 + k, units, step) + (WARP ? self % 32 * 4 : 0));
  if (s == 12345) out[self] = s;
}
template <typename F> static double us(F launch) {
  cudaEvent_t from, to;
  cudaEventCreate(&from), cudaEventCreate(&to);
  launch();
  cudaEventRecord(from);
  for (int i = 0; i < 3; i++) launch();
  cudaEventRecord(to);
  cudaEventSynchronize(to);
  float ms = 0;
  cudaEventElapsedTime(&ms, from, to);
  return ms * 1e3 / 3;
}
static const char *comma = "";
static void one(const char *what, const char *base, uint32_t units, size_t step, uint32_t *out) {
  long long *clocks;
  cudaMalloc(&clocks, 8);
  chain<<<1, 1>>>(base, units, step, 1500, 0, clocks);
  long long c = 0;
  cudaMemcpy(&c, clocks, 8, cudaMemcpyDeviceToHost);
  const int blocks = 132 * 4, rounds = 2;
  double words = us([&] { all<false><<<blocks, 256>>>(base, units, step, rounds, out); });
  double lines = us([&] { all<true><<<blocks, 256>>>(base, units, step, rounds * 8, out); });
  double few = us([&] { all<false><<<132, 32>>>(base, units, step, rounds * 4, out); });
  printf("%s\n{\"what\": \"%s\", \"units\": %u, \"step\": %zu, \"chain_clocks\": %lld, \"words_per_us\": %.0f, \"lines_per_us\": %.0f, \"words_of_few_per_us\": %.0f}",
         comma, what, units, step, c, blocks * 256.0 * rounds * 8 / words, blocks * 8.0 * rounds * 8 * 8 / lines, 132 * 32.0 * rounds * 4 * 8 / few);
  comma = ",", fflush(stdout);
  cudaFree(clocks);
}
int main() {
  size_t most = (size_t)64 << 30;
  char *base;
  uint32_t *out;
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  if (cudaMalloc(&base, most) != cudaSuccess || cudaMalloc(&out, 4 << 20) != cudaSuccess) return printf("no memory\n"), 1;
  printf("{\"schema\": 1,\n\"gpu\": \"%s\",\n\"command\": \"probe_far (bench/probe_far.cu)\",\n\"cases\": [", p.name);
  for (size_t range = (size_t)16 << 20; range <= most; range *= 4) one("range", base, (uint32_t)(range / 128), 128, out);
  for (size_t range : {(size_t)8 << 30, (size_t)32 << 30}) one("range", base, (uint32_t)(range / 128), 128, out);
  for (uint32_t pages = 8; pages <= 32768; pages *= 2) one("pages", base, pages, (size_t)2 << 20, out);
  for (uint32_t pages = 64; pages <= 16384; pages *= 4) one("64KiB", base, pages, (size_t)64 << 10, out);
  printf("]}\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
