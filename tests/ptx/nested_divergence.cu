//! alloc x 1500*4 random-u32
//! alloc y 1500*4 poison
//! alloc together 48*4 zero
//! alloc errors 32 zero
//! launch nested grid=12 block=125 args=x,y,together,i32:1500
//! launch nested_check grid=12 block=125 args=x,y,together,i32:1500,errors
//! checks 3000
// Branches within branches within loops; at the end all lanes of a warp are together again.
#include "check.cuh"

extern "C" __global__ void nested(const unsigned *x, unsigned *y, unsigned *together, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], result = 1;
  for (unsigned k = 0; k < (v & 7); k++) {
    if (v >> k & 1) {
      if (k % 3 == 0) {
        result = result * 3 + k;
        for (unsigned j = 0; j < (v >> 8 & 3); j++) result ^= j & 1 ? v : v >> j;
      } else if (v >> 12 & 1) {
        result += 77;
        if (result % 5 == 0) continue;
        result ^= k << 20;
      } else {
        do result = result * 5 + 1;
        while (result % 4 != 2 && result < 100000);
      }
    } else {
      result -= v >> 16;
      if (result >> 31) break;
    }
    result += k;
  }
  y[i] = result;
  unsigned lanes = threadIdx.x / 32 == 3 ? (1u << 29) - 1 : 0xffffffffu; // 125 threads: 29 in the last warp
  unsigned odd = __ballot_sync(lanes, result & 1);
  if (threadIdx.x % 32 == 0) together[blockIdx.x * 4 + threadIdx.x / 32] = odd;
}

// The same by states instead of nesting, for one lane.
extern "C" __global__ void nested_check(const unsigned *x, const unsigned *y, const unsigned *together, int n,
                                        unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], result = 1, k = 0;
  while (k < (v & 7)) {
    bool bit = v >> k & 1, add = true;
    if (bit && k % 3 == 0) {
      result = result * 3 + k;
      unsigned j = v >> 8 & 3;
      if (j > 0) result ^= v;
      if (j > 1) result ^= v;
      if (j > 2) result ^= v >> 2;
    }
    if (bit && k % 3 && v >> 12 & 1) {
      result += 77;
      add = result % 5 != 0;
      if (add) result ^= k << 20;
    }
    if (bit && k % 3 && !(v >> 12 & 1)) {
      result = result * 5 + 1;
      while (result % 4 != 2 && result < 100000) result = result * 5 + 1;
    }
    if (!bit) {
      result -= v >> 16;
      if (result >> 31) break;
    }
    if (add) result += k;
    k++;
  }
  EXPECT_EQ(i, y[i], result);
  unsigned word = together[blockIdx.x * 4 + threadIdx.x / 32];
  EXPECT_EQ(i, word >> threadIdx.x % 32 & 1, result & 1);
}
