// What the examples share: an error ends the program, input is the same in every run, the verdict is its exit
// code.
#ifndef SOL_EXAMPLES_RULES_CHECK_H
#define SOL_EXAMPLES_RULES_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CUDA(call)                                                                                           \
  do {                                                                                                       \
    cudaError_t error_ = (call);                                                                             \
    if (error_ != cudaSuccess) {                                                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error_));                        \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

static inline void *host_room(size_t bytes) {
  void *p = malloc(bytes);
  if (!p) exit(1);
  return p;
}

static inline void *device_room(size_t bytes) {
  void *p;
  CUDA(cudaMalloc(&p, bytes));
  return p;
}

static inline void *to_device(const void *host, size_t bytes) {
  void *p = device_room(bytes);
  CUDA(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
  return p;
}

static inline void *to_host(const void *device, size_t bytes) {
  void *p = host_room(bytes);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(p, device, bytes, cudaMemcpyDeviceToHost));
  return p;
}

// Between 0 and 2^24 - 1, spread evenly.
static inline unsigned random_below_2_24(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

// Values in [0, 1) that need all 24 bits of a float.
static inline float *random_floats(size_t n) {
  float *p = (float *)host_room(n * sizeof *p);
  unsigned state = 1;
  for (size_t i = 0; i < n; i++) p[i] = (float)random_below_2_24(&state) / 16777216.0f;
  return p;
}

static inline int verdict(size_t wrong, size_t of) {
  if (wrong)
    printf("%zu of %zu values are wrong\n", wrong, of);
  else
    printf("%zu values are right\n", of);
  return wrong != 0;
}

#endif
