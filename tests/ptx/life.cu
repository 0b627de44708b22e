//! alloc a 61*2*4 random-u32 seed=4
//! alloc b 61*2*4 poison
//! alloc start 61*2*4 random-u32 seed=4
//! alloc cells 2*61*64 poison
//! alloc errors 32 zero
//! launch life_bits grid=1 block=128 args=a,b,i32:61,i32:6
//! launch life_check grid=1 block=128 args=start,a,cells,i32:61,i32:6,errors
//! checks 3904
// The game of life on 61 x 64 cells, 32 to a word: sums by full adders on whole words, shifts across words.
#include "check.cuh"

// rows wrap around; so do the two words of a row
extern "C" __global__ void life_bits(unsigned *a, unsigned *b, int rows, int steps) {
  for (int step = 0; step < steps; step++) {
    unsigned *in = step & 1 ? b : a, *out = step & 1 ? a : b;
    for (int i = threadIdx.x; i < rows * 2; i += blockDim.x) {
      int r = i / 2, w = i & 1;
      unsigned one = 0, two = 0, four = 0; // the bits of each cell's count, eight wraps to none
      for (int dr = -1; dr <= 1; dr++) {
        int row = (r + dr + rows) % rows;
        unsigned here = in[row * 2 + w], other = in[row * 2 + 1 - w];
        unsigned parts[3] = {__funnelshift_l(other, here, 1), __funnelshift_r(here, other, 1), here};
        for (int k = 0; k < (dr == 0 ? 2 : 3); k++) {
          unsigned carry = one & parts[k];
          one ^= parts[k];
          four ^= two & carry;
          two ^= carry;
        }
      }
      out[i] = two & ~four & (one | in[i]);
    }
    __syncthreads();
  }
}

extern "C" __global__ void life_check(const unsigned *start, const unsigned *a, unsigned char *cells,
                                      int rows, int steps, unsigned *errors) {
  int n = rows * 64;
  for (int i = threadIdx.x; i < n; i += blockDim.x) cells[i] = start[i / 32] >> i % 32 & 1;
  __syncthreads();
  for (int step = 0; step < steps; step++) {
    unsigned char *in = cells + step % 2 * n, *out = cells + (step + 1) % 2 * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
      int r = i / 64, c = i % 64, count = 0;
      for (int k = 0; k < 9; k++)
        if (k != 4) count += in[(r + k / 3 - 1 + rows) % rows * 64 + (c + k % 3 - 1 + 64) % 64];
      out[i] = count == 3 || (count == 2 && in[i]);
    }
    __syncthreads();
  }
  for (int i = threadIdx.x; i < n; i += blockDim.x) EXPECT_EQ(i, a[i / 32] >> i % 32 & 1, (unsigned)cells[i]);
}
