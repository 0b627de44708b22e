//! alloc a 5*24*24*8 random-f64
//! alloc b 5*24*8 random-f64
//! alloc x 5*24*8 poison
//! alloc errors 32 zero
//! launch lu_solve grid=5 block=24,4 args=a,b,x
//! launch lu_check grid=5 block=24 args=a,b,x,errors
//! checks 120
// Linear systems of 24 unknowns in double by elimination with a search for the pivot, one block each.
#include "check.cuh"

#define N 24

extern "C" __global__ void lu_solve(const double *a, const double *b, double *x) {
  __shared__ double m[N][N + 1];
  __shared__ int pivot;
  int c = threadIdx.x, ty = threadIdx.y;
  for (int r = ty; r < N; r += 4) m[r][c] = a[(blockIdx.x * N + r) * N + c];
  if (ty == 0) m[c][N] = b[blockIdx.x * N + c];
  __syncthreads();
  for (int k = 0; k < N; k++) {
    if (c == 0 && ty == 0) {
      pivot = k;
      for (int r = k + 1; r < N; r++)
        if (fabs(m[r][k]) > fabs(m[pivot][k])) pivot = r;
    }
    __syncthreads();
    if (pivot != k && ty == 0) {
      for (int j = c; j <= N; j += N) {
        double v = m[k][j];
        m[k][j] = m[pivot][j], m[pivot][j] = v;
      }
    }
    __syncthreads();
    for (int r = ty; r < N; r += 4) {
      double factor = r == k ? 0 : m[r][k] / m[k][k];
      __syncthreads(); // all have read the column before it changes
      if (c > k && r != k) m[r][c] -= factor * m[k][c];
      if (c == k && r != k) m[r][N] -= factor * m[k][N], m[r][k] = 0;
      __syncthreads();
    }
  }
  if (ty == 0) x[blockIdx.x * N + c] = m[c][N] / m[c][c];
}

extern "C" __global__ void lu_check(const double *a, const double *b, const double *x, unsigned *errors) {
  int r = threadIdx.x;
  double sum = -b[blockIdx.x * N + r], scale = 0;
  for (int c = 0; c < N; c++) {
    double term = a[(blockIdx.x * N + r) * N + c] * x[blockIdx.x * N + c];
    sum += term, scale += fabs(term);
  }
  EXPECT_NEAR(r, sum, 0.0, 0, 1e-11 * (scale + 1));
}
