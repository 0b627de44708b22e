// Clocks of what warps wait for when they contend: constants that lanes index apart, float atomics on one word of shared memory,
// compare-and-swap loops on one word of global memory, flags that another block polls, chains of 64-bit products, and code
// that is longer than what SMs keep of it.
// nvcc -O3 -std=c++17 -arch=sm_90 -o probe_contend bench/probe_contend.cu && ./probe_contend > bench/results/DATE-GPU-contend.json
#include <cstdio>
#include <cuda_runtime.h>
__constant__ unsigned table4[16384];
static const char *comma = "";

// ---- constants: each index depends on the value before ----

template <typename T, int AHEAD> __global__ void constants(long long *clk, unsigned *out, int apart, int mask, int n) {
  const T *t = reinterpret_cast<const T *>(table4);
  unsigned lane = threadIdx.x % 32, at = lane / apart, sum = 0;
  long long from = clock64();
  for (int i = 0; i < n; i++) {
    T v[AHEAD];
    for (int k = 0; k < AHEAD; k++) v[k] = t[(at + k * 37) & mask];
    unsigned all = 0;
    for (int k = 0; k < AHEAD; k++) all += (unsigned)v[k];
    at += all; // the table is of zeros
    sum += all;
  }
  long long to = clock64();
  if (!threadIdx.x) *clk = to - from;
  out[threadIdx.x] = sum;
}
template <typename T, int AHEAD> static void constant_rows(long long *clk, unsigned *out) {
  for (int bytes : {1024, 16384, 65536})
    for (int warps : {1, 8})
      for (int apart : {32, 16, 8, 4, 2, 1}) {
        int n = 200;
        for (int pass = 0; pass < 2; pass++) constants<T, AHEAD><<<1, 32 * warps>>>(clk, out, apart, bytes / (int)sizeof(T) - 1, n);
        long long c;
        cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
        printf("%s{\"what\": \"constants\", \"bytes\": %d, \"table\": %d, \"warps\": %d, \"ahead\": %d, \"distinct\": %d, \"clocks\": %.1f}", comma,
               (int)sizeof(T), bytes, warps, AHEAD, 32 / apart, (double)c / n), comma = ",\n";
      }
}

// ---- shared memory ----

template <typename T, bool RETURNS> __global__ void shared_adds(long long *clk, T *out, int lanes, int words, int own, int n) {
  __shared__ T sum[1024];
  __shared__ long long first, last;
  sum[threadIdx.x] = 0;
  if (!threadIdx.x) first = 1ll << 62, last = 0;
  __syncthreads();
  long long from = clock64();
  T old = 0;
  if (threadIdx.x % 32 < lanes)
    for (int i = 0; i < n; i++) {
      T got = atomicAdd(&sum[threadIdx.x % words + (own ? threadIdx.x / 32 * 32 : 0)], (T)1);
      if (RETURNS) old += got;
    }
  long long to = clock64();
  atomicMin(&first, from);
  atomicMax(&last, to);
  __syncthreads();
  if (!threadIdx.x) *clk = last - first;
  out[threadIdx.x] = sum[threadIdx.x] + old;
}
template <typename T, bool RETURNS> static void shared_rows(const char *type, long long *clk, void *out) {
  for (int own : {0, 1})
    for (int warps : {1, 2, 4, 8, 16, 32})
      for (int lanes : {1, 4, 32})
        for (int words : {1, 32}) {
        if (words > lanes) continue;
        int n = 50;
        for (int pass = 0; pass < 2; pass++) shared_adds<T, RETURNS><<<1, 32 * warps>>>(clk, (T *)out, lanes, words, own, n);
        long long c;
        cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
        printf("%s{\"what\": \"shared %s\", \"returns\": %d, \"warps\": %d, \"lanes\": %d, \"words\": %d, \"own\": %d, \"clocks\": %.1f}", comma, type, RETURNS, warps,
               lanes, words, own, (double)c / n), comma = ",\n";
      }
}

// ---- global memory: every lane adds or takes the minimum by compare-and-swap ----

