// y[b][j][i] = x[b][i][j]
#include "transpose_chunks.cuh"
#include "transpose_gather.cuh"
#include "transpose_narrow.cuh"
#include "transpose_shift.cuh"

#define TILE_WIDE(size, tall, wide)   __shared__ __align__(16) char tile[(tall) * (wide) * (size)]
#define TILE_SHIFT(size, tall, wide)  __shared__ __align__(16) char tile[((tall) + 1) * (wide) * (size)]
#define TILE_CHUNKS(size, tall, wide) __shared__ __align__(16) char tile[CHUNKS_BYTES(size, tall)]
#define TILE_ODD(size, tall, wide)                                                                           \
  static_assert((tall) % (shape.threads / 32) == 0 && ((tall)-TRANSPOSE_SLACK(size)) % 32 == 0, "whole rows and columns to a warp"); \
  __shared__ __align__(16) char tile[(tall) * TRANSPOSE_PITCH(size, wide)]
#define TILE_PLAIN(size, tall, wide)  __shared__ __align__(16) char tile[(tall) * TRANSPOSE_PITCH(size, wide)]
#define TILE_DIRECT(size, tall, wide) (void)0
#define TILE_FEW_ROWS(size, tall, wide) (void)0
#define TILE_FEW_COLUMNS(size, tall, wide) (void)0
#define TILE_SINGLE(size, tall, wide) (void)0
#define TILE_GATHER(size, tall, wide) (void)0
#define BODY_WIDE(shape)              transpose_wide(shape, &p, tile)
#define BODY_SHIFT(shape)             transpose_shift(shape, &p, tile)
#define BODY_CHUNKS(shape)            transpose_chunks(shape, &p, tile)
#define BODY_ODD(shape)               transpose_odd(shape, &p, TRANSPOSE_SLACK(shape.size), tile)
#define BODY_PLAIN(shape)             transpose_odd(shape, &p, 0, tile)
#define BODY_DIRECT(shape)            transpose_direct(shape, &p)
#define BODY_FEW_ROWS(shape)          transpose_narrow(shape.size, true, &p)
#define BODY_FEW_COLUMNS(shape)       transpose_narrow(shape.size, false, &p)
#define BODY_SINGLE(shape)            transpose_single(shape.size, &p)
#define BODY_GATHER(shape)            transpose_gather(shape.size, shape.tall, &p)
#define TRANSPOSE(name, size, kind, tall, wide, rows, least)                                                 \
  KERNEL __launch_bounds__(TRANSPOSE_THREADS_##kind(size, tall, wide, rows),                                 \
                           1024 / TRANSPOSE_THREADS_##kind(size, tall, wide, rows))                          \
      name(const __grid_constant__ TransposeParams p) {                                                      \
    constexpr TransposeShape shape = {size, tall, wide, rows, TRANSPOSE_THREADS_##kind(size, tall, wide, rows)}; \
    TILE_##kind(size, tall, wide);                                                                           \
    BODY_##kind(shape);                                                                                      \
  }
#include "transpose.def"
