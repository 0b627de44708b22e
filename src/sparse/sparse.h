// What the entry points of cuSPARSE's stand-in and its products share.
#ifndef SOL_SPARSE_SPARSE_H
#define SOL_SPARSE_SPARSE_H

#include "base/port.h"
#include "blas/blas.h"

#define API BLAS_API

enum {
  SPARSE_OK = 0,
  SPARSE_NO_HANDLE = 1,
  SPARSE_NO_ROOM = 2,
  SPARSE_BAD_VALUE = 3,
  SPARSE_FAILED = 6,
  SPARSE_NOT_SUPPORTED = 10
};

typedef struct SparseHandle {
  uint64_t mark;
  BlasHandle blas; // stream and pointer mode
} SparseHandle;

typedef enum SparseFormat { SPARSE_BY_ROW, SPARSE_BY_COLUMN, SPARSE_BY_PAIR } SparseFormat; // CSR, CSC, COO
typedef struct SparseMatrix {
  SparseFormat format;
  int64_t rows, columns, count;
  const void *starts, *indices, *values; // starts: of rows or columns; COO: the row of each
  int start_type, index_type;            // cusparseIndexType_t: 1 16-bit, 2 32-bit, 3 64-bit
  int base;                              // 0 or 1
  int type;
} SparseMatrix;
typedef struct SparseDense {
  BlasOperand matrix;
  bool by_rows; // then `matrix` is its transpose
} SparseDense;

typedef struct SparseProduct { // C = alpha op(A) op(B) + beta C
  const char *name;
  SparseMatrix a;
  SparseDense b, c;
  int trans_a, trans_b;
  BlasScalar alpha, beta;
} SparseProduct;
int sparse_run(const SparseHandle *handle, const SparseProduct *product);

#endif
