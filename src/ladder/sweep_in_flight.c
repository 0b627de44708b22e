// Loads in flight per thread.
#include "ladder/sweep.h"

enum { CHUNK = SWEEP_WIDE * SWEEP_LOADS };

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[SWEEP_Y] = sweep_output("y", (int64_t)sweep_blocks(c->dim[0], CHUNK) * SWEEP_WIDE);
  b[SWEEP_X] = sweep_input("x", c->dim[0]);
  return SWEEP_BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 4.0 * ((double)c->dim[0] + (double)sweep_blocks(c->dim[0], CHUNK) * SWEEP_WIDE);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) {
    int64_t at = k / SWEEP_WIDE * CHUNK + k % SWEEP_WIDE;
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_LOADS && at < h->c->dim[0]; j++, at += SWEEP_WIDE)
      sum += (double)sweep_in(h, SWEEP_X)[at];
    *out++ = sum;
  }
}

// All the shared memory a block can have: one block per SM, whose 16 warps have to hide the latency of DRAM.
static SolStatus go(const LadderCall *call, SolError *err) {
  SolDriverInfo info;
  SolStatus status = sol_driver_info(call->ctx->driver, &info, err);
  if (status) return status;
  int64_t threads = (int64_t)sweep_blocks(call->c.dim[0], CHUNK) * SWEEP_WIDE;
  return sweep_launch(call, call->rung->kernel, threads, SWEEP_WIDE, (uint32_t)info.smem_per_block, err);
}

#define LOADS(count) SWEEP_POINT(count), .kernel = "in_flight_" #count
static const LadderRung rungs[] = {
    {LOADS(1), .why = "Every load completes before the next is issued: the rate is one load per thread and "
                      "latency."},
    {LOADS(2),
     .why = "Two loads per latency, and nearly twice the rate: it is the bytes in flight divided by the "
            "latency."},
    {LOADS(4)},
    {LOADS(8)},
    {LOADS(16),
     .why = "The bytes in flight are now close to the bandwidth of DRAM times its latency; beyond that, "
            "more loads only take registers."},
};

const Ladder ladder_in_flight = {
    .name = "in_flight",
    .title = "Loads in flight per thread",
    .about = "Threads sum 64 elements each, and issue 1 to 16 loads before they use the result of the "
             "first. One block of 512 threads per SM (it takes all the shared memory), so that warps "
             "alone do not hide the latency of DRAM. Independent loads do what more warps would: this "
             "is what unrolling is for.",
    .module = "sweeps_in_flight",
    SWEEP_OF("loads in flight"),
    .shape = "N",
    .size = {1 << 25},
    .small = {70001},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = INT64_C(1) << 40,
    .most_of = "elements",
    LADDER_OWN_JOB,
};
