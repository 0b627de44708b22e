// Times the GEMM kernels beside cuBLAS on this GPU, and checks them. Each line is a shape: TFLOP/s of cuBLAS and of
// every variant, the median of interleaved rounds on the same buffers. Elements are checked against sums in double
// precision at random places, and nothing may be left unwritten.
//   nvcc -std=c++17 -O3 -arch=sm_90a -Ikernels -DWITH_CUBLAS bench/gemm_gpu.cu -lcuda -lcublas -o gemm_gpu && ./gemm_gpu
// Arguments: "check" small shapes, every layout and epilogue; "MxNxK"... those shapes alone; none: everything.
#include <cuda.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>
#ifdef WITH_CUBLAS
#include <cublas_v2.h>
#endif

#include "gemm/gemm_wgmma.cuh"

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    cudaError_t e_ = (call);                                                                                 \
    if (e_) printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)), exit(2);                      \
  } while (0)

template <class T> __global__ void __launch_bounds__(GEMM_THREADS, 1) gemm(const __grid_constant__ GemmTiledParams p) {
  T::run(p);
}

struct Variant {
  const char *name;
  void (*kernel)(const GemmTiledParams);
  int kind, a_turned, b_turned, tall, wide, stages, cluster, group;
};
#define VARIANT(kind, ta, tb, tall, wide, stages, cluster, group)                                            \
  {#tall "x" #wide "s" #stages "c" #cluster "g" #group, gemm<GemmWgmma<kind, ta, tb, tall, wide, stages, cluster>>, \
   kind, ta, tb, tall, wide, stages, cluster, group}
static const Variant timed[] = {
    VARIANT(KIND_BF16, 0, 0, 1, 256, 4, 2, 4), VARIANT(KIND_BF16, 0, 0, 1, 256, 4, 2, 8),
    VARIANT(KIND_BF16, 0, 0, 1, 256, 4, 1, 16), VARIANT(KIND_BF16, 0, 0, 2, 128, 4, 2, 4),
    VARIANT(KIND_BF16, 0, 0, 2, 128, 4, 1, 8), VARIANT(KIND_BF16, 0, 0, 1, 128, 6, 2, 8),
    VARIANT(KIND_BF16, 0, 0, 1, 128, 6, 1, 16), VARIANT(KIND_BF16, 0, 0, 1, 64, 8, 1, 16),
};
static const Variant layouts[] = { // after the first three they are checked alone
    VARIANT(KIND_BF16, 0, 1, 1, 256, 4, 2, 8), VARIANT(KIND_BF16, 1, 0, 1, 256, 4, 2, 8),
    VARIANT(KIND_FP8, 0, 0, 1, 256, 4, 2, 4),  VARIANT(KIND_BF16, 1, 1, 2, 128, 4, 2, 8),
    VARIANT(KIND_FP16, 0, 0, 1, 256, 4, 2, 8),
};

