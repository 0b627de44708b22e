//! alloc words 8*4 zero
//! alloc slots 200*4 poison
//! alloc errors 32 zero
//! launch queue grid=4 block=50 args=words,slots
//! launch queue_check grid=1 block=1 args=words,slots,errors
//! checks 5
// cuda::atomic_ref with memory orders: a many-producer many-consumer queue between blocks, fetch_max,
// compare_exchange.
#include "check.cuh"
#include <cuda/atomic>

typedef cuda::atomic_ref<unsigned, cuda::thread_scope_device> Ref;

// Even blocks produce, odd blocks consume; both take numbers from counters.
extern "C" __global__ void queue(unsigned *words, unsigned *slots) {
  Ref head(words[0]), tail(words[1]), sum(words[2]), most(words[3]), product(words[4]);
  unsigned i = global_thread();
  if (blockIdx.x % 2 == 0) {
    unsigned at = head.fetch_add(1, cuda::memory_order_relaxed);
    Ref(slots[at]).store(1000 + i, cuda::memory_order_release);
  } else {
    unsigned at = tail.fetch_add(1, cuda::memory_order_relaxed), v;
    while ((v = Ref(slots[at]).load(cuda::memory_order_acquire)) == 0xa5a5a5a5u) {
    }
    sum.fetch_add(v, cuda::memory_order_acq_rel);
    most.fetch_max(v);
    unsigned old = product.load();
    while (!product.compare_exchange_weak(old, old * 3 + 1)) {
    }
  }
}

extern "C" __global__ void queue_check(const unsigned *words, const unsigned *slots, unsigned *errors) {
  unsigned sum = 0, most = 0, product = 0;
  for (unsigned i = 0; i < 200; i++)
    if (i / 50 % 2 == 0) sum += 1000 + i, most = 1000 + i, product = product * 3 + 1;
  EXPECT_EQ(0, words[0], 100u);
  EXPECT_EQ(1, words[1], 100u);
  EXPECT_EQ(2, words[2], sum);
  EXPECT_EQ(3, words[3], most);
  EXPECT_EQ(4, words[4], product); // every update counted once
}
