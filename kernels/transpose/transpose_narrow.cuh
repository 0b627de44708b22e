// Narrow: a matrix with one short side, `thin`: one tensor is `thin` long rows, the other many short ones, y where x has few
// rows, x where it has few columns. A block takes `span` elements of every long row and what belongs to them of the other
// tensor, one contiguous range where that is dense ("packed"). What it reads comes into shared memory by asynchronous copies.
//
// Both are accessed in 16-byte chunks that are aligned to memory, wherever the rows start. Few rows: shared memory holds the long
// rows, each as far from a 16-byte boundary as it is in memory, and chunks of the packed range are put together from single elements.
// Neighbouring lanes have neighbouring chunks of that, so they access rows a chunk's elements apart: after as many rows 16 bytes are left
// free, for other banks. Few columns: shared memory holds the short rows as they are, with small gaps that may be between them, and chunks of the long rows
// are put together; what a block stores of a long row starts and ends with a sector. Other short rows with gaps between them are accessed by single
// elements, neighbouring lanes on neighbouring elements of a row; shared memory then holds the long rows.
#ifndef SOL_KERNELS_TRANSPOSE_NARROW_CUH
#define SOL_KERNELS_TRANSPOSE_NARROW_CUH

#include "transpose.cuh"

// A range of memory: where it starts, its bytes, and how far the start is from a 16-byte boundary.
typedef struct NarrowRange {
  char *at;
  int bytes, off;
} NarrowRange;

INLINE NarrowRange narrow_range(const void *at, int64_t bytes) {
  NarrowRange r = {(char *)at, (int)bytes, (int)((uint32_t)(uintptr_t)at & 15)};
  return r;
}

INLINE int narrow_chunks(NarrowRange r) { // that it touches
  return (r.off + r.bytes + 15) / 16;
}

// from: the 16 bytes, of which those outside the range are not read.
INLINE void narrow_store(NarrowRange r, int chunk, const char *from, int size) {
  char *at = r.at - r.off + chunk * 16, *end = r.at + r.bytes;
  if (at >= r.at && at + 16 <= end) *(uint4 *)at = *(const uint4 *)from;
  else
#pragma unroll
    for (int i = 0; i < 16; i += size)
      if (at + i >= r.at && at + i < end) move_one(at + i, from + i, size);
}

// Where long row k is in shared memory.
INLINE int narrow_row(int size, int k, int pitch) { return k * pitch + k / (16 / size) * 16; }

// The long rows' parts that are a block's. A row may be read `before` and `after` them.
typedef struct NarrowRows {
  char *at;
  int64_t stride, before, after;
  int thin, bytes;
} NarrowRows;

// Row and chunk of a thread's turn. false: there is none.
INLINE bool narrow_turn(NarrowRows rows, uint32_t turn, int *k, int *chunk, NarrowRange *row) {
  uint32_t most = rows.bytes / 16 + 2, over = ~0u / most + 1; // chunks of a row; turns are few: the quotient is exact
  *k = (int)__umulhi(turn, over), *chunk = (int)(turn - *k * most);
  *row = narrow_range(rows.at + *k * rows.stride, rows.bytes);
  return *k < rows.thin && *chunk < narrow_chunks(*row);
}

// Few long rows to shared memory, asynchronously: 1 << p->lane_bits threads have a row, a chunk or some of them each, and the next such threads the next one.
INLINE void narrow_rows_in(int size, const TransposeParams *p, NarrowRows rows, char *tile) {
  const int lanes = 1 << p->lane_bits, first = (int)threadIdx.x & (lanes - 1), step = (int)blockDim.x >> p->lane_bits;
#pragma unroll 2
  for (int k = (int)threadIdx.x >> p->lane_bits; k < rows.thin; k += step) {
    NarrowRange row = narrow_range(rows.at + k * rows.stride, rows.bytes);
    const char *low = row.at - rows.before, *end = row.at + rows.bytes + rows.after, *at = row.at - row.off + first * 16;
    char *to = tile + narrow_row(size, k, p->pitch) + first * 16;
    const int chunks = narrow_chunks(row);
#pragma unroll 2
    for (int chunk = first; chunk < chunks; chunk += lanes, at += lanes * 16, to += lanes * 16) {
      if (at >= low && at + 16 <= end) fetch16(to, at);
      else *(uint4 *)to = load_singly(at, low, end, size);
    }
  }
}

