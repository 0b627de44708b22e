// Six optimisations of one kernel, each on top of those before: a filter along the rows of a matrix.
#include "base/error.h"
#include "kernels/cumulative/rungs.h"
#include "ladder/ladder_jobs.h"

enum { MOST_Y = 65535 }; // blocks of a grid along y

static const float weights[FILTER_TAPS] = FILTER_WEIGHTS;

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[0] > MOST_Y || c->dim[1] > MOST_Y)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M and N may be at most %d: a grid has a block along y for each row or column", MOST_Y);
  return ladder_whole_vectors(c, 4, err);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1];
  for (int64_t i = first; i < first + count; i++) {
    double sum = 0;
    for (int k = 0; k < FILTER_TAPS; k++) {
      int64_t c = i % n + k - FILTER_RADIUS;
      if (c >= 0 && c < n) sum += (double)weights[k] * h->value(h, JOB_X, i - i % n + c);
    }
    *out++ = sum;
  }
}

// each: elements of a row per block; 0: a block computes part of a column.
static SolStatus go(const LadderCall *call, SolError *err) {
  int64_t m = call->c.dim[0], n = call->c.dim[1], each = call->rung->each;
  FilterRung p = {.y = ladder_at(call, JOB_Y), .x = ladder_at(call, JOB_X), .m = (int32_t)m, .n = (int32_t)n};
  int64_t across = each ? ladder_ceil_div(n, each) : ladder_ceil_div(m, FILTER_THREADS), down = each ? m : n;
  LadderGrid g = {.grid = {(uint32_t)across, (uint32_t)down}, .block = {FILTER_THREADS}};
  return ladder_launch(call, call->rung->kernel, &g, &p, sizeof p, err);
}

static const LadderRung rungs[] = {
    {.name = "naive",
     .change = "one thread per element, the threads of a block down a column",
     .why = "Neighbouring lanes are a row apart: every access of a warp takes 32 sectors and uses 4 "
            "bytes of each. The nine taps of a thread are in two or three sectors, so most of its loads "
            "hit L1; stores are not combined.",
     .kernel = "filter_naive"},
    {.name = "coalesced",
     .change = "the threads of a block along a row",
     .why = "An access of a warp is 128 contiguous bytes. No other rung of this ladder gains as much.",
     .story = LADDER_FASTER,
     .kernel = "filter_coalesced",
     .each = FILTER_THREADS},
    {.name = "tiled",
     .change = "the block's part of the row, and a few elements on either side, go through shared "
               "memory",
     .why = "Each element is loaded through L1 once instead of nine times. But the other eight loads "
            "were hits in L1, which is the same memory as shared memory; the tile adds a store, a load "
            "and a barrier at which the whole block waits. By itself it costs. The next rungs are what "
            "it is for.",
     .story = LADDER_SLOWER,
     .kernel = "filter_tiled",
     .each = FILTER_THREADS},
    {.name = "vectors",
     .change = "four neighbouring elements per thread, 16 bytes per access of global memory",
     .why = "A quarter of the loads and stores, and four results need 12 elements of the tile, not 36: "
            "they stay in registers. But lanes are now four words apart in the tile, and their reads "
            "and writes use only eight of the 32 banks: four wavefronts each.",
     .story = LADDER_FASTER,
     .kernel = "filter_vectors",
     .each = 4 * FILTER_THREADS},
    {.name = "conflict-free",
     .change = "the tile is padded: one word is left out after every 32",
     .why = "Every fourth word is then in a different one of the 32 banks, and a request takes one "
            "wavefront. It matters only as far as shared memory was the limit.",
     .seen_on = "h200",
     .seen = "On an H200 DRAM is the limit by now, and the conflicts were hidden behind it.",
     .story = LADDER_SAME,
     .kernel = "filter_padded",
     .each = 4 * FILTER_THREADS},
    {.name = "registers",
     .change = "two vectors per thread in flight at once; launch bounds keep the SM full of threads",
     .why = "Registers hold a second vector, and the bounds make sure that this does not reduce "
            "occupancy. More bytes in flight pay where there were too few.",
     .seen_on = "h200",
     .seen = "With eight blocks on an SM of an H200 there are enough already, and it gains nothing.",
     .story = LADDER_SAME,
     .kernel = "filter_registers",
     .each = 2 * 4 * FILTER_THREADS},
};

const Ladder ladder_cumulative = {
    .name = "cumulative",
    .title = "Six steps on one kernel",
    .about = "A filter of nine taps along the rows of a matrix, y[i][j] = sum of weight[k] * x[i][j + k "
             "- 4], float: neighbouring results share their inputs, so that every step of the usual "
             "order applies. Coalescing first, then a tile for reuse, vectors, banks, and registers "
             "last: each rung includes all before it, and each gains less than the one before.",
    .module = "cumulative_rungs",
    LADDER_MATRIX_JOB,
    .size = {4096, 2048},
    .small = {300, 1060},
    LADDER_RUNGS(rungs),
    .go = go,
    .accept = accept,
    .expect = expect,
    .slack = 16, // nine products of either sign, each rounded
};
