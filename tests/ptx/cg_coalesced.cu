//! alloc x 320*4 random-u32
//! alloc y 3*320*4 poison
//! alloc count 4 zero
//! alloc errors 32 zero
//! launch coalesced grid=2 block=160 args=x,y,count,i32:320
//! launch coalesced_check grid=1 block=1 args=x,y,count,i32:320,errors
//! checks 963
// Coalesced groups of the lanes in a branch: ranks, shuffles, one atomic for the group, a nested branch.
// A group may be only part of the lanes that took the branch; what is checked holds for any grouping.
#include "check.cuh"
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void coalesced(const unsigned *x, unsigned *y, unsigned *count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
  y[i] = y[n + i] = y[2 * n + i] = 0;
  if (v % 3 == 0) return;
  cg::coalesced_group group = cg::coalesced_threads();
  unsigned start = 0;
  if (group.thread_rank() == 0) start = atomicAdd(count, group.size());
  y[i] = 1 + group.shfl(start, 0) + group.thread_rank(); // a number of its own for each thread
  unsigned members = group.ballot(true);
  y[n + i] = (unsigned)__popc(members) == group.size() && group.any(group.thread_rank() == group.size() - 1);
  if (v % 3 == 1) {
    cg::coalesced_group inner = cg::coalesced_threads();
    y[2 * n + i] = inner.shfl(v, inner.size() - 1) % 3 + 10 * inner.all(v % 3 == 1);
  }
}

extern "C" __global__ void coalesced_check(const unsigned *x, const unsigned *y, const unsigned *count, int n,
                                           unsigned *errors) {
  unsigned taken = 0, sum = 0, squares = 0, want = 0, want_squares = 0;
  for (int i = 0; i < n; i++) {
    unsigned v = x[i];
    if (v % 3) taken++, want += taken, want_squares += taken * taken;
    sum += y[i], squares += y[i] * y[i];
    EXPECT_EQ(i, y[n + i], v % 3 ? 1u : 0u);
    EXPECT_EQ(i, y[2 * n + i], v % 3 == 1 ? 11u : 0u);
    EXPECT(i, (y[i] != 0) == (v % 3 != 0));
  }
  EXPECT_EQ(0, *count, taken);
  EXPECT_EQ(1, sum, want); // 1 .. taken, each once
  EXPECT_EQ(2, squares, want_squares);
}
