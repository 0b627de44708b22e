// Transposing a matrix: the classic of coalescing, shared memory and its banks.
#include "base/error.h"
#include "kernels/transpose/rungs.h"
#include "ladder/ladder_matrix.h"

enum { Y = MATRIX_Y, X = MATRIX_X };

static SolStatus accept(const LadderCase *c, SolError *err) {
  enum { MOST = 65535 * RUNG_TILE }; // blocks along y of a grid
  if (c->dim[0] <= MOST) return SOL_OK;
  return sol_fail(err, SOL_ERR_RANGE, "at most %d rows: a grid has 65535 blocks along y", MOST);
}

static void expect(const LadderHost *h, int buffer, int64_t first, int64_t count, double *out) {
  (void)buffer;
  int64_t m = h->c->dim[0], n = h->c->dim[1];
  for (int64_t k = first; k < first + count; k++) *out++ = h->value(h, X, k % m * n + k / m);
}

static TransposeRung params(const LadderCall *call) {
  return (TransposeRung){
      .y = ladder_at(call, Y), .x = ladder_at(call, X), .m = call->c.dim[0], .n = call->c.dim[1]};
}

static SolStatus tiles_of_32(const LadderCall *call, SolError *err) {
  TransposeRung p = params(call);
  LadderGrid grid = {
      .grid = {(uint32_t)ladder_ceil_div(p.n, RUNG_TILE), (uint32_t)ladder_ceil_div(p.m, RUNG_TILE)},
      .block = {RUNG_TILE, RUNG_ROWS}};
  return ladder_launch(call, call->rung->kernel, &grid, &p, sizeof p, err);
}

static SolStatus vectorised(const LadderCall *call, SolError *err) {
  TransposeRung p = params(call);
  LadderGrid grid = {
      .grid = {(uint32_t)ladder_ceil_div(p.n, RUNG_WIDE), (uint32_t)ladder_ceil_div(p.m, RUNG_WIDE)},
      .block = {256}};
  return ladder_launch(call, "transpose_vectorised", &grid, &p, sizeof p, err);
}

static SolStatus library(const LadderCall *call, SolError *err) {
  SolTranspose a = {.y = ladder_at(call, Y),
                    .x = ladder_at(call, X),
                    .m = call->c.dim[0],
                    .n = call->c.dim[1],
                    .dtype = SOL_FP32};
  return ladder_op(call, &ops_transpose, &a, err);
}

static const LadderRung rungs[] = {
    {.name = "naive",
     .change = "a thread an element: rows of x are read, columns of y are written",
     .why =
         "The loads of a warp are neighbours and make 4 sectors. Its stores lie a whole row of y apart and "
         "make 32, of which 4 bytes each are written: eight times the sectors that the data fills.",
     .go = tiles_of_32,
     .kernel = "transpose_naive"},
    {.name = "tile",
     .change = "the block's tile goes through shared memory, and both sides move whole rows",
     .why =
         "Loads and stores are coalesced now. The price is a detour through shared memory, and reading the "
         "tile by columns hits one bank with all 32 lanes: 32 wavefronts for each request.",
     .story = LADDER_FASTER,
     .go = tiles_of_32,
     .kernel = "transpose_tile"},
    {.name = "padded",
     .change = "rows of the tile are 33 elements apart instead of 32",
     .why = "One element of padding a row shifts each row by a bank, so that a column of the tile lies in 32 "
            "different banks and takes one wavefront.",
     .story = LADDER_FASTER,
     .go = tiles_of_32,
     .kernel = "transpose_padded"},
    {.name = "swizzled",
     .change = "no padding: element (r, c) of the tile lies at column c ^ r",
     .why = "The exclusive or spreads a column over all banks just as the padding does, and costs no shared "
            "memory. Where shared memory does not limit how many blocks an SM holds, that buys nothing more.",
     .story = LADDER_SAME,
     .go = tiles_of_32,
     .kernel = "transpose_swizzled"},
    {.name = "vectorised",
     .change = "16 bytes an access, tiles of 64 x 64, patches of 4 x 4 turned in registers",
     .why = "A quarter of the memory instructions for the same bytes, four loads in flight in each thread, "
            "and 256 bytes of each row a block: fewer, longer pieces for L2 and DRAM.",
     .story = LADDER_FASTER,
     .go = vectorised},
    {.name = "library",
     .change = "sol_transpose: the same kind of tile, a grid that walks down y's rows, a prefetch ahead",
     .why = "Blocks that run at the same time write neighbouring pieces of the same rows of y, and the tile "
            "that comes next is on its way into L2 before its block starts.",
     .story = LADDER_FASTER,
     .go = library},
};

const Ladder ladder_transpose = {
    .name = "transpose",
    .title = "Transposing a matrix",
    .about =
        "y = x transposed: every element is read once and written once, and no arithmetic is done. What it "
        "takes is decided by how the lanes of a warp lie in memory, on both sides at once. Reading rows "
        "means writing columns; a tile in shared memory turns one into the other, and then the banks of "
        "shared memory are what the lanes collide in.",
    .module = "transpose_rungs",
    MATRIX_JOB,
    .size = {4096, 4096},
    .small = {100, 260},
    LADDER_RUNGS(rungs),
    .accept = accept,
    .expect = expect,
};
