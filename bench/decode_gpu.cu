// Times variants of decode_attention_part.cuh on this GPU beside a copy of as many bytes, half of them read and half written, with several lengths
// of parts and blocks of an SM. Each one's last sequence is held against sums in double.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels bench/decode_gpu.cu -o decode_gpu && ./decode_gpu
#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <vector>

#include "decode_attention/decode_attention_combine.cuh"
#include "decode_attention/decode_attention_part.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)

static int sms;

__device__ static uint32_t hash(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b;
  return x ^ x >> 16;
}
__device__ static float value(int64_t i, uint32_t seed) {
  float x = 0;
  for (int j = 0; j < 4; j++)
    x += (float)(hash((uint32_t)i * 4 + j ^ seed * 0x9e3779b9u) >> 8) / (1 << 23) - 1;
  return x;
}
__global__ void fill(void *to, int64_t count, uint32_t seed, int fp8) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count;
       i += (int64_t)gridDim.x * blockDim.x) {
    if (fp8)
      ((__nv_fp8_e4m3 *)to)[i] = __nv_fp8_e4m3(value(i, seed));
    else
      store_one(to, i, KIND_BF16, value(i, seed));
  }
}
static void *filled(int64_t count, uint32_t seed, int fp8) {
  void *p;
  CHECK(cudaMalloc(&p, count * (2 - fp8)));
  fill<<<1056, 256>>>(p, count, seed, fp8);
  return p;
}

template <class F> static double median_time(int calls, F call) {
  std::vector<float> times;
  cudaEvent_t from, to;
  CHECK(cudaEventCreate(&from));
  CHECK(cudaEventCreate(&to));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t run;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < calls; i++) call(i, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&run, graph, 0));
  for (int round = 0; round < 5; round++) {
    float ms;
    CHECK(cudaEventRecord(from, stream));
    CHECK(cudaGraphLaunch(run, stream));
    CHECK(cudaEventRecord(to, stream));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    if (round) times.push_back(ms / calls * 1e-3f);
  }
  CHECK(cudaGraphExecDestroy(run));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// ---- kernels ----

template <class T, int blocks>
__global__ void __launch_bounds__(T::THREADS, blocks) decode(const __grid_constant__ DecodeBoxParams p) {
  let_successor_start();
  T::run(p);
}
template <int V>
__global__ void __launch_bounds__(DECODE_SLOTS * 32, V > 64 ? 2 : 3)
    combine(const __grid_constant__ DecodeParams p) {
  let_successor_start();
  DecodeCombine<V>::run(p);
}

struct Variant {
  const char *name;
  void (*kernel)(const DecodeBoxParams), (*combine)(const DecodeParams);
  int fp8, d, heads, blocks, step; // step: tokens at a time
  size_t shared;
};
#define PART(fp8, d, tiles, ways, keys, places, blocks)                                                            \
  {                                                                                                          \
    "tiles " #tiles " ways " #ways " keys " #keys " places " #places " blocks " #blocks,                                    \
        decode<DecodePart<fp8 ? KIND_FP16 : KIND_BF16, fp8, d, tiles, ways, keys, places>, blocks>, combine<d>,    \
        fp8, d, tiles * ways * 8, blocks, keys *DECODE_PART_WARPS / ways,                                                  \
        DECODE_PART_SHARED(tiles, ways, d, keys, 2 - fp8, places)                                                  \
  }
static std::vector<Variant> variants() {
  return {PART(0, 128, 1, 1, 16, 3, 4), PART(0, 128, 1, 1, 16, 4, 3), PART(0, 128, 2, 2, 16, 7, 3), PART(0, 128, 2, 2, 32, 3, 3), PART(0, 128, 2, 2, 32, 6, 2),
          PART(0, 64, 1, 1, 32, 3, 4),  PART(0, 64, 1, 1, 32, 4, 3),  PART(0, 256, 1, 1, 16, 2, 3),
          PART(1, 128, 1, 1, 32, 3, 4), PART(1, 128, 1, 1, 32, 4, 3), PART(1, 256, 1, 1, 16, 4, 3)};
}

