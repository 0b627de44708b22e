// Instructions that an SM executes for the first time: COUNT multiply-adds in four chains, gone through once by each warp.
// nvcc -O3 -arch=sm_90a -o probe_cold bench/probe_cold.cu && ./probe_cold > out.json
#include <cstdio>

template <int COUNT> __device__ __forceinline__ void line_of(float *a, float x) {
  if constexpr (COUNT > 2048) line_of<COUNT - 2048>(a, x);
#pragma unroll
  for (int i = 0; i < (COUNT > 2048 ? 2048 : COUNT); i++) a[i % 4] = a[i % 4] * x + (float)((i + COUNT) % 7);
}
// Each VARIANT is code of its own.
template <int COUNT, int VARIANT> __global__ void straight(long long *clk, float *out, float x) {
  float a[4] = {x, x + 1, x + 2, x + VARIANT};
  __syncthreads();
  long long from = clock64();
  line_of<COUNT>(a, x);
  for (int i = 0; i < 4; i++) asm volatile("" ::"f"(a[i]) : "memory");
  __syncthreads();
  if (!threadIdx.x && !blockIdx.x) *clk = clock64() - from;
  out[threadIdx.x] = a[0] + a[1] + a[2] + a[3];
}
static const char *comma = "";
template <int COUNT, int VARIANT> static void row(long long *clk, float *out, int blocks, int warps) {
  const char *when[] = {"first", "again", "behind 64 KiB of other code", "behind 256 KiB of other code"};
  for (int k = 0; k < 4; k++) {
    if (k == 2) straight<4096, 9><<<132, 32>>>(clk, out, 0.5f);
    if (k == 3) straight<16384, 9><<<132, 32>>>(clk, out, 0.5f);
    cudaEvent_t from, to;
    cudaEventCreate(&from), cudaEventCreate(&to);
    cudaEventRecord(from);
    straight<COUNT, VARIANT><<<blocks, 32 * warps>>>(clk, out, 0.5f);
    cudaEventRecord(to);
    long long c;
    float ms;
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost), cudaEventElapsedTime(&ms, from, to);
    printf("%s{\"instructions\": %d, \"blocks\": %d, \"warps\": %d, \"when\": \"%s\", \"clocks\": %.3f, \"us\": %.2f}", comma, COUNT, blocks, warps,
           when[k], c / (double)COUNT, ms * 1e3);
    comma = ",\n";
  }
}

int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  long long *clk;
  float *out;
  cudaMalloc(&clk, 64), cudaMalloc(&out, 1 << 16);
  printf("{\"gpu\": \"%s\", \"rows\": [\n", p.name);
  row<128, 0>(clk, out, 132, 1);
  row<128, 1>(clk, out, 132, 8);
  row<512, 0>(clk, out, 132, 1);
  row<512, 1>(clk, out, 132, 8);
  row<1024, 0>(clk, out, 132, 1);
  row<1024, 1>(clk, out, 132, 8);
  row<1024, 2>(clk, out, 1, 1);
  row<2048, 0>(clk, out, 132, 1);
  row<2048, 1>(clk, out, 132, 8);
  row<4096, 0>(clk, out, 132, 1);
  row<4096, 1>(clk, out, 132, 8);
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
