// cuBLAS's stand-in against plain loops: products, vectors, batches.
#include "blas_check.hpp"

#define BY_TYPE(name)                                                                                        \
  static cublasStatus_t name(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, \
                             const float *alpha, const float *a, int lda, const float *b, int ldb,           \
                             const float *beta, float *c, int ldc) {                                         \
    return cublasS##name(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                           \
  }                                                                                                          \
  static cublasStatus_t name(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, \
                             const double *alpha, const double *a, int lda, const double *b, int ldb,        \
                             const double *beta, double *c, int ldc) {                                       \
    return cublasD##name(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                           \
  }                                                                                                          \
  static cublasStatus_t name(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, \
                             const C *alpha, const C *a, int lda, const C *b, int ldb, const C *beta, C *c, int ldc) { \
    return cublasC##name(h, ta, tb, m, n, k, (const cuComplex *)alpha, (const cuComplex *)a, lda,            \
                         (const cuComplex *)b, ldb, (const cuComplex *)beta, (cuComplex *)c, ldc);           \
  }                                                                                                          \
  static cublasStatus_t name(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, \
                             const Z *alpha, const Z *a, int lda, const Z *b, int ldb, const Z *beta, Z *c, int ldc) { \
    return cublasZ##name(h, ta, tb, m, n, k, (const cuDoubleComplex *)alpha, (const cuDoubleComplex *)a, lda, \
                         (const cuDoubleComplex *)b, ldb, (const cuDoubleComplex *)beta, (cuDoubleComplex *)c, ldc); \
  }
BY_TYPE(gemm)

template <class T> void check_gemm(cublasHandle_t h, const char *what) {
  const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
  const int m = 19, n = 300, k = 23, lead = 311;
  for (cublasOperation_t ta : ops)
    for (cublasOperation_t tb : ops) {
      Device<T> a((size_t)lead * lead), b((size_t)lead * lead), c((size_t)lead * n);
      T alpha, beta;
      fill(alpha), fill(beta);
      OK(gemm(h, ta, tb, m, n, k, &alpha, a.at, lead, b.at, lead, &beta, c.at, lead));
      for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
          T sum = 0;
          for (int l = 0; l < k; l++) sum += element(a.host, lead, ta, i, l) * element(b.host, lead, tb, l, j);
          T &x = c.host[(size_t)(i + j * lead)];
          x = alpha * sum + beta * x;
        }
      expect(c.same(1e-5), what);
    }
}

static void level1(cublasHandle_t h) {
  const int n = 50;
  Device<float> x(200), y(200);
  float alpha = 0.5f, result = 0;
  OK(cublasSaxpy(h, n, &alpha, x.at, 2, y.at, -3));
  for (int i = 0; i < n; i++) y.host[(size_t)((n - 1 - i) * 3)] += alpha * x.host[(size_t)(i * 2)];
  expect(y.same(1e-6), "axpy with a step backwards");
  double dot = 0, norm = 0, sum = 0;
  int most = 0;
  for (int i = 0; i < n; i++) {
    double v = x.host[(size_t)i * 2];
    dot += v * y.host[(size_t)i], norm += v * v, sum += std::fabs(v);
    if (std::fabs(v) > std::fabs(x.host[(size_t)most * 2])) most = i;
  }
  OK(cublasSdot(h, n, x.at, 2, y.at, 1, &result));
  expect(std::fabs(result - dot) < 1e-5, "dot");
  OK(cublasSnrm2(h, n, x.at, 2, &result));
  expect(std::fabs(result - std::sqrt(norm)) < 1e-5, "nrm2");
  OK(cublasSasum(h, n, x.at, 2, &result));
  expect(std::fabs(result - sum) < 1e-5, "asum");
  int index = 0;
  OK(cublasIsamax(h, n, x.at, 2, &index));
  expect(index == most + 1, "amax counts from 1, and takes the first");
  int64_t wide = 0;
  OK(cublasIsamax_64(h, n, x.at, 2, &wide));
  expect(wide == most + 1, "amax_64");
  OK(cublasSscal(h, n, &alpha, x.at, 1));
  for (int i = 0; i < n; i++) x.host[(size_t)i] *= alpha;
  expect(x.same(), "scal");
  OK(cublasSswap(h, 200, x.at, 1, y.at, 1));
  std::swap(x.host, y.host);
  expect(x.same(1e-6) && y.same(1e-6), "swap");
  OK(cublasScopy(h, 200, x.at, 1, y.at, 1));
  y.host = x.host;
  expect(y.same(1e-6), "copy");
  float c = 0.5f, s = -0.25f;
  OK(cublasSrot(h, 10, x.at, 1, y.at, 1, &c, &s));
  for (size_t i = 0; i < 10; i++) {
    float a = x.host[i], b = y.host[i];
    x.host[i] = c * a + s * b, y.host[i] = c * b - s * a;
  }
  expect(x.same(1e-6) && y.same(1e-6), "rot");
  Device<Z> u(9), v(9);
  Z got, want = 0;
  for (size_t i = 0; i < 9; i++) want += std::conj(u.host[i]) * v.host[i];
  OK(cublasZdotc(h, 9, (cuDoubleComplex *)u.at, 1, (cuDoubleComplex *)v.at, 1, (cuDoubleComplex *)&got));
  expect(std::abs(got - want) < 1e-12, "dotc");
}

