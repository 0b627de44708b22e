// Clocks of a block whose warps wait for each other: barriers alone, barriers around accesses of shared memory, and around arithmetic,
// by the number of warps; 64-bit products and chains of double precision of one warp and of many; and atomics of a whole GPU on words
// at random, by the number of lines that they are in.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_step bench/probe_step.cu && ./probe_step > bench/results/DATE-GPU-step.json
#include <cstdio>
#include <cuda_runtime.h>
static const char *comma = "";

enum Kind { BARRIER, SHARED, ISSUE, DIVERGED };
template <int KIND> __global__ void steps(long long *clk, float *out, int n) {
  __shared__ float tile[1024];
  float v = threadIdx.x, w = v;
  tile[threadIdx.x] = v;
  __syncthreads();
  long long from = clock64();
  for (int i = 0; i < n; i++) {
    if (KIND == SHARED) tile[threadIdx.x] = v, __syncthreads(), v += tile[(threadIdx.x + 32) % blockDim.x];
    if (KIND == ISSUE)
#pragma unroll
      for (int k = 0; k < 16; k++) v = v * 1.01f + w, w = w * 0.99f + 1.0f;
    if (KIND == DIVERGED && threadIdx.x == i % blockDim.x) tile[0] /= v + 2.0f;
    __syncthreads();
  }
  long long to = clock64();
  if (!threadIdx.x) *clk = to - from;
  out[threadIdx.x] = v + w + tile[0];
}
template <int KIND> static void step_rows(const char *what, long long *clk, float *out) {
  for (int warps : {1, 2, 4, 8, 16, 32}) {
    int n = 500;
    long long c;
    for (int pass = 0; pass < 2; pass++) steps<KIND><<<1, 32 * warps>>>(clk, out, n);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"%s\", \"warps\": %d, \"clocks\": %.1f}", comma, what, warps, (double)c / n), comma = ",\n";
  }
}

enum Op { MUL_LO, MUL_HI, MAD_WIDE, MUL_32, DIV_64, ADD_F64, FMA_F64, F2D, LOAD_ADD };
template <int OP> __global__ void ops(long long *clk, unsigned long long *out, unsigned long long m, int n) {
  unsigned long long a = threadIdx.x + 3, b = a * 7;
  double d = (double)a;
  float f = (float)a;
  __shared__ float in[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) in[i] = (float)i;
  __syncthreads();
  long long from = clock64();
  for (int i = 0; i < n; i++) {
#pragma unroll
    for (int k = 0; k < 16; k++) {
      if (OP == MUL_LO) a = a * m + k;
      if (OP == MUL_HI) a = __umul64hi(a, m) + b;
      if (OP == MAD_WIDE) a = (unsigned long long)(unsigned)a * (unsigned)m + b;
      if (OP == MUL_32) a = (unsigned)a * (unsigned)m + k;
      if (OP == ADD_F64) d += 1.25;
      if (OP == FMA_F64) d = d * 0.5 + 1.25;
      if (OP == F2D) f = (float)((double)f + 1.0);
      if (OP == LOAD_ADD) d += in[(i * 16 + k) & 255];
    }
    if (OP == DIV_64) a = (a + 77777777777ull) % m;
  }
  long long to = clock64();
  if (!threadIdx.x) *clk = to - from;
  out[threadIdx.x] = a + b + (unsigned long long)d + (unsigned long long)f;
}
template <int OP> static void op_rows(const char *what, long long *clk, unsigned long long *out) {
  for (int warps : {1, 4, 8, 16, 32}) {
    int n = 100, each = OP == DIV_64 ? 1 : 16;
    long long c;
    for (int pass = 0; pass < 2; pass++) ops<OP><<<1, 32 * warps>>>(clk, out, 1000000007ull, n);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"%s\", \"warps\": %d, \"clocks\": %.2f}", comma, what, warps, (double)c / n / each), comma = ",\n";
  }
}

