// rmsnorm of table[ids[row]], rows at any address: a block has rows one after another, the next ones in flight to a ring of slots of its shared memory (TMA). What a
// thread has of a row lies on y's 16-byte boundaries, which are at the same columns in all rows of the block: its weights stay in registers.
#ifndef SOL_KERNELS_EMBED_RING_CUH
#define SOL_KERNELS_EMBED_RING_CUH

#include "embed_rows.h"
#include "funnel.cuh"
#include "hopper.cuh"
#include "norm_narrow.cuh"
#include "rounds.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
INLINE void bulk_copy(void *to, const void *from, int bytes, uint64_t *bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(bar))
               : "memory");
}

typedef struct EmbedSlots {
  uint64_t full[EMBED_SLOTS];
  int place[EMBED_SLOTS]; // of a row's first element in its slot; 0: the id names no row
} EmbedSlots;

// By one thread: all aligned 16 bytes that have a part of the row, those at the table's ends by elements.
INLINE void slot_fill(const EmbedParams *p, EmbedSlots *slots, int slot, int64_t id, int in) {
  uint64_t *full = &slots->full[slot];
  if ((uint64_t)id >= (uint64_t)p->vocab) {
    if (p->bad) *p->bad = 1;
    slots->place[slot] = 0;
    barrier_expect(full, 0);
    return;
  }
  const char *from = (const char *)p->table + id * p->table_stride, *end = from + p->n * in;
  const char *begin = (const char *)((uintptr_t)from & -16), *stop = (const char *)(((uintptr_t)end + 15) & -16);
  char *at = narrow_memory + slot * p->slot + 16; // of `begin`
  int shift = (int)(from - begin);
  slots->place[slot] = 16 + shift;
  if (begin < (const char *)p->table || stop > p->table_end) {
    const char *first = begin < (const char *)p->table ? begin + 16 : begin, *last = stop > p->table_end ? stop - 16 : stop;
    if (first > begin) *(uint4 *)at = load_singly(begin, from, end, in);
    if (last < stop) *(uint4 *)(at + (last - begin)) = load_singly(last, from, end, in);
    async_fence();
    at += first - begin, begin = first, stop = last;
  }
  barrier_expect(full, (int)(stop - begin));
  bulk_copy(at, begin, (int)(stop - begin), full);
}

// The elements of columns c to c + 16 / in - 1; those outside the row are zeros.
INLINE Vec slot_item(const char *slot, int place, int c, int n, int in) {
  const int per = 16 / in;
  Vec v;
  v.v = make_uint4(0, 0, 0, 0);
  if (!place || c >= n) return v;
  int at = place + c * in;
  const uint4 *aligned = (const uint4 *)(slot + (at & -16));
  uint4 next = v.v;
  if (at >= 16) v.v = aligned[0]; // what is before a row's first 16 bytes, and after its last, was never written
  if (at & 15) {
    if ((at & -16) + 16 < place + n * in) next = aligned[1];
    v.v = funnel(v.v, next, at & 15, in);
  }
  if (c < 0) mask_before(v, -c * in, 0);
  if (c + per > n) mask_after(v, (n - c) * in, 0);
  return v;
}

INLINE void item_put(char *row, int c, int n, int in, Vec v) {
  const int per = 16 / in;
  if (c >= 0 && c + per <= n) *(uint4 *)(row + c * in) = v.v;
  else
#pragma unroll
    for (int j = 0; j < per; j++)
      if (c + j >= 0 && c + j < n) move_one(row + (c + j) * in, v.b + j * in, in);
}

INLINE Vec item_weights(const EmbedParams *p, int c, int in) {
  const char *all = (const char *)p->weight, *end = all + p->n * in, *from = all + c * in;
  Vec v;
  if (is_around(from, all, end)) v.v = take_around(load_around(from, 1), from, in);
  else v.v = load_singly(from, all, end, in);
  return v;
}

