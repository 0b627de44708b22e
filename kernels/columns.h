// Parameters of scale_columns, bias_relu_scale and bias_gelu: y = f(x, vector[column]).
#ifndef SOL_KERNELS_COLUMNS_H
#define SOL_KERNELS_COLUMNS_H

#include "elementwise.h"

typedef struct ColumnsParams {
  void *y;
  const void *x;
  const void *vector; // NULL: none
  Spread spread;
  int64_t n, y_stride, x_stride; // elements
  int32_t x_kind, y_kind, vector_kind, flat;
  int32_t pieces; // the vector is loaded by pieces of four elements: it has some
  float scale;
} ColumnsParams;

enum { COLUMNS_EACH = 4, COLUMNS_ROWS = 4, COLUMNS_APART = 8 }; // large odd rows: chunks of a thread; any: rows of a thread, and from row to row

// For the lean kernels: rows of whole chunks, or dense odd rows, all on 16-byte boundaries and fewer than 2^31 elements
// or chunks. x and y are of the same type, or one of them is fp32; the vector is of x's type or fp32.
typedef struct ColumnsLean {
  void *y;
  const void *x;
  const void *vector;         // NULL: none
  int64_t y_stride, x_stride; // bytes
  uint32_t chunks, total;     // total: elements; odd rows alone, whose last chunk may be short
  Divider32 divider;          // by the chunks of a row; odd rows: by N
  Divider32 period;           // large odd rows: by the chunks after which a row starts with a chunk again
  uint32_t whole;             // odd rows: chunks that are whole
  int32_t x_kind, y_kind, vector_kind;
  int32_t ends; // of rows of whole chunks, as Spread's
  float scale;
} ColumnsLean;

#endif
