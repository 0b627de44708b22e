// Cases as a distribution in place of a list: shapes, types, strides and options drawn at random. Rows and
// columns are log-uniform from 1 to 2^22; a third of the widths are those of real models, a third are odd; a
// quarter of the cases have rows further apart than dense.
#ifndef SOL_MEASURE_DRAW_H
#define SOL_MEASURE_DRAW_H

#include "measure/sets.h"

typedef struct DrawLimits {
  double least_bytes, most_bytes; // that a call moves
  const SolDtype *dtypes;         // input types to draw from
  int dtype_count;
} DrawLimits;

// Case `number` of a seed: it depends on nothing that was drawn before. SOL_ERR_NOT_FOUND: the operation has
// no case within the limits, as far as many tries show.
SolStatus draw_case(SolContext *ctx, const OpsDef *def, uint64_t seed, int64_t number,
                    const DrawLimits *limits, OpsCase *out, SolCost *cost, SolError *err);

#endif
