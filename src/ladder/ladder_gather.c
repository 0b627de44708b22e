// Gathering words from a table: scattered, sorted, in runs.
#include "base/error.h"
#include "kernels/gather/rungs.h"
#include "ladder/ladder.h"

enum { Y, X, IDS, SORTED, RUNS, BUFFERS, THREADS = 256 };

static SolStatus accept(const LadderCase *c, SolError *err) {
  int64_t m = c->dim[0], n = c->dim[1], rows = c->dim[2];
  if (rows < m)
    return sol_fail(err, SOL_ERR_RANGE, "the table has %lld rows; %lld different ones are wanted",
                    (long long)rows, (long long)m);
  if (rows > INT32_MAX / n)
    return sol_fail(err, SOL_ERR_RANGE, "a table of more than %d words: ids have 32 bits", INT32_MAX);
  return SOL_OK;
}

static uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// Row k of those wanted: the table in as many equal stretches, and one row somewhere in each. Ascending.
static int64_t row_of(const LadderCase *c, int64_t k) {
  int64_t stretch = c->dim[2] / c->dim[0];
  return k * stretch + (int64_t)(mix((uint64_t)k + 1) % (uint64_t)stretch);
}

static int64_t word_of(const LadderCase *c, int64_t i) {
  return row_of(c, i / c->dim[1]) * c->dim[1] + i % c->dim[1];
}

// Where i goes when 0 .. count - 1 are shuffled: a cipher of four rounds on numbers of 2 * half bits, applied
// again until it comes out below count.
static uint64_t shuffled(uint64_t i, uint64_t count) {
  int half = 1;
  while (half < 31 && (uint64_t)1 << 2 * half < count) half++;
  uint64_t low = ((uint64_t)1 << half) - 1;
  do {
    uint64_t a = i >> half, b = i & low;
    for (uint64_t round = 1; round <= 4; round++) {
      uint64_t next = a ^ (mix(b + (round << 40)) & low);
      a = b, b = next;
    }
    i = a << half | b;
  } while (i >= count);
  return i;
}

static void make_ids(const LadderCase *c, void *to, int64_t count) {
  int32_t *ids = to;
  for (int64_t i = 0; i < count; i++)
    ids[i] = (int32_t)word_of(c, (int64_t)shuffled((uint64_t)i, (uint64_t)count));
}

static void make_sorted(const LadderCase *c, void *to, int64_t count) {
  int32_t *ids = to;
  for (int64_t i = 0; i < count; i++) ids[i] = (int32_t)word_of(c, i);
}

static void make_runs(const LadderCase *c, void *to, int64_t count) {
  int32_t *ids = to;
  for (int64_t i = 0; i < count; i++) ids[i] = (int32_t)row_of(c, i);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t m = c->dim[0], n = c->dim[1], rows = c->dim[2];
  b[Y] = (LadderBuffer){.name = "y", .dtype = SOL_FP32, .count = m * n, .role = OPS_OUT};
  b[X] = (LadderBuffer){.name = "x", .dtype = SOL_FP32, .count = rows * n, .role = OPS_IN};
  b[IDS] =
      (LadderBuffer){.name = "ids", .dtype = SOL_INT32, .count = m * n, .role = OPS_IN, .make = make_ids};
  b[SORTED] = (LadderBuffer){
      .name = "sorted ids", .dtype = SOL_INT32, .count = m * n, .role = OPS_IN, .make = make_sorted};
  b[RUNS] = (LadderBuffer){.name = "runs", .dtype = SOL_INT32, .count = m, .role = OPS_IN, .make = make_runs};
  return BUFFERS;
}

// As few ids as will do: one a run.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * (double)c->dim[0] * (2.0 * (double)c->dim[1] + 1);
}

// rung.x: the buffer its ids come from.
static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int ids = (int)h->rung->x;
  const int32_t *id = h->in[ids];
  int64_t n = h->c->dim[1];
  for (int64_t k = first; k < first + count; k++)
    *out++ = h->value(h, X, ids == RUNS ? (int64_t)id[k / n] * n + k % n : id[k]);
}

static SolStatus launch(const LadderCall *call, SolError *err) {
  GatherRung p = {.y = ladder_at(call, Y),
                  .x = ladder_at(call, X),
                  .ids = (const int32_t *)(uintptr_t)call->at[(int)call->rung->x],
                  .count = (uint64_t)call->c.dim[0] * (uint64_t)call->c.dim[1],
                  .run = (uint64_t)call->c.dim[1]};
  LadderGrid grid = {.block = {THREADS}};
  ops_grid(grid.grid, p.count, THREADS);
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolGather a = {.y = ladder_at(call, Y),
                 .x = ladder_at(call, X),
                 .ids = ladder_at(call, RUNS),
                 .m = call->c.dim[0],
                 .n = call->c.dim[1],
                 .rows = call->c.dim[2],
                 .dtype = SOL_FP32,
                 .id_dtype = SOL_INT32};
  return ladder_op(call, &ops_gather, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "scattered",
     .change = "a thread a word, its id from a list in no order",
     .why =
         "Each of a warp's 32 words lies in a sector of its own: 32 bytes are moved for 4 that are wanted, "
         "and again when another warp wants the next word of the same sector and it has left the cache.",
     .go = launch,
     .kernel = "gather_rung_words",
     .x = IDS},
    {.name = "sorted",
     .change = "the same kernel, the ids in ascending order",
     .why = "Neighbouring lanes want neighbouring words: a warp's loads fall into few sectors, each is "
            "fetched once and used whole. Who asks in this order gets the answer in this order, too; if it "
            "has to be put back, the scatter has only moved to the stores.",
     .story = LADDER_FASTER,
     .go = launch,
     .kernel = "gather_rung_words",
     .x = SORTED},
    {.name = "runs",
     .change = "one id for a run of words that belong together",
     .why = "The list of ids is as long as the answer when every word has its own; an id a run makes it "
            "nothing, and a third of the bytes is gone. They were not what the rung before waited for: every "
            "word is still a thread, which first waits for its id, and finding the run takes a division.",
     .story = LADDER_SAME,
     .go = launch,
     .kernel = "gather_rung_runs",
     .x = RUNS},
    {.name = "library",
     .change = "sol_gather: rows in vectors of 16 bytes",
     .why = "A quarter of the threads and of the instructions for the same sectors, and no division for "
            "every word.",
     .story = LADDER_FASTER,
     .go = library,
     .x = RUNS},
};

const Ladder ladder_gather = {
    .name = "gather",
    .title = "Gathering words from a table",
    .about = "Words are picked from a table that is larger than the L2 cache. Those wanted lie in runs, M of "
             "N words each, somewhere in a table of ROWS such runs; every run is wanted once. The rungs "
             "fetch the same words and differ in the order they are asked for and in how much of the list is "
             "spelt out. Sorting the list is not part of the time: it pays where a list is used more than "
             "once, or comes in order anyhow.",
    .module = "gather_rungs",
    .shape = "MxNxROWS",
    .size = {1 << 20, 16, 1 << 21},
    .small = {301, 5, 1000},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
};
