// Tensor copies of 16 tokens of a head: DecodeMap's five dimensions.
#ifndef SOL_KERNELS_DECODE_ATTENTION_BOXES_CUH
#define SOL_KERNELS_DECODE_ATTENTION_BOXES_CUH

#include "hopper.cuh"

INLINE void tensor_load_5d(void *to, const void *map, uint64_t *bar, int x, int y, int z, int v, int w) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z), "r"(v), "r"(w)
      : "memory");
}

#endif
