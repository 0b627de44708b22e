// Each field is a separate array: the kernel reads the two it needs, adjacent lanes adjacent floats.
#include "check.h"

enum { N = 1 << 20 };

struct Particles {
  const float *x, *y, *z, *mass, *vx, *vy, *vz, *charge;
};

__global__ void energy(float *out, Particles p) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = p.mass[i] * p.vx[i];
}

int main(void) {
  float *h = random_floats(8 * N), *out = (float *)device_room(N * sizeof *out);
  const float *all = (const float *)to_device(h, 8 * N * sizeof *h);
  Particles p = {all, all + N, all + 2 * N, all + 3 * N, all + 4 * N, all + 5 * N, all + 6 * N, all + 7 * N};
  energy<<<N / 256, 256>>>(out, p);
  float *r = (float *)to_host(out, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != h[3 * N + i] * h[4 * N + i];
  return verdict(wrong, N);
}
