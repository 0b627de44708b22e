// What the rungs of the stencil are launched with.
#ifndef SOL_KERNELS_STENCIL_RUNGS_H
#define SOL_KERNELS_STENCIL_RUNGS_H
#include <stdint.h>

enum {
  STENCIL_RUNG_RADIUS = 4,
  STENCIL_RUNG_WIDE = 32,  // columns of a tile: a warp's
  STENCIL_RUNG_WARPS = 8,
  STENCIL_RUNG_TALL = 32,  // rows of a tile
  STENCIL_RUNG_TALLER = 64 // of the register-blocked rung
};

typedef struct StencilRung {
  float *y;
  const float *x;
  int32_t m, n;
  uint32_t tiles_n; // of a row of tiles
  float centre, side[STENCIL_RUNG_RADIUS];
} StencilRung;

#endif
