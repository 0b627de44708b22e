// Products of a sparse and a dense matrix: element by element of the sparse one, summed in double and rounded once.
#include <stdlib.h>

#include "sparse/sparse.h"

static size_t index_bytes(int type) {
  return type == 1 ? 2 : type == 2 ? 4 : type == 3 ? 8 : 0;
}

typedef struct Indices {
  const unsigned char *at;
  int type, base;
} Indices;

static int64_t index_at(const Indices *x, int64_t i) {
  switch (x->type) {
  case 1: return ((const uint16_t *)(const void *)x->at)[i] - x->base;
  case 2: return ((const int32_t *)(const void *)x->at)[i] - x->base;
  default: return ((const int64_t *)(const void *)x->at)[i] - x->base;
  }
}

typedef struct Found { // where the host finds a product's arrays
  Indices starts, indices;
  BlasView values, b, c; // b: op(B)
} Found;

static int64_t start_count(const SparseMatrix *a) {
  return a->format == SPARSE_BY_ROW ? a->rows + 1 : a->format == SPARSE_BY_COLUMN ? a->columns + 1 : a->count;
}

static bool find_indices(const char *name, const void *at, int64_t count, int type, int base, Indices *out) {
  *out = (Indices){.type = type, .base = base};
  if (!index_bytes(type)) return false;
  out->at =
      count ? __cudaSolLibraryMemory(name, at, (size_t)count * index_bytes(type)) : (const unsigned char *)"";
  return out->at != NULL;
}

static int64_t span_of(const BlasOperand *o) {
  if (!o->rows || !o->columns) return 0;
  return o->step ? o->rows : o->lead * (o->columns - 1) + o->rows;
}

static bool find_dense(const char *name, const SparseDense *d, BlasView *v) {
  const BlasOperand *o = &d->matrix;
  *v = (BlasView){.type = o->type, .down = 1, .right = o->lead};
  int64_t span = span_of(o);
  if (span && !(v->at = __cudaSolLibraryMemory(name, o->at, (size_t)span * blas_bytes(o->type))))
    return false;
  if (d->by_rows) *v = blas_op(*v, 1);
  return true;
}

static bool find(const SparseProduct *p, Found *f) {
  const SparseMatrix *a = &p->a;
  f->values = (BlasView){.type = a->type, .down = 1};
  if (!find_indices(p->name, a->starts, start_count(a), a->start_type, a->base, &f->starts)) return false;
  if (!find_indices(p->name, a->indices, a->count, a->index_type, a->base, &f->indices)) return false;
  if (a->count &&
      !(f->values.at = __cudaSolLibraryMemory(p->name, a->values, (size_t)a->count * blas_bytes(a->type))))
    return false;
  if (!find_dense(p->name, &p->b, &f->b)) return false;
  f->b = blas_op(f->b, p->trans_b);
  return find_dense(p->name, &p->c, &f->c);
}

typedef struct Sums { // of C's rows by columns, in double
  BlasNumber *of;
  int64_t rows, columns;
} Sums;

// False: an index is outside the matrix.
static bool add_element(const SparseProduct *p, const Found *f, Sums *s, int64_t row, int64_t column,
                        int64_t at) {
  if (row < 0 || row >= p->a.rows || column < 0 || column >= p->a.columns) return false;
  BlasNumber x = blas_get(&f->values, at, 0);
  int64_t i = p->trans_a ? column : row, k = p->trans_a ? row : column;
  if (p->trans_a == 2) x = conj(x);
  for (int64_t j = 0; j < s->columns; j++) s->of[i * s->columns + j] += x * blas_get(&f->b, k, j);
  return true;
}

static bool add_all(const SparseProduct *p, const Found *f, Sums *s) {
  const SparseMatrix *a = &p->a;
  if (a->format == SPARSE_BY_PAIR) {
    for (int64_t at = 0; at < a->count; at++)
      if (!add_element(p, f, s, index_at(&f->starts, at), index_at(&f->indices, at), at)) return false;
    return true;
  }
  bool rows = a->format == SPARSE_BY_ROW;
  for (int64_t line = 0; line < (rows ? a->rows : a->columns); line++)
    for (int64_t at = index_at(&f->starts, line); at < index_at(&f->starts, line + 1); at++) {
      if (at < 0 || at >= a->count) return false;
      int64_t other = index_at(&f->indices, at);
      if (!add_element(p, f, s, rows ? line : other, rows ? other : line, at)) return false;
    }
  return true;
}

