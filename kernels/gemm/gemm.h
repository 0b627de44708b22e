// What the GEMM kernels and their launcher share. C = f(alpha A B + beta C + bias) + residual.
#ifndef SOL_KERNELS_GEMM_H
#define SOL_KERNELS_GEMM_H

#include <stdint.h>

enum { GEMM_LINEAR = 0, GEMM_RELU, GEMM_GELU, GEMM_SILU_MUL }; // as SolActivation

// A CUtensorMap: three dimensions, the contiguous one first, the batch last; swizzled over 128 bytes.
typedef struct __attribute__((aligned(64))) GemmMap {
  uint64_t words[16];
} GemmMap;

// The epilogue's part, the same for every kernel. n: columns of C. With GEMM_SILU_MUL B has 2n columns, gate then up,
// and so has the bias.
typedef struct GemmEpilogue {
  void *c;
  const void *bias, *residual; // or NULL
  int64_t c_stride, c_batch_stride, residual_stride, residual_batch_stride; // elements
  const float *a_scale, *b_scale; // (1) each or NULL: alpha is multiplied by them
  float alpha, beta;
  int activation, out_kind, bias_kind;
} GemmEpilogue;

// What is divided by, and 2^32 over it, rounded down: divisions, one after another, would come before the first copy.
typedef struct GemmDivisor {
  int by;
  uint32_t inverse;
} GemmDivisor;

static inline GemmDivisor gemm_divisor(int by) {
  GemmDivisor d = {by, by == 1 ? UINT32_MAX : (uint32_t)((UINT64_C(1) << 32) / (uint32_t)by)};
  return d;
}

// gemm_wgmma.cuh, gemm_split.cuh
typedef struct GemmTiledParams {
  GemmMap a, b, c;
  GemmEpilogue end;
  int m, n, k, batch;
  int rows, columns, group; // clusters' tiles down and across; rows of them that go together
  int down, across;         // blocks of a cluster below each other and side by side, 1 or 2 each, whose tiles have operands in common
  int swapped;              // a is the map of B and b that of A: a tile's rows are C's columns
  GemmDivisor each, band, height, tail, parts; // gemm_divide_by
} GemmTiledParams;

// Clusters' tiles of a matrix; of `group` rows of them; rows of those, and of the last ones; blocks that share out k. After rows, columns and group.
static inline void gemm_divide_by(GemmTiledParams *p, int parts) {
  p->each = gemm_divisor(p->rows * p->columns), p->band = gemm_divisor(p->group * p->columns);
  p->height = gemm_divisor(p->group), p->tail = gemm_divisor(p->rows % p->group ? p->rows % p->group : p->group);
  p->parts = gemm_divisor(parts);
}

// gemm_any.cuh: element (i, j) of A is at i * a_down + j * a_across.
typedef struct GemmAnyParams {
  const void *a, *b;
  GemmEpilogue end;
  int64_t m, n, k, batch, a_down, a_across, a_batch, b_down, b_across, b_batch;
} GemmAnyParams;

// Of int4 weights scales are (batch, columns of B, groups), one for GEMM_GROUP k; NULL: fp8.
#define GEMM_GROUP 128

// gemm_any.cuh with weights of fewer bits. B's strides are in elements.
typedef struct GemmAnyWeightsParams {
  GemmAnyParams any;
  const float *scales;
  int64_t groups;
} GemmAnyWeightsParams;
#define GEMM_INT4 16 // beside the kinds of common.h

// gemm_few.cuh. rows: of a block, 8 or 16. ranges: of columns, one to a cluster. across: warps of a block side by side; the others share out k.
// hint: bytes of each column of B, a multiple of 256, that are prefetched into L2 before the kernel before has ended. wide: by gemm_few_held.cuh,
// whose blocks hold the sums of so many columns of B, a multiple of 16; otherwise 0.
typedef struct GemmFewParams {
  GemmAnyParams any;
  const float *scales;
  int64_t groups;
  int rows, ranges, across, hint, wide;
  int eights, more; // columns of a range, in eights; the first `more` ranges have eight more
} GemmFewParams;
// Bytes of a warp's ring, and of a block with its sums. roomy: a block can have 227 KiB of shared memory, as on sm_90 and sm_100.
#define GEMM_FEW_COLUMNS 32 // of B, of a warp at a time
#define GEMM_FEW_RING(roomy) ((roomy) ? 26112 : 13312)
#define GEMM_FEW_SHARED(roomy, warps) ((warps) * GEMM_FEW_RING(roomy) + 64 * ((warps) * GEMM_FEW_COLUMNS + 4))
// The same of gemm_few_held.cuh; deep: warps that share out k.
#define GEMM_FEW_HELD_STAGES 5
#define GEMM_FEW_HELD_RING (GEMM_FEW_HELD_STAGES * 2048)
#define GEMM_FEW_SCALES(groups) ((((groups) + 3) / 4 | 1) * 4) // floats from column to column, in different banks
#define GEMM_FEW_HELD_COLUMN(rows, deep, groups) ((rows) * ((deep) + 1) * 4 + GEMM_FEW_SCALES(groups) * 4)
#define GEMM_FEW_HELD_SHARED(warps, rows, deep, wide, groups) \
  ((warps) * GEMM_FEW_HELD_RING + (rows) * 16 + (wide) * GEMM_FEW_HELD_COLUMN(rows, deep, groups))
