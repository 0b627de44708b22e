// Rows whose x and y differ in the size or in the alignment of their elements, in registers: by the 16-byte chunks of x's buffer
// (chunks.cuh). What a lane has for y does not start on 16 bytes there: it is put together with the end of what the lane before it
// has, so that y, too, is stored by aligned cells.
#ifndef SOL_KERNELS_SOFTMAX_APART_CUH
#define SOL_KERNELS_SOFTMAX_APART_CUH

#include "chunks.cuh"
#include "softmax/softmax_row.cuh"

// Results of chunks that follow each other lane by lane, `words` words each: cells of 16 bytes, or of 8 where that is all a chunk has.
// A cell has the end of the chunk before it: that of the lane before, or for the first lane the last lane's of the turn before.
typedef struct ApartCells {
  char *y;            // the row
  int begin, end;     // bytes of it that are stored
  int shift;          // a chunk starts so many bytes after a cell does
  bool shifted;       // in any lane of the warp
  int lane, lanes;    // of those that share the row: a power of two
  uint32_t before[4]; // the end of this lane's chunk of the turn before
} ApartCells;

// begin, end, at: bytes of the row; at: where this lane's first chunk begins.
INLINE ApartCells apart_cells(char *y, int begin, int end, int at, int lane, int lanes, int words) {
  const int size = words > 4 ? 16 : 4 * words;
  ApartCells c = {y, begin, end, (int)((uint32_t)(uintptr_t)(y + at) & (size - 1)), false, lane, lanes, {0, 0, 0, 0}};
  c.shifted = __any_sync(~0u, c.shift);
  return c;
}

INLINE void apart_store(const ApartCells &c, int at, int words, int out, const uint32_t *cell) {
  int lo = max(c.begin - at, 0), hi = min(c.end - at, 4 * words);
  if (hi - lo == 4 * words) store_aligned(c.y + at, words, cell);
  else if (lo < hi) store_part(c.y + at, lo, hi, words, out, cell);
}

// All lanes of the warp take part, whether they have a chunk or not. at: the first byte of the chunk in the row.
INLINE void apart_put(ApartCells &c, int at, int words, int out, const uint32_t *w) {
  const int of = words > 4 ? 4 : words; // words of a cell
  uint32_t all[12];
#pragma unroll
  for (int i = 0; i < words; i++) all[of + i] = w[i];
  if (c.shifted) {
    int from = (threadIdx.x & (32 - c.lanes)) | ((c.lane - 1) & (c.lanes - 1));
#pragma unroll
    for (int i = 0; i < of; i++) {
      uint32_t last = w[words - of + i];
      all[i] = __shfl_sync(~0u, c.lane == c.lanes - 1 ? c.before[i] : last, from);
      c.before[i] = last;
    }
  }
#pragma unroll
  for (int k = 0; k < words; k += of) {
    uint32_t cell[8];
#pragma unroll
    for (int i = 0; i < 2 * of; i++) cell[i] = c.shifted || i >= of ? all[k + i] : 0;
    cut_words(cell, of, (uint32_t)(4 * of - c.shift) & (4 * of - 1));
#pragma unroll
    for (int i = 0; i < of; i++) cell[i] = c.shift ? cell[i] : w[k + i];
    apart_store(c, at - c.shift + 4 * k, of, out, cell);
  }
}

// After the last turn: the end of the last lane's chunk. at: the first byte of the first lane's next chunk.
INLINE void apart_end(ApartCells &c, int at, int words, int out) {
  const uint32_t none[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  if (c.shifted) apart_put(c, at, words, out, none);
}

// As label_of; every thread of the row knows its gradient then, for a neighbour may store it.
INLINE Label apart_label(const SoftmaxParams *p, RowLanes a, const RowChunks &r, int in, int count, int kind) {
  Label l = {LABEL_OF_ANOTHER, 0};
  if (!LABELS || a.row >= p->m) return l;
  int64_t at = target_at(p, a.row);
  int turn = (r.before + (int)at * in) / 16 - r.first;
  if (at < 0 || at >= p->n) l.at = NO_LABEL;
  else if (turn >= 0 && turn < count * a.lanes && (turn & (a.lanes - 1)) == 0)
    l.at = at, l.x = load_one((const char *)p->x + (int64_t)a.row * p->x_stride, at, kind);
  return l;
}

INLINE float2 apart_fold(float2 v, RowLanes a, int lane_bits, float2 *warps) {
  v = lanes_fold(v, FOLD_SOFTMAX, a.lanes);
  if (lane_bits >= 0) return v;
  if (a.lane == 0) warps[a.warp] = v;
  __syncthreads();
  return lanes_fold(a.lane < blockDim.x / 32 ? warps[a.lane] : make_float2(-INFINITY, 0), FOLD_SOFTMAX, 32);
}

INLINE void softmax_apart(const SoftmaxParams *p, int in, int out, int count, int kind) {
  __shared__ float2 warps[SOFTMAX_APART_THREADS / 32];
  const int per = 16 / in, words = per * out / 4, y_kind = out == 4 ? KIND_FP32 : p->y_kind;
  RowLanes a = row_lanes(p->lane_bits);
  const char *x = (const char *)p->x;
  Extent tensor = {x, x + (int64_t)(p->m - 1) * p->x_stride + p->n * in};
  RowChunks r = row_chunks(a, tensor, p->x_stride, a.row < p->m ? (int)p->n : 0, in, count);
  RowPlace place = {a.row, r.first, 0};
  Vec v[ROW_MAX_CHUNKS];
  float f[ROW_MAX_CHUNKS][8], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
  row_ends(a, p->m, p->y, p->y_stride, p->ends);
  chunks_hint(r, count);
  let_successor_start();
  wait_for_predecessor();
  chunks_load(r, count, in, v);
  Label label = apart_label(p, a, r, in, count, kind);
#pragma unroll
  for (int k = 0; k < count; k++) {
    chunk_mask(r, k, span_lowest(kind), v[k]);
    if (r.first + k * r.lanes >= r.chunks) v[k].v = make_uint4(span_lowest(kind), span_lowest(kind), span_lowest(kind), span_lowest(kind));
    widen(&v[k], kind, in, f[k]);
#pragma unroll
    for (int j = 0; j < per; j++) tops[j % 2] = fmaxf(tops[j % 2], f[k][j]);
  }
  float top = fmaxf(tops[0], tops[1]), mine = start_of(top);
#pragma unroll
  for (int k = 0; k < count; k++)
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = keep(f[k][j], mine, asks_log(p), &sums[j % 2]);
  float2 row = apart_fold(make_float2(top, sums[0] + sums[1]), a, p->lane_bits, warps);
  Finish z = finish_of(row, mine, asks_log(p));
  weigh_label(p, place, &label, row, &z);
  if (LABELS && !p->y) return;
  ApartCells c = apart_cells((char *)p->y + (int64_t)a.row * p->y_stride, r.begin * out, r.end * out, r.column * out, a.lane, a.lanes, words);
#pragma unroll
  for (int k = 0; k < count; k++) {
    uint32_t w[8];
    int column = r.column + k * r.turn;
#pragma unroll
    for (int j = 0; j < per; j++) f[k][j] = LABELS && column + j == (int)label.at ? label.x : LABELS && z.times == 0 ? 0 : finish(z, f[k][j]);
    from_floats(f[k], per, y_kind, w);
    apart_put(c, column * out, words, out, w);
  }
  apart_end(c, (r.column + count * r.turn) * out, words, out);
}

#endif
