// The sum of an array: from atomics to one pass.
#include "base/error.h"
#include "kernels/reduce/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y, X, PART, ARRIVED, BUFFERS, THREADS = REDUCE_RUNG_THREADS };

// Sums of the first launch, in whole vectors; those of the next one follow.
static int64_t first_part(const LadderCase *c) {
  return ladder_ceil_div(ladder_ceil_div(c->dim[0], THREADS), 4) * 4;
}

static SolStatus accept(const LadderCase *c, SolError *err) {
  const int64_t most = (int64_t)INT32_MAX * THREADS; // blocks of a grid
  if (c->dim[0] <= most) return SOL_OK;
  return sol_fail(err, SOL_ERR_RANGE, "at most %lld elements", (long long)most);
}

// Whole numbers, few enough and small enough that every order of adding them up gives the same sum: fp32 has
// them all. What is checked is then that each is counted once, not how rounding went.
static void whole_numbers(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  float *f = to;
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (int64_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    f[i] = (float)((int)(state >> 33) % 17 - 8);
  }
}

static void zeros(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  memset(to, 0, (size_t)count * 4);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t part = first_part(c) + ladder_ceil_div(first_part(c), THREADS);
  b[Y] = (LadderBuffer){.name = "y", .dtype = SOL_FP32, .count = 1, .role = OPS_OUT};
  b[X] = (LadderBuffer){
      .name = "x", .dtype = SOL_FP32, .count = c->dim[0], .role = OPS_IN, .make = whole_numbers};
  b[PART] = (LadderBuffer){
      .name = "sums of blocks", .dtype = SOL_FP32, .count = part, .role = OPS_IN, .make = zeros};
  b[ARRIVED] =
      (LadderBuffer){.name = "blocks arrived", .dtype = SOL_INT32, .count = 1, .role = OPS_IN, .make = zeros};
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

// The kernel leaves a sum for each block; it is launched on those until there is one.
static SolStatus levels(const LadderCall *call, const char *kernel, int64_t each, SolError *err) {
  ReduceRung p = params(call);
  for (int64_t n = call->c.dim[0], level = 0;; level++) {
    int64_t blocks = ladder_ceil_div(n, each);
    p.n = (uint64_t)n;
    p.y = blocks == 1 ? ladder_at(call, Y) : level % 2 == 0 ? p.part : p.part + first_part(&call->c);
    SolStatus status = launch(call, kernel, &p, blocks, err);
    if (status || blocks == 1) return status;
    p.x = p.y, n = blocks;
  }
}

static SolStatus interleaved(const LadderCall *call, SolError *err) {
  return levels(call, "reduce_rung_interleaved", THREADS, err);
}
static SolStatus sequential(const LadderCall *call, SolError *err) {
  return levels(call, "reduce_rung_sequential", THREADS, err);
}
static SolStatus shuffles(const LadderCall *call, SolError *err) {
  return levels(call, "reduce_rung_shuffles", THREADS, err);
}
static SolStatus vectorised(const LadderCall *call, SolError *err) {
  return levels(call, "reduce_rung_vectorised", REDUCE_RUNG_WIDE, err);
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
     .why = "All additions hit one word. Atomics on a word take turns in the L2 cache, wherever on the GPU "
            "they come from: the array is added up one element after another.",
     .go = atomics},
    {.name = "interleaved",
     .change = "blocks add up 256 elements in shared memory, neighbours first; launched again on the sums",
     .why = "Blocks work at the same time and memory is read at speed. In the tree the active threads' words "
            "lie two, four, eight apart: they share banks and take turns again, if only within a warp.",
     .story = LADDER_FASTER,
     .go = interleaved},
    {.name = "sequential",
     .change = "the tree starts from the far end: thread t adds word t + half to word t",
     .why = "Active threads and their words stand side by side: no bank is hit twice, and whole warps drop "
            "out as the tree narrows. The barriers between its levels are as many as before.",
     .story = LADDER_FASTER,
     .go = sequential},
    {.name = "shuffles",
     .change = "warps add up by shuffles; shared memory holds one sum for each warp",
     .why = "A shuffle hands a register to another lane: no trip through shared memory at each level, and "
            "one barrier instead of eight.",
     .story = LADDER_FASTER,
     .go = shuffles},
    {.name = "vectorised",
     .change = "sixteen elements a thread, in four loads of 16 bytes that are under way together",
     .why = "Most additions happen in registers, before any lane has to talk to another: a sixteenth of the "
            "folding, and far more bytes in flight while a thread waits.",
     .story = LADDER_FASTER,
     .go = vectorised},
    {.name = "one-pass",
     .change = "a counter tells the last block that it is the last, and that one adds up the blocks' sums",
     .why = "No further launch. But every block now makes its sum visible to all others and counts itself "
            "in, by atomics on one word that queue up behind each other. On a sum this long that costs "
            "more than the launch that it saves; on a short one the launch is most of the time.",
     .story = LADDER_SLOWER,
     .go = one_pass},
    {.name = "library",
     .change = "sol_reduce: at most 4096 blocks that walk the array, and one short launch to add up theirs",
     .why = "The order of additions depends on the length alone, so the same input gives the same bits on "
            "every GPU. A second launch is the price, as it was for the vectors two rungs before.",
     .story = LADDER_SAME,
     .against = "vectorised",
     .go = library},
};

const Ladder ladder_reduce = {
    .name = "reduce",
    .title = "Summing an array",
    .about = "The sum of an array of floats: every element is read once and nothing is written to speak of. "
             "Threads have to tell each other what they found, and the ladder is about how: through one word "
             "of global memory, through shared memory, through registers, and best of all rarely. Sums of "
             "blocks are added up by further launches of the same kernel. The elements are whole numbers, "
             "so that every order of additions gives the same sum.",
    .module = "reduce_rungs",
    .shape = "N",
    .size = {1 << 25},
    .small = {100003},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
};