// Scalars and results on the device, and in a stream's graph.
static void device_pointers(cublasHandle_t h) {
  Device<float> x(64), y(64), scalars(2);
  scalars.host[0] = 0.25f;
  scalars.put();
  OK(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
  OK(cublasSaxpy(h, 64, scalars.at, x.at, 1, y.at, 1));
  OK(cublasSdot(h, 64, x.at, 1, x.at, 1, scalars.at + 1));
  double dot = 0;
  for (size_t i = 0; i < 64; i++) y.host[i] += 0.25f * x.host[i], dot += x.host[i] * x.host[i];
  scalars.host[1] = (float)dot;
  expect(y.same() && scalars.same(1e-6), "alpha and a result on the device");
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCreate(&stream);
  OK(cublasSetStream(h, stream));
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  OK(cublasSaxpy(h, 64, scalars.at, x.at, 1, y.at, 1));
  expect(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "a call is captured");
  expect(y.same(), "and does not run");
  expect(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess, "its graph");
  for (int i = 0; i < 2; i++) expect(cudaGraphLaunch(exec, stream) == cudaSuccess, "is launched");
  cudaStreamSynchronize(stream);
  for (size_t i = 0; i < 64; i++) y.host[i] += 0.5f * x.host[i];
  expect(y.same(), "as often as the graph");
  cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
  OK(cublasSetStream(h, nullptr));
  cudaStreamDestroy(stream);
  OK(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
}

static void level2(cublasHandle_t h) {
  const int m = 11, n = 7, lead = 12;
  Device<double> a(lead * 12), x(30), y(30);
  double alpha = 0.5, beta = -0.25;
  for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    OK(cublasDgemv(h, op, m, n, &alpha, a.at, lead, x.at, 2, &beta, y.at, 1));
    int rows = op == CUBLAS_OP_N ? m : n, columns = op == CUBLAS_OP_N ? n : m;
    for (int i = 0; i < rows; i++) {
      double sum = 0;
      for (int j = 0; j < columns; j++) sum += element(a.host, lead, op, i, j) * x.host[(size_t)j * 2];
      y.host[(size_t)i] = alpha * sum + beta * y.host[(size_t)i];
    }
    expect(y.same(1e-12), "gemv");
  }
  OK(cublasDger(h, m, n, &alpha, x.at, 1, y.at, 2, a.at, lead));
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) a.host[(size_t)(i + j * lead)] += alpha * x.host[(size_t)i] * y.host[(size_t)j * 2];
  expect(a.same(1e-12), "ger");
  for (cublasFillMode_t uplo : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
    OK(cublasDsymv(h, uplo, n, &alpha, a.at, lead, x.at, 1, &beta, y.at, 1));
    for (int i = 0; i < n; i++) {
      double sum = 0;
      for (int j = 0; j < n; j++) {
        bool stored = uplo == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j;
        sum += a.host[(size_t)(stored ? i + j * lead : j + i * lead)] * x.host[(size_t)j];
      }
      y.host[(size_t)i] = alpha * sum + beta * y.host[(size_t)i];
    }
    expect(y.same(1e-12), "symv");
  }
}

