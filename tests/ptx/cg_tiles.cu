//! alloc x 384*4 random-u32
//! alloc y 7*384*4 poison
//! alloc errors 32 zero
//! launch tiles grid=3 block=128 args=x,y,i32:384
//! launch tiles_check grid=3 block=128 args=x,y,i32:384,errors
//! checks 2688
// Cooperative groups: tiles of 4, 16 and 32, shuffles, votes and matches inside them, tiles of tiles, labels.
#include "check.cuh"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void tiles(const unsigned *x, unsigned *y, int n) {
  cg::thread_block block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto sixteen = cg::tiled_partition<16>(block);
  auto four = cg::tiled_partition<4>(sixteen);
  int i = blockIdx.x * 128 + (int)block.thread_rank();
  unsigned v = x[i];
  y[i] = four.shfl(v, 3) + four.thread_rank() + 10 * four.meta_group_rank() + 1000 * four.meta_group_size();
  y[n + i] = sixteen.shfl_up(v, 5) ^ sixteen.shfl_down(v, 2);
  y[2 * n + i] = sixteen.shfl_xor(v, 9);
  y[3 * n + i] = four.ballot(v & 1) | sixteen.any(v % 16 == 0) << 8 | sixteen.all(v % 16 != 0) << 9;
  y[4 * n + i] = sixteen.match_any(v & 3);
  cg::thread_group odd = cg::tiled_partition(block, 8);
  y[5 * n + i] = odd.size() + 100 * odd.thread_rank();
  auto parity = cg::binary_partition(warp, v & 1);
  unsigned sum = 0;
  for (unsigned k = 0; k < parity.size(); k++) sum = sum * 3 + parity.shfl(v, k);
  y[6 * n + i] = sum + parity.thread_rank();
  block.sync();
}

extern "C" __global__ void tiles_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * 128 + threadIdx.x, four = i / 4 * 4, sixteen = i / 16 * 16, warp = i / 32 * 32;
  EXPECT_EQ(i, y[i], x[four + 3] + i % 4 + 10 * (i % 16 / 4) + 4000);
  unsigned up = x[i % 16 >= 5 ? i - 5 : i], down = x[i % 16 < 14 ? i + 2 : i];
  EXPECT_EQ(i, y[n + i], up ^ down);
  EXPECT_EQ(i, y[2 * n + i], x[i ^ 9]);
  unsigned ballot = 0, any = 0, match = 0, sum = 0, rank = 0;
  for (int k = 0; k < 4; k++) ballot |= (x[four + k] & 1) << k;
  for (int k = 0; k < 16; k++) {
    any |= x[sixteen + k] % 16 == 0;
    match |= (unsigned)((x[sixteen + k] & 3) == (x[i] & 3)) << k;
  }
  for (int k = 0; k < 32; k++) {
    if ((x[warp + k] ^ x[i]) & 1) continue;
    sum = sum * 3 + x[warp + k];
    rank += warp + k < i;
  }
  EXPECT_EQ(i, y[3 * n + i], ballot | any << 8 | !any << 9);
  EXPECT_EQ(i, y[4 * n + i], match);
  EXPECT_EQ(i, y[5 * n + i], 8u + 100u * (i % 8));
  EXPECT_EQ(i, y[6 * n + i], sum + rank);
}
