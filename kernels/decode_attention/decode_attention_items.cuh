// Parts of sequences, as decode attention's kernels have them. An item is one part of one sequence for the heads of one tile, which
// share a head of K and V; a part's length does not depend on the batch, and so no sequence's bits do.
#ifndef SOL_KERNELS_DECODE_ATTENTION_ITEMS_CUH
#define SOL_KERNELS_DECODE_ATTENTION_ITEMS_CUH

#include "attention/attention_parts.cuh"
#include "decode_attention/decode_attention.h"
#include "mma.cuh"

#if __CUDA_ARCH__ < 890
// Two fp8 elements as fp16: the bits in fp16's places are the value times 2^-8, and 0x7f is NaN.
INLINE uint32_t halves_of_two_fp8(uint32_t two_bytes) {
  uint32_t apart = (two_bytes & 0xff) << 8 | (two_bytes & 0xff00) << 16, size = apart >> 1 & 0x3f803f80;
  __half2 x = __hmul2(*(const __half2 *)&size, __float2half2_rn(256));
  return *(const uint32_t *)&x | (apart & 0x80008000) | (__vcmpeq2(size, 0x3f803f80) & 0x7fff7fff);
}
// Four of them. From sm_89 on there is an instruction for two (mma.cuh).
INLINE void halves_of_fp8(uint32_t four, uint32_t *low, uint32_t *high) {
  *low = halves_of_two_fp8(four & 0xffff), *high = halves_of_two_fp8(four >> 16);
}
#endif

// Two neighbours, by one instruction where they are aligned to it: callers' memory may begin at any element.
INLINE void store_neighbours(void *p, int64_t i, int kind, float a, float b) {
  char *to = (char *)p + i * (kind == KIND_FP32 ? 4 : 2);
  bool whole = (uintptr_t)to % (kind == KIND_FP32 ? 8 : 4) == 0;
  if (!whole) store_one(p, i, kind, a), store_one(p, i + 1, kind, b);
  else if (kind == KIND_FP32) *(float2 *)to = {a, b};
  else *(uint32_t *)to = narrow2(a, b, kind);
}

typedef struct DecodeItem {
  int64_t index, left;          // left: items of the same tile of heads from it on
  int b, part, parts, kv, tile; // tile: of heads
  int length, key, to;          // tokens of the sequence; of the part from where it is
} DecodeItem;

// Some of the batch's sequences, and a block's items of theirs. All items of a tile of heads come before those of the next: blocks far
// apart read the same tokens at about the same time, and find them in L2.
typedef struct DecodePlan {
  const int *before; // parts of the sequences before each; in shared memory
  int first, count;  // sequences
  int64_t per_tile, begin, end;
} DecodePlan;

INLINE int decode_seen_from(const DecodeParams &p, int length) {
  return p.window && length > p.window ? length - p.window : 0;
}
// From L2: what is read before the predecessor has ended must not be found in L1 after it.
INLINE int decode_length(const DecodeParams &p, int b) {
  return min(max(__ldcg(p.lengths + b), 0), p.capacity);
}
// Tokens of a part of a sequence: as many in each, in whole steps of a block, with what is left in the last. COARSE: p.coarse may be more than p.part.
template <bool COARSE = false> INLINE int decode_part(const DecodeParams &p, int length) {
  int seen = length - decode_seen_from(p, length), part = COARSE && seen < p.part * p.many ? p.coarse : p.part;
  if (seen <= p.whole) return p.whole;
  while (part < p.part_most && seen > part * p.many) part *= 2;
  unsigned parts = (unsigned)(seen + part - 1) >> (31 - __clz(part)), steps = (unsigned)(seen + p.step - 1) >> (31 - __clz(p.step)); // powers of two
  return (int)((steps + parts - 1) / parts) * p.step;
}
template <bool COARSE = false> INLINE int decode_parts(const DecodeParams &p, int length) {
  int part = decode_part<COARSE>(p, length);
  return max((length - decode_seen_from(p, length) + part - 1) / part, 1);
}

// Sums of the parts of the sequences before each, of `count` from `first` on, as count_before has them. lengths: or NULL; the sequences'.
template <int THREADS, bool COARSE> INLINE int decode_count_parts(int *before, const DecodeParams &p, int first, int count, int *lengths) {
  return count_before<THREADS, DECODE_SEQUENCES>(
      before, count, [&](int i) { return decode_length(p, first + i); },
      [&](int i, int length) {
        if (lengths) lengths[i] = length;
        return decode_parts<COARSE>(p, length);
      });
}

template <bool COARSE = false> INLINE void decode_start_part(const DecodeParams &p, DecodeItem *item) {
  int part = decode_part<COARSE>(p, item->length);
  item->key = decode_seen_from(p, item->length) + item->part * part;
  item->to = min(item->key + part, item->length);
}

