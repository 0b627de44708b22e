//! alloc order 2053*4 permutation-u32
//! alloc next 2*2053*4 poison
//! alloc rank 2*2053*4 poison
//! alloc errors 32 zero
//! launch list_build grid=9 block=256 args=order,next,rank,i32:2053
//! launch list_jump grid=1 block=1024 args=next,rank,i32:2053
//! launch list_check grid=1 block=1 args=order,next,rank,i32:2053,errors
//! checks 4106
// Every element's distance to the end of a linked list, by pointer jumping between two buffers.
#include "check.cuh"

extern "C" __global__ void list_build(const unsigned *order, int *next, int *rank, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  next[order[i]] = i + 1 < n ? (int)order[i + 1] : -1;
  rank[order[i]] = i + 1 < n;
}

extern "C" __global__ void list_jump(int *next, int *rank, int n) {
  int from = 0;
  for (int round = 0; 1 << round < n; round++) {
    int *next_in = next + from * n, *next_out = next + (1 - from) * n;
    int *rank_in = rank + from * n, *rank_out = rank + (1 - from) * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      int successor = next_in[i];
      rank_out[i] = rank_in[i] + (successor < 0 ? 0 : rank_in[successor]);
      next_out[i] = successor < 0 ? -1 : next_in[successor];
    }
    from = 1 - from;
    __syncthreads();
  }
}

// 2053 needs 12 rounds, so the result is back in the first buffer.
extern "C" __global__ void list_check(const unsigned *order, const int *next, const int *rank, int n,
                                      unsigned *errors) {
  for (int i = 0; i < n; i++) {
    EXPECT_EQ(i, rank[order[i]], n - 1 - i);
    EXPECT_EQ(i, next[i], -1);
  }
}