static void level3(cublasHandle_t h) {
  const int n = 9, k = 5, lead = 10;
  double alpha = 0.5, beta = -0.25;
  for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    Device<double> a(lead * lead), c(lead * lead);
    OK(cublasDsyrk(h, CUBLAS_FILL_MODE_UPPER, op, n, k, &alpha, a.at, lead, &beta, c.at, lead));
    for (int i = 0; i < n; i++)
      for (int j = i; j < n; j++) {
        double sum = 0;
        for (int l = 0; l < k; l++) sum += element(a.host, lead, op, i, l) * element(a.host, lead, op, j, l);
        double &x = c.host[(size_t)(i + j * lead)];
        x = alpha * sum + beta * x;
      }
    expect(c.same(1e-12), "syrk leaves the other triangle");
  }
  for (cublasSideMode_t side : {CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT})
    for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T})
      for (cublasFillMode_t uplo : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
        Device<double> a(lead * lead), b(lead * lead);
        for (int i = 0; i < lead; i++) a.host[(size_t)(i + i * lead)] = 3;
        a.put();
        // What trmm multiplied trsm takes apart.
        OK(cublasDtrmm(h, side, uplo, op, CUBLAS_DIAG_NON_UNIT, n, n, &alpha, a.at, lead, b.at, lead, b.at, lead));
        expect(!b.same(1e-12), "trmm changes its matrix");
        double back = 1 / alpha;
        OK(cublasDtrsm(h, side, uplo, op, CUBLAS_DIAG_NON_UNIT, n, n, &back, a.at, lead, b.at, lead));
        expect(b.same(1e-9), "trsm of trmm");
      }
  Device<float> a(40), b(40), c(40), x(5);
  float half = 0.5f, two = 2;
  OK(cublasSgeam(h, CUBLAS_OP_T, CUBLAS_OP_N, 5, 8, &half, a.at, 8, &two, b.at, 5, c.at, 5));
  for (int i = 0; i < 5; i++)
    for (int j = 0; j < 8; j++) c.host[(size_t)(i + j * 5)] = half * a.host[(size_t)(j + i * 8)] + two * b.host[(size_t)(i + j * 5)];
  expect(c.same(1e-6), "geam");
  OK(cublasSdgmm(h, CUBLAS_SIDE_LEFT, 5, 8, b.at, 5, x.at, 1, c.at, 5));
  for (int i = 0; i < 40; i++) c.host[(size_t)i] = b.host[(size_t)i] * x.host[(size_t)(i % 5)];
  expect(c.same(1e-6), "dgmm");
}

static uint16_t half_of(float x) { // exact ones, as fill makes them
  uint32_t u;
  memcpy(&u, &x, 4);
  return x == 0 ? 0 : (uint16_t)(u >> 16 & 0x8000) | (uint16_t)((int)(u >> 23 & 255) - 112) << 10 | (uint16_t)(u >> 13 & 1023);
}

static void batched(cublasHandle_t h) {
  const int n = 6, count = 4;
  float alpha = 1, beta = 0;
  Device<float> a(n * n * count), b(n * n * count), c(n * n * count), d(n * n * count);
  OK(cublasSgemmStridedBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, a.at, n, n * n, b.at, n, n * n, &beta, c.at, n,
                               n * n, count));
  std::vector<float *> list;
  for (int i = 0; i < 3 * count; i++) list.push_back((i < count ? a.at : i < 2 * count ? b.at : d.at) + i % count * n * n);
  float **lists;
  cudaMalloc((void **)&lists, list.size() * sizeof(float *));
  cudaMemcpy(lists, list.data(), list.size() * sizeof(float *), cudaMemcpyHostToDevice);
  OK(cublasSgemmBatched(h, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, lists, n, lists + count, n, &beta, lists + 2 * count, n,
                        count));
  for (int q = 0; q < count; q++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int l = 0; l < n; l++) sum += a.host[(size_t)(q * n * n + i + l * n)] * b.host[(size_t)(q * n * n + l + j * n)];
        c.host[(size_t)(q * n * n + i + j * n)] = d.host[(size_t)(q * n * n + i + j * n)] = sum;
      }
  expect(c.same(1e-6) && d.same(1e-6), "batched, with strides and with pointers");
  cudaFree(lists);
}

