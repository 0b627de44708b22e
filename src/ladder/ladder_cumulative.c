// Six steps on one kernel, each on top of those before: a filter along the rows of a matrix.
#include "base/error.h"
#include "kernels/cumulative/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y = MATRIX_Y, X = MATRIX_X };

enum { MOST_Y = 65535 }; // blocks of a grid along y

static const float weights[FILTER_TAPS] = FILTER_WEIGHTS;

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] % 4)
    return sol_fail(err, SOL_ERR_RANGE, "N must be a multiple of 4: rows are moved 16 bytes at a time");
  if (c->dim[0] > MOST_Y || c->dim[1] > MOST_Y)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M and N may be at most %d: a grid has a block along y for each row or column", MOST_Y);
  return SOL_OK;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1];
  for (int64_t i = first; i < first + count; i++) {
    double sum = 0;
    for (int k = 0; k < FILTER_TAPS; k++) {
      int64_t c = i % n + k - FILTER_RADIUS;
      if (c >= 0 && c < n) sum += (double)weights[k] * h->value(h, X, i - i % n + c);
    }
    *out++ = sum;
  }
}

// each: elements of a row that a block has; 0: it has a piece of a column.
static SolStatus go(const LadderCall *call, const char *kernel, int64_t each, SolError *err) {
  int64_t m = call->c.dim[0], n = call->c.dim[1];
  FilterRung p = {.y = ladder_at(call, Y), .x = ladder_at(call, X), .m = (int32_t)m, .n = (int32_t)n};
  int64_t across = each ? ladder_ceil_div(n, each) : ladder_ceil_div(m, FILTER_THREADS), down = each ? m : n;
  LadderGrid g = {.grid = {(uint32_t)across, (uint32_t)down}, .block = {FILTER_THREADS}};
  return ladder_launch(call, kernel, &g, &p, sizeof p, err);
}

static SolStatus naive(const LadderCall *call, SolError *err) {
  return go(call, "filter_naive", 0, err);
}
static SolStatus coalesced(const LadderCall *call, SolError *err) {
  return go(call, "filter_coalesced", FILTER_THREADS, err);
}
static SolStatus tiled(const LadderCall *call, SolError *err) {
  return go(call, "filter_tiled", FILTER_THREADS, err);
}
static SolStatus vectors(const LadderCall *call, SolError *err) {
  return go(call, "filter_vectors", 4 * FILTER_THREADS, err);
}
static SolStatus conflict_free(const LadderCall *call, SolError *err) {
  return go(call, "filter_padded", 4 * FILTER_THREADS, err);
}
static SolStatus registers(const LadderCall *call, SolError *err) {
  return go(call, "filter_registers", 2 * 4 * FILTER_THREADS, err);
}

static const LadderRung rungs[] = {
    {.name = "naive",
     .change = "a thread an element, blocks of threads down a column",
     .why = "Neighbouring lanes are a row apart: every access of a warp takes 32 sectors and uses 4 bytes of "
            "each. The nine taps of a thread lie in two or three sectors, so L1 has most of them; the stores "
            "do not gather.",
     .go = naive},
    {.name = "coalesced",
     .change = "blocks of threads along a row",
     .why = "A warp's access is one stretch of 128 bytes. Nothing else in this ladder is worth as much.",
     .story = LADDER_FASTER,
     .go = coalesced},
    {.name = "tiled",
     .change = "the block's stretch of the row, and a few elements on either side, go through shared memory",
     .why = "Each element is asked of L1 once instead of nine times. But L1 answers the other eight from "
            "its own memory, which is the same that shared memory is made of; the tile adds a store, a "
            "load and a barrier behind which the whole block waits. By itself it costs. The next rungs "
            "are what it is for.",
     .story = LADDER_SLOWER,
     .go = tiled},
    {.name = "vectors",
     .change = "four neighbouring elements a thread, 16 bytes an access of global memory",
     .why = "A quarter of the loads and stores, and four results need 12 elements of the tile, not 36: they "
            "stay in registers. But lanes are four words apart in the tile now, and their reads and writes "
            "find only eight of its 32 banks: four wavefronts each.",
     .story = LADDER_FASTER,
     .go = vectors},
    {.name = "conflict-free",
     .change = "the tile is padded: one word is left out after every 32",
     .why = "Every fourth word lies in 32 different banks then, and a request takes one wavefront. It "
            "only counts as far as shared memory was what the others waited for.",
     .seen_on = "h200",
     .seen = "On an H200 memory itself is the limit by now, and the conflicts were hidden behind it.",
     .story = LADDER_SAME,
     .go = conflict_free},
    {.name = "registers",
     .change = "two vectors a thread are under way at once; launch bounds keep room for all threads of an SM",
     .why = "Registers hold a second vector, and the bounds make sure that it does not cost threads. More "
            "bytes on their way pay where too few of them were.",
     .seen_on = "h200",
     .seen = "With eight blocks on an SM of an H200 there is nothing left to gain.",
     .story = LADDER_SAME,
     .go = registers},
};

const Ladder ladder_cumulative = {
    .name = "cumulative",
    .title = "Six steps on one kernel",
    .about = "A filter of nine taps along the rows of a matrix, y[i][j] = sum of weight[k] * x[i][j + k - "
             "4], float: neighbouring results share their inputs, so that every step of the usual order has "
             "something to do. Coalescing first, then a tile for reuse, vectors, banks, and registers last: "
             "each rung stands on all before it, and each is worth less than the one before.",
    .module = "cumulative_rungs",
    MATRIX_JOB,
    .size = {4096, 2048},
    .small = {300, 1060},
    LADDER_RUNGS(rungs),
    .accept = accept,
    .expect = expect,
    .slack = 16, // nine products of either sign, each rounded
};
