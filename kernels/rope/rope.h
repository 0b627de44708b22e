#ifndef SOL_KERNELS_ROPE_H
#define SOL_KERNELS_ROPE_H

#include "../elementwise.h"

typedef struct RopeParams {
  void *y;
  const void *x, *cos, *sin;
  const void *positions; // NULL: the token's number
  uint64_t items;        // threads in all
  Divider head;          // by a head's items: first those that rotate, then those that are copied
  Divider heads;         // by the heads of a token
  int64_t d, half, rows; // half: of the rotated part; rows: of the tables
  int64_t y_stride, x_stride;
  int64_t turns; // items of a head that rotate
  int32_t x_kind, y_kind, weight_kind, wide_ids;
} RopeParams;

#endif
