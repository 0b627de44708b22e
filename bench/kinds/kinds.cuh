// What the programs of this folder share. Each is a set of generic kernels, one mechanism of a GPU each, written before anything was
// measured on them; bench/corpus_kinds.csv lists the programs, bench/corpus_gpu.py measures them and bench/fidelity.py --kinds compares.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

static const int TIMES = 3; // launches of each kernel
#define LAUNCH(kernel, blocks, threads, ...)                                                                 \
  for (int time_ = skipped() ? TIMES : 0; time_ < TIMES; time_++) kernel<<<blocks, threads>>>(__VA_ARGS__)

// KINDS_PART=1/8: of the kernels every eighth, from the second on. A whole program may take the emulator long.
static bool skipped() {
  static int at = 0;
  int part = 0, parts = 1;
  const char *text = getenv("KINDS_PART");
  if (text) sscanf(text, "%d/%d", &part, &parts);
  return at++ % parts != part;
}

__host__ __device__ static inline uint32_t mix(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

__device__ static inline int self() {
  return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

template <typename T> static T *array(size_t count) {
  T *p = nullptr;
  if (cudaMalloc(&p, count * sizeof(T)) != cudaSuccess || cudaMemset(p, 0, count * sizeof(T)) != cudaSuccess) printf("no memory\n");
  return p;
}

// Of what is computed on the host: values in [0, below).
template <typename T> static T *filled(size_t count, uint32_t below, uint32_t seed = 1) {
  T *host = new T[count], *p = array<T>(count);
  for (size_t i = 0; i < count; i++) host[i] = (T)(mix((uint32_t)i * 2u + seed) % below);
  cudaMemcpy(p, host, count * sizeof(T), cudaMemcpyHostToDevice);
  delete[] host;
  return p;
}

// A permutation that is one cycle: a chain through all of it.
static uint32_t *cycle(uint32_t count, uint32_t stride) {
  uint32_t *order = new uint32_t[count], *next = new uint32_t[(size_t)count * stride](), *p = array<uint32_t>((size_t)count * stride);
  for (uint32_t i = 0; i < count; i++) order[i] = i;
  for (uint32_t i = count; i-- > 1;) {
    uint32_t j = mix(i) % (i + 1), t = order[i];
    order[i] = order[j], order[j] = t;
  }
  for (uint32_t i = 0; i < count; i++) next[(size_t)order[i] * stride] = order[(i + 1) % count] * stride;
  cudaMemcpy(p, next, (size_t)count * stride * 4, cudaMemcpyHostToDevice);
  delete[] order;
  delete[] next;
  return p;
}

static int done() {
  cudaError_t e = cudaDeviceSynchronize();
  printf("%s\n", e == cudaSuccess ? "PASS" : cudaGetErrorString(e));
  return e != cudaSuccess;
}
