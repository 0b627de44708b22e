// K and V of new tokens into their places of a paged cache. A page is contiguous, and so are the pages: place
// page * page_size + offset is just the slot. A thread moves the same part of a token's K and V.
#include "kv_append.h"

#include "elementwise.cuh"
#include "fp8.cuh"

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

INLINE void kv_divide(KvScale s, int count, float *f) { fp8_divide((Fp8Scale){s.up, s.over}, count, f); }

INLINE void store_fp8(void *cache, int64_t place, int per, int in, int kind, KvScale scale, const uint32_t *w) {
  float f[8];
  to_floats(w, per, kind_of(in, kind), f);
  kv_divide(scale, per, f);
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
      float f[8];
      to_floats(raw[side].w, per, kind_of(in, p.kind), f);
      kv_divide(side ? p.v_scale : p.k_scale, per, f);
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

// Short rows: neighbouring threads have neighbouring units of the cache, each as wide as the alignment of all its rows allows and of one row. So
// a warp writes a sector once that a row has a part of, and no load waits for a slot.
typedef struct KvUnit {
  int in, out, bytes; // of an element of k and v, of the cache, of a unit
  bool whole;         // a unit's elements are one access to k or v
} KvUnit;

// The elements of a unit, as they are stored.
INLINE void unit_load(KvUnit u, const char *at, uint32_t *w) {
  const int count = u.bytes / u.out, bytes = count * u.in;
  if (u.whole && bytes >= 4) {
    load_aligned(at, bytes / 4, 0, w);
    return;
  }
#pragma unroll
  for (int i = 0; i < count; i += u.whole ? count : 1) {
    if (u.in == 4) w[i] = ((const uint32_t *)at)[i];
    else w[i] = u.in == 2 || u.whole && bytes == 2 ? ((const uint16_t *)at)[i] : ((const uint8_t *)at)[i];
  }
}

// Elements that were loaded singly, put together.
INLINE void unit_join(KvUnit u, uint32_t *w) {
  const int count = u.bytes / u.out, per = 4 / u.in;
  if (u.whole || per == 1) return;
#pragma unroll
  for (int i = 0; i < count; i++) w[i / per] = i % per ? w[i / per] | w[i] << i % per * u.in * 8 : w[i];
}

INLINE uint32_t unit_fp8(KvUnit u, int kind, float over, const uint32_t *w) {
  const int count = u.bytes;
  float f[4] = {};
  uint32_t to;
  to_floats(w, u.in == 2 ? (count + 1) / 2 * 2 : count, kind_of(u.in, kind), f);
#pragma unroll
  for (int j = 0; j < count; j++) f[j] *= over;
  from_floats(f, 4, KIND_FP8, &to);
  return to;
}

// Predicates in place of a branch, behind which the compiler would put loads.
INLINE void unit_store_if(KvUnit u, char *at, bool wanted, uint32_t w) {
  const uint64_t to = __cvta_generic_to_global(at);
  if (u.bytes == 4) asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n @p st.global.u32 [%0], %1;\n}" ::"l"(to), "r"(w), "r"((int)wanted) : "memory");
  if (u.bytes == 2) asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n @p st.global.u16 [%0], %1;\n}" ::"l"(to), "h"((uint16_t)w), "r"((int)wanted) : "memory");
  if (u.bytes == 1) asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %2, 0;\n @p st.global.u8 [%0], %1;\n}" ::"l"(to), "r"(w), "r"((int)wanted) : "memory");
}

// What a thread has of one token: loads first, so that those of all its units are in flight together.
typedef struct KvMoved {
  uint32_t k[4], v[4];
  uint32_t unit;
  uint32_t slot, high; // the slot's words, as they were loaded
  bool there;          // it is a token
} KvMoved;

// The slot of a token. A predicate in place of a branch between loads.
INLINE void unit_slot(const char *id, int bytes, KvMoved *m) {
  m->slot = *(const uint32_t *)id;
  asm volatile("{\n .reg .pred p;\n setp.eq.s32 p, %2, 8;\n mov.u32 %0, 0;\n @p ld.global.u32 %0, [%1 + 4];\n}"
               : "=r"(m->high)
               : "l"(__cvta_generic_to_global(id)), "r"(bytes));
}

