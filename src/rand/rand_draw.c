// The generators' next numbers, and distributions made of them as curand_kernel.h makes them.
#include <math.h>
#include <string.h>

#include "rand/rand.h"

static uint32_t xorwow(uint32_t v[6]) {
  uint32_t t = v[0] ^ v[0] >> 2, last = v[4];
  memmove(v, v + 1, 4 * sizeof *v);
  v[4] = last ^ last << 4 ^ t ^ t << 1;
  v[5] += 362437;
  return v[4] + v[5];
}

// 1 to 4294967087.
static double mrg32k3a(uint32_t v[6]) {
  const uint64_t mod1 = 4294967087, mod2 = 4294944443;
  uint64_t p1 = (1403580 * (uint64_t)v[1] + 810728 * (mod1 - v[0])) % mod1;
  uint64_t p2 = (527612 * (uint64_t)v[5] + 1370589 * (mod2 - v[3])) % mod2;
  v[0] = v[1], v[1] = v[2], v[2] = (uint32_t)p1;
  v[3] = v[4], v[4] = v[5], v[5] = (uint32_t)p2;
  return (double)(p1 > p2 ? p1 - p2 : p1 + mod1 - p2);
}

static void philox_block(uint64_t seed, uint32_t lane, uint64_t counter, uint32_t out[4]) {
  uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), lane, 0}, k0 = (uint32_t)seed,
           k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
    uint64_t a = UINT64_C(0xd2511f53) * c[0], b = UINT64_C(0xcd9e8d57) * c[2];
    uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1,
                        (uint32_t)a};
    memcpy(c, next, sizeof c);
  }
  memcpy(out, c, sizeof c);
}

// A lane's turn is four numbers of one block; of doubles, which take two numbers each, those of two blocks.
static uint32_t philox(RandState *s, bool wide) {
  uint64_t block = s->counter / 4, each = wide ? 2 : 1, turn = block / each;
  if (s->counter % 4 == 0 || !s->has_block)
    philox_block(s->seed, (uint32_t)(turn % RAND_PHILOX_LANES),
                 turn / RAND_PHILOX_LANES * each + block % each, s->block);
  s->has_block = true;
  return s->block[s->counter++ % 4];
}

uint32_t rand_bits(RandState *s, uint32_t lane) {
  switch (s->kind) {
  case RAND_XORWOW: return xorwow(s->lanes[lane].v);
  case RAND_MRG32K3A: return (uint32_t)(mrg32k3a(s->lanes[lane].v) * 1.000000048662);
  case RAND_MTGP32: return rand_mtgp32(s);
  case RAND_MT19937: return rand_mt19937(s);
  default: return philox(s, false);
  }
}

static const float inverse32 = 2.3283064e-10f;
static const double inverse53 = 1.1102230246251565e-16, mrg_norm = 2.3283065498378288e-10;

float rand_uniform(RandState *s, uint32_t lane) {
  if (s->kind == RAND_MT19937) return (float)rand_uniform_double(s, lane); // rounded once
  if (s->kind == RAND_MRG32K3A) return (float)(mrg32k3a(s->lanes[lane].v) * mrg_norm);
  return (float)rand_bits(s, lane) * inverse32 + inverse32 / 2;
}

// 53 of the bits of two draws.
static double two_draws(RandState *s, uint32_t lane) {
  bool counts = s->kind == RAND_PHILOX;
  uint64_t low = counts ? philox(s, true) : rand_bits(s, lane);
  uint64_t high = counts ? philox(s, true) : rand_bits(s, lane);
  return (double)(low ^ high << 21);
}

// Twisters make one draw do: 32 bits, from which inverse distributions make a number.
static bool one_draw(RandKind kind) {
  return kind == RAND_MTGP32 || kind == RAND_MT19937;
}

double rand_uniform_double(RandState *s, uint32_t lane) {
  if (s->kind == RAND_MT19937) return ((double)rand_bits(s, lane) + 0.5) * 0x1p-32;
  if (s->kind == RAND_MTGP32) return rand_uniform_double_of(rand_bits(s, lane), false);
  if (s->kind == RAND_MRG32K3A) return mrg32k3a(s->lanes[lane].v) * mrg_norm;
  return two_draws(s, lane) * inverse53 + inverse53 / 2;
}

// The normal distribution's inverse: Newton's method, which comes from the right once it has passed the root.
static double inverse_normal(double p) {
  if (p > 0.5) return -inverse_normal(1 - p);
  double x = -sqrt(-2 * log(p)), last = x + 1;
  for (int i = 0; i < 60 && fabs(x - last) > 1e-15 * fabs(x); i++) {
    last = x;
    x -= (0.5 * erfc(-x * 0.70710678118654752) - p) / (0.39894228040143268 * exp(-x * x / 2));
  }
  return x;
}

float rand_uniform_of(uint64_t bits, bool wide) {
  return (float)(uint32_t)(wide ? bits >> 32 : bits) * inverse32 + inverse32 / 2;
}

double rand_uniform_double_of(uint64_t bits, bool wide) {
  return wide ? (double)(bits >> 11) * inverse53 + inverse53 / 2 : ((double)bits + 1) * 0x1p-32;
}

float rand_normal_of(uint64_t bits, bool wide) {
  return (float)inverse_normal(((double)(wide ? bits >> 32 : bits) + 0.5) * 0x1p-32);
}

double rand_normal_double_of(uint64_t bits, bool wide) {
  return inverse_normal(wide ? ((double)(bits >> 11) + 0.5) * 0x1p-53 : ((double)bits + 0.5) * 0x1p-32);
}

// Fishman's inverse, by steps of 500 of the mean, as exp(-mean) may be too small for a double.
uint32_t rand_poisson_of(uint64_t bits, bool wide, double mean) {
  const double most = 500;
  double u = wide ? (double)(bits >> 11) * inverse53 + inverse53 / 4 : ((double)bits + 0.5) * 0x1p-32;
  double term = 1, sum = 1, done = 0;
  uint32_t k = 0;
  do {
    double scale = mean > done + most ? exp(-most) : exp(done - mean);
    term *= scale, sum *= scale, done += most;
    while (u > sum) sum += term *= mean / ++k;
  } while (done < mean);
  return k;
}

// Box and Muller's.
void rand_normal(RandState *s, uint32_t lane, float out[2]) {
  const float around = 6.2831855f;
  float u, v;
  for (int i = 0; one_draw(s->kind) && i < 2; i++) out[i] = rand_normal_of(rand_bits(s, lane), false);
  if (one_draw(s->kind)) return;
  if (s->kind == RAND_MRG32K3A) {
    u = rand_uniform(s, lane);
    v = rand_uniform(s, lane) * around;
  } else {
    u = rand_uniform(s, lane);
    v = (float)rand_bits(s, lane) * (inverse32 * around) + inverse32 * around / 2;
  }
  float r = sqrtf(-2 * logf(u));
  out[0] = sinf(v) * r;
  out[1] = cosf(v) * r;
}

void rand_normal_double(RandState *s, uint32_t lane, double out[2]) {
  for (int i = 0; one_draw(s->kind) && i < 2; i++) out[i] = rand_normal_double_of(rand_bits(s, lane), false);
  if (one_draw(s->kind)) return;
  double u = rand_uniform_double(s, lane);
  double v = s->kind == RAND_MRG32K3A ? rand_uniform_double(s, lane) * 2
                                      : two_draws(s, lane) * (inverse53 * 2) + inverse53;
  double r = sqrt(-2 * log(u));
  out[0] = sin(v * 3.1415926535897932) * r;
  out[1] = cos(v * 3.1415926535897932) * r;
}
