// MTGP32: Saito's Mersenne twister for GPUs, 192 of them (64 in the legacy order) with parameters of their own, which come from the toolkit's header.
#include <stdlib.h>
#include <string.h>

#include "rand/rand.h"

#if __has_include(<curand_mtgp32dc_p_11213.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#include <curand_mtgp32.h>
#include <curand_mtgp32dc_p_11213.h>
#pragma GCC diagnostic pop

enum { SETS = 192, LEGACY_SETS = 64, TURN = 256, WORDS = MTGPDC_N, RING = MTGP32_STATE_SIZE };

struct RandTwister {
  uint32_t state[SETS][RING];
  uint32_t at[SETS]; // results of each so far
};

bool rand_mtgp32_known(void) {
  return true;
}

static void start_set(uint32_t *state, const mtgp32_params_fast_t *p, uint32_t seed) {
  uint32_t hidden = p->tbl[4] ^ p->tbl[8] << 16, fill = hidden;
  fill += fill >> 16;
  fill += fill >> 8;
  memset(state, (int)(fill & 0xff), WORDS * sizeof *state);
  state[0] = seed;
  state[1] = hidden;
  for (uint32_t i = 1; i < WORDS; i++) state[i] ^= 1812433253u * (state[i - 1] ^ state[i - 1] >> 30) + i;
}

bool rand_mtgp32_start(RandState *s) {
  s->twister = calloc(1, sizeof *s->twister);
  uint32_t seed = (uint32_t)(s->seed ^ s->seed >> 32);
  for (uint32_t i = 0; s->twister && i < SETS; i++)
    start_set(s->twister->state[i], &mtgp32dc_params_fast_11213[i], seed + i + 1);
  return s->twister;
}

uint32_t rand_mtgp32(RandState *s) {
  uint32_t set = (uint32_t)(s->counter++ / TURN % (s->legacy ? LEGACY_SETS : SETS)),
           *v = s->twister->state[set], n = s->twister->at[set]++;
  const mtgp32_params_fast_t *p = &mtgp32dc_params_fast_11213[set];
  uint32_t pos = (uint32_t)p->pos, x = (v[n % RING] & p->mask) ^ v[(n + 1) % RING];
  x ^= x << p->sh1;
  uint32_t y = x ^ v[(n + pos) % RING] >> p->sh2, r = y ^ p->tbl[y & 15], t = v[(n + pos - 1) % RING];
  v[(n + WORDS) % RING] = r;
  t ^= t >> 16;
  t ^= t >> 8;
  return r ^ p->tmp_tbl[t & 15];
}
#else
bool rand_mtgp32_known(void) {
  return false;
}
bool rand_mtgp32_start(RandState *s) {
  (void)s;
  return false;
}
uint32_t rand_mtgp32(RandState *s) {
  (void)s;
  return 0;
}
#endif