typedef CUresult Encode(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                        const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                        CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
static Encode *encode;

static void make_map(GemmMap *map, int kind, void *base, int64_t x, int64_t y, int64_t batch, int box_y) {
  int size = kind == KIND_FP32 ? 4 : kind == KIND_FP8 ? 1 : 2;
  cuuint64_t dims[] = {(cuuint64_t)x, (cuuint64_t)y, (cuuint64_t)batch},
             strides[] = {(cuuint64_t)(x * size), (cuuint64_t)(x * y * size)};
  cuuint32_t box[] = {(cuuint32_t)(128 / size), (cuuint32_t)box_y, 1}, steps[] = {1, 1, 1};
  CUtensorMapDataType type = kind == KIND_FP32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                             : kind == KIND_FP8  ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                             : kind == KIND_FP16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  CUresult r = encode((CUtensorMap *)map, type, 3, base, dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (r) printf("cuTensorMapEncodeTiled: %d\n", (int)r), exit(2);
}

struct Problem {
  int m, n, k, batch, activation, out_kind;
  float alpha, beta;
  bool bias, residual;
  void *a, *b, *c, *c0, *r, *v; // c0: what C holds before; r residual; v bias
};

static int sms;

__host__ __device__ static int wide_kind(int kind) { // of C and the bias
  return kind == KIND_FP8 ? KIND_BF16 : kind;
}

static GemmTiledParams prepare(const Variant &v, const Problem &q) {
  GemmTiledParams p = {};
  bool gated = q.activation == GEMM_SILU_MUL;
  int bn = gated ? 2 * q.n : q.n, wide = gated ? v.wide / 2 : v.wide, tall = GEMM_ROWS(v.tall) * v.cluster;
  make_map(&p.a, v.kind, q.a, v.a_turned ? q.m : q.k, v.a_turned ? q.k : q.m, q.batch, GEMM_BOX_A(v.a_turned));
  make_map(&p.b, v.kind, q.b, v.b_turned ? bn : q.k, v.b_turned ? q.k : bn, q.batch, GEMM_BOX_B(v.b_turned, v.wide));
  make_map(&p.c, q.out_kind, q.c, q.n, q.m, q.batch, 64);
  p.end = {q.c, q.bias ? q.v : NULL, q.residual ? q.r : NULL, q.n, (int64_t)q.m * q.n, q.n, (int64_t)q.m * q.n,
           NULL, NULL, q.alpha, q.beta, q.activation, q.out_kind, wide_kind(v.kind)};
  p.m = q.m, p.n = q.n, p.k = q.k, p.batch = q.batch;
  p.rows = (q.m + tall - 1) / tall, p.columns = (q.n + wide - 1) / wide, p.group = v.group;
  CHECK(cudaFuncSetAttribute(v.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, GEMM_SHARED(v.tall, v.wide, v.stages)));
  return p;
}

static void launch(const Variant &v, const GemmTiledParams &p) {
  int tiles = p.rows * p.columns * p.batch;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {(unsigned)v.cluster, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(std::min(sms / v.cluster, tiles) * v.cluster);
  config.blockDim = dim3(GEMM_THREADS);
  config.dynamicSmemBytes = GEMM_SHARED(v.tall, v.wide, v.stages);
  config.attrs = &cluster, config.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&config, v.kernel, p));
}

// ---- data and checks ----

__host__ __device__ static uint32_t hash(uint32_t x) {
  x ^= x >> 16, x *= 0x7feb352d, x ^= x >> 15, x *= 0x846ca68b;
  return x ^ x >> 16;
}

__global__ void fill(void *to, int64_t count, int kind, uint32_t seed) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < count; i += (int64_t)gridDim.x * blockDim.x)
    store_one(to, i, kind, (float)(hash((uint32_t)i ^ seed) >> 8) / (1 << 23) - 1);
}

__device__ static double value(const void *x, int64_t i, int kind) {
  if (kind != KIND_FP8) return (double)load_one(x, i, kind);
  return (double)__half2float(__nv_cvt_fp8_to_halfraw(((const __nv_fp8_storage_t *)x)[i], __NV_E4M3));
}

__device__ static double dot(const Variant &v, const Problem &q, int64_t z, int64_t row, int64_t column, int64_t bn) {
  double sum = 0;
  for (int64_t k = 0; k < q.k; k++)
    sum += value(q.a, z * q.m * q.k + (v.a_turned ? k * q.m + row : row * q.k + k), v.kind) *
           value(q.b, z * bn * q.k + (v.b_turned ? k * bn + column : column * q.k + k), v.kind);
  return sum;
}

// Element i of C as it should be; the largest error over its tolerance goes to *worst as an integer of 1/1000.
__global__ void compare(Variant v, Problem q, int samples, int *worst) {
  int s = blockIdx.x * blockDim.x + threadIdx.x;
  if (s >= samples) return;
  int64_t size = (int64_t)q.batch * q.m * q.n, i = samples == size ? s : (int64_t)(hash(s * 2 + 1) * 4294967296.0 + hash(s)) % size;
  if (s < 4) i = s == 0 ? 0 : s == 1 ? size - 1 : s == 2 ? q.n - 1 : size - q.n;
  int64_t column = i % q.n, row = i / q.n % q.m, z = i / q.n / q.m, bn = q.activation == GEMM_SILU_MUL ? 2 * q.n : q.n;
  double x = q.alpha * dot(v, q, z, row, column, bn);
  if (q.beta) x += q.beta * value(q.c0, i, q.out_kind);
  if (q.bias) x += value(q.v, column, wide_kind(v.kind));
  if (q.activation == GEMM_RELU) x = x > 0 ? x : 0;
  if (q.activation == GEMM_GELU) x = x / (1 + exp(-2 * 0.7978845608 * (x + 0.044715 * x * x * x)));
  if (q.activation == GEMM_SILU_MUL) {
    double up = q.alpha * dot(v, q, z, row, column + q.n, bn) + (q.bias ? value(q.v, column + q.n, wide_kind(v.kind)) : 0);
    x = x / (1 + exp(-x)) * up;
  }
  if (q.residual) x += value(q.r, i, q.out_kind);
  double error = fabs(value(q.c, i, q.out_kind) - x), scale = fabs(x) + sqrt((double)q.k) * 0.02;
  if (v.kind == KIND_FP8) scale += sqrt((double)q.k) * 0.05; // its sums keep about 13 bits of the largest product
  double limit = scale * (v.kind == KIND_FP8 ? 4.2e-3 : q.out_kind == KIND_FP32 ? 3e-5 : q.out_kind == KIND_FP16 ? 6e-4 : 4.2e-3);
  atomicMax(worst, error <= limit * 2000 ? (int)(error / limit * 1000) : 2000000);
}

