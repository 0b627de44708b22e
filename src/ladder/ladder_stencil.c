// A stencil: neighbours from the cache, from shared memory, from registers.
#include "base/error.h"
#include "kernels/stencil/rungs.h"
#include "ladder/ladder_matrix.h"

enum {
  Y = MATRIX_Y,
  X = MATRIX_X,
  RADIUS = STENCIL_RUNG_RADIUS,
  THREADS = STENCIL_RUNG_WIDE * STENCIL_RUNG_WARPS
};
static const float centre = -1.75f, side[RADIUS] = {0.5f, -0.25f, 0.125f, -0.0625f};

static SolStatus accept(const LadderCase *c, SolError *err) {
  const int64_t most = (int64_t)1 << 30;
  if (c->dim[0] > most || c->dim[1] > most)
    return sol_fail(err, SOL_ERR_RANGE, "at most 2^30 rows and columns");
  int64_t across = ladder_ceil_div(c->dim[1], STENCIL_RUNG_WIDE),
          down = ladder_ceil_div(c->dim[0], STENCIL_RUNG_TALL);
  if (across <= INT32_MAX / down) return SOL_OK;
  return sol_fail(err, SOL_ERR_RANGE, "at most %d tiles of %d x %d", INT32_MAX, STENCIL_RUNG_TALL,
                  STENCIL_RUNG_WIDE);
}

static double element(const LadderHost *h, int64_t r, int64_t c) {
  int64_t m = h->c->dim[0], n = h->c->dim[1];
  return r >= 0 && r < m && c >= 0 && c < n ? h->value(h, X, r * n + c) : 0;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1];
  for (int64_t k = first; k < first + count; k++) {
    int64_t r = k / n, c = k % n;
    double sum = (double)centre * element(h, r, c);
    for (int d = 1; d <= RADIUS; d++)
      sum += (double)side[d - 1] *
             (element(h, r - d, c) + element(h, r + d, c) + element(h, r, c - d) + element(h, r, c + d));
    *out++ = sum;
  }
}

static SolStatus tiles(const LadderCall *call, const char *kernel, int64_t tall, SolError *err) {
  StencilRung p = {.y = ladder_at(call, Y),
                   .x = ladder_at(call, X),
                   .m = (int32_t)call->c.dim[0],
                   .n = (int32_t)call->c.dim[1],
                   .centre = centre};
  memcpy(p.side, side, sizeof side);
  p.tiles_n = (uint32_t)ladder_ceil_div(p.n, STENCIL_RUNG_WIDE);
  LadderGrid grid = {.grid = {p.tiles_n * (uint32_t)ladder_ceil_div(p.m, tall)}, .block = {THREADS}};
  return ladder_launch(call, kernel, &grid, &p, sizeof p, err);
}

static SolStatus global(const LadderCall *call, SolError *err) {
  return tiles(call, "stencil_rung_global", STENCIL_RUNG_TALL, err);
}
static SolStatus tile(const LadderCall *call, SolError *err) {
  return tiles(call, "stencil_rung_tile", STENCIL_RUNG_TALL, err);
}
static SolStatus registers(const LadderCall *call, SolError *err) {
  return tiles(call, "stencil_rung_registers", STENCIL_RUNG_TALLER, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolStencil a = {.y = ladder_at(call, Y),
                  .x = ladder_at(call, X),
                  .m = call->c.dim[0],
                  .n = call->c.dim[1],
                  .dtype = SOL_FP32,
                  .radius = RADIUS,
                  .centre = centre};
  memcpy(a.side, side, sizeof side);
  return ladder_op(call, &ops_stencil, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "global",
     .change = "a thread an element, all its neighbours by loads from global memory",
     .why = "DRAM is read hardly more than once: neighbours' loads meet in the L1 cache. But each element "
            "takes seventeen loads, most of those to the left and right straddle two lines, and the L1 cache "
            "serves one line a clock: it, not DRAM, is the limit.",
     .go = global},
    {.name = "tile",
     .change = "the block loads its tile and a halo of four rows and columns into shared memory first",
     .why = "A word of global memory is loaded once or twice a block instead of seventeen times. The "
            "seventeen reads an element remain, and shared memory is the same pipe as the L1 cache; but "
            "rows of a tile need not start on a line, and what straddles two lines passes L1 twice and "
            "shared memory once.",
     .story = LADDER_FASTER,
     .go = tile},
    {.name = "registers",
     .change = "a thread has eight rows below each other and keeps their column in registers",
     .why = "What is above and below an element is above and below its neighbours, too: sixteen reads serve "
            "eight elements where each took nine. The taller tile also has less halo for its size.",
     .story = LADDER_FASTER,
     .go = registers},
    {.name = "library",
     .change =
         "sol_stencil: no tile: a thread reads all its neighbours by vectors, four columns of several rows",
     .why = "What neighbours read as well is in L1 by then, which is as near as shared memory and needs no "
            "barrier and no second copy; a row that comes adds to every sum that it has a part in. It takes "
            "every radius up to eight, rows of any length and three types.",
     .story = LADDER_FASTER,
     .go = library},
};

const Ladder ladder_stencil = {
    .name = "stencil",
    .title = "A stencil with four neighbours on every side",
    .about =
        "y = centre * x + side[d] * (the four neighbours at distance d), d from 1 to 4, on a matrix; zero "
        "outside. Seventeen elements go into one result, and every element into seventeen results: "
        "reading it once from DRAM is easy, the cache sees to it. The ladder is about what happens "
        "after that: how often it is read from what is near, and how near that is.",
    .module = "stencil_rungs",
    MATRIX_JOB,
    .size = {4096, 4096},
    .small = {77, 131},
    LADDER_RUNGS(rungs),
    .accept = accept,
    .expect = expect,
    .slack = 64,
};
