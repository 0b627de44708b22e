// What the decode attention kernels and their launcher share.
#ifndef SOL_KERNELS_DECODE_ATTENTION_H
#define SOL_KERNELS_DECODE_ATTENTION_H

#include <stdint.h>

typedef struct DecodeParams {
  void *o;
  const void *q, *k_cache, *v_cache;
  const int32_t *table, *lengths; // table: or NULL
  float *lse;                     // or NULL
  // Of sequences of more than one part: (batch, heads, parts, v_dim) sums, then (batch, heads, parts) largest scores, in units of
  // log 2, and as many sums of 2^(score - largest).
  float *sums, *mosts, *weights;
  int64_t o_row, q_row;
  int batch, heads, kv_heads, group, tiles;       // tiles: blocks' shares of the heads that share one of K
  int pages, page_size, page_shift;               // page_shift: log 2 of page_size, or -1
  int table_pages, capacity, window;              // capacity: the most tokens of a sequence; window: 0 for none
  int whole, part, part_most;                     // tokens: of a sequence that is not cut; of a part, at least and at most
  int many;                                       // parts of a sequence from which on they become longer
  int coarse;                                     // tokens of a part, at least, of a sequence that has fewer than `many` of the shortest
  int step;                                       // tokens that a block has at a time
  int parts;                                      // that a sequence may have
  int hint;                                       // tokens that a block brings to L2 before its predecessor has ended
  int aligned, q_aligned, kind;                   // aligned: the cache, to 16 bytes
  int slots;                                      // warps that add up a head's parts: 1 or all
  float scale, soft_cap, v_scale;
} DecodeParams;

// A CUtensorMap of five dimensions: up to 128 bytes of a head, tokens of a page, such parts of a head, heads, pages.
typedef struct __attribute__((aligned(64))) DecodeMap {
  uint64_t words[16];
} DecodeMap;
typedef struct DecodeBoxParams {
  DecodeMap k, v;
  DecodeParams all;
} DecodeBoxParams;

#define DECODE_SLOTS   8 // warps that may add up a head's parts
#define DECODE_THREADS 128
#define DECODE_ROWS 16       // heads of a tile
#define DECODE_SEQUENCES 512 // whose lengths are looked at together
#define DECODE_PARTS     32  // of a sequence, from which on they become longer; of warps alone
#define DECODE_ALONE_PARTS 128
#define DECODE_STAGES 3
#define DECODE_HINT (64 << 10) // bytes that a block brings to L2 before its predecessor has ended
#define DECODE_LATENT 576 // elements of a row of MLA's cache, of which the first are V
#define DECODE_LATENT_V 512
// bytes: of an element of the cache. What a token has in the cache, of one head.
#define DECODE_ROW_BYTES(d, v, bytes) (((d) + ((d) == DECODE_LATENT ? 0 : (v))) * (bytes))
// Shared memory of blocks whose warps have tokens of their own: what they keep at a part's end, in 1 or 2 places; queries; barriers and what
// the parts are; the sequences' parts.
#define DECODE_HEADS_SHARED(tiles, d, warps, places)                                                         \
  (8 * (tiles) * (warps) * ((places) * ((d) + 6) * 4 + (d) * 2) + (places) * 32 + (DECODE_SEQUENCES + 16) * 4)
// Blocks whose warps have items of their own: two items' queries, the last four items, the sequences' parts.
#define DECODE_ALONE_BYTES (64 << 10) // of the cache, that a warp's item has at least where a sequence has more
#define DECODE_ALONE_SHARED(d, warps) ((warps) * (2 * 8 * (d)*2 + 64 + 48) + (DECODE_SEQUENCES + 16) * 4)
// Blocks that have one part at a time, several of an SM: places of K or V of `keys` tokens of each team of warps, where what the teams keep at a part's end
// goes, too; queries, barriers, the sequences' lengths and parts. tiles: of 8 heads of a warp; ways: warps of a team.
#define DECODE_PART_WARPS 4
#define DECODE_PART_ROOM  (227 * 1024) // of an SM
#define DECODE_PART_WAVES 8            // blocks for each that runs at a time, at most
#define DECODE_PART_RING(ways, d, keys, bytes, places)                                                       \
  (DECODE_PART_WARPS / (ways) * (places) * (keys) * (d) * (bytes))
#define DECODE_PART_KEPT(tiles, d) (DECODE_PART_WARPS * 8 * (tiles) * ((d) + 6) * 4)
#define DECODE_PART_SHARED(tiles, ways, d, keys, bytes, places)                                              \
  ((DECODE_PART_RING(ways, d, keys, bytes, places) > DECODE_PART_KEPT(tiles, d)                              \
        ? DECODE_PART_RING(ways, d, keys, bytes, places)                                                     \
        : (DECODE_PART_KEPT(tiles, d) + 1023) / 1024 * 1024) +                                               \
   (ways) * (tiles) * (d)*16 + DECODE_PART_WARPS / (ways) * (places) * 8 +                                   \
   (2 * DECODE_SEQUENCES + DECODE_PART_WARPS) * 4 + 64)
// Of MLA's: tokens of a stage; stages, queries, scores, the tokens' rows in the cache, the sequences' parts; rows: heads of a block.
#define DECODE_LATENT_KEYS(bytes) (64 / (bytes))
#define DECODE_LATENT_SHARED(rows, bytes)                                                                    \
  (DECODE_STAGES * DECODE_LATENT_KEYS(bytes) * DECODE_LATENT * (bytes) + (rows) * DECODE_LATENT * 2 +        \
   (rows) * (DECODE_LATENT_KEYS(bytes) + 8) * 4 + (DECODE_STAGES + 1) * DECODE_LATENT_KEYS(bytes) * 4 +      \
   (DECODE_SEQUENCES + 16) * 4)
// Blocks for many heads that share one of K: groups of four warps, tiles of 16 heads of each.
#define DECODE_MANY_GROUPS 2
#define DECODE_MANY_TALL 2
#define DECODE_MANY_ROWS (DECODE_ROWS * DECODE_MANY_GROUPS * DECODE_MANY_TALL)
// MLA's blocks for few heads on sm_90: tiles of 64 tokens, weights, what warps exchange, barriers, the sequences' parts.
#define DECODE_FEW_SHARED                                                                                    \
  (DECODE_STAGES * 64 * DECODE_LATENT * 2 + DECODE_ROWS * (144 + 64) + 64 + (DECODE_SEQUENCES + 16) * 4)
// MLA's blocks on sm_90a: heads, and two tiles of 64 tokens, queries, weights, barriers, the sequences' parts. BOX: tokens of a copy, which are a group of
// eight rows of wgmma's.
#define DECODE_WIDE_ROWS   64
#define DECODE_WIDE_BOX    8
#define DECODE_WIDE_SHARED (3 * 64 * DECODE_LATENT * 2 + 64 * 128 + 64 * 4 + 48 + (DECODE_SEQUENCES + 16) * 4)

#endif
