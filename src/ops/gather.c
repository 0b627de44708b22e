// y[i] = x[ids[i]], rows of any type; the caller may give the order in which rows are copied.
#include "base/error.h"
#include "ops/cpu.h"
#include "ops/embedding.h"

static EmbeddingRows rows_of(const SolGather *a) {
  return (EmbeddingRows){EMBEDDING_ROWS(a),
                         .x = a->x,
                         .order = a->order,
                         .rows = a->rows,
                         .x_stride = ops_stride(a->x_stride, a->n),
                         .out_dtype = a->dtype};
}

enum { OPTION_ZERO, OPTION_FLAG, OPTION_BYTES, OPTION_EIGHT };
static const char *const option_names[] = {"bad ids: zeros", "bad ids: flag", "bytes", "eight bytes"};

static bool make(const OpsCase *c, void *args) {
  SolGather *a = args;
  *a = (SolGather){.m = c->dim[0],
                   .n = c->dim[1],
                   .rows = c->dim[2] ? c->dim[2] : 37,
                   .dtype = c->dtype,
                   .id_dtype = c->id_dtype,
                   .bad_id = c->option == OPTION_FLAG ? SOL_BAD_ID_FLAG : SOL_BAD_ID_ZERO};
  if (c->option >= OPTION_BYTES && c->dtype != SOL_FP32) return false; // once is enough
  if (c->option == OPTION_BYTES) a->dtype = SOL_INT8;
  if (c->option == OPTION_EIGHT) a->dtype = SOL_FP64;
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + 2 * c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolGather *a = args;
  SolDtype ids = ops_or(a->id_dtype, SOL_INT32);
  v[0] = OPS_VIEW(SolGather, y, a->dtype, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride);
  v[1] = OPS_VIEW(SolGather, x, a->dtype, OPS_IN, .rows = a->rows, .cols = a->n, .stride = a->x_stride);
  v[2] =
      OPS_VIEW(SolGather, ids, ids, OPS_IN, .rows = 1, .cols = a->m, .fill = OPS_FILL_IDS, .limit = a->rows);
  v[3] = OPS_VIEW(SolGather, order, ids, OPS_IN, .optional = true, .rows = 1, .cols = a->m,
                  .fill = OPS_FILL_ORDER, .limit = a->m);
  if (a->bad_id != SOL_BAD_ID_FLAG) return 4;
  v[4] =
      OPS_VIEW(SolGather, bad, SOL_INT32, OPS_INOUT, .rows = 1, .cols = 1, .fill = OPS_FILL_IDS, .limit = 1);
  return 5;
}

static SolStatus check(const void *args, SolError *err) {
  const SolGather *a = args;
  return embedding_check_ids(a->id_dtype, a->bad_id, a->bad, err);
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  EmbeddingRows r = rows_of(args);
  return embedding_cpu(ctx, &r);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  EmbeddingRows r = rows_of(args);
  return embedding_launch(ctx, &ops_gather, &r, stream);
}

static void reference(const void *args, double *const *at) {
  const SolGather *a = args;
  EmbeddingRows r = rows_of(a);
  embedding_reference(&r, at, a->bad_id == SOL_BAD_ID_FLAG ? at[4] : NULL);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolGather *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype, .id_dtype = a->id_dtype, .vocab = a->rows};
}

static const int64_t bench[][4] = {
    {8192, 4096, 32000}, {16384, 8192, 32000}, {1048576, 32, 4000000}, {262144, 128, 1000000}};

const OpsDef ops_gather = {
    .name = "gather",
    OPS_ARGS(SolGather, "MxNxR"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    OPS_CASES(embedding_shapes, bench),
    OPS_KERNELS("embedding", embedding_kernels),
};

// An array of positions, sorted by the ids at them and, among equal ids, by position: no two compare equal,
// so that any sort is stable.
typedef struct Order {
  const void *ids;
  void *at;
  SolDtype type;
} Order;

static int64_t position(const Order *o, int64_t i) {
  return cpu_id(o->type, o->at, i);
}

static void set_position(const Order *o, int64_t i, int64_t position) {
  if (o->type == SOL_INT64)
    ((int64_t *)o->at)[i] = position;
  else
    ((int32_t *)o->at)[i] = (int32_t)position;
}

static bool before(const Order *o, int64_t a, int64_t b) { // positions
  int64_t x = cpu_id(o->type, o->ids, a), y = cpu_id(o->type, o->ids, b);
  return x < y || (x == y && a < b);
}

// Heap sort, whose root is the last in order: it needs no memory and takes n log n steps in any case.
static void sink(const Order *o, int64_t root, int64_t count) {
  int64_t moving = position(o, root);
  for (int64_t child; (child = 2 * root + 1) < count; root = child) {
    if (child + 1 < count && before(o, position(o, child), position(o, child + 1))) child++;
    if (before(o, position(o, child), moving)) break;
    set_position(o, root, position(o, child));
  }
  set_position(o, root, moving);
}

SolStatus sol_gather_order(const void *ids, void *order, int64_t m, SolDtype id_dtype, SolError *err) {
  SolDtype type = ops_or(id_dtype, SOL_INT32);
  if (type != SOL_INT32 && type != SOL_INT64)
    return sol_fail(err, SOL_ERR_ARGUMENT, "gather_order: ids must be int32 or int64, not %s",
                    sol_dtype_name(type));
  if (m < 0 || (type == SOL_INT32 && m > INT32_MAX))
    return sol_fail(err, SOL_ERR_RANGE, "gather_order: there cannot be %lld ids of type %s", (long long)m,
                    sol_dtype_name(type));
  if (m && (!ids || !order))
    return sol_fail(err, SOL_ERR_ARGUMENT, "gather_order: ids and order must not be NULL");
  Order o = {ids, order, type};
  for (int64_t i = 0; i < m; i++) set_position(&o, i, i);
  for (int64_t root = m / 2 - 1; root >= 0; root--) sink(&o, root, m);
  for (int64_t count = m - 1; count > 0; count--) {
    int64_t last = position(&o, count);
    set_position(&o, count, position(&o, 0));
    set_position(&o, 0, last);
    sink(&o, 0, count);
  }
  return SOL_OK;
}
