#ifndef SOL_KERNELS_GROUP_NORM_H
#define SOL_KERNELS_GROUP_NORM_H

#include "../elementwise.h"
#include "../held.h"
#include "../parts.h"
#include "../ring.h"
#include "../stream.h"

enum { GROUP_NORM_SHARED = 200 << 10 }; // of a block, at most
enum { GROUP_NORM_AFFINES = 2048 }; // channels whose weights and biases a block has, at most: of pieces.cuh

enum { GROUP_NORM_OWN = 4 }; // chunks that a thread has in registers where blocks all over the GPU have a group

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
  // Of pieces.cuh:
  PartShape parts; // of a block, a cluster, or of blocks all over the GPU
  int32_t turns;   // chunks of a thread that there is shared memory for
  int64_t ahead;       // what is so many bytes further on is prefetched into L2; 0: nothing
  RingShape ring;
  StreamShape stream;
  int32_t affines; // ring: of a part, at most
  Divider32 divider32; // by the elements of a channel, or by more than a piece has
} GroupNormParams;

#endif
