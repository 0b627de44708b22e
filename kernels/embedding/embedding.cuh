// y[i] = x[ids[i]], one row by `per_row` threads. A thread reads its id, then its 16-byte vectors, all at once.
#ifndef SOL_KERNELS_EMBEDDING_CUH
#define SOL_KERNELS_EMBEDDING_CUH

#include "embedding.h"
#include "ends.cuh"
#include "funnel.cuh"

typedef struct EmbeddingPlace {
  const char *x; // NULL: a row of zeros
  char *y;
  uint64_t thread, row; // of the row's threads; before an order is applied
} EmbeddingPlace;

INLINE int64_t id_at(const void *ids, uint64_t i, int wide) {
  return wide ? ((const int64_t *)ids)[i] : ((const int32_t *)ids)[i];
}

// stream: evicted from L2 first, which then keeps more of x.
INLINE void store16(void *to, uint4 v, int stream) {
  if (stream) __stcs((uint4 *)to, v);
  else *(uint4 *)to = v;
}

// As may_hint says, for blocks of half as many threads. Not of a table of few lines: all of the prefetches would ask the same slices of L2.
INLINE bool embedding_may_hint(const EmbeddingParams *p) {
#if __CUDA_ARCH__ >= 900
  return p->hint && gridDim.x * gridDim.y <= 2048;
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
  if (embedding_may_hint(p) && row < (uint64_t)p->m && !p->order && at->thread % (128 / unit) == 0) {
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
  at->y = (char *)p->y + (int64_t)row * p->y_stride;
  if (p->ends) ends_prefetch(at->y, 0, p->ends, 1, (int)at->thread, (int)p->per_row);
  int64_t id = id_at(p->ids, row, p->wide_ids);
  at->x = (const char *)p->x + id * p->x_stride;
  if ((uint64_t)id >= (uint64_t)p->rows) {
    at->x = NULL;
    if (p->bad && !at->thread) *p->bad = 1;
  }
  return 1;
}

// What the blocks of this z have: a strip of columns. They start after those of the z before, so that of a table beyond L2 the strip stays there
// while all ids are served.
INLINE EmbeddingParams embedding_strip(const EmbeddingParams &all) {
  EmbeddingParams p = all;
  int64_t begin = blockIdx.z * all.strip;
  p.x = (const char *)all.x + begin, p.y = (char *)all.y + begin;
  p.n = min(all.n - begin, all.strip);
  return p;
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
    if (place < p->n) store16(at.y + place, v[k], p->stream);
  }
}

// The vectors of a row from byte `first` on, `step` bytes apart, those that are in the row before byte `end`: each is two aligned ones
// and a shift, the same shift for all. At the table's ends, where that would read beside it, they are read by units.
INLINE void shift_load(const EmbeddingParams *p, const EmbeddingPlace *place, int64_t first, int64_t end, int64_t step, int size,
                       int chunks, uint4 *v) {
  const char *low = p->x_end ? (const char *)p->x : place->x, *high = p->x_end ? p->x_end : place->x + p->n;
  uint32_t shift = (uint32_t)(uintptr_t)(place->x + first) & 15;
  const char *aligned = place->x + first - shift;
  uint4 lo[8], hi[8];
  bool whole = true;
#pragma unroll
  for (int k = 0; k < chunks; k++) {
    const char *at = aligned + k * step;
    bool here = first + k * step >= 0 && first + k * step < end, ok = at >= low && at + (shift ? 32 : 16) <= high;
    if (here && ok) lo[k] = *(const uint4 *)at;
    if (here && ok && shift) hi[k] = *(const uint4 *)(at + 16);
    whole &= ok || !here;
  }
  embedding_fetch(p, place, 16, chunks);
#pragma unroll
  for (int k = 0; k < chunks; k++) v[k] = funnel(lo[k], hi[k], shift, size);
  if (whole) return;
#pragma unroll
  for (int k = 0; k < chunks; k++) {
    const char *at = aligned + k * step, *from = at + shift;
    if (first + k * step >= 0 && first + k * step < end && !(at >= low && at + (shift ? 32 : 16) <= high))
      v[k] = load_singly(from, from, from + 16, size);
  }
}

