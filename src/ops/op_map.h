// What add, relu, gated_mul and cast share: y = f(a * a_scale, b) / y_scale, element by element.
#ifndef SOL_OPS_OP_MAP_H
#define SOL_OPS_OP_MAP_H

#include "kernels/map/map.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"

typedef struct Map {
  void *y;
  const void *a, *b;              // b: NULL where f takes one input
  const float *a_scale, *y_scale; // NULL: 1
  int64_t m, n, y_stride, a_stride, b_stride;
  SolDtype dtype, out_dtype; // of the inputs; of y, 0: the same
  int f;                     // MAP_ADD ...
} Map;
// The fields that argument structures have alike.
#define MAP_OF(args)                                                                                         \
  .y = (args)->y, .m = (args)->m, .n = (args)->n, .y_stride = (args)->y_stride, .dtype = (args)->dtype,      \
  .out_dtype = (args)->out_dtype

SolStatus map_cpu(SolContext *ctx, const Map *map);
SolStatus map_launch(SolContext *ctx, const OpsDef *def, const Map *map, SolStream stream);
void map_reference(const Map *map, const double *a, const double *b, double times, double over, double *y);
// For `check`: the type is one that map can read and write.
bool map_takes(SolDtype dtype);
// 1 byte to 4 bytes wide, and computed with in fp32; the rest is computed with in fp64.
bool map_is_narrow(SolDtype dtype);

// Rows shorter than a chunk, chunks that hold parts of several rows, several blocks.
enum { MAP_SHAPES = 12, MAP_KERNELS = 65 };
extern const int64_t map_shapes[MAP_SHAPES][4];
extern const char *const map_kernels[MAP_KERNELS];
#define MAP_OP OPS_CASES(map_shapes, ops_row_bench), OPS_KERNELS("map", map_kernels)

#endif
