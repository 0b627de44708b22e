//! arch sm_80
//! alloc x 3000*4 random-u32
//! alloc y 3000*4 poison
//! alloc z 3000*4 poison
//! alloc errors 32 zero
//! launch group_copy grid=3 block=96 args=x,y,i32:3000
//! launch staged_copy grid=3 block=64 args=x,z,i32:3000
//! launch memcpy_async_check grid=12 block=250 args=x,y,z,errors
//! checks 6000
// cooperative_groups::memcpy_async of a block with ragged ends, and cuda::pipeline with two stages for a
// block.
#include "check.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;

#pragma nv_diag_suppress static_var_with_dynamic_init

extern "C" __global__ void group_copy(const unsigned *x, unsigned *y, int n) {
  __shared__ unsigned s[256];
  cg::thread_block block = cg::this_thread_block();
  for (int start = blockIdx.x * 250 + 1; start < n; start += gridDim.x * 250) { // odd starts: no vectors
    int count = min(250, n - start);
    cg::memcpy_async(block, s, x + start, sizeof(unsigned) * count);
    cg::wait(block);
    for (int i = threadIdx.x; i < count; i += blockDim.x) y[start + i] = s[count - 1 - i];
    block.sync();
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) y[0] = x[0];
}

extern "C" __global__ void staged_copy(const unsigned *x, unsigned *z, int n) {
  __shared__ __align__(16) unsigned s[2][200];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  cg::thread_block block = cg::this_thread_block();
  cuda::pipeline<cuda::thread_scope_block> pipe = cuda::make_pipeline(block, &state);
  int tiles = n / 200, fetched = blockIdx.x;
  for (int tile = blockIdx.x, k = 0; tile < tiles; tile += gridDim.x, k++) {
    for (; fetched < tiles && fetched <= tile + (int)gridDim.x; fetched += gridDim.x) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[fetched / gridDim.x % 2], x + fetched * 200,
                         cuda::aligned_size_t<16>(200 * sizeof(unsigned)), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    for (int i = threadIdx.x; i < 200; i += blockDim.x) z[tile * 200 + i] = s[k % 2][199 - i] + tile;
    pipe.consumer_release();
  }
}

extern "C" __global__ void memcpy_async_check(const unsigned *x, const unsigned *y, const unsigned *z,
                                              unsigned *errors) {
  int i = (int)global_thread(), tile = i / 200, part = (i - 1) / 250 * 250 + 1, end = min(part + 250, 3000);
  EXPECT_EQ(i, y[i], i == 0 ? x[0] : x[end - 1 - (i - part)]);
  EXPECT_EQ(i, z[i], x[tile * 200 + 199 - i % 200] + tile);
}
