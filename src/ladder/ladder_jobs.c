#include "ladder/ladder_jobs.h"

#include <math.h>
#include <string.h>

#include "base/error.h"

LadderBuffer ladder_input(const LadderCase *c, const char *name, int64_t count) {
  return (LadderBuffer){.name = name, .dtype = c->dtype, .count = count, .role = OPS_IN};
}

LadderBuffer ladder_output(const LadderCase *c, const char *name, int64_t count) {
  return (LadderBuffer){.name = name, .dtype = c->dtype, .count = count, .role = OPS_OUT};
}

int ladder_matrix_buffers(const LadderCase *c, LadderBuffer *b) {
  b[JOB_Y] = ladder_output(c, "y", c->dim[0] * c->dim[1]);
  b[JOB_X] = ladder_input(c, "x", c->dim[0] * c->dim[1]);
  return JOB_VECTOR;
}

static double element_bytes(const LadderCase *c) {
  return sol_dtype_bits(c->dtype) / 8.0;
}

double ladder_matrix_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2 * element_bytes(c) * (double)c->dim[0] * (double)c->dim[1];
}

int ladder_vector_buffers(const LadderCase *c, const char *name, OpsFill fill, LadderBuffer *b) {
  ladder_matrix_buffers(c, b);
  b[JOB_VECTOR] = ladder_input(c, name, c->dim[1]);
  b[JOB_VECTOR].fill = fill;
  return JOB_BUFFERS;
}

double ladder_vector_bytes(const LadderCase *c, const LadderRung *rung) {
  return ladder_matrix_bytes(c, rung) + element_bytes(c) * (double)c->dim[1];
}

LadderBuffer ladder_table(const LadderCase *c) {
  LadderBuffer b = ladder_input(c, "table", c->dim[2] * c->dim[1]);
  b.shared = true;
  return b;
}

LadderBuffer ladder_ids(const LadderCase *c) {
  return (LadderBuffer){.name = "ids",
                        .dtype = SOL_INT32,
                        .count = c->dim[0],
                        .role = OPS_IN,
                        .fill = c->dim[2] >= c->dim[0] ? OPS_FILL_DISTINCT : OPS_FILL_IDS,
                        .limit = c->dim[2]};
}

double ladder_table_bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  int64_t rows = c->dim[0] < c->dim[2] ? c->dim[0] : c->dim[2];
  return 4.0 * (double)c->dim[1] * ((double)c->dim[0] + (double)rows) + 4.0 * (double)c->dim[0];
}

void ladder_zeros(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  memset(to, 0, (size_t)count * 4);
}

int64_t ladder_row(const LadderCase *c, int buffer) {
  (void)buffer;
  return c->dim[1];
}

double ladder_inverse_rms(const LadderHost *h, int buffer, int64_t first, int64_t n) {
  double squares = 0;
  for (int64_t i = first; i < first + n; i++) squares += h->value(h, buffer, i) * h->value(h, buffer, i);
  return 1 / sqrt(squares / (double)n + (double)LADDER_EPS);
}

SolStatus ladder_whole_vectors(const LadderCase *c, int elements, SolError *err) {
  if (c->dim[1] % elements == 0) return SOL_OK;
  return sol_fail(err, SOL_ERR_RANGE, "N must be a multiple of %d: rows are moved 16 bytes at a time",
                  elements);
}

LadderGrid ladder_threads(uint64_t threads, uint32_t block) {
  LadderGrid grid = {.block = {block}};
  ops_grid(grid.grid, threads, block);
  return grid;
}
