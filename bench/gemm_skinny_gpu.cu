// Times the GEMM kernels for few rows (decoding) beside cuBLAS and a copy of as many bytes, over copies of B that do not
// fit into L2, and checks them and the kernel for any stride. GB/s: bytes of A, B and C over the median time of a call.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels -DWITH_CUBLAS bench/gemm_skinny_gpu.cu -lcublas -o skinny
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>
#ifdef WITH_CUBLAS
#include <cublas_v2.h>
#endif

#include "gemm/gemm_skinny.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)

template <int eights, int warps, int deep>
__global__ void __launch_bounds__(warps * 32) skinny(const __grid_constant__ GemmAnyParams p) {
#if __CUDA_ARCH__ >= 800
  wait_for_predecessor();
  gemm_skinny<eights, warps, deep>(p, KIND_BF16);
#endif
}
__global__ void __launch_bounds__(GEMM_ANY_THREADS) any(const __grid_constant__ GemmAnyParams p) {
  gemm_any(p, KIND_BF16, KIND_BF16, NULL, 0);
}
__global__ void copy(uint4 *to, const uint4 *from, int64_t count) {
  int64_t i = (int64_t)blockIdx.x * 1024 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (i + k * 256 < count) to[i + k * 256] = from[i + k * 256];
}

struct Variant {
  const char *name;
  void (*kernel)(const GemmAnyParams);
  int tall, wide, threads, rows; // rows: the most it takes
};
#define SKINNY(eights, warps, deep) \
  {#eights "x" #warps "x" #deep, skinny<eights, warps, deep>, 16, 16, warps * 32, eights * 8}
static const Variant variants[] = {
    SKINNY(1, 8, 2), SKINNY(1, 8, 4), SKINNY(1, 8, 8), SKINNY(1, 4, 4), SKINNY(1, 4, 8), SKINNY(1, 16, 4),
    SKINNY(2, 8, 2), SKINNY(2, 8, 4), SKINNY(2, 8, 8), SKINNY(2, 4, 4), SKINNY(2, 16, 4),
};
static const Variant plain = {"any", any, GEMM_ANY_TILE, GEMM_ANY_TILE, GEMM_ANY_THREADS, 1 << 30};

static void launch(const Variant &v, const GemmAnyParams &p) {
  int64_t wide = p.end.activation == GEMM_SILU_MUL ? v.wide / 2 : v.wide;
  int64_t blocks = (p.m + v.tall - 1) / v.tall * ((p.n + wide - 1) / wide) * p.batch;
  v.kernel<<<(unsigned)blocks, v.threads>>>(p);
}

__host__ __device__ static uint32_t hash(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b;
  return x ^ x >> 16;
}
__global__ void fill(void *to, int64_t count, int kind, uint32_t seed) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
    store_one(to, i, kind, (float)(hash((uint32_t)i ^ seed) >> 8) / (1 << 23) - 1);
}
__device__ static double dot(const GemmAnyParams &p, int64_t row, int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < p.k; k++)
    sum += (double)load_one(p.a, row * p.a_down + k * p.a_across, KIND_BF16) *
           (double)load_one(p.b, k * p.b_down + column * p.b_across, KIND_BF16);
  return sum;
}
__global__ void compare(GemmAnyParams p, int *worst) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, row = i / p.n, column = i % p.n;
  if (i >= p.m * p.n) return;
  double x = dot(p, row, column) + (double)load_one(p.end.bias, column, KIND_BF16);
  if (p.end.activation == GEMM_SILU_MUL)
    x = x / (1 + exp(-x)) * (dot(p, row, column + p.n) + (double)load_one(p.end.bias, column + p.n, KIND_BF16));
  x += (double)load_one(p.end.residual, row * p.end.residual_stride + column, p.end.out_kind);
  double got = (double)load_one(p.end.c, row * p.end.c_stride + column, p.end.out_kind);
  double limit = (fabs(x) + 0.02 * sqrt((double)p.k)) * 4.2e-3, error = fabs(got - x);
  atomicMax(worst, error <= limit * 2000 ? (int)(error / limit * 1000) : 2000000);
}

static void *device(size_t bytes) {
  void *p;
  CHECK(cudaMalloc(&p, bytes));
  return p;
}

// B by columns, dense.
static GemmAnyParams problem(int64_t m, int64_t n, int64_t k, void *a, void *b, void *c) {
  GemmAnyParams p = {};
  p.a = a, p.b = b, p.m = m, p.n = n, p.k = k, p.batch = 1, p.a_down = k, p.a_across = 1, p.b_down = 1, p.b_across = k;
  p.end.c = c, p.end.c_stride = p.end.residual_stride = n, p.end.alpha = 1, p.end.out_kind = p.end.bias_kind = KIND_BF16;
  return p;
}

