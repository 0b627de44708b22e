// cuBLAS's stand-in against plain loops: rotations, batches of vectors, triangular matrices, groups of products, systems.
#include "blas_check.hpp"

static void rotations(cublasHandle_t h) {
  double a = 3, b = 4, c = 0, s = 0;
  OK(cublasDrotg(h, &a, &b, &c, &s));
  expect(std::fabs(a - 5) < 1e-15 && std::fabs(c - 0.6) < 1e-15 && std::fabs(s - 0.8) < 1e-15, "rotg");
  expect(std::fabs(b - 1 / 0.6) < 1e-15, "rotg: 1 / c, where b is the larger");
  C ca(1, 2), cb(-3, 0.5f), cs, before = ca;
  float cc = 0;
  OK(cublasCrotg(h, (cuComplex *)&ca, (cuComplex *)&cb, &cc, (cuComplex *)&cs));
  expect(std::abs(cc * before + cs * cb - ca) < 1e-6f && std::abs(-std::conj(cs) * before + cc * cb) < 1e-6f, "rotg of complex numbers");

  // rotmg makes the second element 0: H (sqrt(d1) x1, sqrt(d2) y1) in scaled form.
  const double sizes[][4] = {{2, 3, 4, 0.5}, {0.5, 8, 0.25, 3}, {1e-9, 2e9, 5, 7}, {3e8, 1e-10, 2, 0.125}, {-1, 2, 3, 4}, {1, 0, 2, 3}};
  for (const double *t : sizes) {
    double d1 = t[0], d2 = t[1], x1 = t[2], y1 = t[3], p[5] = {9, 0, 0, 0, 0};
    OK(cublasDrotmg(h, &d1, &d2, &x1, &y1, p));
    if (t[0] < 0) {
      expect(p[0] == -1 && p[1] == 0 && d1 == 0 && x1 == 0, "rotmg of a negative weight");
      continue;
    }
    if (t[1] == 0) {
      expect(p[0] == -2 && x1 == t[2], "rotmg with nothing to do");
      continue;
    }
    double h11 = p[0] == 0 ? 1 : p[1], h21 = p[0] == 1 ? -1 : p[2], h12 = p[0] == 1 ? 1 : p[3], h22 = p[0] == 0 ? 1 : p[4];
    expect(std::fabs(h11 * t[2] + h12 * y1 - x1) < 1e-9 * std::fabs(x1) + 1e-12, "rotmg: the first element");
    expect(std::fabs(h21 * t[2] + h22 * y1) < 1e-9, "rotmg: the second is 0");
    double weight = d1 * x1 * x1, want = t[0] * t[2] * t[2] + t[1] * y1 * y1;
    expect(std::fabs(weight - want) < 1e-9 * want, "rotmg keeps the weighted length");
    Device<double> x(20), y(20);
    OK(cublasDrotm(h, 20, x.at, 1, y.at, 1, p));
    for (size_t i = 0; i < 20; i++) {
      double u = x.host[i], v = y.host[i];
      x.host[i] = h11 * u + h12 * v, y.host[i] = h21 * u + h22 * v;
    }
    expect(x.same(1e-6) && y.same(1e-6), "rotm");
  }
  Device<float> x(8), y(8), p(5);
  p.host = {0, 77, 0.5f, -0.25f, 77}; // a flag of 0: the diagonal is 1
  p.put();
  OK(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_DEVICE));
  OK(cublasRotmEx(h, 8, x.at, CUDA_R_32F, 1, y.at, CUDA_R_32F, 1, p.at, CUDA_R_32F, CUDA_R_32F));
  OK(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
  for (size_t i = 0; i < 8; i++) {
    float u = x.host[i], v = y.host[i];
    x.host[i] = u - 0.25f * v, y.host[i] = 0.5f * u + v;
  }
  expect(x.same(1e-6) && y.same(1e-6), "rotmEx with the device's parameters");
}

static void with_types(cublasHandle_t h) {
  Device<double> x(30);
  Device<float> y(30);
  OK(cublasCopyEx(h, 30, x.at, CUDA_R_64F, 1, y.at, CUDA_R_32F, 1));
  for (size_t i = 0; i < 30; i++) y.host[i] = (float)x.host[i];
  expect(y.same(), "copyEx of two types");
  double sum = 0, got = 0;
  size_t most = 0, least = 0;
  for (size_t i = 0; i < 30; i++) {
    sum += std::fabs(x.host[i]);
    if (std::fabs(x.host[i]) > std::fabs(x.host[most])) most = i;
    if (std::fabs(x.host[i]) < std::fabs(x.host[least])) least = i;
  }
  int first = 0;
  int64_t last = 0;
  OK(cublasAsumEx(h, 30, x.at, CUDA_R_64F, 1, &got, CUDA_R_64F, CUDA_R_64F));
  OK(cublasIamaxEx(h, 30, x.at, CUDA_R_64F, 1, &first));
  OK(cublasIaminEx_64(h, 30, x.at, CUDA_R_64F, 1, &last));
  expect(std::fabs(got - sum) < 1e-12 && (size_t)first == most + 1 && (size_t)last == least + 1, "asumEx, iamaxEx, iaminEx");
}