// As src/ops/decode_attention_launch.c has it.
static CUresult (*encode)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                          const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                          CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static DecodeMap map_of(const void *cache, int d, int size, int page, int kv, int pages) {
  uint64_t row = (uint64_t)d * size, wide = row < 128 ? row : 128, token = row * kv;
  cuuint64_t dims[] = {wide / size, (cuuint64_t)page, row / wide, (cuuint64_t)kv, (cuuint64_t)pages},
             strides[] = {token, wide, row, token * page};
  cuuint32_t box[] = {(cuuint32_t)(wide / size), 16, (cuuint32_t)(row / wide), 1, 1},
             ones[] = {1, 1, 1, 1, 1};
  DecodeMap m;
  CUresult r =
      encode((CUtensorMap *)&m, size == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 5,
             (void *)cache, dims, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
             wide == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
             CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r) printf("no tensor map: %d\n", r), exit(2);
  return m;
}
template <class... Args>
static void launch_early(void (*kernel)(Args...), int grid, int threads, size_t shared, cudaStream_t stream,
                         Args... args) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid), config.blockDim = dim3(threads), config.dynamicSmemBytes = shared,
  config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, kernel, args...));
}

// As the library's.
__global__ void __launch_bounds__(256) copy(uint4 *to, const uint4 *from, int64_t count) {
  int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x;
  wait_for_predecessor();
  let_successor_start();
  if (i < count) to[i] = from[i];
}
// ---- the reference: a block for each head of sequence b ----

__global__ void refer(const DecodeParams p, int b, int d, int fp8, int tokens, double *scores, double *want) {
  __shared__ double most, sum;
  int wide = d == DECODE_LATENT ? DECODE_LATENT_V : d;
  int head = blockIdx.x, kv = head / p.group;
  scores += (int64_t)head * tokens;
  auto at = [&](const void *cache, int t, int i) {
    int64_t row = (int64_t)p.table[(int64_t)b * p.table_pages + t / p.page_size] * p.page_size +
                  t % p.page_size,
            n = (row * p.kv_heads + kv) * d + i;
    return fp8 ? (float)((const __nv_fp8_e4m3 *)cache)[n] : load_one(cache, n, KIND_BF16);
  };
  for (int t = threadIdx.x; t < tokens; t += blockDim.x) {
    double x = 0;
    for (int i = 0; i < d; i++)
      x += (double)load_one(p.q, b * p.q_row + head * d + i, KIND_BF16) * at(p.k_cache, t, i);
    scores[t] = x * p.scale;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    most = -INFINITY, sum = 0;
    for (int t = 0; t < tokens; t++) most = fmax(most, scores[t]);
  }
  __syncthreads();
  for (int t = threadIdx.x; t < tokens; t += blockDim.x) scores[t] = exp(scores[t] - most);
  __syncthreads();
  if (threadIdx.x == 0)
    for (int t = 0; t < tokens; t++) sum += scores[t];
  __syncthreads();
  if (threadIdx.x >= wide) return;
  double o = 0;
  for (int t = 0; t < tokens; t++)
    o += scores[t] * at(d == DECODE_LATENT ? p.k_cache : p.v_cache, t, threadIdx.x);
  o /= sum;
  want[head * wide + threadIdx.x] = o;
}

static double error_of(const DecodeParams &p, int d, const std::vector<double> &want) {
  std::vector<uint16_t> o((size_t)p.heads * d);
  CHECK(
      cudaMemcpy(o.data(), (uint16_t *)p.o + (p.batch - 1) * p.o_row, o.size() * 2, cudaMemcpyDeviceToHost));
  double error = 0, size = 0;
  for (size_t i = 0; i < o.size(); i++) {
    uint32_t bits = (uint32_t)o[i] << 16;
    float x;
    memcpy(&x, &bits, 4);
    error += (x - want[i]) * (x - want[i]), size += want[i] * want[i];
  }
  return sqrt(error / size);
}

