// Rows held in registers: a group of threads, or a cluster of blocks, takes one row, loads it once, reduces over it
// and writes it once. Which group takes a row depends on the row's length alone, so its result does not depend on
// how many rows there are.
//
// A row is cut into chunks of 16 bytes of input (4 or 8 elements). Thread t of the row's `threads` (all blocks of a
// cluster together) holds chunks t, t + threads, ... In `wide` kernels a chunk is one 16-byte access, for rows that
// start on 16 bytes; in the others each element is accessed by itself, neighbouring threads beside each other.
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

// Shared memory of one reduction: `warps` for the warps of the block, `blocks` for those of the cluster. A kernel
// that reduces twice has two of them. In clusters call row_begin first and once.
typedef struct RowFold {
  float2 warps[32];
  float2 blocks[16];
} RowFold;

INLINE void row_begin(RowShape s) { // the other blocks must be running before their shared memory is written
  if (s.cluster > 1) cluster_arrive();
}
INLINE void row_begun(RowShape s) { // before the first row_fold
  if (s.cluster > 1) cluster_wait();
}

INLINE float2 row_fold(RowShape s, RowFold *shared, float2 v, int how) {
  if (s.threads <= 32) return lanes_fold(v, how, s.threads);
  v = lanes_fold(v, how, 32);
  int warps = s.threads / 32, warp = threadIdx.x / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) shared->warps[warp] = v;
  __syncthreads();
  v = lanes_fold(shared->warps[first + threadIdx.x % warps], how, warps);
#if __CUDA_ARCH__ >= 900
  if (s.cluster > 1) {
    if (threadIdx.x < s.cluster) { // into the slot of this block in every block's shared memory
      uint32_t mine = (uint32_t)__cvta_generic_to_shared(&shared->blocks[cluster_rank()]), there;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(mine), "r"((int)threadIdx.x));
      asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(v.x), "f"(v.y) : "memory");
    }
    cluster_arrive();
    cluster_wait();
    v = shared->blocks[0];
#pragma unroll
    for (int i = 1; i < s.cluster; i++) v = fold(v, shared->blocks[i], how);
  }
#endif
  return v;
}

#endif
