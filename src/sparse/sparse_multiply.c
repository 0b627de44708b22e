// Products of two sparse matrices (SpGEMM) of CSR, row by row; computed in double and rounded once. The result waits in the
// descriptor until the program has allocated room for it.
#include <stdlib.h>
#include <string.h>

#include "sparse/sparse.h"

typedef struct Result {
  int64_t rows, count, cap;
  int64_t *starts, *columns;
  BlasNumber *values;
} Result;

typedef struct Multiplication {
  const char *name;
  SparseMatrix a, b, c;
  SparseMatrix *out; // whose size becomes known
  BlasScalar alpha, beta;
  Result *result;
} Multiplication;

static void clear(Result *r) {
  free(r->starts);
  free(r->columns);
  free(r->values);
  *r = (Result){0};
}

static bool grow(Result *r) {
  if (r->count < r->cap) return true;
  int64_t cap = r->cap ? r->cap * 2 : 1024;
  int64_t *columns = realloc(r->columns, (size_t)cap * sizeof *columns);
  if (columns) r->columns = columns;
  BlasNumber *values = realloc(r->values, (size_t)cap * sizeof *values);
  if (values) r->values = values;
  if (columns && values) r->cap = cap;
  return columns && values;
}

typedef struct Row { // of the result, over all columns
  BlasNumber *sums;
  bool *there;
} Row;

static bool in_range(int64_t i, int64_t end) {
  return i >= 0 && i < end;
}

static bool add_row(const Multiplication *m, const SparseView *a, const SparseView *b, int64_t i, Row *row) {
  for (int64_t p = sparse_index(&a->starts, i); p < sparse_index(&a->starts, i + 1); p++) {
    if (!in_range(p, m->a.count)) return false;
    int64_t k = sparse_index(&a->indices, p);
    if (!in_range(k, m->b.rows)) return false;
    BlasNumber x = blas_get(&a->values, p, 0);
    for (int64_t q = sparse_index(&b->starts, k); q < sparse_index(&b->starts, k + 1); q++) {
      if (!in_range(q, m->b.count)) return false;
      int64_t j = sparse_index(&b->indices, q);
      if (!in_range(j, m->b.columns)) return false;
      row->sums[j] += x * blas_get(&b->values, q, 0);
      row->there[j] = true;
    }
  }
  return true;
}

static bool take_row(const Multiplication *m, int64_t i, Row *row) {
  Result *r = m->result;
  for (int64_t j = 0; j < m->b.columns; j++) {
    if (!row->there[j]) continue;
    if (!grow(r)) return false;
    r->columns[r->count] = j;
    r->values[r->count++] = m->alpha.value * row->sums[j];
    row->sums[j] = 0;
    row->there[j] = false;
  }
  r->starts[i + 1] = r->count;
  return true;
}

static bool compute(void *arguments, ShimLibraryCost *cost) {
  Multiplication m = *(Multiplication *)arguments;
  SparseView a, b;
  if (!sparse_take_scalar(m.name, &m.alpha) || !sparse_take_scalar(m.name, &m.beta) || m.beta.value != 0)
    return false;
  if (!sparse_view(m.name, &m.a, &a) || !sparse_view(m.name, &m.b, &b)) return false;
  size_t columns = (size_t)m.b.columns + 1;
  Row row = {calloc(columns, sizeof *row.sums), calloc(columns, sizeof *row.there)};
  clear(m.result);
  m.result->rows = m.a.rows;
  m.result->starts = calloc((size_t)m.a.rows + 1, sizeof *m.result->starts);
  bool done = row.sums && row.there && m.result->starts;
  for (int64_t i = 0; done && i < m.a.rows; i++) done = add_row(&m, &a, &b, i, &row) && take_row(&m, i, &row);
  free(row.sums);
  free(row.there);
  if (done) m.out->count = m.result->count;
  cost->read = sparse_bytes(&m.a) + sparse_bytes(&m.b);
  cost->dtype = sparse_dtype(m.a.type);
  return done;
}

static bool copy(void *arguments, ShimLibraryCost *cost) {
  const Multiplication *m = arguments;
  const Result *r = m->result;
  SparseView c;
  if (!r->starts || m->c.count != r->count || m->c.rows != r->rows || !sparse_view(m->name, &m->c, &c))
    return false;
  for (int64_t i = 0; i <= r->rows; i++) sparse_set_index(&c.starts, i, r->starts[i]);
  for (int64_t at = 0; at < r->count; at++) {
    sparse_set_index(&c.indices, at, r->columns[at]);
    blas_put(&c.values, at, 0, r->values[at]);
  }
  cost->written = sparse_bytes(&m->c);
  cost->dtype = sparse_dtype(m->c.type);
  return true;
}

static int multiply(const SparseHandle *h, Multiplication m, const void *alpha, const SparseMatrix *a,
                    const SparseMatrix *b, const void *beta, SparseMatrix *c, int type,
                    ShimLibraryWork *work) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!alpha || !beta || !a || !b || !c || !m.result) return SPARSE_BAD_VALUE;
  if (a->columns != b->rows || c->rows != a->rows || c->columns != b->columns) return SPARSE_BAD_VALUE;
  bool by_rows = a->format == SPARSE_BY_ROW && b->format == SPARSE_BY_ROW && c->format == SPARSE_BY_ROW;
  if (!by_rows || !blas_bytes(type)) return SPARSE_NOT_SUPPORTED;
  m.a = *a, m.b = *b, m.c = *c, m.out = c;
  m.alpha = blas_scalar(&h->blas, alpha, type);
  m.beta = blas_scalar(&h->blas, beta, type);
  return sparse_call(m.name, h, work, &m, sizeof m);
}

// ---- entry points: the descriptor is the result ----

API int cusparseSpGEMM_createDescr(void **out) {
  return sparse_keep(calloc(1, sizeof(Result)), out);
}
API int cusparseSpGEMM_destroyDescr(Result *r) {
  if (r) clear(r);
  free(r);
  return SPARSE_OK;
}
API int cusparseSpGEMM_workEstimation(const SparseHandle *h, int trans_a, int trans_b, const void *alpha,
                                      const void *a, const void *b, const void *beta, const void *c, int type,
                                      int algorithm, Result *r, size_t *bytes, void *buffer) {
  (void)trans_a, (void)trans_b, (void)alpha, (void)a, (void)b, (void)beta, (void)c, (void)type,
      (void)algorithm, (void)r, (void)buffer;
  return sparse_no_buffer(h, bytes);
}
API int cusparseSpGEMM_compute(const SparseHandle *h, int trans_a, int trans_b, const void *alpha,
                               const SparseMatrix *a, const SparseMatrix *b, const void *beta,
                               SparseMatrix *c, int type, int algorithm, Result *r, size_t *bytes,
                               void *buffer) {
  (void)algorithm;
  if (trans_a || trans_b) return SPARSE_NOT_SUPPORTED;
  if (!buffer) return sparse_no_buffer(h, bytes);
  return multiply(h, (Multiplication){.name = "cusparseSpGEMM_compute", .result = r}, alpha, a, b, beta, c,
                  type, compute);
}
API int cusparseSpGEMM_copy(const SparseHandle *h, int trans_a, int trans_b, const void *alpha,
                            const SparseMatrix *a, const SparseMatrix *b, const void *beta, SparseMatrix *c,
                            int type, int algorithm, Result *r) {
  (void)algorithm, (void)trans_a, (void)trans_b;
  return multiply(h, (Multiplication){.name = "cusparseSpGEMM_copy", .result = r}, alpha, a, b, beta, c, type,
                  copy);
}
