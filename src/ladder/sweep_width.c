// A copy by accesses of 4, 8 and 16 bytes.
#include "ladder/sweep.h"

// Elements that fill no whole access take a thread each.
static SolStatus go(const LadderCall *call, SolError *err) {
  int64_t per = (int64_t)call->rung->x / 4, n = call->c.dim[0];
  return sweep_launch(call, call->rung->kernel, n / per + n % per, SWEEP_BLOCK, 0, err);
}

static const LadderRung rungs[] = {
    {SWEEP_POINT(4), .kernel = "width_4",
     .why = "An SM full of threads has 4 bytes per thread in flight, less than the latency of DRAM "
            "takes: the copy is limited by latency."},
    {SWEEP_POINT(8), .kernel = "width_8",
     .why = "Half the instructions and blocks for the same bytes, and twice as many in flight at once."},
    {SWEEP_POINT(16), .kernel = "width_16",
     .why = "The widest access there is: a request of 512 bytes, 16 sectors of 4 cache lines, all of "
            "them used. Enough bytes are in flight for DRAM bandwidth to be the limit."},
};

const Ladder ladder_width = {
    .name = "width",
    .title = "Bytes per access",
    .about = "y = x with one access of 4, 8 or 16 bytes per thread. Every width reads and writes the "
             "same sectors, all of them in full; what changes is how many instructions and blocks it "
             "takes, and how many bytes are in flight while threads wait.",
    .module = "sweeps_width",
    SWEEP_OF("bytes per access"),
    SWEEP_ARRAY_JOB,
    .size = {1 << 25},
    .small = {10007},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = INT64_C(1) << 38,
    .most_of = "elements: a grid has 2^31 - 1 blocks",
    .bytes = sweep_array_bytes,
    .expect = sweep_copied,
};
