#ifndef SOL_KERNELS_ROPE_H
#define SOL_KERNELS_ROPE_H

#include "../elementwise.h"
#include "../tile.h"

enum {
  ROPE_THREADS = 128,
  ROPE_HEADS = 1,
  ROPE_NEIGHBOURS = 2,
  ROPE_EIGHTS = 2,
  ROPE_FOURS = 4
}; // wide kernels: of a block; heads that a thread takes
// Joined heads that a thread takes; threads of a block, where these exchange elements.
enum { ROPE_LOOSE = 4, ROPE_WINDOWS = 4, ROPE_WINDOW_THREADS = 128 };
// Straight from memory: heads that a thread takes at most, of one token, or of several.
enum { ROPE_MANY = 4, ROPE_FEW = 1, ROPE_TOKENS = 2 };
// By words: threads of a block, bytes of its shared memory.
enum { ROPE_TILE_THREADS = 128, ROPE_TILE_BYTES = 24 << 10 };

typedef struct RopeParams {
  void *y;
  const void *x, *cos, *sin;
  const void *positions; // NULL: the token's number
  uint64_t items;        // threads in all
  Divider head;          // by a head's items: first those that rotate, then those that are copied
  Divider groups;        // by the groups of heads of a token; a thread takes an item of all heads of a group
  Divider32 head32, groups32;   // the same for wide kernels
  int64_t heads, d, half, rows; // half: of the rotated part; rows: of the tables
  int64_t y_stride, x_stride;
  int64_t turns; // items of a head that rotate
  uint32_t tokens,
      ahead;     // wide: the tables' row for the token this many further on is prefetched into L2; 0: none
  int32_t hints; // wide: prefetch everything into L2 while the predecessor runs
  int32_t x_kind, y_kind, weight_kind, wide_ids;
  int64_t last;            // any, by words: the last token's number
  TileShape tile;          // rows are tokens, columns all elements of one
  int32_t x_unit, y_unit;  // bytes that all places in shared memory where pairs start are multiples of
  int32_t neighbours;      // pairs are neighbours
  int32_t few;             // straight from memory: a thread has ROPE_FEW heads of ROPE_TOKENS tokens
  int32_t per;             // straight from memory: elements of an access
  Divider32 d32, blocks32; // joined heads: by the columns of a head; by the blocks on a token
  uint32_t joined;         // joined heads of a token
  uint32_t block_tokens;   // of a block, where threads exchange elements
  int32_t ends;            // bytes of y's tokens where their ends are prefetched; 0: they are not
  int32_t lanes;           // by words: threads with the same unit of a token, which share its heads
} RopeParams;

#endif
