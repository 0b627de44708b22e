// The sum of an array: from atomics to one pass.
#include "kernels/reduce/rungs.h"
#include "ladder/ladder_jobs.h"

enum { Y, X, PART, ARRIVED, BUFFERS, THREADS = REDUCE_RUNG_THREADS };

// Sums of the first launch, in whole vectors; those of the next one follow.
static int64_t first_part(const LadderCase *c) {
  return ladder_ceil_div(ladder_ceil_div(c->dim[0], THREADS), 4) * 4;
}

// Whole numbers, few enough and small enough that fp32 holds every partial sum exactly: any order of
// additions gives the same result. The check is then that each element is added once, not how sums were
// rounded.
static void whole_numbers(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  float *f = to;
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (int64_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    f[i] = (float)((int)(state >> 33) % 17 - 8);
  }
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t part = first_part(c) + ladder_ceil_div(first_part(c), THREADS);
  b[Y] = ladder_output(c, "y", 1);
  b[X] = ladder_input(c, "x", c->dim[0]);
  b[PART] = ladder_input(c, "sums of blocks", part);
  b[ARRIVED] = ladder_input(c, "blocks arrived", 1);
  b[ARRIVED].dtype = SOL_INT32;
  b[X].make = whole_numbers;
  b[PART].make = b[ARRIVED].make = ladder_zeros;
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * (double)c->dim[0] + 4;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer, (void)first, (void)count;
  const float *x = h->in[X];
  double sum = 0;
  for (int64_t i = 0; i < h->c->dim[0]; i++) sum += (double)x[i];
  *out = sum;
}

static ReduceRung params(const LadderCall *call) {
  return (ReduceRung){.y = ladder_at(call, Y),
                      .x = ladder_at(call, X),
                      .n = (uint64_t)call->c.dim[0],
                      .part = ladder_at(call, PART),
                      .arrived = ladder_at(call, ARRIVED)};
}

static SolStatus launch(const LadderCall *call, const char *kernel, const ReduceRung *p, int64_t blocks,
                        SolError *err) {
  LadderGrid grid = {.grid = {(uint32_t)blocks}, .block = {THREADS}};
  return ladder_launch(call, kernel, &grid, p, sizeof *p, err);
}

static SolStatus atomics(const LadderCall *call, SolError *err) {
  ReduceRung p = params(call);
  LadderGrid one = {.block = {32}};
  SolStatus status = ladder_launch(call, "reduce_rung_zero", &one, &p, sizeof p, err);
  return status ? status
                : launch(call, "reduce_rung_atomics", &p, ladder_ceil_div(call->c.dim[0], THREADS), err);
}

// The kernel writes one sum per block, of `each` elements; it is launched again on those sums until one is
// left.
static SolStatus levels(const LadderCall *call, SolError *err) {
  ReduceRung p = params(call);
  for (int64_t n = call->c.dim[0], level = 0;; level++) {
    int64_t blocks = ladder_ceil_div(n, call->rung->each);
    p.n = (uint64_t)n;
    p.y = blocks == 1 ? ladder_at(call, Y) : level % 2 == 0 ? p.part : p.part + first_part(&call->c);
    SolStatus status = launch(call, call->rung->kernel, &p, blocks, err);
    if (status || blocks == 1) return status;
    p.x = p.y, n = blocks;
  }
}

static SolStatus one_pass(const LadderCall *call, SolError *err) {
  ReduceRung p = params(call);
  return launch(call, "reduce_rung_one_pass", &p, ladder_ceil_div(call->c.dim[0], REDUCE_RUNG_WIDE), err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolReduce a = {.y = ladder_at(call, Y),
                 .x = ladder_at(call, X),
                 .m = 1,
                 .n = call->c.dim[0],
                 .dtype = SOL_FP32,
                 .reduction = SOL_REDUCE_SUM,
                 .axis = SOL_AXIS_ALL};
  a.workspace_bytes = sol_reduce_workspace(call->ctx, &a);
  if (a.workspace_bytes > 0) a.workspace = ladder_at(call, PART);
  return ladder_op(call, &ops_reduce, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "atomics",
     .change = "y is cleared, then every thread adds its element to y",
     .why = "All additions go to one address. The L2 cache performs atomics on one address one after "
            "another, from wherever on the GPU they come: the array is summed serially.",
     .go = atomics},
    {.name = "interleaved",
     .change = "a block sums 256 elements by a tree in shared memory, neighbours first; launched again "
               "on the sums",
     .why = "Blocks work in parallel, and memory is read at full speed. In the tree, the words of the "
            "active threads are two, four, eight apart: they share banks, and their accesses are "
            "serialised again, though only within a warp.",
     .story = LADDER_FASTER,
     .kernel = "reduce_rung_interleaved",
     .each = THREADS},
    {.name = "sequential",
     .change = "the tree halves the array: thread t adds word t + half to word t",
     .why = "Active threads and their words are contiguous: no bank conflicts, and whole warps become "
            "inactive as the tree narrows. There are as many barriers as before, one per level.",
     .story = LADDER_FASTER,
     .kernel = "reduce_rung_sequential",
     .each = THREADS},
    {.name = "shuffles",
     .change = "warps reduce by shuffles; shared memory holds one sum per warp",
     .why = "A shuffle reads a register of another lane: no access to shared memory at each level, and "
            "one barrier instead of eight.",
     .story = LADDER_FASTER,
     .kernel = "reduce_rung_shuffles",
     .each = THREADS},
    {.name = "vectorised",
     .change = "sixteen elements per thread, in four loads of 16 bytes that are in flight together",
     .why = "Most additions happen in registers, before lanes exchange anything: a sixteenth of the "
            "shuffles and barriers, and far more bytes in flight while a thread waits.",
     .story = LADDER_FASTER,
     .kernel = "reduce_rung_vectorised",
     .each = REDUCE_RUNG_WIDE},
    {.name = "one-pass",
     .change = "an atomic counter identifies the last block to finish, and that block adds the sums of "
               "all blocks",
     .why = "There is no further launch. But every block now makes its sum visible to all others with a "
            "fence and increments the counter, and atomics on one address are serialised. For an array "
            "this long that costs more than the launch that it saves; for a short one the launch is "
            "most of the time.",
     .story = LADDER_SLOWER,
     .go = one_pass},
    {.name = "library",
     .change = "sol_reduce: at most 4096 blocks that loop over the array, and one short launch to add "
               "their sums",
     .why = "The order of additions depends on the length alone, so the same input gives the same bits "
            "on every GPU. That takes a second launch, as the rung vectorised does.",
     .story = LADDER_SAME,
     .against = "vectorised",
     .go = library},
};

const Ladder ladder_reduce = {
    .name = "reduce",
    .title = "Summing an array",
    .about = "The sum of an array of floats: every element is read once and next to nothing is written. "
             "Threads have to combine their sums, and the ladder is about how: through one word of "
             "global memory, through shared memory, through registers, and best of all rarely. Sums of "
             "blocks are added by further launches of the same kernel. The elements are whole numbers, "
             "so that every order of additions gives the same sum.",
    .module = "reduce_rungs",
    .shape = "N",
    .size = {1 << 25},
    .small = {100003},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .go = levels,
    .most = (int64_t)INT32_MAX * THREADS,
    .most_of = "elements",
    LADDER_OWN_JOB,
};
