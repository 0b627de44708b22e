// position += velocity * dt, in place
#include "particles.h"

#include "elementwise.cuh"

INLINE float moved(float position, float velocity, float dt) { return __fmaf_rn(velocity, dt, position); }

// Structure of arrays: three long rows, or one where they are dense.
KERNEL __launch_bounds__(256) sol_particles_arrays(ParticlesParams p) {
  Chunk c;
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.position, p.stride, 4, 4, &c)) return;
  float *position = p.position + (int64_t)c.row * p.stride;
  const float *velocity = p.velocity + (int64_t)c.row * p.stride;
  if (c.full) {
    float4 at = *(const float4 *)(position + c.first);
    Raw v;
    load_words((const char *)(velocity + c.first), (const char *)velocity, (const char *)(velocity + p.spread.length), 4, 4, 1, v.w);
    at.x = moved(at.x, __uint_as_float(v.w[0]), p.dt);
    at.y = moved(at.y, __uint_as_float(v.w[1]), p.dt);
    at.z = moved(at.z, __uint_as_float(v.w[2]), p.dt);
    at.w = moved(at.w, __uint_as_float(v.w[3]), p.dt);
    *(float4 *)(position + c.first) = at;
    return;
  }
  Raw at, v;
  load_some(position, c.first, p.spread.length, 4, 4, &at);
  load_some(velocity, c.first, p.spread.length, 4, 4, &v);
#pragma unroll
  for (int j = 0; j < 4; j++)
    at.w[j] = __float_as_uint(moved(__uint_as_float(at.w[j]), __uint_as_float(v.w[j]), p.dt));
  store_words_some(position, c.first, p.spread.length, 4, 4, at.w);
}

// Array of structures: two particles are three vectors, {x y z vx} {vy vz x y} {z vx vy vz}. Each lane moves the
// positions in its own, with velocities out of it and its neighbour's; the vectors are read and written whole.
KERNEL __launch_bounds__(256) sol_particles_structures(ParticlesParams p) {
  uint64_t warp = thread_index() / 32, lane = threadIdx.x % 32, i = warp * PARTICLES_LANES + lane;
  uint64_t whole = p.n / 2 * 3; // vectors of whole pairs
  float4 *at = (float4 *)p.position + i, v = make_float4(0, 0, 0, 0);
  begin_kernel();
  bool mine = lane < PARTICLES_LANES && i < whole;
  if (mine) v = *at;
  float x = __shfl_down_sync(~0u, v.x, 1), y = __shfl_down_sync(~0u, v.y, 1), z = __shfl_down_sync(~0u, v.z, 1);
  if (mine) {
    if (lane % 3 == 0) {
      v.x = moved(v.x, v.w, p.dt);
      v.y = moved(v.y, x, p.dt);
      v.z = moved(v.z, y, p.dt);
    } else if (lane % 3 == 1) {
      v.z = moved(v.z, y, p.dt);
      v.w = moved(v.w, z, p.dt);
    } else {
      v.x = moved(v.x, v.w, p.dt);
    }
    *at = v;
  } else if (lane < PARTICLES_LANES && i == whole && p.n % 2) { // the last one alone
    float *last = p.position + (p.n - 1) * 6;
    for (int k = 0; k < 3; k++) last[k] = moved(last[k], last[k + 3], p.dt);
  }
}

// Anywhere: one number a thread.
KERNEL __launch_bounds__(256) sol_particles_structures_narrow(ParticlesParams p) {
  uint64_t i = thread_index(), row, k;
  begin_kernel();
  if (i >= p.n * 3) return;
  split(i, 3, &row, &k);
  float *at = p.position + row * 6 + k;
  *at = moved(at[0], at[3], p.dt);
}
