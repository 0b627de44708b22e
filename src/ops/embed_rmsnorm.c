// y[i] = rmsnorm(table[ids[i]]) * (weight + weight_offset)
#include "kernels/embed_rmsnorm/embed_rows.h"
#include "ops/cells.h"
#include "ops/embedding.h"
#include "ops/ends.h"
#include "ops/norm.h"

#include <math.h>

// Of each type: rows that start anywhere, longer ones, rows of a few elements. Of those of 2 bytes: by aligned cells of y, short rows and longer ones.
enum {
  EMBED_ROWS_KERNEL = NORM_KERNELS,
  EMBED_LONG,
  EMBED_TINY,
  EMBED_PER_TYPE = 3,
  EMBED_BY_CELLS = NORM_KERNELS + 3 * EMBED_PER_TYPE,
  EMBED_BY_LINES,
  EMBED_CELLS_PER_TYPE = 2,
  EMBED_KERNELS = NORM_KERNELS + NORM_EMBED_OWN
};
static const char *const kernel_names[EMBED_KERNELS] = {
#define NORM(T, name, how, number) "sol_embed_rmsnorm_" #T "_" #name,
#include "kernels/norm.def"
#define EMBED(T)                                                                                             \
  "sol_embed_rmsnorm_" #T "_rows", "sol_embed_rmsnorm_" #T "_long_rows", "sol_embed_rmsnorm_" #T "_tiny",
    EMBED(f) EMBED(h) EMBED(b)
#define EMBED_CELLS(T) "sol_embed_rmsnorm_" #T "_cells", "sol_embed_rmsnorm_" #T "_lines",
        EMBED_CELLS(h) EMBED_CELLS(b)};

static Norm norm_of(const SolEmbedRmsnorm *a) {
  return NORM_OF(a, table);
}

static SolDtype id_of(const SolEmbedRmsnorm *a) {
  return ops_or(a->id_dtype, SOL_INT32);
}

static const char *const option_names[] = {"", "1 + weight, bad ids flagged"};

static bool make(const OpsCase *c, void *args) {
  SolEmbedRmsnorm *a = args;
  *a = (SolEmbedRmsnorm){NORM_CASE(c), .vocab = c->dim[2] ? c->dim[2] : 7, .id_dtype = c->id_dtype,
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
  Norm norm = norm_of(a);
  v[0] = OPS_VIEW(SolEmbedRmsnorm, y, norm.out, OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride);
  v[1] = OPS_VIEW(SolEmbedRmsnorm, embedded, a->dtype, OPS_OUT, .optional = true, .extra = true, .rows = a->m,
                  .cols = a->n, .stride = a->embedded_stride);
  v[2] = OPS_VIEW(SolEmbedRmsnorm, table, a->dtype, OPS_IN, .rows = a->vocab, .cols = a->n,
                  .stride = a->table_stride);
  v[3] = OPS_VIEW(SolEmbedRmsnorm, ids, id_of(a), OPS_IN, .rows = 1, .cols = a->m, .fill = OPS_FILL_IDS,
                  .limit = a->vocab);
  v[4] =
      OPS_VIEW(SolEmbedRmsnorm, weight, norm.weight_dtype, OPS_IN, .optional = true, .rows = 1, .cols = a->n);
  if (a->bad_id != SOL_BAD_ID_FLAG) return 5;
  v[5] = OPS_VIEW(SolEmbedRmsnorm, bad, SOL_INT32, OPS_INOUT, .rows = 1, .cols = 1);
  return 6;
}

static SolStatus check(const void *args, SolError *err) {
  const SolEmbedRmsnorm *a = args;
  Norm norm = norm_of(a);
  SolStatus status = embedding_check_ids(a->id_dtype, a->bad_id, a->bad, err);
  return status ? status : norm_check(&norm, false, err);
}

static void load_row(const SolEmbedRmsnorm *a, int64_t id, int64_t at, int64_t c, float *f) {
  if (id < 0 || id >= a->vocab)
    memset(f, 0, (size_t)c * sizeof *f);
  else
    cpu_load(a->dtype, a->table, id * ops_stride(a->table_stride, a->n) + at, c, f);
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolEmbedRmsnorm *a = args;
  Norm norm = norm_of(a);
  int64_t ys = norm.y_stride, es = ops_stride(a->embedded_stride, a->n);
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
    float scale = norm_scale(&norm, sum);
    CPU_CHUNKS(at, c, a->n) {
      load_row(a, id, at, c, f);
      norm_apply(&norm, f, at, c, scale, NULL);
      cpu_store(norm.out, a->y, row * ys + at, c, f);
    }
  }
}

