//! alloc level 311*4 poison
//! alloc queue 2*311*4 poison
//! alloc counts 2*4 poison
//! alloc errors 32 zero
//! launch bfs grid=1 block=256 args=level,queue,counts,i32:311
//! launch bfs_check grid=3 block=128 args=level,i32:311,errors
//! checks 1556
// Breadth-first search of a graph given by arithmetic (four neighbours each), with queues of the frontier.
#include "check.cuh"

__device__ int neighbour(int v, int k, int n) {
  if (k == 0) return (v * 2 + 1) % n;
  if (k == 1) return (v + n - 7) % n;
  if (k == 2) return (int)(check_hash(v) % n);
  return v / 3;
}

extern "C" __global__ void bfs(int *level, int *queue, int *counts, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) level[i] = -1;
  if (threadIdx.x == 0) queue[0] = 5, counts[0] = 1, counts[1] = 0;
  __syncthreads();
  if (threadIdx.x == 0) level[5] = 0;
  __syncthreads();
  for (int depth = 1, from = 0;; depth++, from = 1 - from) {
    int count = *(volatile int *)&counts[from];
    if (count == 0) break;
    for (int i = threadIdx.x; i < 4 * count; i += blockDim.x) {
      int v = neighbour(queue[from * n + i / 4], i % 4, n);
      if (atomicCAS(&level[v], -1, depth) == -1) queue[(1 - from) * n + atomicAdd(&counts[1 - from], 1)] = v;
    }
    __syncthreads();
    if (threadIdx.x == 0) counts[from] = 0;
    __syncthreads();
  }
}

// Levels are right if and only if the start has 0, no edge skips a level, and each other vertex has a parent.
extern "C" __global__ void bfs_check(const int *level, int n, unsigned *errors) {
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n) return;
  if (v == 5) EXPECT_EQ(v, level[v], 0);
  bool parent = v == 5 || level[v] == -1;
  for (int u = 0; u < n && !parent; u++)
    for (int k = 0; k < 4; k++) parent = parent || (neighbour(u, k, n) == v && level[u] == level[v] - 1);
  EXPECT(v, parent);
  for (int k = 0; k < 4 && level[v] >= 0; k++) {
    int to = level[neighbour(v, k, n)];
    EXPECT(v, to >= 0 && to <= level[v] + 1);
  }
}
