// The largest value of each row is found by one thread, while the 255 others of its block wait.
#include "check.h"

enum { ROWS = 528, COLUMNS = 1024, BLOCK = 256 };

__global__ void subtract_largest(float *y, const float *x) {
  const float *row = x + (size_t)blockIdx.x * COLUMNS;
  __shared__ float largest;
  if (threadIdx.x == 0) {
    float m = row[0];
    for (int i = 1; i < COLUMNS; i++) m = fmaxf(m, row[i]);
    largest = m;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < COLUMNS; i += BLOCK) y[(size_t)blockIdx.x * COLUMNS + i] = row[i] - largest;
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
