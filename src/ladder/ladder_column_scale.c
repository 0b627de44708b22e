// A factor for each column: a kernel that looks harmless and accesses memory down the columns.
#include "base/error.h"
#include "kernels/scale_columns/rungs.h"
#include "ladder/ladder_jobs.h"

enum { MOST_Y = 65535 }; // blocks of a grid along y

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] > MOST_Y)
    return sol_fail(err, SOL_ERR_RANGE,
                    "N may be at most %d: one rung has a block along y for each "
                    "column",
                    MOST_Y);
  if (c->dim[0] > INT32_MAX || ladder_ceil_div(c->dim[0] * c->dim[1], SCALE_THREADS) > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M x N is too large: a grid has 2^31 - 1 blocks, of %d elements "
                    "each",
                    SCALE_THREADS);
  return ladder_whole_vectors(c, 4, err);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  return ladder_vector_buffers(c, "scale", OPS_FILL_UNIT, b);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1];
  for (int64_t k = first; k < first + count; k++)
    *out++ = h->value(h, JOB_X, k) * h->value(h, JOB_VECTOR, k % n);
}

static SolStatus launch(const LadderCall *call, int64_t across, int64_t down, SolError *err) {
  ColumnScaleRung p = {.y = ladder_at(call, JOB_Y),
                       .x = ladder_at(call, JOB_X),
                       .scale = ladder_at(call, JOB_VECTOR),
                       .m = call->c.dim[0],
                       .n = call->c.dim[1]};
  LadderGrid g = {
      .grid = {(uint32_t)ladder_ceil_div(across, SCALE_THREADS), (uint32_t)(down < MOST_Y ? down : MOST_Y)},
      .block = {SCALE_THREADS}};
  return ladder_launch(call, call->rung->kernel, &g, &p, sizeof p, err);
}

static SolStatus strided(const LadderCall *call, SolError *err) {
  return launch(call, call->c.dim[0], call->c.dim[1], err);
}

// each: elements of a thread.
static SolStatus contiguous(const LadderCall *call, SolError *err) {
  return launch(call, call->c.dim[0] * call->c.dim[1] / call->rung->each, 1, err);
}

static SolStatus direct(const LadderCall *call, SolError *err) {
  return launch(call, call->c.dim[1] / 4, call->c.dim[0], err);
}

static const LadderRung rungs[] = {
    {.name = "strided",
     .change = "one thread per element, the threads of a block down a column",
     .why = "The factor is the same for the whole block, which looks sensible. But neighbouring lanes "
            "are a row apart: each load and each store of a warp takes 32 sectors and uses 4 bytes of "
            "each. By the time the next column is processed, L1 has evicted them, and L2 serves each "
            "sector once more for every column in it.",
     .go = strided,
     .kernel = "column_scale_strided"},
    {.name = "contiguous",
     .change = "consecutive threads access consecutive elements; a division finds the column",
     .why = "An access of a warp is 128 contiguous bytes: 4 sectors, all used. The division costs "
            "instructions, which are hidden behind the memory accesses.",
     .story = LADDER_FASTER,
     .go = contiguous,
     .kernel = "column_scale_contiguous",
     .each = 1},
    {.name = "vectors",
     .change = "float4: four elements per thread, 16 bytes per access",
     .why = "A quarter of the instructions, one division for four elements, and four times the bytes in "
            "flight per thread.",
     .story = LADDER_FASTER,
     .go = contiguous,
     .kernel = "column_scale_vectors",
     .each = 4},
    {.name = "direct",
     .change = "a two-dimensional grid: row and column are the block's own indices, no division",
     .why = "Some twenty integer instructions per thread are gone. They delayed the load of the factor, "
            "not that of x, and they were hidden: where memory is the limit, nothing changes.",
     .story = LADDER_SAME,
     .go = direct,
     .kernel = "column_scale_direct"},
    {.name = "library",
     .change = "sol_scale_columns: one vector per thread, the column by a multiplication; programmatic "
               "dependent launch",
     .why = "It does what direct does, in a one-dimensional grid that takes any shape. The division is "
            "a multiplication by an inverse that the host computes. Only the time between launches can "
            "still be reduced: the blocks of the next kernel start while the last ones of this kernel "
            "are running.",
     .story = LADDER_SAME,
     .op = &ops_scale_columns},
};

const Ladder ladder_column_scale = {
    .name = "column_scale",
    .title = "Scaling the columns of a matrix",
    .about = "y[i][j] = x[i][j] * scale[j], float, rows contiguous. There is one multiplication for "
             "each element read and written: the cost is decided by which addresses the lanes of a warp "
             "access. Letting neighbouring threads go along the row, not down the column, gains more "
             "than everything after it.",
    .module = "scale_columns_rungs",
    LADDER_VECTOR_JOB,
    .size = {8192, 2048},
    .small = {301, 1060},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
};
