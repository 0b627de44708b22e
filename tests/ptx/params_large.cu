//! alloc y 2*128*4 poison
//! alloc errors 32 zero
//! launch large grid=1 block=128 args={iota-u32:1500},y,u32:5
//! launch largest grid=1 block=128 args=y+512,{iota-u32:1017},u32:9
//! launch large_check grid=1 block=128 args=y,errors
//! checks 256
// Parameters of more than 4 KiB (6 KiB), and of just under it, read with fixed and with varying indices.
#include "check.cuh"

struct Large {
  unsigned v[1500];
};
struct Most {
  unsigned v[1017];
};

extern "C" __global__ void large(const __grid_constant__ Large p, unsigned *y, unsigned last) {
  unsigned t = threadIdx.x, sum = p.v[0] + p.v[1499] + last;
  for (unsigned k = t; k < 1500; k += 128) sum += p.v[k] * (k & 3);
  y[t] = sum;
}

extern "C" __global__ void largest(unsigned *y, Most p, unsigned last) {
  unsigned t = threadIdx.x;
  p.v[t] += last; // its own copy
  y[t] = p.v[t] + p.v[1016 - t] + p.v[(t * 13) % 1017];
}

extern "C" __global__ void large_check(const unsigned *y, unsigned *errors) {
  unsigned t = threadIdx.x, sum = 1499 + 5;
  for (unsigned k = t; k < 1500; k += 128) sum += k * (k & 3);
  EXPECT_EQ(t, y[t], sum);
  unsigned other = (t * 13) % 1017;
  EXPECT_EQ(t, y[128 + t], t + 9 + 1016 - t + (1016 - t == t ? 9 : 0) + other + (other == t ? 9 : 0));
}