// Their lines into L2, while the kernel before runs.
INLINE void narrow_hint(NarrowRows rows) {
  if (!may_hint()) return;
  const int lines = rows.bytes / 128 + 1;
  for (int i = threadIdx.x; i < lines * rows.thin; i += blockDim.x) {
    const int k = i / lines, at = min((i - k * lines) * 128, rows.bytes - 1);
    prefetch_l2(rows.at + k * rows.stride + at);
  }
}

// What a block stores of a row: from the sector on that its own part starts in, unless that is the row's first, to the one that it ends in,
// unless that is the row's last. So no sector is written by two blocks.
INLINE NarrowRange narrow_kept(NarrowRange row, bool begins, bool ends) {
  char *low = begins ? row.at : row.at + 32 - ((uint32_t)(uintptr_t)row.at & 31), *high = row.at + row.bytes;
  if (!ends) high -= (uint32_t)(uintptr_t)high & 31;
  return narrow_range(low, high - low);
}

INLINE void narrow_rows_out(int size, NarrowRows rows, const char *tile, int pitch) {
  uint32_t all = rows.thin * (rows.bytes / 16 + 2);
#pragma unroll 2
  for (uint32_t turn = threadIdx.x; turn < all; turn += blockDim.x) {
    int k, chunk;
    NarrowRange row;
    if (!narrow_turn(rows, turn, &k, &chunk, &row)) continue;
    NarrowRange kept = narrow_kept(row, rows.before == 0, rows.after == 0);
    int skip = (int)(kept.at - kept.off - (row.at - row.off));
    if (chunk < narrow_chunks(kept)) narrow_store(kept, chunk, tile + narrow_row(size, k, pitch) + skip + chunk * 16, size);
  }
}

// What of a chunk is in the packed range, of the first or the last one.
INLINE void narrow_packed_end(int size, NarrowRange range, int chunk, const char *tile, const int (&place)[16]) {
  const int at = chunk * 16 - range.off;
#pragma unroll
  for (int i = 0; i < 16 / size; i++)
    if (at + i * size >= 0 && at + i * size < range.bytes) move_one(range.at + at + i * size, tile + place[i], size);
}

// Elements from shared memory to the packed range: chunk after chunk. The threads that take part, p->active, are so many that a thread's elements belong to the same
// long rows in all of its chunks: their places are computed once, and are p->step further on in its next chunk.
INLINE void narrow_packed_out(int size, const TransposeParams *p, char *packed, NarrowRows rows, const char *tile) {
  const int per = 16 / size;
  NarrowRange range = narrow_range(packed, rows.bytes * rows.thin);
  const int whole = (range.off + range.bytes) / 16, start = (int)(uint32_t)(uintptr_t)rows.at;
  int place[16];
  if ((int)threadIdx.x >= p->active) return;
  // The first chunk's elements before the range are not accessed; `per` of the packed rows keep numbers positive.
  const uint32_t e = threadIdx.x * per - range.off / size + per * rows.thin;
  int along = (int)divide32(e, p->of_m), k = (int)e - along * rows.thin, row = narrow_row(size, k, p->pitch), off = start + k * (int)rows.stride;
#pragma unroll
  for (int i = 0; i < per; i++) {
    place[i] = row + (off & 15) + (along - per) * size;
    if (++k == rows.thin) k = 0, along++, off = start;
    else off += (int)rows.stride;
    row = narrow_row(size, k, p->pitch);
  }
  int chunk = threadIdx.x;
  if (chunk == 0 && range.off) narrow_packed_end(size, range, chunk, tile, place), chunk += p->active, tile += p->step;
#pragma unroll 2
  for (; chunk < whole; chunk += p->active, tile += p->step) {
    Vec v;
#pragma unroll
    for (int i = 0; i < per; i++) move_one(v.b + i * size, tile + place[i], size);
    *(uint4 *)(range.at - range.off + chunk * 16) = v.v;
  }
  if (chunk == whole) narrow_packed_end(size, range, chunk, tile, place);
}

