// Rows of a few elements at any address, two neighbouring ones a thread: all that a row has parts of is two or three aligned 16 bytes.
#ifndef SOL_KERNELS_TINY_CUH
#define SOL_KERNELS_TINY_CUH

#include "funnel.cuh"
#include "tiny.h"

typedef struct TinyTable {
  const char *begin, *end; // what may be read; what lies between rows included
  int bytes, size;         // of a row, of an element
} TinyTable;

INLINE uint4 tiny_chunk(const TinyTable &t, const char *from, int k) { // of the row at `from`; NULL: zeros
  int shift = (int)((uint32_t)(uintptr_t)from & 15);
  const char *at = from - shift + k * 16;
  bool wanted = from && k * 16 < shift + t.bytes, whole = at >= t.begin && at + 16 <= t.end;
  uint4 v = load_if(at, wanted && whole);
  if (wanted && !whole) v = load_singly(at, from, from + t.bytes, t.size);
  return v;
}

INLINE const char *tiny_other(const char *at) { return (const char *)__shfl_xor_sync(~0u, (unsigned long long)at, 1); }
INLINE uint4 tiny_swap(uint4 v) {
  return make_uint4(__shfl_xor_sync(~0u, v.x, 1), __shfl_xor_sync(~0u, v.y, 1), __shfl_xor_sync(~0u, v.z, 1), __shfl_xor_sync(~0u, v.w, 1));
}

// The TINY_BYTES from each of a thread's two rows on; what is beyond the row is any. Two neighbouring lanes load the first 32 bytes
// of a row together, half each, in one access of one line, and then exchange what is of the other's rows. All lanes of a warp call it.
INLINE void tiny_load(const TinyTable &t, const char *const from[2], Vec v[2][2]) {
  bool odd = threadIdx.x & 1;
  uint4 chunk[2][3], mine[2], theirs[2];
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const char *other = tiny_other(from[k]);
    mine[k] = tiny_chunk(t, odd ? other : from[k], odd), theirs[k] = tiny_chunk(t, odd ? from[k] : other, odd);
  }
#pragma unroll
  for (int k = 0; k < 2; k++) { // mine: of the even lane's row
    uint4 got = tiny_swap(odd ? mine[k] : theirs[k]);
    chunk[k][0] = odd ? got : mine[k], chunk[k][1] = odd ? theirs[k] : got, chunk[k][2] = make_uint4(0, 0, 0, 0);
    if (t.bytes > 16 + t.size) chunk[k][2] = tiny_chunk(t, from[k], 2);
    uint32_t shift = (uint32_t)(uintptr_t)from[k] & 15;
    v[k][0].v = funnel(chunk[k][0], chunk[k][1], shift, t.size);
    v[k][1].v = t.bytes > 16 ? funnel(chunk[k][1], chunk[k][2], shift, t.size) : make_uint4(0, 0, 0, 0);
  }
}

// Two rows of n elements of `size` bytes, one behind the other, to shared memory: by words where `to` is on one.
INLINE void tiny_put(char *to, const Vec a[2], const Vec b[2], int n, int size, bool second) {
  const int most = TINY_BYTES / size;
  if (size == 4 || (uintptr_t)to & 3) {
#pragma unroll
    for (int e = 0; e < most; e++) {
      if (e >= n) break;
      if (size == 4) ((uint32_t *)to)[e] = a[e / 4].u[e % 4];
      if (size == 2) ((uint16_t *)to)[e] = a[e / 8].h[e % 8];
      if (second && size == 4) ((uint32_t *)to)[n + e] = b[e / 4].u[e % 4];
      if (second && size == 2) ((uint16_t *)to)[n + e] = b[e / 8].h[e % 8];
    }
    return;
  }
  uint32_t *words = (uint32_t *)to, odd = n & 1;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    if (2 * j >= n) break;
    uint32_t u = a[j / 4].u[j % 4];
    if (2 * j + 1 < n) words[j] = u;
    if (2 * j + 1 == n && second) words[j] = (u & 0xffff) | b[0].u[0] << 16;
    if (2 * j + 1 == n && !second) *(uint16_t *)(words + j) = (uint16_t)u;
  }
  words += (n + 1) / 2;
#pragma unroll
  for (int j = 0; j < 8; j++) {
    if (2 * j + 1 + (int)odd >= n) break;
    uint32_t u = b[j / 4].u[j % 4], next = j < 7 ? b[(j + 1) / 4].u[(j + 1) % 4] : 0;
    if (second) words[j] = odd ? __funnelshift_r(u, next, 16) : u;
  }
}

#endif
