// Hopper's asynchronous instructions, one function each: mbarriers, tensor copies (TMA), wgmma, clusters. sm_90a alone.
#ifndef SOL_KERNELS_HOPPER_CUH
#define SOL_KERNELS_HOPPER_CUH

#include "common.cuh"

INLINE uint32_t shared_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

// ---- mbarriers ----

INLINE void barrier_init(uint64_t *bar, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to tensor copies and to the cluster's other blocks.
INLINE void barrier_init_done(void) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

INLINE void barrier_wait(uint64_t *bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra AGAIN;\n}" ::"r"(
          shared_address(bar)),
      "r"(parity)
      : "memory");
}

// At the barrier of the cluster's block `rank`. Without a scope: one of the cluster would be a fence of all memory, about
// a thousand clocks, which shared memory that only asynchronous copies write does not need.
INLINE void barrier_arrive(uint64_t *bar, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\nmbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(
          shared_address(bar)),
      "r"(rank)
      : "memory");
}

INLINE void barrier_expect(uint64_t *bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
               : "memory");
}

// ---- clusters ----

INLINE uint32_t block_rank(void) {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

INLINE void cluster_sync(void) {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// `count` threads, whole warps; id 0 is __syncthreads'.
INLINE void named_sync(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

// ---- tensor copies of three dimensions ----

INLINE void tensor_load(void *to, const void *map, uint64_t *bar, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z)
      : "memory");
}

// To the same place in, and completing the same barrier of, every block of the cluster whose bit is set.
INLINE void tensor_load_all(void *to, const void *map, uint64_t *bar, int x, int y, int z, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z), "h"(blocks)
      : "memory");
}

INLINE void tensor_store(const void *map, const void *from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
               "r"(shared_address(from)), "r"(x), "r"(y), "r"(z)
               : "memory");
}

INLINE void tensor_store_commit(void) {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until all but `left` of this thread's committed stores have read their shared memory.
template <int left> INLINE void tensor_store_read(void) {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}

INLINE void tensor_prefetch_map(const void *map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// What was written to shared memory is seen by the asynchronous proxy, after a barrier by other threads' copies, too.
INLINE void async_fence(void) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// ---- wgmma ----

// A tile in shared memory, swizzled over 128 bytes, that begins at a multiple of 1024. stride: bytes between groups of
// eight rows (K-major) or eight k (MN-major); leading: MN-major alone, between groups of 64 rows.
INLINE uint64_t matrix_descriptor(uint32_t address, uint32_t leading, uint32_t stride = 1024) {
  return (uint64_t)(address & 0x3ffff) >> 4 | (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 |
         (uint64_t)1 << 62;
}

INLINE void wgmma_fence(void) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
INLINE void wgmma_commit(void) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int left> INLINE void wgmma_wait(void) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(left) : "memory");
}

#endif
