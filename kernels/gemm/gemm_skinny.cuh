// GEMM of 16 rows of A at most, as in decoding: bound by reading B, whose columns are contiguous along k. B is read once,
// from global memory straight into the registers of mma.sync, as its 16 rows: 16 columns of B a block, whose warps share
// out k. Which k a register holds does not matter as long as A's and B's agree: each thread takes 16 contiguous bytes of
// both for two products. Every row's sums are made in the same order, however many rows there are.
#ifndef SOL_KERNELS_GEMM_SKINNY_CUH
#define SOL_KERNELS_GEMM_SKINNY_CUH

#include "gemm/gemm_any.cuh"

#if __CUDA_ARCH__ >= 800
enum { SKINNY_COLUMNS = GEMM_SKINNY_COLUMNS, SKINNY_K = 64 }; // SKINNY_K: bytes along k of two products

INLINE uint4 skinny_load(const char *row, int64_t k, int64_t end) {
  return row && k < end ? *(const uint4 *)(row + k) : make_uint4(0, 0, 0, 0);
}

// B is read once: it need not stay in L1, where A does.
INLINE uint4 skinny_stream(const char *row, int64_t k, int64_t end) {
  return row && k < end ? __ldcs((const uint4 *)(row + k)) : make_uint4(0, 0, 0, 0);
}

// 64 bytes of k: `low` and `high` are the two of B's columns that the thread has, x a row of A.
INLINE void skinny_multiply(float *d, uint4 low, uint4 high, uint4 x, int kind) {
  uint32_t first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
  mma_16x8(d, first, x.x, x.y, kind);
  mma_16x8(d, second, x.z, x.w, kind);
}

// eights: rows of A, in eights; deep: times 64 bytes of k that are under way at a time.
template <int eights, int warps, int deep>
INLINE void skinny_sum(float (&d)[eights * 4], int64_t end, const char *low, const char *high,
                       const char *const (&x)[eights], int kind) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t k0 = warp * SKINNY_K * deep; k0 < end; k0 += warps * SKINNY_K * deep) {
    uint4 of_low[deep], of_high[deep];
#pragma unroll
    for (int i = 0; i < deep; i++) {
      int64_t k = k0 + i * SKINNY_K + lane % 4 * 16;
      of_low[i] = skinny_stream(low, k, end), of_high[i] = skinny_stream(high, k, end);
    }
#pragma unroll
    for (int i = 0; i < deep; i++) {
      int64_t k = k0 + i * SKINNY_K + lane % 4 * 16;
#pragma unroll
      for (int e = 0; e < eights; e++) skinny_multiply(d + e * 4, of_low[i], of_high[i], skinny_load(x[e], k, end), kind);
    }
  }
}

// Adds up the warps' sums and writes them. sums: of each warp, 16 columns of B by the rows of A.
template <int eights, int warps>
INLINE void skinny_finish(const GemmAnyParams &p, float (*sums)[SKINNY_COLUMNS][eights * 8 + 1], int64_t first, int64_t batch) {
  bool gated = p.end.activation == GEMM_SILU_MUL;
  int wide = gated ? SKINNY_COLUMNS / 2 : SKINNY_COLUMNS;
  for (int i = threadIdx.x; i < wide * eights * 8; i += warps * 32) {
    int column = i % wide, row = i / wide;
    float v = 0, up = 0;
    for (int w = 0; w < warps; w++) {
      v += sums[w][column][row];
      if (gated) up += sums[w][column + wide][row];
    }
    if (row < p.m && first + column < p.n) gemm_finish_one(&p.end, batch, row, first + column, p.n, v, up);
  }
}

template <int eights, int warps, int deep> INLINE void gemm_skinny(const GemmAnyParams &p, int kind) {
  __shared__ float sums[warps][SKINNY_COLUMNS][eights * 8 + 1];
  bool gated = p.end.activation == GEMM_SILU_MUL;
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32, wide = gated ? SKINNY_COLUMNS / 2 : SKINNY_COLUMNS;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, columns = (p.n + wide - 1) / wide, z, at;
  if (block >= columns * p.batch) return;
  split(block, columns, &z, &at);
  int size = kind == KIND_FP8 ? 1 : 2;
  const char *a = (const char *)p.a + z * p.a_batch * size, *b = (const char *)p.b + z * p.b_batch * size, *x[eights];
  int64_t first = (int64_t)at * wide, low = first + lane / 4, high = low + (gated ? p.n : 8);
  bool has_low = low < p.n, has_high = gated ? has_low : high < p.n;
#pragma unroll
  for (int e = 0; e < eights; e++) {
    int row = e * 8 + lane / 4;
    x[e] = row < p.m ? a + row * p.a_down * size : nullptr;
  }
  float d[eights * 4] = {0};
  skinny_sum<eights, warps, deep>(d, p.k * size, has_low ? b + low * p.b_across * size : nullptr,
                                  has_high ? b + high * p.b_across * size : nullptr, x, kind);
#pragma unroll
  for (int i = 0; i < eights * 4; i++)
    sums[warp][lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2] = d[i];
  __syncthreads();
  skinny_finish<eights, warps>(p, sums, first, (int64_t)z);
}
#endif

#endif
