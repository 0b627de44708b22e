// Rows that begin at any element, 16 bytes at a time into shared memory: two aligned accesses and a shift, several of them under way together.
#ifndef SOL_KERNELS_ATTENTION_ODD_CUH
#define SOL_KERNELS_ATTENTION_ODD_CUH

#include "attention/attention.h"
#include "funnel.cuh"
#include "mma.cuh"

// A tensor's bytes: what is read beside a row's own elements must be among them.
typedef struct Extent {
  const char *first, *end;
} Extent;

// heads: of d elements. With starts the stride between sequences is 0, and tokens are all sequences'.
INLINE Extent extent_of(const AttentionParams &p, const void *first, int64_t batch, int64_t row, int tokens, int heads, int d) {
  return {(const char *)first, (const char *)first + (batch * (p.batch - 1) + row * (tokens - 1) + (int64_t)heads * d) * 2};
}
INLINE Extent extent_of_queries(const AttentionParams &p, int d) {
  return extent_of(p, p.q, p.q_batch, p.q_row, p.q_starts ? p.q_tokens : p.queries, p.heads, d);
}
INLINE Extent extent_of_keys(const AttentionParams &p, const void *first, int64_t batch, int64_t row, int d) {
  return extent_of(p, first, batch, row, p.kv_starts ? p.kv_tokens : p.keys, p.heads / p.group, d);
}

INLINE void store_piece(uint32_t to, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

// COUNT pieces: number i comes from from(i), zeros where that is NULL, to to(i). At the tensor's ends a piece is read by elements. By whole warps.
template <int COUNT, class From, class To> INLINE void load_pieces(const Extent &e, From from, To to) {
  Around a[COUNT];
  uint32_t shift[COUNT], alone = 0;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const char *at = from(i);
    bool around = at && is_around(at, e.first, e.end);
    a[i] = load_around(at, around), shift[i] = (uint32_t)(uintptr_t)at & 15;
    if (at && !around) alone |= 1u << i;
  }
#pragma unroll
  for (int i = 0; i < COUNT; i++) store_piece(to(i), funnel(a[i].lo, a[i].hi, shift[i], 2));
  uint32_t any = __reduce_or_sync(~0u, alone);
#pragma unroll 1
  for (int i = 0; any >> i; i++) {
    const char *at = from(i);
    if (alone >> i & 1) copy_elements(to(i), at, true, 2);
  }
}

#endif
