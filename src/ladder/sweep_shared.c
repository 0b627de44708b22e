// Shared memory read at strides from 1 to 32, and with padding.
#include "ladder/sweep.h"

enum { Y, X, BUFFERS, ROUNDS = 16 };

static SolStatus accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT32_MAX, "blocks", err);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0] * SWEEP_BLOCK);
  b[X] = sweep_input("x", c->dim[0] * SWEEP_TILE);
  return BUFFERS;
}

// Global memory is beside the point: times are compared, not rates.
static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)c, (void)rung;
  return 0;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t stride = (int64_t)h->rung->x;
  for (int64_t k = first; k < first + count; k++) {
    const float *x = sweep_in(h, X) + k / SWEEP_BLOCK * SWEEP_TILE;
    double sum = 0;
    for (int64_t j = 0; j < ROUNDS * SWEEP_RUN; j++) sum += (double)x[(k % 32 * stride + j) % SWEEP_TILE];
    *out++ = sum;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SweepShared p = {
      .y = sweep_at(call, Y), .x = sweep_at(call, X), .stride = (uint32_t)call->rung->x, .rounds = ROUNDS};
  LadderGrid grid = {.grid = {(uint32_t)call->c.dim[0]}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, "shared_stride", &grid, &p, sizeof p, err);
}

#define POINT(stride) .name = #stride, .x = (stride), .go = go
static const LadderRung rungs[] = {
    {POINT(1), .why = "Neighbouring words lie in neighbouring banks: 32 lanes, 32 banks, one wavefront."},
    {POINT(2), .why = "Only even banks are hit, each by two lanes: two wavefronts."},
    {POINT(3), .why = "An odd stride shares no factor with 32 and goes through all banks: one wavefront."},
    {POINT(4)},
    {POINT(5)},
    {POINT(6)},
    {POINT(7)},
    {POINT(8)},
    {POINT(12)},
    {POINT(15)},
    {POINT(16)},
    {POINT(24)},
    {POINT(31)},
    {POINT(32), .why = "All lanes hit one bank and take turns: 32 wavefronts for one request."},
    {.name = "32+1",
     .x = 33,
     .go = go,
     .why = "A row of 32 words with one of padding: the stride is odd, and every bank is hit once."},
    {.name = "32+2",
     .x = 34,
     .go = go,
     .why = "Padding by two makes the stride even: two lanes a bank. More padding is not better."},
    {.name = "32+4", .x = 36, .go = go},
    {.name = "32+8", .x = 40, .go = go},
};

const Ladder ladder_shared_stride = {
    .name = "shared_stride",
    .title = "Shared memory at a stride, and padded",
    .about =
        "A block sums words of shared memory, the lanes of a warp `stride` words apart. Shared memory has "
        "32 banks, word after word; lanes that want different words of one bank wait for each other, as "
        "many wavefronts as the busiest bank has words to give: the greatest common divisor of stride "
        "and 32. The points past 32 are a tile of 32 columns whose rows are padded, read by columns.",
    .module = "sweeps_shared",
    .sweep = true,
    .axis = "stride, words",
    .shape = "BLOCKS",
    .size = {1056},
    .small = {3},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
};
