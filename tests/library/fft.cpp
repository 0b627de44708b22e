// cuFFT's stand-in against sums by definition: kinds, sizes (powers of two, mixed, primes), dimensions, strides, in place.
#include <cuda_runtime_api.h>
#include <cufft.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>

typedef std::complex<double> Z;
static int wrong, checks;
static void expect(bool fine, const char *what, int n) {
  checks++;
  if (!fine && wrong++ < 20) printf("wrong: %s of %d\n", what, n);
}
#define OK(call) expect((call) == CUFFT_SUCCESS, #call, 0)

static unsigned state = 3;
static double next() {
  state = state * 1664525u + 1013904223u;
  return (double)(int)(state >> 16) / 65536 - 0.5;
}

static std::vector<Z> direct(const std::vector<Z> &x, const std::vector<int> &n, int sign) {
  std::vector<Z> out = x;
  size_t step = 1;
  for (int d = (int)n.size() - 1; d >= 0; step *= (size_t)n[(size_t)d--]) {
    std::vector<Z> in = out;
    size_t length = (size_t)n[(size_t)d];
    for (size_t i = 0; i < x.size(); i++) {
      size_t k = i / step % length, base = i - k * step;
      out[i] = 0;
      for (size_t j = 0; j < length; j++) out[i] += in[base + j * step] * std::polar(1.0, sign * 2 * M_PI * (double)(j * k % length) / (double)length);
    }
  }
  return out;
}

template <class T> T *on_device(const std::vector<T> &v) {
  T *at = nullptr;
  cudaMalloc((void **)&at, v.size() * sizeof(T));
  cudaMemcpy(at, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  return at;
}
template <class T> std::vector<T> back(const T *from, size_t n) {
  std::vector<T> out(n);
  cudaMemcpy(out.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost);
  return out;
}
static bool near(Z a, Z b, double tolerance) { return std::abs(a - b) <= tolerance; }

// Z2Z in place, D2Z and back, of one to three dimensions.
static void shape(const std::vector<int> &n, const char *what) {
  size_t total = 1, last = (size_t)n.back(), kept = last / 2 + 1;
  for (int d : n) total *= (size_t)d;
  std::vector<Z> x(total);
  std::vector<double> real(total);
  for (size_t i = 0; i < total; i++) x[i] = Z(next(), next()), real[i] = next();
  cufftHandle plan, there, again;
  Z *dx = on_device(x);
  std::vector<int> sizes = n;
  OK(cufftPlanMany(&plan, (int)n.size(), sizes.data(), nullptr, 1, 0, nullptr, 1, 0, CUFFT_Z2Z, 1));
  OK(cufftExecZ2Z(plan, (cufftDoubleComplex *)dx, (cufftDoubleComplex *)dx, CUFFT_FORWARD));
  std::vector<Z> got = back(dx, total), want = direct(x, n, -1);
  bool fine = true;
  for (size_t i = 0; i < total; i++) fine &= near(got[i], want[i], 1e-10 * (double)total);
  expect(fine, what, (int)total);
  double *dr = on_device(real);
  Z *half = on_device(std::vector<Z>(total / last * kept));
  OK(cufftPlanMany(&there, (int)n.size(), sizes.data(), nullptr, 1, 0, nullptr, 1, 0, CUFFT_D2Z, 1));
  OK(cufftPlanMany(&again, (int)n.size(), sizes.data(), nullptr, 1, 0, nullptr, 1, 0, CUFFT_Z2D, 1));
  OK(cufftExecD2Z(there, dr, (cufftDoubleComplex *)half));
  std::vector<Z> full(real.begin(), real.end());
  want = direct(full, n, -1), got = back(half, total / last * kept);
  for (size_t row = 0; row < total / last; row++)
    for (size_t k = 0; k < kept; k++) fine &= near(got[row * kept + k], want[row * last + k], 1e-10 * (double)total);
  expect(fine, "real to complex", (int)total);
  OK(cufftExecZ2D(again, (cufftDoubleComplex *)half, dr));
  std::vector<double> round = back(dr, total);
  for (size_t i = 0; i < total; i++) fine &= std::fabs(round[i] / (double)total - real[i]) < 1e-10;
  expect(fine, "and back", (int)total);
  cufftDestroy(plan), cufftDestroy(there), cufftDestroy(again), cudaFree(dx), cudaFree(dr), cudaFree(half);
}

// Columns of a matrix: 3 transforms of 8 points, 3 elements apart, one element from one to the next; and real rows in place.
static void layouts() {
  std::vector<std::complex<float>> x(24);
  for (auto &v : x) v = {(float)next(), (float)next()};
  auto *dx = on_device(x);
  cufftHandle plan;
  int n = 8, embed = 8;
  OK(cufftPlanMany(&plan, 1, &n, &embed, 3, 1, &embed, 3, 1, CUFFT_C2C, 3));
  OK(cufftExecC2C(plan, (cufftComplex *)dx, (cufftComplex *)dx, CUFFT_INVERSE));
  auto got = back(dx, 24);
  bool fine = true;
  for (size_t c = 0; c < 3; c++) {
    std::vector<Z> column(8);
    for (size_t i = 0; i < 8; i++) column[i] = Z(x[i * 3 + c]);
    auto want = direct(column, {8}, 1);
    for (size_t i = 0; i < 8; i++) fine &= near(Z(got[i * 3 + c]), want[i], 1e-5);
  }
  expect(fine, "columns", 8);
  std::vector<float> rows(2 * 8); // two rows of 6, each in room for 4 complex numbers
  for (auto &v : rows) v = (float)next();
  float *dr = on_device(rows);
  cufftHandle in_place;
  OK(cufftPlan1d(&in_place, 6, CUFFT_R2C, 2));
  OK(cufftExecR2C(in_place, dr, (cufftComplex *)dr));
  auto out = back((std::complex<float> *)dr, 8);
  for (size_t r = 0; r < 2; r++) {
    std::vector<Z> row(rows.begin() + (long)r * 8, rows.begin() + (long)r * 8 + 6);
    auto want = direct(row, {6}, -1);
    for (size_t k = 0; k < 4; k++) fine &= near(Z(out[r * 4 + k]), want[k], 1e-5);
  }
  expect(fine, "real rows in place", 6);
  expect(cufftExecC2C(in_place, (cufftComplex *)dr, (cufftComplex *)dr, CUFFT_FORWARD) == CUFFT_INVALID_TYPE, "another kind", 0);
  expect(cufftExecC2C(777, (cufftComplex *)dr, (cufftComplex *)dr, CUFFT_FORWARD) == CUFFT_INVALID_PLAN, "no plan", 0);
  cufftHandle long_one;
  OK(cufftPlan1d(&long_one, 100, CUFFT_C2C, 1));
  expect(cufftExecC2C(long_one, (cufftComplex *)dr, (cufftComplex *)dr, CUFFT_FORWARD) == CUFFT_EXEC_FAILED, "past the end", 100);
}

int main() {
  for (int n : {1, 2, 8, 12, 30, 49, 97, 131, 256}) shape({n}, "one dimension");
  shape({5, 12}, "two dimensions"), shape({4, 3, 10}, "three dimensions");
  layouts();
  printf("%d checks, %d wrong\n", checks, wrong);
  return wrong != 0;
}
