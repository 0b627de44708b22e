#ifndef SOL_KERNELS_GROUP_NORM_H
#define SOL_KERNELS_GROUP_NORM_H

#include "../elementwise.h"
#include "../held.h"

enum { GROUP_NORM_SHARED = 200 << 10 }; // of a block, at most

typedef struct GroupNormParams {
  void *y;
  const void *x, *weight, *bias; // weight and bias: NULL: none
  int64_t n;                     // elements of a group
  uint64_t groups, channels;     // of a batch; channels of a group
  Divider divider;               // by the elements of a channel
  int32_t x_kind, y_kind, weight_kind;
  int32_t alike; // where x has 16 bytes, y has as many elements on a boundary of their size
  float eps;
  HeldShape held;
} GroupNormParams;

#endif
