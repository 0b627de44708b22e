// The parts of a sequence's head become one. Sequences of one part are finished already.
#ifndef SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH
#define SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH

#include "decode_attention/decode_attention_items.cuh"
#include "mma.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800
// Slot i has parts i, i + SLOTS and so on, and the slots' sums are added in order: by a warp each (p.slots is SLOTS), or all
// by one warp where there are no more parts than slots, with the same bits. Lane l has columns l, l + 32 and so on.
template <int V> struct DecodeCombine {
  enum { EACH = V / 32, SLOTS = DECODE_SLOTS };

  static __device__ __forceinline__ void sum_slot(const DecodeParams &p, float (&sum)[EACH + 1], int64_t first, int parts, float most, int slot) {
#pragma unroll(EACH > 4 ? 2 : 8)
    for (int i = slot; i < parts; i += SLOTS) {
      float by = exp_two(p.mosts[first + i] - most);
      sum[EACH] = __fadd_rn(sum[EACH], __fmul_rn(p.weights[first + i], by));
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[j] = __fadd_rn(sum[j], __fmul_rn(by, p.sums[(first + i) * V + threadIdx.x % 32 + j * 32]));
    }
  }

  // Of no more than SLOTS parts: all loads at once.
  static __device__ __forceinline__ void sum_all(const DecodeParams &p, float (&all)[EACH], int64_t first, int parts, float *most, float *weight) {
    float x[SLOTS][EACH], m[SLOTS], w[SLOTS], top = -INFINITY;
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
      bool there = i < parts;
      m[i] = there ? p.mosts[first + i] : -INFINITY, w[i] = there ? p.weights[first + i] : 0;
#pragma unroll
      for (int j = 0; j < EACH; j++) x[i][j] = there ? p.sums[(first + i) * V + threadIdx.x % 32 + j * 32] : 0;
    }
#pragma unroll
    for (int i = 0; i < SLOTS; i++) top = fmaxf(top, m[i]);
    *most = top == -INFINITY ? 0 : top, *weight = 0;
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
      float by = exp_two(m[i] - *most);
      *weight = __fadd_rn(*weight, __fmul_rn(w[i], by));
#pragma unroll
      for (int j = 0; j < EACH; j++) all[j] = __fadd_rn(all[j], __fmul_rn(by, x[i][j]));
    }
  }

  // The largest score of all parts, the same in every warp. A part that sees nothing has -infinity, and a weight of 0.
  static __device__ __forceinline__ float most_of(const DecodeParams &p, int64_t first, int parts) {
    float m = -INFINITY;
#pragma unroll 4
    for (int i = threadIdx.x % 32; i < parts; i += 32) m = fmaxf(m, p.mosts[first + i]);
#pragma unroll
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    return m == -INFINITY ? 0 : m;
  }

  static __device__ __forceinline__ void store(const DecodeParams &p, const float (&sum)[EACH], int64_t row, int b, float most, float weight) {
    int lane = threadIdx.x % 32;
    float by = weight == 0 ? 0 : p.v_scale / weight;
#pragma unroll
    for (int j = 0; j < EACH; j++) store_one(p.o, b * p.o_row + (row - (int64_t)b * p.heads) * V + lane + j * 32, p.kind, sum[j] * by);
    if (p.lse && lane == 0) p.lse[row] = log_sum(most, 1, weight);
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    __shared__ float slots[SLOTS][V + 1];
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, alone = p.slots == 1;
    int64_t row = ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * (alone ? SLOTS : 1) + (alone ? warp : 0); // a head of a sequence
    if (row >= (int64_t)p.batch * p.heads) return;
    wait_for_predecessor();
    int b = (int)(row / p.heads), parts = decode_parts(p, decode_length(p, b));
    if (parts < 2) return;
    int64_t first = row * p.parts;
    float most, weight = 0, all[EACH] = {};
    if (alone) sum_all(p, all, first, parts, &most, &weight);
    else {
      float sum[EACH + 1] = {};
      most = most_of(p, first, parts);
      sum_slot(p, sum, first, parts, most, warp);
#pragma unroll
      for (int j = 0; j < EACH; j++) slots[warp][lane + j * 32] = sum[j];
      if (lane == 0) slots[warp][V] = sum[EACH];
      __syncthreads();
      if (warp) return;
#pragma unroll
      for (int i = 0; i < SLOTS; i++) {
        weight = __fadd_rn(weight, slots[i][V]);
#pragma unroll
        for (int j = 0; j < EACH; j++) all[j] = __fadd_rn(all[j], slots[i][lane + j * 32]);
      }
    }
    store(p, all, row, b, most, weight);
  }
};
#endif

#endif
