//! arch sm_90
//! alloc x 12*64*4 random-u32
//! alloc y 12*64*4 poison
//! alloc ranks 12*4 poison
//! alloc hist 3*128*4 poison
//! alloc errors 32 zero
//! launch exchange grid=12 block=64 cluster=4 args=x,y,ranks
//! launch cluster_hist grid=12 block=64 cluster=4 args=x,hist
//! launch cluster_check grid=12 block=64 args=x,y,ranks,hist,errors
//! checks 1164
// Clusters of four blocks: each reads the next block's shared memory (ld.shared::cluster by mapa), stores
// into the one before, and a histogram spread over the shared memory of the whole cluster, with remote
// atomics.
#include "check.cuh"

__device__ unsigned address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ unsigned map_to(unsigned at, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
  return there;
}
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ unsigned cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

extern "C" __global__ void exchange(const unsigned *x, unsigned *y, unsigned *ranks) {
  __shared__ unsigned s[64], inbox[64];
  unsigned t = threadIdx.x, i = blockIdx.x * 64 + t, rank = cluster_rank(), size, id, v;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(id));
  s[t] = x[i];
  cluster_sync();
  unsigned next = map_to(address(&s[63 - t]), (rank + 1) % size);
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(next) : "memory");
  unsigned before = map_to(address(&inbox[t]), (rank + size - 1) % size);
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(before), "r"(v * 3) : "memory");
  cluster_sync();
  y[i] = inbox[t] + v;
  if (t == 0) ranks[blockIdx.x] = rank | size << 8 | id << 16;
  cluster_sync(); // nobody leaves while others may still reach its memory
}

// 128 bins, 32 in each block.
extern "C" __global__ void cluster_hist(const unsigned *x, unsigned *hist) {
  __shared__ unsigned bins[32];
  unsigned t = threadIdx.x, rank = cluster_rank();
  if (t < 32) bins[t] = 0;
  cluster_sync();
  unsigned bin = x[blockIdx.x * 64 + t] % 128;
  asm volatile("red.shared::cluster.add.u32 [%0], 1;" ::"r"(map_to(address(&bins[bin % 32]), bin / 32))
               : "memory");
  cluster_sync();
  if (t < 32) hist[blockIdx.x / 4 * 128 + rank * 32 + t] = bins[t];
}

extern "C" __global__ void cluster_check(const unsigned *x, const unsigned *y, const unsigned *ranks,
                                         const unsigned *hist, unsigned *errors) {
  unsigned t = threadIdx.x, b = blockIdx.x, cluster = b / 4 * 4;
  unsigned next = cluster + (b + 1) % 4, second = cluster + (b + 2) % 4;
  // The next block read from the one after it and left three times that here.
  EXPECT_EQ(b * 64 + t, y[b * 64 + t], x[second * 64 + 63 - t] * 3 + x[next * 64 + 63 - t]);
  if (t == 0) EXPECT_EQ(b, ranks[b], b % 4 | 4u << 8 | b / 4 << 16);
  for (unsigned bin = t; b % 4 == 0 && bin < 128; bin += 64) {
    unsigned count = 0;
    for (int k = 0; k < 256; k++) count += x[cluster * 64 + k] % 128 == bin;
    EXPECT_EQ(b * 64 + t, hist[cluster / 4 * 128 + bin], count);
  }
}
