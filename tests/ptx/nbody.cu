//! alloc bodies 150*16 random-f32
//! alloc force 150*16 poison
//! alloc errors 32 zero
//! launch nbody grid=3 block=64 args=bodies,force,i32:150
//! launch nbody_check grid=3 block=64 args=bodies,force,i32:150,errors
//! checks 450
// Gravity among all pairs, tiles of bodies in shared memory; rsqrt, float4.
#include "check.cuh"

extern "C" __global__ void nbody(const float4 *bodies, float4 *force, int n) {
  __shared__ float4 tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = i < n ? bodies[i] : make_float4(0, 0, 0, 0);
  float x = 0, y = 0, z = 0;
  for (int base = 0; base < n; base += 64) {
    __syncthreads();
    if (base + threadIdx.x < n) tile[threadIdx.x] = bodies[base + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < min(64, n - base); k++) {
      float4 other = tile[k];
      float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float pull = other.w * inverse * inverse * inverse;
      x += dx * pull, y += dy * pull, z += dz * pull;
    }
  }
  if (i < n) force[i] = make_float4(x, y, z, 0);
}

extern "C" __global__ void nbody_check(const float4 *bodies, const float4 *force, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double x = 0, y = 0, z = 0, scale = 0;
  for (int k = 0; k < n; k++) {
    double dx = (double)bodies[k].x - bodies[i].x, dy = (double)bodies[k].y - bodies[i].y;
    double dz = (double)bodies[k].z - bodies[i].z, square = dx * dx + dy * dy + dz * dz + 0.01;
    double pull = bodies[k].w / (square * sqrt(square));
    x += dx * pull, y += dy * pull, z += dz * pull;
    scale += fabs(pull); // what cancels still leaves its rounding behind
  }
  EXPECT_NEAR(i, force[i].x, x, 0, 1e-5 * scale);
  EXPECT_NEAR(i, force[i].y, y, 0, 1e-5 * scale);
  EXPECT_NEAR(i, force[i].z, z, 0, 1e-5 * scale);
}