template <class T> struct Lists { // pointers to the parts of device memory, on the device
  T **at = nullptr;
  Lists(T *from, int count, int apart) {
    std::vector<T *> list;
    for (int i = 0; i < count; i++) list.push_back(from + i * apart);
    cudaMalloc((void **)&at, list.size() * sizeof(T *));
    cudaMemcpy(at, list.data(), list.size() * sizeof(T *), cudaMemcpyHostToDevice);
  }
  ~Lists() { cudaFree(at); }
  Lists(const Lists &) = delete;
  Lists &operator=(const Lists &) = delete;
};

static void vectors(cublasHandle_t h) {
  const int m = 6, n = 4, count = 3;
  float alpha = 0.5f, beta = -1;
  Device<float> a(m * n * count), x(n * count), y(m * count);
  Lists<float> la(a.at, count, m * n), lx(x.at, count, n), ly(y.at, count, m);
  OK(cublasSgemvBatched(h, CUBLAS_OP_N, m, n, &alpha, la.at, m, lx.at, 1, &beta, ly.at, 1, count));
  for (int q = 0; q < count; q++)
    for (int i = 0; i < m; i++) {
      float sum = 0;
      for (int j = 0; j < n; j++) sum += a.host[(size_t)(q * m * n + i + j * m)] * x.host[(size_t)(q * n + j)];
      float &to = y.host[(size_t)(q * m + i)];
      to = alpha * sum + beta * to;
    }
  expect(y.same(1e-6), "gemvBatched");

  const int lead = 9, of = 8;
  for (cublasFillMode_t uplo : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER})
    for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})
      for (cublasDiagType_t diag : {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT}) {
        Device<Z> t(lead * lead), v(of * 2);
        for (int i = 0; i < lead; i++) t.host[(size_t)(i + i * lead)] = Z(3, 1);
        t.put();
        OK(cublasZtrmv(h, uplo, op, diag, of, (cuDoubleComplex *)t.at, lead, (cuDoubleComplex *)v.at, -2));
        std::vector<Z> before = v.host;
        for (int i = 0; i < of; i++) {
          Z sum = 0;
          for (int j = 0; j < of; j++) {
            int r = op == CUBLAS_OP_N ? i : j, c = op == CUBLAS_OP_N ? j : i;
            bool stored = uplo == CUBLAS_FILL_MODE_LOWER ? r >= c : r <= c;
            Z e = !stored ? 0 : r == c && diag == CUBLAS_DIAG_UNIT ? 1 : element(t.host, lead, op, i, j);
            sum += e * before[(size_t)((of - 1 - j) * 2)];
          }
          v.host[(size_t)((of - 1 - i) * 2)] = sum;
        }
        expect(v.same(1e-12), "trmv with a step backwards");
        OK(cublasZtrsv(h, uplo, op, diag, of, (cuDoubleComplex *)t.at, lead, (cuDoubleComplex *)v.at, -2));
        v.host = before;
        expect(v.same(1e-7), "trsv of trmv");
      }
  IS(cublasZtrsv(h, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 1, nullptr, 1, nullptr, 0), CUBLAS_STATUS_INVALID_VALUE);

  Device<Z> s(lead * lead), u(of), w(of);
  Z factor(0.5, -0.25);
  double real = 2;
  OK(cublasZher(h, CUBLAS_FILL_MODE_UPPER, of, &real, (cuDoubleComplex *)u.at, 1, (cuDoubleComplex *)s.at, lead));
  OK(cublasZher2(h, CUBLAS_FILL_MODE_UPPER, of, (cuDoubleComplex *)&factor, (cuDoubleComplex *)u.at, 1, (cuDoubleComplex *)w.at, 1,
                 (cuDoubleComplex *)s.at, lead));
  for (size_t i = 0; i < (size_t)of; i++)
    for (size_t j = i; j < (size_t)of; j++) {
      Z &to = s.host[i + j * lead];
      to += real * u.host[i] * std::conj(u.host[j]) + factor * u.host[i] * std::conj(w.host[j]) + std::conj(factor) * w.host[i] * std::conj(u.host[j]);
      if (i == j) to = to.real();
    }
  expect(s.same(1e-12), "her and her2: one triangle, a real diagonal");
  Device<Z> ka(lead * lead), kb(lead * lead), kc(lead * lead);
  double less = -0.5;
  const int k = 5;
  OK(cublasZher2k(h, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_C, of, k, (cuDoubleComplex *)&factor, (cuDoubleComplex *)ka.at, lead,
                  (cuDoubleComplex *)kb.at, lead, &less, (cuDoubleComplex *)kc.at, lead));
  for (int i = 0; i < of; i++)
    for (int j = 0; j <= i; j++) {
      Z sum = 0;
      for (int l = 0; l < k; l++) {
        Z ai = std::conj(ka.host[(size_t)(l + i * lead)]), aj = ka.host[(size_t)(l + j * lead)];
        Z bi = std::conj(kb.host[(size_t)(l + i * lead)]), bj = kb.host[(size_t)(l + j * lead)];
        sum += factor * ai * bj + std::conj(factor) * bi * aj;
      }
      Z &to = kc.host[(size_t)(i + j * lead)];
      to = sum + less * to;
      if (i == j) to = to.real();
    }
  expect(kc.same(1e-12), "her2k, beta real");
}

