// Cooperative groups and libcu++ barriers, pipelines and atomics: breadth, not sense.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>
namespace cg = cooperative_groups;
__global__ void k1(int *p, int n) {
  auto g = cg::this_grid();
  auto b = cg::this_thread_block();
  extern __shared__ int sm[];
  auto t = cg::tiled_partition<32>(b);
  auto t4 = cg::tiled_partition<4>(t);
  int v = p[g.thread_rank()];
  v = cg::reduce(t, v, cg::plus<int>());
  v += cg::reduce(t4, v, cg::greater<int>());
  float f = cg::reduce(t, (float)v, cg::plus<float>());
  long long l = cg::reduce(t, (long long)v, cg::bit_xor<long long>());
  v += cg::inclusive_scan(t, v);
  v += cg::exclusive_scan(t4, v, cg::plus<int>());
  auto c = cg::coalesced_threads();
  if (v & 1) {
    auto a = cg::coalesced_threads();
    v += a.size() + a.shfl(v, 0) + a.any(v > 3) + a.ballot(v > 2) + a.match_any(v);
    v += cg::reduce(a, v, cg::plus<int>());
  }
  auto bp = cg::binary_partition(t, v & 1);
  v += bp.size();
  auto lp = cg::labeled_partition(c, v);
  v += lp.size();
  cg::memcpy_async(b, sm, p, sizeof(int) * 128);
  cg::wait(b);
  b.sync();
  g.sync();
  p[g.thread_rank()] = v + sm[threadIdx.x] + (int)f + (int)l + t.shfl_xor(v, 3) + t.shfl_up(v, 1) +
                       (int)t.shfl_down((double)v, 1);
  cg::invoke_one(t, [&] { p[0] = 1; });
}
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
__global__ void __cluster_dims__(2, 1, 1) k2(int *p) {
  auto c = cg::this_cluster();
  __shared__ int s[32];
  s[threadIdx.x & 31] = p[threadIdx.x];
  c.sync();
  int *r = c.map_shared_rank(s, c.block_rank() ^ 1);
  p[threadIdx.x] = r[0] + c.query_shared_rank(r) + c.num_blocks() + c.dim_blocks().x;
  c.barrier_arrive();
  c.barrier_wait();
}
#endif
__global__ void k3(int *p, int *q, size_t n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) int s[256];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(cg::this_thread_block(), s, p, cuda::aligned_size_t<16>(1024), bar);
  bar.arrive_and_wait();
  auto tok = bar.arrive();
  bar.wait(std::move(tok));
  bar.arrive_and_drop();
  q[threadIdx.x] = s[threadIdx.x];
}
__global__ void k4(int *p, int *q) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st;
  __shared__ int s[2][256];
  auto b = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(b, &st);
  for (int i = 0; i < 4; i++) {
    pipe.producer_acquire();
    cuda::memcpy_async(b, s[i & 1], p + i * 256, sizeof(int) * 256, pipe);
    pipe.producer_commit();
    pipe.consumer_wait();
    q[i] = s[i & 1][threadIdx.x];
    pipe.consumer_release();
  }
  auto tp = cuda::make_pipeline();
  tp.producer_acquire();
  cuda::memcpy_async(&s[0][threadIdx.x], p, sizeof(int), tp);
  tp.producer_commit();
  cuda::pipeline_consumer_wait_prior<0>(tp);
  tp.consumer_release();
}
__global__ void k5(int *p, long long *l, double *d, float *f) {
  cuda::atomic_ref<int, cuda::thread_scope_device> a(*p);
  a.fetch_add(1, cuda::memory_order_relaxed);
  a.store(3, cuda::memory_order_release);
  int x = a.load(cuda::memory_order_acquire);
  a.compare_exchange_strong(x, 5);
  a.exchange(7);
  a.fetch_max(9);
  a.fetch_and(3);
  a.wait(4);
  a.notify_all();
  cuda::atomic_ref<long long, cuda::thread_scope_system> b(*l);
  b.fetch_add(1);
  b.fetch_min(3, cuda::memory_order_acq_rel);
  cuda::atomic_ref<double, cuda::thread_scope_block> c(*d);
  c.fetch_add(1.0);
  cuda::atomic_ref<float, cuda::thread_scope_device> e(*f);
  e.fetch_max(1.0f);
  e.fetch_sub(2.f);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_device);
  cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_block);
  cuda::atomic_ref<char, cuda::thread_scope_device> h(*(char *)p);
  h.fetch_add(1);
  cuda::atomic_ref<short, cuda::thread_scope_device> sh(*(short *)p);
  sh.fetch_or(1);
}
