// Times the GEMM kernels for few rows (decoding) with weights of 16, 8 and 4 bits beside a copy of as many bytes, over sets of weights that
// do not fit into L2, in CUDA graphs, and checks them: every way to share out the work, the best of each first.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels bench/gemm_few_gpu.cu -o gemm_few
//   ./gemm_few [check | [warps=N] [blocks=N] [hint=N] [held=1] [ACROSS,PARTS] KIND/BITS:ROWSxCOLUMNSxK...]    such as 2/4:8x4096x4096; kinds as in gemm.def;
//   warps of a block, blocks of an SM, KiB that a block prefetches before the kernel before has ended, weights of 4 or 8 bits by
//   gemm_few_held.cuh: for the shapes that follow
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gemm/gemm_few_held.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)

enum { WARPS = 8, SHARED = GEMM_FEW_SHARED(1, WARPS) };
static int warps = WARPS, blocks_per_sm = 1, hint = 0, held = 0;
template <int KIND, int BITS> __global__ void __launch_bounds__(WARPS * 32, 1) few(const __grid_constant__ GemmFewParams p) {
#if __CUDA_ARCH__ >= 800
  gemm_few<KIND, BITS>(p);
#endif
}
__global__ void __launch_bounds__(256) copy(uint4 *to, const uint4 *from, int64_t count) {
  int64_t i = (int64_t)blockIdx.x * 1024 + threadIdx.x;
  uint4 v[4];
  let_successor_start();
  wait_for_predecessor();
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (i + k * 256 < count) v[k] = __ldcs(from + i + k * 256);
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (i + k * 256 < count) __stcs(to + i + k * 256, v[k]);
}

struct Variant {
  void (*kernel)(const GemmFewParams);
  int kind, bits;
};
static const Variant variants[] = {{few<2, 16>, 2, 16}, {few<2, 8>, 2, 8}, {few<2, 4>, 2, 4}, {few<3, 8>, 3, 8}};
// warps side by side, blocks that share out k
struct Way {
  int across, parts;
};
static cudaStream_t stream;
static int sms;

__host__ __device__ static uint32_t hash(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b;
  return x ^ x >> 16;
}
// Finite numbers of a kind, or any bytes.
__global__ void fill(void *to, int64_t count, int kind, uint32_t seed) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    uint32_t h = hash((uint32_t)i ^ seed);
    if (kind == KIND_FP8) ((uint8_t *)to)[i] = (uint8_t)((h >> 8 & 0x87) | (0x20 + (h >> 16 & 0x18)));
    else if (kind == GEMM_INT4) ((uint8_t *)to)[i] = (uint8_t)h;
    else store_one(to, i, kind, (float)(h >> 8) / (1 << 23) - 1);
  }
}
__device__ static float element(const void *x, int64_t i, int kind) {
  if (kind == GEMM_INT4) return (float)((int8_t)(((const uint8_t *)x)[i / 2] << (i % 2 ? 0 : 4)) >> 4);
  if (kind == KIND_FP8) {
    uint16_t h = __nv_cvt_fp8_to_halfraw(((const uint8_t *)x)[i], __NV_E4M3).x;
    return load_one(&h, 0, KIND_FP16);
  }
  return load_one(x, i, kind);
}
__device__ static double dot(const GemmFewParams &f, int a_kind, int b_kind, int64_t row, int64_t column) {
  const GemmAnyParams &p = f.any;
  double sum = 0;
  for (int64_t k = 0; k < p.k; k++)
    sum += (double)element(p.a, row * p.a_down + k, a_kind) * (double)element(p.b, k + column * p.b_across, b_kind) *
           (b_kind == GEMM_INT4 ? (double)f.scales[column * f.groups + k / GEMM_GROUP] : 1.0);
  return sum;
}
__global__ void compare(GemmFewParams f, int a_kind, int b_kind, int *worst) {
  const GemmAnyParams &p = f.any;
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, row = i / p.n, column = i % p.n;
  if (i >= p.m * p.n) return;
  double x = dot(f, a_kind, b_kind, row, column), scale = sqrt((double)p.k);
  if (p.end.bias) x += (double)load_one(p.end.bias, column, KIND_BF16);
  if (p.end.activation == GEMM_SILU_MUL) {
    double up = dot(f, a_kind, b_kind, row, column + p.n) + (double)load_one(p.end.bias, column + p.n, KIND_BF16);
    x = x / (1 + exp(-x)) * up, scale *= scale;
  }
  double got = (double)load_one(p.end.c, row * p.end.c_stride + column, p.end.out_kind);
  double limit = (fabs(x) + (a_kind == KIND_FP8 ? 1.0 : 0.1) * scale) * 4.2e-3, error = fabs(got - x);
  atomicMax(worst, error <= limit * 2000 ? (int)(error / limit * 1000) : 2000000);
}

static char *device(size_t bytes) {
  void *p;
  CHECK(cudaMalloc(&p, bytes));
  return (char *)p;
}

