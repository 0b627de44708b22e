// The mean of each cell's neighbours on a ring of rings: indices wrap around by remainders.
#include "check.h"

enum { WIDTH = 2048, HEIGHT = 1024 };

__device__ int wrap(int i, int n) {
  return (i + n) % n;
}

__global__ void smooth(float *y, const float *x, int width, int height) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y;
  if (c >= width) return;
  float up = x[wrap(r - 1, height) * width + c], down = x[wrap(r + 1, height) * width + c];
  float left = x[r * width + wrap(c - 1, width)], right = x[r * width + wrap(c + 1, width)];
  y[r * width + c] = 0.25f * (up + down + left + right);
}

int main(void) {
  size_t n = (size_t)WIDTH * HEIGHT, wrong = 0;
  float *h = random_floats(n), *x = (float *)to_device(h, n * sizeof *x),
        *y = (float *)device_room(n * sizeof *y);
  smooth<<<dim3(WIDTH / 256, HEIGHT), 256>>>(y, x, WIDTH, HEIGHT);
  float *s = (float *)to_host(y, n * sizeof *s);
  for (size_t r = 0; r < HEIGHT; r++)
    for (size_t c = 0; c < WIDTH; c++) {
      float up = h[(r + HEIGHT - 1) % HEIGHT * WIDTH + c], down = h[(r + 1) % HEIGHT * WIDTH + c];
      float left = h[r * WIDTH + (c + WIDTH - 1) % WIDTH], right = h[r * WIDTH + (c + 1) % WIDTH];
      wrong += s[r * WIDTH + c] != 0.25f * (up + down + left + right);
    }
  return verdict(wrong, n);
}
