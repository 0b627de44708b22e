// GEMM of any sizes, strides and alignment, on any GPU: blocks of 64 by 64, four warps of 16 rows each, by mma.sync
// (before sm_80, which has none for bf16, by multiplications). A thread's sums are where wgmma's would be, so the
// epilogue is the same.
#ifndef SOL_KERNELS_GEMM_ANY_CUH
#define SOL_KERNELS_GEMM_ANY_CUH

#include "gemm/gemm_epilogue.cuh"

enum { ANY_TILE = GEMM_ANY_TILE, ANY_K = 16, ANY_PITCH = ANY_K + 8, ANY_EACH = ANY_TILE * ANY_K / GEMM_ANY_THREADS };

// A tile of an operand: 64 rows (of A, columns of B) by 16 k, two-byte elements.
typedef uint16_t AnyTile[ANY_TILE][ANY_PITCH];

// An operand from its row `first` on; rows from `half` on are `apart` further.
typedef struct AnyOperand {
  const void *at;
  int64_t row_stride, k_stride, first, rows, k, apart;
  int kind, to; // as it is stored, and as it is multiplied
} AnyOperand;

// Element i of this thread: neighbouring threads have neighbouring addresses.
INLINE void any_place(const AnyOperand *o, int i, int *row, int *k) {
  int t = threadIdx.x;
  bool along_k = o->k_stride == 1;
  *row = along_k ? t / ANY_K + i * (GEMM_ANY_THREADS / ANY_K) : t % ANY_TILE;
  *k = along_k ? t % ANY_K : t / ANY_TILE + i * (GEMM_ANY_THREADS / ANY_TILE);
}

// fp8 as fp16, which holds every value of it.
#if __CUDA_ARCH__ >= 890
INLINE
#else
static __device__ __noinline__ // many instructions
#endif
uint16_t any_widen(uint8_t v) {
  return __nv_cvt_fp8_to_halfraw(v, __NV_E4M3).x;
}

// Two int4 are in a byte, the first in its low bits.
INLINE uint16_t any_load(const void *x, int64_t i, const AnyOperand *o) {
  if (o->kind == GEMM_INT4) return narrow_one((float)((int8_t)(((const uint8_t *)x)[i / 2] << (i % 2 ? 0 : 4)) >> 4), o->to);
  if (o->kind != KIND_FP8) return ((const uint16_t *)x)[i];
  uint16_t half = any_widen(((const uint8_t *)x)[i]);
  return o->to == KIND_FP16 ? half : narrow_one(load_one(&half, 0, KIND_FP16), o->to);
}

// Of the thread's elements, one is `step` further than the one before; in the second half of the rows `apart` is added.
INLINE void any_fetch(const AnyOperand *o, int64_t k0, uint16_t (&held)[ANY_EACH]) {
  enum { ROWS = GEMM_ANY_THREADS / ANY_K, DEEP = GEMM_ANY_THREADS / ANY_TILE };
  bool along_k = o->k_stride == 1;
  int row, k;
  any_place(o, 0, &row, &k);
  int64_t r = o->first + row + (row >= ANY_TILE / 2 ? o->apart : 0), at = r * o->row_stride + (k0 + k) * o->k_stride;
  int64_t step = along_k ? ROWS * o->row_stride : DEEP * o->k_stride;
#pragma unroll
  for (int i = 0; i < ANY_EACH; i++) {
    int64_t more = along_k && i >= ANY_EACH / 2 ? o->apart : 0;
    int64_t row_left = o->rows - r - more - (along_k ? i * ROWS : 0), k_left = o->k - k0 - k - (along_k ? 0 : i * DEEP);
    held[i] = row_left > 0 && k_left > 0 ? any_load(o->at, at + i * step + more * o->row_stride, o) : 0;
  }
}

INLINE void any_put(const AnyOperand *o, const uint16_t (&held)[ANY_EACH], AnyTile tile) {
#pragma unroll
  for (int i = 0; i < ANY_EACH; i++) {
    int row, k;
    any_place(o, i, &row, &k);
    tile[row][k] = held[i];
  }
}

#if __CUDA_ARCH__ >= 800
INLINE void matrix_load(uint32_t (&r)[4], const uint16_t *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row)));
}

// d += 16 rows by 8 columns of 32 bytes of k; fp8: from sm_89 on.
INLINE void mma_16x8(float *d, const uint32_t (&a)[4], uint32_t b0, uint32_t b1, int kind) {
#define MMA_16X8(k, type)                                                                                    \
  asm volatile("mma.sync.aligned.m16n8k" k ".row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, "              \
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                               \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if (kind == KIND_FP16) MMA_16X8("16", "f16");
#if __CUDA_ARCH__ >= 890
  else if (kind == KIND_FP8) MMA_16X8("32", "e4m3");
#endif
  else MMA_16X8("16", "bf16");
#undef MMA_16X8
}

INLINE void any_multiply(float (&d)[32], AnyTile a, AnyTile b, int kind) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < ANY_K; k += 16) {
    uint32_t of_a[4], of_b[4];
    matrix_load(of_a, &a[warp * 16 + lane % 16][k + lane / 16 * 8]);
#pragma unroll
    for (int j = 0; j < 8; j += 2) { // 16 columns
      matrix_load(of_b, &b[j * 8 + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 8]);
      mma_16x8(d + j * 4, of_a, of_b[0], of_b[1], kind);
      mma_16x8(d + j * 4 + 4, of_a, of_b[2], of_b[3], kind);
    }
  }
}
#else
INLINE void any_multiply(float (&d)[32], AnyTile a, AnyTile b, int kind) {
  int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  for (int k = 0; k < ANY_K; k++) {
    float of_a[2] = {load_one(a[row], k, kind), load_one(a[row + 8], k, kind)};
#pragma unroll
    for (int i = 0; i < 32; i++) d[i] += of_a[i / 2 % 2] * load_one(b[column + i / 4 * 8 + i % 2], k, kind);
  }
}
#endif

