// Clocks until the result of an instruction of variable latency is there: chains of one warp, each instruction needs the result before.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_results bench/probe_results.cu && ./probe_results > bench/results/DATE-GPU-results.json
#include <cstdio>
#include <cuda_runtime.h>
static const char *comma = "";

#define CHAIN(name, type, first, step)                                                                       \
  __global__ void name(long long *clk, type *out, int n) {                                                   \
    type a = first;                                                                                          \
    long long from = clock64();                                                                              \
    for (int i = 0; i < n; i++) {                                                                            \
      _Pragma("unroll") for (int k = 0; k < 16; k++) { step; }                                               \
    }                                                                                                        \
    long long to = clock64();                                                                                \
    if (!threadIdx.x) *clk = to - from;                                                                      \
    out[threadIdx.x] = a;                                                                                    \
  }
#define UNARY(name, op) CHAIN(name, float, 0.7f + threadIdx.x, asm volatile(op " %0, %0;" : "+f"(a)))
UNARY(ex2, "ex2.approx.ftz.f32")
UNARY(lg2, "lg2.approx.ftz.f32")
UNARY(rsq, "rsqrt.approx.ftz.f32")
UNARY(sqr, "sqrt.approx.ftz.f32")
UNARY(sine, "sin.approx.ftz.f32")
UNARY(tanh_, "tanh.approx.f32")
CHAIN(to_int_back, float, 3.0f + threadIdx.x, int b; asm volatile("cvt.rzi.s32.f32 %0, %1;" : "=r"(b) : "f"(a)); asm volatile("cvt.rn.f32.s32 %0, %1;" : "=f"(a) : "r"(b)))
CHAIN(to_double_back, float, 3.0f + threadIdx.x, double b; asm volatile("cvt.f64.f32 %0, %1;" : "=d"(b) : "f"(a)); asm volatile("cvt.rn.f32.f64 %0, %1;" : "=f"(a) : "d"(b)))
CHAIN(to_half_back, float, 3.0f + threadIdx.x, short b; asm volatile("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(a)); asm volatile("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(b)))
CHAIN(double_to_int_back, double, 3.0 + threadIdx.x, int b; asm volatile("cvt.rzi.s32.f64 %0, %1;" : "=r"(b) : "d"(a)); asm volatile("cvt.rn.f64.s32 %0, %1;" : "=d"(a) : "r"(b)))
CHAIN(widen_add, double, 3.0 + threadIdx.x, float b = (float)k; double c; asm volatile("cvt.f64.f32 %0, %1;" : "=d"(c) : "f"(b)); asm volatile("add.rn.f64 %0, %0, %1;" : "+d"(a) : "d"(c)))
CHAIN(count_bits, unsigned, threadIdx.x, asm volatile("popc.b32 %0, %0;" : "+r"(a)))
CHAIN(find_bit, unsigned, threadIdx.x, asm volatile("bfind.u32 %0, %0;" : "+r"(a)))
CHAIN(reverse, unsigned, threadIdx.x, asm volatile("brev.b32 %0, %0;" : "+r"(a)))
CHAIN(shuffle, unsigned, threadIdx.x, a = __shfl_sync(~0u, a, (int)a & 31))
CHAIN(ballot, unsigned, threadIdx.x, a = __ballot_sync(~0u, a & 1) + threadIdx.x)
CHAIN(double_rcp, double, 3.0 + threadIdx.x, asm volatile("rcp.approx.ftz.f64 %0, %0;" : "+d"(a)))
CHAIN(double_product, double, 1.0 + threadIdx.x, asm volatile("mul.rn.f64 %0, %0, %0;" : "+d"(a)))
CHAIN(half_fma, unsigned, 0x3c003c00u, asm volatile("fma.rn.f16x2 %0, %0, %0, %0;" : "+r"(a)))
CHAIN(dot_product, int, (int)threadIdx.x, asm volatile("dp4a.s32.s32 %0, %0, %0, %0;" : "+r"(a)))

template <typename T> static void row(const char *what, void (*kernel)(long long *, T *, int), long long *clk, void *out) {
  for (int warps : {1, 4, 8, 16, 32}) {
    long long c;
    for (int pass = 0; pass < 2; pass++) kernel<<<1, 32 * warps>>>(clk, (T *)out, 100);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"%s\", \"warps\": %d, \"clocks\": %.2f}", comma, what, warps, (double)c / 1600), comma = ",\n";
  }
}
int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  long long *clk;
  void *out;
  cudaMalloc(&clk, 8), cudaMalloc(&out, 1 << 16);
  printf("{\"schema\": 1, \"gpu\": \"%s\", \"command\": \"probe_results (bench/probe_results.cu)\", \"rows\": [\n", p.name);
  row("ex2", ex2, clk, out), row("lg2", lg2, clk, out), row("rsqrt", rsq, clk, out), row("sqrt", sqr, clk, out);
  row("sin", sine, clk, out), row("tanh", tanh_, clk, out), row("rcp.f64", double_rcp, clk, out);
  row("f32 to s32 and back", to_int_back, clk, out), row("f32 to f64 and back", to_double_back, clk, out);
  row("f32 to f16 and back", to_half_back, clk, out), row("f64 to s32 and back", double_to_int_back, clk, out);
  row("f32 to f64, and an addition of f64", widen_add, clk, out);
  row("popc", count_bits, clk, out), row("bfind", find_bit, clk, out), row("brev", reverse, clk, out);
  row("shuffle", shuffle, clk, out), row("ballot", ballot, clk, out), row("mul.f64", double_product, clk, out);
  row("fma.f16x2", half_fma, clk, out), row("dp4a", dot_product, clk, out);
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return cudaGetLastError() != cudaSuccess;
}
