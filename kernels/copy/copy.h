#ifndef SOL_KERNELS_COPY_H
#define SOL_KERNELS_COPY_H

#include "../elementwise.h"

typedef struct CopyParams {
  void *y;
  const void *x;
  Spread spread;              // in accesses of the kernel's width, bytes (any) or elements (convert)
  int64_t y_stride, x_stride; // the same
  int32_t x_kind, y_kind;     // convert
  int32_t size;               // any: bytes of an element, at most 4
  int32_t flat;               // one row: no division
} CopyParams;

#endif
