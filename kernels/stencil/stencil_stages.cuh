// Blocks that walk down strips of columns: rows come into shared memory by asynchronous copies of the buffer's own 16-byte chunks, several
// steps ahead, so that a row lies there as far off 16 bytes as in x. As many threads share a row of a stage as there are for each of its 16
// rows: a thread has the same row and the same chunks of it in every stage.
#ifndef SOL_KERNELS_STENCIL_STAGES_CUH
#define SOL_KERNELS_STENCIL_STAGES_CUH

#include "funnel.cuh"
#include "mma.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

extern __shared__ __align__(128) char walk_memory[];

enum { WALK_HALO = 8 }; // rows and columns around a tile

// This thread's row of 16, and its first byte of it.
INLINE int walk_row(void) { return (int)(threadIdx.x / (blockDim.x / WALK_ROWS)); }
INLINE int walk_first(void) { return (int)(threadIdx.x % (blockDim.x / WALK_ROWS)) * 16; }

// Where a block is: stage k of a unit has rows 16 k - 8 to 16 k + 7 of it, and after stage k rows 16 (k - 1) and on can be computed.
typedef struct StencilStage {
  uint32_t unit;
  int64_t row, column; // the unit's first; few rows: the piece's
  int rows, columns;   // of y
  int stage, stages;   // 0 stages: there are no more units
  // Of this thread's row: its number in x, where the thread's first chunk is, and the bytes from there on that are the row's.
  int64_t mine;
  const char *at;
  int low, high;
  int has, cut[2]; // a bit for each of its chunks: the row has a part in it; bytes to those that have elements of other rows, too, or -1
} StencilStage;

// The chunk in which byte `at` of what is the row's starts or ends, if that is this thread's; bytes from its first.
INLINE int stage_edge(int at, int end) { return at % 16 && at > 0 && at < end && at / 16 % (blockDim.x / 16) == 0 ? at & -16 : -1; }

// Few rows, `apart`, a literal: row v of a stage is row v & row_mask of x, and its columns come after those of row v - (row_mask + 1). So several
// pieces of up to 8 rows are below each other, and a unit is one stage, with nothing above and below it.
INLINE int walk_piece(const StencilWalkParams *p, int v) { return (v >> p->group_bits) * p->columns; }

INLINE StencilStage stencil_stage(const StencilWalkParams *p, int size, bool apart, uint32_t unit) {
  uint32_t segment = unit / p->strips, strip = unit - segment * p->strips;
  StencilStage t;
  t.unit = unit;
  t.row = (int64_t)segment * p->rows, t.column = (int64_t)strip * (apart ? walk_piece(p, WALK_ROWS) : p->columns);
  t.rows = unit < p->units ? (int)min((int64_t)p->rows, p->m - t.row) : 0;
  t.stage = 0, t.stages = t.rows ? (apart ? 1 : (t.rows + WALK_ROWS - 1) / WALK_ROWS + 1) : 0;
  t.mine = apart ? walk_row() & p->row_mask : t.row - WALK_HALO + walk_row();
  if (apart) t.column += walk_piece(p, walk_row());
  t.columns = (int)max((int64_t)0, min((int64_t)p->columns, p->n - t.column));
  const char *from = (const char *)p->x + (t.mine * p->x_stride + t.column - WALK_HALO) * size;
  int shift = (int)((uint32_t)(uintptr_t)from & 15), first = walk_first(), all = p->chunks * 16;
  t.at = from - shift + first;
  t.low = (t.column ? 0 : shift + WALK_HALO * size) - first;
  t.high = (int)max((int64_t)0, min((int64_t)all, shift + (p->n - t.column + WALK_HALO) * size)) - first;
  t.has = 0;
  for (int k = 0, i = 0; k < all - first; k += blockDim.x, i++) t.has |= (k + 16 > t.low && k < t.high) << i;
  t.cut[0] = stage_edge(t.low, all - first), t.cut[1] = stage_edge(t.high, all - first);
  return t;
}

INLINE void stencil_next(const StencilWalkParams *p, int size, bool apart, StencilStage *t) {
  t->mine += WALK_ROWS, t->at += p->x_step;
  if (++t->stage >= t->stages) *t = stencil_stage(p, size, apart, t->unit + gridDim.x);
}

// Where this thread's chunks lie in a stage.
INLINE int stage_place(const StencilWalkParams *p) { return walk_row() * p->x_pitch + walk_first(); }

// Where the stage is that came `count` before the one at `slot`, in a ring of so many.
INLINE int stage_before(const StencilWalkParams *p, int slot, int count, int ring) {
  int at = slot - count * p->stage_bytes;
  return at < 0 ? at + ring * p->stage_bytes : at;
}

// Starts to copy a stage; `to`: this thread's place in it. What is not x is zero, but for elements of other rows in a row's first and last chunk.
INLINE void stage_fetch(const StencilWalkParams *p, const StencilStage &t, int size, char *to) {
  if (t.stages) {
    const int end = p->chunks * 16 - walk_first();
    int has = (uint64_t)t.mine < (uint64_t)p->m ? t.has : 0;
    if (has && (t.at + (t.low & -16) < (const char *)p->x || t.at + (t.high + 15 & -16) > (const char *)p->x_end)) {
#pragma unroll 1
      for (int k = 0; k < end; k += blockDim.x) *(uint4 *)(to + k) = load_singly(t.at + k, t.at + t.low, t.at + t.high, size);
    } else {
#pragma unroll 3
      for (int k = 0; k < end; k += blockDim.x, has >>= 1) copy_async(tile_address(to + k), t.at + k, has & 1);
    }
  }
  copy_commit();
}

// Bytes `from` to `to` - 1 of 16, the others zero; both even.
INLINE uint4 stage_keep(uint4 v, int from, int to) {
  uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int i = 0; i < 4; i++) {
    w[i] = from >= 4 * i + 4 ? 0 : from > 4 * i ? w[i] & 0xffff0000u : w[i];
    w[i] = to <= 4 * i ? 0 : to < 4 * i + 4 ? w[i] & 0xffff : w[i];
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// After what this thread copied is there: elements of other rows become zeros.
INLINE void stage_cut(const StencilStage &t, char *to) {
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (t.cut[i] >= 0) *(uint4 *)(to + t.cut[i]) = stage_keep(*(const uint4 *)(to + t.cut[i]), t.low - t.cut[i], t.high - t.cut[i]);
}

#endif
#endif
