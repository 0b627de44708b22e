//! alloc x 700*4 random-u32
//! alloc y 3*700*4 poison
//! alloc errors 32 zero
//! launch local_arrays grid=7 block=100 args=x,y,i32:700
//! launch local_check grid=7 block=100 args=x,y,i32:700,errors
//! checks 2100
// Arrays per thread with indices known only at run time, which stand in local memory: a little stack machine,
// a counting sort of nibbles, and bytes, halves and words over the same array.
#include "check.cuh"

extern "C" __global__ void local_arrays(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, top = 0;
  unsigned v = x[i], stack[16], counts[16] = {}, sorted = 0;
  for (int k = 0; k < 16; k++) {
    unsigned op = v >> 2 * k & 3;
    if (op == 0 || top < 2)
      stack[top++] = k * 3 + op;
    else if (op == 1)
      stack[top - 2] += stack[top - 1], top--;
    else if (op == 2)
      stack[top - 2] *= stack[top - 1], top--;
    else {
      unsigned w = stack[top - 1];
      stack[top - 1] = stack[top - 2], stack[top - 2] = w;
    }
  }
  y[i] = stack[top - 1] + 1000u * top;
  for (int k = 0; k < 8; k++) counts[v >> 4 * k & 15]++;
  for (unsigned d = 0; d < 16; d++)
    for (unsigned k = 0; k < counts[d]; k++) sorted = sorted << 4 | d;
  y[n + i] = sorted;
  unsigned long long words[5] = {};
  unsigned char *bytes = (unsigned char *)words;
  unsigned short *halves = (unsigned short *)words;
  bytes[v % 40] = 0x5a;
  halves[v / 40 % 20] ^= 0x1234;
  ((unsigned *)words)[v / 800 % 10] += 0x01010101u;
  y[2 * n + i] = (unsigned)((words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4]) >> (v & 31));
}

extern "C" __global__ void local_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, top = 0;
  unsigned v = x[i], sorted = 0;
  __shared__ unsigned stacks[100][17]; // the same machine, in shared memory
  unsigned *stack = stacks[threadIdx.x];
  for (int k = 0; k < 16; k++) {
    unsigned op = top < 2 ? 0 : v >> 2 * k & 3, a = top > 0 ? stack[top - 1] : 0,
             b = top > 1 ? stack[top - 2] : 0;
    if (op == 0) stack[top++] = k * 3 + (v >> 2 * k & 3);
    if (op == 1 || op == 2) stack[--top - 1] = op == 1 ? a + b : a * b;
    if (op == 3) stack[top - 1] = b, stack[top - 2] = a;
  }
  EXPECT_EQ(i, y[i], stack[top - 1] + 1000u * top);
  for (unsigned d = 0; d < 16; d++)
    for (int k = 0; k < 8; k++)
      if ((v >> 4 * k & 15) == d) sorted = sorted * 16 + d;
  EXPECT_EQ(i, y[n + i], sorted);
  unsigned long long fold = 0;
  for (int word = 0; word < 5; word++) {
    unsigned long long w = 0;
    if (v % 40 / 8 == word) w |= 0x5aull << v % 8 * 8;
    if (v / 40 % 20 / 4 == word) w ^= 0x1234ull << v / 40 % 4 * 16;
    unsigned at = v / 800 % 10, low = (unsigned)w, high = (unsigned)(w >> 32);
    if (at / 2 == word && at % 2 == 0) low += 0x01010101u;
    if (at / 2 == word && at % 2 == 1) high += 0x01010101u;
    fold ^= (unsigned long long)high << 32 | low;
  }
  EXPECT_EQ(i, y[2 * n + i], (unsigned)(fold >> (v & 31)));
}
