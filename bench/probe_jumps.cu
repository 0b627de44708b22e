// Code that jumps: multiply-adds in four chains, in pieces of KEPT instructions; between them a branch over PAST instructions that nobody
// executes. Gone through by each warp once where the SM has not seen it (first), and again (again); warps at the same place, or apart: each starts
// later than the one before.
// nvcc -O3 -arch=sm_90a -o probe_jumps bench/probe_jumps.cu && ./probe_jumps > out.json
#include <cstdio>

template <int COUNT> __device__ __forceinline__ void line_of(float *a, float x, int k) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) a[i % 4] = a[i % 4] * x + (float)((i + k) % 7);
}
template <int PIECES, int KEPT, int PAST>
__device__ __forceinline__ void pieces(float *a, float x, unsigned taken) {
#pragma unroll
  for (int k = 0; k < PIECES; k++) {
    line_of<KEPT>(a, x, k);
    if (PAST && taken >> k % 32 & 1) line_of<PAST>(a, x + 1, k); // never; the bits come with the launch
  }
}
// A launch finds the caches of instructions empty (bench/probe_cold.cu: again is as first). apart: clocks by which each warp starts later.
template <int PIECES, int KEPT, int PAST>
__global__ void jumps(long long *clk, float *out, float x, unsigned taken, int apart) {
  float a[4] = {x, x + 1, x + 2, x + 3};
  long long took[3] = {0, 0, 0};
  for (long long from = clock64(), wait = (long long)(threadIdx.x / 32) * apart; clock64() - from < wait;) {
  }
#pragma unroll 1
  for (int turn = 0; turn < 3; turn++) {
    long long from = clock64();
    pieces<PIECES, KEPT, PAST>(a, x, taken);
    for (int i = 0; i < 4; i++) asm volatile("" ::"f"(a[i]) : "memory");
    took[turn] = clock64() - from;
  }
  if (threadIdx.x % 32 == 0 && !blockIdx.x)
    for (int i = 0; i < 3; i++) clk[threadIdx.x / 32 * 3 + i] = took[i];
  out[threadIdx.x] = a[0] + a[1] + a[2] + a[3];
}
static const char *comma = "";
template <int PIECES, int KEPT, int PAST> static void row(long long *clk, float *out, int warps, int apart) {
  long long c[96];
  double sum[3] = {0, 0, 0};
  jumps<PIECES, KEPT, PAST><<<132, 32 * warps>>>(clk, out, 0.5f, 0, apart);
  cudaMemcpy(c, clk, sizeof(long long) * 3 * warps, cudaMemcpyDeviceToHost);
  for (int w = 0; w < warps; w++)
    for (int i = 0; i < 3; i++) sum[i] += (double)c[w * 3 + i] / warps;
  double all = (double)PIECES * KEPT;
  printf(
      "%s{\"pieces\": %d, \"kept\": %d, \"past\": %d, \"warps\": %d, \"apart\": %d, \"first\": %.2f, \"again\": [%.2f, %.2f], \"of warp 0\": [%.2f, %.2f, %.2f]}",
      comma, PIECES, KEPT, PAST, warps, apart, sum[0] / all, sum[1] / all, sum[2] / all, (double)c[0] / all,
      (double)c[1] / all, (double)c[2] / all);
  comma = ",\n";
}
// One warp, the four schedulers with one each, with four each: together, and apart by part of what a round takes.
template <int PIECES, int KEPT, int PAST> static void rows(long long *clk, float *out) {
  for (int warps : {1, 4, 16}) row<PIECES, KEPT, PAST>(clk, out, warps, 0);
  for (int warps : {4, 16}) row<PIECES, KEPT, PAST>(clk, out, warps, PIECES * KEPT * 3 / warps);
}

int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  long long *clk;
  float *out;
  cudaMalloc(&clk, 1 << 12), cudaMalloc(&out, 1 << 16);
  printf("{\"gpu\": \"%s\", \"clocks\": \"of a warp, for an instruction\", \"rows\": [\n", p.name);
  rows<1, 512, 0>(clk, out), rows<1, 1024, 0>(clk, out), rows<1, 2048, 0>(clk, out),
      rows<1, 4096, 0>(clk, out);
  rows<16, 32, 0>(clk, out), rows<16, 32, 32>(clk, out), rows<16, 32, 96>(clk, out),
      rows<16, 32, 480>(clk, out);
  rows<64, 32, 32>(clk, out), rows<64, 32, 96>(clk, out), rows<16, 128, 32>(clk, out),
      rows<16, 128, 384>(clk, out);
  rows<128, 16, 32>(clk, out), rows<64, 64, 64>(clk, out);
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
