//! alloc x 256*4 random-u32
//! alloc y 256*4 poison
//! alloc errors 32 zero
//! launch spaces grid=2 block=128 args=x,y
//! launch spaces_check grid=2 block=128 args=y,errors
//! checks 1024
// isspacep: which space a generic address belongs to, for pointers to global, shared and local memory.
#include "check.cuh"

__device__ unsigned space(const void *p) {
  return __isGlobal(p) | __isShared(p) << 1 | __isLocal(p) << 2;
}

extern "C" __global__ void spaces(const unsigned *x, unsigned *y) {
  __shared__ unsigned shared[128];
  unsigned i = global_thread(), t = threadIdx.x, local[8];
  for (int k = 0; k < 8; k++) local[k] = x[i] + k;
  shared[t] = x[i];
  __syncthreads();
  unsigned in_global = space(&x[i]), in_shared = space(&shared[127 - t]), in_local = space(&local[t % 8]);
  bool local_kept = local[x[i] % 8] == x[i] + x[i] % 8, shared_kept = shared[127 - t] == x[i ^ 127];
  y[i] = in_global | in_shared << 4 | in_local << 8 | local_kept << 12 | shared_kept << 13;
}

extern "C" __global__ void spaces_check(const unsigned *y, unsigned *errors) {
  EXPECT_EQ(global_thread(), y[global_thread()] & 0xf, 1u);
  EXPECT_EQ(global_thread(), y[global_thread()] >> 4 & 0xf, 2u);
  EXPECT_EQ(global_thread(), y[global_thread()] >> 8 & 0xf, 4u);
  EXPECT_EQ(global_thread(), y[global_thread()] >> 12, 3u);
}
