#include "ops/select.h"

#include <stdlib.h>

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

static int earlier(const void *a, const void *b) {
  uint64_t x = ((const SelectItem *)a)->order, y = ((const SelectItem *)b)->order;
  return x > y ? -1 : x < y;
}

// Quickselect by the middle item, then a sort of what is left: no two orders are equal.
void select_first(SelectItem *items, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  while (low < high) {
    uint64_t pivot = items[low + (high - low) / 2].order;
    int64_t i = low, j = high;
    while (i <= j) {
      while (items[i].order > pivot) i++;
      while (items[j].order < pivot) j--;
      if (i > j) break;
      SelectItem t = items[i];
      items[i++] = items[j], items[j--] = t;
    }
    if (k - 1 <= j)
      high = j;
    else if (k - 1 >= i)
      low = i;
    else
      break;
  }
  qsort(items, (size_t)k, sizeof *items, earlier);
}
