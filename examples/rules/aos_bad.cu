// A particle is a structure of 8 floats and the kernel reads two of them: the sectors of all eight are moved.
#include "check.h"

enum { N = 1 << 20 };

struct Particle {
  float x, y, z, mass, vx, vy, vz, charge;
};

__global__ void energy(float *out, const Particle *p) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = p[i].mass * p[i].vx;
}

int main(void) {
  float *h = random_floats(8 * N), *out = (float *)device_room(N * sizeof *out);
  Particle *p = (Particle *)to_device(h, N * sizeof *p);
  energy<<<N / 256, 256>>>(out, p);
  float *r = (float *)to_host(out, N * sizeof *r);
  size_t wrong = 0;
  for (size_t i = 0; i < N; i++) wrong += r[i] != h[8 * i + 3] * h[8 * i + 4];
  return verdict(wrong, N);
}
