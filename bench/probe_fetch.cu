// How fast textures are sampled, and how fast L2 gives lines that several SMs read at the same time.
// nvcc -O3 -std=c++17 -arch=sm_90a -o probe_fetch bench/probe_fetch.cu && ./probe_fetch > out.json
#include <cstdint>
#include <cstdio>
#include <cuda_fp16.h>

static const char *comma = "";
static const int SMS = 132;

// ---- textures: clocks of an SM for each warp's fetch, coordinates in L1 ----

template <typename T> static cudaTextureObject_t image(int width, int height, bool linear, bool unit) {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t a;
  cudaMallocArray(&a, &format, width, height);
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = a;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
  how.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  how.readMode = unit ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  cudaTextureObject_t t = 0;
  cudaCreateTextureObject(&t, &what, &how, nullptr);
  return t;
}
__device__ static float first(float v) {
  return v;
}
__device__ static float first(float2 v) {
  return v.x + v.y;
}
__device__ static float first(float4 v) {
  return v.x + v.y + v.z + v.w;
}
template <typename V, int DIMS> __global__ void sample(long long *clk, float *out, cudaTextureObject_t t, int n) {
  float x = threadIdx.x % 32 + 0.3f, y = threadIdx.x / 32 + 0.3f, s = 0;
  __syncthreads();
  long long from = clock64();
#pragma unroll 8
  for (int i = 0; i < n; i++) {
    if (DIMS == 1) s += first(tex1Dfetch<V>(t, threadIdx.x % 32 + (i & 31)));
    if (DIMS == 2) s += first(tex2D<V>(t, x + (i & 15), y));
  }
  __syncthreads();
  if (!threadIdx.x && !blockIdx.x) *clk = clock64() - from;
  out[threadIdx.x] = s;
}
template <typename V, int DIMS> static void texture_row(const char *what, cudaTextureObject_t t, long long *clk, float *out) {
  const int n = 512;
  for (int warps : {1, 32}) {
    long long c;
    for (int pass = 0; pass < 2; pass++) sample<V, DIMS><<<SMS, 32 * warps>>>(clk, out, t, n);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"texture\", \"texels\": \"%s\", \"warps\": %d, \"clocks\": %.2f}", comma, what, warps, c / (double)n / warps);
    comma = ",\n";
  }
}
template <typename T> static cudaTextureObject_t list(size_t count) {
  T *p;
  cudaMalloc(&p, count * sizeof(T));
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeLinear;
  what.res.linear.devPtr = p;
  what.res.linear.desc = cudaCreateChannelDesc<T>();
  what.res.linear.sizeInBytes = count * sizeof(T);
  cudaTextureDesc how = {};
  cudaTextureObject_t t = 0;
  cudaCreateTextureObject(&t, &what, &how, nullptr);
  return t;
}

// ---- L2: `sharers` SMs read the same lines in the same order; bytes a clock and SM ----

__global__ void together(long long *clk, float *out, const float4 *in, int sharers, int each, int rounds) {
  const float4 *mine = in + (size_t)(blockIdx.x / sharers) * each;
  float s = 0;
  __syncthreads();
  long long from = clock64();
  for (int r = 0; r < rounds; r++)
#pragma unroll 4
    for (int i = threadIdx.x; i < each; i += blockDim.x) {
      float4 v = __ldcg(&mine[i]);
      s += v.x + v.y + v.z + v.w;
    }
  __syncthreads();
  if (!threadIdx.x && blockIdx.x == 66) *clk = clock64() - from;
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
// The same by words of 4 bytes, each lane of a warp in a line of its own.
__global__ void words(long long *clk, float *out, const float *in, int sharers, int each, int rounds) {
  const float *mine = in + (size_t)(blockIdx.x / sharers) * each;
  float s = 0;
  uint32_t x = threadIdx.x * 2654435761u;
  __syncthreads();
  long long from = clock64();
#pragma unroll 4
  for (int r = 0; r < rounds; r++) x = x * 1664525u + 1013904223u, s += __ldcg(&mine[x >> 8 & (each - 1)]);
  __syncthreads();
  if (!threadIdx.x && blockIdx.x == 66) *clk = clock64() - from;
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}
// The same down columns: lanes are `stride` floats apart.
__global__ void strided(long long *clk, float *out, const float *in, int stride, int each, int rounds) {
  float s = 0;
  uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) * stride;
  __syncthreads();
  long long from = clock64();
#pragma unroll 4
  for (int r = 0; r < rounds; r++) s += __ldcg(&in[(at + r * 8) & (each - 1)]);
  __syncthreads();
  if (!threadIdx.x && blockIdx.x == 66) *clk = clock64() - from;
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

// ---- atomics of warps: all lanes on one word, or in groups; clocks of the GPU a lane ----

__global__ void adds(int *to, int group, int words, int rounds) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  for (int r = 0; r < rounds; r++) atomicAdd(&to[(warp * 32 + lane / group + r * 4096) & (words - 1)], 1);
}

