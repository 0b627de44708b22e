//! alloc y 10*300*4 poison
//! alloc errors 32 zero
//! launch registers grid=3 block=10,5,2 args=y,i32:300
//! launch registers_check grid=3 block=100 args=y,i32:300,errors
//! checks 3000
// Special registers of lane, warp, block and grid, read by inline assembly, against the built-in variables.
#include "check.cuh"

#define READ(name)                                                                                           \
  ({                                                                                                         \
    unsigned value;                                                                                          \
    asm volatile("mov.u32 %0, %%" name ";" : "=r"(value));                                                   \
    value;                                                                                                   \
  })

extern "C" __global__ void registers(unsigned *y, int n) {
  unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned i = blockIdx.x * 100 + t;
  y[i] = READ("laneid");
  y[n + i] = READ("lanemask_eq");
  y[2 * n + i] = READ("lanemask_lt");
  y[3 * n + i] = READ("lanemask_le");
  y[4 * n + i] = READ("lanemask_gt");
  y[5 * n + i] = READ("lanemask_ge");
  y[6 * n + i] = READ("tid.x") | READ("tid.y") << 8 | READ("tid.z") << 16;
  y[7 * n + i] = READ("ntid.x") | READ("ntid.y") << 8 | READ("ntid.z") << 16;
  y[8 * n + i] = READ("ctaid.x") | READ("nctaid.x") << 8 | READ("nctaid.y") << 16 | READ("ctaid.z") << 24;
  y[9 * n + i] = READ("warpid") < READ("nwarpid") && warpSize == 32;
}

extern "C" __global__ void registers_check(const unsigned *y, int n, unsigned *errors) {
  unsigned t = threadIdx.x, i = blockIdx.x * 100 + t, lane = t % 32, bit = 1u << lane;
  const unsigned want[10] = {lane,
                             bit,
                             bit - 1,
                             2 * bit - 1,
                             ~(2 * bit - 1),
                             ~(bit - 1),
                             t % 10 | t / 10 % 5 << 8 | t / 50 << 16,
                             10 | 5 << 8 | 2 << 16,
                             blockIdx.x | 3 << 8 | 1 << 16,
                             1};
  for (int k = 0; k < 10; k++) EXPECT_EQ(10 * i + k, y[k * n + i], want[k]);
}