static cudaError_t launch(const Variant &v, int parts, const GemmFewParams &f) {
  int64_t tiles = f.ranges * ((f.any.m + f.rows - 1) / f.rows);
  cudaLaunchAttribute at[2] = {};
  at[0].id = cudaLaunchAttributeClusterDimension, at[0].val.clusterDim = {(unsigned)parts, 1, 1};
  at[1].id = cudaLaunchAttributeProgrammaticStreamSerialization, at[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t c = {};
  c.dynamicSmemBytes = f.wide ? GEMM_FEW_HELD_SHARED(warps, f.rows, warps / f.across, f.wide, (int)f.groups) : GEMM_FEW_SHARED(1, warps);
  c.gridDim = dim3((unsigned)(tiles * parts)), c.blockDim = dim3(warps * 32), c.stream = stream, c.attrs = at, c.numAttrs = 2;
  return cudaLaunchKernelEx(&c, v.kernel, f);
}

static GemmFewParams problem(int64_t m, int64_t n, int64_t k, char *a, char *b, char *c, float *scales, Way way, int bits, bool gated = false) {
  GemmFewParams f = {};
  GemmAnyParams &p = f.any;
  p.a = a, p.b = b, p.m = m, p.n = n, p.k = k, p.batch = 1, p.a_down = k, p.a_across = 1, p.b_down = 1, p.b_across = k;
  p.end.c = c, p.end.c_stride = n, p.end.alpha = 1, p.end.out_kind = p.end.bias_kind = KIND_BF16;
  f.scales = scales, f.groups = bits == 4 ? (k + GEMM_GROUP - 1) / GEMM_GROUP : 0, f.across = way.across, f.rows = m > 8 ? 16 : 8;
  f.ranges = (int)std::min<int64_t>((n + 7) / 8, std::max(1, blocks_per_sm * sms / way.parts));
  int64_t own = (n + f.ranges - 1) / f.ranges, first = std::min<int64_t>(own, way.across * GEMM_FEW_COLUMNS);
  f.eights = (int)((n + 7) / 8 / f.ranges), f.more = (int)((n + 7) / 8 % f.ranges);
  f.hint = (int)(hint * 1024 / first / 256 * 256);
  int most = (f.eights + (f.more > 0)) * (gated ? 16 : 8);
  if (held && bits < 16) f.wide = gemm_few_held_wide(warps, f.rows, warps / way.across, (int)f.groups, most);
  return f;
}

static int weights_kind(const Variant &v) {
  return v.bits == 4 ? GEMM_INT4 : v.bits == 8 ? KIND_FP8 : v.kind;
}

static int check(const Variant &v, int64_t m, int64_t n, int64_t k, bool gated, Way way) {
  int64_t columns = gated ? 2 * n : n, groups = (k + GEMM_GROUP - 1) / GEMM_GROUP;
  char *a = device(m * k * 2), *b = device(columns * k * 2), *c = device(m * n * 2), *bias = device(columns * 2), *scales = device(columns * groups * 4);
  int *worst = (int *)device(4), found;
  fill<<<256, 256, 0, stream>>>(a, m * k, v.kind, 1);
  fill<<<256, 256, 0, stream>>>(b, columns * k, weights_kind(v), 2);
  fill<<<256, 256, 0, stream>>>(bias, columns, KIND_BF16, 4);
  fill<<<256, 256, 0, stream>>>(scales, columns * groups, KIND_FP32, 5);
  CHECK(cudaMemsetAsync(c, 0xff, m * n * 2, stream));
  CHECK(cudaMemsetAsync(worst, 0, 4, stream));
  GemmFewParams f = problem(m, n, k, a, b, c, (float *)scales, way, v.bits, gated);
  f.any.end.activation = gated ? GEMM_SILU_MUL : GEMM_LINEAR, f.any.end.bias = bias;
  CHECK(launch(v, way.parts, f));
  compare<<<(unsigned)((m * n + 127) / 128), 128, 0, stream>>>(f, v.kind, weights_kind(v), worst);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(&found, worst, 4, cudaMemcpyDeviceToHost));
  void *all[] = {a, b, c, bias, scales, worst};
  for (void *x : all) CHECK(cudaFree(x));
  if (found > 1000)
    printf("WRONG %d/%d %dx%dx%d gated %d, %d across, %d parts: %.2f of what is allowed\n", v.kind, v.bits, (int)m, (int)n, (int)k, gated,
           way.across, way.parts, found / 1000.0);
  return found > 1000;
}

static int check_all(void) {
  int wrong = 0;
  for (const Variant &v : variants)
    for (int m : {1, 7, 16, 19})
      wrong += check(v, m, 100 + m, 544, false, {m == 1 ? 8 : 2, m % 4 + 1}) +
               check(v, m, 5000 + m, 1024, true, {m == 7 ? 1 : 4, m == 19 ? 1 : 8 - m % 4});
  held = 1; // warps that share out k have a step each
  for (int m : {1, 7, 16, 19})
    for (int i : {1, 2})
      wrong += check(variants[i], m, 100 + m, 4128, false, {m == 1 ? 8 : 4, m % 4 + 1}) +
               check(variants[i], m, 5000 + m, 24576, true, {m == 7 ? 1 : 4, m == 19 ? 1 : 8 - m % 4});
  printf("small cases: %d wrong\n", wrong);
  return wrong;
}

