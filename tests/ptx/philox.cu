//! alloc y 4*500*4 poison
//! alloc errors 32 zero
//! launch philox grid=4 block=125 args=y
//! launch philox_known grid=1 block=3 args=errors
//! launch philox_check grid=1 block=1 args=y,errors
//! checks 14
// The Philox 4x32 counter-based generator (ten rounds of wide products), its published test vectors, and a
// look at the spread of its bits.
#include "check.cuh"

__device__ uint4 generate(uint4 c, uint2 key) {
  for (int round = 0; round < 10; round++) {
    unsigned long long p = 0xd2511f53ull * c.x, q = 0xcd9e8d57ull * c.z;
    c = make_uint4((unsigned)(q >> 32) ^ c.y ^ key.x, (unsigned)q, (unsigned)(p >> 32) ^ c.w ^ key.y,
                   (unsigned)p);
    key.x += 0x9e3779b9u, key.y += 0xbb67ae85u;
  }
  return c;
}

extern "C" __global__ void philox(uint4 *y) {
  unsigned i = global_thread();
  y[i] = generate(make_uint4(i, 0, 0, 0), make_uint2(12345, 67890));
}

extern "C" __global__ void philox_known(unsigned *errors) {
  unsigned t = threadIdx.x, f = t == 1 ? 0xffffffffu : 0;
  uint4 counter = make_uint4(f, f, f, f);
  uint2 key = make_uint2(f, f);
  if (t == 2)
    counter = make_uint4(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344),
    key = make_uint2(0xa4093822, 0x299f31d0);
  const uint4 want[3] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
  uint4 got = generate(counter, key);
  EXPECT_EQ(t, got.x, want[t].x);
  EXPECT_EQ(t, got.y, want[t].y);
  EXPECT_EQ(t, got.z, want[t].z);
  EXPECT_EQ(t, got.w, want[t].w);
}

extern "C" __global__ void philox_check(const unsigned *y, unsigned *errors) {
  int ones = 0, repeats = 0;
  for (int i = 0; i < 2000; i++) ones += __popc(y[i]), repeats += i > 0 && y[i] == y[i - 1];
  EXPECT(0, ones > 31500 && ones < 32500); // 32000 expected, four standard deviations
  EXPECT_EQ(1, repeats, 0);
}
