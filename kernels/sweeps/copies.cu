// A copy by a kernel's loads and stores, and by the SM's bulk copy unit.
#include "rungs.h"

// 16 bytes a thread; the elements that fill none come last.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) copies_kernel(const __grid_constant__ SweepCopy p) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x, whole = p.n / 4;
  if (i < whole) ((float4 *)p.y)[i] = ((const float4 *)p.x)[i];
  else if (i - whole < p.n % 4) p.y[i + whole * 3] = p.x[i + whole * 3];
}

// A block's chunk of p.shift elements goes to shared memory and on to y without passing through registers: one thread
// issues two bulk copies and waits.
extern "C" __global__ void __launch_bounds__(32) copies_bulk(const __grid_constant__ SweepCopy p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) float chunk[];
  __shared__ uint64_t arrived;
  uint64_t first = blockIdx.x * p.shift, count = p.n - first < p.shift ? p.n - first : p.shift;
  uint32_t bytes = (uint32_t)(count / 4 * 16);
  for (uint64_t i = first + count / 4 * 4 + threadIdx.x; i < first + count; i += 32) p.y[i] = p.x[i];
  if (threadIdx.x || !bytes) return;
  uint32_t at = (uint32_t)__cvta_generic_to_shared(chunk), barrier = (uint32_t)__cvta_generic_to_shared(&arrived);
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(at),
               "l"(p.x + first), "r"(bytes), "r"(barrier)
               : "memory");
  for (uint32_t done = 0; !done;)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(barrier)
                 : "memory");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(p.y + first), "r"(at), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); // shared memory ends with the block
#endif
}
