// A copy by the driver, by kernels, and by the bulk copy unit of an SM.
#include "ladder/sweep.h"

static SolStatus by_driver(const LadderCall *call, SolError *err) {
  return ladder_copy(call, SWEEP_Y, SWEEP_X, (uint64_t)call->c.dim[0] * 4, err);
}

static SolStatus by_kernel(const LadderCall *call, SolError *err) {
  int64_t n = call->c.dim[0];
  return sweep_launch(call, "copies_kernel", n / 4 + n % 4, SWEEP_BLOCK, 0, err);
}

static SolStatus by_library(const LadderCall *call, SolError *err) {
  SolCopy a = {.y = ladder_at(call, SWEEP_Y),
               .x = ladder_at(call, SWEEP_X),
               .m = 1,
               .n = call->c.dim[0],
               .dtype = SOL_FP32};
  return ladder_op(call, &ops_copy, &a, err);
}

// The chunk of a block: as many KiB as the point's name says.
static SolStatus by_bulk(const LadderCall *call, SolError *err) {
  uint32_t bytes = (uint32_t)call->rung->x * 1024;
  SweepCopy p = {.y = ladder_at(call, SWEEP_Y),
                 .x = ladder_at(call, SWEEP_X),
                 .n = (uint64_t)call->c.dim[0],
                 .shift = bytes / 4};
  LadderGrid grid = {.grid = {sweep_blocks(call->c.dim[0], bytes / 4)}, .block = {32}, .shared = bytes};
  return ladder_launch(call, "copies_bulk", &grid, &p, sizeof p, err);
}

#define BULK(kib) .name = "bulk-" #kib, .x = (kib), .go = by_bulk, .min_cc = 90
static const LadderRung rungs[] = {
    {.name = "kernel",
     .go = by_kernel,
     .why = "16 bytes per thread, no more: an SM full of threads has enough in flight."},
    {.name = "library",
     .go = by_library,
     .why = "sol_copy, the light of all other figures: the same, with programmatic dependent launch, "
            "and its input prefetched where the copy is small."},
    {.name = "driver",
     .go = by_driver,
     .why = "cuMemcpyDtoDAsync: the driver uses a copy engine of the GPU or a kernel of its own. The "
            "emulator copies, but has no copy engine and predicts no time."},
    {BULK(2), .why = "One thread per block copies 2 KiB into shared memory and out again (cp.async.bulk): no "
                     "registers, few instructions. The bytes in flight are what the blocks of an SM hold; a "
                     "block ends so soon that its start matters, and it reads nothing while it writes."},
    {BULK(4)},
    {BULK(8)},
    {BULK(16)},
    {BULK(32)},
    {BULK(64), .why = "Shared memory holds three such chunks: while one is written, less is being read, and "
                      "blocks end in larger steps."},
};

const Ladder ladder_copies = {
    .name = "copies",
    .title = "Copies by driver, kernel and bulk unit",
    .about = "y = x by whatever can move it: the driver's own copy, the loads and stores of a kernel, "
             "the library's kernel, and the bulk copy unit of an SM with chunks from 2 to 64 KiB "
             "(Hopper and later). All move each byte once in and once out; DRAM is the limit, and the "
             "question is which of them keeps it busy.",
    .module = "sweeps_copies",
    SWEEP_OF("chunk, KiB (bulk)"),
    SWEEP_ARRAY_JOB,
    .size = {1 << 25},
    .small = {20007},
    LADDER_RUNGS(rungs),
    SWEEP_GRID_LIMIT,
    .bytes = sweep_array_bytes,
    .expect = sweep_copied,
};
