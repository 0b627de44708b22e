// Sends through distributed shared memory from the blocks of a cluster to the first of them. Only that block waits; the
// others may end. See ClusterExchange in row.cuh for an exchange between all blocks.
#ifndef SOL_KERNELS_CLUSTER_EXCHANGE_CUH
#define SOL_KERNELS_CLUSTER_EXCHANGE_CUH

#include "row.cuh"

// Thread 0 of the first block, after all blocks have called exchange_init: how many bytes will arrive.
INLINE void exchange_expect(ClusterExchange *m, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   (uint32_t)__cvta_generic_to_shared(&m->arrived)),
               "r"(bytes)
               : "memory");
#endif
}

// The shared::cluster address in the first block of a variable of this block's shared memory.
INLINE uint32_t exchange_remote(const void *here) {
  uint32_t there = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"((uint32_t)__cvta_generic_to_shared(here)));
#endif
  return there;
}

// st.async of one float, or two, to `slot` of the first block, given by its address in this block.
INLINE void exchange_send(ClusterExchange *m, float *slot, float v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(exchange_remote(slot)),
               "f"(v), "r"(exchange_remote(&m->arrived))
               : "memory");
#endif
}
INLINE void exchange_send_two(ClusterExchange *m, float2 *slot, float2 v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
                   exchange_remote(slot)),
               "f"(v.x), "f"(v.y), "r"(exchange_remote(&m->arrived))
               : "memory");
#endif
}

// Any thread of the first block: waits until all expected bytes have arrived.
INLINE void exchange_wait(ClusterExchange *m) {
#if __CUDA_ARCH__ >= 900
  uint32_t done = 0;
  while (!done)
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"((uint32_t)__cvta_generic_to_shared(&m->arrived))
                 : "memory");
#endif
}

// All threads; thread 0's v goes to the first block, whose thread 0 alone gets true and then finds all of them in m->from.
INLINE bool exchange_to_first(ClusterExchange *m, int blocks, float2 v) {
  cluster_wait(); // all blocks run, and their mbarriers are initialised
  if (threadIdx.x) return false;
  uint32_t rank = cluster_rank();
  if (!rank) exchange_expect(m, blocks * (int)sizeof(float2));
  exchange_send_two(m, &m->from[rank], v);
  if (!rank) exchange_wait(m);
  return !rank;
}

#endif
