// What attention_items.cuh and its launcher share.
#ifndef SOL_KERNELS_ATTENTION_ITEMS_H
#define SOL_KERNELS_ATTENTION_ITEMS_H

#include "attention.h"

// A tensor whose rows begin at any element, seen as rows of eight tokens, which overlap (attention_items.cuh). The boxes of maps have eight of these rows, or as many
// as the last tokens of a sequence ask for.
enum { ATTENTION_FLAT_WHOLE, ATTENTION_FLAT_MORE, ATTENTION_FLAT_LESS, ATTENTION_FLAT_MAPS };
typedef struct AttentionFlat {
  AttentionMap maps[ATTENTION_FLAT_MAPS];
  int64_t shift; // elements from where the maps begin to the tensor
  uint64_t last; // columns up to this one are those of the row before, eight tokens further
} AttentionFlat;

typedef struct AttentionItemsParams {
  AttentionTiledParams tiled;
  AttentionFlat flat[3]; // queries, keys, values, where rows begin at any element
} AttentionItemsParams;

// Warpgroups, and one of which a warp copies; slots of keys or values, and of queries.
#define ATTENTION_ITEMS_GROUPS(d) ((d) == 256 ? 2 : 3)
#define ATTENTION_ITEMS_THREADS(d) (128 * (ATTENTION_ITEMS_GROUPS(d) + 1))
#define ATTENTION_ITEMS_SLOTS 16 // at most
#define ATTENTION_ITEMS_QUERIES(d) ((d) == 256 ? 2 : 5)
#define ATTENTION_ITEMS_REGISTERS(d) ((d) == 256 ? 232 : 160)
#define ATTENTION_ITEMS_COPY_REGISTERS(d) ((d) == 256 ? 40 : 32)
#define ATTENTION_ITEMS_SHARED (227 * 1024)

#endif
