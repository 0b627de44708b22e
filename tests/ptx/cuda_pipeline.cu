//! arch sm_80
//! alloc x 5000*4 random-u32
//! alloc y 5000*4 poison
//! alloc errors 32 zero
//! launch pipelined grid=4 block=64 args=x,y,i32:5000
//! launch pipelined_check grid=20 block=250 args=x,y,i32:5000,errors
//! checks 5000
// The pipeline primitives of cuda_pipeline.h: three stages in flight, each a vector of 16 bytes a thread.
#include "check.cuh"
#include <cuda_pipeline.h>

#define STAGES 3

extern "C" __global__ void pipelined(const uint4 *x, uint4 *y, int n) {
  __shared__ uint4 s[STAGES][64];
  int vectors = n / 4, t = threadIdx.x, step = gridDim.x * 64, first = blockIdx.x * 64 + t;
  for (int k = 0; k < STAGES - 1; k++) {
    if (first + k * step < vectors) __pipeline_memcpy_async(&s[k][t], &x[first + k * step], 16);
    __pipeline_commit();
  }
  for (int k = 0; first + k * step < vectors; k++) {
    int next = first + (k + STAGES - 1) * step;
    if (next < vectors) __pipeline_memcpy_async(&s[(k + STAGES - 1) % STAGES][t], &x[next], 16);
    __pipeline_commit();
    __pipeline_wait_prior(STAGES - 1);
    uint4 v = s[k % STAGES][t]; // its own copy: no barrier needed
    y[first + k * step] = make_uint4(v.w + 1, v.z + 2, v.y + 3, v.x + 4);
  }
}

extern "C" __global__ void pipelined_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  EXPECT_EQ(i, y[i], x[i ^ 3] + i % 4 + 1);
}
