// Transposing a matrix: coalescing, shared memory and its banks.
#include "base/error.h"
#include "kernels/transpose/rungs.h"
#include "ladder/ladder_jobs.h"

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t m = h->c->dim[0], n = h->c->dim[1];
  for (int64_t k = first; k < first + count; k++) *out++ = h->value(h, JOB_X, k % m * n + k / m);
}

// each: rows and columns of a tile.
static SolStatus tiles(const LadderCall *call, uint32_t across, uint32_t down, SolError *err) {
  TransposeRung p = {
      .y = ladder_at(call, JOB_Y), .x = ladder_at(call, JOB_X), .m = call->c.dim[0], .n = call->c.dim[1]};
  int64_t each = call->rung->each;
  LadderGrid grid = {.grid = {(uint32_t)ladder_ceil_div(p.n, each), (uint32_t)ladder_ceil_div(p.m, each)},
                     .block = {across, down}};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus go(const LadderCall *call, SolError *err) {
  return tiles(call, RUNG_TILE, RUNG_ROWS, err);
}

static SolStatus vectorised(const LadderCall *call, SolError *err) {
  return tiles(call, 256, 1, err);
}

static const LadderRung rungs[] = {
    {.name = "naive",
     .change = "one thread per element: rows of x are read, columns of y are written",
     .why = "The loads of a warp are contiguous and take 4 sectors. Its stores are one row of y apart "
            "and take 32, with 4 bytes written in each: eight times the sectors that the data fills.",
     .kernel = "transpose_naive",
     .each = RUNG_TILE},
    {.name = "tile",
     .change = "the tile of a block goes through shared memory, so that both loads and stores are whole "
               "rows",
     .why = "Loads and stores are coalesced now. The price is the way through shared memory, and "
            "reading the tile by columns puts all 32 lanes on one bank: 32 wavefronts per request.",
     .story = LADDER_FASTER,
     .kernel = "transpose_tile",
     .each = RUNG_TILE},
    {.name = "padded",
     .change = "rows of the tile are 33 elements apart instead of 32",
     .why = "One element of padding per row shifts each row by a bank, so that the elements of a column "
            "are in 32 different banks and a read takes one wavefront.",
     .story = LADDER_FASTER,
     .kernel = "transpose_padded",
     .each = RUNG_TILE},
    {.name = "swizzled",
     .change = "no padding: element (r, c) of the tile is stored at column c ^ r",
     .why = "The exclusive or spreads a column over all banks just as the padding does, and uses no "
            "extra shared memory. Where shared memory does not limit how many blocks an SM holds, that "
            "gains nothing more.",
     .story = LADDER_SAME,
     .kernel = "transpose_swizzled",
     .each = RUNG_TILE},
    {.name = "vectorised",
     .change = "16 bytes per access, tiles of 64 x 64, patches of 4 x 4 transposed in registers",
     .why = "A quarter of the memory instructions for the same bytes, four loads in flight per thread, "
            "and 256 bytes of each row per block: fewer, longer accesses for L2 and DRAM.",
     .story = LADDER_FASTER,
     .go = vectorised,
     .kernel = "transpose_vectorised",
     .each = RUNG_WIDE},
    {.name = "library",
     .change = "sol_transpose: the same kind of tile, blocks in the order of y's rows, a prefetch into "
               "L2",
     .why = "Blocks that run at the same time write neighbouring parts of the same rows of y, and a "
            "tile that is needed later is prefetched into L2 before its block starts.",
     .story = LADDER_FASTER,
     .op = &ops_transpose},
};

const Ladder ladder_transpose = {
    .name = "transpose",
    .title = "Transposing a matrix",
    .about = "y = x transposed: every element is read once and written once, without arithmetic. The "
             "cost depends on which addresses the lanes of a warp access, in x and in y at once. "
             "Reading rows means writing columns; a tile in shared memory turns one into the other, and "
             "then bank conflicts in shared memory are the cost.",
    .module = "transpose_rungs",
    LADDER_MATRIX_JOB,
    .size = {4096, 4096},
    .small = {100, 260},
    LADDER_RUNGS(rungs),
    .go = go,
    .most = 65535 * RUNG_TILE,
    .most_of = "rows: a grid has 65535 blocks along y",
    .expect = expect,
};
