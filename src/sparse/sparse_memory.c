// Sparse and dense matrices in the emulated device's memory, and what moving them costs.
#include "sparse/sparse.h"

size_t sparse_index_bytes(int type) {
  return type == 1 ? 2 : type == 2 ? 4 : type == 3 ? 8 : 0;
}

int64_t sparse_index(const SparseIndices *x, int64_t i) {
  switch (x->type) {
  case 1: return ((const uint16_t *)(const void *)x->at)[i] - x->base;
  case 2: return ((const int32_t *)(const void *)x->at)[i] - x->base;
  default: return ((const int64_t *)(const void *)x->at)[i] - x->base;
  }
}

void sparse_set_index(const SparseIndices *x, int64_t i, int64_t value) {
  switch (x->type) {
  case 1: ((uint16_t *)(void *)x->at)[i] = (uint16_t)(value + x->base); break;
  case 2: ((int32_t *)(void *)x->at)[i] = (int32_t)(value + x->base); break;
  default: ((int64_t *)(void *)x->at)[i] = value + x->base;
  }
}

static int64_t start_count(const SparseMatrix *a) {
  return a->format == SPARSE_BY_ROW ? a->rows + 1 : a->format == SPARSE_BY_COLUMN ? a->columns + 1 : a->count;
}

bool sparse_find_indices(const char *name, const void *at, int64_t count, int type, int base,
                         SparseIndices *out) {
  static unsigned char none[8];
  *out = (SparseIndices){.type = type, .base = base};
  if (!sparse_index_bytes(type)) return false;
  out->at = count ? __cudaSolLibraryMemory(name, at, (size_t)count * sparse_index_bytes(type)) : none;
  return out->at != NULL;
}

bool sparse_places(const char *name, const SparseMatrix *m, SparseView *v) {
  v->values = (BlasView){.type = m->type, .down = 1};
  return sparse_find_indices(name, m->starts, start_count(m), m->start_type, m->base, &v->starts) &&
         sparse_find_indices(name, m->indices, m->count, m->index_type, m->base, &v->indices);
}

bool sparse_view(const char *name, const SparseMatrix *m, SparseView *v) {
  if (!sparse_places(name, m, v)) return false;
  if (!m->count) return true;
  v->values.at = __cudaSolLibraryMemory(name, m->values, (size_t)m->count * blas_bytes(m->type));
  return v->values.at != NULL;
}

static int64_t span_of(const BlasOperand *o) {
  if (!o->rows || !o->columns) return 0;
  return o->step ? o->rows : o->lead * (o->columns - 1) + o->rows;
}

bool sparse_dense_view(const char *name, const SparseDense *d, BlasView *v) {
  const BlasOperand *o = &d->matrix;
  *v = (BlasView){.type = o->type, .down = 1, .right = o->lead};
  int64_t span = span_of(o);
  if (span && !(v->at = __cudaSolLibraryMemory(name, o->at, (size_t)span * blas_bytes(o->type))))
    return false;
  if (d->by_rows) *v = blas_op(*v, 1);
  return true;
}

int64_t sparse_rows(const SparseDense *d) {
  return d->by_rows ? d->matrix.columns : d->matrix.rows;
}
int64_t sparse_columns(const SparseDense *d) {
  return d->by_rows ? d->matrix.rows : d->matrix.columns;
}

static bool visit_one(const SparseMatrix *m, SparseVisit *visit, void *ctx, int64_t row, int64_t column,
                      int64_t at) {
  if (row < 0 || row >= m->rows || column < 0 || column >= m->columns) return false;
  return visit(ctx, row, column, at);
}

bool sparse_visit(const SparseMatrix *m, const SparseView *v, SparseVisit *visit, void *ctx) {
  if (m->format == SPARSE_BY_PAIR) {
    for (int64_t at = 0; at < m->count; at++)
      if (!visit_one(m, visit, ctx, sparse_index(&v->starts, at), sparse_index(&v->indices, at), at))
        return false;
    return true;
  }
  bool rows = m->format == SPARSE_BY_ROW;
  for (int64_t line = 0; line < (rows ? m->rows : m->columns); line++)
    for (int64_t at = sparse_index(&v->starts, line); at < sparse_index(&v->starts, line + 1); at++) {
      if (at < 0 || at >= m->count) return false;
      int64_t other = sparse_index(&v->indices, at);
      if (!visit_one(m, visit, ctx, rows ? line : other, rows ? other : line, at)) return false;
    }
  return true;
}

// ---- calls ----

bool sparse_take_scalar(const char *name, BlasScalar *s) {
  if (!s->device) return true;
  void *at = __cudaSolLibraryMemory(name, s->device, blas_bytes(s->type));
  if (at) s->value = blas_get(&(BlasView){.at = at, .type = s->type}, 0, 0);
  return at != NULL;
}

int sparse_call(const char *name, const SparseHandle *h, ShimLibraryWork *work, const void *arguments,
                size_t bytes) {
  switch (__cudaSolLibraryCall(name, h->blas.stream, work, arguments, bytes)) {
  case SHIM_LIBRARY_DONE: return SPARSE_OK;
  case SHIM_LIBRARY_NO_MEMORY: return SPARSE_NO_ROOM;
  default: return SPARSE_FAILED;
  }
}

double sparse_bytes(const SparseMatrix *m) {
  return (double)m->count * (double)(blas_bytes(m->type) + sparse_index_bytes(m->index_type)) +
         (double)start_count(m) * (double)sparse_index_bytes(m->start_type);
}
double sparse_dense_bytes(const SparseDense *d) {
  return (double)d->matrix.rows * (double)d->matrix.columns * (double)blas_bytes(d->matrix.type);
}
ShimLibraryUse sparse_use(const SparseDense *d, bool wrote) {
  return (ShimLibraryUse){d->matrix.at, (size_t)span_of(&d->matrix) * blas_bytes(d->matrix.type), wrote};
}
ShimLibraryUse sparse_index_use(const SparseMatrix *m) {
  return (ShimLibraryUse){m->indices, (size_t)m->count * sparse_index_bytes(m->index_type), false};
}
SolDtype sparse_dtype(int type) {
  return type == BLAS_R64F || type == BLAS_C64F ? SOL_FP64 : SOL_FP32;
}
