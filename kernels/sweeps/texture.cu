// An image read by warps of several shapes, from a row of 32 pixels to a column of 32.
#include "rungs.h"

// A block has 32 x 32 pixels, a thread four of them: its warp's tile, and three more a step apart. SOURCE(x, y) is how
// a pixel is read.
#define READ(name, SOURCE)                                                                                   \
  extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) name(const __grid_constant__ SweepTexture p) {   \
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;                                               \
    uint32_t tiles = 5 - p.shift; /* 2 to that power, along a row */                                         \
    uint32_t x = ((warp & ((1u << tiles) - 1)) << p.shift) + (lane & ((1u << p.shift) - 1));                 \
    uint32_t y = (warp >> tiles << tiles) + (lane >> p.shift);                                               \
    x += blockIdx.x * SWEEP_PATCH, y += blockIdx.y * SWEEP_PATCH;                                            \
    float sum = 0;                                                                                           \
    bool whole = (blockIdx.x + 1) * SWEEP_PATCH <= p.width && (blockIdx.y + 1) * SWEEP_PATCH <= p.height;    \
    if (whole) { /* four reads in flight */                                                                  \
      _Pragma("unroll") for (int k = 0; k < SWEEP_PIXELS; k++, x += p.step_x, y += p.step_y)                 \
          sum += SOURCE(x, y);                                                                               \
    } else {                                                                                                 \
      for (int k = 0; k < SWEEP_PIXELS; k++, x += p.step_x, y += p.step_y)                                   \
        if (x < p.width && y < p.height) sum += SOURCE(x, y);                                                \
    }                                                                                                        \
    p.y[((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * SWEEP_BLOCK + threadIdx.x] = sum;                  \
  }
#define GLOBAL(x, y)  p.x[(uint64_t)(y)*p.width + (x)]
#define TEXTURE(x, y) tex2D<float>((cudaTextureObject_t)p.texture, (float)(x) + 0.5f, (float)(y) + 0.5f)
READ(texture_global, GLOBAL)
READ(texture_fetch, TEXTURE)
