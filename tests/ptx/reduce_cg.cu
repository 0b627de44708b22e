//! alloc x 3000*4 random-u32:100000
//! alloc out 8*4 zero
//! alloc errors 32 zero
//! launch reduce_cg grid=5 block=224 args=x,out,i32:3000
//! launch reduce_cg_check grid=1 block=1 args=x,out,i32:3000,errors
//! checks 5
// cooperative_groups::reduce over tiles of 32 and 8, with plus, greater, less and the bitwise operators.
#include "check.cuh"
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

extern "C" __global__ void reduce_cg(const unsigned *x, unsigned *out, int n) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  unsigned sum = 0, most = 0, bits = 0;
  int least = 0x7fffffff;
  for (int i = blockIdx.x * blockDim.x + block.thread_rank(); i < n; i += gridDim.x * blockDim.x) {
    sum += x[i];
    most = max(most, x[i]);
    least = min(least, (int)x[i]);
    bits ^= x[i];
  }
  sum = cg::reduce(warp, sum, cg::plus<unsigned>());
  most = cg::reduce(tile, most, cg::greater<unsigned>());
  least = cg::reduce(tile, least, cg::less<int>());
  bits = cg::reduce(warp, bits, cg::bit_xor<unsigned>());
  if (warp.thread_rank() == 0) atomicAdd(&out[0], sum), atomicXor(&out[3], bits);
  if (tile.thread_rank() == 0) atomicMax(&out[1], most), atomicMax(&out[2], 0x7fffffffu - (unsigned)least);
  float ones = cg::reduce(tile, 1.0f, cg::plus<float>());
  if (tile.thread_rank() == 7) atomicAdd(&out[4], (unsigned)ones);
}

extern "C" __global__ void reduce_cg_check(const unsigned *x, const unsigned *out, int n, unsigned *errors) {
  unsigned sum = 0, most = 0, least = 0x7fffffffu, bits = 0;
  for (int i = 0; i < n; i++) {
    sum += x[i], bits ^= x[i];
    if (x[i] > most) most = x[i];
    if (x[i] < least) least = x[i];
  }
  EXPECT_EQ(0, out[0], sum);
  EXPECT_EQ(1, out[1], most);
  EXPECT_EQ(2, 0x7fffffffu - out[2], least);
  EXPECT_EQ(3, out[3], bits);
  EXPECT_EQ(4, out[4], 5u * 224u);
}
