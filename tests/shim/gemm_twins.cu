// The library's Hopper GEMM (kernels/gemm/gemm_wgmma.cuh) in a cluster of two that goes round its ring of stages and over
// several tiles, and twins of it that each have one thing wrong. The argument says which:
//   0 none   1 no wait for the tiles   2 a wrong phase   3 a wrong descriptor   4 stages released before they were read
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "gemm/gemm_wgmma.cuh"

enum { WIDE = 128, STAGES = 2, CLUSTER = 2, M = 296, N = 136, K = 200 }; // whole tiles of none

template <int broken> __global__ void __launch_bounds__(GEMM_THREADS(128, 1), 1) gemm(const __grid_constant__ GemmTiledParams p) {
  GemmWgmma<KIND_BF16, 0, 1, 128, WIDE, STAGES, 1, broken>::run(p);
}

typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                        const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                        CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static void make_map(Encode *encode, GemmMap *map, void *base, int size, int x, int y, int box_y) {
  cuuint64_t dims[] = {(cuuint64_t)x, (cuuint64_t)y, 1}, strides[] = {(cuuint64_t)(x * size), 16};
  cuuint32_t box[] = {(cuuint32_t)(128 / size), (cuuint32_t)box_y, 1}, steps[] = {1, 1, 1};
  CHECK(encode((CUtensorMap *)map, size == 4 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, base,
               dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
}

static float number(int i, int k) {
  return (float)((i * 7 + k * 13) % 9 - 4) / 4;
}

int main(int argc, char **argv) {
  static void (*const kernels[])(const GemmTiledParams) = {gemm<0>, gemm<1>, gemm<2>, gemm<3>, gemm<4>};
  int broken = argc > 1 ? atoi(argv[1]) % 5 : 0, shared = GEMM_SHARED(128, WIDE, STAGES, 1);
  Encode *encode = NULL;
  cudaDriverEntryPointQueryResult found;
  __nv_bfloat16 *a, *b;
  float *c;
  CHECK(!cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
  CHECK(!cudaMallocManaged(&a, M * K * 2) && !cudaMallocManaged(&b, N * K * 2) && !cudaMallocManaged(&c, M * N * 4));
  for (int i = 0; i < M * K; i++) a[i] = __float2bfloat16(number(i / K, i % K));
  for (int i = 0; i < K * N; i++) b[i] = __float2bfloat16(number(i / N, i % N + 3));
  GemmTiledParams p = {};
  make_map(encode, &p.a, a, 2, K, M, GEMM_BOX_A(128));
  make_map(encode, &p.b, b, 2, N, K, GEMM_BOX_B(1, WIDE));
  make_map(encode, &p.c, c, 4, N, M, 64);
  p.end.c = c, p.end.c_stride = N, p.end.alpha = 1;
  p.m = M, p.n = N, p.k = K, p.batch = 1, p.rows = 2, p.columns = 2, p.group = 2, p.down = CLUSTER, p.across = 1;
  gemm_divide_by(&p, 1);
  CHECK(!cudaFuncSetAttribute(kernels[broken], cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {CLUSTER, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(CLUSTER), config.blockDim = dim3(GEMM_THREADS(128, 1)), config.dynamicSmemBytes = shared;
  config.attrs = &cluster, config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, kernels[broken], p) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  int wrong = 0;
  for (int i = 0; i < M * N; i++) {
    double sum = 0;
    for (int k = 0; k < K; k++) sum += (double)number(i / N, k) * number(k, i % N + 3);
    wrong += c[i] != (float)sum; // multiples of 1/16: exact
  }
  CHECK(wrong == 0);
  return failures != 0;
}
