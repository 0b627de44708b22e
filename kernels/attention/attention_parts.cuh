// Which tokens belong to a sequence, and which keys a query sees: the same for every attention kernel.
#ifndef SOL_KERNELS_ATTENTION_PARTS_CUH
#define SOL_KERNELS_ATTENTION_PARTS_CUH

#include "attention/attention.h"
#include "common.cuh"

typedef struct Sequence {
  int q_first, queries, k_first, keys; // first: in the packed tensor, 0 without starts
} Sequence;

// Starts that leave the tensor or go backwards are kept within it.
INLINE void sequence_of(const int32_t *starts, int b, int tokens, int most, int *first, int *count) {
  *first = 0, *count = most;
  if (!starts) return;
  *first = min(max(starts[b], 0), tokens);
  *count = min(max(starts[b + 1] - *first, 0), min(most, tokens - *first));
}

INLINE Sequence attention_sequence(const AttentionParams &p, int b) {
  Sequence s;
  sequence_of(p.q_starts, b, p.q_tokens, p.queries, &s.q_first, &s.queries);
  sequence_of(p.kv_starts, b, p.kv_tokens, p.keys, &s.k_first, &s.keys);
  return s;
}

// Keys `from` to `to` - 1 are seen by query i. Queries past the end see what the last one would: nothing is written for them.
typedef struct Seen {
  int from, to;
} Seen;

INLINE Seen attention_seen(const AttentionParams &p, const Sequence &s, int i) {
  int next = i + s.keys - s.queries + 1;
  int to = p.causal ? max(min(next, s.keys), 0) : s.keys;
  return {p.window ? min(max(next - p.window, 0), to) : 0, to};
}

// Keys that any of `count` queries from `first` on sees, those before `end`.
INLINE Seen attention_all_seen(const AttentionParams &p, const Sequence &s, int first, int count, int end) {
  return {attention_seen(p, s, first).from, first < end ? attention_seen(p, s, min(first + count, end) - 1).to : 0};
}

// Sums of what is before each of `count` numbers, up to MOST of them, after which there is room for the warps' sums; number i is count_of(i, load(i)). The
// first THREADS of the block count. Returns the sum of all.
template <int THREADS, int MOST, class Load, class Count> INLINE int count_before(int *before, int count, Load load, Count count_of) {
  enum { EACH = (MOST + THREADS - 1) / THREADS };
  int each = (count + THREADS - 1) / THREADS, own[EACH], mine[EACH], sum = 0;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, from = threadIdx.x * each, *warps = before + MOST;
  bool counts = threadIdx.x < THREADS;
  auto has = [&](int i) { return counts && i < each && from + i < count; };
#pragma unroll
  for (int i = 0; i < EACH; i++) own[i] = has(i) ? load(from + i) : 0; // all on their way together
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    mine[i] = sum;
    if (has(i)) sum += count_of(from + i, own[i]);
  }
  int at = sum;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    int other = __shfl_up_sync(~0u, at, o);
    at += lane >= o ? other : 0;
  }
  if (counts && lane == 31) warps[warp] = at;
  __syncthreads();
  at -= sum;
  int all = 0;
  for (int w = 0; w < THREADS / 32; w++) {
    at += w < warp ? warps[w] : 0;
    all += warps[w];
  }
#pragma unroll
  for (int i = 0; i < EACH; i++)
    if (has(i)) before[from + i] = at + mine[i];
  __syncthreads();
  return all;
}

// The last of `count` that does not begin after `at`, of what count_before left.
INLINE int last_before(const int *before, int count, int at) {
  int low = 0, high = count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (before[middle] <= at) low = middle;
    else high = middle;
  }
  return low;
}

// What a score is multiplied by so that 2^x is its exponential, and how it is capped before that: soft_capped(score * before, cap).
typedef struct ScoreUnit {
  float unit, before, cap; // cap 0: none, and `before` is not used
} ScoreUnit;

INLINE ScoreUnit score_unit(float scale, float cap) {
  float log2_e = 1.4426950408889634f;
  return {cap != 0 ? log2_e : scale * log2_e, cap != 0 ? 2 * log2_e * scale / cap : 0, cap};
}

// log(sum of exp(scores)) of a row.
INLINE float log_sum(float most, float unit, float sum) {
  return sum == 0 ? -INFINITY : (most * unit + __log2f(sum)) * 0.6931471805599453f;
}

#endif
