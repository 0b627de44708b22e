// The rungs of the softmax ladder: src/ladder/ladder_softmax.c tells their story. A block of 256 threads has a row.
#include "softmax/rungs.h"

#include "common.cuh"

enum { WARPS = SOFTMAX_THREADS / 32 };

// Both passes after the largest is known: exponentials to y with their sum in shared memory, then y again.
INLINE void write_twice(const float *x, float *y, int64_t n, float top, float *sum) {
  float part = 0;
  if (threadIdx.x == 0) *sum = 0;
  __syncthreads();
  for (int64_t c = threadIdx.x; c < n; c += SOFTMAX_THREADS) {
    float e = __expf(x[c] - top);
    y[c] = e;
    part += e;
  }
  atomicAdd(sum, part);
  __syncthreads();
  float scale = 1 / *sum;
  for (int64_t c = threadIdx.x; c < n; c += SOFTMAX_THREADS) y[c] *= scale;
}

// One thread looks for the largest, the block waits; the sum is taken with atomics.
KERNEL softmax_serial(const __grid_constant__ SoftmaxRung p) {
  __shared__ float top, sum;
  const float *x = p.x + (int64_t)blockIdx.x * p.n;
  if (threadIdx.x == 0) {
    float most = -INFINITY;
    for (int64_t c = 0; c < p.n; c++) most = fmaxf(most, x[c]);
    top = most;
  }
  __syncthreads();
  write_twice(x, p.y + (int64_t)blockIdx.x * p.n, p.n, top, &sum);
}

// All threads look for the largest; a tree in shared memory reduces what they find.
KERNEL softmax_parallel(const __grid_constant__ SoftmaxRung p) {
  __shared__ float tops[SOFTMAX_THREADS], sum;
  const float *x = p.x + (int64_t)blockIdx.x * p.n;
  float most = -INFINITY;
  for (int64_t c = threadIdx.x; c < p.n; c += SOFTMAX_THREADS) most = fmaxf(most, x[c]);
  tops[threadIdx.x] = most;
  for (int half = SOFTMAX_THREADS / 2; half; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) tops[threadIdx.x] = fmaxf(tops[threadIdx.x], tops[threadIdx.x + half]);
  }
  __syncthreads();
  write_twice(x, p.y + (int64_t)blockIdx.x * p.n, p.n, tops[0], &sum);
}

INLINE float warp_max(float f) {
#pragma unroll
  for (int o = 16; o; o >>= 1) f = fmaxf(f, __shfl_xor_sync(~0u, f, o));
  return f;
}

// Shared memory for the warps' results: one array each, as the first may still be read when the second is written.
INLINE float block_max(float f, float *part) {
  int lane = threadIdx.x % 32;
  f = warp_max(f);
  if (lane == 0) part[threadIdx.x / 32] = f;
  __syncthreads();
  return warp_max(part[lane % WARPS]);
}

INLINE float block_sum(float f, float *part) {
  int lane = threadIdx.x % 32;
  f = warp_sum(f);
  if (lane == 0) part[threadIdx.x / 32] = f;
  __syncthreads();
  return warp_sum(lane < WARPS ? part[lane] : 0);
}

// Both reductions by shuffles: no tree, no atomics, one barrier each.
KERNEL softmax_shuffles(const __grid_constant__ SoftmaxRung p) {
  __shared__ float tops[WARPS], sums[WARPS];
  const float *x = p.x + (int64_t)blockIdx.x * p.n;
  float *y = p.y + (int64_t)blockIdx.x * p.n, top = -INFINITY, sum = 0;
  for (int64_t c = threadIdx.x; c < p.n; c += SOFTMAX_THREADS) top = fmaxf(top, x[c]);
  top = block_max(top, tops);
  for (int64_t c = threadIdx.x; c < p.n; c += SOFTMAX_THREADS) {
    float e = __expf(x[c] - top);
    y[c] = e;
    sum += e;
  }
  float scale = 1 / block_sum(sum, sums);
  for (int64_t c = threadIdx.x; c < p.n; c += SOFTMAX_THREADS) y[c] *= scale;
}

INLINE float max4(float4 v) {
  return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}
INLINE float4 exp4(float4 v, float top) {
  return make_float4(__expf(v.x - top), __expf(v.y - top), __expf(v.z - top), __expf(v.w - top));
}
INLINE float sum4(float4 v) {
  return (v.x + v.y) + (v.z + v.w);
}
INLINE float4 times4(float4 v, float by) {
  return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}

INLINE void three_passes(const SoftmaxRung *p) {
  __shared__ float tops[WARPS], sums[WARPS];
  int64_t n4 = p->n / 4;
  const float4 *x = (const float4 *)p->x + (int64_t)blockIdx.x * n4;
  float4 *y = (float4 *)p->y + (int64_t)blockIdx.x * n4;
  float top = -INFINITY, sum = 0;
  for (int64_t c = threadIdx.x; c < n4; c += SOFTMAX_THREADS) top = fmaxf(top, max4(x[c]));
  top = block_max(top, tops);
  for (int64_t c = threadIdx.x; c < n4; c += SOFTMAX_THREADS) {
    float4 e = exp4(x[c], top);
    y[c] = e;
    sum += sum4(e);
  }
  float scale = 1 / block_sum(sum, sums);
  for (int64_t c = threadIdx.x; c < n4; c += SOFTMAX_THREADS) y[c] = times4(y[c], scale);
}

// 16 bytes an access.
KERNEL softmax_vectors(const __grid_constant__ SoftmaxRung p) {
  three_passes(&p);
}

// The same code; the compiler knows the block's size and is to leave room for eight of them on an SM.
KERNEL __launch_bounds__(SOFTMAX_THREADS, 8) softmax_bounds(const __grid_constant__ SoftmaxRung p) {
  three_passes(&p);
}

// exp(a - b), where a is a largest that may not exist yet.
INLINE float shrink(float a, float b) {
  return a == -INFINITY ? 0 : __expf(a - b);
}

// Online: largest and sum in one reading, the sum shrunk whenever a larger element comes; x is read again and y
// written once.
KERNEL __launch_bounds__(SOFTMAX_THREADS, 8) softmax_online(const __grid_constant__ SoftmaxRung p) {
  __shared__ float tops[WARPS], sums[WARPS];
  int64_t n4 = p.n / 4;
  const float4 *x = (const float4 *)p.x + (int64_t)blockIdx.x * n4;
  float4 *y = (float4 *)p.y + (int64_t)blockIdx.x * n4;
  float mine = -INFINITY, sum = 0;
  for (int64_t c = threadIdx.x; c < n4; c += SOFTMAX_THREADS) {
    float4 v = x[c];
    float most = fmaxf(mine, max4(v));
    sum = sum * shrink(mine, most) + sum4(exp4(v, most));
    mine = most;
  }
  float top = block_max(mine, tops);
  float scale = 1 / block_sum(sum * shrink(mine, top), sums);
  for (int64_t c = threadIdx.x; c < n4; c += SOFTMAX_THREADS) y[c] = times4(exp4(x[c], top), scale);
}