// `wide` where a range has `most` columns of B: turns of one size, as few as shared memory allows.
static inline int gemm_few_held_wide(int warps, int rows, int deep, int groups, int most) {
  int room = GEMM_FEW_SHARED(1, 8) - GEMM_FEW_HELD_SHARED(warps, rows, deep, 0, groups);
  int fit = room / GEMM_FEW_HELD_COLUMN(rows, deep, groups) / 16 * 16, turns;
  if (fit > 256) fit = 256;
  turns = (most + fit - 1) / fit;
  return ((most + turns - 1) / turns + 15) / 16 * 16;
}

// Blocks of gemm_any.cuh: rows and columns of the tile.
#define GEMM_ANY_THREADS 128
#define GEMM_ANY_TILE 64

// A block of gemm_loop.cuh, whose tile has 64, 128 or 256 rows: one warpgroup, or two of 64 or 128 rows each, then the thread that copies,
// with a warpgroup of its own where registers are to move from it to two others, otherwise with a warp.
#define GEMM_GROUPS(rows) ((rows) > 64 ? 2 : 1)
#define GEMM_CONSUMERS 256 // threads of two
#define GEMM_MOVES_REGISTERS(rows, per_sm) ((rows) > 64 && (per_sm) == 1)
#define GEMM_THREADS(rows, per_sm) (GEMM_GROUPS(rows) * 128 + (GEMM_MOVES_REGISTERS(rows, per_sm) ? 128 : 32))
#define GEMM_STAGE_BYTES(rows, wide) (((rows) + (wide)) * 128)
#define GEMM_RING_BYTES(rows, wide, stages) ((stages) * (GEMM_STAGE_BYTES(rows, wide) + 16))
// Rows of the box of a tensor map, whose contiguous dimension is 128 bytes: at least two boxes a tile, where blocks may share them. A stage
// holds 128 bytes along k.
#define GEMM_BOX_A(rows) ((rows) > 64 ? 64 : 32)
#define GEMM_BOX_B(turned, wide) ((turned) ? 64 : (wide) < 64 ? (wide) : (wide) / 2)

// gemm_wgmma.cuh stores pieces of 64 rows of 128 bytes, or of 64 where those do not fill a tile's row. Of places for them a warpgroup has what
// shared memory is left for, up to what a tile of 2-byte elements takes.
#define GEMM_PIECE_BYTES 8192
#define GEMM_SPAN(wide) ((wide) % 64 ? 64 : 128)
#define GEMM_SWAPPED_ROWS 32 // of a piece, of 128 bytes each, where the operands are swapped
#define GEMM_BLOCK_SHARED(per_sm) ((per_sm) == 1 ? 232448 : 115712)
#define GEMM_PIECES_LEFT(rows, wide, stages, per_sm) \
  ((GEMM_BLOCK_SHARED(per_sm) - GEMM_RING_BYTES(rows, wide, stages)) / (GEMM_GROUPS(rows) * GEMM_PIECE_BYTES))
#define GEMM_PIECES_MOST(rows, wide) ((rows) / GEMM_GROUPS(rows) * (wide) / 4096 > 2 ? (rows) / GEMM_GROUPS(rows) * (wide) / 4096 : 2)
#define GEMM_PIECES(rows, wide, stages, per_sm)                                   \
  (GEMM_PIECES_LEFT(rows, wide, stages, per_sm) < GEMM_PIECES_MOST(rows, wide)    \
       ? GEMM_PIECES_LEFT(rows, wide, stages, per_sm)                             \
       : GEMM_PIECES_MOST(rows, wide))
#define GEMM_SHARED(rows, wide, stages, per_sm) \
  (GEMM_GROUPS(rows) * GEMM_PIECES(rows, wide, stages, per_sm) * GEMM_PIECE_BYTES + GEMM_RING_BYTES(rows, wide, stages))

// gemm_split.cuh, gemm_few.cuh: the most blocks that share out k.
#define GEMM_PARTS 8

#endif
