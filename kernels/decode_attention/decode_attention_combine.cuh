// The parts of a sequence's head become one. Sequences of one part are finished already.
#ifndef SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH
#define SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH

#include "decode_attention/decode_attention_items.cuh"
#include "mma.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800
// Slot i has parts i, i + SLOTS and so on, and the slots' sums are added in order: by a warp each (p.slots is SLOTS), or all
// by one warp where there are no more parts than slots, with the same bits. Lane l has columns l, l + 32 and so on.
//
// How many parts a sequence has is on its way from memory while the first parts are loaded, whether they are there or not: what is not is
// left out afterwards.
template <int V> struct DecodeCombine {
  enum { EACH = V / 32, SLOTS = DECODE_SLOTS, AT_ONCE = EACH > 8 ? 4 : EACH > 4 ? 8 : 16 }; // AT_ONCE: parts that a warp loads

  // The largest score of all parts, the same in every warp; mine: of every 32nd of the first parts. A part that sees nothing has
  // -infinity, and a weight of 0.
  template <int MINE> static __device__ __forceinline__ float most_of(const DecodeParams &p, const float (&mine)[MINE], int64_t first, int parts) {
    int lane = threadIdx.x % 32;
    float m = -INFINITY;
#pragma unroll
    for (int i = 0; i < MINE; i++)
      if (lane + i * 32 < parts) m = fmaxf(m, mine[i]);
#pragma unroll 4
    for (int i = lane + MINE * 32; i < parts; i += 32) m = fmaxf(m, p.mosts[first + i]);
#pragma unroll
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    return m;
  }

  // COUNT parts from `part` on, every STEP-th, as far as there is room for them.
  template <int COUNT, int STEP> static __device__ __forceinline__ void load(const DecodeParams &p, float (&x)[COUNT][EACH], int64_t first, int part) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++) {
        bool there = part + i * STEP < p.parts;
        x[i][j] = there ? p.sums[(first + part + i * STEP) * V + threadIdx.x % 32 + j * 32] : 0;
      }
  }

  // As far as there is room for them.
  template <int MINE> static __device__ __forceinline__ void load_weights(const DecodeParams &p, float (&most)[MINE], float (&by)[MINE], int64_t first, int at) {
#pragma unroll
    for (int i = 0; i < MINE; i++) {
      int part = at + i * 32 + threadIdx.x % 32;
      most[i] = part < p.parts ? p.mosts[first + part] : 0, by[i] = part < p.parts ? p.weights[first + part] : 0;
    }
  }

  // Adds up parts slot, slot + STEP and so on, COUNT at a time; each lane has what every 32nd of the parts of a round is multiplied by. Returns the largest
  // score of all, or NaN where there are fewer than two parts.
  template <int COUNT, int STEP>
  static __device__ __forceinline__ float sum_parts(const DecodeParams &p, float (&sum)[EACH], float &weight, int64_t row, int b, int slot) {
    enum { ROUND = COUNT * STEP < 32 ? 32 : COUNT * STEP, MINE = ROUND / 32 };
    static_assert(ROUND % (COUNT * STEP) == 0 && ROUND % 32 == 0, "whole rounds");
    int length = decode_length(p, b);
    int64_t first = row * p.parts;
    float x[COUNT][EACH], of_lane[MINE], by[MINE];
    load_weights(p, of_lane, by, first, 0);
    load<COUNT, STEP>(p, x, first, slot);
    int parts = decode_parts<true>(p, length);
    if (parts < 2) return NAN;
    float most = most_of(p, of_lane, first, parts), base = most == -INFINITY ? 0 : most;
    for (int at = 0; at < parts; at += COUNT * STEP) {
      if (at) load<COUNT, STEP>(p, x, first, at + slot);
      if (at && at % ROUND == 0) load_weights(p, of_lane, by, first, at);
      float times[MINE], weighed[MINE];
#pragma unroll
      for (int i = 0; i < MINE; i++) times[i] = exp_two(of_lane[i] - base), weighed[i] = __fmul_rn(by[i], times[i]);
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        int part = at + slot + i * STEP;
        if (part >= parts) continue;
        float of_part = __shfl_sync(~0u, times[i * STEP / 32], part % 32);
        weight = __fadd_rn(weight, __shfl_sync(~0u, weighed[i * STEP / 32], part % 32));
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[j] = __fadd_rn(sum[j], __fmul_rn(of_part, x[i][j]));
      }
    }
    return base;
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
    int b = (int)(row / p.heads);
    float most, weight = 0, all[EACH] = {};
    if (alone) {
      most = sum_parts<(EACH > 8 ? 4 : 8), 1>(p, all, weight, row, b, 0);
      if (isnan(most)) return;
    } else {
      float sum[EACH] = {}, of_slot = 0;
      most = sum_parts<AT_ONCE, SLOTS>(p, sum, of_slot, row, b, warp);
      if (isnan(most)) return; // all warps do
#pragma unroll
      for (int j = 0; j < EACH; j++) slots[warp][lane + j * 32] = sum[j];
      if (lane == 0) slots[warp][V] = of_slot;
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
