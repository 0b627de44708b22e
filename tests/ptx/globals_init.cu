//! alloc out 16*8 poison
//! alloc errors 32 zero
//! launch globals_read grid=1 block=1 args=out
//! launch globals_check grid=1 block=1 args=out,errors
//! launch globals_again grid=1 block=1 args=errors
//! checks 17
// Initialised globals and constants: pointers to other globals, into the middle of arrays, to constants, to
// strings and to functions; structures with padding; zeroed ones; what one kernel stores the next one sees.
#include "check.cuh"

struct Node {
  char mark;
  const Node *next;
  int value;
};
__device__ unsigned numbers[6] = {10, 20, 30, 40, 50, 60};
__device__ unsigned *middle = &numbers[3];
__constant__ unsigned *const constant_middle = &numbers[2];
__device__ Node third = {'c', nullptr, 300};
__device__ Node second = {'b', &third, 200};
__device__ Node first = {'a', &second, 100};
__constant__ float scales[3] = {0.5f, -1.25f, 3e9f};
__device__ const float *scale = scales + 1;
__device__ const char *texts[2] = {"alpha", "beta"};
__device__ unsigned zeroed[100];
__device__ double precise = 0.1;
__device__ unsigned short shorts[3] = {0xfffe, 1, 0x8000};
__device__ unsigned char flags = 0x81;
__device__ long long negative = -5000000000ll;
__device__ int triple(int v) {
  return 3 * v;
}
__device__ int (*function)(int) = triple;
__device__ unsigned **chain = &middle;
__managed__ int managed = 77;

extern "C" __global__ void globals_read(long long *out) {
  out[0] = *middle + middle[1] * 1000;
  out[1] = *constant_middle;
  int sum = 0;
  for (const Node *n = &first; n; n = n->next) sum = sum * 7 + n->value + n->mark;
  out[2] = sum;
  out[3] = (long long)(scale[0] * 4) + (long long)scale[1];
  out[4] = texts[0][4] + texts[1][3] * 256 + texts[1][4];
  out[5] = zeroed[99];
  out[6] = __double_as_longlong(precise);
  out[7] = shorts[0] + shorts[2] * 65536ll;
  out[8] = flags;
  out[9] = negative;
  out[10] = function(14);
  out[11] = (*chain)[-1];
  out[12] = managed;
  numbers[3] = 4444;
  zeroed[7] = 8;
  middle = &numbers[5];
  second.next = nullptr;
}

extern "C" __global__ void globals_check(const long long *out, unsigned *errors) {
  EXPECT_EQ(0, out[0], 40 + 50 * 1000);
  EXPECT_EQ(1, out[1], 30);
  EXPECT_EQ(2, out[2], ((100 + 'a') * 7 + 200 + 'b') * 7 + 300 + 'c');
  EXPECT_EQ(3, out[3], -5 + 3000000000ll);
  EXPECT_EQ(4, out[4], 'a' + 'a' * 256);
  EXPECT_EQ(5, out[5], 0);
  EXPECT_EQ(6, out[6], 0x3fb999999999999all);
  EXPECT_EQ(7, out[7], 0xfffe + 0x8000 * 65536ll);
  EXPECT_EQ(8, out[8], 0x81);
  EXPECT_EQ(9, out[9], -5000000000ll);
  EXPECT_EQ(10, out[10], 42);
  EXPECT_EQ(11, out[11], 30);
  EXPECT_EQ(12, out[12], 77);
}

extern "C" __global__ void globals_again(unsigned *errors) {
  EXPECT_EQ(0, *middle, 60u);
  EXPECT_EQ(1, constant_middle[1], 4444u);
  EXPECT_EQ(2, zeroed[7] + zeroed[8], 8u);
  EXPECT(3, first.next->next == nullptr);
}
