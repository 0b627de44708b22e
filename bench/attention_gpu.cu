// Times variants of the forward attention kernels on this GPU, to choose among them, in TFLOP/s; decode_gpu.cu does decoding's. Results are held
// against each other: all variants must agree with the first.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels bench/attention_gpu.cu -lcuda -o attention_gpu && ./attention_gpu
#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "attention/attention_wgmma.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)

static int sms;
typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                        const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                        CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode *encode;

__device__ static uint32_t hash(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b;
  return x ^ x >> 16;
}

__global__ void fill(void *to, int64_t count, uint32_t seed) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    float x = 0;
    for (int j = 0; j < 4; j++) x += (float)(hash((uint32_t)i * 4 + j ^ seed) >> 8) / (1 << 23) - 1;
    store_one(to, i, KIND_BF16, x);
  }
}

__global__ void differ(const uint16_t *a, const uint16_t *b, int64_t count, double *sums) {
  double error = 0, size = 0;
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    double x = load_one(a, i, KIND_BF16), y = load_one(b, i, KIND_BF16);
    error += (x - y) * (x - y), size += y * y;
  }
  atomicAdd(sums, error), atomicAdd(sums + 1, size);
}

static double difference(const void *a, const void *b, int64_t count) {
  double *sums, out[2];
  CHECK(cudaMalloc(&sums, 16));
  CHECK(cudaMemset(sums, 0, 16));
  differ<<<264, 256>>>((const uint16_t *)a, (const uint16_t *)b, count, sums);
  CHECK(cudaMemcpy(out, sums, 16, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(sums));
  return sqrt(out[0] / out[1]);
}

template <class F> static double median_time(int calls, F call) {
  std::vector<float> times;
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  for (int round = 0; round < 5; round++) {
    float ms;
    CHECK(cudaEventRecord(from));
    for (int i = 0; i < calls; i++) call(i);
    CHECK(cudaEventRecord(to));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    if (round) times.push_back(ms / calls * 1e-3f);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

static void *filled(int64_t count, uint32_t seed) {
  void *p;
  CHECK(cudaMalloc(&p, count * 2));
  fill<<<1056, 256>>>(p, count, seed);
  return p;
}

// ---- forward ----

template <class T> __global__ void __launch_bounds__(ATTENTION_TILED_THREADS, 1) forward(const __grid_constant__ AttentionTiledParams p) {
  T::run(p);
}

struct Forward {
  const char *name;
  void (*kernel)(const AttentionTiledParams);
  int d, keys;
  size_t shared;
};
#define FORWARD(d, turns, keys, stages)                                                                      \
  {#d " turns " #turns " keys " #keys " stages " #stages, forward<AttentionWgmma<KIND_BF16, d, turns, keys, stages>>, d, keys, \
   sizeof(AttentionWgmma<KIND_BF16, d, turns, keys, stages>::Shared)}
static const Forward forwards[] = {FORWARD(128, 1, 128, 2), FORWARD(128, 0, 128, 2), FORWARD(128, 1, 64, 3), FORWARD(64, 1, 128, 2),
                                   FORWARD(64, 0, 128, 2), FORWARD(64, 1, 128, 3), FORWARD(64, 1, 128, 4), FORWARD(64, 0, 128, 4),   FORWARD(256, 1, 64, 2), FORWARD(256, 0, 64, 2)};

static void make_map(AttentionMap *map, void *base, int d, int tokens, int heads, int batch, int box) {
  cuuint64_t dims[] = {(cuuint64_t)d, (cuuint64_t)tokens, (cuuint64_t)heads, (cuuint64_t)batch};
  cuuint64_t strides[] = {(cuuint64_t)heads * d * 2, (cuuint64_t)d * 2, (cuuint64_t)tokens * heads * d * 2};
  cuuint32_t size[] = {64, (cuuint32_t)box, 1, 1}, steps[] = {1, 1, 1, 1};
  if (encode((CUtensorMap *)map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, base, dims, strides, size, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    printf("no tensor map\n"), exit(2);
}

static void time_forward(int batch, int heads, int tokens, int d, int causal) {
  int64_t count = (int64_t)batch * heads * tokens * d;
  void *q = filled(count, 1), *k = filled(count, 2), *v = filled(count, 3), *o = filled(count, 4), *first = NULL;
  double flops = 4.0 * count * tokens / (causal ? 2 : 1);
  printf("%dx%dx%dx%d%s, TFLOP/s with heads nearby of 8, 16, 32 MB of K and V, and all\n", batch, heads, tokens, d, causal ? " causal" : "");
  for (const Forward &f : forwards) {
    if (f.d != d) continue;
    AttentionTiledParams p = {};
    make_map(&p.q, q, d, tokens, heads, batch, 64), make_map(&p.k, k, d, tokens, heads, batch, f.keys);
    make_map(&p.v, v, d, tokens, heads, batch, f.keys);
    int64_t row = heads * d;
    p.all = {o, q, k, v, NULL, NULL, NULL, row, row, row, row, row * tokens, row * tokens, row * tokens, row * tokens, 0, 0,
             0, 0, tokens, tokens, batch, heads, 1, causal, 0, 1, 1 / sqrtf((float)d), 0};
    p.rows = (tokens + 127) / 128;
    CHECK(cudaFuncSetAttribute(f.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)f.shared));
    printf("  %-28s", f.name);
    for (double mb : {8e6, 16e6, 32e6, 1e12}) {
      p.nearby = (int)std::min<double>(batch * heads, std::max(1.0, mb / (4.0 * tokens * d)));
      int grid = std::min(sms, p.rows * batch * heads);
      double t = median_time((int)std::max(2.0, 3e-3 / (flops / 5e14)), [&](int) { f.kernel<<<grid, ATTENTION_TILED_THREADS, f.shared>>>(p); });
      CHECK(cudaDeviceSynchronize());
      printf(" %6.1f", flops / t * 1e-12);
    }
    if (!first) {
      CHECK(cudaMalloc(&first, count * 2));
      CHECK(cudaMemcpy(first, o, count * 2, cudaMemcpyDeviceToDevice));
      printf("\n");
    } else
      printf("  differs by %.2g\n", difference(o, first, count));
    fflush(stdout);
  }
  for (void *x : {q, k, v, o, first}) CHECK(cudaFree(x));
}

int main(void) {
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  time_forward(4, 32, 4096, 128, 1);
  time_forward(16, 16, 1024, 64, 1);
  time_forward(1, 32, 16384, 128, 1);
  time_forward(4, 32, 4096, 128, 0);
  time_forward(4, 16, 4096, 64, 1);
  time_forward(2, 16, 4096, 256, 1);
  return 0;
}
