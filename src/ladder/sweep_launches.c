// The cost of a launch: into a stream, in a graph, with programmatic dependent launch.
#include "ladder/sweep.h"

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) *out++ = (double)sweep_in(h, SWEEP_X)[k] + h->rung->x;
}

// Each step reads what the one before has written.
static SolStatus steps(const LadderCall *call, bool early, SolError *err) {
  SolStatus status = SOL_OK;
  for (int i = 0; i < (int)call->rung->x && !status; i++) {
    SweepCopy p = {.y = ladder_at(call, SWEEP_Y),
                   .x = ladder_at(call, i ? SWEEP_Y : SWEEP_X),
                   .n = (uint64_t)call->c.dim[0]};
    LadderGrid grid = {
        .grid = {sweep_blocks(call->c.dim[0], SWEEP_BLOCK)}, .block = {SWEEP_BLOCK}, .early = early};
    status = ladder_launch(call, "launches_step", &grid, &p, sizeof p, err);
  }
  return status;
}

static SolStatus plain(const LadderCall *call, SolError *err) {
  return steps(call, false, err);
}

static SolStatus early(const LadderCall *call, SolError *err) {
  return steps(call, true, err);
}

#define STREAM(count) .name = "stream-" #count, .x = (count), .go = plain, .streamed = true
#define GRAPH(count)  .name = "graph-" #count, .x = (count), .go = plain
#define EARLY(count)  .name = "early-" #count, .x = (count), .go = early, .min_cc = 90
static const LadderRung rungs[] = {
    {STREAM(1), .why =
                    "Launches into a stream, one after another: the host prepares each, and where that takes "
                    "longer than the kernel, the GPU waits for the host."},
    {GRAPH(1),
     .why = "Recorded once and replayed: the host has nothing left to do for each kernel. What remains "
            "is the time of the GPU between the end of a kernel and the start of the next, in which its "
            "writes are made visible."},
    {EARLY(1),
     .why = "Programmatic dependent launch, in a graph: blocks of the next kernel become resident while "
            "this one is still running, and wait for its results."},
    {STREAM(2)},
    {GRAPH(2)},
    {EARLY(2)},
    {STREAM(4)},
    {GRAPH(4)},
    {EARLY(4)},
    {STREAM(8), .why = "Eight steps cost eight launches: fusing them into one kernel saves seven."},
    {GRAPH(8)},
    {EARLY(8)},
};

const Ladder ladder_launches = {
    .name = "launches",
    .title = "What a launch costs",
    .about = "y = x + 1, then y = y + 1 and so on, x steps, each so small that its launch is all it "
             "costs. In a stream, in a graph, and in a graph with programmatic dependent launch, where "
             "the start of a kernel overlaps the end of the one before. The time model takes a stream's "
             "and a graph's launch at the device's published cost, and an early start at half of a "
             "graph's.",
    .module = "sweeps_launches",
    SWEEP_OF("launches per call"),
    SWEEP_ARRAY_JOB,
    .size = {1 << 14},
    .small = {1001},
    LADDER_RUNGS(rungs),
    SWEEP_GRID_LIMIT,
    .bytes = sweep_no_bytes,
    .expect = expect,
};
