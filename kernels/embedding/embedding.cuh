// y[i] = x[ids[i]], one row by `per_row` threads. A thread reads its id, then its 16-byte vectors, all at once.
#ifndef SOL_KERNELS_EMBEDDING_CUH
#define SOL_KERNELS_EMBEDDING_CUH

#include "embedding.h"
#include "funnel.cuh"

typedef struct EmbeddingPlace {
  const char *x; // NULL: a row of zeros
  char *y;
  uint64_t thread, row; // of the row's threads; before an order is applied
} EmbeddingPlace;

INLINE int64_t id_at(const void *ids, uint64_t i, int wide) {
  return wide ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];
}

// As may_hint says, for blocks of half as many threads.
INLINE bool embedding_may_hint(void) {
#if __CUDA_ARCH__ >= 900
  return gridDim.x * gridDim.y <= 2048;
#else
  return false;
#endif
}

// 0: nothing to do for this thread. unit: bytes of the row that a thread has next to its neighbour's, `pieces` times.
INLINE int embedding_place(const EmbeddingParams *p, EmbeddingPlace *at, int unit, int pieces) {
  uint64_t i = thread_index(), row;
  if (p->multiply) {
    row = (__umulhi((uint32_t)i, p->multiply) + (uint32_t)i) >> p->shift;
    at->thread = (uint32_t)i - (uint32_t)row * (uint32_t)p->per_row;
  } else
    split(i, p->per_row, &row, &at->thread);
  if (embedding_may_hint() && row < (uint64_t)p->m && !p->order && at->thread % (128 / unit) == 0) {
    int64_t likely = p->wide_ids ? __ldcg((const long long *)p->ids + row) : __ldcg((const int *)p->ids + row);
#pragma unroll
    for (int k = 0; k < pieces; k++) {
      int64_t place = (int64_t)(at->thread + k * p->per_row) * unit;
      if ((uint64_t)likely < (uint64_t)p->rows && place < p->n)
        prefetch_l2((const char *)p->x + likely * p->x_stride + place);
    }
  }
  wait_for_predecessor();
  let_successor_start();
  at->row = row;
  if (row >= (uint64_t)p->m) return 0;
  if (p->order) row = (uint64_t)id_at(p->order, row, p->wide_ids);
  if (row >= (uint64_t)p->m) return 0; // no permutation: still nothing is written outside y
  int64_t id = id_at(p->ids, row, p->wide_ids);
  at->y = (char *)p->y + (int64_t)row * p->y_stride;
  at->x = (const char *)p->x + id * p->x_stride;
  if ((uint64_t)id >= (uint64_t)p->rows) {
    at->x = NULL;
    if (p->bad && !at->thread) *p->bad = 1;
  }
  return 1;
}

// Prefetches into L2 a row that another block will load soon: each block as much of it as it has of its row, `pieces` of
// `unit` bytes a thread.
INLINE void embedding_fetch(const EmbeddingParams *p, const EmbeddingPlace *at, int unit, int pieces) {
#if __CUDA_ARCH__ >= 900
  if (!p->ahead || threadIdx.x) return;
  uint64_t row = at->row + p->ahead;
  if (row >= (uint64_t)p->m) return;
  if (p->order) row = (uint64_t)id_at(p->order, row, p->wide_ids);
  if (row >= (uint64_t)p->m) return;
  int64_t id = id_at(p->ids, row, p->wide_ids);
  if ((uint64_t)id >= (uint64_t)p->rows) return;
  const char *from = (const char *)p->x + id * p->x_stride, *end = from + p->n;
  from += (16 - ((uintptr_t)from & 15)) & 15; // whole aligned vectors of the row, nothing else
  from += (int64_t)at->thread * unit;
  for (int k = 0; k < pieces; k++, from += p->per_row * unit) {
    int64_t left = (end - from) & ~(int64_t)15, most = (int64_t)blockDim.x * unit;
    if (left <= 0) return;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
                 "r"((uint32_t)(left < most ? left : most)));
  }
#endif
}

// All on 16 bytes: strides, addresses, and n.
INLINE void embedding_wide(const EmbeddingParams *p, int chunks) {
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 16, chunks)) return;
  uint4 v[8];
#pragma unroll
  for (int k = 0; k < chunks; k++) {
    int64_t place = (int64_t)(at.thread + k * p->per_row) * 16;
    v[k] = load_if(at.x + place, at.x && place < p->n);
  }
  embedding_fetch(p, &at, 16, chunks);
#pragma unroll
  for (int k = 0; k < chunks; k++) {
    int64_t place = (int64_t)(at.thread + k * p->per_row) * 16;
    if (place < p->n) *(uint4 *)(at.y + place) = v[k];
  }
}