INLINE Vec item_output(Vec v, Vec w, int kind, int in, float scale, float shift) {
  float f[8], g[8];
  widen(&v, kind, in, f), widen(&w, kind, in, g);
#pragma unroll
  for (int j = 0; j < 16 / in; j++) f[j] *= fmaf(g[j], scale, shift);
  narrow(&v, kind, in, f);
  return v;
}

// count: items of a thread; the weights of up to 4 are kept in registers.
INLINE void embed_ring(const EmbedParams *p, int kind, int count) {
  __shared__ EmbedSlots slots;
  __shared__ __align__(16) float part[2][40];
  const int in = kind == KIND_FP32 ? 4 : 2, per = 16 / in, held = count <= 4;
  const NormKernel c = {NORM_EMBED, kind, count, 0, 0, 0};
  const int n = p->n, t = threadIdx.x, all = blockDim.x;
  const uint64_t step = gridDim.x;
  uint64_t row = blockIdx.x;
  const int column = t * per - (int)((uint32_t)(uintptr_t)((char *)p->y + (int64_t)row * p->y_stride) & 15) / in;
  const int other = t * per - (int)((uint32_t)(uintptr_t)((char *)p->second + (int64_t)row * p->second_stride) & 15) / in;
  if (t == 0) {
    for (int s = 0; s < p->slots; s++) barrier_init(&slots.full[s], 1);
    barrier_init_done();
    async_fence();
  }
  begin_kernel();
  int64_t id = 0; // of the row that is fetched next
  if (t == 0) {
    for (int s = 0; s < p->slots; s++) {
      if (row + s * step >= p->m) break;
      id = load_id(p->ids, row + s * step, p->wide_ids);
      if (s < p->slots - 1) slot_fill(p, &slots, s, id, in);
    }
  }
  Vec w[4];
#pragma unroll
  for (int k = 0; k < count && held; k++) w[k] = item_weights(p, column + k * all * per, in);
  __syncthreads();
  int slot = 0, parity = 0, turn = 0;
#pragma unroll 1
  for (; row < p->m; row += step, turn ^= 1) {
    const char *from = narrow_memory + slot * p->slot;
    char *y = (char *)p->y + (int64_t)row * p->y_stride, *second = (char *)p->second + (int64_t)row * p->second_stride;
    barrier_wait(&slots.full[slot], parity);
    int place = slots.place[slot];
    float2 s = make_float2(0, 0);
#pragma unroll
    for (int k = 0; k < count; k++) {
      Vec a = slot_item(from, place, column + k * all * per, n, in);
      if (p->second && other == column) item_put(second, column + k * all * per, n, in, a);
      s = norm_sum(c, a, s);
    }
    if (p->second && other != column)
#pragma unroll
      for (int k = 0; k < count; k++)
        item_put(second, other + k * all * per, n, in, slot_item(from, place, other + k * all * per, n, in));
    float sum = block_sum(s.x + s.y, part[turn]);
    uint64_t later = row + (p->slots - 1) * step;
    if (t == 0 && later < p->m) { // everyone is done with the row before this one
      slot_fill(p, &slots, slot ? slot - 1 : p->slots - 1, id, in);
      if (later + step < p->m) id = load_id(p->ids, later + step, p->wide_ids);
    }
    float scale = rsqrtf(fmaf(sum, p->over_n, p->eps)), shift = scale * p->offset;
#pragma unroll
    for (int k = 0; k < count; k++) {
      int at = column + k * all * per;
      if (at >= n) break;
      Vec a = slot_item(from, place, at, n, in);
      item_put(y, at, n, in, item_output(a, held ? w[k % 4] : item_weights(p, at, in), kind, in, scale, shift));
    }
    if (++slot == p->slots) slot = 0, parity ^= 1;
  }
}
#define EMBED_RING(T)                                                                                                  \
  EMBED_OF(T, ring2, 256, 4, embed_ring(&p, TYPE_##T, 2))                                                              \
  EMBED_OF(T, ring4, 384, 2, embed_ring(&p, TYPE_##T, 4))                                                              \
  EMBED_OF(T, ring8, 512, 2, embed_ring(&p, TYPE_##T, 8))
#else
#define EMBED_RING(T)
#endif

#endif
