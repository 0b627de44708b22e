// C = A * B on Hopper: A is M x K, B is K x N with its columns together, both bf16; C is f32. One warp of a producer
// warpgroup loads tiles by tensor copies into a ring of stages, two warpgroups multiply them by wgmma, and C is stored
// by a tensor copy. Sizes need not be multiples of the tile. The argument breaks one thing:
//   1 no wgmma.wait_group   2 a wrong phase   3 a wrong descriptor   4 no wait for the tiles
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

enum { TILE_M = 128, TILE_N = 64, TILE_K = 64, STAGES = 3, THREADS = 384 };
struct Shared { // every tile is swizzled over 128 bytes and starts at a multiple of 1024
  __nv_bfloat16 a[STAGES][TILE_M * TILE_K], b[STAGES][TILE_N * TILE_K];
  float c[2][TILE_M * 32]; // 32 columns each: 128 bytes
  uint64_t full[STAGES], empty[STAGES];
};

__device__ uint32_t shared_of(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ void barrier_init(uint64_t *bar, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_of(bar)), "r"(arrivals) : "memory");
}
__device__ void barrier_wait(uint64_t *bar, uint32_t parity) {
  asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra W;\n}" ::"r"(
                   shared_of(bar)),
               "r"(parity)
               : "memory");
}
__device__ void barrier_arrive(uint64_t *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_of(bar)) : "memory");
}
__device__ void barrier_expect(uint64_t *bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_of(bar)), "r"(bytes) : "memory");
}
__device__ void load_tile(void *to, const CUtensorMap *map, uint64_t *bar, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(
          shared_of(to)),
      "l"(map), "r"(shared_of(bar)), "r"(x), "r"(y)
      : "memory");
}
// K-major, swizzled over 128 bytes: eight rows are 1024 bytes.
__device__ uint64_t descriptor(const void *tile, int bytes) {
  uint64_t start = (shared_of(tile) + bytes) & 0x3ffff;
  return start >> 4 | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}
__device__ void multiply(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,"
      "%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b));
}

__device__ void produce(Shared *s, const CUtensorMap *a, const CUtensorMap *b, int steps) {
  for (int k = 0; k < steps; k++) {
    int stage = k % STAGES, round = k / STAGES;
    barrier_wait(&s->empty[stage], ~round & 1);
    barrier_expect(&s->full[stage], (TILE_M + TILE_N) * TILE_K * 2);
    load_tile(s->a[stage], a, &s->full[stage], k * TILE_K, blockIdx.y * TILE_M);
    load_tile(s->b[stage], b, &s->full[stage], k * TILE_K, blockIdx.x * TILE_N);
  }
}

__device__ void consume(Shared *s, float (&d)[32], int group, int steps, int broken) {
  for (int k = 0; k < steps; k++) {
    int stage = k % STAGES, round = k / STAGES;
    if (broken != 4) barrier_wait(&s->full[stage], (round ^ (broken == 2)) & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < TILE_K / 16; i++) {
      int bytes = i * 32 + (broken == 3 ? 16 : 0);
      multiply(d, descriptor(s->a[stage] + group * 64 * TILE_K, i * 32), descriptor(s->b[stage], bytes));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (broken != 1) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 128 == 0) barrier_arrive(&s->empty[stage]); // the wait was for all four warps
  }
}

