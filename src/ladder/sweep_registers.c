// Registers per thread, down to spilling.
#include "ladder/sweep.h"

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", c->dim[0]);
  b[SWEEP_X] = sweep_input("x", c->dim[0] * SWEEP_SAMPLES);
  return SWEEP_BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * (SWEEP_SAMPLES + 1) * (double)c->dim[0];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  const float *x = sweep_in(h, SWEEP_X);
  int64_t n = h->c->dim[0];
  for (int64_t i = first; i < first + count; i++) {
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < SWEEP_SAMPLES; k++) sum += (double)x[k * n + i];
    double mean = sum / SWEEP_SAMPLES;
    for (int64_t k = 0; k < SWEEP_SAMPLES; k++) {
      double off = (double)x[k * n + i] - mean;
      squares += off * off;
    }
    *out++ = squares / SWEEP_SAMPLES;
  }
}

static SolStatus go(const LadderCall *call, SolError *err) {
  return sweep_launch(call, call->rung->kernel, call->c.dim[0], SWEEP_BLOCK, 0, err);
}

#define BOUND(blocks) SWEEP_POINT(blocks), .kernel = "registers_" #blocks
static const LadderRung rungs[] = {
    {BOUND(1), .why =
                   "The bound asks for nothing: the compiler uses as many registers as it needs, a few more "
                   "than the 64 samples, with which an SM holds three blocks."},
    {BOUND(2)},
    {BOUND(3)},
    {BOUND(4), .why =
                   "64 registers per thread are too few: the first samples are spilled to local memory and "
                   "read back for the second pass. That traffic goes through L1, and the stores on to L2."},
    {BOUND(5)},
    {BOUND(6)},
    {BOUND(8), .why =
                   "32 registers per thread, and the SM is full of warps. Most samples are spilled now, and "
                   "the additional warps wait for the traffic that the bound has caused."},
};

const Ladder ladder_registers = {
    .name = "registers",
    .title = "Registers per thread, down to spilling",
    .about = "The variance of 64 samples for each of N sensors, in two passes over the samples: a "
             "thread holds all of its 64. The points ask the compiler, by __launch_bounds__(256, x), "
             "for few enough registers that x blocks fit on an SM: 65536 / (256 x) per thread. More "
             "warps hide more latency, but 64 loads per thread are plenty in flight already, so here "
             "the bound gains nothing, and costs as soon as it makes samples spill. The emulator runs "
             "PTX, which has no spills, so its counts have none; its prediction adds what ptxas "
             "spilled: the stack of its machine code, written once and read once.",
    .module = "sweeps_registers",
    SWEEP_OF("blocks per SM, requested"),
    .shape = "N",
    .size = {1 << 19},
    .small = {1001},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = INT64_C(1) << 34,
    .most_of = "sensors",
    LADDER_OWN_JOB,
    .slack = 16,
};
