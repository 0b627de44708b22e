// A histogram: atomics where they are cheap.
#include "base/error.h"
#include "kernels/histogram/rungs.h"
#include "ladder/ladder.h"

enum { COUNTS, X, BUFFERS, THREADS = HISTOGRAM_RUNG_THREADS, MOST_BINS = 12288 };

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] > MOST_BINS)
    return sol_fail(err, SOL_ERR_RANGE, "at most %d bins: a block counts them in 48 KiB of shared memory",
                    MOST_BINS);
  if (c->dim[0] > INT32_MAX) return sol_fail(err, SOL_ERR_RANGE, "at most %d elements", INT32_MAX);
  return SOL_OK;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[COUNTS] = (LadderBuffer){.name = "counts", .dtype = SOL_INT32, .count = c->dim[1], .role = OPS_OUT};
  b[X] = (LadderBuffer){.name = "x",
                        .dtype = SOL_INT32,
                        .count = c->dim[0],
                        .role = OPS_IN,
                        .fill = OPS_FILL_IDS,
                        .limit = c->dim[1]};
  return BUFFERS;
}

// Half of the elements in one bin, a quarter in the next and so on: as pictures and token counts are.
static void skewed(const LadderCase *c, void *to, int64_t count) {
  int32_t *x = to;
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (int64_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int64_t zeros = __builtin_ctzll(state >> 20 | (uint64_t)1 << 40);
    x[i] = (int32_t)(zeros * 37 % c->dim[1]);
  }
}

static int skewed_buffers(const LadderCase *c, LadderBuffer *b) {
  int count = buffers(c, b);
  b[X].make = skewed;
  return count;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * ((double)c->dim[0] + (double)c->dim[1]);
}

// All bins at once: they take one walk over x.
static int64_t unit(const LadderCase *c, int buffer) {
  (void)buffer;
  return c->dim[1];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  const int32_t *x = h->in[X];
  for (int64_t b = 0; b < count; b++) out[b] = 0;
  for (int64_t i = 0; i < h->c->dim[0]; i++)
    if (x[i] >= first && x[i] < first + count) out[x[i] - first]++;
}

static HistogramRung params(const LadderCall *call) {
  return (HistogramRung){.counts = ladder_at(call, COUNTS),
                         .x = ladder_at(call, X),
                         .n = (uint64_t)call->c.dim[0],
                         .bins = (uint32_t)call->c.dim[1]};
}

static SolStatus clear(const LadderCall *call, SolError *err) {
  HistogramRung p = params(call);
  LadderGrid grid = {.block = {THREADS}};
  ops_grid(grid.grid, p.bins, THREADS);
  return ladder_launch(call, "histogram_rung_zero", &grid, &p, sizeof p, err);
}

static SolStatus global(const LadderCall *call, SolError *err) {
  HistogramRung p = params(call);
  LadderGrid grid = {.block = {THREADS}};
  ops_grid(grid.grid, p.n, THREADS);
  SolStatus status = clear(call, err);
  return status ? status : ladder_launch(call, "histogram_rung_global", &grid, &p, sizeof p, err);
}

// As many blocks as are resident together: each hands over its counts once.
static SolStatus by_blocks(const LadderCall *call, SolError *err) {
  HistogramRung p = params(call);
  LadderGrid grid = {.block = {THREADS}, .shared = p.bins * 4};
  uint64_t most = (uint64_t)call->ctx->sms * 4, blocks = (p.n + THREADS - 1) / THREADS;
  grid.grid[0] = (uint32_t)(blocks < most ? blocks : most);
  SolStatus status = clear(call, err);
  return status ? status : ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolHistogram a = {.counts = ladder_at(call, COUNTS),
                    .x = ladder_at(call, X),
                    .n = call->c.dim[0],
                    .bins = call->c.dim[1],
                    .dtype = SOL_INT32};
  SolStatus status = clear(call, err);
  return status ? status : ladder_op(call, &ops_histogram, &a, err);
}

