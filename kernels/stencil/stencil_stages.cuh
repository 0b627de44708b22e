// Blocks that walk down strips of columns: rows come into shared memory by asynchronous copies of the buffer's own 16-byte chunks, several
// steps ahead, so that a row lies there as far off 16 bytes as in x.
#ifndef SOL_KERNELS_STENCIL_STAGES_CUH
#define SOL_KERNELS_STENCIL_STAGES_CUH

#include "funnel.cuh"
#include "mma.cuh"
#include "stencil.h"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

extern __shared__ __align__(128) char walk_memory[];

// Rows and columns around a tile; threads that copy a row.
enum { WALK_HALO = 8, WALK_LANES = 16 };

// Where a block is: stage k of a unit has rows 16 k - 8 to 16 k + 7 of it, and after stage k rows 16 (k - 1) and on can be computed.
typedef struct StencilStage {
  uint64_t unit;
  int64_t row, column; // the unit's first
  int rows, columns;   // of y
  int stage, stages;   // 0 stages: there are no more units
} StencilStage;

INLINE StencilStage stencil_stage(const StencilWalkParams *p, uint64_t unit) {
  uint64_t segment, strip;
  split(unit, (uint64_t)p->strips, &segment, &strip);
  StencilStage t;
  t.unit = unit;
  t.row = (int64_t)segment * p->rows, t.column = (int64_t)strip * p->columns;
  t.rows = unit < (uint64_t)p->units ? (int)min((int64_t)p->rows, p->m - t.row) : 0;
  t.columns = (int)min((int64_t)p->columns, p->n - t.column);
  t.stage = 0, t.stages = t.rows ? (t.rows + WALK_ROWS - 1) / WALK_ROWS + 1 : 0;
  return t;
}

INLINE void stencil_next(const StencilWalkParams *p, StencilStage *t) {
  if (++t->stage >= t->stages) *t = stencil_stage(p, t->unit + gridDim.x);
}

// Row i of a stage: where its chunks start in x, and the bytes from there on that are the row's.
typedef struct StageRow {
  const char *at;
  int low, high;
} StageRow;

INLINE StageRow stage_row(const StencilWalkParams *p, const StencilStage &t, int size, int i) {
  int64_t row = t.row + t.stage * WALK_ROWS - WALK_HALO + i;
  const char *from = (const char *)p->x + (row * p->x_stride + t.column - WALK_HALO) * size;
  int shift = (int)((uint32_t)(uintptr_t)from & 15);
  StageRow r;
  r.at = from - shift;
  r.low = t.column ? 0 : shift + WALK_HALO * size;
  r.high = (uint64_t)row >= (uint64_t)p->m ? 0 : (int)min((int64_t)p->chunks * 16, shift + (p->n - t.column + WALK_HALO) * size);
  return r;
}

// Starts to copy a stage to `to`; what is not x is zero, but for elements of other rows in a row's first and last chunk.
INLINE void stage_fetch(const StencilWalkParams *p, const StencilStage &t, int size, char *to) {
  const char *x = (const char *)p->x, *end = x + ((p->m - 1) * p->x_stride + p->n) * size;
  if (t.stages) {
#pragma unroll 1
    for (int i = threadIdx.x / WALK_LANES; i < WALK_ROWS; i += blockDim.x / WALK_LANES) {
      StageRow r = stage_row(p, t, size, i);
      bool safe = r.at >= x && r.at + p->chunks * 16 <= end;
#pragma unroll 1
      for (int k = threadIdx.x % WALK_LANES * 16; k < p->chunks * 16; k += WALK_LANES * 16) {
        char *there = to + i * p->x_pitch + k;
        bool has = k + 16 > r.low && k < r.high;
        if (safe || !has || (r.at + k >= x && r.at + k + 16 <= end)) copy_async(tile_address(there), r.at + k, has);
        else *(uint4 *)there = load_singly(r.at + k, r.at + r.low, r.at + r.high, size);
      }
    }
  }
  copy_commit();
}

// After what this thread copied is there: its elements of other rows become zeros.
INLINE void stage_cut(const StencilWalkParams *p, const StencilStage &t, int size, char *stage) {
  if (t.column && p->n - t.column >= p->columns + 2 * WALK_HALO) return;
#pragma unroll 1
  for (int i = threadIdx.x / WALK_LANES; i < WALK_ROWS; i += blockDim.x / WALK_LANES) {
    StageRow r = stage_row(p, t, size, i);
    char *row = stage + i * p->x_pitch;
    if (r.high == 0) continue;
#pragma unroll
    for (int side = 0; side < 2; side++) {
      int k = (side ? r.high : r.low) & -16;
      if (k / 16 % WALK_LANES != (int)threadIdx.x % WALK_LANES || k >= p->chunks * 16) continue;
      *(uint4 *)(row + k) = load_singly(row + k, row + r.low, row + r.high, size);
    }
  }
}

#endif
#endif
