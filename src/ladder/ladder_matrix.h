// What ladders over a float matrix share: y and x of the same MxN, each moved once.
#ifndef SOL_LADDER_MATRIX_H
#define SOL_LADDER_MATRIX_H

#include "ladder/ladder.h"

enum { MATRIX_Y, MATRIX_X, MATRIX_BUFFERS };

static inline int64_t ladder_ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static inline int matrix_buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t count = c->dim[0] * c->dim[1];
  b[MATRIX_Y] = (LadderBuffer){.name = "y", .dtype = SOL_FP32, .count = count, .role = OPS_OUT};
  b[MATRIX_X] = (LadderBuffer){.name = "x", .dtype = SOL_FP32, .count = count, .role = OPS_IN};
  return MATRIX_BUFFERS;
}

static inline double matrix_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2.0 * 4 * (double)c->dim[0] * (double)c->dim[1];
}

// A row of N: where each result needs the whole of its row.
static inline int64_t matrix_row(const LadderCase *c, int buffer) {
  (void)buffer;
  return c->dim[1];
}

// The fields of a Ladder that all of these have alike.
#define MATRIX_JOB .shape = "MxN", .dtypes = {SOL_FP32}, .buffers = matrix_buffers, .bytes = matrix_bytes

#endif
