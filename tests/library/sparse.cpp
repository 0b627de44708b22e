// cuSPARSE's stand-in against plain loops: products, triangular solves, conversions and incomplete factors, built with NVIDIA's
// headers.
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

// ---- square matrices ----

enum { SIZE = 11 };
struct Square { // CSR with a full diagonal
  std::vector<double> dense = std::vector<double>(SIZE * SIZE), values;
  std::vector<int> starts = {0}, columns;
  Square() {
    for (int i = 0; i < SIZE; i++) {
      for (int j = 0; j < SIZE; j++) {
        double x = i == j ? 16 : next() > 2 ? next() : 0;
        dense[(size_t)(i * SIZE + j)] = x;
        if (x != 0) values.push_back(x), columns.push_back(j);
      }
      starts.push_back((int)values.size());
    }
  }
  double at(int i, int j) const { return dense[(size_t)(i * SIZE + j)]; }
};

static cusparseSpMatDescr_t on_device(const Square &m) {
  cusparseSpMatDescr_t a;
  OK(cusparseCreateCsr(&a, SIZE, SIZE, (int64_t)m.values.size(), on_device(m.starts), on_device(m.columns), on_device(m.values), CUSPARSE_INDEX_32I,
                       CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  return a;
}

// op(T) y = 2 x of one triangle: what is put in again must be 2 x.
static void solves(cusparseHandle_t h, bool upper, bool unit, bool turned) {
  Square m;
  cusparseSpMatDescr_t a = on_device(m);
  cusparseFillMode_t fill = upper ? CUSPARSE_FILL_MODE_UPPER : CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = unit ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT;
  OK(cusparseSpMatSetAttribute(a, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill));
  OK(cusparseSpMatSetAttribute(a, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal));
  std::vector<double> x(SIZE * WIDTH), y(SIZE), z(SIZE * WIDTH);
  for (double &v : x) v = next();
  double *dx = on_device(x), *dy = on_device(y), *dz = on_device(z), alpha = 2;
  cusparseOperation_t op = turned ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;
  cusparseDnVecDescr_t vx, vy;
  cusparseSpSVDescr_t state_of;
  size_t bytes = 0;
  OK(cusparseCreateDnVec(&vx, SIZE, dx, CUDA_R_64F));
  OK(cusparseCreateDnVec(&vy, SIZE, dy, CUDA_R_64F));
  OK(cusparseSpSV_createDescr(&state_of));
  OK(cusparseSpSV_bufferSize(h, op, &alpha, a, vx, vy, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, state_of, &bytes));
  OK(cusparseSpSV_analysis(h, op, &alpha, a, vx, vy, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, state_of, nullptr));
  OK(cusparseSpSV_solve(h, op, &alpha, a, vx, vy, CUDA_R_64F, CUSPARSE_SPSV_ALG_DEFAULT, state_of));
  cusparseDnMatDescr_t mx, mz;
  cusparseSpSMDescr_t other;
  cusparseOperation_t n = CUSPARSE_OPERATION_NON_TRANSPOSE;
  OK(cusparseCreateDnMat(&mx, SIZE, WIDTH, SIZE, dx, CUDA_R_64F, CUSPARSE_ORDER_COL));
  OK(cusparseCreateDnMat(&mz, SIZE, WIDTH, SIZE, dz, CUDA_R_64F, CUSPARSE_ORDER_COL));
  OK(cusparseSpSM_createDescr(&other));
  OK(cusparseSpSM_bufferSize(h, op, n, &alpha, a, mx, mz, CUDA_R_64F, CUSPARSE_SPSM_ALG_DEFAULT, other, &bytes));
  OK(cusparseSpSM_analysis(h, op, n, &alpha, a, mx, mz, CUDA_R_64F, CUSPARSE_SPSM_ALG_DEFAULT, other, nullptr));
  OK(cusparseSpSM_solve(h, op, n, &alpha, a, mx, mz, CUDA_R_64F, CUSPARSE_SPSM_ALG_DEFAULT, other));
  cudaMemcpy(y.data(), dy, y.size() * 8, cudaMemcpyDeviceToHost);
  cudaMemcpy(z.data(), dz, z.size() * 8, cudaMemcpyDeviceToHost);
  bool fine = true;
  for (int j = 0; j < WIDTH; j++)
    for (int i = 0; i < SIZE; i++) {
      double sum = 0;
      for (int k = 0; k < SIZE; k++) {
        int row = turned ? k : i, column = turned ? i : k;
        bool counts = upper ? column >= row : column <= row;
        sum += (!counts ? 0 : row == column && unit ? 1 : m.at(row, column)) * z[(size_t)(k + j * SIZE)];
      }
      double want = 2 * x[(size_t)(i + j * SIZE)];
      fine &= std::fabs(sum - want) < 1e-9 * (1 + std::fabs(z[(size_t)(i + j * SIZE)]));
    }
  for (int i = 0; i < SIZE; i++) fine &= y[(size_t)i] == z[(size_t)i];
  expect(fine, "SpSV, SpSM");
  cusparseSpSV_destroyDescr(state_of), cusparseSpSM_destroyDescr(other);
}

static void multiply(cusparseHandle_t h) {
  Square m, o;
  cusparseSpMatDescr_t a = on_device(m), b = on_device(o), c;
  cusparseSpGEMMDescr_t state_of;
  std::vector<int> starts(SIZE + 1);
  int *dstarts = on_device(starts), *dcolumns = nullptr;
  double alpha = 3, beta = 0, *dvalues = nullptr, *ddense = on_device(m.dense);
  cusparseOperation_t n = CUSPARSE_OPERATION_NON_TRANSPOSE;
  size_t bytes = 0;
  void *buffer = nullptr;
  OK(cusparseCreateCsr(&c, SIZE, SIZE, 0, dstarts, nullptr, nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  OK(cusparseSpGEMM_createDescr(&state_of));
  OK(cusparseSpGEMM_workEstimation(h, n, n, &alpha, a, b, &beta, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, state_of, &bytes, nullptr));
  OK(cusparseSpGEMM_compute(h, n, n, &alpha, a, b, &beta, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, state_of, &bytes, nullptr));
  cudaMalloc(&buffer, bytes);
  OK(cusparseSpGEMM_compute(h, n, n, &alpha, a, b, &beta, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, state_of, &bytes, buffer));
  int64_t rows, columns, count;
  OK(cusparseSpMatGetSize(c, &rows, &columns, &count));
  cudaMalloc((void **)&dcolumns, (size_t)count * sizeof(int)), cudaMalloc((void **)&dvalues, (size_t)count * 8);
  OK(cusparseCsrSetPointers(c, dstarts, dcolumns, dvalues));
  OK(cusparseSpGEMM_copy(h, n, n, &alpha, a, b, &beta, c, CUDA_R_64F, CUSPARSE_SPGEMM_DEFAULT, state_of));
  cusparseDnMatDescr_t dense;
  OK(cusparseCreateDnMat(&dense, SIZE, SIZE, SIZE, ddense, CUDA_R_64F, CUSPARSE_ORDER_ROW));
  OK(cusparseSparseToDense_bufferSize(h, c, dense, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, &bytes));
  OK(cusparseSparseToDense(h, c, dense, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, nullptr));
  std::vector<double> got(SIZE * SIZE);
  cudaMemcpy(got.data(), ddense, got.size() * 8, cudaMemcpyDeviceToHost);
  bool fine = true;
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      double sum = 0;
      for (int k = 0; k < SIZE; k++) sum += m.at(i, k) * o.at(k, j);
      fine &= got[(size_t)(i * SIZE + j)] == 3 * sum;
    }
  expect(fine, "SpGEMM, SparseToDense");
  cusparseSpGEMM_destroyDescr(state_of);
}

static void make_sparse(cusparseHandle_t h) {
  Square m;
  std::vector<int> starts(SIZE + 1);
  int *dstarts = on_device(starts);
  double *ddense = on_device(m.dense);
  cusparseSpMatDescr_t a;
  cusparseDnMatDescr_t dense;
  int64_t rows, columns, count = 0;
  OK(cusparseCreateDnMat(&dense, SIZE, SIZE, SIZE, ddense, CUDA_R_64F, CUSPARSE_ORDER_ROW));
  OK(cusparseCreateCsr(&a, SIZE, SIZE, 0, dstarts, nullptr, nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_64F));
  OK(cusparseDenseToSparse_analysis(h, dense, a, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, nullptr));
  OK(cusparseSpMatGetSize(a, &rows, &columns, &count));
  expect(count == (int64_t)m.values.size(), "DenseToSparse counts");
  std::vector<int> got((size_t)count);
  std::vector<double> values((size_t)count);
  int *dcolumns = on_device(got);
  double *dvalues = on_device(values);
  OK(cusparseCsrSetPointers(a, dstarts, dcolumns, dvalues));
  OK(cusparseDenseToSparse_convert(h, dense, a, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, nullptr));
  cudaMemcpy(starts.data(), dstarts, starts.size() * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(got.data(), dcolumns, got.size() * 4, cudaMemcpyDeviceToHost);
  cudaMemcpy(values.data(), dvalues, values.size() * 8, cudaMemcpyDeviceToHost);
  expect(starts == m.starts && got == m.columns && values == m.values, "DenseToSparse");
}

// L U equals the matrix where that has elements.
static void factors(cusparseHandle_t h) {
  Square m;
  int count = (int)m.values.size(), bytes = 0, pivot = 0;
  int *starts = on_device(m.starts), *columns = on_device(m.columns);
  double *values = on_device(m.values);
  cusparseMatDescr_t kind;
  csrilu02Info_t info;
  OK(cusparseCreateMatDescr(&kind));
  OK(cusparseCreateCsrilu02Info(&info));
  OK(cusparseDcsrilu02_bufferSize(h, SIZE, count, kind, values, starts, columns, info, &bytes));
  OK(cusparseDcsrilu02_analysis(h, SIZE, count, kind, values, starts, columns, info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr));
  OK(cusparseDcsrilu02(h, SIZE, count, kind, values, starts, columns, info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr));
  OK(cusparseXcsrilu02_zeroPivot(h, info, &pivot));
  expect(pivot == -1, "no zero pivot");
  std::vector<double> got(m.values.size()), dense(SIZE * SIZE);
  cudaMemcpy(got.data(), values, got.size() * 8, cudaMemcpyDeviceToHost);
  for (int i = 0; i < SIZE; i++)
    for (int at = m.starts[(size_t)i]; at < m.starts[(size_t)i + 1]; at++) dense[(size_t)(i * SIZE + m.columns[(size_t)at])] = got[(size_t)at];
  bool fine = true;
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      double sum = 0;
      for (int k = 0; k <= i && k <= j; k++) sum += (k == i ? 1 : dense[(size_t)(i * SIZE + k)]) * dense[(size_t)(k * SIZE + j)];
      fine &= m.at(i, j) == 0 || std::fabs(sum - m.at(i, j)) < 1e-9;
    }
  expect(fine, "csrilu02");
  double zero = 0;
  cudaMemcpy(values, &zero, 8, cudaMemcpyHostToDevice); // the first element of the first row, its diagonal
  OK(cusparseDcsrilu02(h, SIZE, count, kind, values, starts, columns, info, CUSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr));
  expect(cusparseXcsrilu02_zeroPivot(h, info, &pivot) == CUSPARSE_STATUS_ZERO_PIVOT && pivot == 0, "a zero pivot");
  cusparseDestroyCsrilu02Info(info), cusparseDestroyMatDescr(kind);
}

// Sparse vectors: what is taken out of a dense one, added to it, and put there.
static void sparse_vectors(cusparseHandle_t h) {
  std::vector<int64_t> at = {2, 3, 7};
  std::vector<float> x = {0, 0, 0}, y = {10, 11, 12, 13, 14, 15, 16, 17}, got(8);
  int64_t *places = on_device(at);
  float *dx = on_device(x), *dy = on_device(y), alpha = 2, beta = -1;
  cusparseSpVecDescr_t vx;
  cusparseDnVecDescr_t vy;
  OK(cusparseCreateSpVec(&vx, 8, 3, places, dx, CUSPARSE_INDEX_64I, CUSPARSE_INDEX_BASE_ONE, CUDA_R_32F));
  OK(cusparseCreateDnVec(&vy, 8, dy, CUDA_R_32F));
  OK(cusparseGather(h, vy, vx));
  cudaMemcpy(got.data(), dx, 12, cudaMemcpyDeviceToHost);
  expect(got[0] == 11 && got[1] == 12 && got[2] == 16, "Gather");
  OK(cusparseAxpby(h, &alpha, vx, &beta, vy));
  cudaMemcpy(got.data(), dy, 32, cudaMemcpyDeviceToHost);
  expect(got[0] == -10 && got[1] == 11 && got[2] == 12 && got[6] == 16 && got[7] == -17, "Axpby");
  OK(cusparseScatter(h, vx, vy));
  cudaMemcpy(got.data(), dy, 32, cudaMemcpyDeviceToHost);
  expect(got[0] == -10 && got[2] == 12 && got[6] == 16, "Scatter");
  int64_t outside = 9;
  cudaMemcpy(places, &outside, sizeof outside, cudaMemcpyHostToDevice);
  expect(cusparseGather(h, vy, vx) == CUSPARSE_STATUS_EXECUTION_FAILED, "an index outside");
  OK(cusparseDestroySpVec(vx)), OK(cusparseDestroyDnVec(vy));
}

// Rows whose columns are in no order, sorted; the matrix by columns; and how many elements of a dense one there are.
static void orders(cusparseHandle_t h, const Matrix &m) {
  int count = (int)m.by_row.size(), total = 0;
  std::vector<int> mixed = m.columns, order((size_t)count), sorted((size_t)count), each(COLUMNS);
  for (int i = 0; i < ROWS; i++)
    for (int a = m.row_starts[(size_t)i], b = m.row_starts[(size_t)i + 1] - 1; a < b; a++, b--)
      std::swap(mixed[(size_t)a], mixed[(size_t)b]);
  int *starts = on_device(m.row_starts), *columns = on_device(mixed), *places = on_device(order);
  size_t bytes = 0;
  cusparseMatDescr_t kind;
  OK(cusparseCreateMatDescr(&kind));
  OK(cusparseXcsrsort_bufferSizeExt(h, ROWS, COLUMNS, count, starts, columns, &bytes));
  OK(cusparseCreateIdentityPermutation(h, count, places));
  OK(cusparseXcsrsort(h, ROWS, COLUMNS, count, kind, starts, columns, places, nullptr));
  cudaMemcpy(sorted.data(), columns, sizeof(int) * (size_t)count, cudaMemcpyDeviceToHost);
  cudaMemcpy(order.data(), places, sizeof(int) * (size_t)count, cudaMemcpyDeviceToHost);
  bool moved = true;
  for (int i = 0; i < count; i++) moved = moved && mixed[(size_t)order[(size_t)i]] == sorted[(size_t)i];
  expect(sorted == m.columns && moved, "Xcsrsort");

  std::vector<double> turned((size_t)count);
  std::vector<int> at(COLUMNS + 1), rows((size_t)count);
  double *values = on_device(m.by_row), *by_column = on_device(turned), *dense = on_device(m.dense);
  int *column_starts = on_device(at), *column_rows = on_device(rows), *counts = on_device(each);
  OK(cusparseCsr2cscEx2(h, ROWS, COLUMNS, count, values, starts, columns, by_column, column_starts,
                        column_rows, CUDA_R_64F, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
                        CUSPARSE_CSR2CSC_ALG1, nullptr));
  cudaMemcpy(turned.data(), by_column, sizeof(double) * (size_t)count, cudaMemcpyDeviceToHost);
  cudaMemcpy(at.data(), column_starts, sizeof(int) * at.size(), cudaMemcpyDeviceToHost);
  cudaMemcpy(rows.data(), column_rows, sizeof(int) * (size_t)count, cudaMemcpyDeviceToHost);
  bool same = turned == m.by_column;
  for (int j = 0; j <= COLUMNS; j++) same = same && at[(size_t)j] == m.column_starts[(size_t)j] - 1;
  for (int i = 0; i < count; i++) same = same && rows[(size_t)i] == m.column_rows[(size_t)i] - 1;
  expect(same, "Csr2cscEx2");

  std::vector<int> overlap(ROWS + 1, 0);
  for (int i = 1; i <= ROWS; i += 2) overlap[(size_t)i] = count; // half of the rows have everything
  cudaMemcpy(starts, overlap.data(), sizeof(int) * overlap.size(), cudaMemcpyHostToDevice);
  expect(cusparseCsr2cscEx2(h, ROWS, COLUMNS, count, values, starts, columns, by_column, column_starts, column_rows, CUDA_R_64F,
                            CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO, CUSPARSE_CSR2CSC_ALG1, nullptr) == CUSPARSE_STATUS_EXECUTION_FAILED,
         "rows that overlap");

  // Stored by rows, it is a matrix of COLUMNS rows stored by columns.
  OK(cusparseDnnz(h, CUSPARSE_DIRECTION_ROW, COLUMNS, ROWS, kind, dense, COLUMNS, counts, &total));
  cudaMemcpy(each.data(), counts, sizeof(int) * each.size(), cudaMemcpyDeviceToHost);
  for (int j = 0; j < COLUMNS; j++) same = same && each[(size_t)j] == at[(size_t)j + 1] - at[(size_t)j];
  expect(same && total == count, "Dnnz");
  OK(cusparseDestroyMatDescr(kind));
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
  for (int k = 0; k < 8; k++) solves(h, k & 1, k & 2, k & 4);
  multiply(h), make_sparse(h), factors(h), sparse_vectors(h), orders(h, m);
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
