// A stand-in for cuSPARSE's generic interface, computed on the host: handles, descriptors, SpMV and SpMM of CSR, CSC and
// COO matrices. NVIDIA's headers are not needed: descriptors are pointers, enums are ints.
#include "sparse/sparse.h"

#include <stdlib.h>

enum { VERSION = 12600 };
#define MARK UINT64_C(0x534f4c5350415231)

bool sparse_is_handle(const SparseHandle *h) {
  return h && h->mark == MARK;
}

// ---- handles ----

API int cusparseCreate(SparseHandle **out) {
  if (!out) return SPARSE_BAD_VALUE;
  *out = calloc(1, sizeof **out);
  if (!*out) return SPARSE_NO_ROOM;
  (*out)->mark = MARK;
  return SPARSE_OK;
}
API int cusparseDestroy(SparseHandle *h) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  h->mark = 0;
  free(h);
  return SPARSE_OK;
}
API int cusparseSetStream(SparseHandle *h, void *stream) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  h->blas.stream = stream;
  return SPARSE_OK;
}
API int cusparseGetStream(const SparseHandle *h, void **stream) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!stream) return SPARSE_BAD_VALUE;
  *stream = h->blas.stream;
  return SPARSE_OK;
}
API int cusparseSetPointerMode(SparseHandle *h, int mode) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  h->blas.pointers = mode;
  return SPARSE_OK;
}
API int cusparseGetPointerMode(const SparseHandle *h, int *mode) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!mode) return SPARSE_BAD_VALUE;
  *mode = h->blas.pointers;
  return SPARSE_OK;
}
API int cusparseGetVersion(const SparseHandle *h, int *version) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!version) return SPARSE_BAD_VALUE;
  *version = VERSION;
  return SPARSE_OK;
}

static const char *status_name(int status) {
  static const char *const names[] = {"CUSPARSE_STATUS_SUCCESS",
                                      "CUSPARSE_STATUS_NOT_INITIALIZED",
                                      "CUSPARSE_STATUS_ALLOC_FAILED",
                                      "CUSPARSE_STATUS_INVALID_VALUE",
                                      "CUSPARSE_STATUS_ARCH_MISMATCH",
                                      "CUSPARSE_STATUS_MAPPING_ERROR",
                                      "CUSPARSE_STATUS_EXECUTION_FAILED",
                                      "CUSPARSE_STATUS_INTERNAL_ERROR",
                                      "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
                                      "CUSPARSE_STATUS_ZERO_PIVOT",
                                      "CUSPARSE_STATUS_NOT_SUPPORTED"};
  return status >= 0 && status < (int)SOL_COUNT(names) ? names[status] : "unknown cuSPARSE status";
}
API const char *cusparseGetErrorName(int status) {
  return status_name(status);
}
API const char *cusparseGetErrorString(int status) {
  return status_name(status);
}

// ---- descriptors ----

int sparse_keep(void *descriptor, void **out) {
  if (!out || !descriptor) return free(descriptor), out ? SPARSE_NO_ROOM : SPARSE_BAD_VALUE;
  *out = descriptor;
  return SPARSE_OK;
}

static int dense(void **out, BlasOperand matrix, bool by_rows) {
  if (matrix.rows < 0 || matrix.columns < 0 || !blas_bytes(matrix.type)) return SPARSE_BAD_VALUE;
  SparseDense *d = malloc(sizeof *d);
  if (d) *d = (SparseDense){matrix, by_rows};
  return sparse_keep(d, out);
}

API int cusparseCreateDnVec(void **out, int64_t size, void *values, int type) {
  return dense(out, blas_vector(values, type, size, 1), false);
}
API int cusparseCreateConstDnVec(void **out, int64_t size, void *values, int type) {
  return dense(out, blas_vector(values, type, size, 1), false);
}
API int cusparseDnVecSetValues(SparseDense *d, void *values) {
  if (!d) return SPARSE_BAD_VALUE;
  d->matrix.at = values;
  return SPARSE_OK;
}
API int cusparseDestroyDnVec(SparseDense *d) {
  free(d);
  return SPARSE_OK;
}
enum { BY_ROWS = 2 }; // CUSPARSE_ORDER_ROW

