// cuSPARSE's stand-in against plain loops: SpMV and SpMM of CSR, CSC and COO matrices, built with NVIDIA's headers.
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

static int wrong, checks;
static void expect(bool fine, const char *what) {
  checks++;
  if (!fine && wrong++ < 20) printf("wrong: %s\n", what);
}
#define OK(call) expect((call) == CUSPARSE_STATUS_SUCCESS, #call)

template <class T> T *on_device(const std::vector<T> &v) {
  T *at = nullptr;
  cudaMalloc((void **)&at, v.size() * sizeof(T));
  cudaMemcpy(at, v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  return at;
}

enum { ROWS = 13, COLUMNS = 9, WIDTH = 4 };
static unsigned state = 5;
static double next() {
  state = state * 1664525u + 1013904223u;
  return (double)(int)(state >> 28) - 8;
}

struct Matrix { // dense, and what of it is not 0
  std::vector<double> dense = std::vector<double>(ROWS * COLUMNS);
  std::vector<double> by_row, by_column;
  std::vector<int> rows, columns, row_starts = {0};
  std::vector<int64_t> column_rows, column_starts = {1}; // counted from 1
  Matrix() {
    for (double &x : dense) x = next() > 2 ? next() : 0;
    for (int i = 0; i < ROWS; i++) {
      for (int j = 0; j < COLUMNS; j++)
        if (dense[(size_t)(i * COLUMNS + j)] != 0) by_row.push_back(dense[(size_t)(i * COLUMNS + j)]), rows.push_back(i), columns.push_back(j);
      row_starts.push_back((int)by_row.size());
    }
    for (int j = 0; j < COLUMNS; j++) {
      for (int i = 0; i < ROWS; i++)
        if (dense[(size_t)(i * COLUMNS + j)] != 0) by_column.push_back(dense[(size_t)(i * COLUMNS + j)]), column_rows.push_back(i + 1);
      column_starts.push_back((int64_t)by_column.size() + 1);
    }
  }
  double at(bool turned, int i, int j) const { return dense[(size_t)(turned ? j * COLUMNS + i : i * COLUMNS + j)]; }
};

static void vectors(cusparseHandle_t h, cusparseSpMatDescr_t a, const Matrix &m, const char *what) {
  for (bool turned : {false, true}) {
    int rows = turned ? COLUMNS : ROWS, columns = turned ? ROWS : COLUMNS;
    std::vector<double> x((size_t)columns), y((size_t)rows), got((size_t)rows);
    for (double &v : x) v = next();
    for (double &v : y) v = next();
    double *dx = on_device(x), *dy = on_device(y), alpha = 2, beta = -1;
    cusparseDnVecDescr_t vx, vy;
    size_t bytes = 0;
    OK(cusparseCreateDnVec(&vx, columns, dx, CUDA_R_64F));
    OK(cusparseCreateDnVec(&vy, rows, dy, CUDA_R_64F));
    cusparseOperation_t op = turned ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
    OK(cusparseSpMV_bufferSize(h, op, &alpha, a, vx, &beta, vy, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes));
    OK(cusparseSpMV(h, op, &alpha, a, vx, &beta, vy, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr));
    cudaMemcpy(got.data(), dy, got.size() * 8, cudaMemcpyDeviceToHost);
    bool fine = true;
    for (int i = 0; i < rows; i++) {
      double sum = 0;
      for (int j = 0; j < columns; j++) sum += m.at(turned, i, j) * x[(size_t)j];
      fine &= got[(size_t)i] == alpha * sum + beta * y[(size_t)i];
    }
    expect(fine, what);
    cusparseDestroyDnVec(vx), cusparseDestroyDnVec(vy), cudaFree(dx), cudaFree(dy);
  }
}

static void matrices(cusparseHandle_t h, cusparseSpMatDescr_t a, const Matrix &m, cusparseOrder_t order) {
  bool by_rows = order == CUSPARSE_ORDER_ROW;
  std::vector<double> b(COLUMNS * WIDTH), c(ROWS * WIDTH, NAN), got(ROWS * WIDTH);
  for (double &v : b) v = next();
  double *db = on_device(b), *dc = on_device(c), alpha = 1, beta = 0; // beta 0: what is in C is not read
  cusparseDnMatDescr_t mb, mc;
  OK(cusparseCreateDnMat(&mb, COLUMNS, WIDTH, by_rows ? WIDTH : COLUMNS, db, CUDA_R_64F, order));
  OK(cusparseCreateDnMat(&mc, ROWS, WIDTH, by_rows ? WIDTH : ROWS, dc, CUDA_R_64F, order));
  cusparseOperation_t n = CUSPARSE_OPERATION_NON_TRANSPOSE;
  OK(cusparseSpMM(h, n, n, &alpha, a, mb, &beta, mc, CUDA_R_64F, CUSPARSE_SPMM_ALG_DEFAULT, nullptr));
  cudaMemcpy(got.data(), dc, got.size() * 8, cudaMemcpyDeviceToHost);
  bool fine = true;
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < WIDTH; j++) {
      double sum = 0;
      for (int k = 0; k < COLUMNS; k++) sum += m.at(false, i, k) * b[(size_t)(by_rows ? k * WIDTH + j : k + j * COLUMNS)];
      fine &= got[(size_t)(by_rows ? i * WIDTH + j : i + j * ROWS)] == sum;
    }
  expect(fine, by_rows ? "SpMM by rows" : "SpMM by columns");
  cusparseDestroyDnMat(mb), cusparseDestroyDnMat(mc), cudaFree(db), cudaFree(dc);
}