static int check(const Variant &v, int64_t m, int64_t n, int64_t k, int activation, int turned) {
  void *a = device(m * k * 2 + 2), *b = device(2 * n * k * 2), *c = device(m * n * 2), *r = device(m * n * 2), *bias = device(4 * n);
  int *worst = (int *)device(4), found;
  fill<<<256, 256>>>(a, m * k, KIND_BF16, 1);
  fill<<<256, 256>>>(b, 2 * n * k, KIND_BF16, 2);
  fill<<<256, 256>>>(r, m * n, KIND_BF16, 3);
  fill<<<256, 256>>>(bias, 2 * n, KIND_BF16, 4);
  CHECK(cudaMemset(c, 0xff, m * n * 2));
  CHECK(cudaMemset(worst, 0, 4));
  GemmAnyParams p = problem(m, n, k, a, b, c);
  p.end.activation = activation, p.end.bias = bias, p.end.residual = r;
  if (turned & 1) p.a_down = 1, p.a_across = m;
  if (turned & 2) p.b_down = activation ? 2 * n : n, p.b_across = 1;
  launch(v, p);
  compare<<<(unsigned)((m * n + 127) / 128), 128>>>(p, worst);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&found, worst, 4, cudaMemcpyDeviceToHost));
  void *all[] = {a, b, c, r, bias, worst};
  for (void *x : all) CHECK(cudaFree(x));
  if (found > 1000)
    printf("WRONG %s %dx%dx%d activation %d layout %d: %.2f of what is allowed\n", v.name, (int)m, (int)n, (int)k, activation,
           turned, found / 1000.0);
  return found > 1000;
}

static int check_all(void) {
  int wrong = 0;
  for (const Variant &v : variants)
    for (int m = 1; m <= v.rows; m += 5)
      wrong += check(v, m, 100 + m, 264, 0, 0) + check(v, m, 50 + m, 1000, GEMM_SILU_MUL, 0);
  for (int layout = 0; layout < 4; layout++)
    wrong += check(plain, 129, 77, 45, 0, layout) + check(plain, 65, 33, 32, GEMM_SILU_MUL, layout);
  printf("small cases: %d wrong\n", wrong);
  return wrong;
}

template <class F> static double seconds(int calls, F call) {
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  float ms;
  std::vector<double> times;
  for (int turn = 0; turn < 5; turn++) {
    CHECK(cudaEventRecord(from));
    for (int i = 0; i < calls; i++) call(turn * calls + i);
    CHECK(cudaEventRecord(to));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    if (turn) times.push_back(ms / 1000 / calls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

static void time_shape(int64_t m, int64_t n, int64_t k) {
  size_t one = (size_t)n * k * 2, room = (size_t)3 << 30, sets = std::max<size_t>(1, std::min<size_t>(64, room / one));
  char *b = (char *)device(one * sets);
  void *a = device(m * k * 2), *c = device(m * n * 2);
  fill<<<1056, 256>>>(a, m * k, KIND_BF16, 1);
  fill<<<1056, 256>>>(b, (int64_t)(one * sets / 2), KIND_BF16, 2);
  double bytes = (double)one + m * k * 2 + m * n * 2;
  int calls = 40;
  printf("%3d %6d %6d", (int)m, (int)n, (int)k);
  int64_t pieces = (int64_t)(bytes / 32), copies = (int64_t)(one * sets / 32) / pieces;
  double light = seconds(calls, [&](int i) {
    uint4 *to = (uint4 *)b + i % copies * 2 * pieces;
    copy<<<(unsigned)((pieces + 1023) / 1024), 256>>>(to + pieces, to, pieces);
  });
  printf(" light %6.1f us %4.0f GB/s", light * 1e6, bytes / light * 1e-9);
#ifdef WITH_CUBLAS
  cublasHandle_t blas;
  cublasCreate(&blas);
  float alpha = 1, beta = 0;
  double theirs = seconds(calls, [&](int i) {
    cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)n, (int)m, (int)k, &alpha, b + i % sets * one, CUDA_R_16BF, (int)k, a,
                 CUDA_R_16BF, (int)k, &beta, c, CUDA_R_16BF, (int)n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  });
  printf(" cublas %6.1f us |", theirs * 1e6);
  cublasDestroy(blas);
#endif
  for (const Variant &v : variants) {
    if (v.rows < m || (v.rows == 16 && m <= 8)) continue;
    double t = seconds(calls, [&](int i) { launch(v, problem(m, n, k, a, b + i % sets * one, c)); });
    printf(" %s %.1f (%.2f)", v.name, t * 1e6, t / light);
  }
  printf("\n");
  fflush(stdout);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
}

int main(int argc, char **argv) {
  static const int shapes[][2] = {{4096, 4096}, {28672, 8192}, {8192, 28672}, {10240, 8192}, {4096, 14336}, {1024, 4096}, {128256, 4096}};
  int wrong = check_all();
  if (argc > 1) return wrong != 0;
  printf("us (times the copy's); eights of rows x warps x 32 k under way\n");
  for (const int *s : shapes)
    for (int m : {1, 8, 16}) time_shape(m, s[0], s[1]);
  printf(wrong ? "WRONG\n" : "all right\n");
  return wrong != 0;
}
