// Jobs that several ladders share, so that the file of a ladder holds its rungs, its reference and its texts.
//   matrix job: y and x of MxN elements, each moved once
//   vector job: a matrix job with a vector of N elements that every row uses: weights, factors, a bias
//   table job:  M rows of N floats taken by id from a table of V rows
// A row job is one whose result at any place depends on its whole row: .unit = ladder_row checks it by rows.
#ifndef SOL_LADDER_JOBS_H
#define SOL_LADDER_JOBS_H

#include "ladder/ladder.h"

enum { JOB_Y, JOB_X, JOB_VECTOR, JOB_BUFFERS };

static inline int64_t ladder_ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// An array of the type that the call has.
LadderBuffer ladder_input(const LadderCase *c, const char *name, int64_t count);
LadderBuffer ladder_output(const LadderCase *c, const char *name, int64_t count);

int ladder_matrix_buffers(const LadderCase *c, LadderBuffer *b);
double ladder_matrix_bytes(const LadderCase *c, const LadderRung *rung);
#define LADDER_MATRIX_JOB                                                                                    \
  .shape = "MxN", .dtypes = {SOL_FP32}, .buffers = ladder_matrix_buffers, .bytes = ladder_matrix_bytes

int ladder_vector_buffers(const LadderCase *c, const char *name, OpsFill fill, LadderBuffer *b);
double ladder_vector_bytes(const LadderCase *c, const LadderRung *rung);
// `buffers` and `expect`: static functions of the file.
#define LADDER_VECTOR_JOB .shape = "MxN", .buffers = buffers, .bytes = ladder_vector_bytes, .expect = expect

// Ids differ from each other where the table has enough rows.
LadderBuffer ladder_table(const LadderCase *c);
LadderBuffer ladder_ids(const LadderCase *c);
// y, the ids, and each row that is read: no more of them than the table has.
double ladder_table_bytes(const LadderCase *c, const LadderRung *rung);
#define LADDER_TABLE_JOB                                                                                     \
  .shape = "MxNxV", .size = {8192, 2048, 32000}, .small = {53, 1036, 77}, .dtypes = {SOL_FP32}

// Zeros, for a buffer's `make`.
void ladder_zeros(const LadderCase *c, void *to, int64_t count);

int64_t ladder_row(const LadderCase *c, int buffer);
// 1 / sqrt(mean of squares + eps) over `n` elements from `first` on.
#define LADDER_EPS 1e-5f
double ladder_inverse_rms(const LadderHost *h, int buffer, int64_t first, int64_t n);

// SOL_ERR_RANGE where a row is not whole vectors of 16 bytes: `elements` of them.
SolStatus ladder_whole_vectors(const LadderCase *c, int elements, SolError *err);

// One thread for each of `threads`, in blocks of `block`.
LadderGrid ladder_threads(uint64_t threads, uint32_t block);

#endif
