// What attention_items.cuh and its launcher share.
#ifndef SOL_KERNELS_ATTENTION_ITEMS_H
#define SOL_KERNELS_ATTENTION_ITEMS_H

// Warpgroups, and one of which a warp copies; slots of keys or values, at most, and of queries; registers of a thread that multiplies and of one that copies.
#define ATTENTION_ITEMS_GROUPS 3
#define ATTENTION_ITEMS_THREADS (128 * (ATTENTION_ITEMS_GROUPS + 1))
#define ATTENTION_ITEMS_SLOTS 16
#define ATTENTION_ITEMS_QUERIES 5
#define ATTENTION_ITEMS_REGISTERS(odd) ((odd) ? 152 : 160)
#define ATTENTION_ITEMS_COPY_REGISTERS(odd) ((odd) ? 56 : 32)
#define ATTENTION_ITEMS_SHARED (227 * 1024)

#endif