// Words of a row and of what lies before it up to the boundary at which its first lane starts.
static bool set_rows(const SolContext *ctx, const SolEmbedRmsnorm *a, EmbedParams *p, OpsLaunch *l) {
  static const struct {
    int lanes, steps;
  } rows[] = {
#define EMBED_ROWS(number, lanes, steps) {lanes, steps},
#include "kernels/embed_rmsnorm/embed_rows.def"
  };
  int64_t size = ops_size(a->dtype);
  for (size_t k = 0; k < SOL_COUNT(rows); k++) {
    int64_t align = cpu_min(32, 4 * rows[k].lanes), turn = 32 / rows[k].lanes;
    if (ops_ceil_div(a->n * size + align - size, 4) > rows[k].lanes * rows[k].steps) continue;
    int64_t turns = a->m / (turn * 96 * ctx->sms); // warps: at least twice what SMs hold
    p->words = (int32_t)k;
    p->warp_rows = (int32_t)(turn * (turns < 1 ? 1 : cpu_min(turns, 32 / turn)));
    l->kernel = rows[k].steps > 8 ? EMBED_LONG : EMBED_ROWS_KERNEL;
    l->shared = (uint32_t)(4 / size * (a->n | 1) * 4);
    return true;
  }
  return false;
}

// All on 16 bytes: norm.c has kernels for whole chunks, if rows are more than a few of them.
static bool is_aligned(const SolEmbedRmsnorm *a, const EmbedParams *p, const Norm *norm) {
  int64_t bytes = a->n * ops_size(a->dtype), few = 3 * 16;
  return bytes > few && bytes % 16 == 0 && a->weight && norm->weight_dtype == a->dtype &&
         ops_align(a->weight, 0, 1) == 16 && ops_align(a->table, p->table_stride, 2) == 16 &&
         ops_align(a->y, p->y_stride, 2) == 16 && ops_align(a->embedded, p->second_stride, 2) == 16;
}

static bool is_dense(const SolEmbedRmsnorm *a, const Norm *norm) {
  return norm->y_stride == a->n && (!a->embedded || ops_stride(a->embedded_stride, a->n) == a->n);
}

// Rows of a few elements.
static bool is_tiny(const SolEmbedRmsnorm *a, const EmbedParams *p, const Norm *norm) {
  return norm->out == a->dtype && !is_aligned(a, p, norm) && a->n * ops_size(a->dtype) <= TINY_BYTES &&
         is_dense(a, norm);
}

// Dense rows of 2 bytes an element by aligned 16 bytes of y, at which the rows themselves start alike. What is not measured to be faster is not taken.
static bool is_by_cells(const SolEmbedRmsnorm *a, const Norm *norm) {
  return ops_size(a->dtype) == 2 && ops_size(norm->out) == 2 && is_dense(a, norm) &&
         (!a->embedded || ((uintptr_t)a->y - (uintptr_t)a->embedded) % 16 == 0);
}

// Those whose type changes: some to a thread, by cells.
static bool plan_cells(const SolContext *ctx, const SolEmbedRmsnorm *a, const Norm *norm, EmbedParams *p,
                       OpsLaunch *l) {
  int64_t bytes = a->n * 2;
  if (norm->out == a->dtype || bytes <= TINY_BYTES || bytes > CELL_ZEROS) return false;
  CellRows rows = {.n = a->n,
                   .y_stride = norm->y_stride,
                   .x_stride = norm->x_stride,
                   .rows = a->vocab,
                   .x = a->table,
                   .size = 2,
                   .m = a->m,
                   .ids = a->ids,
                   .wide_ids = p->wide_ids,
                   .bad = a->bad};
  int threads = cells_plan(ctx, &rows, &p->cell);
  if (!threads) return false;
  l->kernel = EMBED_BY_CELLS;
  l->shared = (uint32_t)(2 * CELL_FROM_BYTES + CELL_GROUPS * (p->cell.period + p->cell.positions) * 4);
  cells_grid(ctx, &p->cell, threads, l);
  return true;
}

// Those of 1 to 2 KB of one type: a warp has a row.
static bool plan_lines(const SolEmbedRmsnorm *a, const Norm *norm, OpsLaunch *l) {
  enum { LEAST = 1024, ROWS = EMBED_THREADS / 32 };
  if (norm->out != a->dtype || a->n * 2 <= LEAST || a->n * 2 > 32 * 16 * EMBED_LINE_EACH) return false;
  l->kernel = EMBED_BY_LINES;
  l->block = EMBED_THREADS;
  ops_grid(l->grid, (uint64_t)ops_ceil_div(a->m, ROWS), 1);
  return true;
}

static bool plan_chunks(const SolContext *ctx, const SolEmbedRmsnorm *a, const Norm *norm, EmbedParams *p,
                        OpsLaunch *l) {
  if (!is_by_cells(a, norm) || (norm->out == a->dtype && is_aligned(a, p, norm))) return false;
  if (!plan_cells(ctx, a, norm, p, l) && !plan_lines(a, norm, l)) return false;
  l->kernel += a->dtype == SOL_FP16 ? 0 : EMBED_CELLS_PER_TYPE;
  return true;
}

