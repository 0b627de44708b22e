// Sobol's sequences as curand_kernel.h steps through them, in Gray code's order: from one point to the next one direction vector
// changes each dimension.
#include "rand/rand.h"

bool rand_sobol_start(RandState *s) {
  bool scrambled = s->kind == RAND_SCRAMBLED32 || s->kind == RAND_SCRAMBLED64;
  s->directions = rand_directions(s->kind);
  s->constants = scrambled ? rand_constants(s->kind) : NULL;
  return s->directions && (!scrambled || s->constants);
}

bool rand_is_sobol(RandKind kind) {
  return kind >= RAND_SOBOL32 && kind <= RAND_SCRAMBLED64;
}
bool rand_is_wide(RandKind kind) {
  return kind == RAND_SOBOL64 || kind == RAND_SCRAMBLED64;
}

static uint64_t direction(const RandState *s, uint32_t dimension, uint32_t bit) {
  return rand_is_wide(s->kind) ? ((const uint64_t *)s->directions)[dimension * 64 + bit]
                               : ((const uint32_t *)s->directions)[dimension * 32 + bit];
}

uint64_t rand_sobol_point(const RandState *s, uint32_t dimension, uint64_t n) {
  uint32_t bits = rand_is_wide(s->kind) ? 64 : 32;
  uint64_t x = !s->constants           ? 0
               : rand_is_wide(s->kind) ? ((const uint64_t *)s->constants)[dimension]
                                       : ((const uint32_t *)s->constants)[dimension];
  if (bits == 32) n &= UINT32_MAX;
  uint64_t gray = n ^ n >> 1;
  for (uint32_t bit = 0; bit < bits; bit++)
    if (gray >> bit & 1) x ^= direction(s, dimension, bit);
  return x;
}

uint64_t rand_sobol_next(const RandState *s, uint32_t dimension, uint64_t n, uint64_t x) {
  uint32_t last = rand_is_wide(s->kind) ? 63 : 31, ones = ~n ? (uint32_t)__builtin_ctzll(~n) : 64;
  return x ^ direction(s, dimension, ones < last ? ones : last);
}
