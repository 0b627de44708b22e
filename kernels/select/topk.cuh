// topk: the sorted list of a row, written out.
#ifndef SOL_KERNELS_SELECT_TOPK_CUH
#define SOL_KERNELS_SELECT_TOPK_CUH

#include "list.cuh"
#include "select.h"

template <int kind, int threads, class L> INLINE void topk_row(const TopkParams &p, L *list, int stage) {
  const int in = kind == KIND_FP32 ? 4 : 2;
  Part part = part_of<threads>(p.x, p.x_stride, p.n, in, p.m);
  if (part.row >= p.m) return;
  list_largest<kind, 1, threads>(part, list, stage, (uint32_t)p.k);
  if (part.blocks > 1) cluster_arrive();
  const int64_t to = (int64_t)part.row * p.values_stride, id = (int64_t)part.row * p.ids_stride;
  uint16_t *values = (uint16_t *)p.values + to * (in / 2);
  int32_t *ids = (int32_t *)p.ids + (p.wide_ids ? 2 * id : id);
  for (int i = part.thread; part.rank == 0 && i < (int)p.k; i += threads) {
    uint32_t key = entry_key(list->entry[i]), column = entry_column(list->entry[i]);
    uint32_t bits = bits_of_key<kind>(key);
    // The sign of a zero and the bits of a NaN are not in the key.
    if (!key_is_plain<kind>(key))
      bits = in == 4 ? ((const uint32_t *)part.x.at)[column] : ((const uint16_t *)part.x.at)[column];
    if (in == 4)
      ((uint32_t *)values)[i] = bits;
    else
      values[i] = (uint16_t)bits;
    if (p.wide_ids)
      ((int64_t *)ids)[i] = column;
    else
      ids[i] = (int32_t)column;
  }
  if (part.blocks > 1) cluster_wait();
}

LIST_KERNELS(topk, TopkParams, List, topk_row)

#endif
