// Units that the other programs leave alone: textures, memory of the host, clocks, pipes in mixtures, starts of blocks.
#include "kinds.cuh"

// ---- textures ----

template <typename T> static cudaTextureObject_t image(int width, int height, int depth, cudaTextureFilterMode filter, bool unit = false) {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  cudaArray_t a;
  if (depth)
    cudaMalloc3DArray(&a, &format, make_cudaExtent(width, height, depth));
  else
    cudaMallocArray(&a, &format, width, height);
  cudaResourceDesc what = {};
  what.resType = cudaResourceTypeArray;
  what.res.array.array = a;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = cudaAddressModeClamp;
  how.filterMode = filter;
  how.readMode = unit ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  cudaTextureObject_t t = 0;
  cudaCreateTextureObject(&t, &what, &how, nullptr);
  return t;
}
__global__ void texture_points(float *out, cudaTextureObject_t t, int width) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  float s = 0;
  for (int k = 0; k < 16; k++) s += tex2D<float>(t, x + k % 4, y + k / 4);
  out[(size_t)y * width + x] = s;
}
__global__ void texture_fours(float *out, cudaTextureObject_t t, int width) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  float s = 0;
  for (int k = 0; k < 9; k++) {
    float4 v = tex2D<float4>(t, x + k % 3 + 0.3f, y + k / 3 + 0.3f);
    s += v.x + v.y + v.z + v.w;
  }
  out[(size_t)y * width + x] = s;
}
__global__ void texture_bytes(float *out, cudaTextureObject_t t, int width) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  float s = 0;
  for (int k = 0; k < 9; k++) {
    float4 v = tex2D<float4>(t, x + k % 3 + 0.3f, y + k / 3 + 0.3f);
    s += v.x + v.y + v.z + v.w;
  }
  out[(size_t)y * width + x] = s;
}
__global__ void texture_volume(float *out, cudaTextureObject_t t, int width) {
  int x = blockIdx.x * 32 + threadIdx.x % 32, y = blockIdx.y * 8 + threadIdx.x / 32;
  float s = 0;
  for (int k = 0; k < 16; k++) s += tex3D<float>(t, x * 0.24f, y * 0.24f, k * 4.1f);
  out[(size_t)y * width + x] = s;
}

// ---- memory of the host, mapped ----

__global__ void sum_of_host(float *out, const float *in, int n) {
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
}
__global__ void sum_of_host_again(float *out, const float *in, int n, int rounds) {
  float s = 0;
  for (int r = 0; r < rounds; r++)
    for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += __ldcg(&in[i]);
  out[self()] = s;
}
__global__ void write_to_host(float *out, int n) {
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) out[i] = (float)i;
}
__global__ void chase_host(uint32_t *out, const uint32_t *next, int n) {
  uint32_t at = 0;
  for (int i = 0; i < n; i++) at = next[at];
  out[0] = at;
}
__global__ void flag_for_host(int *flag, const float *in, float *out, int n) {
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
  if (s < 0) *flag = 1;
}

// ---- clocks ----

__global__ void spin_one(long long *out, long long clocks) {
  long long from = clock64();
  while (clock64() - from < clocks) {}
  out[self()] = from;
}
__global__ void spin_waves(long long *out, long long clocks) {
  long long from = clock64();
  while (clock64() - from < clocks) {}
  out[self()] = from;
}
__global__ void sleeps(int *out, int n) {
  for (int i = 0; i < n; i++) __nanosleep(500);
  out[self()] = n;
}

// ---- pipes ----

#define CHAINS(T, N, expression)                                                                             \
  T v[N];                                                                                                    \
  for (int k = 0; k < N; k++) v[k] = (T)(self() + k);                                                        \
  for (int i = 0; i < n; i++)                                                                                \
    for (int k = 0; k < N; k++) v[k] = expression;                                                           \
  T all = 0;                                                                                                 \
  for (int k = 0; k < N; k++) all += v[k];                                                                   \
  out[self()] = all;
