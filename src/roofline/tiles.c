// What a tiled GEMM moves at each level of memory.
#include "base/error.h"
#include "base/port.h"
#include "sol/roofline.h"

static double ceil_div(double a, double b) {
  double whole = (double)(int64_t)(a / b);
  return whole * b < a ? whole + 1 : whole;
}

static double bytes_of(SolDtype dtype) {
  return sol_dtype_bits(dtype) / 8.0;
}

typedef struct Gemm {
  double m, n, k;          // elements
  double in, weight, out;  // bytes of an element of A, B, C
  double tall, wide, deep; // of a tile
} Gemm;

// A block reads A's rows and B's columns of its tile: A once for every column of tiles, B once for every row of them.
static double l2_bytes(const Gemm *g) {
  return g->m * g->k * g->in * ceil_div(g->n, g->wide) + g->k * g->n * g->weight * ceil_div(g->m, g->tall) +
         g->m * g->n * g->out;
}

// Tiles are written to shared memory whole, and read by the tensor cores: A's rows once; B's columns once for each 64
// rows, which are what a warpgroup's wgmma multiplies. C's tile is written there and read once.
static double smem_bytes(const Gemm *g) {
  double tiles = ceil_div(g->m, g->tall) * ceil_div(g->n, g->wide), deep = ceil_div(g->k, g->deep) * g->deep;
  double a = g->tall * deep * g->in, b = g->wide * deep * g->weight, c = g->tall * g->wide * g->out;
  return tiles * (2 * a + b * (1 + ceil_div(g->tall, 64)) + 2 * c);
}

static SolStatus check_tile(const SolTile *t, SolError *err) {
  if (t->m < 0 || t->n < 0 || t->k < 0 || t->m > 1 << 16 || t->n > 1 << 16 || t->k > 1 << 16)
    return sol_fail(err, SOL_ERR_ARGUMENT, "a tile's sides are 1 to 65536");
  if ((t->m || t->n || t->k) && !(t->m && t->n && t->k))
    return sol_fail(err, SOL_ERR_ARGUMENT, "a tile has three sides: MxNxK");
  return SOL_OK;
}

SolStatus sol_gemm_bytes(const SolOpArgs *args, const SolTile *tile, SolLevel level, double *bytes,
                         SolError *err) {
  SolTile t = tile ? *tile : (SolTile){0};
  SolCost cost;
  if (!args || !bytes) return sol_fail(err, SOL_ERR_ARGUMENT, "args and bytes must not be NULL");
  SolStatus status = sol_op_cost(args, &cost, err); // the arguments' checks, too
  if (!status) status = check_tile(&t, err);
  if (status) return status;
  const SolOpInfo *info = sol_op_info(args->op);
  if (__builtin_strcmp(info->name, "gemm") != 0)
    return sol_fail(err, SOL_ERR_UNSUPPORTED, "%s has no tiles: gemm has", info->name);
  if (!t.m) t = (SolTile){128, 256, 64};
  SolDtype in = args->dtype ? args->dtype : SOL_BF16;
  Gemm g = {.m = (double)args->dim[0],
            .n = (double)args->dim[1],
            .k = (double)args->dim[2],
            .in = bytes_of(in),
            .weight = bytes_of(args->weight_dtype ? args->weight_dtype : in),
            .out = bytes_of(args->out_dtype ? args->out_dtype : in),
            .tall = (double)t.m,
            .wide = (double)t.n,
            .deep = (double)t.k};
  *bytes = level == SOL_LEVEL_SMEM ? smem_bytes(&g)
           : level == SOL_LEVEL_L2 ? l2_bytes(&g)
                                   : cost.bytes_read + cost.bytes_written;
  return *bytes < 0x1p53 ? SOL_OK : sol_fail(err, SOL_ERR_RANGE, "gemm: more than 2^53 bytes");
}
