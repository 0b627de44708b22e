// Triangular solves (SpSV, SpSM): op(A) C = alpha op(B), in double and rounded once. Elements of A outside the triangle
// that its fill mode names are not read.
#include <stdlib.h>

#include "sparse/sparse.h"

typedef struct Solve {
  const char *name;
  SparseMatrix a;
  SparseDense b, c;
  int trans_a, trans_b;
  BlasScalar alpha;
} Solve;

typedef struct Element {
  int64_t column;
  BlasNumber value;
} Element;

typedef struct Triangle { // op(A) by rows, without its diagonal
  const Solve *solve;
  const SparseView *view;
  bool lower;
  int64_t *starts, *used; // of each row; NULL used: elements are only counted
  Element *elements;
  BlasNumber *diagonal;
} Triangle;

static bool add_element(void *ctx, int64_t row, int64_t column, int64_t at) {
  Triangle *t = ctx;
  bool turned = t->solve->trans_a != 0;
  int64_t i = turned ? column : row, j = turned ? row : column;
  if (i != j && (j < i) != t->lower) return true;
  if (!t->used) {
    t->starts[i + 1] += i != j;
    return true;
  }
  BlasNumber value = blas_get(&t->view->values, at, 0);
  if (t->solve->trans_a == 2) value = conj(value);
  if (i == j)
    t->diagonal[i] += value;
  else
    t->elements[t->starts[i] + t->used[i]++] = (Element){j, value};
  return true;
}

static void free_triangle(Triangle *t) {
  free(t->starts);
  free(t->used);
  free(t->elements);
  free(t->diagonal);
}

static bool make_triangle(Triangle *t, const Solve *s, const SparseView *v) {
  size_t rows = (size_t)s->a.rows;
  *t = (Triangle){.solve = s, .view = v, .lower = !s->a.upper == !s->trans_a};
  t->starts = calloc(rows + 1, sizeof *t->starts);
  if (!t->starts || !sparse_visit(&s->a, v, add_element, t)) return false;
  for (size_t i = 0; i < rows; i++) t->starts[i + 1] += t->starts[i];
  t->used = calloc(rows + 1, sizeof *t->used);
  t->diagonal = calloc(rows + 1, sizeof *t->diagonal);
  t->elements = malloc(((size_t)t->starts[rows] + 1) * sizeof *t->elements);
  return t->used && t->diagonal && t->elements && sparse_visit(&s->a, v, add_element, t);
}

static void solve_column(const Triangle *t, BlasNumber alpha, const BlasView *b, const BlasView *c, int64_t j,
                         BlasNumber *x) {
  int64_t rows = t->solve->a.rows;
  for (int64_t n = 0; n < rows; n++) {
    int64_t i = t->lower ? n : rows - 1 - n;
    BlasNumber sum = alpha * blas_get(b, i, j);
    for (int64_t e = t->starts[i]; e < t->starts[i + 1]; e++)
      sum -= t->elements[e].value * x[t->elements[e].column];
    x[i] = t->solve->a.unit ? sum : sum / t->diagonal[i];
  }
  for (int64_t i = 0; i < rows; i++) blas_put(c, i, j, x[i]);
}

static void add_cost(const Solve *s, ShimLibraryCost *cost) {
  cost->read = sparse_bytes(&s->a) + sparse_dense_bytes(&s->b);
  cost->written = sparse_dense_bytes(&s->c);
  cost->flops = 2 * (double)s->a.count * (double)sparse_columns(&s->c) * (blas_is_complex(s->a.type) ? 4 : 1);
  cost->dtype = sparse_dtype(s->a.type);
  cost->uses[0] = (ShimLibraryUse){s->a.values, (size_t)s->a.count * blas_bytes(s->a.type), false};
  cost->uses[1] = sparse_index_use(&s->a);
  cost->uses[2] = sparse_use(&s->b, false);
  cost->uses[3] = sparse_use(&s->c, true);
}

static bool work(void *arguments, ShimLibraryCost *cost) {
  Solve s = *(Solve *)arguments;
  SparseView a;
  BlasView b, c;
  if (!sparse_take_scalar(s.name, &s.alpha) || !sparse_view(s.name, &s.a, &a)) return false;
  if (!sparse_dense_view(s.name, &s.b, &b) || !sparse_dense_view(s.name, &s.c, &c)) return false;
  b = blas_op(b, s.trans_b);
  Triangle t;
  BlasNumber *x = malloc(((size_t)s.a.rows + 1) * sizeof *x);
  bool done = make_triangle(&t, &s, &a) && x;
  for (int64_t j = 0; done && j < sparse_columns(&s.c); j++) solve_column(&t, s.alpha.value, &b, &c, j, x);
  if (done) add_cost(&s, cost);
  free_triangle(&t);
  free(x);
  return done;
}

