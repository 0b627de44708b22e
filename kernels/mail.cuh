// What the blocks of a cluster tell the first of them. It alone waits; the others may end. See ClusterMail.
#ifndef SOL_KERNELS_MAIL_CUH
#define SOL_KERNELS_MAIL_CUH

#include "row.cuh"

// Thread 0 of the first block, when all have opened: so many bytes are to come.
INLINE void mail_expect(ClusterMail *m, int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   (uint32_t)__cvta_generic_to_shared(&m->arrived)),
               "r"(bytes)
               : "memory");
#endif
}

// Where something of this block lies in the first.
INLINE uint32_t mail_there(const void *here) {
  uint32_t there = 0;
#if __CUDA_ARCH__ >= 900
  asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(there) : "r"((uint32_t)__cvta_generic_to_shared(here)));
#endif
  return there;
}

// A float, or two, to the first block's `slot`, by its address in the own block.
INLINE void mail_put(ClusterMail *m, float *slot, float v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(mail_there(slot)),
               "f"(v), "r"(mail_there(&m->arrived))
               : "memory");
#endif
}
INLINE void mail_put_two(ClusterMail *m, float2 *slot, float2 v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(
                   mail_there(slot)),
               "f"(v.x), "f"(v.y), "r"(mail_there(&m->arrived))
               : "memory");
#endif
}

// Any thread of the first block: until all bytes are there.
INLINE void mail_await(ClusterMail *m) {
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
INLINE bool mail_to_first(ClusterMail *m, int blocks, float2 v) {
  cluster_wait(); // all of them run, and are ready
  if (threadIdx.x) return false;
  uint32_t rank = cluster_rank();
  if (!rank) mail_expect(m, blocks * (int)sizeof(float2));
  mail_put_two(m, &m->from[rank], v);
  if (!rank) mail_await(m);
  return !rank;
}

#endif
