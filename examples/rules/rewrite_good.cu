// A sum kept in a register and stored once.
#include "check.h"

enum { M = 512, N = 1024, K = 256 };

__global__ void multiply(float *c, const float *a, const float *b) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < K; k++) sum += a[row * K + k] * b[k * N + col];
  c[row * N + col] = sum;
}

int main(void) {
  float *a = random_floats(M * K), *b = random_floats(K * N);
  float *da = (float *)to_device(a, M * K * sizeof *a), *db = (float *)to_device(b, K * N * sizeof *b);
  float *dc = (float *)device_room(M * N * sizeof *dc);
  multiply<<<dim3(N / 32, M / 8), dim3(32, 8)>>>(dc, da, db);
  float *c = (float *)to_host(dc, M * N * sizeof *c);
  size_t wrong = 0;
  for (size_t i = 0; i < M * N; i += 101) {
    double sum = 0;
    for (size_t k = 0; k < K; k++) sum += (double)a[i / N * K + k] * b[k * N + i % N];
    wrong += c[i] < sum * 0.9999 || c[i] > sum * 1.0001;
  }
  return verdict(wrong, (M * N + 100) / 101);
}
