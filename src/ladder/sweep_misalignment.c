// A copy whose warps do not start at a cache line.
#include "ladder/sweep.h"

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", c->dim[0] + SWEEP_SHIFT);
  b[SWEEP_X] = sweep_input("x", c->dim[0] + SWEEP_SHIFT);
  return SWEEP_BUFFERS;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t shift = (int64_t)h->rung->x, n = h->c->dim[0];
  for (int64_t k = first; k < first + count; k++)
    *out++ = k >= shift && k < shift + n ? (double)sweep_in(h, SWEEP_X)[k] : 0;
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SweepCopy p = {.y = ladder_at(call, SWEEP_Y),
                 .x = ladder_at(call, SWEEP_X),
                 .n = (uint64_t)call->c.dim[0],
                 .shift = (uint64_t)call->rung->x};
  int64_t threads = call->c.dim[0] < SWEEP_SHIFT ? SWEEP_SHIFT : call->c.dim[0];
  LadderGrid grid = {.grid = {sweep_blocks(threads, SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, "misaligned_copy", &grid, &p, sizeof p, err);
}

static const LadderRung rungs[] = {
    {SWEEP_POINT(0), .why = "The 128 bytes of a warp are 4 whole sectors of one cache line."},
    {SWEEP_POINT(1),
     .why = "The same 128 bytes now start and end inside a sector and touch 5, of two lines. The "
            "neighbouring warp also needs the fifth and finds it in L1, so that DRAM moves no more than "
            "before; stores of partial sectors are combined in L2."},
    {SWEEP_POINT(2)},
    {SWEEP_POINT(4)},
    {SWEEP_POINT(7)},
    {SWEEP_POINT(8), .why = "Off by a whole sector: 4 sectors again, though of two lines. Sectors "
                            "count, not lines."},
    {SWEEP_POINT(12)},
    {SWEEP_POINT(16)},
    {SWEEP_POINT(20)},
    {SWEEP_POINT(24)},
    {SWEEP_POINT(28)},
    {SWEEP_POINT(31)},
};

const Ladder ladder_misalignment = {
    .name = "misalignment",
    .title = "Warps that do not start at a cache line",
    .about = "y[i + shift] = x[i + shift], 4 bytes per thread: reads and writes alike start `shift` "
             "elements after a cache line. A shift that is not a multiple of 8 floats costs each "
             "request a fifth sector. On GPUs whose L1 keeps sectors for the next warp, that costs "
             "little time, far less than the number of sectors suggests; older advice about it comes "
             "from GPUs that fetched the line twice.",
    .module = "sweeps_misalignment",
    SWEEP_OF("shift, elements"),
    .shape = "N",
    .size = {1 << 24},
    .small = {10007},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = INT64_C(1) << 38,
    .most_of = "elements: a grid has 2^31 - 1 blocks",
    .buffers = buffers,
    .bytes = sweep_array_bytes,
    .expect = expect,
};
