// K and V of new tokens into their places of a paged cache. A page is contiguous, and so are the pages: place
// page * page_size + offset is just the slot. A thread moves the same part of a token's K and V.
#include "kv_append.h"

#include "elementwise.cuh"

typedef struct Part {
  uint64_t token, item;
} Part;

// Where blocks are few, their lines are prefetched into L2 while the predecessor runs.
INLINE bool kv_part(KvParams p, Part *part) {
  const int bytes = 16; // of an item of k and v
  uint64_t i = thread_index();
  part->token = divide(i, p.token);
  part->item = i - part->token * p.token.by;
  if (may_hint() && i < p.items && part->item % (128 / bytes) == 0) {
    prefetch_l2((const char *)p.k + ((int64_t)part->token * p.k_stride + (int64_t)part->item) * bytes);
    prefetch_l2((const char *)p.v + ((int64_t)part->token * p.v_stride + (int64_t)part->item) * bytes);
  }
  begin_kernel();
  return i < p.items;
}

// Where the token goes, in items; -1: nowhere.
INLINE int64_t kv_place(KvParams p, Part part) {
  int64_t slot = load_id(p.slots, part.token, p.wide_ids);
  if (slot < 0 || slot >= p.places) return -1;
  return slot * (int64_t)p.token.by + (int64_t)part.item;
}

KERNEL __launch_bounds__(256) sol_kv_append_16(KvParams p) {
  Part part;
  if (!kv_part(p, &part)) return;
  uint4 k = ((const uint4 *)p.k)[(int64_t)part.token * p.k_stride + (int64_t)part.item];
  uint4 v = ((const uint4 *)p.v)[(int64_t)part.token * p.v_stride + (int64_t)part.item];
  int64_t place = kv_place(p, part);
  if (place < 0) return;
  ((uint4 *)p.k_cache)[place] = k;
  ((uint4 *)p.v_cache)[place] = v;
}

// Rows on 8 bytes: a warp has KV_UNITS times its width of those, and no load waits for the slot.
KERNEL __launch_bounds__(256) sol_kv_append_8(KvParams p) {
  uint64_t first = thread_index() / 32 * (32 * KV_UNITS) + threadIdx.x % 32;
  uint2 k[KV_UNITS], v[KV_UNITS];
  int64_t place[KV_UNITS];
  begin_kernel();
#pragma unroll
  for (int j = 0; j < KV_UNITS; j++) {
    uint64_t i = first + 32 * j;
    Part part = {divide(i, p.token), 0};
    part.item = i - part.token * p.token.by;
    place[j] = i < p.items ? kv_place(p, part) : -1;
    if (i >= p.items) continue;
    k[j] = ((const uint2 *)p.k)[(int64_t)part.token * p.k_stride + (int64_t)part.item];
    v[j] = ((const uint2 *)p.v)[(int64_t)part.token * p.v_stride + (int64_t)part.item];
  }
#pragma unroll
  for (int j = 0; j < KV_UNITS; j++) {
    if (place[j] < 0) continue;
    ((uint2 *)p.k_cache)[place[j]] = k[j];
    ((uint2 *)p.v_cache)[place[j]] = v[j];
  }
}

INLINE void store_fp8(void *cache, int64_t place, int per, int in, int kind, float scale, const uint32_t *w) {
  float f[8], inverse = __frcp_rn(scale);
  to_floats(w, per, kind_of(in, kind), f);
#pragma unroll
  for (int j = 0; j < per; j++) f[j] = over_scale(f[j], scale, inverse);
  store_chunk(cache, place * per, per, 1, KIND_FP8, f);
}

