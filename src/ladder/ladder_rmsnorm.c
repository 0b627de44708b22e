// Rows divided by their root mean square: a reduction between a read and a write.
#include "base/error.h"
#include "kernels/rmsnorm/rungs.h"
#include "ladder/ladder_jobs.h"

// Threads in whole warps, at most `most`.
static uint32_t warps_for(int64_t threads, int64_t most) {
  int64_t whole = ladder_ceil_div(threads, 32) * 32;
  return (uint32_t)(whole < most ? whole : most);
}

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] > NORM_MOST)
    return sol_fail(err, SOL_ERR_RANGE, "N may be at most %d: what the registers of a block can hold",
                    NORM_MOST);
  if (c->dim[0] > INT32_MAX / NORM_CLUSTER)
    return sol_fail(err, SOL_ERR_RANGE,
                    "M may be at most %d: a grid has 2^31 - 1 blocks, and a row "
                    "takes %d",
                    INT32_MAX / NORM_CLUSTER, NORM_CLUSTER);
  return ladder_whole_vectors(c, 8, err);
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  return ladder_vector_buffers(c, "weight", OPS_FILL_POSITIVE, b);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  double scale = ladder_inverse_rms(h, JOB_X, first, count); // a row: .unit
  for (int64_t i = 0; i < count; i++)
    out[i] = h->value(h, JOB_X, first + i) * scale * h->value(h, JOB_VECTOR, i);
}

static SolStatus launch(const LadderCall *call, const char *kernel, const LadderGrid *grid, SolError *err) {
  RmsnormRung p = {.y = ladder_at(call, JOB_Y),
                   .x = ladder_at(call, JOB_X),
                   .weight = ladder_at(call, JOB_VECTOR),
                   .m = call->c.dim[0],
                   .n = (int32_t)call->c.dim[1],
                   .eps = LADDER_EPS};
  return ladder_launch(call, kernel, grid, &p, sizeof p, err);
}

static SolStatus thread(const LadderCall *call, SolError *err) {
  LadderGrid g = ladder_threads((uint64_t)call->c.dim[0], NORM_THREADS);
  return launch(call, "rmsnorm_thread", &g, err);
}

static SolStatus block(const LadderCall *call, SolError *err) {
  LadderGrid g = {.grid = {(uint32_t)call->c.dim[0]}, .block = {NORM_THREADS}};
  return launch(call, "rmsnorm_block", &g, err);
}

// The row in shared memory, 2 bytes per element.
static SolStatus half2(const LadderCall *call, SolError *err) {
  LadderGrid g = {
      .grid = {(uint32_t)call->c.dim[0]}, .block = {NORM_THREADS}, .shared = 2 * (uint32_t)call->c.dim[1]};
  return launch(call, "rmsnorm_half2", &g, err);
}

static SolStatus vectors(const LadderCall *call, SolError *err) {
  LadderGrid g = {.grid = {(uint32_t)call->c.dim[0]},
                  .block = {warps_for(call->c.dim[1] / 8, NORM_THREADS)},
                  .shared = 2 * (uint32_t)call->c.dim[1]};
  return launch(call, "rmsnorm_vectors", &g, err);
}

// As many rows per block as 32 KiB of shared memory hold, up to four.
static SolStatus warp(const LadderCall *call, SolError *err) {
  int64_t n = call->c.dim[1], fit = 32768 / (2 * n), rows = fit > 4 ? 4 : fit > 1 ? fit : 1;
  LadderGrid g = {.grid = {(uint32_t)ladder_ceil_div(call->c.dim[0], rows)},
                  .block = {32, (uint32_t)rows},
                  .shared = (uint32_t)(2 * rows * n)};
  return launch(call, "rmsnorm_warp", &g, err);
}

static SolStatus registers(const LadderCall *call, SolError *err) {
  int64_t vectors_of_row = call->c.dim[1] / 8;
  bool wide = vectors_of_row > 1024 * NORM_HELD;
  uint32_t lanes = warps_for(ladder_ceil_div(vectors_of_row, wide ? NORM_HELD_WIDE : NORM_HELD), 1024),
           rows = lanes > 32 ? 1 : 4;
  LadderGrid g = {.grid = {(uint32_t)ladder_ceil_div(call->c.dim[0], rows)}, .block = {lanes, rows}};
  return launch(call, wide ? "rmsnorm_registers_wide" : "rmsnorm_registers", &g, err);
}

