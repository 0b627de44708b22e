// The same with all threads: each finds the largest of its own elements, warps combine theirs by shuffles.
#include "check.h"

enum { ROWS = 528, COLUMNS = 1024, BLOCK = 256 };

static __device__ float largest_of_warp(float m) {
  for (int apart = 16; apart; apart /= 2) m = fmaxf(m, __shfl_xor_sync(0xffffffff, m, apart));
  return m;
}

__global__ void subtract_largest(float *y, const float *x) {
  const float *row = x + (size_t)blockIdx.x * COLUMNS;
  __shared__ float of_warp[BLOCK / 32];
  float m = row[threadIdx.x];
  for (int i = threadIdx.x + BLOCK; i < COLUMNS; i += BLOCK) m = fmaxf(m, row[i]);
  m = largest_of_warp(m);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m;
  __syncthreads();
  m = largest_of_warp(of_warp[threadIdx.x % (BLOCK / 32)]);
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) y[(size_t)blockIdx.x * COLUMNS + i] = row[i] - m;
}

int main(void) {
  size_t n = (size_t)ROWS * COLUMNS, wrong = 0;
  float *h = random_floats(n), *x = (float *)to_device(h, n * sizeof *x),
        *y = (float *)device_room(n * sizeof *y);
  subtract_largest<<<ROWS, BLOCK>>>(y, x);
  float *r = (float *)to_host(y, n * sizeof *r);
  for (size_t row = 0; row < ROWS; row++) {
    float m = 0;
    for (size_t i = 0; i < COLUMNS; i++) m = h[row * COLUMNS + i] > m ? h[row * COLUMNS + i] : m;
    for (size_t i = 0; i < COLUMNS; i++) wrong += r[row * COLUMNS + i] != h[row * COLUMNS + i] - m;
  }
  return verdict(wrong, n);
}
