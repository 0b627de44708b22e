//! alloc x 1000*4 random-u32
//! alloc y 3*1000*4 poison
//! alloc errors 32 zero
//! launch constants grid=4 block=250 args=x,y,i32:1000
//! launch constants_check grid=4 block=250 args=x,y,i32:1000,errors
//! checks 3000
// Constant memory with indices that differ from lane to lane: tables of words, bytes, doubles and structures.
#include "check.cuh"

struct Entry {
  short key;
  double scale;
  unsigned char name[5];
};
__constant__ unsigned squares[64] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};
__constant__ unsigned char letters[] = "the quick brown fox";
__constant__ Entry entries[3] = {{-1, 0.5, "one"}, {300, -2.25, "two"}, {7, 1e10, "four"}};
__constant__ double reciprocals[5] = {1.0, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5};

extern "C" __global__ void constants(const unsigned *x, unsigned *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i];
  y[i] = squares[v % 64] + letters[v % 20];
  const Entry *e = &entries[v % 3];
  y[n + i] = (unsigned)(int)(e->key * e->scale) + e->name[v % 5];
  y[2 * n + i] = (unsigned)(reciprocals[v % 5] * 1e6) + squares[blockIdx.x]; // the last one uniform
}

extern "C" __global__ void constants_check(const unsigned *x, const unsigned *y, int n, unsigned *errors) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i], k = v % 64;
  const char *text = "the quick brown fox";
  EXPECT_EQ(i, y[i], (k < 16 ? k * k : 0) + (unsigned)text[v % 20]);
  const char *name = v % 3 == 0 ? "one\0" : v % 3 == 1 ? "two\0" : "four";
  double scaled = v % 3 == 0 ? -0.5 : v % 3 == 1 ? -675.0 : 2147483647.0; // beyond int: its end
  EXPECT_EQ(i, y[n + i], (unsigned)(int)scaled + (unsigned)name[v % 5]);
  const unsigned parts[5] = {1000000, 500000, 333333, 250000, 200000};
  EXPECT_EQ(i, y[2 * n + i], parts[v % 5] + blockIdx.x * blockIdx.x);
}
