//! arch sm_90
//! alloc x 8*128*4 random-u32
//! alloc y 8*128*4 poison
//! alloc errors 32 zero
//! launch send grid=8 block=128 cluster=4 args=x,y
//! launch send_check grid=8 block=128 args=x,y,errors
//! checks 1024
// Copies from one block's shared memory to another's (cp.async.bulk between blocks of a cluster), announced
// at an mbarrier of the receiver; and a remote arrive that says the buffer may be left.
#include "check.cuh"

__device__ unsigned address(const void *p) {
  return (unsigned)__cvta_generic_to_shared(p);
}
__device__ unsigned map_to(unsigned at, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
  return there;
}
__device__ void wait(unsigned bar, unsigned parity) {
  unsigned done;
  do
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
                 "selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
  while (!done);
}

extern "C" __global__ void send(const unsigned *x, unsigned *y) {
  __shared__ __align__(16) unsigned out[128], in[128];
  __shared__ __align__(8) unsigned long long full, done;
  unsigned t = threadIdx.x, rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full)) : "memory");
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(address(&done)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], 512; }" ::"r"(
                     address(&full))
                 : "memory");
  }
  out[t] = x[blockIdx.x * 128 + t] + rank;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (t == 0) { // to the next block, and to its barrier
    unsigned next = (rank + 1) % 4;
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 512, [%2];" ::"r"(
            map_to(address(in), next)),
        "r"(address(out)), "r"(map_to(address(&full), next))
        : "memory");
  }
  wait(address(&full), 0);
  y[blockIdx.x * 128 + t] = in[127 - t];
  // Each thread tells the sender; the sender leaves when all 128 have.
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                   map_to(address(&done), (rank + 3) % 4))
               : "memory");
  wait(address(&done), 0);
}

extern "C" __global__ void send_check(const unsigned *x, const unsigned *y, unsigned *errors) {
  unsigned t = threadIdx.x, b = blockIdx.x, before = b / 4 * 4 + (b + 3) % 4;
  EXPECT_EQ(b * 128 + t, y[b * 128 + t], x[before * 128 + 127 - t] + before % 4);
}
