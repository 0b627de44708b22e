//! alloc digests 70*32 poison
//! alloc errors 32 zero
//! launch sha256 grid=1 block=70 args=digests
//! launch sha256_check grid=1 block=3 args=digests,errors
//! checks 24
// SHA-256 of messages of 0 to 69 bytes 'a', one a thread: rotations, big-endian bytes, an array of 64 words,
// one or two blocks of input. Digests that are known are compared.
#include "check.cuh"

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
__constant__ unsigned rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

__device__ unsigned rotr(unsigned v, int by) {
  return v >> by | v << (32 - by);
}

__device__ void compress(unsigned *h, const unsigned char *block) {
  unsigned w[64], s[8];
  for (int k = 0; k < 16; k++)
    w[k] = (unsigned)block[4 * k] << 24 | block[4 * k + 1] << 16 | block[4 * k + 2] << 8 | block[4 * k + 3];
  for (int k = 16; k < 64; k++) {
    unsigned a = rotr(w[k - 15], 7) ^ rotr(w[k - 15], 18) ^ w[k - 15] >> 3;
    unsigned b = rotr(w[k - 2], 17) ^ rotr(w[k - 2], 19) ^ w[k - 2] >> 10;
    w[k] = w[k - 16] + a + w[k - 7] + b;
  }
  for (int k = 0; k < 8; k++) s[k] = h[k];
  for (int k = 0; k < 64; k++) {
    unsigned one = rotr(s[4], 6) ^ rotr(s[4], 11) ^ rotr(s[4], 25), choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
    unsigned t = s[7] + one + choice + rounds[k] + w[k];
    unsigned zero = rotr(s[0], 2) ^ rotr(s[0], 13) ^ rotr(s[0], 22);
    unsigned most = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
    for (int j = 7; j > 0; j--) s[j] = s[j - 1];
    s[4] += t, s[0] = t + zero + most;
  }
  for (int k = 0; k < 8; k++) h[k] += s[k];
}

extern "C" __global__ void sha256(unsigned *digests) {
  unsigned length = threadIdx.x, h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char block[64];
  unsigned blocks = (length + 9 + 63) / 64;
  for (unsigned b = 0; b < blocks; b++) {
    for (unsigned k = 0; k < 64; k++) {
      unsigned at = b * 64 + k, last = blocks * 64 - 1;
      block[k] = at < length ? 'a' : at == length ? 0x80 : 0;
      if (at == last) block[k] = (unsigned char)(8 * length);
      if (at == last - 1) block[k] = (unsigned char)(8 * length >> 8);
    }
    compress(h, block);
  }
  for (int k = 0; k < 8; k++) digests[length * 8 + k] = h[k];
}

extern "C" __global__ void sha256_check(const unsigned *digests, unsigned *errors) {
  const unsigned want[3][8] = {
      // of the empty message, of one a, and of 64 of them
      {0xe3b0c442, 0x98fc1c14, 0x9afbf4c8, 0x996fb924, 0x27ae41e4, 0x649b934c, 0xa495991b, 0x7852b855},
      {0xca978112, 0xca1bbdca, 0xfac231b3, 0x9a23dc4d, 0xa786eff8, 0x147c4e72, 0xb9807785, 0xafee48bb},
      {0xffe054fe, 0x7ae0cb6d, 0xc65c3af9, 0xb61d5209, 0xf439851d, 0xb43d0ba5, 0x997337df, 0x154668eb}};
  int t = threadIdx.x, length = t == 2 ? 64 : t;
  for (int k = 0; k < 8; k++) EXPECT_EQ(length, digests[length * 8 + k], want[t][k]);
}
