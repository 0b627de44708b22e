// What the programs that check cuBLAS's stand-in against plain loops share. With NVIDIA's headers, so that the signatures are
// checked too.
#ifndef SOL_TESTS_BLAS_CHECK_HPP
#define SOL_TESTS_BLAS_CHECK_HPP

#include <cublasLt.h>
#include <cublasXt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static int wrong, checks; // a program is one file
static void expect(bool fine, const char *what) {
  checks++;
  if (fine) return;
  if (wrong++ < 20) printf("wrong: %s\n", what);
}
#define OK(call) expect((call) == CUBLAS_STATUS_SUCCESS, #call)
#define IS(call, want) expect((call) == (want), #call)

typedef std::complex<double> Z;
typedef std::complex<float> C;
static unsigned long long state = 1;
static double next() { // -1 to 1, in eighths: products and sums of them are exact in float
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (double)((long)(state >> 60) - 8) / 8;
}
static void fill(float &x) { x = (float)next(); }
static void fill(double &x) { x = next(); }
static void fill(C &x) { x = C((float)next(), (float)next()); }
static void fill(Z &x) { x = Z(next(), next()); }

template <class T> struct Device { // memory of the device, and what should be in it
  std::vector<T> host;
  T *at = nullptr;
  explicit Device(size_t n) : host(n) {
    for (T &x : host) fill(x);
    cudaMalloc((void **)&at, n * sizeof(T));
    put();
  }
  ~Device() { cudaFree(at); }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  void put() { cudaMemcpy(at, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice); }
  bool same(double tolerance = 0) const {
    std::vector<T> got(host.size());
    cudaMemcpy(got.data(), at, host.size() * sizeof(T), cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < got.size(); i++)
      if (!(std::abs(got[i] - host[i]) <= tolerance)) return false;
    return true;
  }
};

static double conj_of(double x) { return x; }
static float conj_of(float x) { return x; }
static C conj_of(C x) { return std::conj(x); }
static Z conj_of(Z x) { return std::conj(x); }

template <class T> T element(const std::vector<T> &a, int lead, cublasOperation_t op, int i, int j) {
  T x = op == CUBLAS_OP_N ? a[(size_t)(i + j * lead)] : a[(size_t)(j + i * lead)];
  return op == CUBLAS_OP_C ? conj_of(x) : x;
}

#endif
