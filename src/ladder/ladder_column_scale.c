// A factor for each column: the kernel that looks innocent and walks memory the wrong way.
#include "base/error.h"
#include "kernels/scale_columns/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y, X, SCALE, BUFFERS };
enum { MOST_Y = 65535 }; // blocks of a grid along y

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] % 4)
    return sol_fail(err, SOL_ERR_RANGE, "N must be a multiple of 4: rows are moved 16 bytes at a time");
  if (c->dim[1] > MOST_Y)
    return sol_fail(err, SOL_ERR_RANGE, "N may be at most %d: one rung has a block along y for each column",
                    MOST_Y);
  if (c->dim[0] > INT32_MAX || ladder_ceil_div(c->dim[0] * c->dim[1], SCALE_THREADS) > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE, "M x N is too large: a grid has 2^31 - 1 blocks, of %d elements each",
                    SCALE_THREADS);
  return SOL_OK;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t count = c->dim[0] * c->dim[1];
  b[Y] = (LadderBuffer){.name = "y", .dtype = SOL_FP32, .count = count, .role = OPS_OUT};
  b[X] = (LadderBuffer){.name = "x", .dtype = SOL_FP32, .count = count, .role = OPS_IN};
  b[SCALE] = (LadderBuffer){
      .name = "scale", .dtype = SOL_FP32, .count = c->dim[1], .role = OPS_IN, .fill = OPS_FILL_UNIT};
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * (2 * (double)c->dim[0] + 1) * (double)c->dim[1];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1];
  for (int64_t k = first; k < first + count; k++) *out++ = h->value(h, X, k) * h->value(h, SCALE, k % n);
}

static SolStatus go(const LadderCall *call, const char *kernel, int64_t across, int64_t down, SolError *err) {
  ColumnScaleRung p = {.y = ladder_at(call, Y),
                       .x = ladder_at(call, X),
                       .scale = ladder_at(call, SCALE),
                       .m = call->c.dim[0],
                       .n = call->c.dim[1]};
  LadderGrid g = {
      .grid = {(uint32_t)ladder_ceil_div(across, SCALE_THREADS), (uint32_t)(down < MOST_Y ? down : MOST_Y)},
      .block = {SCALE_THREADS}};
  return ladder_launch(call, kernel, &g, &p, sizeof p, err);
}

static SolStatus strided(const LadderCall *call, SolError *err) {
  return go(call, "column_scale_strided", call->c.dim[0], call->c.dim[1], err);
}
static SolStatus contiguous(const LadderCall *call, SolError *err) {
  return go(call, "column_scale_contiguous", call->c.dim[0] * call->c.dim[1], 1, err);
}
static SolStatus vectors(const LadderCall *call, SolError *err) {
  return go(call, "column_scale_vectors", call->c.dim[0] * call->c.dim[1] / 4, 1, err);
}
static SolStatus direct(const LadderCall *call, SolError *err) {
  return go(call, "column_scale_direct", call->c.dim[1] / 4, call->c.dim[0], err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolScaleColumns a = {.y = ladder_at(call, Y),
                       .x = ladder_at(call, X),
                       .scale = ladder_at(call, SCALE),
                       .m = call->c.dim[0],
                       .n = call->c.dim[1],
                       .dtype = SOL_FP32};
  return ladder_op(call, &ops_scale_columns, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "strided",
     .change = "a thread an element, blocks of threads down a column",
     .why = "The column's factor is the same for the whole block, which reads well. But neighbouring lanes "
            "are a row apart: each load and each store of a warp takes 32 sectors for 4 bytes of each. By "
            "the time the next column is taken L1 has lost them, and L2 moves each of them once more for "
            "every column in it.",
     .go = strided},
    {.name = "contiguous",
     .change = "threads go along memory; a division finds the column",
     .why = "A warp's access is 128 bytes in one piece: 4 sectors, all used. The division costs "
            "instructions, and they hide behind the memory.",
     .story = LADDER_FASTER,
     .go = contiguous},
    {.name = "vectors",
     .change = "float4: four elements a thread, 16 bytes an access",
     .why = "A quarter of the instructions, one division for four elements, and four times the bytes in "
            "flight in each thread.",
     .story = LADDER_FASTER,
     .go = vectors},
    {.name = "direct",
     .change = "a two-dimensional grid: row and column are the block's own indices, no division",
     .why =
         "Some twenty integer instructions a thread are gone. They stood between the thread and its factor, "
         "not between it and x, and the machine had the time: where memory is the limit nothing changes.",
     .story = LADDER_SAME,
     .go = direct},
    {.name = "library",
     .change = "sol_scale_columns: one vector a thread, the column by a multiplication; the next launch may "
               "start early",
     .why = "It does what direct does, in a grid of one dimension that takes any shape. The division became "
            "a multiplication by its inverse, which the launcher computes. Nothing is left to gain but "
            "between launches: the blocks of the next one are let in while the last of these still run.",
     .story = LADDER_SAME,
     .go = library},
};

const Ladder ladder_column_scale = {
    .name = "column_scale",
    .title = "Scaling the columns of a matrix",
    .about = "y[i][j] = x[i][j] * scale[j], float, rows in one piece. One multiplication for each element "
             "read and written: the whole cost is in how the lanes of a warp lie in memory. Turning the "
             "threads by a quarter is worth more than everything after it.",
    .module = "scale_columns_rungs",
    .shape = "MxN",
    .size = {8192, 2048},
    .small = {301, 1060},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
};
