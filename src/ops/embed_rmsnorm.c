// y[i] = rmsnorm(table[ids[i]]) * (weight + weight_offset)
#include "ops/norm.h"

#include <math.h>

#include "base/error.h"

static const char *const kernel_names[] = {
#define NORM(T, name, how, number) "sol_embed_rmsnorm_" #T "_" #name,
#include "kernels/norm.def"
};

static SolDtype out_of(const SolEmbedRmsnorm *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static SolDtype weight_of(const SolEmbedRmsnorm *a) {
  return ops_or(a->weight_dtype, a->dtype);
}

static SolDtype id_of(const SolEmbedRmsnorm *a) {
  return ops_or(a->id_dtype, SOL_INT32);
}

static const char *const option_names[] = {"", "1 + weight, bad ids flagged"};

static bool make(const OpsCase *c, void *args) {
  SolEmbedRmsnorm *a = args;
  *a = (SolEmbedRmsnorm){.m = c->dim[0],
                         .n = c->dim[1],
                         .vocab = c->dim[2] ? c->dim[2] : 7,
                         .dtype = c->dtype,
                         .out_dtype = c->out_dtype,
                         .weight_dtype = c->weight_dtype,
                         .id_dtype = c->id_dtype,
                         .eps = 1e-5f,
                         .weight_offset = (float)c->option,
                         .bad_id = c->option ? SOL_BAD_ID_FLAG : SOL_BAD_ID_ZERO};
  if (c->pad) {
    a->table_stride = a->embedded_stride = a->n + c->pad;
    a->y_stride = a->n + 2 * c->pad;
  }
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolEmbedRmsnorm *a = args;
  v[0] = OPS_VIEW(SolEmbedRmsnorm, y, .dtype = out_of(a), .role = OPS_OUT, .rows = a->m, .cols = a->n,
                  .stride = a->y_stride);
  v[1] = OPS_VIEW(SolEmbedRmsnorm, embedded, .dtype = a->dtype, .role = OPS_OUT, .optional = true,
                  .extra = true, .rows = a->m, .cols = a->n, .stride = a->embedded_stride);
  v[2] = OPS_VIEW(SolEmbedRmsnorm, table, .dtype = a->dtype, .rows = a->vocab, .cols = a->n,
                  .stride = a->table_stride);
  v[3] = OPS_VIEW(SolEmbedRmsnorm, ids, .dtype = id_of(a), .rows = 1, .cols = a->m, .fill = OPS_FILL_IDS,
                  .limit = a->vocab);
  v[4] = OPS_VIEW(SolEmbedRmsnorm, weight, .dtype = weight_of(a), .optional = true, .rows = 1, .cols = a->n);
  if (a->bad_id != SOL_BAD_ID_FLAG) return 5;
  v[5] = OPS_VIEW(SolEmbedRmsnorm, bad, .dtype = SOL_INT32, .role = OPS_INOUT, .rows = 1, .cols = 1);
  return 6;
}

static SolStatus check(const void *args, SolError *err) {
  const SolEmbedRmsnorm *a = args;
  if (id_of(a) != SOL_INT32 && id_of(a) != SOL_INT64)
    return sol_fail(err, SOL_ERR_ARGUMENT, "embed_rmsnorm: ids must be int32 or int64, not %s",
                    sol_dtype_name(id_of(a)));
  if ((unsigned)a->bad_id > SOL_BAD_ID_FLAG)
    return sol_fail(err, SOL_ERR_ARGUMENT, "embed_rmsnorm: no such bad_id: %d", (int)a->bad_id);
  if (a->bad_id != SOL_BAD_ID_FLAG && a->bad)
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "embed_rmsnorm: bad must be NULL unless bad_id is SOL_BAD_ID_FLAG");
  return norm_check("embed_rmsnorm", a->dtype, out_of(a), weight_of(a), false, a->eps, err);
}

