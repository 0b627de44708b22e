//! alloc x 10007*4 random-u32
//! alloc y 10007*4 poison
//! alloc status 40*8 zero
//! alloc ticket 4 zero
//! alloc errors 32 zero
//! launch scan_lookback grid=40 block=256 args=x,y,status,ticket,i32:10007
//! launch scan_lookback_check grid=1 block=1 args=x,y,ticket,i32:10007,errors
//! checks 10008
// A scan in one pass: a block publishes its sum, then looks back over the blocks before it and waits for
// those that have not published yet. State and value travel together in one 64-bit word.
#include "check.cuh"

enum { EMPTY = 0, PARTIAL = 1, WHOLE = 2 };

__device__ void publish(unsigned long long *status, int block, unsigned state, unsigned value) {
  atomicExch(&status[block], (unsigned long long)state << 32 | value);
}

// What stands before `block`, found by walking back until some block knows its whole prefix.
__device__ unsigned look_back(volatile unsigned long long *status, int block) {
  unsigned before = 0;
  for (int b = block - 1; b >= 0; b--) {
    unsigned long long word;
    do word = status[b];
    while ((word >> 32) == EMPTY);
    before += (unsigned)word;
    if ((word >> 32) == WHOLE) break;
  }
  return before;
}

extern "C" __global__ void scan_lookback(const unsigned *x, unsigned *y, unsigned long long *status,
                                         unsigned *ticket, int n) {
  __shared__ unsigned s[256], prefix;
  __shared__ int block;
  int t = threadIdx.x;
  if (t == 0) block = (int)atomicAdd(ticket, 1u); // blocks are numbered as they start
  __syncthreads();
  int i = block * 256 + t;
  s[t] = i < n ? x[i] : 0;
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    unsigned v = t >= step ? s[t - step] : 0;
    __syncthreads();
    s[t] += v;
    __syncthreads();
  }
  if (t == 255) {
    publish(status, block, block == 0 ? WHOLE : PARTIAL, s[255]);
    prefix = block == 0 ? 0 : look_back(status, block);
    if (block) publish(status, block, WHOLE, prefix + s[255]);
  }
  __syncthreads();
  if (i < n) y[i] = prefix + s[t];
}

extern "C" __global__ void scan_lookback_check(const unsigned *x, const unsigned *y, const unsigned *ticket,
                                               int n, unsigned *errors) {
  unsigned sum = 0;
  for (int i = 0; i < n; i++) EXPECT_EQ(i, y[i], sum += x[i]);
  EXPECT_EQ(0, *ticket, 40u);
}