// Units of `size` bytes, at any address: the aligned vectors of y's row, each from two of x's; what is left at both
// ends of the row by the first threads, a unit of each end. There are at least 16 / size threads on a row.
INLINE void embedding_shift(const EmbeddingParams *p, int size, int chunks) {
  EmbeddingPlace at;
  if (!embedding_place(p, &at, 16, chunks)) return;
  int64_t head = (16 - ((uintptr_t)at.y & 15)) & 15;
  if (head > p->n) head = p->n;
  int64_t end = head + (p->n - head) / 16 * 16, step = (int64_t)p->per_row * 16;
  // Of long rows a warp has whole lines of y, and the first threads of the first nothing.
  int64_t first = (int64_t)at.thread * 16 + (p->lines ? -(int64_t)((uintptr_t)at.y & 127) : head);
  uint4 v[8];
  if (at.x) {
    shift_load(p, &at, first, end, step, size, chunks, v);
  } else {
#pragma unroll
    for (int k = 0; k < chunks; k++) v[k] = make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int k = 0; k < chunks; k++)
    if (first + k * step >= 0 && first + k * step < end) store16(at.y + first + k * step, v[k], p->stream);
  if (at.thread >= 16 / size) return;
  const int64_t before = (int64_t)at.thread * size, after = end + before;
  Vec ends;
  ends.v = make_uint4(0, 0, 0, 0);
  if (at.x && before < head) move_one(ends.b, at.x + before, size);
  if (at.x && after < p->n) move_one(ends.b + 8, at.x + after, size);
  if (before < head) move_one(at.y + before, ends.b, size);
  if (after < p->n) move_one(at.y + after, ends.b + 8, size);
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

// The ids of rows; those at m and beyond have the last one's.
INLINE void flat_ids(const EmbeddingParams *p, const void *ids, int each, const uint64_t *row, int64_t *id) {
  int64_t last = p->m - 1;
  if (p->wide_ids) {
#pragma unroll
    for (int k = 0; k < each; k++) id[k] = ((const int64_t *)ids)[min(row[k], (uint64_t)last)];
  } else {
#pragma unroll
    for (int k = 0; k < each; k++) id[k] = ((const int32_t *)ids)[min(row[k], (uint64_t)last)];
  }
}

// A unit divides all addresses and strides. A thread has `each`, a warp's width apart.
INLINE void embedding_flat(const EmbeddingParams *p, int unit, int each) {
  uint64_t block = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (EMBEDDING_THREADS * each);
  uint64_t i = block + threadIdx.x / 32 * (32 * each) + threadIdx.x % 32;
  if (embedding_may_hint(p)) {
#pragma unroll
    for (int k = 0; k < each; k++) flat_hint(p, i + 32 * k, unit);
  }
  wait_for_predecessor();
  let_successor_start();
  uint64_t row[8], at[8];
  int64_t id[8];
  uint4 v[8];
#pragma unroll
  for (int k = 0; k < each; k++) flat_split(p, i + 32 * k, &row[k], &at[k]);
  if (p->order) {
    flat_ids(p, p->order, each, row, id);
#pragma unroll
    for (int k = 0; k < each; k++)
      if (row[k] < (uint64_t)p->m) row[k] = (uint64_t)id[k]; // no permutation: still nothing is written outside y
  }
#pragma unroll
  for (int k = 0; k < each; k++)
    if (row[k] < (uint64_t)p->m) unit_ends((const char *)p->y + (int64_t)row[k] * p->y_stride, p->ends, at[k], p->per_row);
  flat_ids(p, p->ids, each, row, id); // all at once, before any of them is compared
#pragma unroll
  for (int k = 0; k < each; k++) {
    bool known = row[k] < (uint64_t)p->m && (uint64_t)id[k] < (uint64_t)p->rows;
    const char *x = (const char *)p->x + id[k] * p->x_stride + at[k] * unit;
    if (unit == 16) v[k] = load_if(x, known);
    else {
      v[k] = make_uint4(0, 0, 0, 0);
      if (known) move_one(&v[k], x, unit);
    }
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    if (row[k] >= (uint64_t)p->m) continue;
    char *y = (char *)p->y + (int64_t)row[k] * p->y_stride + at[k] * unit;
    if (unit == 16) store16(y, v[k], p->stream);
    else move_one(y, &v[k], unit);
    if (p->bad && !at[k] && (uint64_t)id[k] >= (uint64_t)p->rows) *p->bad = 1;
  }
}

// Dense, short rows of elements of 1 or 2 bytes at any address: y by aligned words, of several loads each. per_row:
// elements.
INLINE void embedding_short(const EmbeddingParams *p, int size, int each) {
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

// ---- Elements of `in` bytes may become others of `out` bytes. A piece is as many of them as are at most 16 bytes of either.

// The piece's `bytes` of x, at any address, in two steps as load_around's are.
INLINE Around piece_load(const char *from, int bytes, int wanted) {
  if (bytes == 16) return load_around(from, wanted);
  const char *aligned = from - ((uintptr_t)from & 7);
  uint2 lo = make_uint2(0, 0), hi = lo;
  if (wanted) lo = *(const uint2 *)aligned;
  if (wanted && aligned != from) hi = *(const uint2 *)(aligned + 8);
  Around a = {make_uint4(lo.x, lo.y, hi.x, hi.y), make_uint4(0, 0, 0, 0)};
  return a;
}

// Whether piece_load may read them: what it reads is between first and end.
INLINE int piece_is_around(const char *from, const char *first, const char *end, int bytes) {
  int shift = (int)((uintptr_t)from & (bytes - 1));
  return from - shift >= first && from - shift + (shift ? 2 * bytes : bytes) <= end;
}

INLINE void piece_store(char *to, const Vec *v, int in, int out, int x_kind, int y_kind, int stream) {
  float f[8];
  Vec w;
  widen(v, x_kind, in, f);
  if (out == 4) {
    narrow(&w, KIND_FP32, 4, f);
    store16(to, w.v, stream);
  } else if (in == 4) {
    *(uint2 *)to = make_uint2(narrow2(f[0], f[1], y_kind), narrow2(f[2], f[3], y_kind));
  } else {
    narrow(&w, y_kind, 2, f);
    store16(to, w.v, stream);
  }
}

// ---- Dense rows, staged. A block has some rows of y, a contiguous range. It reads their ids, then copies all aligned 16 bytes
// of x that have a part of them to shared memory, none through registers, so that much is in flight; what a piece of y may
// have of the next row is put behind each. Then it writes the range by aligned pieces, each cut out of one row.

extern __shared__ __align__(16) char staged_memory[]; // 16 bytes, the rows, p->pitch bytes each, 16 bytes, then where each comes from

INLINE const char **staged_from(const EmbeddingParams *p) { return (const char **)(staged_memory + p->staged * p->pitch + 32); }

// index / d for both below 2^16, where `over` is staged_over(d).
INLINE uint32_t staged_over(uint32_t d) { return ~0u / d + 1; }
INLINE uint32_t staged_divide(uint32_t index, uint32_t d, uint32_t over) { return d == 1 ? index : __umulhi(index, over); }

INLINE void staged_ids(const EmbeddingParams *p, uint64_t first, int rows) {
  for (int i = threadIdx.x; i < rows; i += EMBEDDING_THREADS) staged_from(p)[i] = flat_row(p, first + i, true).x;
  // Ids of a later block: those are read once, from DRAM, and everything waits for them.
  uint64_t later = first + p->ahead + threadIdx.x * 32;
  if (p->ahead && threadIdx.x * 32 < rows && later < (uint64_t)p->m) prefetch_l2((const char *)p->ids + later * (p->wide_ids ? 8 : 4));
}

INLINE void staged_fill(const EmbeddingParams *p, int rows, int in) {
  const int bytes = (int)p->per_row * in, most = (bytes + 30) / 16;
  uint32_t over = staged_over(most);
#pragma unroll 4
  for (int i = threadIdx.x; i < rows * most; i += EMBEDDING_THREADS) {
    int row = (int)staged_divide(i, most, over), chunk = i - row * most;
    const char *from = staged_from(p)[row], *end = from + bytes;
    const char *at = from - ((uintptr_t)from & 15) + chunk * 16;
    char *to = staged_memory + 16 + row * p->pitch + chunk * 16;
    if (at >= end) continue;
    if (!from) *(uint4 *)to = make_uint4(0, 0, 0, 0);
    else if (at < (const char *)p->x || at + 16 > p->x_end) *(uint4 *)to = load_singly(at, from, end, in);
    else if (p->near) fetch16<true>(to, at);
    else fetch16(to, at);
    if (at + 16 >= end) *(uint4 *)(to + 16) = make_uint4(0, 0, 0, 0); // a piece is cut out of 32 bytes
  }
  if (threadIdx.x == 0) *(uint4 *)staged_memory = make_uint4(0, 0, 0, 0);
  wait_for_fetches();
}

// Where element 0 of a row is in shared memory.
INLINE int staged_row(const EmbeddingParams *p, int row) {
  return 16 + row * p->pitch + (int)((uint32_t)(uintptr_t)staged_from(p)[row] & 15);
}

// Behind each row the first elements of the next: one fewer than a piece has.
INLINE void staged_follow(const EmbeddingParams *p, int rows, int in, int per) {
  int e = threadIdx.x % per;
  for (int row = threadIdx.x / per; row < rows - 1 && e < per - 1; row += EMBEDDING_THREADS / per)
    move_one(staged_memory + staged_row(p, row) + ((int)p->per_row + e) * in, staged_memory + staged_row(p, row + 1) + e * in, in);
}

INLINE void embedding_staged(const EmbeddingParams *p, int size) {
  const int per = 16 / size;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, first = block * p->staged;
  wait_for_predecessor();
  let_successor_start();
  if (first >= (uint64_t)p->m) return;
  int rows = (int)min((uint64_t)p->staged, (uint64_t)p->m - first), n = (int)p->per_row, all = rows * n;
  staged_ids(p, first, rows);
  __syncthreads();
  staged_fill(p, rows, size);
  __syncthreads();
  staged_follow(p, rows, size, per);
  __syncthreads();
  char *y = (char *)p->y + (int64_t)first * n * size;
  int head = (int)((uint32_t)(uintptr_t)y & 15) / size; // elements of the first piece that are before the range
  uint32_t over = staged_over(n);
#pragma unroll 2
  for (int e = (int)threadIdx.x * per - head; e < all; e += EMBEDDING_THREADS * per) {
    int row = e < 0 ? 0 : (int)staged_divide(e, n, over), at = staged_row(p, row) + (e - row * n) * size;
    const char *aligned = staged_memory + (at & -16);
    Vec v;
    v.v = funnel(*(const uint4 *)aligned, *(const uint4 *)(aligned + 16), at & 15, size);
    char *to = y + e * size;
    if (e >= 0 && e + per <= all) store16(to, v.v, p->stream);
    else
#pragma unroll
      for (int j = 0; j < per; j++)
        if (e + j >= 0 && e + j < all) move_one(to + j * size, v.b + j * size, size);
  }
}

// y's row by pieces on their own boundaries, `pieces` a thread, and what is left at both ends by the first threads, an
// element of each end. There are at least as many threads on a row as a piece has elements.
INLINE void embedding_convert(const EmbeddingParams *p, int in, int out, int pieces) {
  const int per = 16 / max(in, out), bytes = per * in;
  EmbeddingPlace at;
  if (!embedding_place(p, &at, bytes, pieces)) return;
  int64_t head = (int64_t)(-(uintptr_t)at.y & (per * out - 1)) / out;
  if (head > p->n) head = p->n;
  int64_t end = head + (p->n - head) / per * per, step = (int64_t)p->per_row * per;
  int64_t first = head + (int64_t)at.thread * per;
  const char *low = p->x_end ? (const char *)p->x : at.x, *high = p->x_end ? p->x_end : at.x + p->n * in;
  Around a[8];
  int whole = 1;
#pragma unroll
  for (int k = 0; k < pieces; k++) {
    const char *from = at.x + (first + k * step) * in;
    int here = at.x && first + k * step < end, ok = piece_is_around(from, low, high, bytes);
    a[k] = piece_load(from, bytes, here && ok);
    whole &= ok || !here;
  }
#pragma unroll
  for (int k = 0; k < pieces; k++) {
    int64_t c = first + k * step;
    const char *from = at.x + c * in;
    if (c >= end) break;
    Vec v;
    v.v = funnel(a[k].lo, a[k].hi, (uint32_t)(uintptr_t)from & (bytes - 1), in);
    if (!whole && at.x && !piece_is_around(from, low, high, bytes)) v.v = load_singly(from, from, from + bytes, in);
    piece_store(at.y + c * out, &v, in, out, p->x_kind, p->y_kind, p->stream);
  }
  if (at.thread >= per) return;
  int64_t before = (int64_t)at.thread, after = end + before;
  float f = 0, g = 0;
  if (at.x && before < head) f = load_one(at.x, before, p->x_kind);
  if (at.x && after < p->n) g = load_one(at.x, after, p->x_kind);
  if (before < head) store_one(at.y, before, p->y_kind, f);
  if (after < p->n) store_one(at.y, after, p->y_kind, g);
}

#endif
