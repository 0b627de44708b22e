// Times variants of the decode attention kernels on this GPU beside a copy of as many bytes, half of them read and half written, and
// beside reading them alone. Each variant's last sequence is held against sums in double.
//   nvcc -std=c++17 -O3 -gencode arch=compute_90a,code=sm_90a -Ikernels bench/decode_gpu.cu -o decode_gpu && ./decode_gpu
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "decode_attention/decode_attention_combine.cuh"
#include "decode_attention/decode_attention_few.cuh"
#include "decode_attention/decode_attention_latent.cuh"
#include "decode_attention/decode_attention_warps.cuh"

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
  for (int j = 0; j < 4; j++) x += (float)(hash((uint32_t)i * 4 + j ^ seed * 0x9e3779b9u) >> 8) / (1 << 23) - 1;
  return x;
}
__global__ void fill(void *to, int64_t count, uint32_t seed, int fp8) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x) {
    if (fp8) ((__nv_fp8_e4m3 *)to)[i] = __nv_fp8_e4m3(value(i, seed));
    else store_one(to, i, KIND_BF16, value(i, seed));
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

template <class T, int blocks> __global__ void __launch_bounds__(T::THREADS, blocks) decode(const __grid_constant__ DecodeParams p) {
  let_successor_start();
  T::run(p);
}
template <int V> __global__ void __launch_bounds__(DECODE_SLOTS * 32, V > 128 ? 2 : 4) combine(const __grid_constant__ DecodeParams p) {
  let_successor_start();
  DecodeCombine<V>::run(p);
}

struct Variant {
  const char *name;
  void (*kernel)(const DecodeParams), (*combine)(const DecodeParams);
  int fp8, d, heads, threads, blocks, step; // step: tokens at a time
  size_t shared;
};
template <class T, int V, int blocks> static Variant variant(const char *name, int fp8, int d, int heads, int step) {
  return {name, decode<T, blocks>, combine<V>, fp8, d, heads, T::THREADS, blocks, step, sizeof(typename T::Shared)};
}
#define WARPS(fp8, d, tiles, keys, warps, blocks, places)                                                    \
  variant<DecodeWarps<fp8 ? KIND_FP16 : KIND_BF16, fp8, d, tiles, keys, warps, places>, d, blocks>(           \
      "keys " #keys " warps " #warps " blocks " #blocks " places " #places, fp8, d, tiles * 8, (keys) * (warps))
static std::vector<Variant> variants() {
  return {WARPS(0, 128, 1, 32, 4, 2, 1), WARPS(0, 128, 1, 32, 8, 1, 1), WARPS(0, 128, 2, 32, 4, 2, 1), WARPS(1, 128, 1, 16, 8, 2, 1), WARPS(1, 128, 1, 16, 8, 2, 2),
          WARPS(0, 64, 1, 32, 8, 2, 1),  WARPS(0, 64, 1, 32, 8, 2, 2),  WARPS(1, 64, 1, 32, 8, 2, 1),  WARPS(1, 64, 1, 32, 8, 2, 2),  WARPS(0, 256, 1, 16, 4, 2, 1),
          WARPS(1, 256, 1, 32, 4, 2, 1),
          variant<DecodeFew<KIND_BF16>, DECODE_LATENT_V, 1>("few", 0, DECODE_LATENT, DECODE_ROWS, 64),
          variant<DecodeLatent<KIND_BF16>, DECODE_LATENT_V, 1>("latent", 0, DECODE_LATENT, DECODE_WIDE_ROWS, 64)};
}

template <class... Args> static void launch_early(void (*kernel)(Args...), int grid, int threads, size_t shared, cudaStream_t stream, Args... args) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid), config.blockDim = dim3(threads), config.dynamicSmemBytes = shared, config.stream = stream;
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
__global__ void __launch_bounds__(512) read(uint4 *to, const uint4 *from, int64_t count) {
  enum { EACH = 8 };
  int64_t base = (int64_t)blockIdx.x * 512 * EACH + threadIdx.x;
  uint4 x[EACH] = {};
  uint32_t any = 0;
#pragma unroll
  for (int i = 0; i < EACH; i++)
    if (base + i * 512 < count) x[i] = __ldcs(from + base + i * 512);
#pragma unroll
  for (int i = 0; i < EACH; i++) any |= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
  if (any == 0xdeadbeef) to[base] = x[0];
}

// ---- the reference: a block for each head of sequence b ----

__global__ void refer(const DecodeParams p, int b, int d, int fp8, int tokens, double *scores, double *want) {
  __shared__ double most, sum;
  int wide = d == DECODE_LATENT ? DECODE_LATENT_V : d;
  int head = blockIdx.x, kv = head / p.group;
  scores += (int64_t)head * tokens;
  auto at = [&](const void *cache, int t, int i) {
    int64_t row = (int64_t)p.table[(int64_t)b * p.table_pages + t / p.page_size] * p.page_size + t % p.page_size, n = (row * p.kv_heads + kv) * d + i;
    return fp8 ? (float)((const __nv_fp8_e4m3 *)cache)[n] : load_one(cache, n, KIND_BF16);
  };
  for (int t = threadIdx.x; t < tokens; t += blockDim.x) {
    double x = 0;
    for (int i = 0; i < d; i++) x += (double)load_one(p.q, b * p.q_row + head * d + i, KIND_BF16) * at(p.k_cache, t, i);
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
  for (int t = 0; t < tokens; t++) o += scores[t] * at(d == DECODE_LATENT ? p.k_cache : p.v_cache, t, threadIdx.x);
  o /= sum;
  want[head * wide + threadIdx.x] = o;
}

static double error_of(const DecodeParams &p, int d, const std::vector<double> &want) {
  std::vector<uint16_t> o((size_t)p.heads * d);
  CHECK(cudaMemcpy(o.data(), (uint16_t *)p.o + (p.batch - 1) * p.o_row, o.size() * 2, cudaMemcpyDeviceToHost));
  double error = 0, size = 0;
  for (size_t i = 0; i < o.size(); i++) {
    uint32_t bits = (uint32_t)o[i] << 16;
    float x;
    memcpy(&x, &bits, 4);
    error += (x - want[i]) * (x - want[i]), size += want[i] * want[i];
  }
  return sqrt(error / size);
}

__global__ void make_table(int32_t *table, int count, int32_t *lengths, int batch, int tokens) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) table[i] = (int)((int64_t)i * 7919 % count); // 7919 is prime
  for (int i = threadIdx.x; i < batch; i += blockDim.x) lengths[i] = tokens;
}

