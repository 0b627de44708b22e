// Tensor copies of 16 tokens of a head: DecodeMap's five dimensions. What blocks of a cluster send each other.
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

// Says that the block runs and has initialised its barriers (barrier_init_done); cluster_started waits for all others' saying so.
INLINE void cluster_starts(void) {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
INLINE void cluster_started(void) {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// To `slot` in the shared memory of the cluster's block `rank`, whose barrier counts the bytes. Both are given by their addresses in this block.
INLINE void send_float(float *slot, float x, uint64_t *bar, int rank) {
  asm volatile(
      "{\n.reg .b32 to, counts;\nmapa.shared::cluster.u32 to, %0, %3;\nmapa.shared::cluster.u32 counts, %2, %3;\n"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [to], %1, [counts];\n}" ::"r"(shared_address(slot)),
      "f"(x), "r"(shared_address(bar)), "r"(rank)
      : "memory");
}
INLINE void wait_for_sent(uint64_t *bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}" ::"r"(
          shared_address(bar)),
      "r"(parity)
      : "memory");
}

#endif