// Two groups: one product of 3x5x2, two of 4x2x6 whose A is transposed.
static void groups(cublasHandle_t h) {
  const cublasOperation_t ta[] = {CUBLAS_OP_N, CUBLAS_OP_T}, tb[] = {CUBLAS_OP_N, CUBLAS_OP_N};
  const int m[] = {3, 4}, n[] = {5, 2}, k[] = {2, 6}, lda[] = {3, 6}, ldb[] = {2, 6}, ldc[] = {3, 4}, sizes[] = {1, 2}, apart = 40;
  const float alpha[] = {0.5f, 2}, beta[] = {0, 1};
  Device<float> a(3 * apart), b(3 * apart), c(3 * apart);
  Lists<float> la(a.at, 3, apart), lb(b.at, 3, apart), lc(c.at, 3, apart);
  OK(cublasSgemmGroupedBatched(h, ta, tb, m, n, k, alpha, la.at, lda, lb.at, ldb, beta, lc.at, ldc, 2, sizes));
  for (int q = 0; q < 3; q++) {
    int g = q > 0, from = q * apart;
    for (int i = 0; i < m[g]; i++)
      for (int j = 0; j < n[g]; j++) {
        float sum = 0;
        for (int l = 0; l < k[g]; l++)
          sum += a.host[(size_t)(from + (g ? l + i * lda[g] : i + l * lda[g]))] * b.host[(size_t)(from + l + j * ldb[g])];
        float &to = c.host[(size_t)(from + i + j * ldc[g])];
        to = alpha[g] * sum + beta[g] * to;
      }
  }
  expect(c.same(1e-6), "gemmGroupedBatched");
}

template <class T> T dot(const std::vector<T> &a, int from, int lead, cublasOperation_t op, int n, const std::vector<T> &x, int at, int i) {
  T sum = 0;
  for (int j = 0; j < n; j++) {
    T e = op == CUBLAS_OP_N ? a[(size_t)(from + i + j * lead)] : a[(size_t)(from + j + i * lead)];
    sum += (op == CUBLAS_OP_C ? conj_of(e) : e) * x[(size_t)(at + j)];
  }
  return sum;
}

// Factors, solutions for each op(A), and inverses of three matrices.
static void systems(cublasHandle_t h) {
  const int n = 7, count = 3, columns = 2;
  int *numbers;
  cudaMalloc((void **)&numbers, sizeof(int) * (n + 1) * count);
  for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
    Device<Z> a(n * n * count), b(n * columns * count), inverse(n * n * count), own(n * n * count);
    own.host = a.host;
    own.put();
    Lists<Z> la(a.at, count, n * n), lb(b.at, count, n * columns), li(inverse.at, count, n * n), lo(own.at, count, n * n);
    std::vector<Z> matrix = a.host, right = b.host, x(b.host.size()), turned(inverse.host.size());
    int info = 5;
    OK(cublasZgetrfBatched(h, n, (cuDoubleComplex **)la.at, n, numbers, numbers + n * count, count));
    OK(cublasZgetrsBatched(h, op, n, columns, (const cuDoubleComplex **)la.at, n, numbers, (cuDoubleComplex **)lb.at, n, &info, count));
    expect(info == 0, "getrs: its arguments are right");
    cudaMemcpy(x.data(), b.at, x.size() * sizeof(Z), cudaMemcpyDeviceToHost);
    double worst = 0;
    for (int q = 0; q < count; q++)
      for (int j = 0; j < columns; j++)
        for (int i = 0; i < n; i++) {
          int at = (q * columns + j) * n;
          worst = std::max(worst, std::abs(dot(matrix, q * n * n, n, op, n, x, at, i) - right[(size_t)(at + i)]));
        }
    expect(worst < 1e-10, "getrs solves op(A) X = B");
    OK(cublasZgetriBatched(h, n, (const cuDoubleComplex **)la.at, n, numbers, (cuDoubleComplex **)li.at, n, numbers + n * count, count));
    cudaMemcpy(turned.data(), inverse.at, turned.size() * sizeof(Z), cudaMemcpyDeviceToHost);
    inverse.host = turned;
    OK(cublasZmatinvBatched(h, n, (const cuDoubleComplex **)lo.at, n, (cuDoubleComplex **)li.at, n, numbers, count));
    expect(inverse.same(1e-10), "matinv is getri of getrf");
    worst = 0;
    for (int q = 0; q < count; q++)
      for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
          worst = std::max(worst, std::abs(dot(matrix, q * n * n, n, CUBLAS_OP_N, n, turned, (q * n + j) * n, i) - Z(i == j)));
    expect(worst < 1e-10, "getri inverts");
  }
  Device<Z> singular(n * n);
  for (Z &x : singular.host) x = 0;
  singular.put();
  Lists<Z> ls(singular.at, 1, n * n);
  int got = 0;
  OK(cublasZmatinvBatched(h, n, (const cuDoubleComplex **)ls.at, n, (cuDoubleComplex **)ls.at, n, numbers, 1));
  cudaMemcpy(&got, numbers, sizeof got, cudaMemcpyDeviceToHost);
  expect(got == 1, "matinv says where a matrix is singular");
  cudaFree(numbers);
}