static void load_row(const SolEmbedRmsnorm *a, int64_t id, int64_t at, int64_t c, float *f) {
  if (id < 0 || id >= a->vocab)
    memset(f, 0, (size_t)c * sizeof *f);
  else
    cpu_load(a->dtype, a->table, id * norm_stride(a->table_stride, a->n) + at, c, f);
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolEmbedRmsnorm *a = args;
  int64_t ys = norm_stride(a->y_stride, a->n), es = norm_stride(a->embedded_stride, a->n);
  float f[CPU_CHUNK];
  for (int64_t row = begin; row < end; row++) {
    int64_t id = cpu_id(id_of(a), a->ids, row);
    double sum = 0;
    if ((id < 0 || id >= a->vocab) && a->bad) __atomic_store_n(a->bad, 1, __ATOMIC_RELAXED);
    CPU_CHUNKS(at, c, a->n) {
      load_row(a, id, at, c, f);
      if (a->embedded) cpu_store(a->dtype, a->embedded, row * es + at, c, f);
      sum += norm_squares(f, 0, c);
    }
    float scale = (float)(1 / sqrt(sum / (double)a->n + (double)a->eps));
    CPU_CHUNKS(at, c, a->n) {
      load_row(a, id, at, c, f);
      norm_apply(f, at, c, scale, weight_of(a), a->weight, a->weight_offset, NULL);
      cpu_store(out_of(a), a->y, row * ys + at, c, f);
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolEmbedRmsnorm *a = args;
  cpu_parallel(ctx, a->m, a->m * a->n, cpu_rows, a);
  return SOL_OK;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolEmbedRmsnorm *a = args;
  int64_t in = sol_dtype_bits(a->dtype) / 8, out = sol_dtype_bits(out_of(a)) / 8;
  NormCall call = {.dtype = a->dtype,
                   .p = {.y = a->y,
                         .x = a->table,
                         .weight = a->weight,
                         .second = a->embedded,
                         .ids = a->ids,
                         .bad = a->bad,
                         .m = (uint64_t)a->m,
                         .n = a->n,
                         .vocab = a->vocab,
                         .y_stride = norm_stride(a->y_stride, a->n) * out,
                         .x_stride = norm_stride(a->table_stride, a->n) * in,
                         .second_stride = norm_stride(a->embedded_stride, a->n) * in,
                         .eps = a->eps,
                         .offset = a->weight_offset,
                         .y_kind = ops_kind(out_of(a)),
                         .weight_kind = ops_kind(weight_of(a)),
                         .wide_ids = id_of(a) == SOL_INT64}};
  return norm_launch(ctx, &ops_embed_rmsnorm, &call, stream);
}

static void reference(const void *args, double *const *at) {
  const SolEmbedRmsnorm *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    double *y = at[0] + row * a->n, id = at[3][row];
    bool known = id >= 0 && id < (double)a->vocab;
    if (!known && a->bad) at[5][0] = 1;
    for (int64_t i = 0; i < a->n; i++) {
      y[i] = known ? at[2][(int64_t)id * a->n + i] : 0;
      if (at[1]) at[1][row * a->n + i] = y[i];
    }
    double squares = norm_reference_squares(y, a->n, 0);
    norm_reference_row(y, y, a->n, 0, 1 / sqrt(squares + (double)a->eps), at[4], (double)a->weight_offset,
                       NULL);
  }
}

static SolStatus cost(const void *args, SolOpArgs *op, SolError *err) {
  const SolEmbedRmsnorm *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n},
                    .dtype = a->dtype,
                    .out_dtype = a->out_dtype,
                    .weight_dtype = a->weight_dtype,
                    .id_dtype = a->id_dtype,
                    .vocab = a->vocab};
  return ops_cost_op("embed_rmsnorm", op, err);
}

// dim[2]: rows of the table
static const int64_t bench[][4] = {{1, 4096, 65536},   {8, 4096, 65536},    {64, 8192, 65536},
                                   {512, 4096, 65536}, {8192, 4096, 65536}, {16384, 8192, 65536},
                                   {3001, 5125, 65536}};

const OpsDef ops_embed_rmsnorm = {
    .name = "embed_rmsnorm",
    .shape = "MxNxV",
    .args_bytes = sizeof(SolEmbedRmsnorm),
    .options = (int)SOL_COUNT(option_names),
    .option_names = option_names,
    OPS_OWN_FUNCTIONS,
    .slack = 24,
    OPS_CASES(norm_shapes, bench),
    .module = "embed_rmsnorm",
    .kernels = kernel_names,
    .kernel_count = (int)SOL_COUNT(kernel_names),
    .shared = norm_shared,
};
