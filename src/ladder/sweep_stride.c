// Global memory read at strides from 1 to 32, and at random.
#include "ladder/sweep.h"

enum { Y, X, BUFFERS };

static SolStatus accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT64_C(1) << 27, "elements: random places are 32 bits wide", err);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0]);
  b[X] = sweep_input("x", c->dim[0] * SWEEP_STRIDE);
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2.0 * 4 * (double)c->dim[0];
}

static bool is_random(const LadderRung *rung) {
  return rung->x > SWEEP_STRIDE;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  uint64_t all = (uint64_t)h->c->dim[0] * SWEEP_STRIDE, stride = (uint64_t)h->rung->x;
  for (int64_t k = first; k < first + count; k++) {
    uint64_t at = is_random(h->rung) ? sweep_scatter((uint32_t)k) * all >> 32 : (uint64_t)k * stride;
    *out++ = 2 * (double)sweep_in(h, X)[at];
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  uint64_t n = (uint64_t)call->c.dim[0];
  SweepStride p = {.y = sweep_at(call, Y),
                   .x = sweep_at(call, X),
                   .n = n,
                   .count = n * SWEEP_STRIDE,
                   .stride = (uint64_t)call->rung->x};
  LadderGrid grid = {.grid = {sweep_blocks(call->c.dim[0], SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, is_random(call->rung) ? "stride_random" : "stride_read", &grid, &p, sizeof p,
                       err);
}

#define POINT(stride) .name = #stride, .x = (stride), .go = go
static const LadderRung rungs[] = {
    {POINT(1),
     .why =
         "32 lanes of 4 bytes are 4 sectors of 32 bytes: the fewest there can be. Every byte that is moved "
         "is used."},
    {POINT(2), .why = "Every other element of a sector is used, and twice the sectors hold the same data."},
    {POINT(3)},
    {POINT(4)},
    {POINT(5)},
    {POINT(6)},
    {POINT(7)},
    {POINT(8),
     .why = "One element a sector, 32 sectors a request: no stride takes more sectors than this one. What "
            "grows from here on are the lines that a request touches, 8 now."},
    {POINT(12)},
    {POINT(16),
     .why = "DRAM gives 64 bytes at least, and from here on only 4 of them are used: twice the traffic of "
            "stride 8 for as many sectors."},
    {POINT(24)},
    {POINT(32),
     .why = "A line a lane. As many sectors and as much traffic as at 16, but 32 lines for L1 to look up, "
            "and as many requests to L2."},
    {.name = "random",
     .x = 33,
     .go = go,
     .why = "Sectors as at stride 32, and no order: DRAM pages are opened for one access each, and pages of "
            "memory are looked up out of turn, which the counts do not show."},
};

const Ladder ladder_stride = {
    .name = "stride",
    .title = "Global memory at a stride",
    .about =
        "y[i] = 2 x[i * stride]: the lanes of a warp read x `stride` elements apart and write y densely; "
        "every point reads and writes as many elements. Memory moves sectors of 32 bytes, so a warp's "
        "load costs as many as its lanes touch. They grow with the stride up to 8 floats, where each "
        "lane has a sector of its own; time grows as long, and once more to 16, since DRAM moves two "
        "sectors at a time. The last point reads its elements from random places.",
    .module = "sweeps_stride",
    .sweep = true,
    .axis = "stride, elements; last: random",
    .shape = "N",
    .size = {1 << 23},
    .small = {9001},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
};