static Problem make_problem(int m, int n, int k, int batch, int out_kind) {
  Problem q = {m, n, k, batch, GEMM_LINEAR, out_kind, 1, 0, false, false};
  size_t c = (size_t)batch * m * n * 4;
  CHECK(cudaMalloc(&q.a, (size_t)batch * m * k * 2));
  CHECK(cudaMalloc(&q.b, (size_t)batch * 2 * n * k * 2));
  CHECK(cudaMalloc(&q.c, c));
  CHECK(cudaMalloc(&q.c0, c));
  CHECK(cudaMalloc(&q.r, c));
  CHECK(cudaMalloc(&q.v, (size_t)n * 8));
  return q;
}

static void free_problem(Problem &q) {
  void *all[] = {q.a, q.b, q.c, q.c0, q.r, q.v};
  for (void *x : all) CHECK(cudaFree(x));
}

static void fill_problem(const Problem &q, int kind) {
  fill<<<1056, 256>>>(q.a, (int64_t)q.batch * q.m * q.k, kind, 1);
  fill<<<1056, 256>>>(q.b, (int64_t)q.batch * 2 * q.n * q.k, kind, 0x9e3779b9);
  fill<<<1056, 256>>>(q.c0, (int64_t)q.batch * q.m * q.n, q.out_kind, 77);
  fill<<<1056, 256>>>(q.r, (int64_t)q.batch * q.m * q.n, q.out_kind, 555);
  fill<<<64, 256>>>(q.v, 2 * q.n, wide_kind(kind), 33);
}

// The largest error in units of what is allowed.
static double check(const Variant &v, const Problem &q, int most) {
  int64_t size = (int64_t)q.batch * q.m * q.n;
  int samples = (int)std::min<int64_t>(size, most), *worst, found;
  size_t bytes = (size_t)size * (q.out_kind == KIND_FP32 ? 4 : 2);
  if (q.beta) CHECK(cudaMemcpy(q.c, q.c0, bytes, cudaMemcpyDeviceToDevice));
  else CHECK(cudaMemset(q.c, 0xff, bytes));
  CHECK(cudaMalloc(&worst, 4));
  CHECK(cudaMemset(worst, 0, 4));
  launch(v, prepare(v, q));
  compare<<<(samples + 127) / 128, 128>>>(v, q, samples, worst);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&found, worst, 4, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(worst));
  return found / 1000.0;
}

static int report(const char *what, const Variant &v, const Problem &q, double worst) {
  if (worst > 1)
    printf("WRONG %s %s layout %d%d kind %d %dx%dx%dx%d activation %d: %.2f of what is allowed\n", what, v.name, v.a_turned,
           v.b_turned, v.kind, q.batch, q.m, q.n, q.k, q.activation, worst);
  return worst > 1;
}

// Every layout and epilogue on small ragged shapes.
static int check_all(bool few) {
  int wrong = 0, done = 0;
  std::vector<Variant> all(layouts, layouts + sizeof layouts / sizeof *layouts);
  all.insert(all.end(), timed, timed + sizeof timed / sizeof *timed);
  for (const Variant &v : all)
    for (int i = 0; i < (few ? 2 : 7); i++) {
      Problem q = make_problem(few ? 200 : 400 + 8 * i, few ? 72 : 520 + 8 * i, few ? 144 : 336, i == 0 ? 2 : 1, i % 3 == 0 ? KIND_FP32 : wide_kind(v.kind));
      q.activation = i == 1 ? GEMM_SILU_MUL : i == 2 ? GEMM_GELU : i == 3 ? GEMM_RELU : GEMM_LINEAR;
      q.bias = i == 1 || i == 2, q.residual = i == 3 || i == 4, q.alpha = i == 5 ? 0.5f : 1, q.beta = i == 5 || i == 0 ? -2.0f : 0;
      if (q.activation == GEMM_SILU_MUL && v.wide == 64) { // half of it is less than a piece
        free_problem(q);
        continue;
      };
      fill_problem(q, v.kind);
      wrong += report("small", v, q, check(v, q, 1 << 20)), done++;
      free_problem(q);
    }
  printf("%d small cases, %d wrong\n", done, wrong);
  return wrong;
}

// ---- timing ----

struct Timer {
  cudaEvent_t from, to;
  Timer() {
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
  }
  template <class F> double seconds(int rounds, F call) {
    float ms;
    CHECK(cudaEventRecord(from));
    for (int i = 0; i < rounds; i++) call();
    CHECK(cudaEventRecord(to));
    CHECK(cudaEventSynchronize(to));
    CHECK(cudaEventElapsedTime(&ms, from, to));
    return ms / 1000 / rounds;
  }
};