static void time_decode(int batch, int heads, int kv_heads, int tokens, int d, int fp8) {
  enum { PAGE = 64 };
  bool latent = d == DECODE_LATENT;
  int wide = latent ? DECODE_LATENT_V : d;
  int64_t each = (int64_t)batch * tokens * kv_heads * d, bytes = each * (2 - latent) * (2 - fp8);
  int sets = bytes < 1 << 24 ? 1 : (int)std::max<int64_t>(1, std::min<int64_t>(12, 400000000 / bytes + 1)), pages = batch * tokens / PAGE;
  std::vector<void *> k, v;
  for (int i = 0; i < sets; i++) k.push_back(filled(each, 1 + i, fp8)), v.push_back(filled(each, 101 + i, fp8));
  void *q = filled((int64_t)batch * heads * d, 77, 0), *o = filled((int64_t)batch * heads * wide, 78, 0), *table, *lengths, *space, *to;
  CHECK(cudaMalloc(&to, bytes));
  CHECK(cudaMalloc(&table, pages * 4));
  CHECK(cudaMalloc(&lengths, batch * 4));
  CHECK(cudaMalloc(&space, (int64_t)batch * heads * (tokens / 128 + 1) * (wide + 2) * 4));
  make_table<<<1, 1024>>>((int32_t *)table, pages, (int32_t *)lengths, batch, tokens);
  int calls = bytes < 1 << 24 ? 1 : (int)std::max<double>(sets, std::min(60.0, 2e-3 / (bytes / 4e12)));
  int64_t half = bytes / 32;
  double light = median_time(calls, [&](int i, cudaStream_t s) {
    launch_early(copy, (int)((half + 255) / 256), 256, 0, s, (uint4 *)to + i % 2 * half, (const uint4 *)k[i % sets], half);
  });
  double reading = median_time(calls * 2, [&](int i, cudaStream_t s) {
    read<<<(int)((half + 4095) / 4096), 512, 0, s>>>((uint4 *)to, (const uint4 *)(i % 2 ? k : v)[i / 2 % sets], half);
  });
  printf("decode %dx%dx%dx%dx%d%s, %.0f MiB, copy %.1f us %.0f GB/s, read %.1f; times the copy's with parts of %s tokens\n", batch, heads,
         kv_heads, tokens, d, fp8 ? " fp8" : "", bytes / 1048576.0, light * 1e6, bytes / light * 1e-9, reading * 2e6,
         latent ? "512, 1024, 2048, 4096" : "256, 512, 1024, 2048, 4096");
  std::vector<double> want((size_t)heads * wide);
  int row_bytes = DECODE_ROW_BYTES(d, wide, 2 - fp8);
  for (const Variant &f : variants()) {
    if (f.d != d || f.fp8 != fp8 || (d != DECODE_LATENT && (f.heads == 16) != (heads / kv_heads > 8))) continue;
    CHECK(cudaFuncSetAttribute(f.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)f.shared));
    printf("  %-44s", f.name);
    for (int part : latent ? std::vector<int>{512, 1024, 2048, 4096} : std::vector<int>{256, 512, 1024, 2048, 4096}) {
      DecodeParams p = {};
      p.o = o, p.q = q, p.table = (int32_t *)table, p.lengths = (int32_t *)lengths, p.o_row = heads * wide, p.q_row = heads * d, p.pages = pages;
      p.batch = batch, p.heads = heads, p.kv_heads = kv_heads, p.group = heads / kv_heads, p.tiles = (p.group + f.heads - 1) / f.heads;
      p.page_size = PAGE, p.page_shift = 6, p.table_pages = tokens / PAGE;
      p.capacity = tokens, p.whole = p.part = p.part_most = part, p.step = f.step, p.parts = (tokens + part - 1) / part, p.aligned = p.q_aligned = 1, p.kind = KIND_BF16;
      p.scale = 1 / sqrtf((float)d), p.v_scale = 1, p.hint = DECODE_HINT / row_bytes, p.slots = p.parts > DECODE_SLOTS ? DECODE_SLOTS : 1;
      int64_t all = (int64_t)p.parts * batch * heads;
      p.sums = (float *)space, p.mosts = p.sums + all * wide, p.weights = p.mosts + all;
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
      int grid = (int)std::min<int64_t>(sms * f.blocks, (int64_t)batch * kv_heads * p.tiles * p.parts);
      auto call = [&](int i, cudaStream_t s) {
        p.k_cache = k[i % sets], p.v_cache = latent ? NULL : v[i % sets];
        launch_early(f.kernel, grid, f.threads, f.shared, s, (const DecodeParams)p);
        int rows = p.slots == 1 ? (batch * heads + DECODE_SLOTS - 1) / DECODE_SLOTS : batch * heads;
        if (p.parts > 1) launch_early(f.combine, rows, DECODE_SLOTS * 32, 0, s, (const DecodeParams)p);
      };
      double t = median_time(calls, call);
      CHECK(cudaMemset(o, 0xff, (int64_t)batch * heads * wide * 2));
      call(0, 0);
      CHECK(cudaDeviceSynchronize());
      double error = error_of(p, wide, want);
      printf(" %.3f (%.1f us)%s", t / light, t * 1e6, error < 2e-3 ? "" : " WRONG");
      if (part == 4096) printf(" error %.2g", error);
    }
    printf("\n");
    fflush(stdout);
  }
  for (int i = 0; i < sets; i++) cudaFree(k[i]), cudaFree(v[i]);
  for (void *x : {q, o, table, lengths, space, to}) CHECK(cudaFree(x));
}

