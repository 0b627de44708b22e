//! alloc x 640*4 random-u32:1000
//! alloc y 2*640*4 poison
//! alloc errors 32 zero
//! launch shapes grid=5 block=128 args=x,y,i32:640
//! launch shapes_check grid=5 block=128 args=x,y,i32:640,errors
//! checks 1280
// Virtual functions: objects built in place on the device, called through their base; lanes hold different
// classes.
#include "check.cuh"
#include <new>

struct Shape {
  unsigned size;
  __device__ Shape(unsigned s) : size(s) {}
  __device__ virtual unsigned area() const = 0;
  __device__ virtual unsigned corners() const { return 0; }
  __device__ virtual void grow(unsigned by) { size += by; }
};
struct Square : Shape {
  __device__ Square(unsigned s) : Shape(s) {}
  __device__ unsigned area() const override { return size * size; }
  __device__ unsigned corners() const override { return 4; }
};
struct Slab : Shape {
  unsigned width;
  __device__ Slab(unsigned s, unsigned w) : Shape(s), width(w) {}
  __device__ unsigned area() const override { return size * width; }
  __device__ unsigned corners() const override { return 4; }
  __device__ void grow(unsigned by) override { width += 2 * by; }
};
struct Disc : Shape {
  __device__ Disc(unsigned s) : Shape(s) {}
  __device__ unsigned area() const override { return 3 * size * size + size * size / 7; }
};

// Kept from being inlined: the class is not known here.
__device__ __noinline__ unsigned measure(Shape *shape, unsigned by) {
  unsigned before = shape->area();
  shape->grow(by);
  return before + 10 * shape->area() + 1000000 * shape->corners();
}

extern "C" __global__ void shapes(const unsigned *x, unsigned *y, int n) {
  __shared__ __align__(16) unsigned char room[128][sizeof(Slab) + 8];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
  Shape *shape;
  if (v % 3 == 0)
    shape = new (room[threadIdx.x]) Square(v);
  else if (v % 3 == 1)
    shape = new (room[threadIdx.x]) Slab(v, v / 2);
  else
    shape = new (room[threadIdx.x]) Disc(v);
  y[i] = measure(shape, 5);
  Disc local(v);
  Shape *either = i & 1 ? shape : &local; // in shared memory or in local
  y[n + i] = measure(either, 1);
}

__device__ unsigned plain(int kind, unsigned *size, unsigned *width, unsigned by) {
  unsigned s = *size, w = *width, r = s * s;
  unsigned before = kind == 0 ? r : kind == 1 ? s * w : 3 * r + r / 7;
  if (kind == 1)
    w = *width += 2 * by;
  else
    s = *size += by;
  r = s * s;
  return before + 10 * (kind == 0 ? r : kind == 1 ? s * w : 3 * r + r / 7) + (kind == 2 ? 0 : 4000000);
}

extern "C" __global__ void shapes_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], size = v, width = v / 2, other = v, unused = 0;
  EXPECT_EQ(i, y[i], plain(v % 3, &size, &width, 5));
  EXPECT_EQ(i, y[n + i], i & 1 ? plain(v % 3, &size, &width, 1) : plain(2, &other, &unused, 1));
}
