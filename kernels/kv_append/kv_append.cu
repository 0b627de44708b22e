// K and V of new tokens into their places of a paged cache. A page is contiguous, and so are the pages: place
// page * page_size + offset is just the slot. A thread moves the same part of a token's K and V.
#include "kv_append.h"

#include "elementwise.cuh"

typedef struct Part {
  uint64_t token, item;
} Part;

// bytes: of an item of k and v. Where blocks are few, their lines are prefetched into L2 while the predecessor runs.
INLINE bool kv_part(KvParams p, int bytes, Part *part) {
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

#define TYPE_16 uint4
#define TYPE_8  uint2
#define TYPE_4  uint32_t
#define TYPE_2  uint16_t
#define TYPE_1  uint8_t
#define KV_COPY(bytes)                                                                                       \
  KERNEL __launch_bounds__(256) sol_kv_append_##bytes(KvParams p) {                                          \
    Part part;                                                                                               \
    if (!kv_part(p, bytes, &part)) return;                                                                   \
    TYPE_##bytes k = ((const TYPE_##bytes *)p.k)[(int64_t)part.token * p.k_stride + (int64_t)part.item];     \
    TYPE_##bytes v = ((const TYPE_##bytes *)p.v)[(int64_t)part.token * p.v_stride + (int64_t)part.item];     \
    int64_t place = kv_place(p, part);                                                                       \
    if (place < 0) return;                                                                                   \
    ((TYPE_##bytes *)p.k_cache)[place] = k;                                                                  \
    ((TYPE_##bytes *)p.v_cache)[place] = v;                                                                  \
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
  if (!kv_part(p, 16, &part)) return;
  load_aligned((const uint4 *)p.k + (int64_t)part.token * p.k_stride + (int64_t)part.item, 4, 0, k);
  load_aligned((const uint4 *)p.v + (int64_t)part.token * p.v_stride + (int64_t)part.item, 4, 0, v);
  int64_t place = kv_place(p, part);
  if (place < 0) return;
  store_fp8(p.k_cache, place, per, in, p.kind, p.k_scale, k);
  store_fp8(p.v_cache, place, per, in, p.kind, p.v_scale, v);
}

#define KV_FP8(in) KERNEL __launch_bounds__(256) sol_kv_append_fp8_##in(KvParams p) { kv_fp8(in, p); }
#include "kv_append.def"

KERNEL __launch_bounds__(256) sol_kv_append_fp8(KvParams p) {
  Part part;
  if (!kv_part(p, p.kind == KIND_FP32 ? 4 : 2, &part)) return;
  float k = load_one(p.k, (int64_t)part.token * p.k_stride + (int64_t)part.item, p.kind);
  float v = load_one(p.v, (int64_t)part.token * p.v_stride + (int64_t)part.item, p.kind);
  int64_t place = kv_place(p, part);
  if (place < 0) return;
  store_one(p.k_cache, place, KIND_FP8, over_scale(k, p.k_scale, __frcp_rn(p.k_scale)));
  store_one(p.v_cache, place, KIND_FP8, over_scale(v, p.v_scale, __frcp_rn(p.v_scale)));
}
