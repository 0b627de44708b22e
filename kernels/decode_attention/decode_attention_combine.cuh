// The parts of a sequence's head become one, in the kernel that has the parts: whoever is done last adds up all. Sequences of one part are
// finished already.
#ifndef SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH
#define SOL_KERNELS_DECODE_ATTENTION_COMBINE_CUH

#include "decode_attention/decode_attention_items.cuh"
#include "mma.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

// The parts' flags of one head, as words of the workspace. A part whose sums are there has the launch's sign: nobody need have cleared the
// workspace, since what was in it before does not have that by chance.
INLINE bool decode_flagged(const DecodeParams &p, int64_t part) {
  unsigned long long seen;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(__cvta_generic_to_global(p.flags + part)) : "memory");
  return seen == p.sign;
}
INLINE void decode_flag(const DecodeParams &p, int64_t part, unsigned long long word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p.flags + part)), "l"(word) : "memory");
}

// Lane l has columns l, l + 32 and so on. Every sum goes over the parts in their order.
template <int V> struct DecodeCombine {
  enum { EACH = V / 32, COUNT = EACH > 8 ? 2 : 32 / EACH }; // COUNT: parts on their way at a time

  static __device__ __forceinline__ void load(const DecodeParams &p, float (&x)[COUNT][EACH], int64_t first, int count) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++)
        if (i < count) x[i][j] = __ldcg(&p.sums[(first + i) * V + threadIdx.x % 32 + j * 32]);
  }

  // The largest score of all parts. A part that sees nothing has -infinity, and a weight of 0.
  static __device__ __forceinline__ float most_of(const DecodeParams &p, int64_t first, int parts) {
    float m = -INFINITY;
    for (int i = threadIdx.x % 32; i < parts; i += 32) m = fmaxf(m, __ldcg(p.mosts + first + i));
#pragma unroll
    for (int o = 16; o; o /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    return m;
  }

  static __device__ __forceinline__ void add_up(const DecodeParams &p, int b, int head, int parts, int kind) {
    int lane = threadIdx.x % 32;
    int64_t row = (int64_t)b * p.heads + head, first = row * p.parts;
    float x[COUNT][EACH], sum[EACH] = {}, weight = 0, times = 0, weighed = 0;
    load(p, x, first, parts);
    float most = most_of(p, first, parts), base = most == -INFINITY ? 0 : most;
    for (int at = 0; at < parts; at += COUNT) {
      if (at) load(p, x, first + at, parts - at);
      if (at % 32 == 0 && at + lane < parts) {
        times = exp_two(__ldcg(p.mosts + first + at + lane) - base);
        weighed = __fmul_rn(__ldcg(p.weights + first + at + lane), times);
      }
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        if (at + i >= parts) continue;
        float of_part = __shfl_sync(~0u, times, (at + i) % 32);
        weight = __fadd_rn(weight, __shfl_sync(~0u, weighed, (at + i) % 32));
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[j] = __fmaf_rn(of_part, x[i][j], sum[j]);
      }
    }
    float by = weight == 0 ? 0 : p.v_scale / weight;
#pragma unroll
    for (int j = 0; j < EACH; j++) store_one(p.o, b * p.o_row + (int64_t)head * V + lane + j * 32, kind, sum[j] * by);
    if (p.lse && lane == 0) p.lse[row] = log_sum(base, 1, weight);
  }
};

// By a warp, when sums, largest score and weight of a head's part are in memory, for which its lanes' stores or a barrier's come before. Of
// parts that end at the same time more than one may find all flags set: they write the same bits. The flags are taken back, so that the
// same launch can be repeated.
template <int V> INLINE void decode_join(const DecodeParams &p, int b, int head, int part, int parts, int kind) {
  int lane = threadIdx.x % 32;
  int64_t first = ((int64_t)b * p.heads + head) * p.parts;
  __threadfence();
  __syncwarp();
  if (lane == 0) decode_flag(p, first + part, p.sign);
  __syncwarp();
  __threadfence(); // of two parts one at least sees the other's flag
  bool all = true;
  for (int i = lane; i < parts; i += 32) all = decode_flagged(p, first + i) && all;
  if (!__all_sync(~0u, all)) return;
  __threadfence();
  DecodeCombine<V>::add_up(p, b, head, parts, kind);
  for (int i = lane; i < parts; i += 32) decode_flag(p, first + i, 0);
}

// By a block, for `heads` from `head` on, all of whose threads have stored their share.
template <int V, int WARPS> INLINE void decode_join_heads(const DecodeParams &p, const DecodeItem &item, int in_group, int heads, int kind) {
  if (item.parts < 2) return;
  __threadfence();
  __syncthreads();
  for (int i = threadIdx.x / 32; i < heads && in_group + i < p.group; i += WARPS)
    decode_join<V>(p, item.b, item.kv * p.group + in_group + i, item.part, item.parts, kind);
}
#endif

#endif