static int solve(const SparseHandle *h, Solve s, const void *alpha, const SparseMatrix *a,
                 const SparseDense *b, const SparseDense *c, int type) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!alpha || !a || !b || !c || blas_bad_trans(s.trans_a) || blas_bad_trans(s.trans_b))
    return SPARSE_BAD_VALUE;
  int64_t b_rows = s.trans_b ? sparse_columns(b) : sparse_rows(b),
          b_columns = s.trans_b ? sparse_rows(b) : sparse_columns(b);
  if (a->rows != a->columns || b_rows != a->rows || sparse_rows(c) != a->rows ||
      sparse_columns(c) != b_columns)
    return SPARSE_BAD_VALUE;
  s.a = *a, s.b = *b, s.c = *c;
  s.alpha = blas_scalar(&h->blas, alpha, type);
  return sparse_call(s.name, h, work, &s, sizeof s);
}

// ---- entry points ----

API int cusparseSpSV_createDescr(void **out) {
  return sparse_keep(malloc(1), out);
}
API int cusparseSpSV_destroyDescr(void *descriptor) {
  free(descriptor);
  return SPARSE_OK;
}
API int cusparseSpSV_bufferSize(const SparseHandle *h, int trans, const void *alpha, const void *a,
                                const void *x, const void *y, int type, int algorithm, void *descriptor,
                                size_t *bytes) {
  (void)trans, (void)alpha, (void)a, (void)x, (void)y, (void)type, (void)algorithm, (void)descriptor;
  return sparse_no_buffer(h, bytes);
}
API int cusparseSpSV_analysis(const SparseHandle *h) {
  return sparse_is_handle(h) ? SPARSE_OK : SPARSE_NO_HANDLE;
}
API int cusparseSpSV_solve(const SparseHandle *h, int trans, const void *alpha, const SparseMatrix *a,
                           const SparseDense *x, const SparseDense *y, int type, int algorithm,
                           void *descriptor) {
  (void)algorithm, (void)descriptor;
  return solve(h, (Solve){.name = "cusparseSpSV_solve", .trans_a = trans}, alpha, a, x, y, type);
}
API int cusparseSpSM_createDescr(void **out) {
  return sparse_keep(malloc(1), out);
}
API int cusparseSpSM_destroyDescr(void *descriptor) {
  free(descriptor);
  return SPARSE_OK;
}
API int cusparseSpSM_bufferSize(const SparseHandle *h, int trans_a, int trans_b, const void *alpha,
                                const void *a, const void *b, const void *c, int type, int algorithm,
                                void *descriptor, size_t *bytes) {
  (void)trans_a, (void)trans_b, (void)alpha, (void)a, (void)b, (void)c, (void)type, (void)algorithm,
      (void)descriptor;
  return sparse_no_buffer(h, bytes);
}
API int cusparseSpSM_analysis(const SparseHandle *h) {
  return sparse_is_handle(h) ? SPARSE_OK : SPARSE_NO_HANDLE;
}
API int cusparseSpSM_solve(const SparseHandle *h, int trans_a, int trans_b, const void *alpha,
                           const SparseMatrix *a, const SparseDense *b, const SparseDense *c, int type,
                           int algorithm, void *descriptor) {
  (void)algorithm, (void)descriptor;
  return solve(h, (Solve){.name = "cusparseSpSM_solve", .trans_a = trans_a, .trans_b = trans_b}, alpha, a, b,
               c, type);
}

enum { FILL_MODE, DIAG_TYPE };
static int *attribute_of(SparseMatrix *m, int what, const void *data, size_t bytes) {
  if (!m || !data || bytes != sizeof(int)) return NULL;
  return what == FILL_MODE ? &m->upper : what == DIAG_TYPE ? &m->unit : NULL;
}
API int cusparseSpMatSetAttribute(SparseMatrix *m, int what, const int *data, size_t bytes) {
  int *attribute = attribute_of(m, what, data, bytes);
  if (!attribute) return SPARSE_BAD_VALUE;
  *attribute = *data;
  return SPARSE_OK;
}
API int cusparseSpMatGetAttribute(SparseMatrix *m, int what, int *data, size_t bytes) {
  const int *attribute = attribute_of(m, what, data, bytes);
  if (!attribute) return SPARSE_BAD_VALUE;
  *data = *attribute;
  return SPARSE_OK;
}
