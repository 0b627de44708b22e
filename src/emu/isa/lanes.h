// Moves one element of every active lane between memory and a register's row. For ops_memory.c, which is
// compiled twice where there is a version with wider vectors.
#ifndef SOL_EMU_LANES_H
#define SOL_EMU_LANES_H

#include "emu/core/exec.h"

// Loads one element of every active lane: `E` bytes at host[l] + at, to lanes of type L, extended as T says.
#define GATHER(name, T, L)                                                                                   \
  static void name(void *to, uint8_t *const *host, uint32_t at, uint32_t mask) {                             \
    L *d = to;                                                                                               \
    for (; mask; mask &= mask - 1) {                                                                         \
      int l = emu_first(mask);                                                                               \
      T v;                                                                                                   \
      memcpy(&v, host[l] + at, sizeof v);                                                                    \
      d[l] = (L)v;                                                                                           \
    }                                                                                                        \
  }
#define GATHERS(name, U, S, BITS)                                                                            \
  GATHER(load_u##BITS##_16, U, uint16_t)                                                                     \
  GATHER(load_u##BITS##_32, U, uint32_t)                                                                     \
  GATHER(load_u##BITS##_64, U, uint64_t)                                                                     \
  GATHER(load_s##BITS##_32, S, int32_t)                                                                      \
  GATHER(load_s##BITS##_64, S, int64_t)
GATHERS(8, uint8_t, int8_t, 8)
GATHER(load_s8_16, int8_t, int16_t)
GATHERS(16, uint16_t, int16_t, 16)
GATHER(load_u32_32, uint32_t, uint32_t)
GATHER(load_u32_64, uint32_t, uint64_t)
GATHER(load_s32_64, int32_t, int64_t)
GATHER(load_u64_64, uint64_t, uint64_t)

typedef struct Pair {
  uint64_t half[2];
} Pair;
static void load_128(void *to, uint8_t *const *host, uint32_t at, uint32_t mask) {
  Pair *d = to;
  for (; mask; mask &= mask - 1) memcpy(&d[emu_first(mask)], host[emu_first(mask)] + at, sizeof *d);
}

typedef void Gather(void *to, uint8_t *const *host, uint32_t at, uint32_t mask);
static Gather *gather_for(uint32_t bytes, uint32_t lane, bool is_signed) {
  switch (bytes << 8 | lane) {
  case 1 << 8 | 2: return is_signed ? load_s8_16 : load_u8_16;
  case 1 << 8 | 4: return is_signed ? load_s8_32 : load_u8_32;
  case 1 << 8 | 8: return is_signed ? load_s8_64 : load_u8_64;
  case 2 << 8 | 2: return load_u16_16;
  case 2 << 8 | 4: return is_signed ? load_s16_32 : load_u16_32;
  case 2 << 8 | 8: return is_signed ? load_s16_64 : load_u16_64;
  case 4 << 8 | 4: return load_u32_32;
  case 4 << 8 | 8: return is_signed ? load_s32_64 : load_u32_64;
  case 8 << 8 | 8: return load_u64_64;
  case 16 << 8 | 16: return load_128;
  default: return NULL;
  }
}

// Stores the low bytes of one element of every active lane. Little-endian hosts: they come first.
#define SCATTER(name, T, L)                                                                                  \
  static void name(const void *from, uint8_t *const *host, uint32_t at, uint32_t mask) {                     \
    const L *d = from;                                                                                       \
    for (; mask; mask &= mask - 1) {                                                                         \
      int l = emu_first(mask);                                                                               \
      T v = (T)d[l];                                                                                         \
      memcpy(host[l] + at, &v, sizeof v);                                                                    \
    }                                                                                                        \
  }
SCATTER(store_8_16, uint8_t, uint16_t)
SCATTER(store_8_32, uint8_t, uint32_t)
SCATTER(store_8_64, uint8_t, uint64_t)
SCATTER(store_16_16, uint16_t, uint16_t)
SCATTER(store_16_32, uint16_t, uint32_t)
SCATTER(store_16_64, uint16_t, uint64_t)
SCATTER(store_32_32, uint32_t, uint32_t)
SCATTER(store_32_64, uint32_t, uint64_t)
SCATTER(store_64_64, uint64_t, uint64_t)
static void store_128(const void *from, uint8_t *const *host, uint32_t at, uint32_t mask) {
  const Pair *d = from;
  for (; mask; mask &= mask - 1) memcpy(host[emu_first(mask)] + at, &d[emu_first(mask)], sizeof *d);
}

typedef void Scatter(const void *from, uint8_t *const *host, uint32_t at, uint32_t mask);
static Scatter *scatter_for(uint32_t bytes, uint32_t lane) {
  switch (bytes << 8 | lane) {
  case 1 << 8 | 2: return store_8_16;
  case 1 << 8 | 4: return store_8_32;
  case 1 << 8 | 8: return store_8_64;
  case 2 << 8 | 2: return store_16_16;
  case 2 << 8 | 4: return store_16_32;
  case 2 << 8 | 8: return store_16_64;
  case 4 << 8 | 4: return store_32_32;
  case 4 << 8 | 8: return store_32_64;
  case 8 << 8 | 8: return store_64_64;
  case 16 << 8 | 16: return store_128;
  default: return NULL;
  }
}

#undef GATHERS
#undef GATHER
#undef SCATTER
#endif
