// A CSR matrix in another order: its columns sorted, or by columns (CSC); and how many elements of a dense one are not 0.
#include "sparse/sparse.h"

#include <stdlib.h>

typedef struct Order {
  const char *name;
  SparseMatrix from, to; // to: CSC
  void *permutation;
  bool with_values;
} Order;

// ---- columns sorted ----

typedef struct Place {
  int64_t column;
  int permutation;
} Place;

static int by_column(const void *a, const void *b) {
  const Place *p = a, *q = b;
  return (p->column > q->column) - (p->column < q->column);
}

static void sort_row(const SparseView *v, int *permutation, int64_t from, int64_t to, Place *row) {
  for (int64_t i = from; i < to; i++) row[i - from] = (Place){sparse_index(&v->indices, i), permutation[i]};
  qsort(row, (size_t)(to - from), sizeof *row, by_column);
  for (int64_t i = from; i < to; i++) {
    sparse_set_index(&v->indices, i, row[i - from].column);
    permutation[i] = row[i - from].permutation;
  }
}

static bool sort_rows(void *arguments, ShimLibraryCost *cost) {
  const Order *o = arguments;
  const SparseMatrix *m = &o->from;
  SparseView v;
  int *permutation = __cudaSolLibraryMemory(o->name, o->permutation, (size_t)m->count * sizeof *permutation);
  Place *row = malloc(((size_t)m->count + 1) * sizeof *row);
  bool done = row && (permutation || !m->count) && sparse_places(o->name, m, &v);
  for (int64_t i = 0; done && i < m->rows; i++) {
    int64_t from = sparse_index(&v.starts, i), to = sparse_index(&v.starts, i + 1);
    done = from >= 0 && from <= to && to <= m->count;
    if (done) sort_row(&v, permutation, from, to, row);
  }
  free(row);
  cost->read = cost->written = 2 * (double)m->count * sizeof(int);
  cost->dtype = SOL_INT32;
  cost->uses[0] = (ShimLibraryUse){m->indices, (size_t)m->count * sizeof(int), true};
  cost->uses[1] = (ShimLibraryUse){o->permutation, (size_t)m->count * sizeof(int), true};
  return done;
}

static bool count_up(void *arguments, ShimLibraryCost *cost) {
  const Order *o = arguments;
  int *permutation =
      __cudaSolLibraryMemory(o->name, o->permutation, (size_t)o->from.count * sizeof *permutation);
  for (int i = 0; permutation && i < o->from.count; i++) permutation[i] = i;
  cost->written = (double)o->from.count * sizeof *permutation;
  cost->dtype = SOL_INT32;
  cost->uses[0] = (ShimLibraryUse){o->permutation, (size_t)o->from.count * sizeof *permutation, true};
  return permutation || !o->from.count;
}

static SparseMatrix plain(int rows, int columns, int count, const int *starts, const int *indices, int base) {
  return (SparseMatrix){SPARSE_BY_ROW, rows,      columns, count, starts, indices, NULL, 2, 2,
                        base,          BLAS_R32F, 0,       0};
}

API int cusparseCreateIdentityPermutation(const SparseHandle *h, int n, int *permutation) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (n < 0 || (n && !permutation)) return SPARSE_BAD_VALUE;
  Order o = {.name = "cusparseCreateIdentityPermutation", .from = {.count = n}, .permutation = permutation};
  return sparse_call(o.name, h, count_up, &o, sizeof o);
}
API int cusparseXcsrsort_bufferSizeExt(const SparseHandle *h, int rows, int columns, int count,
                                       const int *starts, const int *indices, size_t *bytes) {
  (void)rows, (void)columns, (void)count, (void)starts, (void)indices;
  return sparse_no_buffer(h, bytes);
}
API int cusparseXcsrsort(const SparseHandle *h, int rows, int columns, int count, const void *kind,
                         const int *starts, int *indices, int *permutation, void *buffer) {
  (void)buffer;
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (rows < 0 || columns < 0 || count < 0 || !kind) return SPARSE_BAD_VALUE;
  if (!permutation) return SPARSE_NOT_SUPPORTED;
  Order o = {.name = "cusparseXcsrsort",
             .from = plain(rows, columns, count, starts, indices, cusparseGetMatIndexBase(kind)),
             .permutation = permutation};
  return sparse_call(o.name, h, sort_rows, &o, sizeof o);
}

// ---- CSR to CSC ----

typedef struct Turn {
  const Order *order;
  SparseView *from, *to;
  int64_t visits;
} Turn;

static bool count_column(void *ctx, int64_t row, int64_t column, int64_t at) {
  Turn *t = ctx;
  const SparseIndices *starts = &t->to->starts;
  (void)row, (void)at;
  sparse_set_index(starts, column + 1, sparse_index(starts, column + 1) + 1);
  return ++t->visits <= t->order->to.count; // rows that overlap have more
}

// Starts are where the next element of a column goes, and so end where the next column starts.
static bool put_element(void *ctx, int64_t row, int64_t column, int64_t at) {
  const Turn *t = ctx;
  const SparseIndices *starts = &t->to->starts;
  int64_t place = sparse_index(starts, column);
  sparse_set_index(starts, column, place + 1);
  sparse_set_index(&t->to->indices, place, row);
  if (t->order->with_values) blas_put(&t->to->values, place, 0, blas_get(&t->from->values, at, 0));
  return true;
}

