#ifndef SOL_KERNELS_COPY_H
#define SOL_KERNELS_COPY_H
#include <stdint.h>

typedef struct CopyParams {
  void *y;
  const void *x;
  uint64_t total, per_row;          // units: accesses of the kernel's width, or elements where it converts
  int64_t y_stride, x_stride;       // units
  int32_t x_kind, y_kind;           // converting alone
} CopyParams;

#endif