// Where a block's first token is.
typedef struct KvFirst {
  const char *k, *v, *slot;
  uint32_t left; // tokens after that one, as far as they matter
} KvFirst;

// i: the unit, counted from those of the block's first token on.
INLINE void unit_fetch(KvUnit u, const KvShortParams &p, const KvFirst &first, uint32_t i, KvMoved *m) {
  const uint32_t from = u.bytes / u.out * u.in; // bytes
  uint32_t down = divide32(i, p.units), token = min(down, first.left); // beyond the last one it is loaded again: no branch
  m->unit = i - down * p.units.by;
  unit_load(u, first.k + (uint64_t)token * p.k_step + (uint64_t)m->unit * from, m->k);
  unit_load(u, first.v + (uint64_t)token * p.v_step + (uint64_t)m->unit * from, m->v);
  unit_slot(first.slot + (uint64_t)token * (uint32_t)p.id_bytes, p.id_bytes, m);
  m->there = down <= first.left;
}

INLINE void unit_give(KvUnit u, const KvShortParams &p, KvMoved *m) {
  const bool fp8 = u.in != u.out;
  const bool wanted = m->there && !m->high && m->slot < p.places; // slots below 0 are beyond 2^31
  uint64_t at = (uint64_t)m->slot * p.row + (uint64_t)m->unit * (uint32_t)u.bytes;
  unit_join(u, m->k), unit_join(u, m->v);
  unit_store_if(u, (char *)p.k_cache + at, wanted, fp8 ? unit_fp8(u, p.kind, p.k_over, m->k) : m->k[0]);
  unit_store_if(u, (char *)p.v_cache + at, wanted, fp8 ? unit_fp8(u, p.kind, p.v_over, m->v) : m->v[0]);
}

INLINE void kv_units(KvUnit u, const KvShortParams &p) {
  enum { WARP = 32, BLOCK = 256 * KV_UNITS };
  uint64_t begin = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * BLOCK, token = divide(begin, p.token);
  if ((int64_t)token > p.last) return;
  KvFirst first = {(const char *)p.k + token * p.k_step, (const char *)p.v + token * p.v_step, (const char *)p.slots + token * p.id_bytes,
                   (uint32_t)min(p.last - (int64_t)token, (int64_t)BLOCK)};
  uint32_t within = (uint32_t)(begin - token * p.token.by) + threadIdx.x / WARP * (WARP * KV_UNITS) + threadIdx.x % WARP;
  KvMoved m[KV_UNITS];
#pragma unroll
  for (int j = 0; j < KV_UNITS; j++) unit_fetch(u, p, first, within + WARP * j, &m[j]);
#pragma unroll
  for (int j = 0; j < KV_UNITS; j++) unit_give(u, p, &m[j]);
}

INLINE void kv_units_of(int in, int out, int bytes, const KvShortParams &p) {
  if (bytes == out || p.whole) kv_units((KvUnit){in, out, bytes, true}, p);
  else kv_units((KvUnit){in, out, bytes, false}, p);
}

INLINE void kv_short(int in, int out, const KvShortParams &p) {
  begin_kernel();
  if (p.unit == 4) kv_units_of(in, out, 4, p);
  else if (out <= 2 && p.unit == 2) kv_units_of(in, out, 2, p);
  else if (out == 1) kv_units_of(in, out, 1, p);
}

#define KV_SHORT(name, in, out) KERNEL __launch_bounds__(256) sol_kv_append_##name(KvShortParams p) { kv_short(in, out, p); }
KV_SHORT(short_1, 1, 1)
KV_SHORT(short_2, 2, 2)
KV_SHORT(short_4, 4, 4)
KV_SHORT(short_fp8_2, 2, 1)
KV_SHORT(short_fp8_4, 4, 1)
