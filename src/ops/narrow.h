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
  int size;       // of an element
  bool looked_up; // its rows are anywhere
} NarrowTensor;

// Rows of up to so many elements; most: NARROW_NORM or NARROW_SOFTMAX.
static inline bool narrow_holds(int64_t n, int most) {
  return n > 0 && n <= (int64_t)NARROW_EACH << most;
}

static inline bool narrow_alike(const NarrowTensor *a, const NarrowTensor *b) {
  return a->at && a->size == b->size && ((uintptr_t)a->at - (uintptr_t)b->at) % 16 == 0;
}

// Bytes from row to row in shared memory; 0: the rows are dense.
static inline uint32_t narrow_pitch(const NarrowTensor *t, int64_t n) {
  bool dense = !t->at || (!t->looked_up && t->stride == n * t->size);
  return dense ? 0 : (uint32_t)(n * t->size + 30) / 16 * 16;
}

// Places in shared memory: what is written takes the place of a dense input that is laid out alike.
static inline uint32_t narrow_places(const NarrowTensor *t, NarrowShape *s) {
  static const int input_of[NARROW_TENSORS] = {[NARROW_Y] = NARROW_X, [NARROW_SECOND] = NARROW_X};
  uint32_t used = 0;
  for (int i = 0; i < NARROW_TENSORS; i++) {
    uint32_t pitch = narrow_pitch(&t[i], s->n), rows = (uint32_t)s->rows;
    int from = i == NARROW_Y && t[NARROW_RESIDUAL].at ? NARROW_RESIDUAL : input_of[i];
    s->place[i] = (int32_t)used, s->pitch[i] = (int32_t)pitch;
    if (!t[i].at) continue;
    if (pitch)
      used += rows * pitch;
    else if (i >= NARROW_Y && !s->pitch[from] && narrow_alike(&t[from], &t[i]))
      s->place[i] = s->place[from];
    else
      used += (rows * (uint32_t)(s->n * t[i].size) + 31) / 16 * 16;
  }
  s->place[NARROW_IDS] = (int32_t)used;
  return used + (t[NARROW_X].looked_up ? (uint32_t)s->rows * 8 : 0);
}

// How many rows a block has, and grid, block and shared memory of the launch.
static inline void narrow_fill(const SolContext *ctx, const NarrowTensor *t, uint64_t m, int64_t n,
                               NarrowShape *s, OpsLaunch *l) {
  uint64_t width = 1; // bytes of a row in the widest tensor
  for (int i = 0; i < NARROW_TENSORS; i++) {
    uint64_t pitch = narrow_pitch(&t[i], n), bytes = pitch ? pitch : (uint64_t)(n * t[i].size);
    if (t[i].at && bytes > width) width = bytes;
  }
  uint64_t turn = NARROW_THREADS >> s->lane_bits, turns = NARROW_SPAN / (width * turn);
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

#endif
