// What the attention kernels and their launcher share.
#ifndef SOL_KERNELS_ATTENTION_H
#define SOL_KERNELS_ATTENTION_H

#include <stdint.h>

// Strides count elements. Sequence b's query i is at b * q_batch + i * q_row, or, with starts, at (q_starts[b] + i) * q_row.
typedef struct AttentionParams {
  void *o;
  const void *q, *k, *v;
  float *lse; // or NULL; sequence b, head h, query i: b * lse_batch + h * lse_head + i, with starts q_starts[b] more
  const int32_t *q_starts, *kv_starts; // or NULL
  int64_t o_row, q_row, k_row, v_row, o_batch, q_batch, k_batch, v_batch, lse_batch, lse_head;
  int q_tokens, kv_tokens, queries, keys, batch, heads, group; // group: heads that share one of K
  // Tiles of 64 queries of all heads and sequences; heads of a tile, 1, 2 or 4, of which each has few enough queries and keys.
  int64_t tiles;
  int pack;
  int causal, window;                                          // window: 0 for none
  int aligned;                                                 // rows of all four begin at multiples of 16 bytes
  float scale, soft_cap;
} AttentionParams;

// A CUtensorMap of four dimensions: a head's elements, tokens, heads, sequences; swizzled over 128 bytes.
typedef struct __attribute__((aligned(64))) AttentionMap {
  uint64_t words[16];
} AttentionMap;

typedef struct AttentionTiledParams {
  AttentionMap q, k, v;
  AttentionParams all;
  int rows;   // tiles of queries of a sequence
  int span;   // brief, pair: queries of a tile
  int each, more; // brief, pair: heads of a tile, and how many tiles have one more
  int box, slots; // pair: rows of a slot, and how many slots there are
  int nearby; // heads, over all sequences, whose tiles go together: so many keys and values stay in L2
  int packed; // tiled: blocks count the tiles of each sequence, most of which have fewer than they may
} AttentionTiledParams;

// attention_mma.cuh: blocks of 64 queries, 16 a warp.
#define ATTENTION_THREADS 128
#define ATTENTION_ROWS 64
#define ATTENTION_KEYS(d) ((d) == 256 ? 32 : 64)
#define ATTENTION_BLOCKS(d) ((d) == 64 ? 3 : 2) // of an SM
#define ATTENTION_SHARED(d) ((ATTENTION_ROWS + 4 * ATTENTION_KEYS(d)) * (d) * 2)

// attention_brief.cuh: tiles of one or two halves of 64 queries and keys; a warp that copies, and a warpgroup.
#define ATTENTION_BRIEF_THREADS 160
#define ATTENTION_BRIEF_ROWS 64
#define ATTENTION_BRIEF_STAGES 2
#define ATTENTION_BRIEF_BLOCKS(d, halves) (256 / (d) / (halves)) // of an SM
#define ATTENTION_BRIEF_SHARED(d, halves) (3 * ATTENTION_BRIEF_STAGES * (halves)*ATTENTION_BRIEF_ROWS * (d) * 2 + 64)
// The same where rows begin at any element: threads that copy, blocks of an SM, registers of a thread that copies and of one that multiplies.
#define ATTENTION_ODD_COPY_THREADS(d) ((d) == 256 ? 256 : 128)
#define ATTENTION_ODD_BLOCKS(d) ((d) == 64 ? 3 : 256 / (d))
#define ATTENTION_ODD_COPY_REGISTERS(d) ((d) == 256 ? 128 : (d) == 128 ? 104 : 64)
#define ATTENTION_ODD_REGISTERS(d) ((d) == 256 ? 240 : (d) == 128 ? 152 : 96)

// attention_pair.cuh: two warpgroups, and one that copies; slots of queries, keys or values.
#define ATTENTION_PAIR_THREADS 384
#define ATTENTION_PAIR_SLOTS   16 // at most
#define ATTENTION_PAIR_SHARED  (227 * 1024)
#define ATTENTION_PAIR_REGISTERS(odd) ((odd) ? 224 : 232)
#define ATTENTION_PAIR_COPY_REGISTERS(odd) ((odd) ? 56 : 40)

// attention_wgmma.cuh: a warpgroup that copies, and two of 64 queries each; packed sequences, at most, whose tiles blocks count.
#define ATTENTION_SEQUENCES 1024
#define ATTENTION_TILED_THREADS 384
#define ATTENTION_TILED_ROWS 128
#define ATTENTION_TILED_KEYS(d) ((d) == 256 ? 64 : 128)
#define ATTENTION_STAGES(d) ((d) == 64 ? 3 : 2)
// Queries, stages of keys and values, results (which for 256 take the queries' place), barriers, the sequences' tiles.
#define ATTENTION_TILED_SHARED(d)                                                                            \
  (((d) == 256 ? 1 : 2) * ATTENTION_TILED_ROWS * (d) * 2 + 2 * ATTENTION_STAGES(d) * ATTENTION_TILED_KEYS(d) * (d) * 2 + \
   256 + (ATTENTION_SEQUENCES + 16) * 4)

#endif
