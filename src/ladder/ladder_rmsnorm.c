// Rows normalised by their root mean square: a reduction between a read and a write.
#include <math.h>

#include "base/error.h"
#include "kernels/rmsnorm/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y, X, WEIGHT, BUFFERS };
#define EPS 1e-5f

// Whole warps for so many vectors.
static uint32_t warps_for(int64_t threads, int64_t most) {
  int64_t whole = ladder_ceil_div(threads, 32) * 32;
  return (uint32_t)(whole < most ? whole : most);
}

static SolStatus accept(const LadderCase *c, SolError *err) {
  if (c->dim[1] % 8)
    return sol_fail(err, SOL_ERR_RANGE, "N must be a multiple of 8: rows are moved 16 bytes at a time");
  if (c->dim[1] > NORM_MOST)
    return sol_fail(err, SOL_ERR_RANGE, "N may be at most %d: what the registers of a block can hold",
                    NORM_MOST);
  if (c->dim[0] > INT32_MAX / NORM_CLUSTER)
    return sol_fail(err, SOL_ERR_RANGE, "M may be at most %d: a grid has 2^31 - 1 blocks, %d of them a row",
                    INT32_MAX / NORM_CLUSTER, NORM_CLUSTER);
  return SOL_OK;
}

static int buffers(const LadderCase *c, LadderBuffer *b) {
  int64_t count = c->dim[0] * c->dim[1];
  b[Y] = (LadderBuffer){.name = "y", .dtype = c->dtype, .count = count, .role = OPS_OUT};
  b[X] = (LadderBuffer){.name = "x", .dtype = c->dtype, .count = count, .role = OPS_IN};
  b[WEIGHT] = (LadderBuffer){
      .name = "weight", .dtype = c->dtype, .count = c->dim[1], .role = OPS_IN, .fill = OPS_FILL_POSITIVE};
  return BUFFERS;
}

static double bytes(const LadderCase *c, const LadderRung *rung) {
  (void)rung;
  return 2.0 * (2 * (double)c->dim[0] + 1) * (double)c->dim[1];
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t n = h->c->dim[1], row = -1;
  double scale = 0;
  for (int64_t k = first; k < first + count; k++) {
    if (k / n != row) {
      double squares = 0;
      row = k / n;
      for (int64_t c = 0; c < n; c++) squares += h->value(h, X, row * n + c) * h->value(h, X, row * n + c);
      scale = 1 / sqrt(squares / (double)n + (double)EPS);
    }
    *out++ = h->value(h, X, k) * scale * h->value(h, WEIGHT, k % n);
  }
}

static RmsnormRung params(const LadderCall *call) {
  return (RmsnormRung){.y = ladder_at(call, Y),
                       .x = ladder_at(call, X),
                       .weight = ladder_at(call, WEIGHT),
                       .m = call->c.dim[0],
                       .n = (int32_t)call->c.dim[1],
                       .eps = EPS};
}

static SolStatus thread(const LadderCall *call, SolError *err) {
  RmsnormRung p = params(call);
  LadderGrid g = {.grid = {(uint32_t)ladder_ceil_div(p.m, NORM_THREADS)}, .block = {NORM_THREADS}};
  return ladder_launch(call, "rmsnorm_thread", &g, &p, sizeof p, err);
}

static SolStatus block(const LadderCall *call, SolError *err) {
  RmsnormRung p = params(call);
  LadderGrid g = {.grid = {(uint32_t)p.m}, .block = {NORM_THREADS}};
  return ladder_launch(call, "rmsnorm_block", &g, &p, sizeof p, err);
}

static SolStatus half2(const LadderCall *call, SolError *err) {
  RmsnormRung p = params(call);
  LadderGrid g = {.grid = {(uint32_t)p.m}, .block = {NORM_THREADS}, .shared = 2 * (uint32_t)p.n};
  return ladder_launch(call, "rmsnorm_half2", &g, &p, sizeof p, err);
}

static SolStatus vectors(const LadderCall *call, SolError *err) {
  RmsnormRung p = params(call);
  LadderGrid g = {
      .grid = {(uint32_t)p.m}, .block = {warps_for(p.n / 8, NORM_THREADS)}, .shared = 2 * (uint32_t)p.n};
  return ladder_launch(call, "rmsnorm_vectors", &g, &p, sizeof p, err);
}

// As many rows a block as 32 KiB of shared memory hold, up to four.
static SolStatus warp(const LadderCall *call, SolError *err) {
  RmsnormRung p = params(call);
  int64_t fit = 32768 / (2 * (int64_t)p.n), rows = fit > 4 ? 4 : fit > 1 ? fit : 1;
  LadderGrid g = {.grid = {(uint32_t)ladder_ceil_div(p.m, rows)},
                  .block = {32, (uint32_t)rows},
                  .shared = (uint32_t)(2 * rows * p.n)};
  return ladder_launch(call, "rmsnorm_warp", &g, &p, sizeof p, err);
}

