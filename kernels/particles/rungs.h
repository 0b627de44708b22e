// What the rungs of the particles are launched with.
#ifndef SOL_KERNELS_PARTICLES_RUNGS_H
#define SOL_KERNELS_PARTICLES_RUNGS_H
#include <stdint.h>

// Structures: {x y z vx vy vz} n times. Arrays: x, y, z, vx, vy, vz, each n long and `stride` after the last one.
typedef struct ParticlesRung {
  float *particles;
  uint64_t n, stride; // stride: a multiple of 4
  float dt;
} ParticlesRung;

#endif