INLINE void any_store(const float (&d)[32], const GemmEpilogue *e, const GemmPlace *at) {
  int64_t size = e->out_kind == KIND_FP32 ? 4 : 2, first = at->batch * e->c_batch_stride + at->row * e->c_stride + at->column;
  int count = e->activation == GEMM_SILU_MUL ? 16 : 32, left = (int)min(at->n - at->column, (int64_t)ANY_TILE);
  char *to = (char *)e->c + first * size;
#pragma unroll 1
  for (int half = 0; half < 2; half++, to += 8 * e->c_stride * size) {
    if (at->row + half * 8 >= at->m) break;
#pragma unroll
    for (int i = 0; i < 32; i += 4) {
      if (i >= count) break;
#pragma unroll
      for (int j = 0; j < 2; j++)
        if (i * 2 + j < left) store_one(to, i * 2 + j, e->out_kind, half ? d[i + 2 + j] : d[i + j]);
    }
  }
}

// Sums of GEMM_GROUP k of int4 are multiplied by their columns' scales and added to the others.
INLINE void any_fold(float (&d)[32], float (&part)[32], const AnyOperand *b, const float *scales, int64_t groups, int64_t group) {
#pragma unroll
  for (int i = 0; i < 32; i++) {
    int64_t column = b->first + threadIdx.x % 4 * 2 + i / 4 * 8 + i % 2 + (i >= 16 ? b->apart : 0);
    if (column < b->rows) d[i] += scales[column * groups + group] * part[i];
    part[i] = 0;
  }
}

// scales: of int4; otherwise NULL, a literal.
INLINE void any_sum(float (&d)[32], const AnyOperand *a, const AnyOperand *b, AnyTile tile_a, AnyTile tile_b, const float *scales,
                    int64_t groups) {
  uint16_t held_a[ANY_EACH], held_b[ANY_EACH];
  float part[32] = {0};
  any_fetch(a, 0, held_a);
  any_fetch(b, 0, held_b);
  for (int64_t k = 0; k < a->k; k += ANY_K) {
    __syncthreads(); // the tiles before have been read
    any_put(a, held_a, tile_a);
    any_put(b, held_b, tile_b);
    __syncthreads();
    any_fetch(a, k + ANY_K, held_a);
    any_fetch(b, k + ANY_K, held_b);
    any_multiply(b->kind == GEMM_INT4 ? part : d, tile_a, tile_b, a->to);
    if (b->kind == GEMM_INT4 && (k + ANY_K >= a->k || (k + ANY_K) % GEMM_GROUP == 0))
      any_fold(d, part, b, scales, groups, k / GEMM_GROUP);
  }
}

// kind: of A; of_b: of B.
INLINE void gemm_any(const GemmAnyParams &p, int kind, int of_b, const float *scales, int64_t groups) {
  __shared__ __align__(16) AnyTile tile_a, tile_b;
  bool gated = p.end.activation == GEMM_SILU_MUL;
  int wide = gated ? ANY_TILE / 2 : ANY_TILE, to = kind == KIND_FP8 ? KIND_FP16 : kind;
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, rows = (p.m + ANY_TILE - 1) / ANY_TILE,
           columns = (p.n + wide - 1) / wide, in_batch, z, row, column;
  if (block >= rows * columns * p.batch) return;
  split(block, rows * columns, &z, &in_batch);
  split(in_batch, rows, &column, &row);
  int64_t b_rows = gated ? 2 * p.n : p.n, b_bits = of_b == GEMM_INT4 ? 4 : of_b == KIND_FP8 ? 8 : 16;
  AnyOperand a = {(const char *)p.a + z * p.a_batch * (kind == KIND_FP8 ? 1 : 2), p.a_down, p.a_across, (int64_t)row * ANY_TILE, p.m, p.k, 0,
                  kind, to};
  AnyOperand b = {(const char *)p.b + (int64_t)z * p.b_batch * b_bits / 8, p.b_across, p.b_down, (int64_t)column * wide, b_rows, p.k,
                  gated ? p.n - wide : 0, of_b, to};
  float d[32] = {0};
  any_sum(d, &a, &b, tile_a, tile_b, of_b == GEMM_INT4 ? scales + (int64_t)z * b_rows * groups : nullptr, groups);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  GemmPlace at = {a.first + warp * 16 + lane / 4, b.first + lane % 4 * 2, (int64_t)z, p.m, p.n, b.apart};
  gemm_finish(d, &p.end, &at);
  any_store(d, &p.end, &at);
}

#endif