// Least squares: what is left is perpendicular to every column; and the factors that geqrf makes give A again.
static void squares(cublasHandle_t h) {
  const int m = 9, n = 4, count = 2;
  Device<Z> a(m * n * count), b(m * count), f(m * n), taus(n);
  std::vector<Z> matrix = a.host, right = b.host, x(b.host.size());
  Lists<Z> la(a.at, count, m * n), lb(b.at, count, m), lf(f.at, 1, m * n), lt(taus.at, 1, n);
  int info = 5;
  OK(cublasZgelsBatched(h, CUBLAS_OP_N, m, n, 1, (cuDoubleComplex **)la.at, m, (cuDoubleComplex **)lb.at, m, &info, nullptr, count));
  cudaMemcpy(x.data(), b.at, x.size() * sizeof(Z), cudaMemcpyDeviceToHost);
  double worst = 0;
  for (int q = 0; q < count; q++) {
    std::vector<Z> left(right.begin() + q * m, right.begin() + (q + 1) * m);
    for (int i = 0; i < m; i++) left[(size_t)i] -= dot(matrix, q * m * n, m, CUBLAS_OP_N, n, x, q * m, i);
    for (int j = 0; j < n; j++) {
      Z along = 0;
      for (int i = 0; i < m; i++) along += std::conj(matrix[(size_t)(q * m * n + i + j * m)]) * left[(size_t)i];
      worst = std::max(worst, std::abs(along));
    }
  }
  expect(info == 0 && worst < 1e-10, "gels");
  IS(cublasZgelsBatched(h, CUBLAS_OP_N, 3, 4, 1, (cuDoubleComplex **)la.at, m, (cuDoubleComplex **)lb.at, m, &info, nullptr, count),
     CUBLAS_STATUS_NOT_SUPPORTED);

  std::vector<Z> before = f.host, qr(f.host.size()), tau((size_t)n);
  OK(cublasZgeqrfBatched(h, m, n, (cuDoubleComplex **)lf.at, m, (cuDoubleComplex **)lt.at, &info, 1));
  cudaMemcpy(qr.data(), f.at, qr.size() * sizeof(Z), cudaMemcpyDeviceToHost);
  cudaMemcpy(tau.data(), taus.at, tau.size() * sizeof(Z), cudaMemcpyDeviceToHost);
  worst = 0;
  for (int j = 0; j < n; j++) { // Q R of column j: reflections from the last to the first
    std::vector<Z> column((size_t)m);
    for (int i = 0; i <= j; i++) column[(size_t)i] = qr[(size_t)(i + j * m)];
    for (int k = n - 1; k >= 0; k--) {
      Z along = column[(size_t)k];
      for (int i = k + 1; i < m; i++) along += std::conj(qr[(size_t)(i + k * m)]) * column[(size_t)i];
      along *= tau[(size_t)k];
      column[(size_t)k] -= along;
      for (int i = k + 1; i < m; i++) column[(size_t)i] -= qr[(size_t)(i + k * m)] * along;
    }
    for (int i = 0; i < m; i++) worst = std::max(worst, std::abs(column[(size_t)i] - before[(size_t)(i + j * m)]));
  }
  expect(worst < 1e-10, "geqrf: Q R is A");
}

int main() {
  cublasHandle_t h;
  OK(cublasCreate(&h));
  rotations(h), with_types(h), vectors(h), groups(h), systems(h), squares(h);
  OK(cublasDestroy(h));
  printf("%d checks, %d wrong\n", checks, wrong);
  return wrong != 0;
}
