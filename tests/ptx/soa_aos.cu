//! alloc points 1009*28 random-u32
//! alloc fields 7*1009*4 poison
//! alloc back 1009*28 poison
//! alloc errors 32 zero
//! launch to_soa grid=8 block=128 args=points,fields,i32:1009
//! launch to_aos grid=8 block=128 args=fields,back,i32:1009
//! launch soa_check grid=28 block=256 args=points,fields,back,i32:1009,errors
//! checks 14126
// Array of structures (28 bytes each) to structure of arrays and back.
#include "check.cuh"

struct Point {
  float position[3];
  float velocity[3];
  unsigned id;
};

extern "C" __global__ void to_soa(const Point *points, unsigned *fields, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Point p = points[i];
  for (int k = 0; k < 3; k++) {
    fields[k * n + i] = __float_as_uint(p.position[k]);
    fields[(3 + k) * n + i] = __float_as_uint(p.velocity[k]);
  }
  fields[6 * n + i] = p.id;
}

extern "C" __global__ void to_aos(const unsigned *fields, Point *back, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  Point p;
  for (int k = 0; k < 3; k++) {
    p.position[k] = __uint_as_float(fields[k * n + i]);
    p.velocity[k] = __uint_as_float(fields[(3 + k) * n + i]);
  }
  p.id = fields[6 * n + i];
  back[i] = p;
}

extern "C" __global__ void soa_check(const unsigned *points, const unsigned *fields, const unsigned *back,
                                     int n, unsigned *errors) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= 7 * n) return;
  EXPECT_EQ(j, back[j], points[j]);
  EXPECT_EQ(j, fields[j % 7 * n + j / 7], points[j]);
}
