// The parts of a sequence's head become one: a block for each. Sequences of one part are finished already.
#ifndef SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH
#define SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH

#include "decode_attention/decode_attention_split.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800
// The threads are `SLOTS` times a row of V, lane l of which has columns l, l + LANES and so on; slot i has parts i, i + SLOTS and so on.
template <int V> struct DecodeCombine {
  enum { EACH = 4, LANES = V / EACH, SLOTS = DECODE_THREADS / LANES };
  typedef DecodeSplit<KIND_BF16, 0, 64, 64> Any; // how parts are counted is the same for all

  static __device__ __forceinline__ void sum_parts(const DecodeParams &p, float (&sum)[EACH], int64_t first, int parts, float most, int lane, int slot) {
#pragma unroll 4
    for (int i = slot; i < parts; i += SLOTS) {
      float by = exp_two(p.mosts[first + i] - most);
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[j] += by * p.sums[(first + i) * V + lane + j * LANES];
    }
  }

  // most, weight: of all parts, the same in every warp. A part that sees nothing has -infinity and 0.
  static __device__ __forceinline__ void weigh(const DecodeParams &p, int64_t first, int parts, float *most, float *weight) {
    float m = -INFINITY, w = 0;
    for (int i = threadIdx.x % 32; i < parts; i += 32) m = fmaxf(m, p.mosts[first + i]);
#pragma unroll
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    *most = m == -INFINITY ? 0 : m;
    for (int i = threadIdx.x % 32; i < parts; i += 32) w += p.weights[first + i] * exp_two(p.mosts[first + i] - *most);
    *weight = warp_sum(w);
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    __shared__ float slots[SLOTS][V];
    uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, b, head;
    split(block, p.heads, &b, &head);
    if (b >= p.batch) return;
    int parts = Any::parts_of(p, Any::length_of(p, (int)b)), lane = threadIdx.x % LANES, slot = threadIdx.x / LANES;
    if (parts < 2) return;
    int64_t first = (int64_t)block * p.parts;
    float most, weight, sum[EACH] = {};
    weigh(p, first, parts, &most, &weight);
    sum_parts(p, sum, first, parts, most, lane, slot);
#pragma unroll
    for (int j = 0; j < EACH; j++) slots[slot][lane + j * LANES] = sum[j];
    __syncthreads();
    float by = weight == 0 ? 0 : p.v_scale / weight;
    for (int column = threadIdx.x; column < V; column += DECODE_THREADS) {
      float all = 0;
#pragma unroll
      for (int i = 0; i < SLOTS; i++) all += slots[i][column];
      store_one(p.o, b * p.o_row + head * V + column, p.kind, all * by);
    }
    if (p.lse && threadIdx.x == 0) p.lse[block] = log_sum(most, 1, weight);
  }
};
#endif

#endif
