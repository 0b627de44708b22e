// Eight properties of a vertex in eight arrays: each 4-byte value of a random vertex costs a sector of its
// own.
#include "check.h"

enum { VERTICES = 1 << 21, PICKS = 1 << 17, WIDTH = 8 };

__global__ void pick(float *out, const float *table, const int *index) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = blockIdx.y;
  out[(size_t)k * PICKS + i] = table[(size_t)k * VERTICES + index[i]];
}

int main(void) {
  size_t n = (size_t)VERTICES * WIDTH, m = (size_t)PICKS * WIDTH;
  float *h = random_floats(n), *table = (float *)to_device(h, n * sizeof *h);
  int *indices = (int *)host_room(PICKS * sizeof *indices);
  unsigned state = 2;
  for (int i = 0; i < PICKS; i++) indices[i] = (int)(random_below_2_24(&state) % VERTICES);
  int *index = (int *)to_device(indices, PICKS * sizeof *index);
  float *out = (float *)device_room(m * sizeof *out);
  pick<<<dim3(PICKS / 256, WIDTH), 256>>>(out, table, index);
  float *r = (float *)to_host(out, m * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < m; i++) wrong += r[i] != h[i / PICKS * VERTICES + indices[i % PICKS]];
  return verdict(wrong, m);
}
