// The states of the lanes: where in the sequence each begins.
#include <stdlib.h>
#include <string.h>

#include "rand/rand.h"

// ---- XORWOW: Marsaglia's shift register of five words, linear in its bits, and a counter ----

enum { WORDS = 5, BITS = 32 * WORDS, XORWOW_JUMP = 67 };

typedef struct Columns { // of a matrix over bits: what each bit of a state becomes
  uint32_t of[BITS][WORDS];
} Columns;

static void step_register(uint32_t v[WORDS]) {
  uint32_t t = v[0] ^ v[0] >> 2, last = v[4];
  memmove(v, v + 1, 4 * sizeof *v);
  v[4] = last ^ last << 4 ^ t ^ t << 1;
}

static void multiply(const Columns *m, uint32_t v[WORDS]) {
  uint32_t r[WORDS] = {0};
  for (int bit = 0; bit < BITS; bit++)
    if (v[bit / 32] >> bit % 32 & 1)
      for (int i = 0; i < WORDS; i++) r[i] ^= m->of[bit][i];
  memcpy(v, r, sizeof r);
}

static RandLane xorwow_start(uint64_t seed) {
  uint32_t low = 1099087573u * ((uint32_t)seed ^ 0xaad26b49u);
  uint32_t high = 2591861531u * ((uint32_t)(seed >> 32) ^ 0xf7dcefddu);
  return (RandLane){{123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low,
                     6615241u + high + low}};
}

// 2^67 steps: the counter is the same again after them.
static void xorwow_lanes(RandState *s) {
  Columns m = {0}, square;
  for (int bit = 0; bit < BITS; bit++) {
    m.of[bit][bit / 32] = 1u << bit % 32;
    step_register(m.of[bit]);
  }
  for (int i = 0; i < XORWOW_JUMP; i++) {
    square = m;
    for (int bit = 0; bit < BITS; bit++) multiply(&m, square.of[bit]);
    m = square;
  }
  s->lanes[0] = xorwow_start(s->seed);
  for (uint32_t i = 1; i < s->lane_count; i++) {
    s->lanes[i] = s->lanes[i - 1];
    multiply(&m, s->lanes[i].v);
  }
}

// The seeded order: each lane has a seed of its own. Nothing says by how much they differ; it was found from the library's numbers.
static void seeded_lanes(RandState *s) {
  enum { APART = 3133713 };
  for (uint32_t i = 0; i < s->lane_count; i++) s->lanes[i] = xorwow_start(s->seed + (uint64_t)i * APART);
}

// ---- MRG32k3a: L'Ecuyer's two recurrences of three words ----

enum { MRG_JUMP = 76 };
#define MOD1 UINT64_C(4294967087)
#define MOD2 UINT64_C(4294944443)

typedef struct Matrix3 {
  uint64_t of[3][3];
} Matrix3;

static Matrix3 product(const Matrix3 *a, const Matrix3 *b, uint64_t mod) {
  Matrix3 r;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      uint64_t sum = 0;
      for (int k = 0; k < 3; k++) sum = (sum + a->of[i][k] * b->of[k][j] % mod) % mod;
      r.of[i][j] = sum;
    }
  return r;
}

static void apply(const Matrix3 *m, uint32_t v[3], uint64_t mod) {
  uint32_t r[3];
  for (int i = 0; i < 3; i++) {
    uint64_t sum = 0;
    for (int k = 0; k < 3; k++) sum = (sum + m->of[i][k] * v[k] % mod) % mod;
    r[i] = (uint32_t)sum;
  }
  memcpy(v, r, sizeof r);
}

static void mrg_lanes(RandState *s) {
  Matrix3 one = {{{0, 1, 0}, {0, 0, 1}, {MOD1 - 810728, 1403580, 0}}};
  Matrix3 two = {{{0, 1, 0}, {0, 0, 1}, {MOD2 - 1370589, 0, 527612}}};
  for (int i = 0; i < MRG_JUMP; i++) one = product(&one, &one, MOD1), two = product(&two, &two, MOD2);
  uint64_t low = (uint32_t)s->seed ^ 0x55555555u, high = (uint32_t)(s->seed >> 32) ^ 0xaaaaaaaau;
  const uint64_t factors[6] = {low, high, low, high, low, high};
  for (int i = 0; i < 6; i++)
    s->lanes[0].v[i] = s->seed ? (uint32_t)(factors[i] * 12345 % (i < 3 ? MOD1 : MOD2)) : 12345;
  for (uint32_t i = 1; i < s->lane_count; i++) {
    s->lanes[i] = s->lanes[i - 1];
    apply(&one, s->lanes[i].v, MOD1);
    apply(&two, s->lanes[i].v + 3, MOD2);
  }
}

// ---- all of them; Philox and Sobol's sequences only count ----

uint32_t rand_take_turn(RandState *s) {
  uint32_t lane = s->turn;
  if (s->lane_count) s->turn = (s->turn + 1) % s->lane_count;
  return lane;
}

void rand_free(RandState *s) {
  free(s->lanes);
  free(s->twister);
  free(s->twister19937);
  s->lanes = NULL;
  s->twister = NULL;
  s->twister19937 = NULL;
}

bool rand_start(RandState *s, uint64_t offset) {
  s->turn = 0;
  s->has_block = false;
  bool skips = s->kind == RAND_PHILOX || rand_is_sobol(s->kind);
  s->counter = skips ? offset : 0;
  s->lane_count = s->kind == RAND_XORWOW     ? RAND_LANES
                  : s->kind != RAND_MRG32K3A ? 0
                  : s->legacy                ? RAND_LANES
                                             : RAND_MRG_LANES;
  rand_free(s);
  if (s->lane_count && !(s->lanes = calloc(s->lane_count, sizeof *s->lanes))) return false;
  if (s->kind == RAND_XORWOW) (s->seeded ? seeded_lanes : xorwow_lanes)(s);
  if (s->kind == RAND_MRG32K3A) mrg_lanes(s);
  if (s->kind == RAND_MTGP32 && !rand_mtgp32_start(s)) return false;
  if (s->kind == RAND_MT19937 && !rand_mt19937_start(s)) return false;
  if (rand_is_sobol(s->kind) && !rand_sobol_start(s)) return false;
  s->ready = true;
  for (uint64_t i = 0; !skips && i < offset; i++) rand_bits(s, rand_take_turn(s));
  return true;
}