static SolStatus registers(const LadderCall *call, SolError *err) {
  RmsnormRung p = params(call);
  bool wide = p.n / 8 > 1024 * NORM_HELD;
  uint32_t lanes = warps_for(ladder_ceil_div(p.n / 8, wide ? NORM_HELD_WIDE : NORM_HELD), 1024),
           rows = lanes > 32 ? 1 : 4;
  LadderGrid g = {.grid = {(uint32_t)ladder_ceil_div(p.m, rows)}, .block = {lanes, rows}};
  return ladder_launch(call, wide ? "rmsnorm_registers_wide" : "rmsnorm_registers", &g, &p, sizeof p, err);
}

// The fewest blocks that hold the row, two at least.
static SolStatus cluster(const LadderCall *call, SolError *err) {
  RmsnormRung p = params(call);
  uint32_t blocks = 2;
  while (ladder_ceil_div(p.n / 8, blocks * NORM_HELD_WIDE) > NORM_CLUSTER_THREADS) blocks *= 2;
  LadderGrid g = {
      .grid = {(uint32_t)p.m * blocks},
      .block = {warps_for(ladder_ceil_div(p.n / 8, blocks * NORM_HELD_WIDE), NORM_CLUSTER_THREADS)},
      .cluster = blocks};
  return ladder_launch(call, "rmsnorm_cluster", &g, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolRmsnorm a = {.y = ladder_at(call, Y),
                  .x = ladder_at(call, X),
                  .weight = ladder_at(call, WEIGHT),
                  .m = call->c.dim[0],
                  .n = call->c.dim[1],
                  .dtype = call->c.dtype,
                  .eps = EPS};
  return ladder_op(call, &ops_rmsnorm, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "thread",
     .change = "a thread has a row: it adds up the squares, then reads the row again and writes it",
     .why =
         "Lanes stand in 32 rows at once, 2 bytes of each sector at a time. There are no more threads than "
         "rows, so few loads are on their way, and the stores of single elements reach L2 one by one.",
     .go = thread},
    {.name = "block",
     .change = "a block has a row; its sums meet by shuffles and shared memory",
     .why = "Neighbouring lanes read neighbouring elements, so that requests are whole sectors, and there "
            "are as many threads as the machine holds. The second reading finds the row in L1 or L2.",
     .story = LADDER_FASTER,
     .go = block},
    {.name = "half2",
     .change = "two elements an access, and the row is kept in shared memory until its sum is known",
     .why = "A warp's access is 128 bytes instead of 64, so there are half as many, and the row passes L1 "
            "once instead of twice.",
     .story = LADDER_FASTER,
     .go = half2},
    {.name = "vectors",
     .change = "16 bytes an access: eight elements",
     .why = "A quarter of the memory instructions, of shared memory, too, and four times the bytes in flight "
            "in each thread. A narrow row takes fewer threads so, and its block has fewer warps to wait for.",
     .story = LADDER_FASTER,
     .go = vectors},
    {.name = "warp",
     .change = "a warp has a row: no barrier, sums by shuffles alone",
     .why = "At a barrier all warps of a block wait for the last one's data. Warps on their own drift "
            "apart: some load while others write, and each lane has more of the row under way. But an SM "
            "has several blocks, which do the same for each other.",
     .seen_on = "h200",
     .seen = "On an H200 the barrier of a row this short costs nothing that shows.",
     .story = LADDER_SAME,
     .go = warp},
    {.name = "registers",
     .change = "the row is held in registers, not in shared memory",
     .why = "The loads are written out one after another and leave together, and the way through shared "
            "memory and back is gone. It costs registers, and with them warps; what counts is the bytes in "
            "flight, not the warps.",
     .story = LADDER_SAME,
     .go = registers},
    {.name = "cluster",
     .change = "two to eight blocks form a cluster and share a row; they read each other's sums",
     .why = "For rows so wide that one block of many threads would have an SM to itself, and the SM nothing "
            "to do while it waits: the row is spread over several SMs, each with blocks of several rows. A "
            "narrow row has only the price, two barriers across SMs.",
     .story = LADDER_SLOWER,
     .go = cluster,
     .min_cc = 90},
    {.name = "library",
     .change =
         "sol_rmsnorm: by the row's width, lanes of a warp, a warp, a block or a cluster; prefetches ahead",
     .why = "Each width has its own kernel with its loop written out, so that no register is held for a "
            "longer row; one thread a block asks L2 for a row that comes later; the next kernel's blocks are "
            "let in early.",
     .story = LADDER_FASTER,
     .go = library},
};

const Ladder ladder_rmsnorm = {
    .name = "rmsnorm",
    .title = "RMS normalisation of rows",
    .about = "y = x / sqrt(mean(x^2) + eps) * weight by rows, fp16. Every element is needed twice, before "
             "and after the row's sum: the ladder is about where the row waits meanwhile (DRAM and caches, "
             "shared memory, registers) and who has to meet for the sum (a thread, a block, a warp, a "
             "cluster). Wide rows want other kernels than narrow ones: try --shape 512x65536.",
    .module = "rmsnorm_rungs",
    .shape = "MxN",
    .size = {16384, 1024},
    .small = {37, 1544},
    .dtypes = {SOL_FP16},
    LADDER_RUNGS(rungs),
    .accept = accept,
    LADDER_OWN_JOB,
    .unit = matrix_row,
    .slack = 256, // one thread adds up to 65536 squares one after another
};