__global__ void fma_one_warp(float *out, int n) {
  CHAINS(float, 1, v[k] * 1.0001f + 0.5f)
}
__global__ void fma_four_chains(float *out, int n) {
  CHAINS(float, 4, v[k] * 1.0001f + 0.5f)
}
__global__ void fma_full(float *out, int n) {
  CHAINS(float, 4, v[k] * 1.0001f + 0.5f)
}
__global__ void fma64_one_chain(double *out, int n) {
  CHAINS(double, 1, v[k] * 1.0001 + 0.5)
}
__global__ void fma64_full(double *out, int n) {
  CHAINS(double, 4, v[k] * 1.0001 + 0.5)
}
__global__ void integers(uint32_t *out, int n) {
  CHAINS(uint32_t, 4, (v[k] ^ v[k] >> 7) + (v[k] << 3))
}
__global__ void products_and_sums(uint32_t *out, int n) {
  CHAINS(uint32_t, 4, v[k] * 1664525u + (v[k] >> 9))
}
__global__ void least_and_most(float *out, int n) {
  CHAINS(float, 4, fminf(fmaxf(v[k] * 1.01f, 3.0f), v[k] + 7.0f))
}
__global__ void conversions(float *out, int n) {
  CHAINS(float, 4, (float)(int)v[k] + 1.5f)
}
__global__ void conversions64(double *out, int n) {
  CHAINS(double, 2, (double)(float)v[k] + 1.5)
}
__global__ void bits_counted(uint32_t *out, int n) {
  CHAINS(uint32_t, 4, __popc(v[k]) * 77u + __clz(v[k]))
}
__global__ void exponentials(float *out, int n) {
  CHAINS(float, 4, __expf(v[k]) * 0.1f)
}
__global__ void roots_exact(float *out, int n) {
  CHAINS(float, 2, sqrtf(v[k]) + 2.5f)
}
__global__ void dot_bytes(int *out, int n) {
  CHAINS(int, 4, __dp4a(v[k], 0x01020304, v[k]))
}
__global__ void funnel_shifts(uint32_t *out, int n) {
  CHAINS(uint32_t, 4, __funnelshift_l(v[k], v[k], 7) + 0x9e3779b9u)
}
__global__ void adds64(uint64_t *out, int n) {
  CHAINS(uint64_t, 4, (v[k] ^ v[k] >> 13) + 0x9e3779b97f4a7c15ull)
}
__global__ void powers32(float *out, int n) {
  CHAINS(float, 2, powf(v[k], 0.9f) + 1.5f)
}
__global__ void logarithms64(double *out, int n) {
  CHAINS(double, 1, log(v[k]) + 2.5)
}
__global__ void tangents(float *out, int n) {
  CHAINS(float, 1, atan2f(v[k], 1.5f) + 0.5f)
}

// ---- starts of blocks ----

__global__ void starts_of_1024(int *out) {
  if (threadIdx.x == 0 && blockIdx.x % 64 == 0) out[blockIdx.x] = 1;
}
__global__ void starts_of_256(int *out) {
  if (threadIdx.x == 0 && blockIdx.x % 64 == 0) out[blockIdx.x] = 1;
}
__global__ void starts_shared(int *out) {
  __shared__ int room[10000];
  room[threadIdx.x * 7 % 10000] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x % 64 == 0) out[blockIdx.x] = room[blockIdx.x % 10000];
}
__global__ void starts_some_work(float *out, int n) {
  if (blockIdx.x % 16) return;
  float v = threadIdx.x;
  for (int i = 0; i < n; i++) v = v * 1.0001f + 0.5f;
  out[self()] = v;
}
__global__ void one_warp_works(float *out, int n) {
  float v = threadIdx.x;
  if (threadIdx.x < 32)
    for (int i = 0; i < n; i++) v = v * 1.0001f + 0.5f;
  __syncthreads();
  out[self()] = v;
}
__global__ void tail_of_one(float *out, int n) {
  extern __shared__ float room[];
  float v = threadIdx.x;
  for (int i = 0; i < n; i++) v = v * 1.0001f + 0.5f;
  room[threadIdx.x] = v;
  out[self()] = room[threadIdx.x ^ 1];
}
__global__ void blocks_of_48(float *out, const float *in, int n) {
  float s = 0;
  for (int i = self(); i < n; i += gridDim.x * blockDim.x) s += in[i];
  out[self()] = s;
}

