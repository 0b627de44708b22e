//! arch sm_80
//! alloc x 192*4 random-u32
//! alloc y 9*192*4 poison
//! alloc errors 32 zero
//! launch redux grid=3 block=64 args=x,y,i32:192
//! launch redux_check grid=3 block=64 args=x,y,i32:192,errors
//! checks 1728
// redux.sync: every operation over whole warps, and over the odd and even lanes apart.
#include "check.cuh"

extern "C" __global__ void redux(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
  y[i] = __reduce_add_sync(0xffffffffu, v);
  y[n + i] = __reduce_min_sync(0xffffffffu, v);
  y[2 * n + i] = __reduce_max_sync(0xffffffffu, v);
  y[3 * n + i] = (unsigned)__reduce_min_sync(0xffffffffu, (int)v);
  y[4 * n + i] = (unsigned)__reduce_max_sync(0xffffffffu, (int)v);
  y[5 * n + i] = __reduce_and_sync(0xffffffffu, v | 0xff00ff00u);
  y[6 * n + i] = __reduce_or_sync(0xffffffffu, v & 0xff00ffu & v >> 3);
  y[7 * n + i] = __reduce_xor_sync(0xffffffffu, v);
  if (i & 1)
    y[8 * n + i] = (unsigned)__reduce_add_sync(0xaaaaaaaau, (int)v);
  else
    y[8 * n + i] = __reduce_xor_sync(0x55555555u, v);
}

extern "C" __global__ void redux_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned *row = x + i / 32 * 32;
  unsigned sum = 0, low = ~0u, high = 0, both = ~0u, any = 0, odd = 0, parts[2] = {};
  int least = 0x7fffffff, most = -0x7fffffff - 1;
  for (int k = 0; k < 32; k++) {
    unsigned v = row[k];
    sum += v, both &= v | 0xff00ff00u, any |= v & 0xff00ffu & v >> 3, odd ^= v;
    if (v < low) low = v;
    if (v > high) high = v;
    if ((int)v < least) least = (int)v;
    if ((int)v > most) most = (int)v;
    parts[k & 1] = k & 1 ? parts[1] + v : parts[0] ^ v;
  }
  const unsigned want[9] = {sum, low, high, (unsigned)least, (unsigned)most, both, any, odd, parts[i & 1]};
  for (int k = 0; k < 9; k++) EXPECT_EQ(i, y[k * n + i], want[k]);
}
