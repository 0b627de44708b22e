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
  enum { EACH = V / 32, COUNT = 64 / EACH < 32 ? 64 / EACH : 32 }; // COUNT: parts on their way at a time

  static __device__ __forceinline__ void load(const DecodeParams &p, float (&x)[COUNT][EACH], int64_t first, int count) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++)
        x[i][j] = i < count ? __ldcg(&p.sums[(first + i) * V + threadIdx.x % 32 + j * 32]) : 0;
  }

  // The largest score of all parts. A part that sees nothing has -infinity, and a weight of 0.
  static __device__ __forceinline__ float most_of(const DecodeParams &p, int64_t first, int parts) {
    float m = -INFINITY;
#pragma unroll 1
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
#pragma unroll 1
    for (int at = 0; at < parts; at += COUNT) {
      if (at) load(p, x, first + at, parts - at);
      if (at % 32 == 0) {
        bool there = at + lane < parts; // what is not there has a weight of 0, and sums of 0
        times = there ? exp_two(__ldcg(p.mosts + first + at + lane) - base) : 0;
        weighed = there ? __fmul_rn(__ldcg(p.weights + first + at + lane), times) : 0;
      }
#pragma unroll
      for (int i = 0; i < COUNT; i++) {
        float of_part = __shfl_sync(~0u, times, (at + i) % 32), more = __shfl_sync(~0u, weighed, (at + i) % 32);
        weight = __fadd_rn(weight, more);
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

// By a warp, when sums, largest score and weight of a part are in memory for heads `head`, head + step and so on before `end`: by its own
// stores, or others' before a barrier. Of parts that end at the same time more than one may find all flags set: they write the same bits. The flags are
// taken back, so that the same launch can be repeated.
template <int V> INLINE void decode_join(const DecodeParams &p, int b, int part, int parts, int head, int end, int step, int kind) {
  int lane = threadIdx.x % 32;
  int64_t row = (int64_t)b * p.heads;
  __threadfence();
  __syncwarp();
#pragma unroll 1
  for (int i = head + lane * step; i < end; i += 32 * step) decode_flag(p, (row + i) * p.parts + part, p.sign);
  __syncwarp();
  __threadfence(); // of two parts one at least sees the other's flag
#pragma unroll 1
  for (; head < end; head += step) {
    int64_t first = (row + head) * p.parts;
    bool all = true;
#pragma unroll 1
    for (int i = lane; i < parts; i += 32) all = decode_flagged(p, first + i) && all;
    if (!__all_sync(~0u, all)) continue;
    __threadfence();
    DecodeCombine<V>::add_up(p, b, head, parts, kind);
#pragma unroll 1
    for (int i = lane; i < parts; i += 32) decode_flag(p, first + i, 0);
  }
}

// By a block that has stored all its items, tiles of `rows` heads. A function of its own, whose registers are not the kernel's loop's.
template <int V, int WARPS> __device__ __noinline__ void decode_join_items(DecodePlan plan, const DecodeParams &p, int rows, int kind) {
  __threadfence();
  __syncthreads();
  for (DecodeItem item = decode_find(plan, p, plan.begin); item.index < plan.end; decode_next(plan, p, &item)) {
    int first = item.kv * p.group, head = first + item.tile * rows;
    if (item.parts > 1)
      decode_join<V>(p, item.b, item.part, item.parts, head + threadIdx.x / 32, min(head + rows, first + p.group), WARPS, kind);
  }
}
#endif

#endif
