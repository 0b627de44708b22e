// Times the tiled kernels of kernels/gemm/gemm.def beside cuBLAS, for fitting and scoring the launch rule of
// src/ops/gemm_rule.c: bf16, or fp8 with --fp8, A by rows, B by columns, over sets of A, B and C that do not fit into L2, in CUDA graphs. One
// JSON object a line: a shape, cuBLAS's microseconds, a copy's of as many bytes, and each plan's: "128x256x4/2x1", a kernel and its clusters' blocks
// below each other and side by side, or "split_64x4/3", one that shares out k among 3, or
// "split_64x4/2x1x3", of two tiles below each other; an s behind it where the operands are
// swapped. The results are held against cuBLAS's: all of C, or of a large one the first and the last rows.
// --check N: every plan N times, C filled with NaN before each; nothing is timed. --fp8: K and N are multiples of 16.
//   g++ -std=c++17 -O2 -Ikernels -I$CUDA/include bench/gemm_sweep.cpp -L$CUDA/lib64 -lcublasLt -lcublas -lcudart -lcuda -o gemm_sweep
//   ./gemm_sweep build/kernels/gemm.fatbin [--fp8] [--check N] MxNxK...    # or MxNxK:PLAN,PLAN...
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common.h"
#include "gemm/gemm.h"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    int e_ = (int)(call);                                                                                    \
    if (e_) printf("%s:%d: error %d\n", __FILE__, __LINE__, e_), exit(2);                                    \
  } while (0)

