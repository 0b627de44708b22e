// Parts of sequences, as decode attention's kernels have them. An item is one part of one sequence for the heads of one tile, which
// share a head of K and V; a part's length does not depend on the batch, and so no sequence's bits do.
#ifndef SOL_KERNELS_DECODE_ATTENTION_ITEMS_CUH
#define SOL_KERNELS_DECODE_ATTENTION_ITEMS_CUH

#include "attention/attention_parts.cuh"
#include "decode_attention/decode_attention.h"

typedef struct DecodeItem {
  int64_t index;
  int b, part, parts, kv, tile; // tile: of heads
  int length, key, to;          // tokens of the sequence; of the part from where it is
} DecodeItem;

INLINE int decode_seen_from(const DecodeParams &p, int length) {
  return p.window && length > p.window ? length - p.window : 0;
}
INLINE int decode_length(const DecodeParams &p, int b) {
  return min(max(p.lengths[b], 0), p.capacity);
}
INLINE int decode_parts(const DecodeParams &p, int length) {
  return max((length - decode_seen_from(p, length) + p.part - 1) / p.part, 1);
}

// Sums of the parts of the sequences before each, of `count` from `first` on; DECODE_SEQUENCES + 1 of them, after which there is
// room for the warps' sums. Returns the sum of all.
template <int THREADS> INLINE int decode_count_parts(int *before, const DecodeParams &p, int first, int count) {
  enum { EACH = DECODE_SEQUENCES / THREADS };
  int mine[EACH], sum = 0, lane = threadIdx.x % 32, warp = threadIdx.x / 32, *warps = before + DECODE_SEQUENCES + 1;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    int b = threadIdx.x * EACH + i;
    mine[i] = sum;
    sum += b < count ? decode_parts(p, decode_length(p, first + b)) : 0;
  }
  int at = sum;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    int other = __shfl_up_sync(~0u, at, o);
    at += lane >= o ? other : 0;
  }
  if (lane == 31) warps[warp] = at;
  __syncthreads();
  at -= sum;
  int all = 0;
  for (int w = 0; w < THREADS / 32; w++) {
    at += w < warp ? warps[w] : 0;
    all += warps[w];
  }
#pragma unroll
  for (int i = 0; i < EACH; i++) before[threadIdx.x * EACH + i] = at + mine[i];
  if (threadIdx.x == 0) before[DECODE_SEQUENCES] = all;
  __syncthreads();
  return all;
}

INLINE void decode_start_part(const DecodeParams &p, DecodeItem *item) {
  item->key = decode_seen_from(p, item->length) + item->part * p.part;
  item->to = min(item->key + p.part, item->length);
}

INLINE DecodeItem decode_find(const int *before, const DecodeParams &p, int first, int64_t index) {
  DecodeItem item;
  uint64_t at, in_part, kv, tile;
  split(index, p.kv_heads * p.tiles, &at, &in_part);
  split(in_part, p.tiles, &kv, &tile);
  int low = 0, high = DECODE_SEQUENCES; // the last sequence that does not begin after it
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (before[middle] <= (int)at) low = middle;
    else high = middle;
  }
  item.index = index, item.kv = (int)kv, item.tile = (int)tile, item.b = first + low, item.part = (int)at - before[low];
  item.length = decode_length(p, item.b), item.parts = decode_parts(p, item.length);
  decode_start_part(p, &item);
  return item;
}

// To the next item, which is there unless index is `end` then.
INLINE void decode_next(const DecodeParams &p, int64_t end, DecodeItem *item) {
  if (++item->index >= end) return;
  if (++item->tile == p.tiles) item->tile = 0, item->kv++;
  if (item->kv == p.kv_heads) item->kv = 0, item->part++;
  if (item->part == item->parts) {
    item->part = 0;
    item->length = decode_length(p, ++item->b), item->parts = decode_parts(p, item->length);
  }
  decode_start_part(p, item);
}

#endif
