// 64 floats are kept by each thread and indexed by a variable: they cannot be kept in registers.
#include "check.h"

enum { N = 1 << 16, DEPTH = 64, ROUNDS = 3 };

__global__ void mirror(float *y, const float *x, int depth) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  float v[DEPTH];
  for (int k = 0; k < depth; k++) v[k] = x[(size_t)k * N + i];
  for (int r = 0; r < ROUNDS; r++)
    for (int k = 0; k < depth / 2; k++) v[k] += v[depth - 1 - k];
  for (int k = 0; k < depth; k++) y[(size_t)k * N + i] = v[k];
}

int main(void) {
  size_t n = (size_t)N * DEPTH;
  float *h = random_floats(n), *x = (float *)to_device(h, n * sizeof *x),
        *y = (float *)device_room(n * sizeof *y);
  mirror<<<N / 128, 128>>>(y, x, DEPTH);
  float *r = (float *)to_host(y, n * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) {
    float v = h[i];
    for (int k = 0; k < ROUNDS && i < n / 2; k++) v += h[(DEPTH - 1 - i / N) * N + i % N];
    wrong += r[i] != v;
  }
  return verdict(wrong, n);
}
