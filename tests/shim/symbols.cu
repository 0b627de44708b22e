// Constant and device variables: written, read, addressed, initialised.
#include "check.h"

__constant__ float weights[8] = {1, 2, 3};
__constant__ struct {
  int a;
  double b;
} both;
__device__ int total = 40;
__device__ int grid_sum[4];
static __device__ int hidden = 3;

__global__ void use(float *out) {
  out[threadIdx.x] = weights[threadIdx.x] * both.a + (float)both.b;
  if (threadIdx.x == 0) total += 2, hidden++;
  grid_sum[threadIdx.x % 4] = hidden;
}

int main() {
  float w[8], *out, h[8];
  OK(cudaMemcpyFromSymbol(w, weights, sizeof w));
  CHECK(w[0] == 1 && w[2] == 3 && w[3] == 0);
  for (int i = 0; i < 8; i++) w[i] = i + 0.5f;
  OK(cudaMemcpyToSymbol(weights, w, sizeof w));
  OK(cudaMemcpyToSymbol(weights, w + 7, sizeof(float), 2 * sizeof(float)));
  int a = 2;
  double b = 0.25;
  OK(cudaMemcpyToSymbol(both, &a, sizeof a));
  OK(cudaMemcpyToSymbolAsync(both, &b, sizeof b, 8, cudaMemcpyHostToDevice, 0));
  OK(cudaMalloc(&out, sizeof h));
  use<<<1, 8>>>(out);
  OK(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 1.25f && h[2] == 15.25f && h[7] == 15.25f);
  int t = 0;
  OK(cudaMemcpyFromSymbol(&t, total, sizeof t));
  CHECK(t == 42);
  void *p = nullptr;
  size_t size = 0;
  OK(cudaGetSymbolAddress(&p, grid_sum));
  OK(cudaGetSymbolSize(&size, grid_sum));
  CHECK(size == 16);
  int g[4] = {};
  OK(cudaMemcpy(g, p, sizeof g, cudaMemcpyDeviceToHost));
  CHECK(g[0] == 4 || g[0] == 3);
  OK(cudaMemset(p, 0xff, size));
  OK(cudaMemcpyFromSymbol(g, grid_sum, sizeof g));
  CHECK(g[3] == -1);
  IS(cudaMemcpyToSymbol(weights, w, sizeof w + 4), cudaErrorInvalidValue);
  int not_a_symbol = 0;
  IS(cudaMemcpyToSymbol(not_a_symbol, w, 4), cudaErrorInvalidSymbol);
  IS(cudaFree(p), cudaErrorInvalidValue);
  return failures != 0;
}
