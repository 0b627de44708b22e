// What the kernels of add, relu, gated_mul and cast share with their launcher: y = f(a, b), element by element.
#ifndef SOL_KERNELS_MAP_H
#define SOL_KERNELS_MAP_H

#include "../elementwise.h"

// Element types in addition to those of common.h.
enum { KIND_INT8 = 4, KIND_FP64, KIND_INT32, KIND_INT64 };

// f: MAP_SELF is a itself; the last four are activation(a) * b.
enum { MAP_SELF = 0, MAP_ADD, MAP_RELU, MAP_GELU_MUL, MAP_RELU_MUL, MAP_SIGMOID_MUL, MAP_SILU_MUL };

// Threads of a block, and chunks of a thread: two where one side has few bytes in flight.
#define MAP_EACH(in, out)     ((in) == (out) ? 1 : 2)
#define MAP_ANY_EACH(in, out) ((in) < (out) ? 2 : 1)
enum { MAP_THREADS = 256, MAP_WIDE_EACH = 2, MAP_EXACT_EACH = 2 };

typedef struct MapParams {
  void *y;
  const void *a, *b;                    // b: NULL where f takes one input
  const float *a_scale, *y_scale;       // y = f(a * a_scale, b) / y_scale; NULL: 1
  Spread spread;                        // wide: chunks are pairs of elements
  int64_t y_stride, a_stride, b_stride; // elements
  int32_t a_kind, y_kind, flat, f;
  Divider32 row32;        // lean rows: by the chunks of one
  int32_t a_size, y_size; // bytes of an element: wide
} MapParams;

#endif
