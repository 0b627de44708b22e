// The library's Hopper attention (kernels/attention/attention_wgmma.cuh), one block that goes round its stages of keys and over
// several tiles of queries, and twins of it that each have one thing wrong. The argument says which:
//   0 none   1 no wait for the tiles   2 a wrong phase   3 a wrong descriptor   4 no wait for the products
#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attention/attention_hopper.cuh"
#include "check.h"

__constant__ int broken;

// What the kernel calls, in place of hopper.cuh's. Its first warpgroup copies, the others multiply.
INLINE void twin_barrier_wait(uint64_t *bar, uint32_t parity) {
  bool multiplies = threadIdx.x >= 128;
  if (multiplies && broken == 1) return;
  barrier_wait(bar, parity ^ (multiplies && broken == 2));
}
INLINE uint64_t twin_matrix_descriptor(uint32_t at, int leading) {
  return matrix_descriptor(at, leading) + (broken == 3);
}
template <int left> INLINE void twin_wgmma_wait(void) {
  if (broken != 4) wgmma_wait<left>();
}
#define barrier_wait twin_barrier_wait
#define matrix_descriptor twin_matrix_descriptor
#define wgmma_wait twin_wgmma_wait
#include "attention/attention_wgmma.cuh"

enum { D = 64, QUERIES = 200, KEYS = 330 }; // whole tiles of neither

__global__ void __launch_bounds__(ATTENTION_TILED_THREADS, 1) attention(const __grid_constant__ AttentionTiledParams p) {
  AttentionWgmma<KIND_BF16, D>::run(p);
}

typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                        const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                        CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static void make_map(Encode *encode, AttentionMap *map, void *base, int tokens, int box_tokens) {
  cuuint64_t dims[] = {D, (cuuint64_t)tokens, 1, 1}, strides[] = {D * 2, D * 2, 16};
  cuuint32_t box[] = {64, (cuuint32_t)box_tokens, 1, 1}, steps[] = {1, 1, 1, 1};
  CHECK(encode((CUtensorMap *)map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, base, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
}

static float number(int i, int k) {
  return (float)((i * 7 + k * 13) % 9 - 4) / 4;
}

static bool right(const __nv_bfloat16 *o, int query) {
  double sum = 0, out[D] = {0};
  for (int key = 0; key < KEYS; key++) {
    double score = 0;
    for (int i = 0; i < D; i++) score += (double)number(query, i) * number(key + 2, i);
    double weight = exp(score / 8);
    sum += weight;
    for (int i = 0; i < D; i++) out[i] += weight * number(key, i + 5);
  }
  for (int i = 0; i < D; i++)
    if (!(fabs(__bfloat162float(o[query * D + i]) - out[i] / sum) < 0.01)) return false;
  return true;
}

int main(int argc, char **argv) {
  int which = argc > 1 ? atoi(argv[1]) : 0, shared = ATTENTION_TILED_SHARED(D);
  Encode *encode = NULL;
  cudaDriverEntryPointQueryResult found;
  __nv_bfloat16 *o, *q, *k, *v;
  CHECK(!cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
  CHECK(!cudaMallocManaged(&o, QUERIES * D * 2) && !cudaMallocManaged(&q, QUERIES * D * 2) && !cudaMallocManaged(&k, KEYS * D * 2) &&
        !cudaMallocManaged(&v, KEYS * D * 2));
  for (int i = 0; i < QUERIES * D; i++) q[i] = __float2bfloat16(number(i / D, i % D)), o[i] = __float2bfloat16(-100);
  for (int i = 0; i < KEYS * D; i++) k[i] = __float2bfloat16(number(i / D + 2, i % D)), v[i] = __float2bfloat16(number(i / D, i % D + 5));
  CHECK(!cudaMemcpyToSymbol(broken, &which, sizeof which));
  AttentionTiledParams p = {};
  make_map(encode, &p.q, q, QUERIES, ATTENTION_TILED_ROWS / 2);
  make_map(encode, &p.k, k, KEYS, ATTENTION_TILED_KEYS(D));
  make_map(encode, &p.v, v, KEYS, ATTENTION_TILED_KEYS(D));
  p.all.o = o, p.all.q = q, p.all.k = k, p.all.v = v;
  p.all.o_row = p.all.q_row = p.all.k_row = p.all.v_row = D;
  p.all.queries = p.all.q_tokens = QUERIES, p.all.keys = p.all.kv_tokens = KEYS;
  p.all.batch = p.all.heads = p.all.group = p.all.aligned = 1, p.all.scale = 0.125f;
  p.rows = (QUERIES + ATTENTION_TILED_ROWS - 1) / ATTENTION_TILED_ROWS, p.nearby = 1;
  CHECK(!cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  attention<<<1, ATTENTION_TILED_THREADS, shared>>>(p);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  int wrong = 0;
  for (int i = 0; i < QUERIES; i++) wrong += !right(o, i);
  CHECK(wrong == 0);
  return failures != 0;
}