struct Variant {
  const char *name;
  int kind, rows, wide, stages, split, per_sm;
  CUfunction kernel;
  int at_a_time[GEMM_PARTS + 1]; // clusters, by their blocks
};
#define TILED(kind, a, b, rows, wide, stages, per_sm)                                                        \
  {"sol_gemm_" #kind "_" #a #b "_" #rows "x" #wide "x" #stages, a || b ? 0 : kind, rows, wide, stages, 0, per_sm, NULL, {}},
#define SPLIT(kind, a, b, wide, stages, per_sm)                                                              \
  {"sol_gemm_" #kind "_" #a #b "_split_" #wide "x" #stages, a || b ? 0 : kind, 128, wide, stages, 1, per_sm, NULL, {}},
#define FEW(kind, bits, tiles)
#define FEW_89(kind, bits, tiles)
#define STREAM(kind, bits)
#define ANY(kind)
#define ANY_WEIGHTS(kind, bits)
static Variant variants[] = {
#include "gemm/gemm.def"
};

struct Plan {
  const Variant *v;
  int parts, down, across;
  bool swapped;
};
struct Set {
  char *a, *b, *c;
};
static int sms;
static cudaStream_t stream;
static cublasHandle_t blas;
static void *workspace;
static int kind = KIND_BF16, size = 2; // of A and B; bytes of an element
static int checks; // how often to check each plan, and to time none; 0: to time

static long ceil_div(long a, long b) {
  return (a + b - 1) / b;
}

static int shared_of(const Variant &v) {
  return v.split ? GEMM_RING_BYTES(128, v.wide, v.stages) : GEMM_SHARED(v.rows, v.wide, v.stages, v.per_sm);
}

// each: bytes of an element; span: of a box's row.
static void make_map(GemmMap *map, void *base, long x, long y, int box_y, int each, int span = 128) {
  cuuint64_t dims[] = {(cuuint64_t)x, (cuuint64_t)y, 1}, strides[] = {(cuuint64_t)x * each, 16};
  cuuint32_t box[] = {(cuuint32_t)(span / each), (cuuint32_t)box_y, 1}, steps[] = {1, 1, 1};
  CHECK(cuTensorMapEncodeTiled((CUtensorMap *)map, each == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, base, dims, strides, box, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, span == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static long tiles_of(const Plan &plan, long m, long n) {
  return ceil_div(plan.swapped ? n : m, plan.v->rows * plan.down) * ceil_div(plan.swapped ? m : n, plan.v->wide * plan.across);
}

static bool launch(const Plan &plan, long m, long n, long k, const Set &s) {
  GemmTiledParams p = {};
  const Variant &v = *plan.v;
  bool swapped = plan.swapped;
  long blocks = (long)plan.down * plan.across * plan.parts;
  int box = GEMM_BOX_B(0, v.wide);
  make_map(swapped ? &p.b : &p.a, s.a, k, m, swapped ? box : GEMM_BOX_A(v.rows), size);
  make_map(swapped ? &p.a : &p.b, s.b, k, n, swapped ? GEMM_BOX_A(v.rows) : box, size);
  if (!v.split) make_map(&p.c, s.c, n, m, swapped ? GEMM_SWAPPED_ROWS : 64, 2, swapped ? 128 : GEMM_SPAN(v.wide));
  p.swapped = swapped, p.down = plan.down, p.across = plan.across;
  p.end.c = s.c, p.end.c_stride = n, p.end.alpha = 1, p.end.out_kind = p.end.bias_kind = KIND_BF16;
  p.m = (int)m, p.n = (int)n, p.k = (int)k, p.batch = 1;
  p.rows = (int)ceil_div(swapped ? n : m, v.rows * plan.down), p.columns = (int)ceil_div(swapped ? m : n, v.wide * plan.across);
  p.group = 1024 / (v.rows * plan.down);
  gemm_divide_by(&p, plan.parts);
  long tiles = tiles_of(plan, m, n), clusters = v.split ? tiles : std::min(tiles, (long)v.at_a_time[blocks]);
  CUlaunchAttribute at[2] = {};
  at[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  at[0].value.clusterDim = {(unsigned)blocks, 1, 1};
  at[1].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  at[1].value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = (unsigned)(clusters * blocks), config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = GEMM_THREADS(v.rows, v.per_sm), config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = (unsigned)shared_of(v), config.hStream = stream, config.attrs = at, config.numAttrs = 2;
  void *params[] = {&p};
  return cuLaunchKernelEx(&config, v.kernel, params, NULL) == CUDA_SUCCESS;
}

// Microseconds a call, the least of three graphs' replays after one.
template <class F> static double time_of(int calls, F call) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaEvent_t from, to;
  double best = 1e30;
  CHECK(cudaEventCreate(&from) || cudaEventCreate(&to));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; i++) call(i);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&ready, graph, 0));
  for (int turn = 0; turn < 4; turn++) {
    float ms;
    CHECK(cudaEventRecord(from, stream) || cudaGraphLaunch(ready, stream) || cudaEventRecord(to, stream));
    CHECK(cudaEventSynchronize(to) || cudaEventElapsedTime(&ms, from, to));
    if (turn) best = std::min(best, (double)ms * 1000 / calls);
  }
  CHECK(cudaGraphExecDestroy(ready) || cudaGraphDestroy(graph) || cudaEventDestroy(from) || cudaEventDestroy(to));
  return best;
}

static std::vector<uint16_t> rows_of(const Set &s, long m, long n) { // all, or the first and the last 16
  long rows = m * n > (checks ? 4 << 20 : 1 << 18) ? std::min(m, 16L) : (m + 1) / 2;
  std::vector<uint16_t> out((size_t)(2 * rows * n));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(out.data(), s.c, (size_t)(rows * n) * 2, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(out.data() + rows * n, s.c + (m - rows) * n * 2, (size_t)(rows * n) * 2, cudaMemcpyDeviceToHost));
  return out;
}

static float value(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

// The norm of the difference over that of `want`.
static double error_of(const std::vector<uint16_t> &got, const std::vector<uint16_t> &want) {
  double off = 0, all = 0;
  for (size_t i = 0; i < got.size(); i++) {
    double g = value(got[i]), w = value(want[i]);
    off += (g - w) * (g - w), all += w * w;
  }
  return off == off ? sqrt(off / all) : 1e9;
}

// Not what computes 1.6 times as much as another way to cut C into tiles would, at least.
static bool worth_timing(const Plan &plan, long m, long n, long k) {
  const Variant &v = *plan.v;
  long tiles = tiles_of(plan, m, n), room = (long)sms * v.per_sm;
  if (plan.parts > 1 && (ceil_div(k * size, 128) < 2 * plan.parts || tiles * plan.parts * plan.down * plan.across > 2.2 * room || (double)tiles * plan.down * plan.across * (plan.parts - 1) > 1.2 * room)) return false;
  double least = 1e30, mine = (double)tiles * plan.down * plan.across * v.rows * v.wide;
  for (const Variant &o : variants)
    for (int turn = 0; turn < 2 && o.kind == kind; turn++)
      least = std::min(least, (double)(ceil_div(turn ? n : m, o.rows) * ceil_div(turn ? m : n, o.wide) * o.rows * o.wide));
  return mine < 1.6 * least;
}

static std::string name_of(const Plan &p) {
  std::string to = std::to_string(p.down) + "x" + std::to_string(p.across);
  if (p.v->split) to = (p.down * p.across > 1 ? to + "x" : "") + std::to_string(p.parts);
  return std::string(p.v->name + 14) + "/" + to + (p.swapped ? "s" : "");
}

// only: names of plans with commas behind each, or nothing.
static std::vector<Plan> plans_of(long m, long n, long k, const std::string &only) {
  std::vector<Plan> all;
  for (const Variant &v : variants)
    for (int i = 0; i < (v.split ? 64 : 8) && v.kind == kind && v.kernel; i++) {
      Plan p = {&v, 1 + i / 8, 1 + i / 2 % 2, 1 + i / 4 % 2, (bool)(i % 2)};
      if (p.parts * p.down * p.across > 8) continue;
      if (v.wide < 64 && p.down > 1) continue; // too few boxes to share
      if (only.empty() ? worth_timing(p, m, n, k) : only.find("," + name_of(p) + ",") != std::string::npos) all.push_back(p);
    }
  return all;
}

// Sums of fp8 are rounded at every step, so that one of all k and one of its parts differ by some percent.
static bool is_right(const Plan &plan, long m, long n, long k, const Set &s, const std::vector<uint16_t> &want) {
  CHECK(cudaMemsetAsync(s.c, 0xff, (size_t)(m * n) * 2, stream)); // NaN
  bool launched = launch(plan, m, n, k, s);
  double most = size == 1 ? 0.1 : 4e-3, error = launched ? error_of(rows_of(s, m, n), want) : 1e9;
  if (!(error < most)) fprintf(stderr, "WRONG %ldx%ldx%ld %s: %g%s\n", m, n, k, name_of(plan).c_str(), error, launched ? "" : " not launched");
  return error < most;
}

// fp8 by cuBLASLt, with fast accumulation.
struct Peer8 {
  cublasLtMatmulDesc_t what = NULL;
  cublasLtMatrixLayout_t a = NULL, b = NULL, c = NULL;
  cublasLtMatmulHeuristicResult_t best = {};
  Peer8(long m, long n, long k) {
    if (size == 2) return;
    cublasOperation_t turned = CUBLAS_OP_T;
    int8_t fast = 1;
    cublasLtMatmulPreference_t preference;
    size_t room = 64 << 20;
    int found;
    CHECK(cublasLtMatmulDescCreate(&what, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
    CHECK(cublasLtMatmulDescSetAttribute(what, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
    CHECK(cublasLtMatrixLayoutCreate(&b, CUDA_R_8F_E4M3, (uint64_t)k, (uint64_t)n, k));
    CHECK(cublasLtMatrixLayoutCreate(&a, CUDA_R_8F_E4M3, (uint64_t)k, (uint64_t)m, k));
    CHECK(cublasLtMatrixLayoutCreate(&c, CUDA_R_16BF, (uint64_t)n, (uint64_t)m, n));
    CHECK(cublasLtMatmulPreferenceCreate(&preference));
    CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    CHECK(cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)blas, what, b, a, c, c, preference, 1, &best, &found));
    CHECK(cublasLtMatmulPreferenceDestroy(preference));
  }
  void call(const Set &s) {
    float one = 1, zero = 0;
    CHECK(cublasLtMatmul((cublasLtHandle_t)blas, what, &one, s.b, b, s.a, a, &zero, s.c, c, s.c, c, &best.algo, workspace, 64 << 20, stream));
  }
};

static int time_shape(long m, long n, long k, const std::string &only, char *pool, size_t room) {
  double bytes = (double)(size * (m * k + n * k) + 2 * m * n), light = bytes / 4e6;
  int count = (int)std::max(2.0, std::min(32.0, 400e6 / bytes)), wrong = 0;
  double guess = std::max(2.0 * m * n * k / (12e8 / size), light);
  int calls = std::max(count, std::min(20, (int)(1500 / guess)));
  std::vector<Set> sets;
  char *at = pool;
  auto take = [&](long size) {
    char *mine = at;
    at += (size + 1023) / 1024 * 1024;
    if (at > pool + room) at = pool, mine = at, at += (size + 1023) / 1024 * 1024;
    return mine;
  };
  char *out = pool + room; // as much again for C
  for (int i = 0; i < count; i++) {
    Set s = {take(m * k * size), take(n * k * size), out};
    out += (m * n * 2 + 1023) / 1024 * 1024;
    sets.push_back(s);
  }
  float one = 1, zero = 0;
  Peer8 peer8(m, n, k);
  auto theirs = [&](int i) {
    const Set &s = sets[(size_t)(i % count)];
    if (size == 1) peer8.call(s);
    else CHECK(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)n, (int)m, (int)k, &one, s.b, CUDA_R_16BF, (int)k, s.a, CUDA_R_16BF,
                       (int)k, &zero, s.c, CUDA_R_16BF, (int)n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  };
  theirs(0);
  std::vector<uint16_t> want = rows_of(sets[0], m, n);
  double peer = checks ? 0 : time_of(calls, theirs);
  size_t half = (size_t)(bytes / 2) / 256 * 256;
  double copied = m > 64 || checks ? 0 : time_of(calls, [&](int i) {
    size_t from = (size_t)i * half % (room - half) / 256 * 256;
    CHECK(cudaMemcpyAsync(pool + room + from % (room / 2), pool + from, half, cudaMemcpyDeviceToDevice, stream));
  });
  printf("{\"m\":%ld,\"n\":%ld,\"k\":%ld,\"bytes\":%d,\"cublas\":%.2f,\"copy\":%.2f,\"us\":{", m, n, k, size, peer, copied);
  const char *comma = "";
  for (const Plan &plan : plans_of(m, n, k, only)) {
    for (int i = 0; i < std::max(checks, 1); i++) wrong += !is_right(plan, m, n, k, sets[0], want);
    if (checks) continue;
    double t = time_of(calls, [&](int i) { launch(plan, m, n, k, sets[(size_t)(i % count)]); });
    printf("%s\"%s\":%.2f", comma, name_of(plan).c_str(), t), comma = ",";
  }
  printf("}}\n");
  fflush(stdout);
  return wrong;
}

int main(int argc, char **argv) {
  if (argc < 2) return printf("gemm_sweep FATBIN MxNxK...\n"), 2;
  std::string image;
  FILE *f = fopen(argv[1], "rb");
  char piece[65536];
  for (size_t got; f && (got = fread(piece, 1, sizeof piece, f)) > 0;) image.append(piece, got);
  CHECK(!f || fclose(f));
  size_t room = (size_t)4 << 30;
  char *pool;
  CUmodule module;
  CHECK(cudaMalloc((void **)&pool, 2 * room));
  CHECK(cudaStreamCreate(&stream));
  CHECK(cublasCreate(&blas) || cublasSetStream(blas, stream));
  CHECK(cudaMalloc(&workspace, 64 << 20));
  CHECK(cublasSetWorkspace(blas, workspace, 64 << 20));
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  int first = 2;
  if (argc > first && !strcmp(argv[first], "--fp8")) kind = KIND_FP8, size = 1, first++;
  if (argc > first + 1 && !strcmp(argv[first], "--check")) checks = atoi(argv[first + 1]), first += 2;
  std::vector<uint16_t> some((size_t)64 << 20); // -1 to 1, also where each byte is an fp8 number
  uint32_t seed = 1;
  for (uint16_t &x : some) seed = seed * 1664525 + 1013904223, x = size == 1 ? (uint16_t)(seed >> 16 & 0xb7b7) : (uint16_t)((seed >> 31) << 15 | (0x3e80 + (seed >> 20 & 0xff)));
  for (size_t at = 0; at < room; at += some.size() * 2)
    CHECK(cudaMemcpy(pool + at, at ? (void *)pool : some.data(), some.size() * 2, at ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice));
  CHECK(cuModuleLoadData(&module, image.data()));
  for (Variant &v : variants) {
    if (v.kind != kind || cuModuleGetFunction(&v.kernel, module, v.name)) continue;
    CHECK(cuFuncSetAttribute(v.kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_of(v)));
    fprintf(stderr, "%s: clusters at a time", v.name);
    for (int parts : {1, 2, 3, 4, 5, 6, 7, 8}) {
      if (parts > 4 && !v.split) break;
      CUlaunchAttribute at = {};
      at.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      at.value.clusterDim = {(unsigned)parts, 1, 1};
      CUlaunchConfig config = {};
      config.gridDimX = (unsigned)parts, config.gridDimY = config.gridDimZ = 1;
      config.blockDimX = GEMM_THREADS(v.rows, v.per_sm), config.blockDimY = config.blockDimZ = 1, config.sharedMemBytes = (unsigned)shared_of(v);
      config.attrs = &at, config.numAttrs = 1;
      CHECK(cuOccupancyMaxActiveClusters(&v.at_a_time[parts], v.kernel, &config));
      fprintf(stderr, " %d", v.at_a_time[parts]);
    }
    fprintf(stderr, "\n");
  }
  int wrong = 0;
  for (int i = first; i < argc; i++) {
    long m, n, k;
    const char *only = strchr(argv[i], ':');
    if (sscanf(argv[i], "%ldx%ldx%ld", &m, &n, &k) == 3) wrong += time_shape(m, n, k, only ? "," + std::string(only + 1) + "," : "", pool, room);
  }
  fprintf(stderr, wrong ? "%d WRONG\n" : "all right\n", wrong);
  return wrong != 0;
}
