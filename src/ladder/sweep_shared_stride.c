// Shared memory read at strides from 1 to 32, and with padding.
#include "ladder/sweep.h"

enum { ROUNDS = 16 };

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", c->dim[0] * SWEEP_BLOCK);
  b[SWEEP_X] = sweep_input("x", c->dim[0] * SWEEP_TILE);
  return SWEEP_BUFFERS;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t stride = (int64_t)h->rung->x;
  for (int64_t k = first; k < first + count; k++) {
    const float *x = sweep_in(h, SWEEP_X) + k / SWEEP_BLOCK * SWEEP_TILE;
    double sum = 0;
    for (int64_t j = 0; j < ROUNDS * SWEEP_RUN; j++) sum += (double)x[(k % 32 * stride + j) % SWEEP_TILE];
    *out++ = sum;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SweepShared p = {.y = ladder_at(call, SWEEP_Y),
                   .x = ladder_at(call, SWEEP_X),
                   .stride = (uint32_t)call->rung->x,
                   .rounds = ROUNDS};
  LadderGrid grid = {.grid = {(uint32_t)call->c.dim[0]}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, "shared_stride", &grid, &p, sizeof p, err);
}

static const LadderRung rungs[] = {
    {SWEEP_POINT(1), .why = "Consecutive words are in consecutive banks: 32 lanes, 32 banks, one "
                            "wavefront."},
    {SWEEP_POINT(2), .why = "Only even banks are accessed, each by two lanes: two wavefronts."},
    {SWEEP_POINT(3), .why = "An odd stride has no common factor with 32 and uses all banks: one "
                            "wavefront."},
    {SWEEP_POINT(4)},
    {SWEEP_POINT(5)},
    {SWEEP_POINT(6)},
    {SWEEP_POINT(7)},
    {SWEEP_POINT(8)},
    {SWEEP_POINT(12)},
    {SWEEP_POINT(15)},
    {SWEEP_POINT(16)},
    {SWEEP_POINT(24)},
    {SWEEP_POINT(31)},
    {SWEEP_POINT(32), .why = "All lanes access one bank, one after another: 32 wavefronts for one "
                             "request."},
    {.name = "32+1",
     .x = 33,
     .why = "A row of 32 words with one of padding: the stride is odd, and every bank is accessed once."},
    {.name = "32+2",
     .x = 34,
     .why = "Padding by two makes the stride even: two lanes per bank. More padding is not better."},
    {.name = "32+4", .x = 36},
    {.name = "32+8", .x = 40},
};

const Ladder ladder_shared_stride = {
    .name = "shared_stride",
    .title = "Shared memory at a stride, and padded",
    .about = "A block sums words of shared memory, the lanes of a warp `stride` words apart. Shared "
             "memory has 32 banks, one word wide; accesses to different words of one bank are "
             "serialised, so a request takes as many wavefronts as the busiest bank has words to "
             "deliver: the greatest common divisor of stride and 32. The points past 32 are a tile of "
             "32 columns whose rows are padded, read by columns.",
    .module = "sweeps_shared",
    SWEEP_OF("stride, words"),
    .shape = "BLOCKS",
    .size = {1056},
    .small = {3},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = INT32_MAX,
    .most_of = "blocks",
    .buffers = buffers,
    .bytes = sweep_no_bytes,
    .expect = expect,
};