// Elements between shared memory and short rows `apart` bytes from each other, one after another, `in` to shared memory. A thread's next element is a block's
// threads further on: `down` rows and `across` elements. Several are in flight.
INLINE void narrow_loose(int size, bool in, char *first, int64_t apart, NarrowRows rows, char *tile, int pitch) {
  enum { BATCH = 4 };
  int start = (int)(uint32_t)(uintptr_t)rows.at, all = rows.bytes / size * rows.thin;
  int along = (int)threadIdx.x / rows.thin, k = (int)threadIdx.x - along * rows.thin;
  int down = (int)blockDim.x / rows.thin, across = (int)blockDim.x - down * rows.thin;
  for (int e = threadIdx.x; e < all; e += BATCH * blockDim.x) {
    uint64_t v[BATCH];
    char *to[BATCH];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      char *there = tile + narrow_row(size, k, pitch) + ((start + k * (int)rows.stride) & 15) + along * size;
      char *here = first + along * apart + k * size;
      to[b] = in ? there : here;
      if (e + b * (int)blockDim.x < all) v[b] = load_bits(in ? here : there, size);
      along += down, k += across;
      if (k >= rows.thin) k -= rows.thin, along++;
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++)
      if (e + b * (int)blockDim.x < all) store_bits(to[b], v[b], size);
  }
}

// Short rows as they are, with what is between them, to shared memory: asynchronous copies of a range.
INLINE void narrow_image_in(int size, NarrowRange range, char *tile) {
  for (int chunk = threadIdx.x; chunk < narrow_chunks(range); chunk += blockDim.x) {
    const char *at = range.at - range.off + chunk * 16;
    if (at >= range.at && at + 16 <= range.at + range.bytes) fetch16(tile + chunk * 16, at);
    else *(uint4 *)(tile + chunk * 16) = load_singly(at, range.at, range.at + range.bytes, size);
  }
  wait_for_fetches();
}

// How many neighbouring chunks of a long row a warp has, and as many long rows as lanes are left: chunks read elements that are 4 short rows' elements of
// words apart, which are 8 banks where that number is odd. At least a sector.
INLINE int narrow_image_chunks(int elements) { return elements & 1 ? 8 : elements & 2 ? 4 : 2; }

// The long rows from there, 16 bytes put together from single elements. image: the first short row; they are `apart` bytes from each other.
INLINE void narrow_image_out(int size, NarrowRows rows, const char *image, int apart) {
  const int per = 16 / size, lane = threadIdx.x % 32, chunks = narrow_image_chunks(apart / size), columns = 32 / chunks;
  // As in narrow_turn.
  uint32_t along = max((rows.bytes / 16 + 2 + chunks - 1) / chunks, 2), over = ~0u / along + 1, turns = along * ((rows.thin + columns - 1) / columns);
#pragma unroll 1
  for (uint32_t turn = threadIdx.x / 32; turn < turns; turn += blockDim.x / 32) {
    uint32_t group = __umulhi(turn, over);
    int k = (int)group * columns + lane / chunks, chunk = (int)(turn - group * along) * chunks + lane % chunks;
    if (k >= rows.thin) continue;
    char *row = rows.at + k * rows.stride;
    NarrowRange kept = narrow_kept(narrow_range(row, rows.bytes), rows.before == 0, rows.after == 0);
    char *to = kept.at - kept.off + chunk * 16;
    const char *from = image + (int)(to - row) / size * apart + k * size;
    if (to >= kept.at && to + 16 <= kept.at + kept.bytes) {
      Vec v;
#pragma unroll
      for (int i = 0; i < per; i++) move_one(v.b + i * size, from + i * apart, size);
      *(uint4 *)to = v.v;
    } else {
#pragma unroll 1
      for (int i = 0; i < per; i++)
        if (to + i * size >= kept.at && to + i * size < kept.at + kept.bytes) move_one(to + i * size, from + i * apart, size);
    }
  }
}

// Few columns: prefetches into L2 the short rows that a later block will load, one range; x: of this block's.
INLINE void narrow_ahead(int size, const TransposeParams *p, const char *x) {
#if __CUDA_ARCH__ >= 900
  int64_t step = (int64_t)p->ahead_m * p->span;
  if (!p->ahead_m || threadIdx.x || ((int64_t)blockIdx.x + p->ahead_m + 1) * p->span > p->m) return;
  const char *at = x + step * p->x_stride;
  int head = (int)(-(uint32_t)(uintptr_t)at & 15); // whole 16 bytes inside it
  int64_t bytes = (p->span - 1) * p->x_stride + p->n * size - head;
  if (bytes < 16) return;
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at + head)), "r"((uint32_t)bytes & ~15u));
#endif
}

