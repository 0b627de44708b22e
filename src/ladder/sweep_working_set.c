// Working sets from well within L2 to far beyond it.
#include "ladder/sweep.h"

#define MIB         (INT64_C(1) << 20)
#define LEAST_TOTAL (512 * MIB) // bytes read at every point, so that a small set is read many times

enum { PIECE = SWEEP_BLOCK * SWEEP_PIECE, WARPS = SWEEP_BLOCK / 32 };

static int64_t set_of(const LadderCase *c, const LadderRung *rung) {
  return (rung->x < (double)c->dim[0] ? (int64_t)rung->x : c->dim[0]) * MIB;
}

// Small sets are read as often as it takes to read as many bytes as for larger ones.
static int64_t total_of(const LadderCase *c, const LadderRung *rung) {
  int64_t set = set_of(c, rung), most = c->dim[0] * MIB, least = LEAST_TOTAL < most ? LEAST_TOTAL : most;
  return set > least ? set : least;
}

static int64_t pieces_of(int64_t bytes) {
  return bytes / 16 / PIECE;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_partial("y", pieces_of(c->dim[0] * MIB) * WARPS);
  b[SWEEP_X] = sweep_input("x", c->dim[0] * MIB / 4);
  b[SWEEP_X].shared = true; // so that it can be in L2 when the launch starts
  return SWEEP_BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  return (double)total_of(c, rung);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t set = pieces_of(set_of(h->c, h->rung)), blocks = pieces_of(total_of(h->c, h->rung));
  for (int64_t k = first; k < first + count; k++) {
    const float *x = sweep_in(h, SWEEP_X) + 4 * (k / WARPS % set * PIECE + k % WARPS * 32);
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_PIECE && k / WARPS < blocks; j++, x += 4 * SWEEP_BLOCK)
      for (int64_t i = 0; i < 4 * 32; i++) sum += (double)x[i];
    *out++ = sum;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  SweepSet p = {.y = ladder_at(call, SWEEP_Y),
                .x = ladder_at(call, SWEEP_X),
                .pieces = (uint32_t)pieces_of(set_of(&call->c, call->rung))};
  LadderGrid grid = {.grid = {(uint32_t)pieces_of(total_of(&call->c, call->rung))}, .block = {SWEEP_BLOCK}};
  return ladder_launch(call, "working_set", &grid, &p, sizeof p, err);
}

static const LadderRung rungs[] = {
    {SWEEP_POINT(1), .why = "All of it is in L2 from the second pass on: the rate is the bandwidth of "
                            "L2."},
    {SWEEP_POINT(2)},
    {SWEEP_POINT(4)},
    {SWEEP_POINT(8)},
    {SWEEP_POINT(16)},
    {SWEEP_POINT(32), .seen_on = "h200",
     .seen = "The L2 of an H200 has two halves, and data that one side reads from the other is kept in "
             "both: the largest sizes that fit are well below the capacity in the data sheet."},
    {SWEEP_POINT(48)},
    {SWEEP_POINT(64),
     .why = "More than L2 keeps, and read in order: nearly every line is evicted before it is read "
            "again. Soon the rate is that of DRAM alone."},
    {SWEEP_POINT(128)},
    {SWEEP_POINT(256)},
    {SWEEP_POINT(512)},
    {SWEEP_POINT(1024)},
    {SWEEP_POINT(2048)},
    {SWEEP_POINT(4096), .why = "Read once: nothing can hit. It is no slower than the smallest set that "
                               "does not fit."},
};

const Ladder ladder_working_set = {
    .name = "working_set",
    .title = "Working sets through L2",
    .about = "One launch reads a set of bytes again and again, bypassing L1, 16 bytes per load. While "
             "the set fits, all passes but the first hit L2; beyond that, DRAM serves them all. Rates "
             "are of bytes read, so that hits show as faster than light.",
    .module = "sweeps_working_set",
    SWEEP_OF("working set, MiB"),
    .shape = "MIB",
    .size = {4096},
    .small = {2},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = 1 << 20,
    .most_of = "MiB",
    LADDER_OWN_JOB,
};