// Units of `size` bytes, at any address: the aligned vectors of y's row, each from two of x's; what is left at both
// ends of the row by the first threads, one unit each. There are at least 2 * 16 / size threads on a row.
INLINE void embedding_shift(const EmbeddingParams *p, int size, int chunks) {
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 16, chunks)) return;
  int64_t head = (16 - ((uintptr_t)at.y & 15)) & 15;
  if (head > p->n) head = p->n;
  int64_t end = head + (p->n - head) / 16 * 16, step = (int64_t)p->per_row * 16;
  int64_t first = head + (int64_t)at.thread * 16;
  const char *low = p->x_end ? (const char *)p->x : at.x, *high = p->x_end ? p->x_end : at.x + p->n;
  uint4 v[8];
  Around a[8];
  int whole = 1;
#pragma unroll
  for (int k = 0; k < chunks; k++) {
    const char *from = at.x + first + k * step;
    int here = at.x && first + k * step < end, ok = is_around(from, low, high);
    a[k] = load_around(from, here && ok);
    whole &= ok || !here;
  }
  embedding_fetch(p, &at, 16, chunks);
#pragma unroll
  for (int k = 0; k < chunks; k++) v[k] = take_around(a[k], at.x + first + k * step, size);
  if (!whole) {
#pragma unroll
    for (int k = 0; k < chunks; k++) {
      const char *from = at.x + first + k * step;
      if (at.x && first + k * step < end && !is_around(from, low, high)) v[k] = load_singly(from, from, from + 16, size);
    }
  }
#pragma unroll
  for (int k = 0; k < chunks; k++)
    if (first + k * step < end) *(uint4 *)(at.y + first + k * step) = v[k];
  if (at.thread >= 32 / size) return;
  int64_t place = (int64_t)at.thread * size;
  if (place >= 16) place += end - 16;
  else if (place >= head) return;
  if (place >= p->n) return;
  Vec one;
  one.v = make_uint4(0, 0, 0, 0);
  if (at.x) move_one(one.b, at.x + place, size);
  move_one(at.y + place, one.b, size);
}

// ---- y as one sequence of units, neighbouring lanes on neighbouring units, wherever rows end.

// Row and unit of the row of unit i of y.
INLINE void flat_split(const EmbeddingParams *p, uint64_t i, uint64_t *row, uint64_t *unit) {
  if (p->multiply) {
    uint32_t r = (__umulhi((uint32_t)i, p->multiply) + (uint32_t)i) >> p->shift;
    *row = r, *unit = (uint32_t)i - r * (uint32_t)p->per_row;
  } else
    split(i, p->per_row, row, unit);
}

// Where row `row` of y comes from and goes to. x: NULL: zeros.
typedef struct FlatRow {
  const char *x;
  char *y; // NULL: no row
} FlatRow;

INLINE FlatRow flat_row(const EmbeddingParams *p, uint64_t row, bool first) {
  FlatRow r = {NULL, NULL};
  if (row >= (uint64_t)p->m) return r;
  if (p->order) row = (uint64_t)id_at(p->order, row, p->wide_ids);
  if (row >= (uint64_t)p->m) return r; // no permutation: still nothing is written outside y
  int64_t id = id_at(p->ids, row, p->wide_ids);
  r.y = (char *)p->y + (int64_t)row * p->y_stride;
  if ((uint64_t)id < (uint64_t)p->rows) r.x = (const char *)p->x + id * p->x_stride;
  else if (p->bad && first) *p->bad = 1;
  return r;
}

INLINE void flat_hint(const EmbeddingParams *p, uint64_t i, int unit) {
  uint64_t row, at;
  flat_split(p, i, &row, &at);
  if (row >= (uint64_t)p->m || p->order || (at * unit) % 128) return;
  int64_t likely = p->wide_ids ? __ldcg((const long long *)p->ids + row) : __ldcg((const int *)p->ids + row);
  if ((uint64_t)likely < (uint64_t)p->rows) prefetch_l2((const char *)p->x + likely * p->x_stride + at * unit);
}

// A unit divides all addresses and strides. A thread has `each`, a warp's width apart.
INLINE void embedding_flat(const EmbeddingParams *p, int unit, int each) {
  uint64_t block = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (EMBEDDING_THREADS * each);
  uint64_t i = block + threadIdx.x / 32 * (32 * each) + threadIdx.x % 32;
  if (embedding_may_hint()) {
#pragma unroll
    for (int k = 0; k < each; k++) flat_hint(p, i + 32 * k, unit);
  }
  wait_for_predecessor();
  let_successor_start();
  FlatRow r[8];
  uint2 v[8];
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint64_t row, at;
    flat_split(p, i + 32 * k, &row, &at);
    r[k] = flat_row(p, row, !at);
    if (r[k].x) r[k].x += at * unit;
    if (r[k].y) r[k].y += at * unit;
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    v[k] = make_uint2(0, 0);
    if (unit == 8 && r[k].x) v[k] = *(const uint2 *)r[k].x;
    if (unit == 4 && r[k].x) v[k].x = *(const uint32_t *)r[k].x;
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (!r[k].y) continue;
    if (unit == 8) *(uint2 *)r[k].y = v[k];
    if (unit == 4) *(uint32_t *)r[k].y = v[k].x;
  }
}