INLINE void kv_fp8(int in, KvParams p) {
  const int per = CHUNK_OF(in, 1);
  Part part;
  uint32_t k[4], v[4];
  if (!kv_part(p, &part)) return;
  load_aligned((const uint4 *)p.k + (int64_t)part.token * p.k_stride + (int64_t)part.item, 4, 0, k);
  load_aligned((const uint4 *)p.v + (int64_t)part.token * p.v_stride + (int64_t)part.item, 4, 0, v);
  int64_t place = kv_place(p, part);
  if (place < 0) return;
  store_fp8(p.k_cache, place, per, in, p.kind, p.k_scale, k);
  store_fp8(p.v_cache, place, per, in, p.kind, p.v_scale, v);
}

#define KV_FP8(in) KERNEL __launch_bounds__(256) sol_kv_append_fp8_##in(KvParams p) { kv_fp8(in, p); }
KV_FP8(2)
KV_FP8(4)

// Rows that start anywhere, in the cache too: chunks lie on the cache's boundaries, so it is known where only once the slot is.
typedef struct KvRow {
  const char *from;
  char *to;
  Extent extent; // of all tokens' rows
  Chunk chunk;
} KvRow;

// `side`: 0 for K, 1 for V. per: elements of a chunk, of `in` bytes in the row and `out` in the cache. Strides are in elements.
INLINE KvRow kv_row(const KvParams &p, int side, Part part, int64_t slot, int per, int in, int out) {
  KvRow r;
  int64_t stride = (side ? p.v_stride : p.k_stride) * in;
  r.extent.begin = (const char *)(side ? p.v : p.k);
  r.extent.end = r.extent.begin + p.last * stride + p.length * in;
  r.from = r.extent.begin + (int64_t)part.token * stride;
  r.to = (char *)(side ? p.v_cache : p.k_cache) + slot * p.length * out;
  r.chunk.first = (int64_t)part.item * per - (int64_t)((uint32_t)(uintptr_t)r.to & (per * out - 1)) / out;
  r.chunk.full = r.chunk.first >= 0 && r.chunk.first + per <= p.length;
  return r;
}

// in: bytes of an element. fp8: the cache is of fp8, otherwise of x's type.
INLINE void kv_any(int in, bool fp8, const KvParams &p) {
  const int per = 16 / in, out = fp8 ? 1 : in;
  Part part;
  KvRow r[2];
  Raw raw[2];
  uint64_t i = thread_index();
  part.token = divide(i, p.token);
  part.item = i - part.token * p.token.by;
  begin_kernel();
  if (i >= p.items) return;
  int64_t slot = load_id(p.slots, part.token, p.wide_ids);
  if (slot < 0 || slot >= p.places) return;
#pragma unroll
  for (int side = 0; side < 2; side++) {
    r[side] = kv_row(p, side, part, slot, per, in, out);
    load_chunk(r[side].extent, r[side].from, r[side].chunk, p.length, per, in, &raw[side]);
  }
#pragma unroll
  for (int side = 0; side < 2; side++) {
    Chunk c = r[side].chunk;
    uint32_t w[4];
    cut_chunk(&raw[side], per, in);
    if (fp8) {
      float f[8], scale = side ? p.v_scale : p.k_scale, inverse = __frcp_rn(scale);
      to_floats(raw[side].w, per, kind_of(in, p.kind), f);
#pragma unroll
      for (int j = 0; j < per; j++) f[j] = over_scale(f[j], scale, inverse);
      from_floats(f, per, KIND_FP8, w);
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++) w[j] = raw[side].w[j];
    }
    if (c.full) store_aligned(r[side].to + c.first * out, per * out / 4, w);
    else store_words_some(r[side].to, c.first, p.length, per, out, w);
  }
}

#define KV_ANY(name, in, fp8) KERNEL __launch_bounds__(256) sol_kv_append_##name(KvParams p) { kv_any(in, fp8, p); }
KV_ANY(any_1, 1, false)
KV_ANY(any_2, 2, false)
KV_ANY(any_4, 4, false)
KV_ANY(any_fp8_2, 2, true)
KV_ANY(any_fp8_4, 4, true)
