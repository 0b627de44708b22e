// Rows of 16-bit elements whose results are fp32, in registers, wherever they start: a thread has single elements, and threads next to each other have elements next to each other,
// from a boundary of 128 bytes of y on. So all lines of y but those at a row's ends are stored whole, by one store each; loads of 64 bytes a warp are as few bytes
// as there are, for both of a sector's parts come out of L1.
#ifndef SOL_KERNELS_SOFTMAX_WIDEN_CUH
#define SOL_KERNELS_SOFTMAX_WIDEN_CUH

#include "softmax/softmax_row.cuh"

// s.chunks: 16 bytes of x for each thread.
INLINE void softmax_widen(const SoftmaxParams *p, RowShape s, RowFold *shared, int kind) {
  const int count = s.chunks * 8;
  RowPlace place = row_place(s);
  const bool there = place.row < p->m;
  float *y = (float *)((char *)p->y + (int64_t)(there ? place.row : 0) * p->y_stride);
  const int first = place.thread - ((int)((uintptr_t)y >> 2) & 31), n = there ? (int)p->n : 0; // column of this thread's first element
  const char *x = (const char *)p->x + (int64_t)(there ? place.row : 0) * p->x_stride + 2 * (int64_t)first;
  float f[ROW_MAX_CHUNKS * 8], tops[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < count; k++) {
    uint16_t bits = (uint16_t)span_lowest(kind);
    if ((uint32_t)(first + k * s.threads) < (uint32_t)n) bits = ((const uint16_t *)x)[k * s.threads];
    f[k] = kind == KIND_FP16 ? __half2float(__ushort_as_half(bits)) : __uint_as_float((uint32_t)bits << 16);
  }
#pragma unroll
  for (int k = 0; k < count; k++) tops[k % 2] = fmaxf(tops[k % 2], f[k]);
  float top = fmaxf(tops[0], tops[1]), mine = start_of(top);
#pragma unroll
  for (int k = 0; k < count; k++) f[k] = keep(f[k], mine, asks_log(p), &sums[k % 2]);
  Finish z = finish_of(row_fold(s, shared, make_float2(top, sums[0] + sums[1]), FOLD_SOFTMAX), mine, asks_log(p));
  y += first;
#pragma unroll
  for (int k = 0; k < count; k++)
    if ((uint32_t)(first + k * s.threads) < (uint32_t)n) __stcs(y + k * s.threads, finish(z, f[k]));
}

#endif
