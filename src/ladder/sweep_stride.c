// Global memory read at strides from 1 to 32, and at random.
#include "ladder/sweep.h"

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", c->dim[0]);
  b[SWEEP_X] = sweep_input("x", c->dim[0] * SWEEP_STRIDE);
  return SWEEP_BUFFERS;
}

static bool is_random(const LadderRung *rung) {
  return rung->x > SWEEP_STRIDE;
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  uint64_t all = (uint64_t)h->c->dim[0] * SWEEP_STRIDE, stride = (uint64_t)h->rung->x;
  for (int64_t k = first; k < first + count; k++) {
    uint64_t at = is_random(h->rung) ? sweep_scatter((uint32_t)k) * all >> 32 : (uint64_t)k * stride;
    *out++ = 2 * (double)sweep_in(h, SWEEP_X)[at];
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  uint64_t n = (uint64_t)call->c.dim[0];
  SweepStride p = {.y = ladder_at(call, SWEEP_Y),
                   .x = ladder_at(call, SWEEP_X),
                   .n = n,
                   .count = n * SWEEP_STRIDE,
                   .stride = (uint64_t)call->rung->x};
  LadderGrid grid = {.grid = {sweep_blocks(call->c.dim[0], SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, is_random(call->rung) ? "stride_random" : "stride_read", &grid, &p, sizeof p,
                       err);
}

static const LadderRung rungs[] = {
    {SWEEP_POINT(1),
     .why = "32 lanes of 4 bytes are 4 sectors of 32 bytes: the fewest possible. Every byte that is "
            "moved is used."},
    {SWEEP_POINT(2), .why = "Every other element of a sector is used, and the same data takes twice the "
                            "sectors."},
    {SWEEP_POINT(3)},
    {SWEEP_POINT(4)},
    {SWEEP_POINT(5)},
    {SWEEP_POINT(6)},
    {SWEEP_POINT(7)},
    {SWEEP_POINT(8),
     .why = "One element per sector, 32 sectors per request: no stride takes more sectors than this "
            "one. What grows from here on is the number of cache lines that a request touches, 8 now."},
    {SWEEP_POINT(12)},
    {SWEEP_POINT(16),
     .why = "DRAM delivers at least 64 bytes, and from here on only 4 of them are used: twice the "
            "traffic of stride 8 for as many sectors."},
    {SWEEP_POINT(24)},
    {SWEEP_POINT(32),
     .why = "A cache line per lane. As many sectors and as much traffic as at 16, but 32 lines for L1 "
            "to look up, and as many requests to L2."},
    {.name = "random",
     .x = 33,
     .why = "As many sectors as at stride 32, in no order: DRAM pages are opened for one access each, "
            "and address translation misses more often, which the counts do not show."},
};

const Ladder ladder_stride = {
    .name = "stride",
    .title = "Global memory at a stride",
    .about = "y[i] = 2 x[i * stride]: the lanes of a warp read x `stride` elements apart and write y "
             "densely; every point reads and writes the same number of elements. Memory is moved in "
             "sectors of 32 bytes, so a load of a warp costs as many as its lanes touch. Their number "
             "grows with the stride up to 8 floats, where each lane has a sector of its own; time grows "
             "as far, and once more up to 16, since DRAM moves two sectors at a time. The last point "
             "reads its elements from random places.",
    .module = "sweeps_stride",
    SWEEP_OF("stride, elements; last: random"),
    .shape = "N",
    .size = {1 << 23},
    .small = {9001},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = INT64_C(1) << 27,
    .most_of = "elements: random places are 32 bits wide",
    .buffers = buffers,
    .bytes = sweep_array_bytes,
    .expect = expect,
};
