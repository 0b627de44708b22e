#ifndef SOL_KERNELS_STENCIL_H
#define SOL_KERNELS_STENCIL_H
#include "../elementwise.h"

enum {
  STENCIL_THREADS = 256, // eight warps, below each other where there are rows for all of them
  STENCIL_COLUMNS = 4,   // of a thread where rows are not whole vectors
  STENCIL_SHORT = 64,    // the longest row that STENCIL_NARROW takes
  WALK_ROWS = 16,        // of a stage
  TENSOR_COLUMNS = 16,   // that a warp computes at once with tensor cores
  TENSOR_RING = 8,       // stages in shared memory, 2-byte elements
  WALK_RING = 3,         // the same of fp32
  STRIP_WARPS = 4,       // of a block with a tile of a strip
  STRIP_ROWS = 16,       // of a warp, at most
  STRIP_LEAST = 8,       // of a warp, as many however much shared memory that takes
  STENCIL_EIGHT = 8,     // rows of a thread with a part of a tile of StencilBandParams
  STENCIL_PIECES = 3,    // of a coefficient, at most
  STENCIL_DISTANCES = 9  // from the centre on
};

typedef enum StencilLayout { // of a thread's columns
  STENCIL_WIDE,              // one vector of 16 bytes: rows are whole vectors
  STENCIL_ANY,               // a warp's width apart
  STENCIL_NARROW, // one, and the next thread has the next one, of the rows below at the end of a row
  STENCIL_DENSE,  // one vector of x as one long row: rows are short and follow each other without a gap
  STENCIL_FLAT,   // one vector of the only row
  STENCIL_STRIP,  // neighbouring ones, in a tile in shared memory: StencilStripParams
  STENCIL_BAND,   // neighbouring ones of eight rows, in a tile in shared memory: StencilBandParams
  STENCIL_WALK,   // of blocks that walk down strips: StencilWalkParams; fp32: whole vectors
  STENCIL_WALK_ANY // the same for fp32 rows that are not whole vectors
} StencilLayout;

typedef struct StencilParams {
  void *y;
  const void *x;
  int64_t m, n, y_stride, x_stride; // elements
  uint64_t strips, tiles;           // blocks along a row, and in all; narrow: threads
  uint32_t warps_down;              // of a block's warps; the others are next to them
  int32_t x_kind, y_kind;
  int32_t head,
      y_wide; // 1-D, STENCIL_DENSE: elements of x's first 16 bytes that are not x's; y can be stored as x is read
  int32_t radius;
  int32_t narrow; // rows are short: neighbouring threads go on in the rows below
  uint32_t ahead; // a block prefetches into L2 the part of x of the block that many further on; 0: none
  float centre, side[8];
} StencilParams;

// Bytes of shared memory: of a row of x, of `each` columns a lane and those around them, and of one of results, which start anywhere in 16 and 32 bytes; of
// a block, whose warps have `rows` rows each and space for two rows of results.
#define STRIP_SLOT(size, radius, each)       (((32 * (each) + 2 * (radius)) * (size) + 15 + 15) / 16 * 16)
#define STRIP_RESULTS(out, each)             (32 * (each) * (out) + 32)
#define STRIP_BYTES(size, out, radius, each, rows) \
  (((rows)*STRIP_WARPS + 2 * (radius)) * STRIP_SLOT(size, radius, each) + STRIP_WARPS * 2 * STRIP_RESULTS(out, each))

typedef struct StencilStripParams {
  void *y;
  const void *x, *x_end;
  int64_t m, n, y_stride, x_stride; // elements
  uint32_t strips, wider;           // of columns; so many of them have one column more
  int32_t rows, columns, beyond;    // of a warp; of a strip; columns beyond it that are computed, too
  int32_t x_kind, y_kind;
  float centre, side[8];
} StencilStripParams;

typedef struct StencilBandParams {
  void *y;
  const void *x, *x_end;
  int64_t m, n, y_stride, x_stride;                       // elements
  int64_t row_step, x_step, y_step, x_turn, y_turn;       // to a block's next tile: rows, bytes; and where that is in the next band
  int64_t inner, inner_end;                               // rows around which a row's chunks are inside of x
  uint32_t strips, strip_step;                            // of columns; to a block's next tile
  int32_t rows, columns;                                  // of a tile, of a strip
  int32_t beyond, before; // columns that are computed beyond a strip; and before the first column, so that even rows start with a word
  int32_t groups;         // of neighbouring columns that threads have, in a strip
  int32_t lane_bits;      // 1 << lane_bits lanes copy a row
  int32_t slot;           // bytes of a row that are written to shared memory
  int32_t x_pitch, x_skew, y_pitch, buffer; // bytes in shared memory: from row to row, after eight rows more; of a tile
  int32_t run;          // results follow each other in y as in shared memory
  int32_t odd, y_turns; // odd rows of x start with the second half of a word; rows of y with another one than the row before
  int32_t x_kind, y_kind, radius;
  float centre, side[8];
} StencilBandParams;

typedef struct StencilWalkParams {
  void *y;
  const void *x, *x_end;
  int64_t m, n, y_stride, x_stride;               // elements
  int64_t y_step, x_step;                         // of 16 rows, in bytes
  uint32_t strips, units;                         // of columns; in all: strips of so many rows
  int32_t rows, columns;                          // of a unit
  int32_t chunks;                                 // of 16 bytes that a row of a stage has
  int32_t x_pitch, stage_bytes, y_pitch, y_place; // bytes, in shared memory
  int32_t y_unit;                                 // bytes that all places of y are multiples of
  int32_t row_mask,
      group_bits; // few rows: 1 << group_bits are below each other, and row_mask is that less 1; otherwise 0 and 4
  int32_t odd; // rows of x start at odd elements
  int32_t x_kind, y_kind, radius, pieces;
  float scale, centre, side[8]; // scale: the pieces are of the coefficients divided by it
  uint16_t piece[STENCIL_PIECES][STENCIL_DISTANCES]; // by distance
} StencilWalkParams;

#endif