static double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

static int time_shape(int m, int n, int k, bool each_layout) {
  Problem q = make_problem(m, n, k, 1, KIND_BF16);
  std::vector<Variant> v(timed, timed + sizeof timed / sizeof *timed);
  if (each_layout) v.insert(v.end(), layouts, layouts + 3); // the third, fp8, multiplies other numbers: the same bytes
  fill_problem(q, KIND_BF16);
  int wrong = 0;
  for (const Variant &each : v)
    if (each.kind == KIND_BF16) wrong += report("shape", each, q, check(each, q, 2048));
  double flops = 2.0 * m * n * k;
  int rounds = (int)std::min(200.0, std::max(3.0, 8e-3 / (flops / 6e14)));
  std::vector<std::vector<double>> times(v.size() + 1);
  Timer timer;
#ifdef WITH_CUBLAS
  cublasHandle_t blas;
  cublasCreate(&blas);
  void *workspace;
  CHECK(cudaMalloc(&workspace, 64 << 20));
  cublasSetWorkspace(blas, workspace, 64 << 20);
  float one = 1, zero = 0;
  auto peer = [&] {
    cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, q.b, CUDA_R_16BF, k, q.a, CUDA_R_16BF, k, &zero, q.c,
                 CUDA_R_16BF, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  };
#else
  auto peer = [] {};
#endif
  std::vector<GemmTiledParams> ready;
  for (const Variant &each : v) ready.push_back(prepare(each, q));
  for (int turn = 0; turn < 4; turn++)
    for (size_t i = 0; i <= v.size(); i++) {
      double t = i ? timer.seconds(rounds, [&] { launch(v[i - 1], ready[i - 1]); }) : timer.seconds(rounds, peer);
      if (turn) times[i].push_back(t);
    }
  double theirs = median(times[0]), best = 0;
  size_t which = 0;
  printf("%6d %6d %6d cublas %4.0f |", m, n, k, flops / theirs * 1e-12);
  for (size_t i = 1; i <= v.size(); i++) {
    double rate = flops / median(times[i]) * 1e-12;
    if (rate > best && i <= sizeof timed / sizeof *timed) best = rate, which = i - 1;
    printf(" %4.0f", rate);
  }
  printf(" | best %s %.3f\n", v[which].name, best / (flops / theirs * 1e-12));
  fflush(stdout);
#ifdef WITH_CUBLAS
  cublasDestroy(blas);
  CHECK(cudaFree(workspace));
#endif
  free_problem(q);
  return wrong;
}

static const int shapes[][3] = {
    {4096, 4096, 4096},   {8192, 8192, 8192},  {8192, 28672, 8192}, {8192, 8192, 28672}, {8192, 10240, 8192},
    {4096, 6144, 4096},   {4096, 28672, 4096}, {4096, 4096, 14336}, {2048, 4096, 4096},  {2048, 28672, 4096},
    {2048, 4096, 14336},  {2048, 6144, 4096},  {1024, 4096, 4096},  {1024, 28672, 4096}, {1024, 4096, 14336},
    {512, 4096, 4096},    {512, 28672, 4096},  {512, 4096, 14336},  {256, 4096, 4096},   {256, 28672, 4096},
    {256, 4096, 14336},   {128, 4096, 4096},   {128, 28672, 4096},  {128, 4096, 14336},  {2048, 128256, 4096},
    {4096, 5120, 5120},   {3000, 5000, 4104},  {1000, 3000, 2048},  {16384, 1024, 1024}, {2048, 2048, 2048},
};

int main(int argc, char **argv) {
  int wrong = 0, device = 0;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000, cudaEnableDefault, &found));
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  if (argc > 1 && !strcmp(argv[1], "check")) return check_all(argc > 2) != 0;
  if (argc == 1) wrong += check_all(false);
  printf("variants:");
  for (const Variant &v : timed) printf(" %s", v.name);
  printf(" (rows x columns of a tile: 128 * the first by the second; s stages, c cluster, g group)\n");
  for (int i = 1; i < argc; i++) {
    int m, n, k;
    if (sscanf(argv[i], "%dx%dx%d", &m, &n, &k) == 3) wrong += time_shape(m, n, k, true);
  }
  for (const int *s : shapes)
    if (argc == 1) wrong += time_shape(s[0], s[1], s[2], s[0] == s[1] && s[1] == s[2] && s[0] >= 4096);
  printf(wrong ? "%d WRONG\n" : "all right\n", wrong);
  return wrong != 0;
}
