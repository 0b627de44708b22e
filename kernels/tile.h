// What kernels that stage rows in shared memory (tile.cuh) share with their launchers.
#ifndef SOL_KERNELS_TILE_H
#define SOL_KERNELS_TILE_H

#include "elementwise.h"

// What a block takes: some rows, or, where there is more than one segment, some columns of one; where they lie in shared memory, y's
// from y_place on, if there is a y. pitch: bytes from row to row; 0: there is no gap between rows.
typedef struct TileShape {
  int32_t rows, columns;
  Divider segments; // by those of a row
  int32_t x_pitch, y_pitch, y_place;
} TileShape;

#endif
