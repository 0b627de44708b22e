// Memory of a thread's own: private arrays that L1 holds, that L2 holds and that neither does, lanes together and apart, spilled registers,
// frames of calls.
#include "kinds.cuh"

__global__ void written_once(float *out, const uint32_t *in, int n) {
  float own[512];
  uint32_t x = in[self()];
  for (int i = 0; i < n; i++) own[i] = (float)(i ^ x);
  out[self()] = own[x % 512] + own[(x >> 9) % 512];
}

__global__ void passes_of_4_kib(float *out, const uint32_t *in, int passes) {
  float own[1024];
  uint32_t x = in[self()] & 3;
  int n = 1024 - (int)x;
  for (int i = 0; i < 1024; i++) own[i] = (float)(i ^ x);
  for (int p = 0; p < passes; p++)
    for (int i = 1; i < n; i++) own[i] += own[i - 1] * 0.5f;
  float s = 0;
  for (int i = 0; i < n; i += 3) s += own[i];
  out[self()] = s;
}

__global__ void turned_over(float *out, const uint32_t *in, int times) { // L1 holds it
  float own[96];
  uint32_t x = in[self()] & 15;
  int n = 96 - (int)x;
  for (int i = 0; i < 96; i++) own[i] = (float)(i + x);
  for (int t = 0; t < times; t++)
    for (int i = 0; i < n / 2; i++) {
      float a = own[i];
      own[i] = own[n - 1 - i], own[n - 1 - i] = a + 1;
    }
  float s = 0;
  for (int i = 0; i < n; i++) s += own[i];
  out[self()] = s;
}

template <int N> __device__ __forceinline__ float scattered_adds(uint32_t x, int rounds) {
  float own[N], s = 0;
  for (int i = 0; i < N; i++) own[i] = (float)i;
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    own[(x >> 16) % N] += (float)r;
  }
  for (int i = 0; i < N; i++) s += own[i];
  return s;
}

__global__ void scattered_in_l1(float *out, const uint32_t *in, int rounds) {
  out[self()] = scattered_adds<256>(in[self()], rounds);
}

__global__ void scattered_beyond_l1(float *out, const uint32_t *in, int rounds) {
  out[self()] = scattered_adds<256>(in[self()], rounds);
}

__global__ void scattered_in_waves(float *out, const uint32_t *in, int rounds) {
  out[self()] = scattered_adds<64>(in[self()], rounds);
}

__global__ void scattered_reads(float *out, const uint32_t *in, int rounds) { // written once, read at random
  float own[512], s = 0;
  uint32_t x = in[self()];
  for (int i = 0; i < 512; i++) own[i] = (float)(i ^ x);
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    s += own[x >> 23];
  }
  out[self()] = s;
}

__global__ void together_at_random(float *out, const uint32_t *in, int rounds) { // all lanes at the same index
  float own[400], s = 0;
  uint32_t x = in[blockIdx.x];
  for (int i = 0; i < 400; i++) own[i] = (float)(i + threadIdx.x);
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    own[(x >> 16) % 400] += s;
    s += own[(x >> 8) % 400];
  }
  out[self()] = s;
}

__global__ void stack_of_nodes(int *out, const int *node, int n) {
  int stack[64], top = 0, sum = 0;
  stack[top++] = self() % n;
  for (int i = 0; i < 96 && top > 0; i++) {
    int at = stack[--top], v = node[at];
    sum += at;
    if (v > at % 7 && top < 62) stack[top++] = v % n, stack[top++] = (v * 3 + 1) % n;
  }
  out[self()] = sum;
}

__global__ void bytes_of_a_lane(uint32_t *out, const uint32_t *in, int rounds) {
  uint8_t own[256];
  uint32_t x = in[self()], s = 0;
  for (int i = 0; i < 256; i++) own[i] = 0;
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    own[x >> 24]++;
  }
  for (int i = 0; i < 256; i++) s = s * 31 + own[i];
  out[self()] = s;
}

__global__ void fours_of_a_lane(float4 *out, const uint32_t *in, int rounds) {
  float4 own[64], s = {0, 0, 0, 0};
  uint32_t x = in[self()];
  for (int i = 0; i < 64; i++) own[i] = {(float)i, 1, 2, 3};
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    float4 v = own[x >> 26];
    s.x += v.x, s.y += v.y, s.z += v.z, s.w += v.w;
    own[(x >> 20) & 63] = s;
  }
  out[self()] = s;
}

__global__ void own_elimination(double *out, const uint32_t *in, int n) { // a matrix of its own a thread
  double a[16][17];
  for (int i = 0; i < n; i++)
    for (int j = 0; j <= n; j++) a[i][j] = (double)(mix(in[self()] + i * 17 + j) % 1000) + (i == j ? 5000 : 0);
  for (int k = 0; k < n; k++)
    for (int i = k + 1; i < n; i++) {
      double f = a[i][k] / a[k][k];
      for (int j = k; j <= n; j++) a[i][j] -= f * a[k][j];
    }
  out[self()] = a[n - 1][n] / a[n - 1][n - 1];
}

// 72 values that are all needed in each round, in 32 registers.
__device__ __forceinline__ float many_values(float first, int rounds) {
  float v[72], s = 0;
#pragma unroll
  for (int i = 0; i < 72; i++) v[i] = first + i;
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 72; i++) v[i] = v[i] * 0.99f + v[(i + 7) % 72];
#pragma unroll
  for (int i = 0; i < 72; i++) s += v[i];
  return s;
}

__global__ void __launch_bounds__(1024, 2) spilled_by_all(float *out, int rounds) {
  out[self()] = many_values(out[self()], rounds);
}

__global__ void __launch_bounds__(1024, 2) spilled_by_few(float *out, int rounds) {
  out[self()] = many_values(out[self()], rounds);
}

__device__ __noinline__ int walk(const int *node, int at, int depth) {
  if (depth == 0) return at;
  int a = walk(node, node[at] % 4096, depth - 1);
  return a + walk(node, (at + a) % 4096, depth - 2 > 0 ? depth - 2 : 0);
}

__global__ void calls_itself(int *out, const int *node, int depth) {
  out[self()] = walk(node, self() % 4096, depth);
}

int main() {
  const int n = 1 << 20;
  float *out = array<float>(n);
  uint32_t *in = filled<uint32_t>(n, 1u << 30);
  int *node = filled<int>(65536, 65536);
  cudaDeviceSetLimit(cudaLimitStackSize, 4096);
  LAUNCH(written_once, 528, 256, out, in, 500);
  LAUNCH(passes_of_4_kib, 264, 256, out, in, 2);
  LAUNCH(turned_over, 132, 128, out, in, 20);
  LAUNCH(scattered_in_l1, 132, 128, out, in, 200);
  LAUNCH(scattered_beyond_l1, 1056, 128, out, in, 60);
  LAUNCH(scattered_in_waves, 4096, 128, out, in, 30);
  LAUNCH(scattered_reads, 528, 128, out, in, 200);
  LAUNCH(together_at_random, 1056, 128, out, in, 100);
  LAUNCH(stack_of_nodes, 528, 256, (int *)out, node, 65536);
  LAUNCH(bytes_of_a_lane, 264, 256, (uint32_t *)out, in, 200);
  LAUNCH(fours_of_a_lane, 264, 128, (float4 *)out, in, 100);
  LAUNCH(own_elimination, 132, 64, (double *)out, in, 16);
  LAUNCH(spilled_by_all, 264, 1024, out, 20);
  LAUNCH(spilled_by_few, 132, 256, out, 40);
  LAUNCH(calls_itself, 264, 128, (int *)out, node, 10);
  return done();
}
