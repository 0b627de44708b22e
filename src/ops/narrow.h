// The launch of kernels for short rows: kernels/narrow.cuh.
#ifndef SOL_OPS_NARROW_H
#define SOL_OPS_NARROW_H

#include "kernels/narrow.h"
#include "ops/operation.h"

// Bytes of the rows of a block in its widest tensor, if they are more than one turn of its threads; the most
// shared memory of a block.
enum { NARROW_SPAN = 8 << 10, NARROW_SHARED = 48 << 10 };

typedef struct NarrowTensor {
  const void *at; // NULL: none
  int64_t stride; // bytes
  int size;       // of an element; 0: its rows do not follow each other
} NarrowTensor;

// Rows of up to so many elements; most: NARROW_NORM or NARROW_SOFTMAX.
static inline bool narrow_holds(int64_t n, int most) {
  return n > 0 && n <= (int64_t)NARROW_EACH << most;
}

static inline bool narrow_alike(const NarrowTensor *a, const NarrowTensor *b) {
  return a->at && a->size == b->size && ((uintptr_t)a->at - (uintptr_t)b->at) % 16 == 0;
}

// Places in shared memory: what is written takes the place of an input that is laid out alike.
static inline uint32_t narrow_places(const NarrowTensor *t, NarrowShape *s) {
  static const int input_of[NARROW_TENSORS] = {[NARROW_Y] = NARROW_X, [NARROW_SECOND] = NARROW_X};
  uint32_t used = 0;
  for (int i = 0; i < NARROW_TENSORS; i++) {
    bool dense = t[i].at && t[i].size && t[i].stride == (int64_t)s->n * t[i].size;
    int from = i == NARROW_Y && t[NARROW_RESIDUAL].at ? NARROW_RESIDUAL : input_of[i];
    s->place[i] = -1;
    if (dense && i >= NARROW_Y && s->place[from] >= 0 && narrow_alike(&t[from], &t[i]))
      s->place[i] = s->place[from];
    else if (dense)
      s->place[i] = (int32_t)used, used += ((uint32_t)(s->rows * s->n * t[i].size) + 31) / 16 * 16;
  }
  return used;
}

// How many rows a block has, and grid, block and shared memory of the launch.
static inline void narrow_fill(const SolContext *ctx, const NarrowTensor *t, uint64_t m, int64_t n,
                               NarrowShape *s, OpsLaunch *l) {
  int size = 1;
  for (int i = 0; i < NARROW_TENSORS; i++)
    if (t[i].at && t[i].size > size) size = t[i].size;
  uint64_t turn = NARROW_THREADS >> s->lane_bits, turns = NARROW_SPAN / ((uint64_t)(n * size) * turn);
  uint64_t few = m / (turn * 4 * (uint64_t)ctx->sms); // turns that leave four blocks an SM
  if (turns > few) turns = few;
  s->rows = (int32_t)(turn * (turns ? turns : 1));
  l->block = NARROW_THREADS, l->cluster = 1;
  l->shared = narrow_places(t, s);
  ops_grid(l->grid, (m + (uint64_t)s->rows - 1) / (uint64_t)s->rows, 1);
}

// Fills the shape, and the launch. Which lanes have a row depends on n alone; how many rows a block has does not
// change results.
static inline void narrow_plan(const SolContext *ctx, const NarrowTensor *t, uint64_t m, int64_t n,
                               NarrowShape *s, OpsLaunch *l) {
  s->n = (int32_t)n, s->lane_bits = 0;
  while (n > (int64_t)NARROW_EACH << s->lane_bits) s->lane_bits++;
  s->each = s->lane_bits && n <= (int64_t)6 << s->lane_bits ? 6 : NARROW_EACH;
  narrow_fill(ctx, t, m, n, s, l);
}

// The same for rows that become bytes: fewer lanes, with up to NARROW_MOST columns each.
static inline void narrow_bytes(const SolContext *ctx, const NarrowTensor *t, uint64_t m, int64_t n,
                                NarrowShape *s, OpsLaunch *l) {
  s->n = (int32_t)n, s->lane_bits = 0;
  while (n > (int64_t)NARROW_MOST << s->lane_bits) s->lane_bits++;
  s->each = (int32_t)ops_ceil_div(n, 1 << s->lane_bits);
  narrow_fill(ctx, t, m, n, s, l);
}

#endif
