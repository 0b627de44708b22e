// MT19937 of Matsumoto and Nishimura: 8192 lanes, each 2^2048 numbers after the one before. Eight numbers of a lane are made at
// once, from eight places of its 624 words, then as many of the next lane; after 78 turns all words have been taken.
//
// A lane's words are a linear recurrence, so that those 2^2048 on are sums of those here: which ones says x^(2^2048) modulo the
// recurrence's characteristic polynomial, which the authors give in closed form.
#include <stdlib.h>
#include <string.h>

#include "rand/rand.h"

enum {
  WORDS = 624,
  MIDDLE = 397,
  DEGREE = 19937,
  LOG_JUMP = 2048,
  LANES = 8192,
  AT_ONCE = 8,
  TURNS = WORDS / AT_ONCE,
  WIDE = (2 * DEGREE + 63) / 64 + 1, // words of a product of two polynomials
  WINDOW = 6                         // coefficients that are applied at once
};
#define MATRIX 0x9908b0dfu

typedef struct Polynomial { // over bits, x^i is bit i
  uint64_t of[WIDE];
} Polynomial;

typedef struct Lane {
  uint32_t of[WORDS];
  uint64_t turns; // how often all words were made anew
} Lane;

typedef struct Jump {
  Polynomial by;
  uint32_t table[1 << WINDOW][WORDS], room[WORDS + DEGREE + WINDOW]; // while it jumps
} Jump;

struct RandTwister19937 {
  Jump jump;
  uint32_t last[WORDS]; // with which the last lane made has started
  uint32_t made;
  Lane lanes[LANES];
};

// ---- the polynomial ----

static void add_shifted(Polynomial *to, const Polynomial *p, uint32_t by) {
  uint32_t words = by / 64, bits = by % 64;
  for (uint32_t i = WIDE; i-- > words;) {
    uint64_t low = bits && i > words ? p->of[i - words - 1] >> (64 - bits) : 0;
    to->of[i] ^= p->of[i - words] << bits | low;
  }
}

// p (x^a + x^b) + bit
static Polynomial times(const Polynomial *p, uint32_t a, uint32_t b, uint32_t bit) {
  Polynomial r = {{bit}};
  add_shifted(&r, p, a);
  add_shifted(&r, p, b);
  return r;
}

static Polynomial characteristic(void) {
  Polynomial p = {{1}};
  for (int i = 0; i < 31; i++) p = times(&p, WORDS - 1, MIDDLE - 1, MATRIX >> i & 1);
  return times(&p, WORDS, MIDDLE, MATRIX >> 31);
}

// Of 19937 coefficients, most are 0: `terms` has the others' places, but the highest's. No two of the highest are in one word.
static void reduce(Polynomial *p, const uint16_t *terms, uint32_t count) {
  for (uint32_t high = 2 * DEGREE - 1; high >= DEGREE;) {
    uint32_t low = high / 64 * 64 > DEGREE ? high / 64 * 64 : DEGREE;
    uint64_t bits = p->of[low / 64] >> low % 64;
    p->of[low / 64] &= low % 64 ? (UINT64_C(1) << low % 64) - 1 : 0;
    for (uint32_t t = 0; bits && t < count; t++) {
      uint32_t to = low - DEGREE + terms[t];
      p->of[to / 64] ^= bits << to % 64;
      if (to % 64) p->of[to / 64 + 1] ^= bits >> (64 - to % 64);
    }
    high = low - 1;
  }
}

