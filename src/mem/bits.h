// Bit counting without a hardware instruction, and words of sixteen nibbles: the order of a cache set's ways.
#ifndef SOL_MEM_BITS_H
#define SOL_MEM_BITS_H

#include "base/port.h"

#define SOL_NIBBLES_1 UINT64_C(0x1111111111111111)
#define SOL_NIBBLES_8 UINT64_C(0x8888888888888888)

// Not the compiler's builtin: on baseline x86-64 that calls a library function.
static inline uint32_t sol_bits_count(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return x * 0x01010101u >> 24;
}

// Of a four-bit mask of sectors.
static inline uint32_t sol_sector_count(uint32_t mask) {
  return (uint32_t)(UINT64_C(0x4332322132212110) >> (mask & 15) * 4) & 15;
}

static inline uint32_t sol_first_bit(uint32_t x) {
  return (uint32_t)__builtin_ctz(x);
}

// The lowest n bits; n up to 32.
static inline uint32_t sol_low_bits(uint32_t n) {
  return (uint32_t)((UINT64_C(1) << n) - 1);
}

static inline uint32_t sol_nibble(uint64_t word, uint32_t way) {
  return (uint32_t)(word >> way * 4) & 15;
}

#endif
