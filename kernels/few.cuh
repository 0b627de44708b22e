// Rows of a few elements that are in shared memory (narrow.cuh): one lane has all of a row in registers, as `pairs` pairs. Their number is a literal, so
// nothing is asked for each element. Of an odd number of elements the last pair's second is 0. at: byte of narrow_memory; kind: a literal.
#ifndef SOL_KERNELS_FEW_CUH
#define SOL_KERNELS_FEW_CUH

#include "narrow.cuh"

enum { FEW_MOST = 16, FEW_WIDE = 32 }; // elements of a row; where little else is in registers

// Elements of 2 bytes come and go by words of shared memory, wherever the row starts; a half that shares its word with another row's is accessed singly.
INLINE void few_words(int at, bool even, int pairs, uint32_t *pair) {
  int odd = (at & 2) * 8; // bits by which pairs are beyond words
  const char *base = narrow_memory + (at & -4);
  uint32_t word[FEW_WIDE / 2 + 1];
#pragma unroll
  for (int j = 0; j <= pairs; j++) {
    word[j] = 0;
    if (j == 0 && odd) word[j] = (uint32_t)*(const uint16_t *)(base + 2) << 16;
    else if (j < pairs - 1 || (j == pairs - 1 && (odd || even))) word[j] = *(const uint32_t *)(base + 4 * j);
    else if (j == pairs - 1 || (odd && even)) word[j] = *(const uint16_t *)(base + 4 * j);
  }
#pragma unroll
  for (int k = 0; k < pairs; k++) pair[k] = __funnelshift_r(word[k], word[k + 1], odd);
}

INLINE void few_put(int at, bool even, int pairs, const uint32_t *pair) {
  int odd = (at & 2) * 8;
  char *base = narrow_memory + (at & -4);
#pragma unroll
  for (int j = 0; j < pairs; j++) {
    uint32_t word = __funnelshift_l(j ? pair[j - 1] : 0, pair[j], odd);
    if (j == 0 && odd) *(uint16_t *)(base + 2) = (uint16_t)pair[0];
    else if (j < pairs - 1 || odd || even) *(uint32_t *)(base + 4 * j) = word;
    else *(uint16_t *)(base + 4 * j) = (uint16_t)word;
  }
  if (odd && even) *(uint16_t *)(base + 4 * pairs) = (uint16_t)(pair[pairs - 1] >> 16);
}

INLINE void few_load(int kind, int at, bool even, int pairs, float *f) {
  uint32_t pair[FEW_WIDE / 2];
  if (kind != KIND_FP32) few_words(at, even, pairs, pair);
#pragma unroll
  for (int k = 0; k < pairs; k++) {
    float2 two;
    if (kind != KIND_FP32) {
      two = widen2(pair[k], kind);
    } else {
      const float *from = (const float *)(narrow_memory + at) + 2 * k;
      two = make_float2(from[0], k < pairs - 1 || even ? from[1] : 0);
    }
    f[2 * k] = two.x, f[2 * k + 1] = two.y;
  }
}

INLINE void few_store(int at, bool even, int pairs, int kind, const float *f) {
  if (kind == KIND_FP16 || kind == KIND_BF16) {
    uint32_t pair[FEW_WIDE / 2];
#pragma unroll
    for (int k = 0; k < pairs; k++) pair[k] = narrow2(f[2 * k], f[2 * k + 1], kind);
    few_put(at, even, pairs, pair);
  } else {
#pragma unroll
    for (int k = 0; k < 2 * pairs; k++)
      if (k < 2 * pairs - 1 || even) store_one(narrow_memory + at, k, kind, f[k]);
  }
}

INLINE void few_store_fp8(int at, bool even, int pairs, const float *f) {
#pragma unroll
  for (int k = 0; k < pairs; k++) {
    uint32_t two = fp8_pair(f[2 * k], f[2 * k + 1]);
    narrow_memory[at + 2 * k] = (char)two;
    if (k < pairs - 1 || even) narrow_memory[at + 2 * k + 1] = (char)(two >> 8);
  }
}

// body(pairs) for a row of n elements.
#define FEW_PAIRS(n, body)                                                                                             \
  switch (((n) + 1) / 2) {                                                                                             \
  case 1: body(1); break;                                                                                              \
  case 2: body(2); break;                                                                                              \
  case 3: body(3); break;                                                                                              \
  case 4: body(4); break;                                                                                              \
  case 5: body(5); break;                                                                                              \
  case 6: body(6); break;                                                                                              \
  case 7: body(7); break;                                                                                              \
  default: body(8);                                                                                                    \
  }
// The same of more than FEW_MOST, up to FEW_WIDE.
#define FEW_PAIRS_WIDE(n, body)                                                                                        \
  switch (((n) + 1) / 2) {                                                                                             \
  case 9: body(9); break;                                                                                              \
  case 10: body(10); break;                                                                                            \
  case 11: body(11); break;                                                                                            \
  case 12: body(12); break;                                                                                            \
  case 13: body(13); break;                                                                                            \
  case 14: body(14); break;                                                                                            \
  case 15: body(15); break;                                                                                            \
  default: body(16);                                                                                                   \
  }

#endif