int main() {
  cusparseHandle_t h;
  Matrix m;
  int64_t count = (int64_t)m.by_row.size();
  OK(cusparseCreate(&h));
  cusparseSpMatDescr_t csr, coo, csc;
  int *starts = on_device(m.row_starts), *rows = on_device(m.rows), *columns = on_device(m.columns);
  int64_t *column_starts = on_device(m.column_starts), *column_rows = on_device(m.column_rows);
  double *values = on_device(m.by_row), *by_column = on_device(m.by_column);
  OK(cusparseCreateCsr(&csr, ROWS, COLUMNS, count, starts, columns, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                       CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  OK(cusparseCreateCoo(&coo, ROWS, COLUMNS, count, rows, columns, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  OK(cusparseCreateCsc(&csc, ROWS, COLUMNS, count, column_starts, column_rows, by_column, CUSPARSE_INDEX_64I, CUSPARSE_INDEX_64I,
                       CUSPARSE_INDEX_BASE_ONE, CUDA_R_64F));
  vectors(h, csr, m, "SpMV of CSR"), vectors(h, coo, m, "SpMV of COO"), vectors(h, csc, m, "SpMV of CSC from 1");
  matrices(h, csr, m, CUSPARSE_ORDER_COL), matrices(h, csr, m, CUSPARSE_ORDER_ROW);
  // An index that points outside fails, and touches nothing.
  int bad = COLUMNS;
  cudaMemcpy(columns, &bad, sizeof bad, cudaMemcpyHostToDevice);
  double one = 1, zero = 0, *x = on_device(std::vector<double>(COLUMNS, 1)), *y = on_device(std::vector<double>(ROWS, 7)), kept;
  cusparseDnVecDescr_t vx, vy;
  OK(cusparseCreateDnVec(&vx, COLUMNS, x, CUDA_R_64F));
  OK(cusparseCreateDnVec(&vy, ROWS, y, CUDA_R_64F));
  cusparseOperation_t n = CUSPARSE_OPERATION_NON_TRANSPOSE;
  expect(cusparseSpMV(h, n, &one, csr, vx, &zero, vy, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr) == CUSPARSE_STATUS_EXECUTION_FAILED,
         "a column outside");
  cudaMemcpy(&kept, y, 8, cudaMemcpyDeviceToHost);
  expect(kept == 7, "nothing is written");
  expect(cusparseSpMV(h, n, &one, csr, vy, &zero, vx, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr) == CUSPARSE_STATUS_INVALID_VALUE,
         "sizes that do not fit");
  OK(cusparseDestroySpMat(csr));
  OK(cusparseDestroy(h));
  printf("%d checks, %d wrong\n", checks, wrong);
  return wrong != 0;
}