// P A = L U, of two matrices; the second one is singular.
static void factors(cublasHandle_t h) {
  const int n = 5;
  Device<double> a(2 * n * n);
  std::vector<double> before = a.host;
  for (int i = 0; i < n; i++) a.host[(size_t)(n * n + i)] = before[(size_t)(n * n + i)] = 0; // a column of zeros
  a.put();
  double *list[] = {a.at, a.at + n * n}, **lists;
  int *numbers, got[3 * n];
  cudaMalloc((void **)&lists, sizeof list), cudaMalloc((void **)&numbers, sizeof got);
  cudaMemcpy(lists, list, sizeof list, cudaMemcpyHostToDevice);
  OK(cublasDgetrfBatched(h, n, lists, n, numbers, numbers + 2 * n, 2));
  cudaMemcpy(got, numbers, sizeof got, cudaMemcpyDeviceToHost);
  cudaMemcpy(a.host.data(), a.at, a.host.size() * 8, cudaMemcpyDeviceToHost);
  expect(got[2 * n] == 0 && got[2 * n + 1] == 1, "which diagonal is 0");
  for (int k = 0; k < n; k++)
    for (int j = 0; j < n; j++) std::swap(before[(size_t)(k + j * n)], before[(size_t)(got[k] - 1 + j * n)]);
  bool fine = true;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = 0;
      for (int k = 0; k <= std::min(i, j); k++) sum += (k == i ? 1 : a.host[(size_t)(i + k * n)]) * a.host[(size_t)(k + j * n)];
      fine &= std::fabs(sum - before[(size_t)(i + j * n)]) < 1e-12;
    }
  expect(fine, "L U is A with its rows exchanged");
  cudaFree(lists), cudaFree(numbers);
}

// 16-bit inputs and sums in float, as training has it; and cublasLt with a bias and ReLU.
static void mixed(cublasHandle_t h) {
  const int m = 8, n = 5, k = 12;
  Device<float> a(m * k), b(k * n), c(m * n), bias(m);
  std::vector<uint16_t> ha, hb;
  for (float x : a.host) ha.push_back(half_of(x));
  for (float x : b.host) hb.push_back(half_of(x));
  void *da, *db;
  cudaMalloc(&da, ha.size() * 2), cudaMalloc(&db, hb.size() * 2);
  cudaMemcpy(da, ha.data(), ha.size() * 2, cudaMemcpyHostToDevice);
  cudaMemcpy(db, hb.data(), hb.size() * 2, cudaMemcpyHostToDevice);
  float alpha = 1, beta = 0;
  std::vector<float> sums((size_t)(m * n));
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++)
      for (int l = 0; l < k; l++) sums[(size_t)(i + j * m)] += a.host[(size_t)(i + l * m)] * b.host[(size_t)(l + j * k)];
  OK(cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, da, CUDA_R_16F, m, db, CUDA_R_16F, k, &beta, c.at, CUDA_R_32F, m,
                  CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  c.host = sums;
  expect(c.same(1e-6), "gemmEx of halves");
  cublasLtHandle_t lt;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t la, lb, lc;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulHeuristicResult_t result;
  int found = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  void *at = bias.at;
  OK(cublasLtCreate(&lt));
  OK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
  OK(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at));
  OK(cublasLtMatrixLayoutCreate(&la, CUDA_R_16F, m, k, m));
  OK(cublasLtMatrixLayoutCreate(&lb, CUDA_R_16F, k, n, k));
  OK(cublasLtMatrixLayoutCreate(&lc, CUDA_R_32F, m, n, m));
  OK(cublasLtMatmulPreferenceCreate(&preference));
  OK(cublasLtMatmulAlgoGetHeuristic(lt, desc, la, lb, lc, lc, preference, 1, &result, &found));
  expect(found == 1 && result.state == CUBLAS_STATUS_SUCCESS, "an algorithm is found");
  OK(cublasLtMatmul(lt, desc, &alpha, da, la, db, lb, &beta, c.at, lc, c.at, lc, &result.algo, nullptr, 0, 0));
  for (int i = 0; i < m * n; i++) c.host[(size_t)i] = std::max(sums[(size_t)i] + bias.host[(size_t)(i % m)], 0.0f);
  expect(c.same(1e-6), "cublasLtMatmul with bias and ReLU");
  cublasLtMatmulDescDestroy(desc), cublasLtMatrixLayoutDestroy(la), cublasLtMatrixLayoutDestroy(lb);
  cublasLtMatrixLayoutDestroy(lc), cublasLtMatmulPreferenceDestroy(preference), cublasLtDestroy(lt);
  cudaFree(da), cudaFree(db);
}

