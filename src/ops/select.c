#include "ops/select.h"

#include <string.h>

#include "kernels/select/weight.h"

const int64_t select_shapes[SELECT_SHAPES][4] = {{1, 1},    {5, 3},     {33, 31},    {9, 770}, {4, 4096},
                                                 {2, 9001}, {1, 50257}, {1, 300001}, {0, 64}};
enum { LIST_BYTES = SELECT_ROOM * 8 };
const uint32_t select_shared[SELECT_KERNELS] = {HELD_SHARED + LIST_BYTES, HELD_SHARED + LIST_BYTES};

// Short rows have a warp each, in blocks of 4. Of longer ones every block of a cluster lists the k largest of its own, so
// where k is large there is one block. A list has room for a few times k entries, and not for more than the row has.
HeldShape select_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, int64_t k, int32_t *room,
                      OpsLaunch *l) {
  enum { SHORT = 256, MANY = 128, LEAST = 64 };
  int64_t chunks = ops_ceil_div(n, 16 / in), entries = LEAST;
  bool is_short = chunks <= SHORT && k <= MANY;
  HeldShape s;
  while (entries < SELECT_ROOM && entries < n && entries < (is_short ? 4 : 16) * k) entries *= 2;
  if (!k) entries = 0;
  if (is_short) {
    s = held_short(rows, chunks, 32, true, l);
  } else {
    s = held_long(ctx, rows, chunks, k > MANY ? 1 : 16, k > MANY ? 1 : 8, l);
  }
  *room = (int32_t)entries;
  l->shared += (uint32_t)(entries * 8 * s.rows);
  return s;
}

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