template <class F> static double time_of(int calls, F call) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  static cudaEvent_t from, to;
  if (!from) {
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
  }
  std::vector<double> times;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; i++) call(i);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  for (int turn = 0; turn < 4; turn++) {
    float ms;
    CHECK(cudaEventRecord(from, stream));
    CHECK(cudaGraphLaunch(ready, stream));
    CHECK(cudaEventRecord(to, stream));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    if (turn) times.push_back(ms * 1000 / calls);
  }
  CHECK(cudaGraphExecDestroy(ready));
  CHECK(cudaGraphDestroy(graph));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

static std::vector<Way> all_ways(void) {
  std::vector<Way> out;
  for (int across : {1, 2, 4, 8})
    for (int parts : {1, 2, 4}) out.push_back({across, parts});
  return out;
}

static void time_shape(int kind, int bits, int64_t m, int64_t n, int64_t k, char *pool, size_t room, const char *only) {
  int64_t groups = (k + GEMM_GROUP - 1) / GEMM_GROUP, weights = n * k * bits / 8, scales = bits == 4 ? n * groups * 4 : 0;
  int64_t one = (weights + scales + 1023) / 1024 * 1024, x_bytes = m * k * (kind == KIND_FP8 ? 1 : 2);
  int sets = (int)std::max<int64_t>(2, std::min<int64_t>(48, (int64_t)500000000 / one)), calls = std::max(sets, one > 60000000 ? 12 : 24);
  double bytes = (double)(weights + scales + x_bytes + m * n * 2);
  char *a = pool + room, *c = a + (8 << 20);
  int64_t pieces = (int64_t)(bytes / 32);
  double light = time_of(calls, [&](int i) {
    char *to = pool + (size_t)i * 2 * pieces * 16 % (room - 2 * pieces * 16) / 1024 * 1024;
    cudaLaunchAttribute at = {};
    at.id = cudaLaunchAttributeProgrammaticStreamSerialization, at.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((pieces + 1023) / 1024)), config.blockDim = dim3(256), config.stream = stream, config.attrs = &at, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, copy, (uint4 *)to + pieces, (const uint4 *)to, pieces));
  });
  struct Timed {
    double us;
    std::string what;
  };
  std::vector<Timed> all;
  static const std::vector<Way> ways = all_ways();
  for (const Variant &v : variants) {
    if (v.kind != kind || v.bits != bits) continue;
    for (const Way &w : ways) {
      if (w.across > warps || (only == NULL && w.parts > 2)) continue;
      char what[80];
      snprintf(what, sizeof what, "%d,%d", w.across, w.parts);
      if (only && strcmp(only, what)) continue;
      if (!only && (k * bits / 1024) / (warps / w.across * w.parts) < 1) continue;
      if (launch(v, w.parts, problem(m, n, k, a, pool, c, (float *)(pool + weights), w, bits))) {
        (void)cudaGetLastError();
        continue;
      }
      double t = time_of(calls, [&](int i) {
        char *b = pool + (size_t)(i % sets) * one;
        (void)launch(v, w.parts, problem(m, n, k, a, b, c, (float *)(b + weights), w, bits));
      });
      all.push_back({t, what});
    }
  }
  std::sort(all.begin(), all.end(), [](const Timed &x, const Timed &y) { return x.us < y.us; });
  printf("%d/%-2d %2dx%dx%d copy %.2f %4.0f GB/s |", kind, bits, (int)m, (int)n, (int)k, light, bytes / light * 1e-3);
  for (size_t i = 0; i < all.size() && i < 7; i++) printf(" %s %.2f(%.3f)", all[i].what.c_str(), all[i].us, all[i].us / light);
  printf("\n");
  fflush(stdout);
}

int main(int argc, char **argv) {
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  for (const Variant &v : variants) CHECK(cudaFuncSetAttribute(v.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED));
  if (argc > 1 && !strcmp(argv[1], "check")) return check_all();
  size_t room = (size_t)2 << 30;
  char *pool = device(room + (32 << 20));
  fill<<<1056, 256, 0, stream>>>(pool, (int64_t)room / 2, KIND_BF16, 2);
  fill<<<1056, 256, 0, stream>>>(pool + room, 16 << 20, KIND_BF16, 3);
  const char *only = NULL;
  for (int i = 1; i < argc; i++) {
    int kind, bits, m, n, k;
    if (sscanf(argv[i], "%d/%d:%dx%dx%d", &kind, &bits, &m, &n, &k) == 5) time_shape(kind, bits, m, n, k, pool, room, only);
    else if (sscanf(argv[i], "warps=%d", &warps) == 1 || sscanf(argv[i], "blocks=%d", &blocks_per_sm) == 1 || sscanf(argv[i], "hint=%d", &hint) == 1 ||
             sscanf(argv[i], "held=%d", &held) == 1)
      printf("%s\n", argv[i]);
    else only = argv[i];
  }
  return 0;
}