// few_rows: x has the long rows, and y the short ones; otherwise the other way round.
INLINE void transpose_narrow(int size, bool few_rows, const TransposeParams *p) {
  extern __shared__ __align__(16) char tile[];
  let_successor_start();
  int thin = (int)(few_rows ? p->m : p->n), pitch = p->pitch;
  // Of y's long rows a sector's elements before the block's part are loaded, too, of which those of its first sector are stored (narrow_kept).
  int slack = few_rows || !blockIdx.x ? 0 : TRANSPOSE_SLACK(size);
  int64_t from = (int64_t)blockIdx.x * p->span - slack, left = (few_rows ? p->n : p->m) - from, apart = few_rows ? p->y_stride : p->x_stride;
  int span = (int)min(left, (int64_t)(p->span + slack));
  char *x = (char *)p->x + blockIdx.y * p->x_batch + from * (few_rows ? size : p->x_stride);
  char *y = (char *)p->y + blockIdx.y * p->y_batch + from * (few_rows ? p->y_stride : size);
  NarrowRows rows = {few_rows ? x : y, few_rows ? p->x_stride : p->y_stride, from * size, (left - span) * size, thin,
                     span * size};
  bool packed = apart == thin * size;
  const bool image = !few_rows && pitch == 0;
  const NarrowRange range = narrow_range(x, (span - 1) * apart + thin * size);
  const NarrowRows whole = {x, 0, 0, 0, 1, range.bytes};
  if (few_rows) narrow_hint(rows);
  else if (image) narrow_hint(whole);
  wait_for_predecessor();
  if (few_rows) {
    narrow_rows_in(size, p, rows, tile);
    wait_for_fetches();
    __syncthreads();
    if (packed) narrow_packed_out(size, p, y, rows, tile);
    else narrow_loose(size, false, y, apart, rows, tile, pitch);
    return;
  }
  narrow_ahead(size, p, x);
  if (image) narrow_image_in(size, range, tile);
  else narrow_loose(size, true, x, apart, rows, tile, pitch);
  __syncthreads();
  if (image) narrow_image_out(size, rows, tile + range.off, (int)apart);
  else narrow_rows_out(size, rows, tile, pitch);
}

// Where an element of y is from and goes to: bytes from the start of x and of y.
typedef struct SinglePlace {
  int64_t from, to;
} SinglePlace;

INLINE SinglePlace single_element(int size, const TransposeParams *p, uint32_t e) {
  uint32_t row = divide32(e, p->of_m), i = e - row * p->of_m.by, batch = divide32(row, p->of_n), j = row - batch * p->of_n.by;
  return {batch * p->x_batch + i * p->x_stride + j * size, batch * p->y_batch + j * p->y_stride + i * size};
}

// A small tensor, or short rows, one element after another of y: neighbouring lanes load what is in a few lines, for which neither shared memory nor 16-byte accesses
// are worth a barrier. Of several elements of a thread all are loaded before the first is stored; the first ones are on their way while the kernel before runs.
INLINE void transpose_single(int size, const TransposeParams *p) {
  enum { BATCH = 4 };
  let_successor_start();
  const uint32_t all = p->of_m.by * p->of_n.by * p->batches, step = gridDim.x * blockDim.x, first = blockIdx.x * blockDim.x + threadIdx.x;
  if (may_hint()) {
#pragma unroll
    for (uint32_t k = 0; k < BATCH; k++)
      if (first + k * step < all) prefetch_l2((const char *)p->x + single_element(size, p, first + k * step).from);
  }
  wait_for_predecessor();
  for (uint32_t e = first; e < all; e += BATCH * step) {
    uint64_t v[BATCH];
    char *to[BATCH];
#pragma unroll
    for (uint32_t k = 0; k < BATCH; k++) {
      if (e + k * step >= all) continue;
      SinglePlace at = single_element(size, p, e + k * step);
      v[k] = load_bits((const char *)p->x + at.from, size), to[k] = (char *)p->y + at.to;
    }
#pragma unroll
    for (uint32_t k = 0; k < BATCH; k++)
      if (e + k * step < all) store_bits(to[k], v[k], size);
  }
}

#endif