template <typename T> __global__ void swaps(T *word, int lanes, int stride, int kind, unsigned *tries) {
  T *at = word + (size_t)(blockIdx.x * blockDim.x + threadIdx.x) * stride;
  unsigned mine = 0;
  if (threadIdx.x % 32 < lanes) {
    if (kind == 0) { // one swap, which fails
      mine = atomicCAS(at, (T)77, (T)78) == (T)77;
    } else if (kind == 1) { // an addition
      T old = *(volatile T *)at, was;
      do {
        was = old;
        mine++;
        old = atomicCAS(at, was, was + 1);
      } while (old != was);
    } else { // the least of values that fall from block to block
      T value = (T)(1000000 - (T)((blockIdx.x * 7919 + threadIdx.x * 104729) % 999983)), old = *(volatile T *)at;
      while (value < old) {
        T was = old;
        mine++;
        if ((old = atomicCAS(at, was, value)) == was) break;
      }
    }
  }
  tries[blockIdx.x * blockDim.x + threadIdx.x] = mine;
}
template <typename T> static void swap_rows(const char *type, T *word, unsigned *tries) {
  static unsigned counted[1056 * 256];
  cudaEvent_t a, b;
  cudaEventCreate(&a), cudaEventCreate(&b);
  for (int kind : {0, 1, 2})
    for (int blocks : {1, 8, 132, 1056})
      for (int lanes : {1, 32})
        for (int stride : {0, 1}) {
          if (kind == 1 && stride == 0 && blocks * 8 * lanes > 4096) continue; // the square of them
          unsigned long long t = 0;
          float ms = 0;
          for (int pass = 0; pass < 2; pass++) {
            T most = kind == 2 ? (T)2000000 : (T)0;
            if (stride) cudaMemset(word, kind == 2 ? 0x3f : 0, sizeof(T) * 1056 * 256);
            else cudaMemcpy(word, &most, sizeof most, cudaMemcpyHostToDevice);
            cudaEventRecord(a);
            swaps<T><<<blocks, 256>>>(word, lanes, stride, kind, tries);
            cudaEventRecord(b), cudaEventSynchronize(b), cudaEventElapsedTime(&ms, a, b);
          }
          cudaMemcpy(counted, tries, 4 * 256 * blocks, cudaMemcpyDeviceToHost);
          for (int i = 0; i < 256 * blocks; i++) t += counted[i];
          static const char *const kinds[] = {"fails", "adds", "least"};
          printf("%s{\"what\": \"swaps %s\", \"kind\": \"%s\", \"blocks\": %d, \"lanes\": %d, \"apart\": %d, \"tries\": %llu, \"us\": %.2f}", comma, type,
                 kinds[kind], blocks, lanes, stride, t, ms * 1e3), comma = ",\n";
        }
}

// ---- a flag between two blocks; the grid's barrier by hand ----

__global__ void ping(volatile int *flag, int *data, long long *clk, int n, int fenced) {
  if (threadIdx.x) return;
  long long from = clock64();
  for (int i = 0; i < n; i++) {
    if (blockIdx.x == 0) {
      if (fenced) data[0] = i, __threadfence();
      flag[0] = i + 1;
      while (flag[64] != i + 1) {
      }
    } else if (blockIdx.x == gridDim.x - 1) {
      while (flag[0] != i + 1) {
      }
      if (fenced) data[64] = i, __threadfence();
      flag[64] = i + 1;
    }
  }
  if (blockIdx.x == 0) *clk = clock64() - from;
}
__global__ void meet(unsigned *count, long long *clk, int n) {
  long long from = clock64();
  for (int i = 1; i <= n; i++) {
    __syncthreads();
    if (!threadIdx.x) {
      __threadfence();
      atomicAdd(count, 1);
      while (*(volatile unsigned *)count < i * gridDim.x) {
      }
      __threadfence();
    }
    __syncthreads();
  }
  if (!threadIdx.x && !blockIdx.x) *clk = clock64() - from;
}
static void flags(long long *clk, int *flag) {
  long long c;
  for (int fenced : {0, 1})
    for (int grid : {2, 132}) {
      cudaMemset(flag, 0, 4096);
      ping<<<grid, 32>>>(flag, flag + 512, clk, 100, fenced);
      cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
      printf("%s{\"what\": \"flag\", \"fenced\": %d, \"grid\": %d, \"clocks one way\": %.1f}", comma, fenced, grid, c / 200.0), comma = ",\n";
    }
  for (int grid : {2, 16, 132, 264, 528}) {
    cudaMemset(flag, 0, 4096);
    meet<<<grid, 256>>>((unsigned *)flag, clk, 50);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"barrier of blocks\", \"grid\": %d, \"clocks\": %.1f}", comma, grid, c / 50.0), comma = ",\n";
  }
}

// ---- 64-bit products ----

template <int KIND> __device__ unsigned long long product(unsigned long long a, unsigned long long b) {
  if constexpr (KIND == 0) return a * b + 1;
  if constexpr (KIND == 1) return __umul64hi(a, b) + b;
  if constexpr (KIND == 2) return (unsigned long long)(unsigned)a * (unsigned)b + (a >> 32);
  if constexpr (KIND == 3) return a + b + (a < b);
  if constexpr (KIND == 4) return (unsigned)a * (unsigned)b + 1;
  if constexpr (KIND == 5) return __umulhi((unsigned)a, (unsigned)b) + 1;
  return a;
}
template <int KIND> __global__ void products(long long *clk, unsigned long long *out, unsigned long long b, int n) {
  unsigned long long a = threadIdx.x + b;
  __syncthreads();
  long long from = clock64();
#pragma unroll 8
  for (int i = 0; i < n; i++) a = product<KIND>(a, b);
  __syncthreads();
  if (!threadIdx.x) *clk = clock64() - from;
  out[threadIdx.x] = a;
}
template <int KIND> static void product_rows(const char *what, long long *clk, void *out) {
  for (int warps : {1, 4, 8, 16, 32}) {
    long long c;
    for (int pass = 0; pass < 2; pass++) products<KIND><<<1, 32 * warps>>>(clk, (unsigned long long *)out, 0x9e3779b97f4a7c15ull, 512);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"%s\", \"warps\": %d, \"clocks\": %.2f}", comma, what, warps, c / 512.0), comma = ",\n";
  }
}

