// Incomplete LU factors of a CSR matrix (csrilu02): the pattern stays, L has a diagonal of ones.
#include <stdlib.h>

#include "sparse/sparse.h"

enum { ZERO_PIVOT = 9 }; // CUSPARSE_STATUS_ZERO_PIVOT

typedef struct FactorInfo {
  int64_t pivot; // the first row whose diagonal is 0 or missing; -1: none
  int base;
} FactorInfo;

typedef struct Factor {
  const char *name;
  SparseMatrix a;
  FactorInfo *info;
} Factor;

typedef struct
    Rows { // of the matrix, and where the elements of the current one stand, by column; -1: nowhere
  const SparseMatrix *a;
  SparseView v;
  int64_t *places, *diagonals;
} Rows;

static bool mark(Rows *r, int64_t i, bool on) {
  for (int64_t at = sparse_index(&r->v.starts, i); at < sparse_index(&r->v.starts, i + 1); at++) {
    if (at < 0 || at >= r->a->count) return false;
    int64_t j = sparse_index(&r->v.indices, at);
    if (j < 0 || j >= r->a->columns) return false;
    r->places[j] = on ? at : -1;
    if (j == i) r->diagonals[i] = at;
  }
  return true;
}

static void subtract_row(Rows *r, int64_t at, int64_t k) {
  BlasView *values = &r->v.values;
  BlasNumber pivot = r->diagonals[k] < 0 ? 0 : blas_get(values, r->diagonals[k], 0);
  blas_put(values, at, 0, blas_get(values, at, 0) / pivot);
  BlasNumber factor = blas_get(values, at, 0);
  for (int64_t p = sparse_index(&r->v.starts, k); p < sparse_index(&r->v.starts, k + 1); p++) {
    int64_t j = sparse_index(&r->v.indices, p), to = j > k ? r->places[j] : -1;
    if (to >= 0) blas_put(values, to, 0, blas_get(values, to, 0) - factor * blas_get(values, p, 0));
  }
}

// Columns of a row stand in ascending order, as the interface asks for.
static bool factor_row(Rows *r, int64_t i) {
  if (!mark(r, i, true)) return false;
  for (int64_t at = sparse_index(&r->v.starts, i); at < sparse_index(&r->v.starts, i + 1); at++) {
    int64_t k = sparse_index(&r->v.indices, at);
    if (k < i) subtract_row(r, at, k);
  }
  return mark(r, i, false);
}

static bool work(void *arguments, ShimLibraryCost *cost) {
  const Factor *f = arguments;
  size_t rows = (size_t)f->a.rows;
  Rows r = {.a = &f->a};
  if (!sparse_view(f->name, &f->a, &r.v)) return false;
  r.places = malloc((rows + 1) * sizeof *r.places);
  r.diagonals = malloc((rows + 1) * sizeof *r.diagonals);
  bool done = r.places && r.diagonals;
  for (size_t i = 0; done && i < rows; i++) r.places[i] = r.diagonals[i] = -1;
  f->info->pivot = -1;
  for (int64_t i = 0; done && i < f->a.rows; i++) {
    done = factor_row(&r, i);
    bool zero = done && (r.diagonals[i] < 0 || blas_get(&r.v.values, r.diagonals[i], 0) == 0);
    if (zero && f->info->pivot < 0) f->info->pivot = i;
  }
  free(r.places);
  free(r.diagonals);
  cost->read = sparse_bytes(&f->a);
  cost->written = (double)f->a.count * (double)blas_bytes(f->a.type);
  cost->dtype = sparse_dtype(f->a.type);
  cost->uses[0] = (ShimLibraryUse){f->a.values, (size_t)f->a.count * blas_bytes(f->a.type), true};
  cost->uses[1] = sparse_index_use(&f->a);
  return done;
}

static int factor(const SparseHandle *h, Factor f, int rows, int count, const void *kind) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (rows < 0 || count < 0 || !kind || !f.info) return SPARSE_BAD_VALUE;
  f.a.rows = f.a.columns = rows;
  f.a.count = count;
  f.a.start_type = f.a.index_type = 2;
  f.a.base = f.info->base = cusparseGetMatIndexBase(kind);
  return sparse_call(f.name, h, work, &f, sizeof f);
}

API int cusparseCreateCsrilu02Info(void **out) {
  FactorInfo *info = malloc(sizeof *info);
  if (info) *info = (FactorInfo){.pivot = -1};
  return sparse_keep(info, out);
}
API int cusparseDestroyCsrilu02Info(FactorInfo *info) {
  free(info);
  return SPARSE_OK;
}
API int cusparseXcsrilu02_zeroPivot(const SparseHandle *h, const FactorInfo *info, int *position) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!info || !position) return SPARSE_BAD_VALUE;
  *position = info->pivot < 0 ? -1 : (int)info->pivot + info->base;
  return info->pivot < 0 ? SPARSE_OK : ZERO_PIVOT;
}

#define FACTORS(letter, number)                                                                              \
  API int cusparse##letter##csrilu02_bufferSize(const SparseHandle *h, int rows, int count,                  \
                                                const void *kind, void *values, const void *starts,          \
                                                const void *columns, FactorInfo *info, int *bytes) {         \
    (void)rows, (void)count, (void)kind, (void)values, (void)starts, (void)columns, (void)info;              \
    size_t size = 0;                                                                                         \
    int status = bytes ? sparse_no_buffer(h, &size) : SPARSE_BAD_VALUE;                                      \
    if (!status) *bytes = (int)size;                                                                         \
    return status;                                                                                           \
  }                                                                                                          \
  API int cusparse##letter##csrilu02_analysis(const SparseHandle *h) {                                       \
    return sparse_is_handle(h) ? SPARSE_OK : SPARSE_NO_HANDLE;                                               \
  }                                                                                                          \
  API int cusparse##letter##csrilu02(const SparseHandle *h, int rows, int count, const void *kind,           \
                                     void *values, const void *starts, const void *columns,                  \
                                     FactorInfo *info, int policy, void *buffer) {                           \
    (void)policy, (void)buffer;                                                                              \
    Factor f = {.name = "cusparse" #letter "csrilu02", .info = info};                                        \
    f.a = (SparseMatrix){.starts = starts, .indices = columns, .values = values, .type = number};            \
    return factor(h, f, rows, count, kind);                                                                  \
  }
FACTORS(S, BLAS_R32F)
FACTORS(D, BLAS_R64F)
FACTORS(C, BLAS_C32F)
FACTORS(Z, BLAS_C64F)
