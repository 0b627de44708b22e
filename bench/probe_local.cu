// Local memory: what a store and a load of a thread's own array cost an SM, by the size of all arrays that an SM has, lanes together (one
// index for all, 4 sectors) and apart (each its own, 32 sectors).
// usage: probe_local > local.json; nvcc -O3 -arch=sm_90a bench/probe_local.cu. With ncu, -k regex:walk shows what reaches L2 and DRAM.
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

enum Mode { STORES, LOADS, BOTH };

// N words a thread. In each round a store, a load, or both; at the same index for all lanes of a warp, or at one of each lane's own.
template <int N, int Mode, bool Apart> __global__ void walk(float *out, const uint32_t *in, int rounds) {
  float own[N], s = 0;
  uint32_t x = Apart ? in[threadIdx.x] + threadIdx.x * 77 : in[0];
  for (int i = 0; i < N; i++) own[i] = (float)(i + x);
  for (int r = 0; r < rounds; r++) {
    x = x * 1664525u + 1013904223u;
    uint32_t at = (x >> 12) % N;
    if (Mode != STORES) s += own[at];
    if (Mode != LOADS) own[(at + (Mode == BOTH ? 1 : 0)) % N] = s + r;
  }
  for (int i = 0; i < N; i++) s += own[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

static float *out;
static uint32_t *in;
static bool first = true;

template <int N, int Mode, bool Apart> static float time_of(int blocks, int threads, int rounds) {
  cudaEvent_t from, to;
  cudaEventCreate(&from), cudaEventCreate(&to);
  float best = 1e9f;
  for (int t = 0; t < 4; t++) {
    cudaEventRecord(from);
    walk<N, Mode, Apart><<<blocks, threads>>>(out, in, rounds);
    cudaEventRecord(to), cudaEventSynchronize(to);
    float ms = 0;
    cudaEventElapsedTime(&ms, from, to);
    if (t && ms < best) best = ms;
  }
  return best * 1e3f;
}

template <int N, int Mode, bool Apart> static void show(int threads) {
  int few = 40, many = 240, blocks = 132 * (threads > 1024 ? threads / 1024 : 1), each = threads > 1024 ? 1024 : threads;
  float a = time_of<N, Mode, Apart>(blocks, each, few), b = time_of<N, Mode, Apart>(blocks, each, many);
  double warps = threads / 32;
  printf("%s{\"words\": %d, \"threads\": %d, \"kib\": %.0f, \"mode\": \"%s\", \"apart\": %d, \"few_us\": %.2f, \"many_us\": %.2f, \"clocks\": %.2f}",
         first ? "" : ",\n", N, threads, N * 4.0 * threads / 1024, Mode == STORES ? "stores" : Mode == LOADS ? "loads" : "both", Apart, a, b,
         (b - a) * 1980.0 / (many - few) / warps);
  first = false;
}

template <int N> static void modes(int threads) {
  show<N, STORES, false>(threads), show<N, LOADS, false>(threads), show<N, BOTH, false>(threads);
  show<N, STORES, true>(threads), show<N, LOADS, true>(threads), show<N, BOTH, true>(threads);
}

int main() {
  cudaMalloc(&out, 132 * 2048 * 4), cudaMalloc(&in, 4096);
  cudaMemset(in, 1, 4096);
  printf("[");
  modes<64>(128), modes<64>(512), modes<64>(2048);
  modes<256>(128), modes<256>(512), modes<256>(2048);
  modes<1024>(128), modes<1024>(512), modes<1024>(2048);
  printf("]\n");
  return cudaGetLastError() != cudaSuccess;
}