// ---- straight-line code: COUNT multiply-adds in some chains, gone through three times ----

template <int COUNT, int CHAINS> __device__ __forceinline__ void line_of(float *a, float x) {
  if constexpr (COUNT > 2048) line_of<COUNT - 2048, CHAINS>(a, x);
#pragma unroll
  for (int i = 0; i < (COUNT > 2048 ? 2048 : COUNT); i++) a[i % CHAINS] = a[i % CHAINS] * x + (float)((i + COUNT) % 7);
}
template <int COUNT, int CHAINS> __global__ void straight(long long *clk, float *out, float x) {
  float a[CHAINS];
  for (int i = 0; i < CHAINS; i++) a[i] = x + i;
#pragma unroll 1
  for (int turn = 0; turn < 3; turn++) {
    __syncthreads();
    long long from = clock64();
    line_of<COUNT, CHAINS>(a, x);
    for (int i = 0; i < CHAINS; i++) asm volatile("" ::"f"(a[i]) : "memory");
    __syncthreads();
    if (!threadIdx.x && !blockIdx.x) clk[turn] = clock64() - from;
  }
  float sum = 0;
  for (int i = 0; i < CHAINS; i++) sum += a[i];
  out[threadIdx.x] = sum;
}
template <int COUNT, int CHAINS> static void straight_rows(long long *clk, void *out) {
  for (int blocks : {1, 132})
    for (int warps : {1, 2, 4, 8, 16}) {
      long long c[3];
      for (int pass = 0; pass < 2; pass++) straight<COUNT, CHAINS><<<blocks, 32 * warps>>>(clk, (float *)out, 0.5f);
      cudaMemcpy(c, clk, sizeof c, cudaMemcpyDeviceToHost);
      printf("%s{\"what\": \"straight\", \"instructions\": %d, \"chains\": %d, \"blocks\": %d, \"warps\": %d, \"clocks\": [%.3f, %.3f, %.3f]}", comma,
             COUNT, CHAINS, blocks, warps, c[0] / (double)COUNT, c[1] / (double)COUNT, c[2] / (double)COUNT), comma = ",\n";
    }
}

int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  long long *clk;
  void *out;
  cudaMalloc(&clk, 64), cudaMalloc(&out, 1 << 20);
  unsigned *word, *tries;
  cudaMalloc(&word, 8 * 1056 * 256), cudaMalloc(&tries, 4 * 1056 * 256);
  printf("{\"gpu\": \"%s\", \"rows\": [\n", p.name);
  constant_rows<unsigned, 1>(clk, (unsigned *)out);
  constant_rows<unsigned long long, 1>(clk, (unsigned *)out);
  constant_rows<unsigned, 4>(clk, (unsigned *)out);
  shared_rows<float, false>("f32", clk, out);
  shared_rows<double, false>("f64", clk, out);
  shared_rows<int, false>("s32", clk, out);
  shared_rows<int, true>("s32", clk, out);
  swap_rows<unsigned>("u32", word, tries);
  swap_rows<unsigned long long>("u64", (unsigned long long *)word, tries);
  flags(clk, (int *)out);
  product_rows<0>("mul.lo.u64", clk, out);
  product_rows<1>("mul.hi.u64", clk, out);
  product_rows<2>("mul.wide.u32", clk, out);
  product_rows<3>("add.u64", clk, out);
  product_rows<4>("mul.lo.u32", clk, out);
  product_rows<5>("mul.hi.u32", clk, out);
  straight_rows<1024, 4>(clk, out);
  straight_rows<2048, 4>(clk, out);
  straight_rows<4096, 4>(clk, out);
  straight_rows<8192, 4>(clk, out);
  straight_rows<12288, 4>(clk, out);
  straight_rows<16384, 4>(clk, out);
  straight_rows<24576, 4>(clk, out);
  straight_rows<1024, 2>(clk, out);
  straight_rows<2048, 2>(clk, out);
  straight_rows<4096, 2>(clk, out);
  straight_rows<8192, 2>(clk, out);
  straight_rows<12288, 2>(clk, out);
  straight_rows<16384, 2>(clk, out);
  straight_rows<24576, 2>(clk, out);
  straight_rows<1024, 1>(clk, out);
  straight_rows<2048, 1>(clk, out);
  straight_rows<4096, 1>(clk, out);
  straight_rows<8192, 1>(clk, out);
  straight_rows<12288, 1>(clk, out);
  straight_rows<16384, 1>(clk, out);
  straight_rows<24576, 1>(clk, out);
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
