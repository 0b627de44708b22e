// Clocks of a warp for floating-point divisions and roots, by operands: which of them leave the short way, for which the
// machine calls a function. Zero is such a dividend, and such an operand of a root.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_div bench/probe_div.cu && ./probe_div > bench/results/DATE-GPU-div.json
#include <cstdio>
#include <cuda_runtime.h>
template <int OP, typename T> __device__ T one(T a, T b) {
  if constexpr (OP == 0) return a / b;
  if constexpr (OP == 1) return sqrt(a);
  if constexpr (OP == 2) return T(1) / a;
  return a;
}
template <int OP, typename T> __global__ void repeat(const T *in, T *out, long long *clk, int n) {
  T a = in[0], b = in[1], z = in[2], s = z;
  for (int pass = 0; pass < 2; pass++) {
    long long t = clock64();
    for (int i = 0; i < n; i++) {
      T q = one<OP, T>(a + s, b);
      s = q - q;
      if (s != z) s = z;
    }
    t = clock64() - t;
    if (threadIdx.x == 0) *clk = t;
  }
  out[threadIdx.x] = s;
}
static const char *comma = "";

template <int OP, typename T> static void go(const char *what, double a, double b) {
  T h[3] = {(T)a, (T)b, (T)0}, *in, *out;
  long long *clk, c;
  cudaMalloc(&in, sizeof h);
  cudaMalloc(&out, 1024 * sizeof(T));
  cudaMalloc(&clk, 8);
  cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
  printf("%s{\"what\": \"%s\", \"a\": %g, \"b\": %g", comma, what, a, b), comma = ",\n";
  for (int t : {32, 512}) {
    repeat<OP, T><<<1, t>>>(in, out, clk, 200);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf(", \"clocks_%d_threads\": %.1f", t, c / 200.0);
  }
  printf("}");
  cudaFree(in);
  cudaFree(out);
  cudaFree(clk);
}
int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  printf("{\"gpu\": \"%s\", \"divisions\": [\n", p.name);
  double fs[][2] = {{1, 3},    {0, 3},     {1e-38, 3}, {1e-37, 3},   {1e-39, 3},   {1e38, 3},
                    {1, 1e38}, {1, 1e-38}, {1, 1e-39}, {1e30, 1e-5}, {1e-30, 1e5}, {1e-30, 1e10}};
  for (auto &f : fs) go<0, float>("f32 a/b", f[0], f[1]);
  for (double a : {2.0, 0.0, 1e-38, 1e-39, 1e-30, 1e38}) go<1, float>("f32 sqrt", a, 1);
  for (double a : {2.0, 1e-39, 1e38, 1e-38, 1e37}) go<2, float>("f32 1/a", a, 1);
  double ds[][2] = {{1, 3},     {0, 3},     {1e-300, 3}, {1e-290, 3},    {1e-280, 3},
                    {1e300, 3}, {1, 1e300}, {1, 1e-300}, {1e-200, 1e200}};
  for (auto &f : ds) go<0, double>("f64 a/b", f[0], f[1]);
  for (double a : {2.0, 0.0, 1e-300, 1e-310, 1e300}) go<1, double>("f64 sqrt", a, 1);
  for (double a : {2.0, 1e300, 1e-300, 1e-310}) go<2, double>("f64 1/a", a, 1);
  printf("]}\n");
  return 0;
}