static void misuse(cublasHandle_t h) {
  float alpha = 1, beta = 0;
  Device<float> a(16);
  IS(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &alpha, a.at, 4, a.at, 4, &beta, a.at, 4),
     CUBLAS_STATUS_NOT_INITIALIZED);
  IS(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, -1, 4, 4, &alpha, a.at, 4, a.at, 4, &beta, a.at, 4), CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &alpha, a.at, 3, a.at, 4, &beta, a.at, 4), CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4, &alpha, a.at, 4, a.at, 4, &beta, a.at, 4), CUBLAS_STATUS_SUCCESS);
  IS(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 4, &alpha, a.at, 4, a.at, 4, &beta, a.at, 4),
     CUBLAS_STATUS_EXECUTION_FAILED); // past the end of what is allocated
  expect(a.same(), "and nothing is written");
}

// Matrices of the host's, of the device's, and both in one call: the same as cuBLAS gives.
static void host_matrices(cublasHandle_t h) {
  const size_t m = 21, n = 34, k = 17, lead = 40;
  cublasXtHandle_t xt;
  int device = 0, other = 1, value = 0;
  OK(cublasXtCreate(&xt));
  OK(cublasXtDeviceSelect(xt, 1, &device));
  IS(cublasXtDeviceSelect(xt, 1, &other), CUBLAS_STATUS_INVALID_VALUE);
  OK(cublasXtSetBlockDim(xt, 64));
  OK(cublasXtGetBlockDim(xt, &value));
  expect(value == 64, "a tile");
  Device<double> a(lead * lead), b(lead * lead), c(lead * lead), d(lead * lead);
  double alpha = 0.5, beta = -0.25;
  std::vector<double> here = c.host;
  OK(cublasDgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &alpha, a.at, lead, b.at, lead, &beta, c.at, lead));
  OK(cublasXtDgemm(xt, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &alpha, a.host.data(), lead, b.at, lead, &beta, here.data(), lead));
  c.host = here;
  expect(c.same(), "a product in the host's memory");
  here = d.host;
  OK(cublasDsymm(h, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, m, n, &alpha, a.at, lead, b.at, lead, &beta, d.at, lead));
  OK(cublasXtDsymm(xt, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_UPPER, m, n, &alpha, a.at, lead, b.host.data(), lead, &beta, here.data(), lead));
  d.host = here;
  expect(d.same(), "symm in the host's memory");
  OK(cublasDsyrk(h, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n, k, &alpha, a.at, lead, &beta, d.at, lead));
  OK(cublasXtDsyrk(xt, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n, k, &alpha, a.host.data(), lead, &beta, d.host.data(), lead));
  expect(d.same(), "syrk in the host's memory");
  IS(cublasXtDgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.at, m - 1, b.at, lead, &beta, c.at, lead), CUBLAS_STATUS_INVALID_VALUE);
  IS(cublasXtDgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &alpha, a.at, lead, b.at, lead, &beta, c.at, lead), CUBLAS_STATUS_NOT_INITIALIZED);
  IS(cublasXtDgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, lead, lead, lead, &alpha, a.at + 1, lead, b.at, lead, &beta, c.at, lead),
     CUBLAS_STATUS_EXECUTION_FAILED); // past the end of what is allocated
  OK(cublasXtDestroy(xt));
}

int main(int argc, char **argv) {
  cublasHandle_t h;
  OK(cublasCreate(&h));
  if (argc > 1 && !strcmp(argv[1], "one")) { // for the bill: 2 * 64^3 FLOPs, three matrices of 16384 bytes
    Device<float> a(4096), b(4096), c(4096);
    float alpha = 1, beta = 0;
    for (int i = 0; i < 3; i++) OK(cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, 64, 64, 64, &alpha, a.at, 64, b.at, 64, &beta, c.at, 64));
    return wrong != 0;
  }
  level1(h), device_pointers(h), level2(h), level3(h);
  check_gemm<float>(h, "gemm of float"), check_gemm<double>(h, "gemm of double");
  check_gemm<C>(h, "gemm of complex float"), check_gemm<Z>(h, "gemm of complex double");
  batched(h), factors(h), mixed(h), misuse(h), host_matrices(h);
  std::vector<float> rows = {1, 2, 3, 4, 5, 6}, back(6);
  Device<float> r(12);
  OK(cublasSetMatrix(2, 3, 4, rows.data(), 2, r.at, 4));
  OK(cublasGetMatrix(2, 3, 4, r.at, 4, back.data(), 2));
  expect(back == rows, "a matrix there and back");
  OK(cublasDestroy(h));
  IS(cublasDestroy(nullptr), CUBLAS_STATUS_NOT_INITIALIZED);
  printf("%d checks, %d wrong\n", checks, wrong);
  return wrong != 0;
}
