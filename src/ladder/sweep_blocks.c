// How work is cut up: threads of a block, warps on an SM, blocks of a grid.
#include "ladder/sweep.h"

enum { Y, X, BUFFERS, MOST_WARPS = 64 }; // an SM has no more
#define OWN_SHARED 1024                  // that every block takes for itself

// Dynamic shared memory by which an SM holds so many of the blocks at most.
static SolStatus shared_for(const LadderCall *call, uint64_t blocks, uint32_t *out, SolError *err) {
  SolDriverInfo info;
  SolStatus status = sol_driver_info(call->ctx->driver, &info, err);
  if (status) return status;
  uint64_t each = info.smem_per_sm / blocks / 128 * 128;
  each = each > OWN_SHARED ? each - OWN_SHARED : 0;
  *out = (uint32_t)(each < info.smem_per_block ? each : info.smem_per_block);
  return SOL_OK;
}

// ---- block size and occupancy ----

static SolStatus accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, INT64_C(1) << 36, "elements: a grid has 2^31 - 1 blocks", err);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_output("y", c->dim[0]);
  b[X] = sweep_input("x", c->dim[0]);
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2.0 * 4 * (double)c->dim[0];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) *out++ = 2 * (double)sweep_in(h, X)[k];
}

static SolStatus run(const LadderCall *call, uint32_t block, uint32_t shared, SolError *err) {
  int64_t n = call->c.dim[0];
  SweepCopy p = {.y = sweep_at(call, Y), .x = sweep_at(call, X), .n = (uint64_t)n};
  LadderGrid grid = {.grid = {sweep_blocks(n / 4 + n % 4, block)}, .block = {block}, .shared = shared};
  return ladder_launch(call, "blocks_double", &grid, &p, sizeof p, err);
}

static SolStatus by_size(const LadderCall *call, SolError *err) {
  return run(call, (uint32_t)call->rung->x, 0, err);
}

// 8 warps a block: so many blocks an SM as give the warps. An SM that may be full needs no limit.
static SolStatus by_warps(const LadderCall *call, SolError *err) {
  uint32_t shared = 0;
  uint64_t warps = (uint64_t)call->rung->x;
  SolStatus status = warps < MOST_WARPS ? shared_for(call, warps * 32 / SWEEP_BLOCK, &shared, err) : SOL_OK;
  return status ? status : run(call, SWEEP_BLOCK, shared, err);
}

#define SIZE(threads) .name = #threads, .x = (threads), .go = by_size
static const LadderRung sizes[] = {
    {SIZE(32),
     .why = "An SM holds a limited number of blocks, and so many blocks of one warp leave half of its places "
            "for warps empty."},
    {SIZE(64), .why = "Blocks of two warps fill an SM: from here on all its places for warps are taken."},
    {SIZE(128)},
    {SIZE(256)},
    {SIZE(512)},
    {SIZE(1024),
     .why = "An SM holds two of these. A block's place is free only when its last warp has ended, so places "
            "stand empty a little longer."},
};

const Ladder ladder_block_size = {
    .name = "block_size",
    .title = "Threads of a block",
    .about =
        "y = 2x, 16 bytes a thread, in blocks of 32 to 1024 threads: the same warps do the same, and only "
        "how they come and go differs. Once blocks are large enough to fill an SM the size matters "
        "little to a kernel without barriers.",
    .module = "sweeps_blocks",
    .sweep = true,
    .axis = "threads a block",
    .shape = "N",
    .size = {1 << 25},
    .small = {10007},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(sizes),
    .accept = accept,
    LADDER_OWN_JOB,
};

#define WARPS(count) .name = #count, .x = (count), .go = by_warps
static const LadderRung occupancies[] = {
    {WARPS(8),
     .why = "256 threads with 16 bytes each on their way: the distance to DRAM, not its bandwidth, sets the "
            "pace."},
    {WARPS(16),
     .why = "Twice the warps, twice the bytes on their way: as long as an SM waits, rate follows."},
    {WARPS(24)},
    {WARPS(32),
     .why = "About here what is on its way covers the distance. More warps bring less and less, and a kernel "
            "with more bytes in flight a thread gets here with fewer."},
    {WARPS(40)},
    {WARPS(48)},
    {WARPS(56)},
    {WARPS(64)},
};

