// Gathering words from a table: ids in random order, sorted, one per run of words.
#include "base/error.h"
#include "kernels/gather/rungs.h"
#include "ladder/ladder_jobs.h"

enum { Y, X, IDS, SORTED, RUNS, BUFFERS, THREADS = 256 };

static SolStatus accept(const LadderCase *c, SolError *err) {
  int64_t m = c->dim[0], n = c->dim[1], rows = c->dim[2];
  if (rows < m)
    return sol_fail(err, SOL_ERR_RANGE, "the table has %lld rows, too few for %lld different ones",
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

// Row k of those to gather: the table is divided into M equal parts, with one row at random in each.
// Ascending.
static int64_t row_of(const LadderCase *c, int64_t k) {
  int64_t part = c->dim[2] / c->dim[0];
  return k * part + (int64_t)(mix((uint64_t)k + 1) % (uint64_t)part);
}

static int64_t word_of(const LadderCase *c, int64_t i) {
  return row_of(c, i / c->dim[1]) * c->dim[1] + i % c->dim[1];
}

// A permutation of 0 .. count - 1: a Feistel network of four rounds on numbers of 2 * half bits, applied
// again until the result is below count.
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
  b[Y] = ladder_output(c, "y", m * n);
  b[X] = ladder_input(c, "x", rows * n);
  b[IDS] = ladder_input(c, "ids", m * n);
  b[SORTED] = ladder_input(c, "sorted ids", m * n);
  b[RUNS] = ladder_input(c, "runs", m);
  b[IDS].make = make_ids, b[SORTED].make = make_sorted, b[RUNS].make = make_runs;
  b[IDS].dtype = b[SORTED].dtype = b[RUNS].dtype = SOL_INT32;
  return BUFFERS;
}

// With the fewest ids that suffice: one per run.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * (double)c->dim[0] * (2.0 * (double)c->dim[1] + 1);
}

// rung.x: the buffer with its ids.
static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int ids = (int)h->rung->x;
  const int32_t *id = h->in[ids];
  int64_t n = h->c->dim[1];
  for (int64_t k = first; k < first + count; k++)
    *out++ = h->value(h, X, ids == RUNS ? (int64_t)id[k / n] * n + k % n : id[k]);
}

static SolStatus go(const LadderCall *call, SolError *err) {
  GatherRung p = {.y = ladder_at(call, Y),
                  .x = ladder_at(call, X),
                  .ids = ladder_at(call, (int)call->rung->x),
                  .count = (uint64_t)call->c.dim[0] * (uint64_t)call->c.dim[1],
                  .run = (uint64_t)call->c.dim[1]};
  LadderGrid grid = ladder_threads(p.count, THREADS);
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
     .change = "one thread per word, its id from a list in random order",
     .why = "Each of the 32 words of a warp is in a different sector: 32 bytes are moved for 4 that are "
            "used, and again when another warp needs the next word of the same sector after it was "
            "evicted from the cache.",
     .kernel = "gather_rung_words",
     .x = IDS},
    {.name = "sorted",
     .change = "the same kernel, the ids in ascending order",
     .why = "Neighbouring lanes read neighbouring words: the loads of a warp fall into few sectors, and "
            "each is fetched once and used whole. The result is in sorted order, too; if it has to be "
            "in the original order, the scattered accesses have only moved to the stores.",
     .story = LADDER_FASTER,
     .kernel = "gather_rung_words",
     .x = SORTED},
    {.name = "runs",
     .change = "one id for each run of consecutive words",
     .why = "With an id per word, the list of ids is as long as the result; with an id per run it is "
            "negligible, and a third of the bytes is gone. The rung before was not limited by them: "
            "there is still one thread per word, which first waits for its id, and finding its run "
            "takes a division.",
     .story = LADDER_SAME,
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
    .about = "Words are read from random places of a table that is larger than the L2 cache. They come "
             "in M runs of N consecutive words, each once, from a table of ROWS such runs. The rungs "
             "read the same words and differ in their order and in how many ids it takes to list them. "
             "Sorting the list is not part of the time: it pays where a list is used more than once, or "
             "is in order anyway.",
    .module = "gather_rungs",
    .shape = "MxNxROWS",
    .size = {1 << 20, 16, 1 << 21},
    .small = {301, 5, 1000},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .go = go,
    .accept = accept,
    LADDER_OWN_JOB,
};
