#include "ops/select.h"

#include <string.h>

#include "kernels/select/weight.h"

const int64_t select_shapes[SELECT_SHAPES][4] = {{1, 1},    {5, 3},     {33, 31},    {9, 770}, {4, 4096},
                                                 {2, 9001}, {1, 50257}, {1, 300001}, {0, 64}};
const uint32_t select_shared[SELECT_KERNELS] = {HELD_SHARED, HELD_SHARED};

uint64_t select_order(float value, bool nan_first, int64_t column) {
  union {
    float f;
    uint32_t u;
  } x = {value + 0.0f}; // -0 is +0
  uint32_t key = x.u ^ (x.u >> 31 ? ~0u : 0x80000000u);
  if (value != value) key = nan_first ? ~0u : 0;
  return (uint64_t)key << 32 | ~(uint32_t)column;
}

static uint64_t weight_of(const SelectRow *r, float value) {
  return r->per > 0 ? select_weight(value, r->top, r->per) : 1;
}

uint64_t select_sum(const SelectRow *r, uint64_t least) {
  float f[CPU_CHUNK];
  uint64_t sum = 0;
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c; i++)
      if (select_order(f[i], r->nan_first, at + i) >= least) sum += weight_of(r, f[i]);
  }
  return sum;
}

// The weights of the elements that begin with `prefix`, by the byte of their order that follows it.
static void sum_by_byte(const SelectRow *r, uint64_t least, uint64_t prefix, int shift, uint64_t sums[256]) {
  float f[CPU_CHUNK];
  memset(sums, 0, 256 * sizeof *sums);
  CPU_CHUNKS(at, c, r->n) {
    cpu_load(r->dtype, r->x, r->start + at, c, f);
    for (int64_t i = 0; i < c; i++) {
      uint64_t order = select_order(f[i], r->nan_first, at + i);
      bool alike = shift == 56 || order >> (shift + 8) == prefix >> (shift + 8);
      if (alike && order >= least) sums[order >> shift & 255] += weight_of(r, f[i]);
    }
  }
}

// Byte by byte from the highest: the largest that reaches the target with all that come before.
uint64_t select_last(const SelectRow *r, uint64_t least, uint64_t target) {
  uint64_t sums[256], prefix = 0, before = 0;
  for (int shift = 56; shift >= 0; shift -= 8) {
    sum_by_byte(r, least, prefix, shift, sums);
    int byte = 255;
    while (byte > 0 && before + sums[byte] < target) before += sums[byte--];
    prefix |= (uint64_t)byte << shift;
  }
  return prefix > least ? prefix : least;
}
