// For the programs here: each is an ordinary CUDA program that checks itself and exits with 0.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

static int failures;
#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      printf("%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #condition);                                          \
      failures++;                                                                                            \
    }                                                                                                        \
  } while (0)
#define OK(call)                                                                                             \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_ != cudaSuccess) {                                                                                 \
      printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(e_));                            \
      failures++;                                                                                            \
    }                                                                                                        \
  } while (0)
#define IS(call, error)                                                                                      \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_ != (error)) {                                                                                     \
      printf("%s:%d: %s is %s, expected %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(e_), #error);     \
      failures++;                                                                                            \
    }                                                                                                        \
    cudaGetLastError();                                                                                      \
  } while (0)
