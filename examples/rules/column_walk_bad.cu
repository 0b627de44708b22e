// x is (ROWS, COLS), row by row. Adjacent threads are adjacent rows: their addresses are a whole row apart.
#include "check.h"

enum { ROWS = 2048, COLS = 1024 };

__global__ void add_bias(float *y, const float *x, const float *bias) {
  int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y;
  y[(size_t)row * COLS + col] = x[(size_t)row * COLS + col] + bias[col];
}

int main(void) {
  size_t n = (size_t)ROWS * COLS;
  float *h = random_floats(n), *x = (float *)to_device(h, n * sizeof *x),
        *y = (float *)device_room(n * sizeof *y);
  add_bias<<<dim3(ROWS / 256, COLS), 256>>>(y, x, x); // the first row serves as the bias
  float *r = (float *)to_host(y, n * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < n; i++) wrong += r[i] != h[i] + h[i % COLS];
  return verdict(wrong, n);
}
