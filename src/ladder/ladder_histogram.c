// A histogram: where atomics are cheap. histogram_skewed is the same ladder on values of which half share a
// bin.
#include "base/error.h"
#include "kernels/histogram/rungs.h"
#include "ladder/ladder_jobs.h"

enum { COUNTS, X, BUFFERS, THREADS = HISTOGRAM_RUNG_THREADS, MOST_BINS = 12288 };

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] <= MOST_BINS) return SOL_OK;
  return sol_fail(err, SOL_ERR_RANGE, "at most %d bins: a block counts them in 48 KiB of shared memory",
                  MOST_BINS);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[COUNTS] = ladder_output(c, "counts", c->dim[1]);
  b[X] = ladder_input(c, "x", c->dim[0]);
  b[X].fill = OPS_FILL_IDS;
  b[X].limit = c->dim[1];
  return BUFFERS;
}

// Half of the elements in one bin, a quarter in the next and so on: images and token counts are often like
// that.
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

// `count` is all bins: .unit is ladder_row, and a row is BINS long.
static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  const int32_t *x = h->in[X];
  for (int64_t b = 0; b < count; b++) out[b] = 0;
  for (int64_t i = 0; i < h->c->dim[0]; i++)
    if (x[i] >= first && x[i] < first + count) out[x[i] - first]++;
}

static SolStatus launch(const LadderCall *call, const char *kernel, const LadderGrid *grid, SolError *err) {
  HistogramRung p = {.counts = ladder_at(call, COUNTS),
                     .x = ladder_at(call, X),
                     .n = (uint64_t)call->c.dim[0],
                     .bins = (uint32_t)call->c.dim[1]};
  return ladder_launch(call, kernel, grid, &p, sizeof p, err);
}

static SolStatus clear(const LadderCall *call, SolError *err) {
  LadderGrid grid = ladder_threads((uint64_t)call->c.dim[1], THREADS);
  return launch(call, "histogram_rung_zero", &grid, err);
}

static SolStatus global(const LadderCall *call, SolError *err) {
  LadderGrid grid = ladder_threads((uint64_t)call->c.dim[0], THREADS);
  SolStatus status = clear(call, err);
  return status ? status : launch(call, "histogram_rung_global", &grid, err);
}

// No more blocks than are resident together: each adds its counts to the result once.
static SolStatus by_blocks(const LadderCall *call, SolError *err) {
  int64_t most = (int64_t)call->ctx->sms * 4, blocks = ladder_ceil_div(call->c.dim[0], THREADS);
  LadderGrid grid = {.grid = {(uint32_t)(blocks < most ? blocks : most)},
                     .block = {THREADS},
                     .shared = (uint32_t)call->c.dim[1] * 4};
  SolStatus status = clear(call, err);
  return status ? status : launch(call, call->rung->kernel, &grid, err);
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

// The rungs of both ladders; only their reasons differ.
#define GLOBAL                                                                                               \
  .name = "global",                                                                                          \
  .change = "counts are cleared, then every element is an atomic on its bin in global memory", .go = global
#define SHARED                                                                                               \
  .name = "shared",                                                                                          \
  .change = "every block counts its elements in shared memory and adds its counts to the result once",       \
  .kernel = "histogram_rung_shared", .story = LADDER_FASTER
#define AGGREGATED                                                                                           \
  .name = "aggregated", .change = "lanes of a warp with the same bin are matched; one of them adds for all", \
  .kernel = "histogram_rung_aggregated", .story = LADDER_SLOWER
#define LIBRARY                                                                                              \
  .name = "library",                                                                                         \
  .change = "counts are cleared, then sol_histogram: shared memory, four loads of 16 bytes in flight",       \
  .go = library, .story = LADDER_FASTER, .against = "shared"

static const LadderRung rungs[] = {
    {GLOBAL, .why = "Atomics are performed in the L2 cache, those on one sector one after another. With few "
                    "bins, the atomics of the whole GPU are serialised on a few sectors."},
    {SHARED, .why =
                 "Atomics in shared memory stay within the SM, and the SMs count in parallel. Global atomics "
                 "fall from one per element to one per bin and block."},
    {AGGREGATED,
     .why = "Meant to save atomics. When values are spread over the bins, few lanes have the same one, "
            "so nearly as many additions remain, and the search for equal bins is added to each."},
    {LIBRARY, .why =
                  "Counting is no longer the limit; waiting for one element after another was. With sixteen "
                  "in flight, a thread waits a sixteenth as often."},
};

#define JOB                                                                                                  \
  .module = "histogram_rungs", .shape = "NxBINS", .size = {1 << 25, 256}, .small = {20011, 257},             \
  .dtypes = {SOL_INT32}, .go = by_blocks, .most = INT32_MAX, .most_of = "elements", .accept = accept,        \
  .bytes = bytes, .expect = expect, .unit = ladder_row

const Ladder ladder_histogram = {
    .name = "histogram",
    .title = "A histogram of evenly spread values",
    .about = "counts[x] += 1 for whole numbers spread evenly over the bins. Memory only has to read x; "
             "the ladder is about where the additions happen and how many of them there are. Clearing "
             "the counts is part of every rung. histogram_skewed has other values.",
    JOB,
    LADDER_RUNGS(rungs),
    .buffers = buffers,
};

static const LadderRung skewed_rungs[] = {
    {GLOBAL, .why = "Half of all atomics go to one address, where those of the whole GPU are serialised."},
    {SHARED, .why =
                 "Each SM has its own copy of the frequent bin. The hardware merges additions of one to the "
                 "same word of shared memory, so that not even the lanes of a warp are serialised."},
    {AGGREGATED, .why =
                     "The instructions repeat what the hardware already does for additions of one to shared "
                     "memory. It pays where the additions go to global memory, or are not of one."},
    {LIBRARY, .why = "More loads in flight, and the same counting: skew costs next to nothing."},
};

const Ladder ladder_histogram_skewed = {
    .name = "histogram_skewed",
    .title = "A histogram in which one bin gets half",
    .about = "The job of histogram on values as they often are: half of them in one bin, a quarter in "
             "another, and so on. What is most expensive for one kernel costs another nothing.",
    JOB,
    LADDER_RUNGS(skewed_rungs),
    .buffers = skewed_buffers,
};
