// A stencil: neighbours from the cache, from shared memory, from registers.
#include <string.h>

#include "base/error.h"
#include "kernels/stencil/rungs.h"
#include "ladder/ladder_jobs.h"

enum { RADIUS = STENCIL_RUNG_RADIUS, THREADS = STENCIL_RUNG_WIDE * STENCIL_RUNG_WARPS };
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
  return r >= 0 && r < m && c >= 0 && c < n ? h->value(h, JOB_X, r * n + c) : 0;
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

// each: rows of a tile.
static SolStatus go(const LadderCall *call, SolError *err) {
  StencilRung p = {.y = ladder_at(call, JOB_Y),
                   .x = ladder_at(call, JOB_X),
                   .m = (int32_t)call->c.dim[0],
                   .n = (int32_t)call->c.dim[1],
                   .centre = centre};
  memcpy(p.side, side, sizeof side);
  p.tiles_n = (uint32_t)ladder_ceil_div(p.n, STENCIL_RUNG_WIDE);
  LadderGrid grid = {.grid = {p.tiles_n * (uint32_t)ladder_ceil_div(p.m, call->rung->each)},
                     .block = {THREADS}};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolStencil a = {.y = ladder_at(call, JOB_Y),
                  .x = ladder_at(call, JOB_X),
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
     .change = "one thread per element, all its neighbours by loads from global memory",
     .why = "Each element is read from DRAM hardly more than once: the loads of neighbouring threads "
            "hit the L1 cache. But each result takes seventeen loads, most of those to the left and "
            "right straddle two cache lines, and L1 serves one line per clock: L1, not DRAM, is the "
            "limit.",
     .kernel = "stencil_rung_global",
     .each = STENCIL_RUNG_TALL},
    {.name = "tile",
     .change = "the block first loads its tile and a halo of four rows and columns into shared memory",
     .why = "A word of global memory is loaded once or twice per block instead of seventeen times. The "
            "seventeen reads per result remain, and shared memory uses the same data path as L1; but "
            "the rows of a tile need not be aligned to cache lines, and an access that straddles two "
            "lines takes L1 two passes and shared memory one.",
     .story = LADDER_FASTER,
     .kernel = "stencil_rung_tile",
     .each = STENCIL_RUNG_TALL},
    {.name = "registers",
     .change = "a thread computes eight rows of one column and keeps that column in registers",
     .why = "The elements above and below a result are also above and below its neighbours: sixteen "
            "reads serve eight results where each took nine. The taller tile also has less halo for its "
            "size.",
     .story = LADDER_FASTER,
     .kernel = "stencil_rung_registers",
     .each = STENCIL_RUNG_TALLER},
    {.name = "library",
     .change = "sol_stencil: no tile: a thread reads all its neighbours as vectors, four columns of "
               "several rows",
     .why = "What neighbouring threads have read is in L1 by then, which is as fast as shared memory "
            "and needs no barrier and no second copy; each row that is read is added to every sum that "
            "needs it. It takes every radius up to eight, rows of any length and three types.",
     .story = LADDER_FASTER,
     .go = library},
};

const Ladder ladder_stencil = {
    .name = "stencil",
    .title = "A stencil with four neighbours on every side",
    .about = "y = centre * x + side[d] * (the four neighbours at distance d), d from 1 to 4, on a "
             "matrix; zero outside. Seventeen elements enter each result, and every element enters "
             "seventeen results: the caches make sure that it is read from DRAM about once. The ladder "
             "is about what happens after that: how often it is read from L1, shared memory or "
             "registers.",
    .module = "stencil_rungs",
    LADDER_MATRIX_JOB,
    .size = {4096, 4096},
    .small = {77, 131},
    LADDER_RUNGS(rungs),
    .go = go,
    .accept = accept,
    .expect = expect,
    .slack = 64,
};
