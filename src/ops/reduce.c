// Sum, max, mean or sum of squares over each row, each column, or all
#include <math.h>

#include "base/error.h"
#include "kernels/common.h"
#include "kernels/reduce/reduce.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/narrow.h"
#include "ops/spans.h"

enum {
  KERNEL_ROWS = SPAN_KERNELS - 1, // those of rows.def come first
#define OTHER(name) KERNEL_##name,
#include "kernels/reduce/reduce.def"
  KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define SPAN(threads, rows, cluster, upto)    SPAN_NAMES("sol_reduce", threads, cluster)
#define SPAN_90(threads, rows, cluster, upto) SPAN(threads, rows, cluster, upto)
#include "kernels/reduce/rows.def"
#define OTHER(name) #name,
#include "kernels/reduce/reduce.def"
};

static const char *const option_names[] = {
    "sum of rows",    "max of rows",     "mean of rows",       "squares of rows", "sum of columns",
    "max of columns", "mean of columns", "squares of columns", "sum of all",      "max of all",
    "mean of all",    "squares of all",  "columns of a batch",
};
enum { BATCH_OPTION = 12, BATCH_OF_CASE = 3 };

static SolDtype out_of(const SolReduce *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static int64_t stride_of(const SolReduce *a) {
  return ops_stride(a->x_stride, a->n);
}

static int64_t batch_of(const SolReduce *a) {
  return a->batch ? a->batch : 1;
}

static int64_t batch_stride_of(const SolReduce *a) {
  return ops_stride(a->x_batch_stride, a->m * stride_of(a));
}

// How a reduction is divided on a GPU. It depends on the shape alone: the same input gives the same bits on
// every GPU.
typedef struct Plan {
  int64_t parts; // blocks per result; if more than 1, each writes a value to the workspace
  int64_t rows;  // of columns: rows of a part
  int lanes;     // of columns: neighbouring chunks of a block; 0: few rows, a thread has a chunk of all
  bool cluster;  // of columns: the parts fit into one cluster
  int64_t m, n;  // as the kernel gets them: all of a dense tensor is one row
} Plan;

enum {
  THREADS = 256,
  MANY_BLOCKS = 512,
  MOST_PARTS = 512,
  MOST_BLOCKS = 4096,
  CLUSTER = 8, // blocks of one, at most
  CLUSTER_BLOCKS = 1024,
  ENOUGH_BLOCKS = 448, // in clusters
  FEW_ROWS = 32,       // fewer leave threads of a strip less to read than they can have in flight
  FEW_COLUMNS = 1 << 15,
  FEW_THREADS = 128
};

static int lanes_for(int64_t chunks, int most) {
  int lanes = 1;
  while (lanes < most && lanes < chunks) lanes *= 2;
  return lanes;
}

// Strips of n columns, `lanes` chunks each. Off 16 bytes they overlap by a chunk.
static int64_t column_strips(int64_t n, int64_t per, int lanes, bool wide) {
  return ops_ceil_div(n, (lanes - !wide) * per);
}

// Lanes of a strip that holds n columns, if `most` of them do.
static int column_lanes(int64_t n, int64_t per, int most, bool wide) {
  return lanes_for(ops_ceil_div(n, per) + !wide, most);
}

// The parts of a strip of `lanes` chunks: each has at least eight rows per thread.
static int64_t column_parts(const SolReduce *a, int64_t strips, int lanes, int64_t blocks, int64_t most) {
  return cpu_min(cpu_min(blocks / strips, most), a->m / (8 * (THREADS / lanes)));
}

static Plan plan_of(const SolReduce *a) {
  Plan p = {1, a->m, 1, false, a->m, a->n};
  int64_t per = a->dtype == SOL_FP32 ? 4 : 8;
  if (a->axis == SOL_AXIS_COLUMNS && a->m < FEW_ROWS && a->n >= FEW_COLUMNS) {
    p.lanes = 0;
  } else if (a->axis == SOL_AXIS_COLUMNS) {
    bool wide = stride_of(a) % per == 0;
    p.lanes = column_lanes(a->n, per, 32, wide);
    int64_t parts =
        column_parts(a, column_strips(a->n, per, p.lanes, wide), p.lanes, MANY_BLOCKS, MOST_PARTS);
    int64_t blocks = ENOUGH_BLOCKS - 1;
    // A cluster saves the second launch; strips may be narrower for that, down to a cache line.
    for (int lanes = p.lanes; lanes >= 8 && (parts > 1 || p.cluster); lanes /= 2) {
      int64_t strips = column_strips(a->n, per, lanes, wide);
      int64_t here = column_parts(a, strips, lanes, CLUSTER_BLOCKS, CLUSTER), all = here * strips;
      if (all > blocks) blocks = all, parts = here, p.lanes = lanes, p.cluster = true;
    }
    if (parts > 1) {
      p.rows = ops_ceil_div(a->m, parts);
      p.parts = ops_ceil_div(a->m, p.rows);
    }
  } else if (a->axis == SOL_AXIS_ALL) {
    if (stride_of(a) == a->n || a->m == 1) p.n *= p.m, p.m = 1;
    int64_t units = p.m == 1 ? p.n / per : p.m * (p.n / per + 1);
    p.parts = cpu_min(ops_ceil_div(units + 1, 4 * THREADS), MOST_BLOCKS);
  }
  return p;
}

static int64_t workspace_of(const SolReduce *a) {
  if (a->m <= 0 || a->n <= 0 || a->m > INT64_MAX / 16 / a->n) return 0;
  Plan p = plan_of(a);
  int64_t values = a->axis == SOL_AXIS_COLUMNS ? a->n : 1;
  return p.parts > 1 ? ops_times(p.parts * values * 4, batch_of(a)) : 0;
}

int64_t sol_reduce_workspace(const SolContext *context, const SolReduce *args) {
  return context && context->driver && args ? workspace_of(args) : 0;
}

static bool make(const OpsCase *c, void *args) {
  SolReduce *a = args;
  *a = (SolReduce){OPS_MATRIX_CASE(c), .reduction = (SolReduction)(c->option % 4),
                   .axis = (SolAxis)(c->option / 4)};
  if (c->pad) a->x_stride = a->n + c->pad;
  if (c->option == BATCH_OPTION) {
    a->reduction = SOL_REDUCE_SUM, a->axis = SOL_AXIS_COLUMNS, a->batch = BATCH_OF_CASE;
    if (c->pad) a->x_batch_stride = a->m * a->x_stride + c->pad;
  }
  a->workspace_bytes = workspace_of(a);
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolReduce *a = args;
  int64_t results = a->axis == SOL_AXIS_ROWS ? a->m : a->axis == SOL_AXIS_COLUMNS ? a->n : 1;
  bool any = a->m && a->n;
  // Signed terms may cancel, and then no relative error can be promised: tests sum positive ones.
  OpsFill fill =
      a->reduction == SOL_REDUCE_SUM || a->reduction == SOL_REDUCE_MEAN ? OPS_FILL_POSITIVE : OPS_FILL_NORMAL;
  bool batch = a->axis == SOL_AXIS_COLUMNS;
  v[0] = OPS_VIEW(SolReduce, y, out_of(a), OPS_OUT, .rows = batch && a->batch ? a->batch : 1,
                  .cols = any ? results : 0);
  v[1] = OPS_VIEW(SolReduce, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride,
                  .batch = batch ? a->batch : 0, .batch_stride = batch ? a->x_batch_stride : 0, .fill = fill);
  v[2] = OPS_VIEW(SolReduce, workspace, SOL_FP32, OPS_OUT, .rows = 1,
                  .cols = any ? a->workspace_bytes / 4 : 0, .scratch = true);
  return 3;
}

static SolStatus check(const void *args, SolError *err) {
  const SolReduce *a = args;
  if ((unsigned)a->reduction > SOL_REDUCE_SUM_SQUARES)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such reduction: %d", (int)a->reduction);
  if ((unsigned)a->axis > SOL_AXIS_ALL)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such axis: %d", (int)a->axis);
  if (a->batch > 1 && a->axis != SOL_AXIS_COLUMNS)
    return sol_fail(err, SOL_ERR_ARGUMENT,
                    "a batch is for sums of columns; rows of a batch are rows of one matrix");
  if (a->workspace_bytes < 0) return sol_fail(err, SOL_ERR_ARGUMENT, "workspace_bytes is negative");
  return ops_check_reals(a->dtype, out_of(a), err);
}

// CPU
static double nothing(const SolReduce *a) {
  return a->reduction == SOL_REDUCE_MAX ? -INFINITY : 0;
}

static double add(const SolReduce *a, double x, double y) {
  if (a->reduction == SOL_REDUCE_MAX) return x > y || x != x ? x : y;
  return x + y;
}

// `count` elements from `start` on. Several partial sums, so that the compiler vectorises the loop; they are
// added in double.
static double cpu_part(const SolReduce *a, int64_t start, int64_t count) {
  enum { LANES = 16 };
  double sum = nothing(a);
  float f[CPU_CHUNK];
  CPU_CHUNKS(at, c, count) {
    float part[LANES];
    for (int j = 0; j < LANES; j++) part[j] = (float)nothing(a);
    cpu_load(a->dtype, a->x, start + at, c, f);
    for (int64_t i = c; i % LANES; i++) f[i] = (float)nothing(a);
    for (int64_t i = 0; i < c; i += LANES)
      if (a->reduction == SOL_REDUCE_MAX)
        for (int j = 0; j < LANES; j++)
          part[j] = f[i + j] > part[j] || f[i + j] != f[i + j] ? f[i + j] : part[j];
      else if (a->reduction == SOL_REDUCE_SUM_SQUARES)
        for (int j = 0; j < LANES; j++) part[j] += f[i + j] * f[i + j];
      else
        for (int j = 0; j < LANES; j++) part[j] += f[i + j];
    for (int j = 0; j < LANES; j++) sum = add(a, sum, (double)part[j]);
  }
  return sum;
}

static void cpu_result(const SolReduce *a, int64_t i, double sum) {
  int64_t terms = a->axis == SOL_AXIS_ROWS ? a->n : a->axis == SOL_AXIS_COLUMNS ? a->m : a->m * a->n;
  float f = (float)(a->reduction == SOL_REDUCE_MEAN ? sum / (double)terms : sum);
  cpu_store(out_of(a), a->y, i, 1, &f);
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolReduce *a = args;
  for (int64_t row = begin; row < end; row++) cpu_result(a, row, cpu_part(a, row * stride_of(a), a->n));
}

enum { STRIP = 256 };

static void cpu_strips(const void *args, int64_t begin, int64_t end) {
  const SolReduce *a = args;
  int64_t strips = ops_ceil_div(a->n, STRIP);
  for (int64_t strip = begin; strip < end; strip++) {
    int64_t batch = strip / strips, first = strip % strips * STRIP, c = cpu_min(a->n - first, STRIP);
    double sum[STRIP];
    float f[STRIP];
    for (int64_t i = 0; i < c; i++) sum[i] = nothing(a);
    for (int64_t row = 0; row < a->m; row++) {
      cpu_load(a->dtype, a->x, batch * batch_stride_of(a) + row * stride_of(a) + first, c, f);
      if (a->reduction == SOL_REDUCE_SUM_SQUARES)
        for (int64_t i = 0; i < c; i++) sum[i] += (double)f[i] * (double)f[i];
      else
        for (int64_t i = 0; i < c; i++) sum[i] = add(a, sum[i], (double)f[i]);
    }
    for (int64_t i = 0; i < c; i++) cpu_result(a, batch * a->n + first + i, sum[i]);
  }
}

enum { CPU_PARTS = 256 }; // for any number of threads, so that the order of additions stays the same
typedef struct Job {
  const SolReduce *a;
  double *sums; // CPU_PARTS
} Job;

static void cpu_parts(const void *arg, int64_t begin, int64_t end) {
  const Job *job = arg;
  const SolReduce *a = job->a;
  int64_t total = a->m * a->n, size = ops_ceil_div(total, CPU_PARTS);
  for (int64_t part = begin; part < end; part++) {
    double sum = nothing(a);
    int64_t at = cpu_min(part * size, total), stop = cpu_min(at + size, total), c;
    for (; at < stop; at += c) {
      int64_t row = at / a->n, column = at % a->n;
      c = cpu_min(a->n - column, stop - at);
      sum = add(a, sum, cpu_part(a, row * stride_of(a) + column, c));
    }
    job->sums[part] = sum;
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolReduce *a = args;
  int64_t total = a->m * a->n;
  if (a->axis == SOL_AXIS_ROWS)
    cpu_parallel(ctx, a->m, total, cpu_rows, a);
  else if (a->axis == SOL_AXIS_COLUMNS)
    cpu_parallel(ctx, batch_of(a) * ops_ceil_div(a->n, STRIP), batch_of(a) * total, cpu_strips, a);
  else {
    double sums[CPU_PARTS], sum = nothing(a);
    Job job = {a, sums};
    cpu_parallel(ctx, CPU_PARTS, total, cpu_parts, &job);
    for (int i = 0; i < CPU_PARTS; i++) sum = add(a, sum, sums[i]);
    cpu_result(a, 0, sum);
  }
  return SOL_OK;
}

// GPU
static SolStatus launch_rows(SolContext *ctx, ReduceParams *p, SolStream stream) {
  enum {
    MOST_LANES = 3,
    VECTORS = 8
  }; // a power of two; whole rows of so many 16 bytes need no shared memory
  int in = p->x_kind == KIND_FP32 ? 4 : 2;
  OpsLaunch l = {.early = true, .params = p, .bytes = sizeof *p};
  bool vectors = ops_align(p->x, p->x_stride, 2) == 16 && p->n * in % 16 == 0 && p->n * in >= 16 * VECTORS;
  bool serial = p->x_stride == p->n * in && p->n * in % 16 && p->n * in <= NARROW_SHARED / NARROW_THREADS;
  if (serial || (narrow_holds(p->n, MOST_LANES) && !vectors)) {
    NarrowTensor t[NARROW_TENSORS] = {[NARROW_X] = {p->x, p->x_stride, in}};
    l.kernel = in == 4 ? KERNEL_sol_reduce_4_narrow : KERNEL_sol_reduce_2_narrow;
    if (serial) { // one thread a row, its words in other banks than its neighbours'
      p->narrow = (NarrowShape){.n = (int32_t)p->n};
      narrow_fill(ctx, t, p->m, p->n, &p->narrow, &l);
    } else {
      narrow_plan(ctx, t, p->m, p->n, &p->narrow, &l);
    }
  } else {
    spans_plan(ctx, &ops_reduce, (int64_t)p->m, p->n, in, &l);
  }
  return ops_launch(ctx, &ops_reduce, &l, stream);
}

static SolStatus launch_columns(SolContext *ctx, ReduceParams *p, int64_t parts, int64_t batch,
                                SolStream stream) {
  int in = p->x_kind == KIND_FP32 ? 4 : 2;
  bool few = !p->lanes, wide = !few && ops_align(p->x, p->x_stride | (batch > 1 ? p->x_batch : 0), 2) == 16;
  OpsLaunch l = {.kernel = in == 2 ? (wide ? KERNEL_sol_reduce_2_columns : KERNEL_sol_reduce_2_columns_apart)
                                   : (wide ? KERNEL_sol_reduce_4_columns : KERNEL_sol_reduce_4_columns_apart),
                 .block = few ? FEW_THREADS : THREADS,
                 .early = true,
                 .params = p,
                 .bytes = sizeof *p};
  if (!wide && p->lanes == 1) p->lanes = 2;
  p->strips = (uint32_t)(few ? ops_ceil_div(p->n, FEW_THREADS * 16 / in)
                             : column_strips(p->n, 16 / in, p->lanes, wide));
  if (batch > INT32_MAX / CLUSTER / p->strips)
    return ops_fail(SOL_ERR_RANGE, "reduce: the batch is too large for a grid");
  l.grid[0] = (uint32_t)batch * p->strips;
  if (p->cluster > 1)
    l.grid[0] *= (uint32_t)parts, l.cluster = (uint32_t)parts;
  else
    l.grid[1] = (uint32_t)parts;
  return ops_launch(ctx, &ops_reduce, &l, stream);
}

static SolStatus launch_all(SolContext *ctx, ReduceParams *p, int64_t parts, int64_t batch,
                            SolStream stream) {
  (void)batch;
  OpsLaunch l = {.kernel = p->x_kind == KIND_FP32 ? KERNEL_sol_reduce_4_all : KERNEL_sol_reduce_2_all,
                 .grid = {(uint32_t)parts},
                 .block = THREADS,
                 .early = true,
                 .params = p,
                 .bytes = sizeof *p};
  return ops_launch(ctx, &ops_reduce, &l, stream);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolReduce *a = args;
  Plan plan = plan_of(a);
  int64_t wanted = workspace_of(a), in = ops_size(a->dtype);
  if (a->workspace_bytes < wanted)
    return ops_fail(SOL_ERR_ARGUMENT,
                    "reduce: needs a workspace of %lld bytes (sol_reduce_workspace), not %lld",
                    (long long)wanted, (long long)a->workspace_bytes);
  int64_t terms = a->axis == SOL_AXIS_ROWS ? a->n : a->axis == SOL_AXIS_COLUMNS ? a->m : plan.m * plan.n;
  bool aligned = ops_align(a->x, stride_of(a) * in, 2) == 16;
  ReduceParams last = {.y = a->y,
                       .x = a->x,
                       .m = (uint64_t)plan.m,
                       .n = plan.n,
                       .x_stride = stride_of(a) * in,
                       .x_batch = batch_stride_of(a) * in,
                       .rows = plan.rows,
                       .per_row = (uint64_t)ops_ceil_div(plan.n * in + (aligned ? 0 : 16 - in), 16),
                       .x_kind = ops_kind(a->dtype),
                       .y_kind = ops_kind(out_of(a)),
                       .how = a->reduction == SOL_REDUCE_MAX           ? HOW_MAX
                              : a->reduction == SOL_REDUCE_SUM_SQUARES ? HOW_SQUARES
                                                                       : HOW_SUM,
                       .lanes = plan.lanes,
                       .divisor = a->reduction == SOL_REDUCE_MEAN ? (float)terms : 1};
  if (a->axis == SOL_AXIS_ROWS) return launch_rows(ctx, &last, stream);
  SolStatus (*first)(SolContext *, ReduceParams *, int64_t, int64_t, SolStream) =
      a->axis == SOL_AXIS_COLUMNS ? launch_columns : launch_all;
  if (plan.cluster && ops_has_kernel(ctx, &ops_reduce, SPAN_4_512_8)) last.cluster = (int32_t)plan.parts;
  if (plan.parts == 1 || last.cluster) return first(ctx, &last, plan.parts, batch_of(a), stream);
  ReduceParams parts = last;
  parts.y = a->workspace, parts.y_kind = KIND_FP32, parts.divisor = 1;
  SolStatus status = first(ctx, &parts, plan.parts, batch_of(a), stream);
  if (status) return status;
  last.x = a->workspace, last.x_kind = KIND_FP32;
  if (last.how == HOW_SQUARES) last.how = HOW_SUM;
  if (a->axis == SOL_AXIS_ALL) {
    last.m = 1, last.n = plan.parts, last.x_stride = 0;
    return launch_rows(ctx, &last, stream);
  }
  last.m = (uint64_t)plan.parts, last.rows = plan.parts, last.x_stride = plan.n * 4;
  last.x_batch = plan.parts * plan.n * 4;
  last.lanes =
      column_lanes(plan.n, 4, 8, plan.n % 4 == 0); // few columns per block, so that each has many threads
  return launch_columns(ctx, &last, 1, batch_of(a), stream);
}

static void reference_matrix(const SolReduce *a, const double *from, double *to) {
  int64_t results = a->axis == SOL_AXIS_ROWS ? a->m : a->axis == SOL_AXIS_COLUMNS ? a->n : 1;
  double each = (double)a->m * (double)a->n / (double)results; // elements per result
  for (int64_t i = 0; i < results && a->m && a->n; i++)
    to[i] = a->reduction == SOL_REDUCE_MAX ? -INFINITY : 0;
  for (int64_t row = 0; row < a->m; row++)
    for (int64_t column = 0; column < a->n; column++) {
      double x = from[row * a->n + column];
      double *y = &to[a->axis == SOL_AXIS_ROWS ? row : a->axis == SOL_AXIS_COLUMNS ? column : 0];
      switch (a->reduction) {
      case SOL_REDUCE_MAX: *y = isnan(*y) || isnan(x) ? NAN : fmax(*y, x); break;
      case SOL_REDUCE_SUM: *y += x; break;
      case SOL_REDUCE_MEAN: *y += x / each; break;
      case SOL_REDUCE_SUM_SQUARES: *y += x * x; break;
      }
    }
}

static void reference(const void *args, double *const *at) {
  const SolReduce *a = args;
  for (int64_t b = 0; a->m && a->n && b < batch_of(a); b++)
    reference_matrix(a, at[1] + b * a->m * a->n, at[0] + b * a->n);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolReduce *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a), .axis = a->axis};
}

// The accountant's shape is one matrix.
static void cost_more(const void *args, SolCost *out) {
  const SolReduce *a = args;
  double batch = (double)batch_of(a);
  out->bytes_read *= batch, out->bytes_written *= batch, out->flops *= batch;
}

static const int64_t shapes[][4] = {
    {1, 1},     {3, 3},     {70, 7},     {33, 31}, {17, 250}, {300, 300}, {2, 2000}, {2, 5125},
    {4100, 17}, {3, 33001}, {1, 131100}, {0, 64},  {9, 650},  {5, 1201},  {130, 67},
};
static const int64_t bench[][4] = {{1, 131072}, {8192, 4096}, {32768, 1024}, {262144, 128}, {512, 131072}};

const OpsDef ops_reduce = {
    .name = "reduce",
    OPS_ARGS(SolReduce, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_FUNCTIONS,
    .cost_more = cost_more,
    .slack = 32,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("reduce", kernel_names),
};