static int dense_matrix(void **out, int64_t rows, int64_t columns, int64_t lead, const void *values, int type,
                        int order) {
  bool by_rows = order == BY_ROWS;
  return dense(out, blas_matrix(values, type, by_rows ? columns : rows, by_rows ? rows : columns, lead),
               by_rows);
}
API int cusparseCreateDnMat(void **out, int64_t rows, int64_t columns, int64_t lead, void *values, int type,
                            int order) {
  return dense_matrix(out, rows, columns, lead, values, type, order);
}
API int cusparseCreateConstDnMat(void **out, int64_t rows, int64_t columns, int64_t lead, const void *values,
                                 int type, int order) {
  return dense_matrix(out, rows, columns, lead, values, type, order);
}
API int cusparseDestroyDnMat(SparseDense *d) {
  free(d);
  return SPARSE_OK;
}

static int sparse(void **out, SparseMatrix matrix) {
  bool bad = matrix.rows < 0 || matrix.columns < 0 || matrix.count < 0 || matrix.base < 0 || matrix.base > 1;
  if (bad || !blas_bytes(matrix.type)) return SPARSE_BAD_VALUE;
  SparseMatrix *m = malloc(sizeof *m);
  if (m) *m = matrix;
  return sparse_keep(m, out);
}

API int cusparseCreateCsr(void **out, int64_t rows, int64_t columns, int64_t count, void *offsets,
                          void *indices, void *values, int offset_type, int index_type, int base, int type) {
  return sparse(out, (SparseMatrix){SPARSE_BY_ROW, rows, columns, count, offsets, indices, values,
                                    offset_type, index_type, base, type, 0, 0});
}
API int cusparseCreateConstCsr(void **out, int64_t rows, int64_t columns, int64_t count, void *offsets,
                               void *indices, void *values, int offset_type, int index_type, int base,
                               int type) {
  return sparse(out, (SparseMatrix){SPARSE_BY_ROW, rows, columns, count, offsets, indices, values,
                                    offset_type, index_type, base, type, 0, 0});
}
API int cusparseCreateCsc(void **out, int64_t rows, int64_t columns, int64_t count, void *offsets,
                          void *indices, void *values, int offset_type, int index_type, int base, int type) {
  return sparse(out, (SparseMatrix){SPARSE_BY_COLUMN, rows, columns, count, offsets, indices, values,
                                    offset_type, index_type, base, type, 0, 0});
}
API int cusparseCreateCoo(void **out, int64_t rows, int64_t columns, int64_t count, void *row_indices,
                          void *indices, void *values, int index_type, int base, int type) {
  return sparse(out, (SparseMatrix){SPARSE_BY_PAIR, rows, columns, count, row_indices, indices, values,
                                    index_type, index_type, base, type, 0, 0});
}
API int cusparseDestroySpMat(SparseMatrix *m) {
  free(m);
  return SPARSE_OK;
}
API int cusparseSpMatGetSize(const SparseMatrix *m, int64_t *rows, int64_t *columns, int64_t *count) {
  if (!m || !rows || !columns || !count) return SPARSE_BAD_VALUE;
  *rows = m->rows, *columns = m->columns, *count = m->count;
  return SPARSE_OK;
}