// batch, heads, kv_heads, tokens, elements of a head, fp8
static const int shapes[][6] = {{1, 32, 8, 16384, 128, 0},  {8, 32, 8, 8192, 128, 0},   {16, 32, 8, 16384, 128, 1}, {64, 16, 1, 4096, 576, 0},
                                {64, 128, 1, 4096, 576, 0}, {16, 32, 8, 1024, 128, 0},  {64, 64, 8, 1024, 128, 0},  {2, 32, 8, 16384, 128, 1},
                                {16, 32, 8, 16384, 64, 1},  {64, 16, 2, 4096, 256, 0},  {64, 16, 2, 4096, 256, 1},  {32, 32, 32, 2048, 128, 0},
                                {256, 32, 8, 1024, 128, 0}, {1, 64, 8, 131072, 128, 0}, {8, 128, 8, 8192, 128, 0},  {16, 32, 8, 8192, 64, 0},
                                {1, 128, 1, 65536, 576, 0}};

// No arguments: all shapes; a number: that one; anything else: small ones, for the emulator.
int main(int argc, char **argv) {
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  if (argc > 1 && *argv[1] >= '0' && *argv[1] <= '9') {
    const int *x = shapes[atoi(argv[1]) % (sizeof shapes / sizeof *shapes)];
    time_decode(x[0], x[1], x[2], x[3], x[4], x[5]);
    return 0;
  }
  if (argc > 1) {
    sms = 2;
    time_decode(2, 70, 1, 640, DECODE_LATENT, 0);
    if (argc > 2) return 0;
    for (int d : {64, 128, 256})
      for (int fp8 : {0, 1}) time_decode(2, d == 128 ? 24 : 6, 2, 320, d, fp8);
    return 0;
  }
  for (const int *x : shapes) time_decode(x[0], x[1], x[2], x[3], x[4], x[5]);
  return 0;
}
