// A tile 32 floats wide is read by columns: all 32 lanes access one bank.
#include "check.h"

enum { SIDE = 2048, TILE = 32, PITCH = TILE };

__global__ void transpose(float *y, const float *x) {
  __shared__ float tile[TILE][PITCH];
  int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(size_t)(row + k) * SIDE + col];
  __syncthreads();
  col = blockIdx.y * TILE + threadIdx.x, row = blockIdx.x * TILE + threadIdx.y;
  for (int k = 0; k < TILE; k += 8) y[(size_t)(row + k) * SIDE + col] = tile[threadIdx.x][threadIdx.y + k];
}

int main(void) {
  size_t n = (size_t)SIDE * SIDE;
  float *h = random_floats(n), *x = (float *)to_device(h, n * sizeof *x),
        *y = (float *)device_room(n * sizeof *y);
  transpose<<<dim3(SIDE / TILE, SIDE / TILE), dim3(TILE, 8)>>>(y, x);
  float *r = (float *)to_host(y, n * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) wrong += r[i] != h[i % SIDE * SIDE + i / SIDE];
  return verdict(wrong, n);
}
