// The first CUDA program of everyone: allocate, copy, launch, copy back, compare.
#include "check.h"

__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

struct Pair {
  char tag;
  double value;
};
template <typename T> __global__ void pack(T *out, Pair p, short s, const T *__restrict__ in, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i] * (T)p.value + (T)s + (T)p.tag;
}

int main() {
  const int n = 50000;
  size_t bytes = n * sizeof(float);
  float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes);
  for (int i = 0; i < n; i++) a[i] = rand() / (float)RAND_MAX, b[i] = rand() / (float)RAND_MAX;
  float *da = nullptr, *db = nullptr, *dc = nullptr;
  OK(cudaMalloc(&da, bytes));
  OK(cudaMalloc(&db, bytes));
  OK(cudaMalloc(&dc, bytes));
  OK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(db, b, bytes, cudaMemcpyDefault));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  OK(cudaGetLastError());
  OK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
  int bad = 0;
  for (int i = 0; i < n; i++) bad += c[i] != a[i] + b[i];
  CHECK(bad == 0);

  // Parameters of several sizes, padded as structures are.
  double *x, *y, hx[100], hy[100];
  for (int i = 0; i < 100; i++) hx[i] = i;
  OK(cudaMalloc(&x, sizeof hx));
  OK(cudaMalloc(&y, sizeof hy));
  OK(cudaMemcpy(x, hx, sizeof hx, cudaMemcpyHostToDevice));
  Pair p = {3, 0.5};
  pack<double><<<1, 32>>>(y, p, (short)-7, x, 100);
  OK(cudaMemcpy(hy, y, sizeof hy, cudaMemcpyDeviceToHost));
  CHECK(hy[99] == 99 * 0.5 - 7 + 3);

  // The same launch by hand.
  int hundred = 100;
  short s = 1;
  void *args[] = {&y, &p, &s, &x, &hundred};
  OK(cudaLaunchKernel((const void *)pack<double>, dim3(1), dim3(64), args, 0, 0));
  OK(cudaMemcpy(hy, y, sizeof hy, cudaMemcpyDeviceToHost));
  CHECK(hy[10] == 10 * 0.5 + 1 + 3);
  OK(cudaFree(da));
  OK(cudaFree(nullptr));
  printf("%s\n", failures ? "FAILED" : "PASSED");
  return failures != 0; // the rest of the memory is never freed, as in many programs
}
