// Walk: rows that start anywhere. A block walks down a strip of x's columns, 128 bytes of y's rows at a time: rows of x come into a ring in shared
// memory by asynchronous copies of the buffer's own 16-byte chunks, two steps ahead, and 16 bytes of a row of y are put together from
// single elements there. What is stored of a row of y starts with a sector: the rows of x before it are in the ring still, from the step
// before. So nothing is read twice, and only whole sectors are written but for a strip's ends.
//
// A row of x lies in shared memory as far beyond 16 bytes as in memory. Neighbouring lanes put together neighbouring chunks of y, whose rows of
// x are a chunk's elements apart: after as many rows 16 bytes are left free, for other banks. A thread's columns are 32 apart, and rows
// of y so far apart start alike: the places of its elements are computed once a step.
#ifndef SOL_KERNELS_TRANSPOSE_WALK_CUH
#define SOL_KERNELS_TRANSPOSE_WALK_CUH

#include "transpose.cuh"

enum { WALK_LANES = 8, WALK_SLOTS = 4, WALK_STEP = 32 }; // threads that copy a row; stages in shared memory; columns that a block takes at a time

INLINE int walk_place(int size, int row, int pitch) { return row * pitch + row / (16 / size) * 16; }

INLINE void walk_commit(void) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// All of this thread's but the last group are there.
INLINE void walk_arrived(void) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

// Stage k of a unit: rows k * WALK_ROWS(size) and on of it.
#define WALK_ROWS(size) (128 / (size))
typedef struct WalkStage {
  uint32_t unit;
  int stage, stages; // 0: there are no more units
  int rows, columns;
  const char *x, *begin, *end; // of its first element; of the batch's tensor
  char *y;
} WalkStage;

INLINE WalkStage walk_stage(int size, const TransposeParams *p, uint32_t unit) {
  uint32_t segment = unit / p->tiles_n, strip = unit - segment * p->tiles_n, batch = segment / p->segments;
  segment -= batch * p->segments;
  int64_t i = (int64_t)segment * p->tall, j = (int64_t)strip * p->span;
  WalkStage t;
  t.unit = unit, t.stage = 0;
  t.rows = batch < p->batches ? (int)min((int64_t)p->tall, p->m - i) : 0;
  t.columns = (int)min((int64_t)p->span, p->n - j);
  t.stages = t.rows ? (t.rows + TRANSPOSE_SLACK(size) - 1 + WALK_ROWS(size) - 1) / WALK_ROWS(size) : 0;
  t.begin = (const char *)p->x + batch * p->x_batch, t.end = t.begin + (p->m - 1) * p->x_stride + p->n * size;
  t.x = t.begin + i * p->x_stride + j * size;
  t.y = (char *)p->y + batch * p->y_batch + j * p->y_stride + i * size;
  return t;
}

INLINE void walk_next(int size, const TransposeParams *p, WalkStage *t) {
  if (++t->stage >= t->stages) *t = walk_stage(size, p, t->unit + gridDim.x);
}

INLINE void walk_fetch(int size, const TransposeParams *p, const WalkStage &t, int first, char *ring) {
  const int rows = t.stages ? min(WALK_ROWS(size), t.rows - t.stage * WALK_ROWS(size)) : 0, lane = threadIdx.x % WALK_LANES * 16;
#pragma unroll 1
  for (int i = threadIdx.x / WALK_LANES; i < rows; i += TRANSPOSE_GATHER_THREADS / WALK_LANES) {
    const char *at = t.x + (t.stage * WALK_ROWS(size) + i) * p->x_stride;
    int beyond = (int)((uint32_t)(uintptr_t)at & 15), bytes = (beyond + t.columns * size + 15) & -16;
    char *to = ring + walk_place(size, first + i, p->pitch);
    at -= beyond;
    if (at >= t.begin && at + bytes <= t.end) {
#pragma unroll 3
      for (int k = lane; k < bytes; k += WALK_LANES * 16) fetch16(to + k, at + k);
    } else {
#pragma unroll 1
      for (int k = lane; k < bytes; k += WALK_LANES * 16) *(uint4 *)(to + k) = load_singly(at + k, t.begin, t.end, size);
    }
  }
  walk_commit();
}

// first: the row of the ring where the stage starts.
INLINE void walk_out(int size, const TransposeParams *p, const WalkStage &t, int first, const char *ring) {
  const int per = 16 / size, all = WALK_SLOTS * WALK_ROWS(size), lane = threadIdx.x % 32;
  int c = (int)(threadIdx.x / 32) * 4 + lane / 8;
  char *to = t.y + c * p->y_stride + t.stage * 128;
  int beyond = (int)((uint32_t)(uintptr_t)to & 31), start = (lane % 8 * 16 - beyond) / size; // row of the stage: may be before it
  int row = t.stage * WALK_ROWS(size) + start;                                              // of the unit
  uint32_t x = (uint32_t)(uintptr_t)t.x + (uint32_t)row * (uint32_t)p->x_stride;
  int place[16];
  to += start * size;
#pragma unroll
  for (int i = 0; i < per; i++)
    place[i] = walk_place(size, (first + start + i) & (all - 1), p->pitch) + (int)((x + i * (uint32_t)p->x_stride) & 15) + c * size;
  bool whole = row >= 0 && row + per <= t.rows;
#pragma unroll 2
  for (; c < t.columns; c += WALK_STEP, to += WALK_STEP * p->y_stride, ring += WALK_STEP * size) {
    if (whole) {
      Vec v;
#pragma unroll
      for (int i = 0; i < per; i++) move_one(v.b + i * size, ring + place[i], size);
      *(uint4 *)to = v.v;
    } else {
#pragma unroll
      for (int i = 0; i < per; i++)
        if (row + i >= 0 && row + i < t.rows) move_one(to + i * size, ring + place[i], size);
    }
  }
}

INLINE void transpose_walk(int size, const TransposeParams *p) {
  extern __shared__ __align__(16) char tile[];
  const int rows = WALK_ROWS(size), all = WALK_SLOTS * rows;
  WalkStage now = walk_stage(size, p, blockIdx.x), later = now;
  let_successor_start();
  wait_for_predecessor();
#pragma unroll 1
  for (int i = 0; i < 2; i++) {
    walk_fetch(size, p, later, i * rows, tile);
    if (later.stages) walk_next(size, p, &later);
  }
#pragma unroll 1
  for (int first = 0; now.stages; first = (first + rows) & (all - 1)) {
    walk_arrived();
    __syncthreads();
    walk_fetch(size, p, later, (first + 2 * rows) & (all - 1), tile);
    if (later.stages) walk_next(size, p, &later);
    walk_out(size, p, now, first, tile);
    walk_next(size, p, &now);
  }
}

#endif