#define SHARED_CHANGE "every block counts its share in shared memory and adds its counts to the result once"
#define WARP_CHANGE   "lanes of a warp with the same bin find each other; one of them adds for all"
#define LIBRARY_CHANGE                                                                                       \
  "counts are cleared, then sol_histogram: shared memory, four loads of 16 bytes in flight"

static const LadderRung rungs[] = {
    {.name = "global",
     .change = "counts are cleared, then every element is an atomic on its bin in global memory",
     .why = "Atomics are done in the L2 cache, those on one sector one after another. With few bins the "
            "whole GPU queues for a few sectors.",
     .go = global},
    {.name = "shared",
     .change = SHARED_CHANGE,
     .why = "Atomics in shared memory stay within the SM, and the SMs count side by side. Global atomics "
            "fall from one for each element to one for each bin and block.",
     .story = LADDER_FASTER,
     .go = by_blocks,
     .kernel = "histogram_rung_shared"},
    {.name = "aggregated",
     .change = WARP_CHANGE,
     .why = "Meant to spare atomics. Values spread over the bins leave few lanes with the same one, so as "
            "many additions remain, and the search for equals comes on top of each.",
     .story = LADDER_SLOWER,
     .go = by_blocks,
     .kernel = "histogram_rung_aggregated"},
    {.name = "library",
     .change = LIBRARY_CHANGE,
     .why = "Counting was never the limit any more, waiting for one element after another was. With sixteen "
            "on their way each thread waits a sixteenth as often.",
     .story = LADDER_FASTER,
     .against = "shared",
     .go = library},
};

const Ladder ladder_histogram = {
    .name = "histogram",
    .title = "A histogram of evenly spread values",
    .about = "counts[x] += 1 for whole numbers spread evenly over the bins. Reading x is all that memory has "
             "to do; the ladder is about where the additions happen and how many of them there are. "
             "Clearing the counts is part of every rung. histogram_skewed has other values.",
    .module = "histogram_rungs",
    .shape = "NxBINS",
    .size = {1 << 25, 256},
    .small = {20011, 257},
    .dtypes = {SOL_INT32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
    .unit = unit,
};

static const LadderRung skewed_rungs[] = {
    {.name = "global",
     .change = "counts are cleared, then every element is an atomic on its bin in global memory",
     .why = "Half of all atomics hit one word and take turns there, from the whole GPU.",
     .go = global},
    {.name = "shared",
     .change = SHARED_CHANGE,
     .why = "Each SM has a copy of the busy bin. Additions of one to the same word of shared memory are "
            "merged by the hardware, so that not even the lanes of a warp take turns.",
     .story = LADDER_FASTER,
     .go = by_blocks,
     .kernel = "histogram_rung_shared"},
    {.name = "aggregated",
     .change = WARP_CHANGE,
     .why = "What the hardware already does for additions of one to shared memory is done once more by "
            "instructions. It pays where the additions go to global memory or are not of one.",
     .story = LADDER_SLOWER,
     .go = by_blocks,
     .kernel = "histogram_rung_aggregated"},
    {.name = "library",
     .change = LIBRARY_CHANGE,
     .why = "More loads in flight, and the same counting: skew costs next to nothing.",
     .story = LADDER_FASTER,
     .against = "shared",
     .go = library},
};

const Ladder ladder_histogram_skewed = {
    .name = "histogram_skewed",
    .title = "A histogram of which one bin gets half",
    .about = "The job of histogram on values as they often are: half of them in one bin, a quarter in "
             "another, and so on. What costs most with one kernel costs nothing with another.",
    .module = "histogram_rungs",
    .shape = "NxBINS",
    .size = {1 << 25, 256},
    .small = {20011, 257},
    .dtypes = {SOL_INT32},
    LADDER_RUNGS(skewed_rungs),
    .accept = accept,
    .buffers = skewed_buffers,
    .bytes = bytes,
    .expect = expect,
    .unit = unit,
};