int main() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  long long *clk, c;
  float *out, *in;
  cudaMalloc(&clk, 64), cudaMalloc(&out, 4 << 20), cudaMalloc(&in, 64 << 20);
  printf("{\"gpu\": \"%s\", \"rows\": [\n", p.name);
  texture_row<float, 1>("float list", list<float>(1 << 14), clk, out);
  texture_row<float4, 1>("float4 list", list<float4>(1 << 14), clk, out);
  texture_row<float, 2>("float point", image<float>(64, 64, false, false), clk, out);
  texture_row<float, 2>("float linear", image<float>(64, 64, true, false), clk, out);
  texture_row<float2, 2>("float2 linear", image<float2>(64, 64, true, false), clk, out);
  texture_row<float4, 2>("float4 point", image<float4>(64, 64, false, false), clk, out);
  texture_row<float4, 2>("float4 linear", image<float4>(64, 64, true, false), clk, out);
  texture_row<float, 2>("uchar linear", image<unsigned char>(64, 64, true, true), clk, out);
  texture_row<float4, 2>("uchar4 linear", image<uchar4>(64, 64, true, true), clk, out);
  texture_row<float4, 2>("ushort4 linear", image<ushort4>(64, 64, true, true), clk, out);
  for (int threads : {256, 1024})
    for (int sharers : {1, 2, 4, 12, 33, 132})
      for (int each : {1 << 13, 1 << 15}) { // 16 bytes each
        const int rounds = (1 << 17) / each;
        for (int pass = 0; pass < 2; pass++) together<<<SMS, threads>>>(clk, out, (float4 *)in, sharers, each, rounds);
        cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
        printf("%s{\"what\": \"lines\", \"threads\": %d, \"sharers\": %d, \"bytes_each\": %d, \"bytes_a_clock\": %.1f}", comma, threads, sharers, each * 16,
               16.0 * each * rounds / c);
      }
  for (int sharers : {1, 12, 132}) {
    for (int pass = 0; pass < 2; pass++) words<<<SMS, 1024>>>(clk, out, in, sharers, 1 << 16, 128);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"words\", \"sharers\": %d, \"requests_a_clock\": %.3f}", comma, sharers, 1024.0 * 128 / c);
  }
  for (int stride : {32, 33, 64, 256, 1024, 1025, 4096}) {
    for (int pass = 0; pass < 2; pass++) strided<<<SMS, 1024>>>(clk, out, in, stride, 1 << 22, 64);
    cudaMemcpy(&c, clk, 8, cudaMemcpyDeviceToHost);
    printf("%s{\"what\": \"strided\", \"floats\": %d, \"requests_a_clock\": %.3f}", comma, stride, 1024.0 * 64 / c);
  }
  cudaEvent_t from, to;
  cudaEventCreate(&from), cudaEventCreate(&to);
  for (int group : {1, 2, 4, 8, 16, 32})
    for (int words : {1 << 12, 1 << 20}) {
      float ms;
      for (int pass = 0; pass < 2; pass++) {
        cudaEventRecord(from);
        adds<<<SMS * 8, 256>>>((int *)in, group, words, 32);
        cudaEventRecord(to);
        cudaEventSynchronize(to);
      }
      cudaEventElapsedTime(&ms, from, to);
      printf("%s{\"what\": \"adds\", \"lanes_a_word\": %d, \"words\": %d, \"us\": %.1f, \"lanes_a_ns\": %.2f}", comma, group, words, ms * 1e3,
             SMS * 8 * 256 * 32.0 / (ms * 1e6));
    }
  printf("],\n\"error\": \"%s\"}\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
