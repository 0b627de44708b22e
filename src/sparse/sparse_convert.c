// Dense matrices made sparse, and sparse ones dense.
#include "sparse/sparse.h"

// ---- a matrix's arrays ----

static int set_pointers(SparseMatrix *m, void *starts, void *indices, void *values) {
  if (!m) return SPARSE_BAD_VALUE;
  m->starts = starts, m->indices = indices, m->values = values;
  return SPARSE_OK;
}
API int cusparseCsrSetPointers(SparseMatrix *m, void *offsets, void *columns, void *values) {
  return set_pointers(m, offsets, columns, values);
}
API int cusparseCscSetPointers(SparseMatrix *m, void *offsets, void *rows, void *values) {
  return set_pointers(m, offsets, rows, values);
}
API int cusparseCooSetPointers(SparseMatrix *m, void *rows, void *columns, void *values) {
  return set_pointers(m, rows, columns, values);
}
API int cusparseSpMatSetValues(SparseMatrix *m, void *values) {
  if (!m) return SPARSE_BAD_VALUE;
  m->values = values;
  return SPARSE_OK;
}
API int cusparseSpMatGetValues(const SparseMatrix *m, const void **values) {
  if (!m || !values) return SPARSE_BAD_VALUE;
  *values = m->values;
  return SPARSE_OK;
}

// ---- conversions ----

typedef struct Conversion {
  const char *name;
  SparseMatrix *out; // counted into; NULL: `sparse` has its size already
  SparseMatrix sparse;
  SparseDense dense;
} Conversion;

static void add_cost(const Conversion *k, bool to_sparse, ShimLibraryCost *cost) {
  double sparse = sparse_bytes(&k->sparse), dense = sparse_dense_bytes(&k->dense);
  cost->read = to_sparse ? dense : sparse;
  cost->written = to_sparse ? sparse : dense;
  cost->dtype = sparse_dtype(k->dense.matrix.type);
  cost->uses[0] =
      (ShimLibraryUse){k->sparse.values, (size_t)k->sparse.count * blas_bytes(k->sparse.type), to_sparse};
  cost->uses[1] = sparse_use(&k->dense, !to_sparse);
}

typedef struct Spread {
  const SparseView *sparse;
  const BlasView *dense;
} Spread;
static bool spread(void *ctx, int64_t row, int64_t column, int64_t at) {
  const Spread *s = ctx;
  blas_put(s->dense, row, column, blas_get(&s->sparse->values, at, 0));
  return true;
}

static bool make_dense(void *arguments, ShimLibraryCost *cost) {
  const Conversion *k = arguments;
  SparseView from;
  BlasView to;
  if (!sparse_view(k->name, &k->sparse, &from) || !sparse_dense_view(k->name, &k->dense, &to)) return false;
  for (int64_t i = 0; i < k->sparse.rows; i++)
    for (int64_t j = 0; j < k->sparse.columns; j++) blas_put(&to, i, j, 0);
  add_cost(k, false, cost);
  return sparse_visit(&k->sparse, &from, spread, &(Spread){&from, &to});
}

static bool count(void *arguments, ShimLibraryCost *cost) {
  const Conversion *k = arguments;
  BlasView from;
  if (!sparse_dense_view(k->name, &k->dense, &from)) return false;
  k->out->count = 0;
  for (int64_t i = 0; i < k->sparse.rows; i++)
    for (int64_t j = 0; j < k->sparse.columns; j++) k->out->count += blas_get(&from, i, j) != 0;
  cost->read = sparse_dense_bytes(&k->dense);
  cost->dtype = sparse_dtype(k->dense.matrix.type);
  cost->uses[0] = sparse_use(&k->dense, false);
  return true;
}

static bool make_sparse(void *arguments, ShimLibraryCost *cost) {
  const Conversion *k = arguments;
  const SparseMatrix *m = &k->sparse;
  SparseView to;
  BlasView from;
  if (!sparse_view(k->name, m, &to) || !sparse_dense_view(k->name, &k->dense, &from)) return false;
  bool by_column = m->format == SPARSE_BY_COLUMN, pairs = m->format == SPARSE_BY_PAIR;
  int64_t lines = by_column ? m->columns : m->rows, width = by_column ? m->rows : m->columns, at = 0;
  for (int64_t line = 0; line < lines; line++) {
    if (!pairs) sparse_set_index(&to.starts, line, at);
    for (int64_t other = 0; other < width; other++) {
      BlasNumber x = by_column ? blas_get(&from, other, line) : blas_get(&from, line, other);
      if (x == 0) continue;
      if (at == m->count) return false; // it has changed since it was counted
      if (pairs) sparse_set_index(&to.starts, at, line);
      sparse_set_index(&to.indices, at, other);
      blas_put(&to.values, at++, 0, x);
    }
  }
  if (!pairs) sparse_set_index(&to.starts, lines, at);
  add_cost(k, true, cost);
  return at == m->count;
}

static int convert(const SparseHandle *h, const char *name, SparseMatrix *m, const SparseDense *d,
                   ShimLibraryWork *work) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!m || !d || m->rows != sparse_rows(d) || m->columns != sparse_columns(d)) return SPARSE_BAD_VALUE;
  Conversion k = {name, m, *m, *d};
  return sparse_call(name, h, work, &k, sizeof k);
}

API int cusparseSparseToDense_bufferSize(const SparseHandle *h, const void *a, const void *b, int algorithm,
                                         size_t *bytes) {
  (void)a, (void)b, (void)algorithm;
  return sparse_no_buffer(h, bytes);
}
API int cusparseSparseToDense(const SparseHandle *h, SparseMatrix *a, const SparseDense *b, int algorithm,
                              void *buffer) {
  (void)algorithm, (void)buffer;
  return convert(h, "cusparseSparseToDense", a, b, make_dense);
}
API int cusparseDenseToSparse_bufferSize(const SparseHandle *h, const void *a, const void *b, int algorithm,
                                         size_t *bytes) {
  (void)a, (void)b, (void)algorithm;
  return sparse_no_buffer(h, bytes);
}
API int cusparseDenseToSparse_analysis(const SparseHandle *h, const SparseDense *a, SparseMatrix *b,
                                       int algorithm, void *buffer) {
  (void)algorithm, (void)buffer;
  return convert(h, "cusparseDenseToSparse_analysis", b, a, count);
}
API int cusparseDenseToSparse_convert(const SparseHandle *h, const SparseDense *a, SparseMatrix *b,
                                      int algorithm, void *buffer) {
  (void)algorithm, (void)buffer;
  return convert(h, "cusparseDenseToSparse_convert", b, a, make_sparse);
}
