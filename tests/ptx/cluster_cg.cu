//! arch sm_90
//! alloc x 16*32*4 random-u32
//! alloc y 16*32*4 poison
//! alloc shapes 6*4 poison
//! alloc total 8*4 poison
//! alloc errors 32 zero
//! launch pair_sum grid=16 block=32 args=x,y,total
//! launch shape_2d grid=6,4 block=32 cluster=3,2 args=shapes
//! launch cluster_cg_check grid=16 block=32 args=x,y,total,shapes,errors
//! checks 534
// Clusters through cooperative groups: a size fixed by the kernel's attribute, map_shared_rank, generic
// pointers into another block's memory, query_shared_rank; and a cluster of 3 x 2 blocks given at launch.
#include "check.cuh"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void __cluster_dims__(2, 1, 1)
    pair_sum(const unsigned *x, unsigned *y, unsigned *total) {
  cg::cluster_group cluster = cg::this_cluster();
  __shared__ unsigned s[32], sum;
  unsigned t = threadIdx.x, rank = cluster.block_rank();
  s[t] = x[blockIdx.x * 32 + t];
  if (t == 0) sum = 0;
  cluster.sync();
  unsigned *other = cluster.map_shared_rank(s, rank ^ 1);
  y[blockIdx.x * 32 + t] = other[31 - t] ^ (cluster.query_shared_rank(other) << 31);
  atomicAdd(cluster.map_shared_rank(&sum, 0), s[t]);
  cluster.barrier_arrive();
  cluster.barrier_wait();
  if (rank == 0 && t == 0) total[blockIdx.x / 2] = sum + cluster.num_threads() + cluster.num_blocks();
  cluster.sync();
}

extern "C" __global__ void shape_2d(unsigned *shapes) {
  __shared__ unsigned count;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) count = 0;
  cluster.sync();
  if (threadIdx.x == 0)
    atomicAdd(cluster.map_shared_rank(&count, 0),
              1u + cluster.block_index().x * 0x100u + cluster.block_index().y * 0x10000u);
  cluster.sync();
  // Clusters of 3 x 2 blocks in a grid of 6 x 4: 2 x 2 of them.
  unsigned id = blockIdx.y / 2 * 2 + blockIdx.x / 3;
  if (cluster.block_rank() == 0 && threadIdx.x == 0) shapes[id] = count;
  if (id == 0 && threadIdx.x == 0 && blockIdx.x == 2 && blockIdx.y == 1) {
    shapes[4] = cluster.dim_blocks().x + 10 * cluster.dim_blocks().y + 100 * cluster.block_rank();
    unsigned x, y;
    asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(x));
    asm volatile("mov.u32 %0, %%nclusterid.y;" : "=r"(y));
    shapes[5] = x + 10 * y;
  }
  cluster.sync();
}

extern "C" __global__ void cluster_cg_check(const unsigned *x, const unsigned *y, const unsigned *total,
                                            const unsigned *shapes, unsigned *errors) {
  unsigned t = threadIdx.x, b = blockIdx.x, other = b ^ 1;
  EXPECT_EQ(b * 32 + t, y[b * 32 + t], x[other * 32 + 31 - t] ^ other % 2 << 31);
  if (t) return;
  unsigned sum = 64 + 2;
  for (int k = 0; k < 64; k++) sum += x[b / 2 * 64 + k];
  EXPECT_EQ(b, total[b / 2], sum);
  const unsigned want[6] = {0x30606, 0x30606, 0x30606, 0x30606, 3 + 20 + 500, 2 + 20};
  if (b < 6) EXPECT_EQ(b, shapes[b], want[b]);
}
