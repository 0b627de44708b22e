// What a branch that is taken, a place where lanes meet again and a call take a warp, in loops over a chain of multiply-adds, 4 clocks each: the clocks of an
// iteration less those.
// nvcc -O3 -arch=sm_90a -o probe_turns bench/probe_turns.cu && ./probe_turns > out.json
#include <cstdio>

enum { TIMES = 400 };

template <int COUNT> __device__ __forceinline__ void chain(float &a, float x) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) a = a * x + (float)(i % 7);
}
template <int COUNT> __device__ __noinline__ float away(float a, float x) {
  chain<COUNT>(a, x);
  return a;
}
// WHAT 0: the loop alone. 1: a uniform branch over code in it. 2: a branch by lanes over code, none of which takes the code. 3: half of the lanes do. 4: a call.
// 5: two branches as in 1.
template <int COUNT, int WHAT> __global__ void turns(long long *clk, float *out, float x, int never) {
  float a = x + threadIdx.x;
  __syncthreads();
  long long from = clock64();
#pragma unroll 1
  for (int i = 0; i < TIMES; i++) {
    if (WHAT == 4)
      a = away<COUNT>(a, x);
    else
      chain<COUNT>(a, x);
    if ((WHAT == 1 || WHAT == 5) && never == i) chain<40>(a, x + 1);
    if (WHAT == 5 && never == i + 1) chain<40>(a, x + 2);
    if (WHAT == 2 && a == (float)never) chain<40>(a, x + 1);
    if (WHAT == 3 && threadIdx.x % 2 == never + 1) chain<40>(a, x + 1);
  }
  __syncthreads();
  if (!threadIdx.x && !blockIdx.x) *clk = clock64() - from;
  out[threadIdx.x] = a;
}
static const char *comma = "";
template <int COUNT, int WHAT> static void rows(long long *clk, float *out, const char *what) {
  for (int warps : {1, 4, 8, 16}) {
    long long c;
    for (int k = 0; k < 2; k++) turns<COUNT, WHAT><<<1, 32 * warps>>>(clk, out, 0.5f, -1);
    cudaMemcpy(&c, clk, sizeof c, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"%s\", \"instructions\": %d, \"warps\": %d, \"clocks\": %.2f}", comma, what, COUNT,
           warps, (double)c / TIMES - COUNT * 4 - (WHAT == 3 ? 160 : 0));
    comma = ",\n";
  }
}
template <int COUNT> static void all(long long *clk, float *out) {
  rows<COUNT, 0>(clk, out, "loop"), rows<COUNT, 1>(clk, out, "branch"),
      rows<COUNT, 5>(clk, out, "two branches"), rows<COUNT, 2>(clk, out, "branch by lanes, none"),
      rows<COUNT, 3>(clk, out, "branch by lanes, half"), rows<COUNT, 4>(clk, out, "call");
}

int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  long long *clk;
  float *out;
  cudaMalloc(&clk, 64), cudaMalloc(&out, 1 << 16);
  printf("{\"gpu\": \"%s\", \"rows\": [\n", p.name);
  all<8>(clk, out), all<16>(clk, out), all<33>(clk, out), all<64>(clk, out);
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
