// Rows held in registers: a group of threads, or a cluster of blocks, takes one row, loads it once, reduces over it
// and writes it once. Which group takes a row depends on the row's length alone, so its result does not depend on
// how many rows there are.
//
// A row is cut into chunks of 16 bytes of input (4 or 8 elements). Thread t of the row's `threads` (all blocks of a
// cluster together) holds chunks t, t + threads, ... In `wide` kernels a chunk is one 16-byte access, for rows that
// start on 16 bytes; in the others each element is accessed by itself, coalesced.
#ifndef SOL_KERNELS_ROW_CUH
#define SOL_KERNELS_ROW_CUH

#include "common.cuh"

enum { ROW_MAX_CHUNKS = 8 };

// Constants of a kernel, as literals: everything that depends on them folds away.
typedef struct RowShape {
  int threads; // of a block that share a row: a power of two
  int chunks;  // per thread
  int rows;    // per block
  int cluster; // blocks that share a row; 1: none. Then rows is 1
  int in, out; // bytes of an element
  int wide;    // 16-byte accesses
} RowShape;

typedef struct RowPlace {
  uint64_t row;
  int thread; // 0 .. all - 1
  int all;    // threads on this row, in all blocks
} RowPlace;

INLINE uint32_t cluster_rank(void) {
  uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

INLINE RowPlace row_place(RowShape s) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  RowPlace p;
  if (s.cluster > 1) {
    p.row = block / s.cluster;
    p.thread = (int)cluster_rank() * s.threads + threadIdx.x;
  } else {
    p.row = block * s.rows + threadIdx.x / s.threads;
    p.thread = threadIdx.x % s.threads;
  }
  p.all = s.threads * s.cluster;
  return p;
}

// Reductions. Every thread of the row gets the result, summed in an order that is the same for every row.
// max: of x, NaN passed over; highest: of x, NaN kept; softmax: x the largest, y the sum of exp(. - x)
enum { FOLD_SUM, FOLD_MAX, FOLD_SOFTMAX, FOLD_HIGHEST };

INLINE float higher(float a, float b) { // NaN above all
#if __CUDA_ARCH__ >= 800
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return a > b || a != a ? a : b;
#endif
}

INLINE float ex2(float x) { // 2^x, to 2 units in the last place; denormals become 0
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

INLINE float2 fold(float2 a, float2 b, int how) {
  if (how == FOLD_SUM) return make_float2(a.x + b.x, a.y + b.y);
  if (how == FOLD_MAX) return make_float2(fmaxf(a.x, b.x), 0);
  if (how == FOLD_HIGHEST) return make_float2(higher(a.x, b.x), 0);
  // exp(-|difference|); equal ones may be infinite: -inf is "no element yet".
  float less = a.x == b.x ? 1 : ex2(-fabsf(a.x - b.x) * 1.4426950408889634f);
  return a.x > b.x ? make_float2(a.x, fmaf(b.y, less, a.y)) : make_float2(b.x, fmaf(a.y, less, b.y));
}

INLINE float2 lanes_fold(float2 s, int how, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    if (o >= lanes) continue;
    bool alone = how == FOLD_MAX || how == FOLD_HIGHEST;
    float2 other = make_float2(__shfl_xor_sync(~0u, s.x, o), alone ? 0 : __shfl_xor_sync(~0u, s.y, o));
    s = fold(s, other, how); // the same on both sides: folds are commutative
  }
  return s;
}

INLINE void cluster_arrive(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
INLINE void cluster_wait(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

// One exchange through distributed shared memory between the blocks of a cluster: each sends two floats to all blocks,
// itself included, with st.async, and waits on its own mbarrier for those of all. barrier.cluster with release semantics
// would also wait for every global store of the block (MEMBAR.ALL.GPU).
typedef struct ClusterExchange {
  float2 from[16]; // by rank
  uint64_t arrived;
} ClusterExchange;

INLINE void exchange_init(ClusterExchange *m) { // all threads, at the start of the kernel
#if __CUDA_ARCH__ >= 900
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                 "fence.mbarrier_init.release.cluster;" ::"r"((uint32_t)__cvta_generic_to_shared(&m->arrived))
                 : "memory");
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
INLINE void exchange_all(ClusterExchange *m, int blocks, float2 v) { // all threads; v counts in the first `blocks` of them
#if __CUDA_ARCH__ >= 900
  uint32_t arrived = (uint32_t)__cvta_generic_to_shared(&m->arrived), done = 0;
  cluster_wait(); // all of them run, and are ready
  if (threadIdx.x == 0)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived),
                 "r"(blocks * (int)sizeof(float2))
                 : "memory");
  if (threadIdx.x < blocks) {
    uint32_t slot = (uint32_t)__cvta_generic_to_shared(&m->from[cluster_rank()]), there, signal;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(slot), "r"((int)threadIdx.x));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(signal) : "r"(arrived), "r"((int)threadIdx.x));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%0], {%1, %2}, [%3];" ::"r"(there),
                 "f"(v.x), "f"(v.y), "r"(signal)
                 : "memory");
  }
  while (!done)
    asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n selp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(arrived)
                 : "memory");
#endif
}

// Shared memory of one reduction: `warps` for the warps of the block, `exchange` for the blocks of the cluster. A kernel
// that reduces twice has two of them. Call row_begin first.
typedef struct RowFold {
  float2 warps[32];
  ClusterExchange exchange;
} RowFold;

INLINE void row_begin(RowShape s, RowFold *shared) {
  if (s.cluster > 1) exchange_init(&shared->exchange);
}

INLINE float2 row_fold(RowShape s, RowFold *shared, float2 v, int how) {
  if (s.threads <= 32) return lanes_fold(v, how, s.threads);
  v = lanes_fold(v, how, 32);
  int warps = s.threads / 32, warp = threadIdx.x / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) shared->warps[warp] = v;
  __syncthreads();
  v = lanes_fold(shared->warps[first + threadIdx.x % warps], how, warps);
  if (s.cluster > 1) {
    exchange_all(&shared->exchange, s.cluster, v);
    v = shared->exchange.from[0];
#pragma unroll
    for (int i = 1; i < s.cluster; i++) v = fold(v, shared->exchange.from[i], how);
  }
  return v;
}

#endif
