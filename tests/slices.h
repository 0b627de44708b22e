// Along which axis a tensor grows when one dimension of a case does, and pieces of tensors along it. For
// tests that run an operation on a part, or on many copies, of what it ran on before.
#ifndef SLICES_H
#define SLICES_H

#include "measure/trial.h"

typedef enum SliceAxis { SLICE_NONE, SLICE_BATCH, SLICE_ROWS, SLICE_COLS, SLICE_MIXED } SliceAxis;

static inline void slice_dense(OpsView *v) {
  if (!v->batch) v->batch = 1;
  if (!v->stride) v->stride = v->cols;
  if (!v->batch_stride) v->batch_stride = v->rows * v->stride;
}

static inline size_t slice_size(const OpsView *v) {
  return (size_t)sol_dtype_bits(v->dtype) / 8;
}

// The tensors of a call, strides filled in.
static inline int slice_views(const OpsDef *def, const void *args, OpsView *v) {
  memset(v, 0, sizeof *v * OPS_MAX_VIEWS);
  int count = def->views(args, v);
  for (int k = 0; k < count; k++) slice_dense(&v[k]);
  return count;
}

// Sets the words of the arguments that hold dimension `dim` of the case (and follow it) to `value`. What was
// derived from it, such as the length of a table, stays.
static inline void slice_set(const OpsDef *def, const OpsCase *c, int dim, int64_t value,
                             unsigned char *args) {
  unsigned char a[512] = {0}, b[512] = {0};
  OpsCase other = *c;
  other.dim[dim] *= 2;
  if (!def->make(c, a) || !def->make(&other, b)) return;
  for (size_t at = 0; at + 8 <= def->args_bytes; at += 8) {
    int64_t x, y;
    memcpy(&x, a + at, 8);
    memcpy(&y, b + at, 8);
    if (x == c->dim[dim] && y == other.dim[dim]) memcpy(args + at, &value, 8);
  }
}

static inline int64_t slice_length(const OpsView *v, SliceAxis axis) {
  return axis == SLICE_BATCH ? v->batch : axis == SLICE_ROWS ? v->rows : v->cols;
}

// SLICE_MIXED: more than one axis grows, or one does not grow as the dimension does.
static inline SliceAxis slice_axis(const OpsView *a, const OpsView *b, int64_t a_dim, int64_t b_dim) {
  SliceAxis axis = SLICE_NONE;
  for (SliceAxis i = SLICE_BATCH; i <= SLICE_COLS; i++) {
    if (slice_length(a, i) == slice_length(b, i)) continue;
    if (axis || slice_length(a, i) * b_dim != slice_length(b, i) * a_dim) return SLICE_MIXED;
    axis = i;
  }
  return axis;
}

// Elements from one step along the axis to the next.
static inline int64_t slice_step(const OpsView *v, SliceAxis axis) {
  return axis == SLICE_BATCH ? v->batch_stride : axis == SLICE_ROWS ? v->stride : axis == SLICE_COLS ? 1 : 0;
}

#endif