template <int THREADS, bool COARSE = false> INLINE DecodePlan decode_plan(int *before, const DecodeParams &p, int first, int *lengths = 0) {
  DecodePlan x = {before, first, min(p.batch - first, DECODE_SEQUENCES), 0, 0, 0};
  x.per_tile = (int64_t)decode_count_parts<THREADS, COARSE>(before, p, first, x.count, lengths) * p.kv_heads;
  int64_t all = x.per_tile * p.tiles;
  // Fewer items than blocks, as where sequences are shorter than they might be: the first blocks have one each, which the hardware deals to different SMs.
  bool few = all <= gridDim.x;
  x.begin = few ? min((int64_t)blockIdx.x, all) : all * blockIdx.x / gridDim.x;
  x.end = few ? min((int64_t)blockIdx.x + 1, all) : all * (blockIdx.x + 1) / gridDim.x;
  return x;
}

// lengths: or NULL; in shared memory.
template <bool COARSE = false> INLINE DecodeItem decode_find(const DecodePlan &x, const DecodeParams &p, int64_t index, const int *lengths = 0) {
  DecodeItem item;
  uint64_t tile, in_tile, at, kv;
  split(index, x.per_tile, &tile, &in_tile);
  split(in_tile, p.kv_heads, &at, &kv);
  int low = last_before(x.before, x.count, (int)at);
  item.index = index, item.left = x.per_tile - in_tile, item.kv = (int)kv, item.tile = (int)tile;
  item.b = x.first + low, item.part = (int)at - x.before[low];
  item.length = lengths ? lengths[low] : decode_length(p, item.b), item.parts = decode_parts<COARSE>(p, item.length);
  decode_start_part<COARSE>(p, &item);
  return item;
}

// To the next item of the same tile of heads.
INLINE void decode_advance(const DecodeParams &p, DecodeItem *item) {
  if (++item->kv == p.kv_heads) item->kv = 0, item->part++;
  if (item->part == item->parts) {
    item->part = 0;
    item->length = decode_length(p, ++item->b), item->parts = decode_parts(p, item->length);
  }
  decode_start_part(p, item);
}

// To the next item, which is there unless index is the plan's end then.
INLINE void decode_next(const DecodePlan &x, const DecodeParams &p, DecodeItem *item) {
  if (++item->index >= x.end) return;
  if (--item->left == 0) *item = decode_find(x, p, item->index);
  else decode_advance(p, item);
}

// One token of a tile whose copies come next: its page's number is on its way from memory.
typedef struct DecodePlace {
  int page, kv;
  unsigned in_page;
  bool there;
} DecodePlace;

// early: before the predecessor has ended, so not through L1.
INLINE DecodePlace decode_look_up(const DecodePlan &plan, const DecodeParams &p, const DecodeItem &item, int key, bool early = false) {
  DecodePlace x = {-1, item.kv, 0, false};
  if (item.index >= plan.end || key >= item.to) return x;
  unsigned page = p.page_shift >= 0 ? (unsigned)key >> p.page_shift : (unsigned)key / (unsigned)p.page_size;
  x.in_page = (unsigned)key - page * (unsigned)p.page_size;
  const int32_t *at = p.table + (int64_t)item.b * p.table_pages + page;
  x.page = !p.table ? item.b : early ? __ldcg(at) : *at;
  return x.there = true, x;
}

// In rows of one head; ~0 where nothing is to be read: past the end, a bad page.
INLINE uint32_t decode_row(const DecodeParams &p, const DecodePlace &x) {
  return x.there && (unsigned)x.page < (unsigned)p.pages ? ((unsigned)x.page * p.page_size + x.in_page) * p.kv_heads + x.kv : ~0u;
}

// All of a row: a prefetch of one address may bring 32 bytes alone. `at` and `bytes` are multiples of 16.
INLINE void prefetch_row(const char *at, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(bytes) : "memory");
#endif
}

// While the predecessor still runs, the first tokens of the block's first item are brought to L2: a hint, which may be of other tokens
// where lengths or the table are being written, and is looked up again. row_bytes: of a head, in K and in V.
template <int THREADS> INLINE void decode_hint(int *before, const DecodeParams &p, int row_bytes) {
#if __CUDA_ARCH__ >= 900
  if (!p.hint || !p.aligned) return;
  DecodePlan plan = decode_plan<THREADS>(before, p, 0);
  if (plan.begin >= plan.end) return;
  DecodeItem item = decode_find(plan, p, plan.begin);
#pragma unroll 2
  for (int i = threadIdx.x; i < p.hint; i += THREADS) {
    uint32_t row = decode_row(p, decode_look_up(plan, p, item, item.key + i, true));
    if (row == ~0u) continue;
    prefetch_row((const char *)p.k_cache + (int64_t)row * row_bytes, row_bytes);
    if (p.v_cache) prefetch_row((const char *)p.v_cache + (int64_t)row * row_bytes, row_bytes);
  }
#endif
}

#endif