enum Atomic { RED_INT, ATOM_INT, RED_FLOAT, RED_DOUBLE, SWAP, SWAP_WIDE, ATOM_MIN };
template <int KIND, typename T> __global__ void atomics(T *words, unsigned count, T *out, int n) {
  unsigned x = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u + 12345u;
  T sum = 0;
  for (int i = 0; i < n; i++) {
    x = x * 1664525u + 1013904223u;
    T *at = words + (x >> 4) % count;
    if (KIND == RED_INT || KIND == RED_FLOAT || KIND == RED_DOUBLE) atomicAdd(at, (T)1);
    if (KIND == ATOM_INT) sum += atomicAdd(at, (T)1);
    if constexpr (KIND == SWAP || KIND == SWAP_WIDE) sum += atomicCAS(at, (T)7777777, (T)1);
    if constexpr (KIND == ATOM_MIN) sum += atomicMin(at, (T)(x >> 1));
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
template <int KIND, typename T> static void atomic_rows(const char *what) {
  T *words, *out;
  cudaMalloc(&words, 64 << 20);
  cudaMemset(words, 0, 64 << 20);
  cudaMalloc(&out, 132 * 8 * 256 * sizeof(T));
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  for (unsigned lines : {16u, 128u, 1024u, 8192u, 65536u, 524288u}) {
    const int n = 16, blocks = 132 * 8;
    float ms;
    for (int pass = 0; pass < 2; pass++) {
      cudaEventRecord(a);
      atomics<KIND, T><<<blocks, 256>>>(words, lines * 128 / (unsigned)sizeof(T), out, n);
      cudaEventRecord(b);
      cudaEventSynchronize(b);
      cudaEventElapsedTime(&ms, a, b);
    }
    printf("%s{\"what\": \"%s at random\", \"lines\": %u, \"lanes\": %d, \"us\": %.2f}", comma, what, lines, blocks * 256 * n, ms * 1e3), comma = ",\n";
  }
  cudaFree(words), cudaFree(out);
}

int main() {
  long long *clk;
  float *out;
  cudaMalloc(&clk, 8);
  cudaMalloc(&out, 1 << 16);
  printf("{\"schema\": 1, \"rows\": [\n");
  step_rows<BARRIER>("barrier", clk, out);
  step_rows<SHARED>("barriers around a store and a load", clk, out);
  step_rows<ISSUE>("32 instructions and a barrier", clk, out);
  step_rows<DIVERGED>("a division by one lane and a barrier", clk, out);
  op_rows<MUL_LO>("mul.lo.u64", clk, (unsigned long long *)out);
  op_rows<MUL_HI>("mul.hi.u64", clk, (unsigned long long *)out);
  op_rows<MAD_WIDE>("mad.wide.u32", clk, (unsigned long long *)out);
  op_rows<MUL_32>("mul.lo.u32", clk, (unsigned long long *)out);
  op_rows<DIV_64>("rem.u64", clk, (unsigned long long *)out);
  op_rows<ADD_F64>("add.f64", clk, (unsigned long long *)out);
  op_rows<FMA_F64>("fma.f64", clk, (unsigned long long *)out);
  op_rows<F2D>("add.f64 between conversions", clk, (unsigned long long *)out);
  op_rows<LOAD_ADD>("add.f64 of what shared memory has as floats", clk, (unsigned long long *)out);
  atomic_rows<RED_INT, unsigned>("red.add.u32");
  atomic_rows<ATOM_INT, unsigned>("atom.add.u32");
  atomic_rows<ATOM_MIN, unsigned>("atom.min.u32");
  atomic_rows<RED_FLOAT, float>("red.add.f32");
  atomic_rows<RED_DOUBLE, double>("red.add.f64");
  atomic_rows<SWAP, unsigned>("atom.cas.b32 in vain");
  atomic_rows<SWAP_WIDE, unsigned long long>("atom.cas.b64 in vain");
  printf("]}\n");
  return cudaDeviceSynchronize() != cudaSuccess;
}
