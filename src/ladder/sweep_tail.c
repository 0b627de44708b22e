// Blocks of a grid, one per SM at a time: full waves and the partial one at the end.
#include "ladder/sweep.h"

enum { VECTORS = SWEEP_MOST * SWEEP_CHUNK };

static int64_t blocks_of(const LadderCase *c, const LadderRung *rung) {
  return rung->x < (double)c->dim[0] ? (int64_t)rung->x : c->dim[0];
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_partial("y", c->dim[0] * SWEEP_MOST);
  b[SWEEP_X] = sweep_input("x", c->dim[0] * VECTORS * 4);
  return SWEEP_BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  return (double)blocks_of(c, rung) * 4 * (VECTORS * 4 + SWEEP_MOST);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) {
    int64_t block = k / SWEEP_MOST, thread = k % SWEEP_MOST;
    const float *x = sweep_in(h, SWEEP_X) + 4 * (block * VECTORS + thread);
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_CHUNK && block < blocks_of(h->c, h->rung); j++, x += 4 * SWEEP_MOST)
      sum += (double)x[0] + (double)x[1] + (double)x[2] + (double)x[3];
    *out++ = sum;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SweepTail p = {.y = ladder_at(call, SWEEP_Y), .x = ladder_at(call, SWEEP_X)};
  LadderGrid grid = {.grid = {(uint32_t)blocks_of(&call->c, call->rung)}, .block = {SWEEP_MOST}};
  SolStatus status = sweep_shared_for(call, 1, &grid.shared, err);
  return status ? status : ladder_launch(call, "tail_read", &grid, &p, sizeof p, err);
}

#define ON_H200(remark) .seen_on = "h200", .seen = remark
static const LadderRung rungs[] = {
    {SWEEP_POINT(33),
     .why = "One SM can only read so fast: where few SMs have a block, most of the bandwidth of DRAM is "
            "unused.",
     ON_H200("A quarter of an H200's SMs work.")},
    {SWEEP_POINT(66)},
    {SWEEP_POINT(99)},
    {SWEEP_POINT(132), ON_H200("One block for each SM of an H200: one full wave.")},
    {SWEEP_POINT(133),
     ON_H200("One block more, which starts when another has ended: a second wave for a single block, in "
             "which "
             "the other SMs are idle.")},
    {SWEEP_POINT(165)},
    {SWEEP_POINT(198)},
    {SWEEP_POINT(264), ON_H200("Two full waves: the rate is that of one again.")},
    {SWEEP_POINT(265)},
    {SWEEP_POINT(396)},
    {SWEEP_POINT(397)},
    {SWEEP_POINT(528)},
    {SWEEP_POINT(529),
     ON_H200("A fifth wave for one block, too; but the more waves there are, the less a partial one "
             "matters.")},
};

const Ladder ladder_tail = {
    .name = "tail",
    .title = "Blocks of a grid, and the tail",
    .about = "Blocks of 1024 threads read 256 KiB each, with so much shared memory that an SM holds one "
             "at a time. Time then grows in waves of as many blocks as there are SMs, 132 on an H200 "
             "(the points are chosen for it; on another GPU the steps are elsewhere), and the rate "
             "drops after each full wave. The SMs of a partial wave share DRAM among fewer, so the step "
             "is less than a whole wave. Smaller blocks, several per SM, or a grid-stride loop reduce "
             "the effect.",
    .module = "sweeps_tail",
    SWEEP_OF("blocks"),
    .shape = "BLOCKS",
    .size = {529},
    .small = {3},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = 1 << 20,
    .most_of = "blocks",
    LADDER_OWN_JOB,
};