int main() {
  const int n = 1 << 22;
  float *f = array<float>(n), *in = filled<float>(n, 1000);
  dim3 grid(32, 128);
  LAUNCH(texture_points, grid, 256, f, image<float>(1024, 1024, 0, cudaFilterModePoint), 1024);
  LAUNCH(texture_fours, grid, 256, f, image<float4>(1024, 1024, 0, cudaFilterModeLinear), 1024);
  LAUNCH(texture_bytes, grid, 256, f, image<uchar4>(1024, 1024, 0, cudaFilterModeLinear, true), 1024);
  LAUNCH(texture_volume, grid, 256, f, image<float>(256, 256, 64, cudaFilterModeLinear), 1024);
  float *host, *seen;
  cudaHostAlloc(&host, (size_t)n * 4, cudaHostAllocMapped);
  for (int i = 0; i < n; i++) host[i] = (float)(((uint32_t)i * 1009u + 77u) % 65536u);
  cudaHostGetDevicePointer(&seen, host, 0);
  LAUNCH(sum_of_host, 264, 256, f, seen, n);
  LAUNCH(sum_of_host_again, 132, 256, f, seen, 1 << 16, 4);
  LAUNCH(write_to_host, 264, 256, seen, n);
  uint32_t *chain = (uint32_t *)host;
  cudaDeviceSynchronize();
  for (uint32_t i = 0; i < 4096; i++) chain[i * 64] = (i + 1009) % 4096 * 64;
  LAUNCH(chase_host, 1, 1, (uint32_t *)f, (uint32_t *)seen, 40);
  LAUNCH(flag_for_host, 528, 256, (int *)seen, in, f, n);
  LAUNCH(spin_one, 1, 32, (long long *)f, 40000);
  LAUNCH(spin_waves, 132 * 32, 128, (long long *)f, 8000);
  LAUNCH(sleeps, 132, 64, (int *)f, 20);
  LAUNCH(fma_one_warp, 132, 128, f, 4000);
  LAUNCH(fma_four_chains, 132, 128, f, 3000);
  LAUNCH(fma_full, 528, 512, f, 300);
  LAUNCH(fma64_one_chain, 132, 256, (double *)f, 2000);
  LAUNCH(fma64_full, 528, 512, (double *)f, 150);
  LAUNCH(integers, 528, 512, (uint32_t *)f, 120);
  LAUNCH(products_and_sums, 528, 512, (uint32_t *)f, 120);
  LAUNCH(least_and_most, 528, 512, f, 120);
  LAUNCH(conversions, 528, 512, f, 100);
  LAUNCH(conversions64, 528, 512, (double *)f, 60);
  LAUNCH(bits_counted, 528, 512, (uint32_t *)f, 60);
  LAUNCH(exponentials, 528, 512, f, 80);
  LAUNCH(roots_exact, 528, 512, f, 80);
  LAUNCH(dot_bytes, 528, 512, (int *)f, 200);
  LAUNCH(funnel_shifts, 528, 512, (uint32_t *)f, 200);
  LAUNCH(adds64, 528, 512, (uint64_t *)f, 100);
  LAUNCH(powers32, 528, 256, f, 40);
  LAUNCH(logarithms64, 528, 256, (double *)f, 40);
  LAUNCH(tangents, 528, 256, f, 60);
  LAUNCH(starts_of_1024, 8192, 1024, (int *)f);
  LAUNCH(starts_of_256, 32768, 256, (int *)f);
  LAUNCH(starts_shared, 8192, 128, (int *)f);
  LAUNCH(starts_some_work, 16384, 128, f, 400);
  LAUNCH(one_warp_works, 528, 1024, f, 1000);
  cudaFuncSetAttribute(tail_of_one, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10);
  for (int time = 0; time < TIMES; time++) tail_of_one<<<133, 512, 200 << 10>>>(f, 1500);
  LAUNCH(blocks_of_48, 132 * 20, 48, f, in, n);
  return done();
}