// Short rows that start anywhere; false: another kernel has to take them.
static bool plan_rows(const SolContext *ctx, const SolEmbedRmsnorm *a, const Norm *norm, EmbedParams *p,
                      OpsLaunch *l) {
  int64_t size = ops_size(a->dtype), bytes = a->n * size;
  enum { TINY_ROWS = 2 * EMBED_THREADS };
  // Rows that are shorter, dense or not, and longer ones of fp32, are faster with the kernels of all norms (measured).
  enum { SHORT = 64, SHORT_APART = 128, LONG_FP32 = 1024 };
  if (norm->out != a->dtype || is_aligned(a, p, norm) || (size == 4 && bytes > LONG_FP32)) return false;
  l->block = EMBED_THREADS;
  int type = a->dtype == SOL_FP32 ? 0 : a->dtype == SOL_FP16 ? 1 : 2;
  if (is_tiny(a, p, norm)) {
    l->kernel = EMBED_TINY;
    l->shared = (uint32_t)(96 + 2 * TINY_ROWS * bytes);
    ops_grid(l->grid, (uint64_t)ops_ceil_div(a->m, TINY_ROWS), 1);
  } else {
    if (bytes < (is_dense(a, norm) ? SHORT : SHORT_APART)) return false;
    if (!set_rows(ctx, a, p, l)) return false;
    ops_grid(l->grid, (uint64_t)ops_ceil_div(a->m, p->warp_rows) * 32, EMBED_THREADS);
  }
  l->kernel += type * EMBED_PER_TYPE;
  return true;
}

// The outputs are larger than L2, where the table may stay: they are stored to be evicted first.
static bool is_streamed(const SolEmbedRmsnorm *a, const Norm *norm) {
  enum { NEAR = 48 << 20, FAR = 64 << 20 };
  double size = (double)ops_size(a->dtype), out = (double)ops_size(norm->out) + (a->embedded ? size : 0);
  return (double)a->vocab * (double)norm->x_stride * size <= NEAR && (double)a->m * (double)a->n * out >= FAR;
}

static EmbedParams params_of(const SolEmbedRmsnorm *a, const Norm *norm) {
  int64_t size = ops_size(a->dtype);
  EmbedParams p = {.table = a->table,
                   .weight = a->weight,
                   .ids = a->ids,
                   .y = a->y,
                   .second = a->embedded,
                   .table_stride = norm->x_stride * size,
                   .y_stride = norm->y_stride * size,
                   .second_stride = ops_stride(a->embedded_stride, a->n) * size,
                   .m = (uint64_t)a->m,
                   .vocab = a->vocab,
                   .bad = a->bad,
                   .n = (int32_t)cpu_min(a->n, INT32_MAX),
                   .wide_ids = id_of(a) == SOL_INT64,
                   .weight_kind = ops_kind(norm->weight_dtype),
                   .y_kind = ops_kind(norm->out),
                   .stream = is_streamed(a, norm),
                   .eps = a->eps,
                   .offset = a->weight_offset,
                   .over_n = (float)(1.0 / (double)a->n)};
  p.ends = ends_bytes(p.y, NULL, p.y_stride, a->n * size);
  p.second_ends = ends_bytes(p.second, NULL, p.second_stride, a->n * size);
  p.table_end = (const char *)a->table + (a->vocab - 1) * p.table_stride + a->n * size;
  return p;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolEmbedRmsnorm *a = args;
  Norm norm = norm_of(a);
  EmbedParams p = params_of(a, &norm);
  OpsLaunch l = {
      .early = ops_has_kernel(ctx, &ops_embed_rmsnorm, NORM_f_big), .params = &p, .bytes = sizeof p};
  NormCall call = norm_call(&norm);
  call.p.second = a->embedded;
  call.p.second_stride = ops_stride(a->embedded_stride, a->n) * ops_size(a->dtype);
  call.p.ids = a->ids;
  call.p.wide_ids = id_of(a) == SOL_INT64;
  call.p.vocab = a->vocab;
  call.p.bad = a->bad;
  call.p.stream = is_streamed(a, &norm);
  OpsLaunch few;
  if (is_tiny(a, &p, &norm) && norm_plan_few(ctx, &call, &few))
    return ops_launch(ctx, &ops_embed_rmsnorm, &few, stream);
  if (plan_chunks(ctx, a, &norm, &p, &l) || plan_rows(ctx, a, &norm, &p, &l))
    return ops_launch(ctx, &ops_embed_rmsnorm, &l, stream);
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

static void cost(const void *args, SolOpArgs *op) {
  const SolEmbedRmsnorm *a = args;
  *op = (SolOpArgs){NORM_COST(a), .id_dtype = a->id_dtype, .vocab = a->vocab};
}

// dim[2]: rows of the table
static const int64_t bench[][4] = {{1, 4096, 65536},   {8, 4096, 65536},    {64, 8192, 65536},
                                   {512, 4096, 65536}, {8192, 4096, 65536}, {16384, 8192, 65536},
                                   {3001, 5125, 65536}};

const OpsDef ops_embed_rmsnorm = {
    .name = "embed_rmsnorm",
    OPS_ARGS(SolEmbedRmsnorm, "MxNxV"),
    OPS_OPTIONS(option_names),
    NORM_OP_WITH(bench, norm_embed_shared),
    OPS_KERNELS("embed_rmsnorm", kernel_names),
};
