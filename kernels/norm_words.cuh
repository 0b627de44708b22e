// Rows of some hundred fp32 elements that start anywhere, in registers: a warp has one by neighbouring words of y (words.cuh), and some of them one after another. Weights and biases
// are in shared memory, as in norm_narrow.cuh.
#ifndef SOL_KERNELS_NORM_WORDS_CUH
#define SOL_KERNELS_NORM_WORDS_CUH

#include "norm.cuh"
#include "norm_narrow.cuh"
#include "words.cuh"

enum { WORDS_SECTOR = 32 }; // bytes of the output at which a warp's first lane starts

// A row as its lanes have loaded it; what is not there is 0.
typedef struct WordsHeld {
  WordRow at;
  int column; // of the lane's first element
  float f[NORM_WORDS_MOST];
} WordsHeld;

INLINE void words_take(NormKernel c, const NormParams *p, uint64_t row, int steps, WordsHeld *h) {
  NormRow r = norm_row(c, p, row, threadIdx.x % 32 == 0);
  h->at = word_row({4, 4, 0, KIND_FP32, KIND_FP32, 0}, (int)p->n, r.x, r.y, (int)threadIdx.x % 32, WORDS_SECTOR);
  h->column = (int)(h->at.y - r.y) / 4;
#pragma unroll
  for (int k = 0; k < steps; k++) h->f[k] = word_inside(h->at, k, 32) ? *(const float *)(h->at.x + 128 * k) : 0;
}

INLINE float words_squares(NormKernel c, const WordsHeld &h, int steps, float mean) {
  float sum[2] = {0, 0};
#pragma unroll
  for (int k = 0; k < steps; k++)
    if (c.op != NORM_LAYER || word_inside(h.at, k, 32)) sum[k % 2] = fmaf(h.f[k] - mean, h.f[k] - mean, sum[k % 2]);
  return lanes_sum(sum[0] + sum[1], 32);
}

// Sums a row up and writes it.
INLINE void words_row(NormKernel c, const NormParams *p, const float *weight, const float *bias, const WordsHeld &h, int steps) {
  float sum = 0;
#pragma unroll
  for (int k = 0; k < steps; k++) sum += h.f[k];
  NarrowRow r = {c.op == NORM_LAYER ? lanes_sum(sum, 32) * p->over_n : 0, 0, {1, 1}};
  r.scale = rsqrtf(fmaf(words_squares(c, h, steps, r.mean), p->over_n, p->eps));
#pragma unroll
  for (int k = 0; k < steps; k++) {
    int column = h.column + 32 * k;
    if (word_inside(h.at, k, 32)) *(float *)(h.at.y + 128 * k) = narrow_result(c, p, r, weight[column], c.op == NORM_LAYER ? bias[column] : 0, h.f[k]);
  }
}

// Where blocks are few, while the predecessor still runs: prefetches a warp's rows, and the ends of what is written of them.
INLINE void words_hint(NormKernel c, const NormParams *p, uint64_t begin, int rows) {
  int lane = (int)threadIdx.x % 32, bytes = (int)p->n * 4;
  if (p->ends) ends_prefetch((const char *)p->y + (int64_t)begin * p->y_stride, p->y_stride, p->ends, rows, lane, 32);
  if (!may_hint()) return;
  narrow_hint_vectors(c, p);
  for (int i = 0; i < rows; i++)
    if (lane * 128 < bytes + 127) prefetch_l2((const char *)p->x + (int64_t)(begin + i) * p->x_stride + min(lane * 128, bytes - 1));
}

// `rows` rows of a warp from `begin` on; the next is asked for when one is written.
INLINE void words_rows(NormKernel c, const NormParams *p, uint64_t begin, int rows, int steps) {
  const int n = p->narrow.n;
  float *weight = (float *)narrow_memory, *bias = weight + n;
  uint32_t first = vector_load(p->weight, threadIdx.x, n, KIND_FP32), second = c.op == NORM_LAYER ? vector_load(p->bias, threadIdx.x, n, KIND_FP32) : 0;
  WordsHeld h;
  if (rows) words_take(c, p, begin, steps, &h);
  narrow_fill_vector(c, weight, p->weight, first, KIND_FP32, n, 1, p->offset);
  if (c.op == NORM_LAYER) narrow_fill_vector(c, bias, p->bias, second, KIND_FP32, n, 0, 0);
  __syncthreads();
#pragma unroll 1
  for (int i = 0; i < rows; i++) {
    words_row(c, p, weight, bias, h, steps);
    if (i + 1 < rows) words_take(c, p, begin + i + 1, steps, &h);
  }
}

INLINE void norm_words(NormKernel c, const NormParams *p) {
  uint64_t begin = thread_index() / 32 * p->how.steps;
  int rows = begin < p->m ? (int)min((uint64_t)p->how.steps, p->m - begin) : 0;
  words_hint(c, p, begin, rows);
  begin_kernel();
  if (p->n + WORDS_SECTOR / 4 - 1 <= 32 * NORM_WORDS_FEW) words_rows(c, p, begin, rows, NORM_WORDS_FEW);
  else words_rows(c, p, begin, rows, NORM_WORDS_MOST);
}

#endif
