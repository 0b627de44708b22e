// How threads are grouped: threads per block, and (the sweep occupancy, the same kernel) warps per SM.
#include "ladder/sweep.h"

enum { MOST_WARPS = 64 }; // that an SM holds

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  sweep_copied(h, buffer, first, count, out);
  for (int64_t k = 0; k < count; k++) out[k] *= 2;
}

// Vectors of 16 bytes; the elements that fill none take a thread each.
static SolStatus run(const LadderCall *call, uint32_t block, uint32_t shared, SolError *err) {
  return sweep_launch(call, "blocks_double", call->c.dim[0] / 4 + call->c.dim[0] % 4, block, shared, err);
}

static SolStatus by_size(const LadderCall *call, SolError *err) {
  return run(call, (uint32_t)call->rung->x, 0, err);
}

// Shared memory limits how many blocks, of 8 warps each, an SM holds. For a full SM no limit is needed.
static SolStatus by_warps(const LadderCall *call, SolError *err) {
  uint32_t shared = 0;
  uint64_t warps = (uint64_t)call->rung->x;
  SolStatus status =
      warps < MOST_WARPS ? sweep_shared_for(call, warps * 32 / SWEEP_BLOCK, &shared, err) : SOL_OK;
  return status ? status : run(call, SWEEP_BLOCK, shared, err);
}

#define JOB                                                                                                  \
  .module = "sweeps_blocks", SWEEP_ARRAY_JOB, .size = {1 << 25}, .small = {10007}, SWEEP_GRID_LIMIT,         \
  .bytes = sweep_array_bytes, .expect = expect

static const LadderRung sizes[] = {
    {SWEEP_POINT(32),
     .why = "The number of blocks per SM is limited, and that many blocks of one warp fill only half of "
            "its warp slots."},
    {SWEEP_POINT(64), .why = "Blocks of two warps fill an SM: from here on all its warp slots are used."},
    {SWEEP_POINT(128)},
    {SWEEP_POINT(256)},
    {SWEEP_POINT(512)},
    {SWEEP_POINT(1024),
     .why = "An SM holds two of these. The slots of a block are free only when its last warp has ended, "
            "so they are unused a little longer."},
};

const Ladder ladder_block_size = {
    .name = "block_size",
    .title = "Threads per block",
    .about = "y = 2x, 16 bytes per thread, in blocks of 32 to 1024 threads: the same warps do the same "
             "work, and only how they are grouped differs. Once blocks are large enough to fill an SM, "
             "the size matters little to a kernel without barriers.",
    SWEEP_OF("threads per block"),
    JOB,
    LADDER_RUNGS(sizes),
    .go = by_size,
};

static const LadderRung occupancies[] = {
    {SWEEP_POINT(8),
     .why = "256 threads with 16 bytes each in flight: the latency of DRAM, not its bandwidth, is the "
            "limit."},
    {SWEEP_POINT(16),
     .why = "Twice the warps, twice the bytes in flight: as long as latency is the limit, the rate is "
            "proportional to them."},
    {SWEEP_POINT(24)},
    {SWEEP_POINT(32),
     .why = "About here the bytes in flight cover the latency. More warps gain less and less, and a "
            "kernel with more bytes in flight per thread gets here with fewer."},
    {SWEEP_POINT(40)},
    {SWEEP_POINT(48)},
    {SWEEP_POINT(56)},
    {SWEEP_POINT(64)},
};

const Ladder ladder_occupancy = {
    .name = "occupancy",
    .title = "Warps per SM",
    .about = "The same kernel in blocks of 256 threads, each with so much shared memory that an SM "
             "holds no more warps than the point says. The kernel does not use that memory: only the "
             "number of loads in flight changes.",
    SWEEP_OF("warps per SM"),
    JOB,
    LADDER_RUNGS(occupancies),
    .go = by_warps,
};