static void store(const SparseProduct *p, const Found *f, const Sums *s) {
  for (int64_t i = 0; i < s->rows; i++)
    for (int64_t j = 0; j < s->columns; j++) {
      BlasNumber old = p->beta.value == 0 ? 0 : p->beta.value * blas_get(&f->c, i, j);
      blas_put(&f->c, i, j, p->alpha.value * s->of[i * s->columns + j] + old);
    }
}

static double dense_bytes(const SparseDense *d) {
  return (double)d->matrix.rows * (double)d->matrix.columns * (double)blas_bytes(d->matrix.type);
}

static void add_cost(const SparseProduct *p, const Sums *s, ShimLibraryCost *cost) {
  const SparseMatrix *a = &p->a;
  double values = (double)a->count * (double)blas_bytes(a->type), c = dense_bytes(&p->c);
  cost->read = values + (double)a->count * (double)index_bytes(a->index_type) +
               (double)start_count(a) * (double)index_bytes(a->start_type) + dense_bytes(&p->b) +
               (p->beta.value == 0 ? 0 : c);
  cost->written = c;
  cost->flops = 2 * (double)a->count * (double)s->columns * (blas_is_complex(a->type) ? 4 : 1);
  cost->dtype = a->type == BLAS_R64F || a->type == BLAS_C64F ? SOL_FP64 : SOL_FP32;
  cost->uses[0] = (ShimLibraryUse){a->values, (size_t)values, false};
  cost->uses[1] = (ShimLibraryUse){a->indices, (size_t)a->count * index_bytes(a->index_type), false};
  cost->uses[2] =
      (ShimLibraryUse){p->b.matrix.at, (size_t)span_of(&p->b.matrix) * blas_bytes(p->b.matrix.type), false};
  cost->uses[3] =
      (ShimLibraryUse){p->c.matrix.at, (size_t)span_of(&p->c.matrix) * blas_bytes(p->c.matrix.type), true};
}

static bool take_scalar(const char *name, BlasScalar *s) {
  if (!s->device) return true;
  void *at = __cudaSolLibraryMemory(name, s->device, blas_bytes(s->type));
  if (at) s->value = blas_get(&(BlasView){.at = at, .type = s->type}, 0, 0);
  return at != NULL;
}

static int64_t rows_of(const SparseDense *d) {
  return d->by_rows ? d->matrix.columns : d->matrix.rows;
}
static int64_t columns_of(const SparseDense *d) {
  return d->by_rows ? d->matrix.rows : d->matrix.columns;
}

static bool work(void *arguments, ShimLibraryCost *cost) {
  SparseProduct p = *(SparseProduct *)arguments;
  Found f;
  if (!take_scalar(p.name, &p.alpha) || !take_scalar(p.name, &p.beta) || !find(&p, &f)) return false;
  Sums s = {.rows = rows_of(&p.c), .columns = columns_of(&p.c)};
  s.of = calloc((size_t)(s.rows * s.columns) + 1, sizeof *s.of);
  bool done = s.of && add_all(&p, &f, &s);
  if (done) store(&p, &f, &s);
  if (done) add_cost(&p, &s, cost);
  free(s.of);
  return done;
}

static bool sizes_agree(const SparseProduct *p) {
  int64_t rows = p->trans_a ? p->a.columns : p->a.rows, inner = p->trans_a ? p->a.rows : p->a.columns;
  int64_t b_rows = p->trans_b ? columns_of(&p->b) : rows_of(&p->b),
          b_columns = p->trans_b ? rows_of(&p->b) : columns_of(&p->b);
  return rows == rows_of(&p->c) && inner == b_rows && b_columns == columns_of(&p->c);
}

int sparse_run(const SparseHandle *h, const SparseProduct *p) {
  if (!sizes_agree(p)) return SPARSE_BAD_VALUE;
  switch (__cudaSolLibraryCall(p->name, h->blas.stream, work, p, sizeof *p)) {
  case SHIM_LIBRARY_DONE: return SPARSE_OK;
  case SHIM_LIBRARY_NO_MEMORY: return SPARSE_NO_ROOM;
  default: return SPARSE_FAILED;
  }
}
