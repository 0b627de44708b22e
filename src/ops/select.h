// What topk and sample share: kernels/select.
#ifndef SOL_OPS_SELECT_H
#define SOL_OPS_SELECT_H

#include "kernels/select/select.h"
#include "ops/cpu.h"
#include "ops/operation.h"

// Vectors that rows do not fill, several warps, clusters, many rows, more than shared memory holds.
enum { SELECT_SHAPES = 15, SELECT_LONG = 100000 }; // beyond, one option is tested
extern const int64_t select_shapes[SELECT_SHAPES][4];

// Fill in block, cluster and grid for rows of n elements of `in` bytes: of kernels that list the k largest
// (kernels/select/list.cuh), and which of the six it is; of those that weigh all (weigh.cuh), by a warp each or by a block or
// more; of those that do it group by group (groups.cuh), likewise. Results do not depend on it.
void list_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, int64_t k, OpsLaunch *l);
int group_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, OpsLaunch *l);
HeldShape weigh_plan(const SolContext *ctx, int64_t rows, int64_t n, int in, bool *alone, OpsLaunch *l);
// Threads of a block that lists, and its dynamic shared memory at most.
enum { LIST_THREADS = 256, LIST_SHARED = LIST_THREADS * LIST_MORE * LIST_BATCH * 16 };
enum {
  WEIGH_SHARED = 48 << 10
}; // bytes of a row that a block holds at most, beside a quarter of that for sums
// argmax, and the elements themselves into `values`; strides in elements. skip_nan: NaN does not count, and the column is -1 where
// there is nothing else.
SolStatus argmax_launch(SolContext *ctx, const SolArgmax *a, int64_t y_stride, void *values,
                        int64_t values_stride, bool skip_nan, SolStream stream);

// A row on the CPU, read again wherever it is needed: a call allocates nothing.
typedef struct SelectRow {
  SolDtype dtype;
  const void *x;
  int64_t start, n;
  bool nan_first;
  float top, per; // of the weights (kernels/select/weight.h); per 0: elements count 1 each
  bool hulls;     // of the weights, in place of them
  int part;       // of a rough cut; 0: there is none
  float depth;
} SelectRow;
// An element's place in the order of a row, the larger the earlier: its value as a number that grows with it, then its
// column. A NaN comes first, or last. No two elements of a row have the same.
uint64_t select_order(float value, bool nan_first, int64_t column);
static inline int64_t select_column(uint64_t order) {
  return (int64_t)(uint32_t)~order;
}
// What an element weighs.
uint64_t select_weight_of(const SelectRow *r, float value);
// The weights of the elements whose order is at least `least`, summed.
uint64_t select_sum(const SelectRow *r, uint64_t least);
// The orders of the k largest elements, the largest first; k is at most TOPK_MOST.
void select_list(const SelectRow *r, int64_t k, uint64_t *orders);
// The order of the last element that is needed for a sum of `target`, taken in order and no further than to `least`.
uint64_t select_last(const SelectRow *r, uint64_t least, uint64_t target);

#endif
