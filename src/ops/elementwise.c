#include "ops/elementwise.h"

#include "ops/ends.h"

Divider elementwise_divider(uint64_t by) {
  // magic = ceil(2^(63 + l) / by), l = ceil(log2(by)): below 2^64, and exact for every index below 2^63,
  // since its error, less than `by` <= 2^l in 2^(63 + l), times the index stays below one part.
  uint32_t l = by > 1 ? 64 - (uint32_t)__builtin_clzll(by - 1) : 0;
  unsigned __int128 power = (unsigned __int128)1 << (63 + l);
  return (Divider){by, (uint64_t)((power + by - 1) / by), l};
}

Divider32 elementwise_divider32(uint32_t by) { // the same, 32 bits narrower
  uint32_t l = by > 1 ? 32 - (uint32_t)__builtin_clz(by - 1) : 0;
  return (Divider32){by, (uint32_t)((((uint64_t)1 << (31 + l)) + by - 1) / by), 31 + l};
}

// The divider for a spread of so many indexes, or by 0.
static Divider32 small_divider(uint64_t by, uint64_t indexes) {
  return by <= ELEMENTWISE_SMALL && indexes <= ELEMENTWISE_SMALL ? elementwise_divider32((uint32_t)by)
                                                                 : (Divider32){0};
}

Spread elementwise_rows(uint64_t per_row, uint64_t m, int64_t n) {
  uint64_t chunks = per_row * m;
  return (Spread){.chunks = chunks,
                  .length = n,
                  .divider = elementwise_divider(per_row),
                  .last = (int64_t)m - 1,
                  .small = small_divider(per_row, chunks)};
}

Spread elementwise_spread(const void *y, int64_t m, int64_t n, int64_t y_stride, int per, int out, bool flat,
                          int threads) {
  enum { PARTS = 8 }; // blocks of a row, for which the rest of its last one does not count
  int64_t mask = per * out - 1, stride = y_stride ? y_stride : n;
  int64_t shift = ((int64_t)(uintptr_t)y & mask) / out;
  if (flat) {
    int64_t all = m * n;
    return (Spread){(uint64_t)((all + shift + per - 1) / per),
                    all,
                    elementwise_divider((uint64_t)n),
                    0,
                    small_divider((uint64_t)n, (uint64_t)all),
                    {0},
                    0};
  }
  bool aligned = !shift && !(stride * out & mask);
  uint64_t per_row = (uint64_t)((n + (aligned ? 0 : per - 1) + per - 1) / per);
  uint64_t chunks = per_row * (uint64_t)m,
           parts = threads ? (per_row + (uint64_t)threads - 1) / (uint64_t)threads : 0;
  bool by_blocks = parts >= PARTS && parts * (uint64_t)m <= ELEMENTWISE_SMALL;
  if (by_blocks) chunks = parts * (uint64_t)m * (uint64_t)threads;
  return (Spread){chunks,
                  n,
                  elementwise_divider(per_row),
                  m - 1,
                  small_divider(per_row, chunks),
                  by_blocks ? elementwise_divider32((uint32_t)parts) : (Divider32){0},
                  ends_bytes(y, NULL, stride * out, n * out)};
}