__device__ void store(Shared *s, const float (&d)[32], int group, const CUtensorMap *c) {
  int t = threadIdx.x % 128, row = group * 64 + t / 32 * 16 + t % 32 / 4;
  for (int r = 0; r < 32; r++) { // swizzled as the tensor map says
    int m = row + r / 2 % 2 * 8, n = r / 4 * 8 + t % 4 * 2 + r % 2, byte = n % 32 * 4;
    *(float *)((char *)s->c[n / 32] + m * 128 + (byte ^ m % 8 * 16)) = d[r];
  }
  asm volatile("fence.proxy.async.shared::cta;\nbar.sync 1, 256;" ::: "memory");
  if (threadIdx.x != 128) return;
  for (int half = 0; half < 2; half++)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(c),
                 "r"(shared_of(s->c[half])), "r"(blockIdx.x * TILE_N + half * 32), "r"(blockIdx.y * TILE_M)
                 : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void __launch_bounds__(THREADS)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
         const __grid_constant__ CUtensorMap c, int steps, int broken) {
  extern __shared__ __align__(1024) unsigned char memory[];
  Shared *s = (Shared *)memory;
  if (threadIdx.x == 0) {
    for (int k = 0; k < STAGES; k++) barrier_init(&s->full[k], 1), barrier_init(&s->empty[k], 2);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  int group = (int)threadIdx.x / 128 - 1;
  if (group < 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce(s, &a, &b, steps);
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  float d[32] = {0};
  consume(s, d, group, steps, broken);
  store(s, d, group, &c);
}

typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                        const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                        CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static CUtensorMap make_map(Encode *encode, CUtensorMapDataType type, int size, void *base, int columns, int rows,
                            int pitch, int box_columns, int box_rows) {
  CUtensorMap map;
  cuuint64_t dims[] = {(cuuint64_t)columns, (cuuint64_t)rows}, strides[] = {(cuuint64_t)pitch * size};
  cuuint32_t box[] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows}, steps[] = {1, 1};
  CHECK(encode(&map, type, 2, base, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

static float number(int i, int k) {
  return (float)((i * 7 + k * 13) % 9 - 4) / 4;
}

int main(int argc, char **argv) {
  int broken = argc > 1 ? atoi(argv[1]) : 0, m = 200, n = 100, depth = 360; // whole tiles of none
  int pitch_n = 104;
  Encode *encode = NULL;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault,
                                          &found) == cudaSuccess &&
         found == cudaDriverEntryPointSuccess && encode);
  CUtensorMap bad;
  cuuint64_t dim = 8;
  cuuint32_t box = 7, step = 1;
  CHECK(encode(&bad, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, NULL, &dim, NULL, &box, &step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_ERROR_INVALID_VALUE);
  __nv_bfloat16 *a, *b;
  float *c;
  CHECK(!cudaMallocManaged(&a, (size_t)m * depth * 2) && !cudaMallocManaged(&b, (size_t)n * depth * 2) &&
         !cudaMallocManaged(&c, (size_t)m * pitch_n * 4));
  for (int i = 0; i < m; i++)
    for (int k = 0; k < depth; k++) a[i * depth + k] = __float2bfloat16(number(i, k));
  for (int j = 0; j < n; j++)
    for (int k = 0; k < depth; k++) b[j * depth + k] = __float2bfloat16(number(k, j + 3));
  for (int i = 0; i < m * pitch_n; i++) c[i] = -1;
  CUtensorMap map_a = make_map(encode, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, a, depth, m, depth, TILE_K, TILE_M);
  CUtensorMap map_b = make_map(encode, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, b, depth, n, depth, TILE_K, TILE_N);
  CUtensorMap map_c = make_map(encode, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, c, n, m, pitch_n, 32, TILE_M);
  CHECK(!cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(Shared)));
  dim3 grid((n + TILE_N - 1) / TILE_N, (m + TILE_M - 1) / TILE_M);
  gemm<<<grid, THREADS, sizeof(Shared)>>>(map_a, map_b, map_c, (depth + TILE_K - 1) / TILE_K, broken);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  int wrong = 0;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < pitch_n; j++) {
      double sum = j < n ? 0 : -1; // past the tensor nothing is written
      for (int k = 0; j < n && k < depth; k++) sum += (double)number(i, k) * number(k, j + 3);
      wrong += c[i * pitch_n + j] != (float)sum; // multiples of 1/16: exact
    }
  CHECK(wrong == 0);
  return failures != 0;
}