// The fewest blocks that hold the row, at least two.
static SolStatus cluster(const LadderCall *call, SolError *err) {
  uint32_t blocks = 2;
  int64_t vectors_of_row = call->c.dim[1] / 8;
  while (ladder_ceil_div(vectors_of_row, blocks * NORM_HELD_WIDE) > NORM_CLUSTER_THREADS) blocks *= 2;
  LadderGrid g = {
      .grid = {(uint32_t)call->c.dim[0] * blocks},
      .block = {warps_for(ladder_ceil_div(vectors_of_row, blocks * NORM_HELD_WIDE), NORM_CLUSTER_THREADS)},
      .cluster = blocks};
  return launch(call, "rmsnorm_cluster", &g, err);
}

static const LadderRung rungs[] = {
    {.name = "thread",
     .change = "one thread per row: it sums the squares, then reads the row again and writes it",
     .why = "The lanes of a warp access 32 rows at once, 2 bytes of each sector at a time. There are no "
            "more threads than rows, so few loads are in flight, and the stores reach L2 one element at "
            "a time.",
     .go = thread},
    {.name = "block",
     .change = "one block per row; its sum is reduced by shuffles and shared memory",
     .why = "Neighbouring lanes read neighbouring elements, so that requests are whole sectors, and "
            "there are as many threads as the GPU holds. The second read of the row hits L1 or L2.",
     .story = LADDER_FASTER,
     .go = block},
    {.name = "half2",
     .change = "two elements per access, and the row is kept in shared memory until its sum is known",
     .why = "An access of a warp is 128 bytes instead of 64, so there are half as many, and the row is "
            "loaded through L1 once instead of twice.",
     .story = LADDER_FASTER,
     .go = half2},
    {.name = "vectors",
     .change = "16 bytes per access: eight elements",
     .why = "A quarter of the memory instructions, those of shared memory included, and four times the "
            "bytes in flight per thread. A narrow row then takes fewer threads, so its block has fewer "
            "warps to synchronise.",
     .story = LADDER_FASTER,
     .go = vectors},
    {.name = "warp",
     .change = "one warp per row: no barrier, the sum by shuffles alone",
     .why = "At a barrier all warps of a block wait for the data of the last one. Independent warps "
            "need not: some load while others store, and each lane has more of the row in flight. But "
            "an SM holds several blocks, and those overlap in the same way.",
     .seen_on = "h200",
     .seen = "On an H200 the barrier of a row this short costs no measurable time.",
     .story = LADDER_SAME,
     .go = warp},
    {.name = "registers",
     .change = "the row is held in registers, not in shared memory",
     .why = "The loads are unrolled and issued together, and the stores to shared memory and loads from "
            "it are gone. It takes more registers, so fewer warps fit; what matters is the bytes in "
            "flight, not the number of warps.",
     .story = LADDER_SAME,
     .go = registers},
    {.name = "cluster",
     .change = "a cluster of two to eight blocks shares a row; the blocks read each other's sums "
               "through distributed shared memory",
     .why = "It is meant for rows so wide that one block of many threads would fill an SM, which would "
            "then be idle whenever that block waits: the row is spread over several SMs, each with "
            "blocks of several rows. A narrow row only pays for it, with two barriers across SMs.",
     .story = LADDER_SLOWER,
     .go = cluster,
     .min_cc = 90},
    {.name = "library",
     .change = "sol_rmsnorm: by the row's width, part of a warp, a warp, a block or a cluster per row; "
               "prefetches",
     .why = "Each width has its own kernel with its loop unrolled, so that no registers are reserved "
            "for a longer row; one thread per block prefetches a later row into L2; the blocks of the "
            "next kernel start early, by programmatic dependent launch.",
     .story = LADDER_FASTER,
     .op = &ops_rmsnorm},
};

const Ladder ladder_rmsnorm = {
    .name = "rmsnorm",
    .title = "RMS normalisation of rows",
    .about = "y = x / sqrt(mean(x^2) + eps) * weight by rows, fp16. Every element is needed twice, "
             "before and after the sum of its row: the ladder is about where the row is kept in the "
             "meantime (DRAM and caches, shared memory, registers) and which threads compute a sum "
             "together (one thread, a block, a warp, a cluster). Wide rows need other kernels than "
             "narrow ones: try --shape 512x65536.",
    .module = "rmsnorm_rungs",
    LADDER_VECTOR_JOB,
    .size = {16384, 1024},
    .small = {37, 1544},
    .dtypes = {SOL_FP16},
    LADDER_RUNGS(rungs),
    .accept = accept,
    .unit = ladder_row,
    .slack = 256, // a thread adds up to 65536 squares one after another
};