static bool turn(void *arguments, ShimLibraryCost *cost) {
  const Order *o = arguments;
  SparseView from, to;
  bool (*const find)(const char *, const SparseMatrix *, SparseView *) =
      o->with_values ? sparse_view : sparse_places;
  if (!find(o->name, &o->from, &from) || !find(o->name, &o->to, &to)) return false;
  Turn t = {o, &from, &to, 0};
  int64_t columns = o->to.columns;
  for (int64_t j = 0; j <= columns; j++) sparse_set_index(&to.starts, j, 0);
  if (!sparse_visit(&o->from, &from, count_column, &t)) return false;
  for (int64_t j = 0; j < columns; j++)
    sparse_set_index(&to.starts, j + 1, sparse_index(&to.starts, j) + sparse_index(&to.starts, j + 1));
  if (!sparse_visit(&o->from, &from, put_element, &t)) return false;
  for (int64_t j = columns; j > 0; j--) sparse_set_index(&to.starts, j, sparse_index(&to.starts, j - 1));
  sparse_set_index(&to.starts, 0, 0);
  cost->read = sparse_bytes(&o->from), cost->written = sparse_bytes(&o->to);
  cost->dtype = sparse_dtype(o->to.type);
  cost->uses[0] =
      (ShimLibraryUse){o->to.values, (size_t)o->to.count * blas_bytes(o->to.type), o->with_values};
  return true;
}

API int cusparseCsr2cscEx2_bufferSize(const SparseHandle *h, int rows, int columns, int count,
                                      const void *values, const int *starts, const int *indices,
                                      void *to_values, int *to_starts, int *to_indices, int type,
                                      int with_values, int base, int algorithm, size_t *bytes) {
  (void)rows, (void)columns, (void)count, (void)values, (void)starts, (void)indices, (void)to_values,
      (void)to_starts, (void)to_indices, (void)type, (void)with_values, (void)base, (void)algorithm;
  return sparse_no_buffer(h, bytes);
}
API int cusparseCsr2cscEx2(const SparseHandle *h, int rows, int columns, int count, const void *values,
                           const int *starts, const int *indices, void *to_values, int *to_starts,
                           int *to_indices, int type, int with_values, int base, int algorithm,
                           void *buffer) {
  (void)algorithm, (void)buffer;
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (rows < 0 || columns < 0 || count < 0 || base < 0 || base > 1) return SPARSE_BAD_VALUE;
  if (!blas_bytes(type)) return SPARSE_NOT_SUPPORTED;
  Order o = {.name = "cusparseCsr2cscEx2",
             .from = plain(rows, columns, count, starts, indices, base),
             .to = plain(rows, columns, count, to_starts, to_indices, base),
             .with_values = with_values == 1};
  o.to.format = SPARSE_BY_COLUMN;
  o.from.type = o.to.type = type;
  o.from.values = values, o.to.values = to_values;
  return sparse_call(o.name, h, turn, &o, sizeof o);
}

// ---- counts ----

typedef struct Count {
  const char *name;
  SparseDense dense;
  bool by_column;
  void *each, *total;
} Count;

static bool count_each(void *arguments, ShimLibraryCost *cost) {
  const Count *k = arguments;
  int64_t rows = sparse_rows(&k->dense), columns = sparse_columns(&k->dense),
          lines = k->by_column ? columns : rows, all = 0;
  BlasView from;
  int *each = __cudaSolLibraryMemory(k->name, k->each, (size_t)lines * sizeof *each),
      *total = __cudaSolLibraryEither(k->total, sizeof *total);
  if (!each || !total || !sparse_dense_view(k->name, &k->dense, &from)) return false;
  for (int64_t i = 0; i < lines; i++) {
    each[i] = 0;
    for (int64_t j = 0; j < (k->by_column ? rows : columns); j++)
      each[i] += (k->by_column ? blas_get(&from, j, i) : blas_get(&from, i, j)) != 0;
    all += each[i];
  }
  *total = (int)all;
  cost->read = sparse_dense_bytes(&k->dense), cost->written = (double)lines * sizeof *each;
  cost->dtype = sparse_dtype(k->dense.matrix.type);
  cost->uses[0] = sparse_use(&k->dense, false);
  return true;
}

static int count(const SparseHandle *h, const char *name, int direction, int rows, int columns,
                 const void *kind, const void *at, int lead, int type, int *each, int *total) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (rows < 0 || columns < 0 || lead < rows || !kind || !total || direction < 0 || direction > 1)
    return SPARSE_BAD_VALUE;
  Count k = {name, {blas_matrix(at, type, rows, columns, lead), false}, direction == 1, each, total};
  return sparse_call(name, h, count_each, &k, sizeof k);
}
#define COUNT(letter, type)                                                                                  \
  API int cusparse##letter##nnz(const SparseHandle *h, int direction, int rows, int columns,                 \
                                const void *kind, const void *at, int lead, int *each, int *total) {         \
    return count(h, "cusparse" #letter "nnz", direction, rows, columns, kind, at, lead, type, each, total);  \
  }
COUNT(S, BLAS_R32F)
COUNT(D, BLAS_R64F)
COUNT(C, BLAS_C32F)
COUNT(Z, BLAS_C64F)
