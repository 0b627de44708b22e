// Rows of a few elements at any address, one a thread: all of it that a row has parts of is a few aligned 16 bytes, loaded at once.
#ifndef SOL_KERNELS_TINY_CUH
#define SOL_KERNELS_TINY_CUH

#include "funnel.cuh"
#include "tiny.h"

typedef struct TinyRow {
  uint4 chunk[3];
} TinyRow;

// Of a tensor from `begin` to `end`, what lies between its rows included. from: NULL: zeros.
INLINE TinyRow tiny_load(const char *from, int bytes, int size, const char *begin, const char *end) {
  int shift = (int)((uint32_t)(uintptr_t)from & 15);
  TinyRow r;
#pragma unroll
  for (int k = 0; k < 3; k++) {
    const char *at = from - shift + k * 16;
    bool wanted = from && k * 16 < shift + bytes, whole = at >= begin && at + 16 <= end;
    r.chunk[k] = load_if(at, wanted && whole);
    if (wanted && !whole) r.chunk[k] = load_singly(at, from, from + bytes, size);
  }
  return r;
}

// Its TINY_BYTES from `from` on.
INLINE void tiny_take(const TinyRow &r, const char *from, int size, Vec *v) {
  uint32_t shift = (uint32_t)(uintptr_t)from & 15;
  v[0].v = funnel(r.chunk[0], r.chunk[1], shift, size);
  v[1].v = funnel(r.chunk[1], r.chunk[2], shift, size);
}

#endif