// Of the older interface, whose matrices these describe: kept, and given back.
typedef struct SparseKind {
  int values[4];
} SparseKind;
API int cusparseCreateMatDescr(void **out) {
  return sparse_keep(calloc(1, sizeof(SparseKind)), out);
}
API int cusparseDestroyMatDescr(SparseKind *k) {
  free(k);
  return SPARSE_OK;
}
#define SETTING(name, place)                                                                                 \
  API int cusparseSetMat##name(SparseKind *k, int value) {                                                   \
    if (!k) return SPARSE_BAD_VALUE;                                                                         \
    k->values[place] = value;                                                                                \
    return SPARSE_OK;                                                                                        \
  }                                                                                                          \
  API int cusparseGetMat##name(const void *kind) {                                                           \
    const SparseKind *k = kind;                                                                              \
    return k ? k->values[place] : 0;                                                                         \
  }
SETTING(Type, 0)
SETTING(FillMode, 1)
SETTING(DiagType, 2)
SETTING(IndexBase, 3)

// ---- products ----

static int product(const SparseHandle *h, SparseProduct p, const void *alpha, const SparseMatrix *a,
                   const SparseDense *b, const void *beta, const SparseDense *c, int type) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!alpha || !beta || !a || !b || !c || blas_bad_trans(p.trans_a) || blas_bad_trans(p.trans_b))
    return SPARSE_BAD_VALUE;
  if (!blas_bytes(type)) return SPARSE_NOT_SUPPORTED;
  p.a = *a, p.b = *b, p.c = *c;
  p.alpha = blas_scalar(&h->blas, alpha, type == BLAS_R16F || type == BLAS_R16BF ? BLAS_R32F : type);
  p.beta = blas_scalar(&h->blas, beta, p.alpha.type);
  return sparse_run(h, &p);
}

API int cusparseSpMV(const SparseHandle *h, int trans, const void *alpha, const SparseMatrix *a,
                     const SparseDense *x, const void *beta, const SparseDense *y, int type, int algorithm,
                     void *buffer) {
  (void)algorithm, (void)buffer;
  return product(h, (SparseProduct){.name = "cusparseSpMV", .trans_a = trans}, alpha, a, x, beta, y, type);
}
API int cusparseSpMM(const SparseHandle *h, int trans_a, int trans_b, const void *alpha,
                     const SparseMatrix *a, const SparseDense *b, const void *beta, const SparseDense *c,
                     int type, int algorithm, void *buffer) {
  (void)algorithm, (void)buffer;
  return product(h, (SparseProduct){.name = "cusparseSpMM", .trans_a = trans_a, .trans_b = trans_b}, alpha, a,
                 b, beta, c, type);
}

// No buffer is needed; a small one keeps programs that allocate it as they are.
int sparse_no_buffer(const SparseHandle *h, size_t *bytes) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!bytes) return SPARSE_BAD_VALUE;
  *bytes = 16;
  return SPARSE_OK;
}
API int cusparseSpMV_bufferSize(const SparseHandle *h, int trans, const void *alpha, const void *a,
                                const void *x, const void *beta, const void *y, int type, int algorithm,
                                size_t *bytes) {
  (void)trans, (void)alpha, (void)a, (void)x, (void)beta, (void)y, (void)type, (void)algorithm;
  return sparse_no_buffer(h, bytes);
}
API int cusparseSpMM_bufferSize(const SparseHandle *h, int trans_a, int trans_b, const void *alpha,
                                const void *a, const void *b, const void *beta, const void *c, int type,
                                int algorithm, size_t *bytes) {
  (void)trans_a, (void)trans_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)type,
      (void)algorithm;
  return sparse_no_buffer(h, bytes);
}
API int cusparseSpMV_preprocess(const SparseHandle *h) {
  return sparse_is_handle(h) ? SPARSE_OK : SPARSE_NO_HANDLE;
}
API int cusparseSpMM_preprocess(const SparseHandle *h) {
  return sparse_is_handle(h) ? SPARSE_OK : SPARSE_NO_HANDLE;
}

#define MISSING(entry)                                                                                       \
  API int entry(void) {                                                                                      \
    static char warned;                                                                                      \
    __cudaSolLibraryMissing(#entry, &warned);                                                                \
    return SPARSE_NOT_SUPPORTED;                                                                             \
  }
#include "sparse/sparse_missing.def"
