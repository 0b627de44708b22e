#ifndef SOL_KERNELS_PARTICLES_H
#define SOL_KERNELS_PARTICLES_H

#include "../elementwise.h"

typedef struct ParticlesParams {
  float *position;
  const float *velocity; // array of structures: unused
  Spread spread;         // arrays alone
  int64_t stride;        // from axis to axis
  uint64_t n;            // structures: particles
  int32_t flat;
  float dt;
} ParticlesParams;

// Structures: a warp takes whole pairs of particles, each three accesses of 16 bytes; two of its lanes stay idle.
enum { PARTICLES_LANES = 30 };

#endif
