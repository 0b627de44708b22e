// Products of a sparse and a dense matrix: element by element of the sparse one, summed in double and rounded once.
#include <stdlib.h>

#include "sparse/sparse.h"

typedef struct Found { // where the host finds a product's arrays
  SparseView a;
  BlasView b, c; // b: op(B)
} Found;

static bool find(const SparseProduct *p, Found *f) {
  if (!sparse_view(p->name, &p->a, &f->a) || !sparse_dense_view(p->name, &p->b, &f->b)) return false;
  f->b = blas_op(f->b, p->trans_b);
  return sparse_dense_view(p->name, &p->c, &f->c);
}

typedef struct Sums { // of C's rows by columns, in double
  BlasNumber *of;
  int64_t rows, columns;
} Sums;

typedef struct Adding {
  const SparseProduct *p;
  const Found *f;
  Sums *s;
} Adding;

static bool add_element(void *ctx, int64_t row, int64_t column, int64_t at) {
  const Adding *a = ctx;
  BlasNumber x = blas_get(&a->f->a.values, at, 0), *sums = a->s->of;
  int64_t n = a->s->columns, i = a->p->trans_a ? column : row, k = a->p->trans_a ? row : column;
  if (a->p->trans_a == 2) x = conj(x);
  for (int64_t j = 0; j < n; j++) sums[i * n + j] += x * blas_get(&a->f->b, k, j);
  return true;
}

static void store(const SparseProduct *p, const Found *f, const Sums *s) {
  for (int64_t i = 0; i < s->rows; i++)
    for (int64_t j = 0; j < s->columns; j++) {
      BlasNumber old = p->beta.value == 0 ? 0 : p->beta.value * blas_get(&f->c, i, j);
      blas_put(&f->c, i, j, p->alpha.value * s->of[i * s->columns + j] + old);
    }
}

static void add_cost(const SparseProduct *p, const Sums *s, ShimLibraryCost *cost) {
  const SparseMatrix *a = &p->a;
  double c = sparse_dense_bytes(&p->c);
  cost->read = sparse_bytes(a) + sparse_dense_bytes(&p->b) + (p->beta.value == 0 ? 0 : c);
  cost->written = c;
  cost->flops = 2 * (double)a->count * (double)s->columns * (blas_is_complex(a->type) ? 4 : 1);
  cost->dtype = sparse_dtype(a->type);
  cost->uses[0] = (ShimLibraryUse){a->values, (size_t)a->count * blas_bytes(a->type), false};
  cost->uses[1] = sparse_index_use(a);
  cost->uses[2] = sparse_use(&p->b, false);
  cost->uses[3] = sparse_use(&p->c, true);
}

static bool work(void *arguments, ShimLibraryCost *cost) {
  SparseProduct p = *(SparseProduct *)arguments;
  Found f;
  if (!sparse_take_scalar(p.name, &p.alpha) || !sparse_take_scalar(p.name, &p.beta) || !find(&p, &f))
    return false;
  Sums s = {.rows = sparse_rows(&p.c), .columns = sparse_columns(&p.c)};
  s.of = calloc((size_t)(s.rows * s.columns) + 1, sizeof *s.of);
  bool done = s.of && sparse_visit(&p.a, &f.a, add_element, &(Adding){&p, &f, &s});
  if (done) store(&p, &f, &s);
  if (done) add_cost(&p, &s, cost);
  free(s.of);
  return done;
}

static bool sizes_agree(const SparseProduct *p) {
  int64_t rows = p->trans_a ? p->a.columns : p->a.rows, inner = p->trans_a ? p->a.rows : p->a.columns;
  int64_t b_rows = p->trans_b ? sparse_columns(&p->b) : sparse_rows(&p->b),
          b_columns = p->trans_b ? sparse_rows(&p->b) : sparse_columns(&p->b);
  return rows == sparse_rows(&p->c) && inner == b_rows && b_columns == sparse_columns(&p->c);
}

int sparse_run(const SparseHandle *h, const SparseProduct *p) {
  if (!sizes_agree(p)) return SPARSE_BAD_VALUE;
  return sparse_call(p->name, h, work, p, sizeof *p);
}
