// Constant memory, read at one address per warp and at several.
#include "ladder/sweep.h"

// The values of constant_table in kernels/sweeps/constant.cu.
static void make_table(const LadderCase *c, void *to, int64_t count) {
  (void)c;
  for (int64_t i = 0; i < count; i++) ((float *)to)[i] = (float)(i * 37 % 61);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", c->dim[0]);
  b[SWEEP_X] = sweep_input("table", SWEEP_TABLE);
  b[SWEEP_X].make = make_table;
  b[SWEEP_X].shared = true;
  return SWEEP_BUFFERS;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t distinct = (int64_t)h->rung->x;
  for (int64_t k = first; k < first + count; k++) {
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_LOOKUPS; j++)
      sum += (double)sweep_in(h, SWEEP_X)[(k % SWEEP_BLOCK % distinct + j * 53) % SWEEP_TABLE];
    *out++ = sum;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SweepConstant p = {.y = ladder_at(call, SWEEP_Y),
                     .table = ladder_at(call, SWEEP_X),
                     .n = (uint64_t)call->c.dim[0],
                     .distinct = (uint32_t)call->rung->x};
  LadderGrid grid = {.grid = {sweep_blocks(call->c.dim[0], SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

#define CONSTANT(count) .name = "constant-" #count, .x = (count), .kernel = "constant_read"
#define GLOBAL(count)   .name = "global-" #count, .x = (count), .kernel = "constant_global"
static const LadderRung rungs[] = {
    {CONSTANT(1),
     .why = "All lanes read one word: the constant cache broadcasts it to all of them at once. This is "
            "what constant memory is made for, and where kernel parameters are."},
    {GLOBAL(1), .why = "The same through L1: one sector, one pass, and a longer latency than that of "
                       "the constant cache."},
    {CONSTANT(2), .why = "Two words are two accesses, one after the other."},
    {GLOBAL(2)},
    {CONSTANT(4)},
    {GLOBAL(4)},
    {CONSTANT(8)},
    {GLOBAL(8)},
    {CONSTANT(16)},
    {GLOBAL(16)},
    {CONSTANT(32), .why =
                       "32 words, 32 accesses: a table that each lane indexes differently does not belong in "
                       "constant memory."},
    {GLOBAL(32), .why = "Neighbouring words of a cache line still take L1 about one pass."},
};

const Ladder ladder_constant = {
    .name = "constant",
    .title = "Constant memory, uniform and divergent",
    .about = "Threads sum 64 words of a table of 4 KiB; x is how many different words the lanes of a "
             "warp read at a time. The constant cache serves one address at a time, for any number of "
             "lanes; global memory, from L1, serves a cache line at a time. The time model has no rule "
             "for divergent constants: its prediction takes only the instructions into account.",
    .module = "sweeps_constant",
    SWEEP_OF("addresses per warp"),
    .shape = "N",
    .size = {1 << 20},
    .small = {1001},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = INT64_C(1) << 36,
    .most_of = "threads",
    .buffers = buffers,
    .bytes = sweep_no_bytes,
    .expect = expect,
};