const Ladder ladder_occupancy = {
    .name = "occupancy",
    .title = "Warps on an SM",
    .about =
        "The same kernel in blocks of 256 threads, with so much shared memory given to each block that an "
        "SM holds no more warps than the point says. The kernel uses none of it: nothing changes but how "
        "many loads are waited for at once.",
    .module = "sweeps_blocks",
    .sweep = true,
    .axis = "warps an SM",
    .shape = "N",
    .size = {1 << 25},
    .small = {10007},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(occupancies),
    .accept = accept,
    LADDER_OWN_JOB,
};

// ---- grid size and tail ----

enum { VECTORS = SWEEP_MOST * SWEEP_CHUNK, MOST_BLOCKS = 1 << 20 };

static SolStatus tail_accept(const LadderCase *c, SolError *err) {
  return sweep_at_most(c, MOST_BLOCKS, "blocks", err);
}

static int64_t blocks_of(const LadderCase *c, const LadderRung *rung) {
  return rung->x < (double)c->dim[0] ? (int64_t)rung->x : c->dim[0];
}

static int tail_buffers(const LadderCase *c, LadderBuffer *b) {
  b[Y] = sweep_partial("y", c->dim[0] * SWEEP_MOST);
  b[X] = sweep_input("x", c->dim[0] * VECTORS * 4);
  return BUFFERS;
}

static double tail_bytes(const LadderCase *c, const LadderRung *rung) {
  return (double)blocks_of(c, rung) * 4 * (VECTORS * 4 + SWEEP_MOST);
}

static void tail_expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  for (int64_t k = first; k < first + count; k++) {
    int64_t block = k / SWEEP_MOST, thread = k % SWEEP_MOST;
    const float *x = sweep_in(h, X) + 4 * (block * VECTORS + thread);
    double sum = 0;
    for (int64_t j = 0; j < SWEEP_CHUNK && block < blocks_of(h->c, h->rung); j++, x += 4 * SWEEP_MOST)
      sum += (double)x[0] + (double)x[1] + (double)x[2] + (double)x[3];
    *out++ = sum;
  }
}

static SolStatus tail_go(const LadderCall *call, SolError *err) {
  SweepTail p = {.y = sweep_at(call, Y), .x = sweep_at(call, X)};
  LadderGrid grid = {.grid = {(uint32_t)blocks_of(&call->c, call->rung)}, .block = {SWEEP_MOST}};
  SolStatus status = shared_for(call, 1, &grid.shared, err);
  return status ? status : ladder_launch(call, "tail_read", &grid, &p, sizeof p, err);
}

#define TAIL(blocks) .name = #blocks, .x = (blocks), .go = tail_go
static const LadderRung tails[] = {
    {TAIL(33),
     .why = "One SM takes in only so much: where few of them have a block, most of DRAM's bandwidth is left.",
     .seen_on = "h200", .seen = "A quarter of an H200's SMs work."},
    {TAIL(66)},
    {TAIL(99)},
    {TAIL(132), .seen_on = "h200", .seen = "A block for each SM of an H200: one full wave."},
    {TAIL(133), .seen_on = "h200",
     .seen = "One block more, and it starts when all others have ended: a second wave for a single block, in "
             "which the other SMs have nothing to do."},
    {TAIL(165)},
    {TAIL(198)},
    {TAIL(264), .seen_on = "h200", .seen = "Two full waves: the rate is that of one again."},
    {TAIL(265)},
    {TAIL(396)},
    {TAIL(397)},
    {TAIL(528)},
    {TAIL(529), .seen_on = "h200",
     .seen = "The fifth wave for one block, too; but the more waves, the less a part-filled one weighs."},
};

const Ladder ladder_tail = {
    .name = "tail",
    .title = "Blocks of a grid, and the tail",
    .about =
        "Blocks of 1024 threads read 256 KiB each, and are given so much shared memory that an SM holds one "
        "at a time. Time then goes up in waves of as many blocks as there are SMs, 132 on an H200 (points "
        "are made for it; on another GPU the steps lie elsewhere), and the rate drops after each full "
        "wave. SMs of a part-filled wave share DRAM among fewer, so the step is less than a whole "
        "wave. Small blocks, several to an SM, or a grid that loops blunt it.",
    .module = "sweeps_tail",
    .sweep = true,
    .axis = "blocks",
    .shape = "BLOCKS",
    .size = {529},
    .small = {3},
    .dtypes = {SOL_FP32},
    LADDER_RUNGS(tails),
    .accept = tail_accept,
    .buffers = tail_buffers,
    .bytes = tail_bytes,
    .expect = tail_expect,
};
