// Sparse vectors beside dense ones: gather, scatter, axpby.
#include "sparse/sparse.h"

#include <stdlib.h>

typedef struct SparseVector {
  int64_t size, count;
  const void *indices, *values;
  int index_type, base, type;
} SparseVector;

static int vector(void **out, SparseVector x) {
  if (x.size < 0 || x.count < 0 || x.count > x.size || x.base < 0 || x.base > 1 || !blas_bytes(x.type))
    return SPARSE_BAD_VALUE;
  SparseVector *v = malloc(sizeof *v);
  if (v) *v = x;
  return sparse_keep(v, out);
}
API int cusparseCreateSpVec(void **out, int64_t size, int64_t count, void *indices, void *values,
                            int index_type, int base, int type) {
  return vector(out, (SparseVector){size, count, indices, values, index_type, base, type});
}
API int cusparseCreateConstSpVec(void **out, int64_t size, int64_t count, const void *indices,
                                 const void *values, int index_type, int base, int type) {
  return vector(out, (SparseVector){size, count, indices, values, index_type, base, type});
}
API int cusparseDestroySpVec(SparseVector *v) {
  free(v);
  return SPARSE_OK;
}

typedef enum Way { GATHER, SCATTER, ADD } Way;
typedef struct Exchange {
  const char *name;
  Way way;
  SparseVector x;
  SparseDense y;
  BlasScalar alpha, beta;
} Exchange;

static bool exchange_one(const Exchange *e, const BlasView *x, const BlasView *y, int64_t i, int64_t j) {
  if (j < 0 || j >= e->x.size) return false;
  if (e->way == GATHER)
    blas_put(x, i, 0, blas_get(y, j, 0));
  else
    blas_put(y, j, 0,
             e->way == SCATTER ? blas_get(x, i, 0) : blas_get(y, j, 0) + e->alpha.value * blas_get(x, i, 0));
  return true;
}

static bool exchange(void *arguments, ShimLibraryCost *cost) {
  Exchange e = *(Exchange *)arguments;
  size_t bytes = (size_t)e.x.count * blas_bytes(e.x.type);
  SparseIndices at;
  BlasView x = {.type = e.x.type, .down = 1}, y;
  if (!sparse_take_scalar(e.name, &e.alpha) || !sparse_take_scalar(e.name, &e.beta)) return false;
  if (!sparse_find_indices(e.name, e.x.indices, e.x.count, e.x.index_type, e.x.base, &at)) return false;
  if (!sparse_dense_view(e.name, &e.y, &y)) return false;
  if (bytes && !(x.at = __cudaSolLibraryMemory(e.name, e.x.values, bytes))) return false;
  for (int64_t j = 0; e.way == ADD && j < e.x.size; j++)
    blas_put(&y, j, 0, e.beta.value * blas_get(&y, j, 0));
  for (int64_t i = 0; i < e.x.count; i++)
    if (!exchange_one(&e, &x, &y, i, sparse_index(&at, i))) return false;
  double dense = e.way == ADD ? sparse_dense_bytes(&e.y) : (double)bytes;
  cost->read = (double)bytes + (double)e.x.count * (double)sparse_index_bytes(e.x.index_type) +
               (e.way == ADD ? dense : 0);
  cost->written = dense;
  cost->flops = e.way == ADD ? 2 * (double)e.x.count + (double)e.x.size : 0;
  cost->dtype = sparse_dtype(e.x.type);
  cost->uses[0] = (ShimLibraryUse){e.x.values, bytes, e.way == GATHER};
  cost->uses[1] = sparse_use(&e.y, e.way != GATHER);
  return true;
}

static int run(const SparseHandle *h, Exchange e, const SparseVector *x, const SparseDense *y) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!x || !y || x->size != sparse_rows(y) || x->type != y->matrix.type) return SPARSE_BAD_VALUE;
  e.x = *x, e.y = *y;
  return sparse_call(e.name, h, exchange, &e, sizeof e);
}

API int cusparseGather(const SparseHandle *h, const SparseDense *y, const SparseVector *x) {
  return run(h, (Exchange){.name = "cusparseGather", .way = GATHER}, x, y);
}
API int cusparseScatter(const SparseHandle *h, const SparseVector *x, const SparseDense *y) {
  return run(h, (Exchange){.name = "cusparseScatter", .way = SCATTER}, x, y);
}
API int cusparseAxpby(const SparseHandle *h, const void *alpha, const SparseVector *x, const void *beta,
                      const SparseDense *y) {
  if (!sparse_is_handle(h)) return SPARSE_NO_HANDLE;
  if (!alpha || !beta || !x) return SPARSE_BAD_VALUE;
  int type = x->type == BLAS_R16F || x->type == BLAS_R16BF ? BLAS_R32F : x->type;
  Exchange e = {.name = "cusparseAxpby", .way = ADD};
  e.alpha = blas_scalar(&h->blas, alpha, type), e.beta = blas_scalar(&h->blas, beta, type);
  return run(h, e, x, y);
}
