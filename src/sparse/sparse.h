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
  int upper,
      unit; // attributes of triangular matrices: which triangle counts, and that its diagonal is of ones
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

// ---- memory ----

typedef struct SparseIndices {
  unsigned char *at;
  int type, base;
} SparseIndices;
int64_t sparse_index(const SparseIndices *indices, int64_t i); // counted from 0
void sparse_set_index(const SparseIndices *indices, int64_t i, int64_t value);

typedef struct SparseView { // where the host finds a matrix
  SparseIndices starts, indices;
  BlasView values;
} SparseView;
bool sparse_view(const char *name, const SparseMatrix *matrix, SparseView *out);
bool sparse_places(const char *name, const SparseMatrix *matrix, SparseView *out); // the same without values
bool sparse_find_indices(const char *name, const void *at, int64_t count, int type, int base,
                         SparseIndices *out);
size_t sparse_index_bytes(int type); // of cusparseIndexType_t; 0: none of them
bool sparse_dense_view(const char *name, const SparseDense *dense, BlasView *out);
int64_t sparse_rows(const SparseDense *dense);
int64_t sparse_columns(const SparseDense *dense);

// Calls `visit` for each element; false: an index is outside the matrix, or `visit` returned it.
typedef bool SparseVisit(void *ctx, int64_t row, int64_t column, int64_t at);
bool sparse_visit(const SparseMatrix *matrix, const SparseView *view, SparseVisit *visit, void *ctx);

// ---- calls ----

bool sparse_is_handle(const SparseHandle *handle);
int sparse_call(const char *name, const SparseHandle *handle, ShimLibraryWork *work, const void *arguments,
                size_t bytes);
int sparse_keep(void *descriptor, void **out);                   // NULL: out of memory
int sparse_no_buffer(const SparseHandle *handle, size_t *bytes); // the size of a buffer that nothing needs
bool sparse_take_scalar(const char *name, BlasScalar *scalar);   // of the device
double sparse_bytes(const SparseMatrix *matrix);
double sparse_dense_bytes(const SparseDense *dense);
ShimLibraryUse sparse_use(const SparseDense *dense, bool wrote);
ShimLibraryUse sparse_index_use(const SparseMatrix *matrix);
SolDtype sparse_dtype(int type);
API int cusparseGetMatIndexBase(const void *kind); // of the older interface's descriptions

#endif