// Dense, short rows of elements of 1 or 2 bytes at any address: y by aligned words, of several loads each. per_row:
// elements.
INLINE void embedding_pieces(const EmbeddingParams *p, int size, int each) {
  const int per = 4 / size;
  uint64_t block = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (EMBEDDING_THREADS * each);
  uint64_t i = block + threadIdx.x / 32 * (32 * each) + threadIdx.x % 32;
  int head = (int)((uint32_t)(uintptr_t)p->y & 3) / size;
  wait_for_predecessor();
  let_successor_start();
  int64_t all = p->m * (int64_t)p->per_row;
  const char *from[8][4];
  uint32_t v[8];
#pragma unroll
  for (int k = 0; k < each; k++) {
    int64_t e = per * (int64_t)(i + 32 * k) - head;
    uint64_t row, at;
    flat_split(p, e < 0 ? 0 : (uint64_t)e, &row, &at);
    FlatRow r = flat_row(p, row, !at);
#pragma unroll
    for (int j = 0; j < per; j++) {
      bool here = e + j >= 0;
      if (here && at == p->per_row) r = flat_row(p, ++row, true), at = 0;
      from[k][j] = here && r.x ? r.x + at * size : NULL;
      at += here;
    }
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    v[k] = 0;
#pragma unroll
    for (int j = 0; j < per; j++)
      if (from[k][j]) v[k] |= (size == 1 ? *(const uint8_t *)from[k][j] : *(const uint16_t *)from[k][j]) << 8 * size * j;
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    int64_t e = per * (int64_t)(i + 32 * k) - head;
    char *y = (char *)p->y + e * size;
    if (e >= 0 && e + per <= all) *(uint32_t *)y = v[k];
    else
#pragma unroll
      for (int j = 0; j < per; j++)
        if (e + j >= 0 && e + j < all) {
          if (size == 1) ((uint8_t *)y)[j] = (uint8_t)(v[k] >> 8 * j);
          else ((uint16_t *)y)[j] = (uint16_t)(v[k] >> 16 * j);
        }
  }
}

// Words at any address, one at a time: neighbouring lanes on neighbouring words, a warp on `lines` whole lines of y; the
// words of x may be at any offset from a line. per_row is a multiple of 32.
INLINE void embedding_words(const EmbeddingParams *p, int lines) {
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 4 * lines, 1)) return;
  int lane = threadIdx.x % 32, head = (int)((uint32_t)(uintptr_t)at.y / 4 % 32);
  int64_t first = (int64_t)(at.thread - lane) * lines + lane - head;
  uint64_t n = (uint64_t)p->n / 4;
  uint32_t v[8];
#pragma unroll
  for (int k = 0; k < lines; k++) {
    int64_t c = first + k * 32;
    v[k] = at.x && (uint64_t)c < n ? ((const uint32_t *)at.x)[c] : 0;
  }
  embedding_fetch(p, &at, 4 * lines, 1);
#pragma unroll
  for (int k = 0; k < lines; k++) {
    int64_t c = first + k * 32;
    if ((uint64_t)c < n) ((uint32_t *)at.y)[c] = v[k];
  }
}

// Elements of `in` bytes become others of `out` bytes, a 16-byte vector of x at a time. x on 16 bytes, y on its part.
INLINE void embedding_convert(const EmbeddingParams *p, int in, int out) {
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 16, 1)) return;
  int per = 16 / in;
  int64_t first = (int64_t)at.thread * per;
  float f[8];
  if (first + per <= p->n) {
    Vec v, w[2];
    v.v = make_uint4(0, 0, 0, 0);
    if (at.x) v.v = *(const uint4 *)(at.x + first * in);
    widen(&v, p->x_kind, in, f);
    if (out == 4) {
      *(float4 *)(at.y + first * 4) = make_float4(f[0], f[1], f[2], f[3]);
      *(float4 *)(at.y + first * 4 + 16) = make_float4(f[4], f[5], f[6], f[7]);
    } else if (in == 4) {
      *(uint2 *)(at.y + first * 2) = make_uint2(narrow2(f[0], f[1], p->y_kind), narrow2(f[2], f[3], p->y_kind));
    } else {
      narrow(w, p->y_kind, 2, f);
      *(uint4 *)(at.y + first * 2) = w[0].v;
    }
  } else
    for (int64_t c = first; c < p->n; c++) store_one(at.y, c, p->y_kind, at.x ? load_one(at.x, c, p->x_kind) : 0);
}

// Any types at any address, neighbouring threads on neighbouring elements.
INLINE void embedding_any(const EmbeddingParams *p) {
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 16, 1)) return;
  float f[EMBEDDING_ANY];
#pragma unroll
  for (int k = 0; k < EMBEDDING_ANY; k++) {
    int64_t c = (int64_t)(at.thread + k * p->per_row);
    f[k] = at.x && c < p->n ? load_one(at.x, c, p->x_kind) : 0;
  }
#pragma unroll
  for (int k = 0; k < EMBEDDING_ANY; k++) {
    int64_t c = (int64_t)(at.thread + k * p->per_row);
    if (c < p->n) store_one(at.y, c, p->y_kind, f[k]);
  }
}

#endif