static void make_table(void *table, int pages, void *lengths, int batch, int tokens) {
  std::vector<int32_t> order(pages), all(batch, tokens);
  for (int i = 0; i < pages; i++) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  CHECK(cudaMemcpy(table, order.data(), order.size() * 4, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(lengths, all.data(), all.size() * 4, cudaMemcpyHostToDevice));
}

static void time_decode(int batch, int heads, int kv_heads, int tokens, int d, int fp8) {
  enum { PAGE = 64 };
  int64_t each = (int64_t)batch * tokens * kv_heads * d, bytes = each * 2 * (2 - fp8);
  int sets = (int)std::max<int64_t>(1, std::min<int64_t>(8, 400000000 / bytes + 1)),
      pages = batch * tokens / PAGE;
  std::vector<void *> k, v;
  for (int i = 0; i < sets; i++)
    k.push_back(filled(each, 1 + i, fp8)), v.push_back(filled(each, 101 + i, fp8));
  void *q = filled((int64_t)batch * heads * d, 77, 0), *o = filled((int64_t)batch * heads * d, 78, 0), *table,
       *lengths, *space, *to;
  CHECK(cudaMalloc(&to, bytes));
  CHECK(cudaMalloc(&table, pages * 4));
  CHECK(cudaMalloc(&lengths, batch * 4));
  CHECK(cudaMalloc(&space, (int64_t)batch * heads * (tokens / 64 + 1) * (d + 2) * 4));
  make_table(table, pages, lengths, batch, tokens);
  int calls = (int)std::max<double>(sets, std::min(60.0, 2e-3 / (bytes / 4e12)));
  int64_t half = bytes / 32;
  double light = median_time(calls, [&](int i, cudaStream_t s) {
    launch_early(copy, (int)((half + 255) / 256), 256, 0, s, (uint4 *)to + i % 2 * half,
                 (const uint4 *)k[i % sets], half);
  });
  printf("decode %dx%dx%dx%dx%d%s, %.0f MiB, copy %.1f us\n", batch, heads, kv_heads, tokens, d,
         fp8 ? " fp8" : "", bytes / 1048576.0, light * 1e6);
  std::vector<double> want((size_t)heads * d);
  int row_bytes = d * 2 * (2 - fp8);
  for (const Variant &f : variants()) {
    if (f.d != d || f.fp8 != fp8 || (f.heads > 8) != (heads / kv_heads > 8)) continue;
    CHECK(cudaFuncSetAttribute(f.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
    printf("  %s; KiB of a part/blocks of an SM\n   ", f.name);
    for (int kib : {64, 128, 256, 512}) {
      int part = kib * 1024 / row_bytes;
      if (part > 1024 * (fp8 + 1) || part > tokens * 2 || part < f.step) continue;
      for (int per : {f.blocks, 2, 1}) {
        enum { WAVES = 8 };
        int64_t items = (int64_t)batch * kv_heads * ((tokens + part - 1) / part) *
                        ((heads / kv_heads + f.heads - 1) / f.heads);
        if ((per < f.blocks &&
             (items > sms * f.blocks || items <= sms * (per - 1) || per * sms * 2 < items)) ||
            (per == 2 && f.blocks == 2 && per != f.blocks))
          continue;
        DecodeBoxParams all = {};
        DecodeParams &p = all.all;
        p.o = o, p.q = q, p.table = (int32_t *)table, p.lengths = (int32_t *)lengths, p.o_row = heads * d,
        p.q_row = heads * d, p.pages = pages;
        p.batch = batch, p.heads = heads, p.kv_heads = kv_heads, p.group = heads / kv_heads,
        p.tiles = (p.group + f.heads - 1) / f.heads;
        p.page_size = PAGE, p.page_shift = 6, p.table_pages = tokens / PAGE, p.many = 1 << 20;
        p.capacity = tokens, p.whole = p.part = p.part_most = p.coarse = part, p.step = f.step,
        p.parts = (tokens + part - 1) / part, p.aligned = p.q_aligned = 1, p.kind = KIND_BF16;
        p.scale = 1 / sqrtf((float)d), p.v_scale = 1, p.slots = p.parts > DECODE_SLOTS ? DECODE_SLOTS : 1;
        size_t shared =
            per < f.blocks ? std::max<size_t>(f.shared, (227 * 1024 / per - 1024) / 128 * 128) : f.shared;
        int64_t rows = (int64_t)p.parts * batch * heads;
        p.sums = (float *)space, p.mosts = p.sums + rows * d, p.weights = p.mosts + rows;
        if (want[0] == 0) {
          double *scores, *out;
          CHECK(cudaMalloc(&scores, (int64_t)heads * tokens * 8));
          CHECK(cudaMalloc(&out, want.size() * 8));
          p.k_cache = k[0], p.v_cache = v[0];
          refer<<<heads, 512>>>(p, batch - 1, d, fp8, tokens, scores, out);
          CHECK(cudaMemcpy(want.data(), out, want.size() * 8, cudaMemcpyDeviceToHost));
          CHECK(cudaFree(scores));
          CHECK(cudaFree(out));
        }
        int grid = (int)std::min<int64_t>((int64_t)sms * f.blocks * WAVES,
                                          (int64_t)batch * kv_heads * p.tiles * p.parts);
        auto call = [&](int i, cudaStream_t s) {
          p.k_cache = k[i % sets], p.v_cache = v[i % sets];
          all.k = map_of(p.k_cache, d, 2 - fp8, PAGE, kv_heads, pages),
          all.v = map_of(p.v_cache, d, 2 - fp8, PAGE, kv_heads, pages);
          launch_early(f.kernel, grid, 128, shared, s, (const DecodeBoxParams)all);
          int blocks = p.slots == 1 ? (batch * heads + DECODE_SLOTS - 1) / DECODE_SLOTS : batch * heads;
          if (p.parts > 1) launch_early(f.combine, blocks, DECODE_SLOTS * 32, 0, s, (const DecodeParams)p);
        };
        double t = median_time(calls, call);
        CHECK(cudaMemset(o, 0xff, (int64_t)batch * heads * d * 2));
        call(0, 0);
        CHECK(cudaDeviceSynchronize());
        double error = error_of(p, d, want);
        printf(" %d/%d %.3f (%.1f us)%s", kib, per, t / light, t * 1e6, error < 2e-3 ? "" : " WRONG");
      }
    }
    printf("\n");
    fflush(stdout);
  }
  for (int i = 0; i < sets; i++) cudaFree(k[i]), cudaFree(v[i]);
  for (void *x : {q, o, table, lengths, space, to}) CHECK(cudaFree(x));
}
// batch, heads, kv_heads, tokens, elements of a head, fp8
static const int shapes[][6] = {
    {1, 32, 8, 16384, 128, 0}, {8, 32, 8, 8192, 128, 0},   {16, 32, 8, 1024, 128, 0},
    {64, 64, 8, 1024, 128, 0}, {40, 8, 8, 512, 128, 0},    {12, 25, 1, 22912, 128, 0},
    {29, 96, 96, 256, 128, 0}, {16, 32, 8, 16384, 128, 1}, {3, 4, 4, 31488, 256, 1},
    {64, 16, 2, 4096, 256, 0}, {6, 12, 12, 1792, 256, 0},  {1, 96, 96, 3904, 64, 0},
    {3, 25, 25, 13504, 64, 0}, {32, 32, 32, 2048, 128, 0}, {64, 4, 1, 8192, 128, 0}};

// No arguments: all shapes; a number: that one.
int main(int argc, char **argv) {
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault,
                                         &found));
  for (const int *x : shapes)
    if (argc < 2 || x == shapes[atoi(argv[1])]) time_decode(x[0], x[1], x[2], x[3], x[4], x[5]);
  return 0;
}
