// The launch rule of sums of rows: kernels/reduce/rows.def.
#ifndef SOL_OPS_SPANS_H
#define SOL_OPS_SPANS_H

#include "ops/operation.h"

// Kernels come in pairs, for elements of 2 and of 4 bytes: 2 * index in the list, + 1 for 4 bytes.
enum {
#define SPAN(threads, rows, cluster, upto)    SPAN_2_##threads##_##cluster, SPAN_4_##threads##_##cluster,
#define SPAN_90(threads, rows, cluster, upto) SPAN(threads, rows, cluster, upto)
#include "kernels/reduce/rows.def"
  SPAN_KERNELS
};
#define SPAN_NAMES(prefix, threads, cluster)                                                                 \
  prefix "_2_rows_" #threads "x" #cluster, prefix "_4_rows_" #threads "x" #cluster,

// Fills kernel, grid, block and cluster of a launch over `rows` rows of n elements of `in` bytes (2 or 4).
// The choice depends on n, never on the number of rows.
static inline void spans_plan(SolContext *ctx, const OpsDef *def, int64_t rows, int64_t n, int in,
                              OpsLaunch *l) {
  static const struct {
    uint32_t threads, rows, cluster;
    int64_t upto;
  } rules[] = {
#define SPAN(threads, rows, cluster, upto)    {threads, rows, cluster, upto},
#define SPAN_90(threads, rows, cluster, upto) SPAN(threads, rows, cluster, upto)
#include "kernels/reduce/rows.def"
  };
  int64_t chunks = n / (16 / in);
  int i = 0;
  while (i + 1 < (int)SOL_COUNT(rules)) {
    if (chunks <= rules[i].upto && ops_has_kernel(ctx, def, 2 * i + (in == 4))) break;
    i++;
  }
  l->kernel = 2 * i + (in == 4);
  l->block = rules[i].threads * rules[i].rows;
  l->cluster = rules[i].cluster;
  ops_grid(l->grid, ((uint64_t)rows + rules[i].rows - 1) / rules[i].rows * rules[i].cluster, 1);
}

#endif
