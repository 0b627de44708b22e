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

// gemm_wgmma.cuh, gemm_split.cuh
typedef struct GemmTiledParams {
  GemmMap a, b, c;
  GemmEpilogue end;
  int m, n, k, batch;
  int rows, columns, group; // clusters' tiles down and across; rows of them that go together
  int swapped;              // a is the map of B and b that of A: a tile's rows are C's columns
} GemmTiledParams;

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

// gemm_few.cuh. across: warps of a block side by side, 1, 2, 4 or 8; the others share out k. ahead: lines of each column to prefetch.
#define GEMM_FEW_WARPS 8
typedef struct GemmFewParams {
  GemmAnyParams any;
  const float *scales;
  int64_t groups;
  int across, ahead;
} GemmFewParams;

// Blocks of gemm_any.cuh: rows and columns of the tile.
#define GEMM_ANY_THREADS 128
#define GEMM_ANY_TILE 64

// A block of gemm_loop.cuh: two warpgroups of 64 * tall rows each, then the thread that copies, with a warpgroup of its own
// where registers are to move from it to the others, otherwise with a warp.
#define GEMM_CONSUMERS 256
#define GEMM_THREADS(per_sm) ((per_sm) == 1 ? 384 : 288)
#define GEMM_ROWS(tall) (128 * (tall))
#define GEMM_STAGE_BYTES(tall, wide) ((GEMM_ROWS(tall) + (wide)) * 128)
#define GEMM_RING_BYTES(tall, wide, stages) ((stages) * (GEMM_STAGE_BYTES(tall, wide) + 16))
// Rows of the box of a tensor map, whose contiguous dimension is 128 bytes. A stage holds 128 bytes along k.
#define GEMM_BOX_A 64
#define GEMM_BOX_B(turned, wide, down) ((turned) ? 64 : (wide) < 64 ? (wide) : (wide) / ((down) > 2 ? (down) : 2))

// gemm_wgmma.cuh stores pieces of 64 rows of 128 bytes, or of 64 where those do not fill a tile's row. Of places for them a warpgroup has what shared memory is
// left for, up to what a tile of 2-byte elements takes.
#define GEMM_PIECE_BYTES 8192
#define GEMM_SPAN(wide) ((wide) % 64 ? 64 : 128)
#define GEMM_SWAPPED_ROWS 32 // of a piece, of 128 bytes each, where the operands are swapped
#define GEMM_BLOCK_SHARED(per_sm) ((per_sm) == 1 ? 232448 : 115712)
#define GEMM_PIECES_LEFT(tall, wide, stages, per_sm) \
  ((GEMM_BLOCK_SHARED(per_sm) - GEMM_RING_BYTES(tall, wide, stages)) / (2 * GEMM_PIECE_BYTES))
#define GEMM_PIECES_MOST(tall, wide) ((tall) * (wide) / 64 > 2 ? (tall) * (wide) / 64 : 2)
#define GEMM_PIECES(tall, wide, stages, per_sm)                                   \
  (GEMM_PIECES_LEFT(tall, wide, stages, per_sm) < GEMM_PIECES_MOST(tall, wide)    \
       ? GEMM_PIECES_LEFT(tall, wide, stages, per_sm)                             \
       : GEMM_PIECES_MOST(tall, wide))
#define GEMM_SHARED(tall, wide, stages, per_sm) \
  (2 * GEMM_PIECES(tall, wide, stages, per_sm) * GEMM_PIECE_BYTES + GEMM_RING_BYTES(tall, wide, stages))

// gemm_split.cuh, gemm_few.cuh: the most blocks that share out k.
#define GEMM_PARTS 8

#endif