static uint64_t spread(uint32_t bits) { // a 0 after each
  uint64_t x = bits;
  x = (x | x << 16) & UINT64_C(0x0000ffff0000ffff);
  x = (x | x << 8) & UINT64_C(0x00ff00ff00ff00ff);
  x = (x | x << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  x = (x | x << 2) & UINT64_C(0x3333333333333333);
  return (x | x << 1) & UINT64_C(0x5555555555555555);
}

static Polynomial jump_polynomial(void) {
  Polynomial p = characteristic(), square;
  uint16_t terms[256];
  uint32_t count = 0;
  for (uint16_t i = 0; i < DEGREE && count < 256; i++)
    if (p.of[i / 64] >> i % 64 & 1) terms[count++] = i;
  p = (Polynomial){{2}}; // x
  for (int n = 0; n < LOG_JUMP; n++) {
    for (uint32_t i = 0; i < WIDE; i++) square.of[i] = spread((uint32_t)(p.of[i / 2] >> i % 2 * 32));
    p = square;
    reduce(&p, terms, count);
  }
  return p;
}

// ---- states ----

static uint32_t next_word(uint32_t a, uint32_t b, uint32_t middle) {
  uint32_t y = (a & 0x80000000u) | (b & 0x7fffffffu);
  return middle ^ y >> 1 ^ (y & 1 ? MATRIX : 0);
}

static void add(uint32_t *restrict to, const uint32_t *restrict from) {
  for (uint32_t i = 0; i < WORDS; i++) to[i] ^= from[i];
}

// Horner's rule, a window of coefficients at a time: table[k] is the polynomial with the coefficients of k applied to the words.
static void jump(Jump *j, uint32_t words[WORDS]) {
  uint32_t(*table)[WORDS] = j->table, *at = j->room;
  memset(at, 0, WORDS * sizeof *at);
  memset(table[0], 0, sizeof table[0]);
  for (uint32_t bit = 1; bit < 1u << WINDOW; bit *= 2) {
    for (uint32_t k = 0; k < bit; k++) {
      memcpy(table[bit + k], table[k], sizeof table[k]);
      add(table[bit + k], words);
    }
    uint32_t next = next_word(words[0], words[1], words[MIDDLE]);
    memmove(words, words + 1, (WORDS - 1) * sizeof *words);
    words[WORDS - 1] = next;
  }
  for (uint32_t low = DEGREE / WINDOW * WINDOW;; low -= WINDOW) {
    uint64_t bits = j->by.of[low / 64] >> low % 64;
    if (low % 64 > 64 - WINDOW) bits |= j->by.of[low / 64 + 1] << (64 - low % 64);
    for (int i = 0; i < WINDOW; i++, at++) at[WORDS] = next_word(at[0], at[1], at[MIDDLE]);
    add(at, table[bits & ((1u << WINDOW) - 1)]);
    if (!low) break;
  }
  memcpy(words, at, WORDS * sizeof *words);
}

static void refill(uint32_t *v) {
  for (uint32_t i = 0; i < WORDS; i++) v[i] = next_word(v[i], v[(i + 1) % WORDS], v[(i + MIDDLE) % WORDS]);
}

bool rand_mt19937_start(RandState *s) {
  static Polynomial jump; // the same for all; two threads that make it at once make the same
  static bool known;
  if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
    jump = jump_polynomial();
    __atomic_store_n(&known, true, __ATOMIC_RELEASE);
  }
  s->twister19937 = calloc(1, sizeof *s->twister19937);
  if (!s->twister19937) return false;
  s->twister19937->jump.by = jump;
  uint32_t *v = s->twister19937->last;
  v[0] = (uint32_t)s->seed;
  for (uint32_t i = 1; i < WORDS; i++) v[i] = 1812433253u * (v[i - 1] ^ v[i - 1] >> 30) + i;
  memcpy(s->twister19937->lanes[0].of, v, sizeof s->twister19937->lanes[0].of);
  s->twister19937->made = 1;
  return true;
}

void rand_mt19937_lanes(RandState *s, uint64_t results) {
  struct RandTwister19937 *t = s->twister19937;
  uint64_t last = (s->counter + results + AT_ONCE - 1) / AT_ONCE;
  for (uint32_t lanes = last < LANES ? (uint32_t)last : LANES; t->made < lanes; t->made++) {
    jump(&t->jump, t->last);
    memcpy(t->lanes[t->made].of, t->last, sizeof t->last);
  }
}

// Which of the 624 words a thread takes in its turn.
static uint32_t word_of(uint32_t turn, uint32_t thread) {
  static const uint16_t first[AT_ONCE] = {0, 113, 170, 283, 340, 397, 510, 567};
  static const uint16_t rest[] = {1, 57, 114, 171, 227, 284, 341, 398, 454, 511, 568};
  enum { EACH = 7 }; // of a stretch
  if (!turn) return first[thread];
  return rest[(turn - 1) / EACH] + EACH * thread + (turn - 1) % EACH;
}

uint32_t rand_mt19937(RandState *s) {
  uint64_t n = s->counter++, turn = n / AT_ONCE / LANES;
  Lane *lane = &s->twister19937->lanes[n / AT_ONCE % LANES];
  if (lane->turns <= turn / TURNS) {
    refill(lane->of);
    lane->turns++;
  }
  uint32_t y = lane->of[word_of((uint32_t)(turn % TURNS), n % AT_ONCE)];
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680u;
  y ^= y << 15 & 0xefc60000u;
  return y ^ y >> 18;
}
