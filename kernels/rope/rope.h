#ifndef SOL_KERNELS_ROPE_H
#define SOL_KERNELS_ROPE_H

#include "../elementwise.h"

enum { ROPE_SHARED = 64 << 10 }; // tile: at most
enum {
  ROPE_THREADS = 128,
  ROPE_HEADS = 1,
  ROPE_NEIGHBOURS = 2
}; // wide kernels: of a block; heads that a thread takes

typedef struct RopeParams {
  void *y;
  const void *x, *cos, *sin;
  const void *positions; // NULL: the token's number
  uint64_t items;        // threads in all
  Divider head;          // by a head's items: first those that rotate, then those that are copied
  Divider groups;        // by the groups of heads of a token; a thread takes an item of all heads of a group
  Divider32 head32, groups32;   // the same for wide kernels; tile: by a head's pairs and by a token's heads
  int64_t heads, d, half, rows; // half: of the rotated part; rows: of the tables
  int64_t y_stride, x_stride;
  int64_t turns; // items of a head that rotate
  uint32_t tokens,
      ahead;     // wide: the tables' row for the token this many further on is prefetched into L2; 0: none
  int32_t hints; // wide: prefetch everything into L2 while the predecessor runs
  int32_t x_kind, y_kind, weight_kind, wide_ids;
  int32_t neighbours;        // tile, narrow: pairs are neighbours
  uint64_t tile_tokens;      // tile: in all
  uint32_t tile_rows, parts; //: tokens of a block, or blocks of a token: one of them is 1
  int64_t part;              // heads of a block; of all tokens, where it has several
  int32_t x_pitch, y_pitch;  // of a token's heads in shared memory, in bytes; 0: tokens follow each other
  int32_t room;              // of all of x there; 0: y takes its place
} RopeParams;

#endif
