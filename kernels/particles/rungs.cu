// position += velocity * dt: the same arithmetic on two layouts of the same numbers.
#include "particles/rungs.h"
#include "common.cuh"

typedef struct Particle {
  float x, y, z, vx, vy, vz;
} Particle;

// Array of structures: neighbouring threads read the same field 24 bytes apart.
KERNEL particles_rung_structures(const __grid_constant__ ParticlesRung p) {
  uint64_t i = thread_index();
  if (i >= p.n) return;
  Particle *at = (Particle *)p.particles + i;
  at->x += at->vx * p.dt;
  at->y += at->vy * p.dt;
  at->z += at->vz * p.dt;
}

// Structure of arrays: neighbouring threads read neighbouring words, and velocities are never written.
KERNEL particles_rung_arrays(const __grid_constant__ ParticlesRung p) {
  uint64_t i = thread_index();
  if (i >= p.n) return;
  float *position = p.particles + i, *velocity = position + 3 * p.stride;
  float at[3], v[3];
#pragma unroll
  for (int axis = 0; axis < 3; axis++) at[axis] = position[axis * p.stride], v[axis] = velocity[axis * p.stride];
#pragma unroll
  for (int axis = 0; axis < 3; axis++) position[axis * p.stride] = at[axis] + v[axis] * p.dt;
}

INLINE float4 moved(float4 at, float4 v, float dt) {
  return make_float4(at.x + v.x * dt, at.y + v.y * dt, at.z + v.z * dt, at.w + v.w * dt);
}

// Four particles a thread: their coordinates are 16 bytes in a row.
KERNEL particles_rung_vectorised(const __grid_constant__ ParticlesRung p) {
  uint64_t i = thread_index() * 4;
  if (i >= p.n) return;
  float *position = p.particles + i, *velocity = position + 3 * p.stride;
  if (i + 4 > p.n) { // the last few
    for (int axis = 0; axis < 3; axis++)
      for (uint64_t j = 0; j < p.n - i; j++)
        position[axis * p.stride + j] += velocity[axis * p.stride + j] * p.dt;
    return;
  }
  float4 at[3], v[3];
#pragma unroll
  for (int axis = 0; axis < 3; axis++) {
    at[axis] = *(const float4 *)(position + axis * p.stride);
    v[axis] = *(const float4 *)(velocity + axis * p.stride);
  }
#pragma unroll
  for (int axis = 0; axis < 3; axis++) *(float4 *)(position + axis * p.stride) = moved(at[axis], v[axis], p.dt);
}
