#include "ops/columns.h"

#include "base/error.h"
#include "kernels/columns.h"
#include "ops/ends.h"

enum {
#define COLUMNS_LEAN(name, in, out, x_kind, y_kind, odd, each) KERNEL_##name,
#define COLUMNS_DENSE(in, out)                                 KERNEL_DENSE_##in##_##out,
#define COLUMNS_ANY(in, out, alike)                            KERNEL_##in##_##out##_##alike,
#define COLUMNS_SHORT(in, out)                                 KERNEL_SHORT_##in##_##out,
#define COLUMNS_PAIRS(in, out)                                 KERNEL_PAIRS_##in##_##out,
#define COLUMNS_SINGLE()                                       KERNEL_SINGLE,
#include "kernels/columns.def"
  KERNEL_COUNT
};
_Static_assert((int)KERNEL_COUNT == (int)COLUMNS_KERNELS, "columns.h and kernels/columns.def disagree");

static SolDtype out_of(const Columns *a) {
  return ops_or(a->out_dtype, a->dtype);
}
static SolDtype weight_of(const Columns *a) {
  return ops_or(a->weight_dtype, a->dtype);
}

Columns bias_columns(const SolBias *a) {
  return (Columns){COLUMNS_OF(a),         .vector = a->bias,
                   .scale = a->scale,     .vector_field = offsetof(SolBias, bias),
                   .vector_name = "bias", .vector_optional = true};
}

bool bias_make(const OpsCase *c, void *args) {
  SolBias *a = args;
  *a = (SolBias){OPS_MATRIX_CASE(c), .weight_dtype = c->weight_dtype, .scale = 0.6f};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + (c->option ? 2 : 1) * c->pad;
  return !c->option || c->pad;
}

int columns_views(const Columns *a, OpsView *v) {
  _Static_assert(offsetof(SolBias, y) == offsetof(SolScaleColumns, y), "y is elsewhere");
  _Static_assert(offsetof(SolBias, x) == offsetof(SolScaleColumns, x), "x is elsewhere");
  v[0] = OPS_VIEW(SolBias, y, out_of(a), OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride,
                  .alias = a->dtype == out_of(a) ? 2 : 0);
  v[1] = OPS_VIEW(SolBias, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = (OpsView){a->vector_name, a->vector_field, a->vector,    weight_of(a),
                   OPS_IN,         .rows = 1,       .cols = a->n, .optional = a->vector_optional};
  return 3;
}

SolStatus columns_check(const Columns *a, SolError *err) {
  SolStatus status = ops_check_reals(a->dtype, out_of(a), err);
  if (status || weight_of(a) == a->dtype || weight_of(a) == SOL_FP32) return status;
  return sol_fail(err, SOL_ERR_ARGUMENT, "%s must be %s or fp32, not %s", a->vector_name,
                  sol_dtype_name(a->dtype), sol_dtype_name(weight_of(a)));
}

int bias_views(const void *args, OpsView *v) {
  Columns a = bias_columns(args);
  return columns_views(&a, v);
}

SolStatus bias_check(const void *args, SolError *err) {
  Columns a = bias_columns(args);
  return columns_check(&a, err);
}

void bias_cost(const void *args, SolOpArgs *op) {
  Columns a = bias_columns(args);
  columns_cost(&a, op);
}

typedef struct CpuWork {
  const Columns *a;
  ColumnsApply *apply;
} CpuWork;

static void cpu_rows(const void *arg, int64_t begin, int64_t end) {
  const CpuWork *work = arg;
  const Columns *a = work->a;
  int64_t xs = ops_stride(a->x_stride, a->n), ys = ops_stride(a->y_stride, a->n);
  CPU_CHUNKS(at, c, a->n) { // the vector's chunk is converted once for all rows
    float v[CPU_CHUNK], f[CPU_CHUNK];
    if (a->vector) cpu_load(weight_of(a), a->vector, at, c, v);
    for (int64_t row = begin; row < end; row++) {
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      work->apply(f, a->vector ? v : NULL, c, a->scale);
      cpu_store(out_of(a), a->y, row * ys + at, c, f);
    }
  }
}

SolStatus columns_cpu(SolContext *ctx, const Columns *a, ColumnsApply *apply) {
  CpuWork work = {a, apply};
  cpu_parallel(ctx, a->m, a->m * a->n, cpu_rows, &work);
  return SOL_OK;
}

static int by_kind(const Columns *a, int fp32, int fp16, int bf16) {
  return a->dtype == SOL_FP32 ? fp32 : a->dtype == SOL_FP16 ? fp16 : bf16;
}

// Where there is work for all threads although each takes several chunks, up to `per` rows apart: COLUMNS_DENSE.
static bool is_large(const SolContext *ctx, const Columns *a, int per) {
  int64_t wave = (int64_t)ctx->sms * 2048; // threads
  return a->m >= per && a->n <= ELEMENTWISE_SMALL / per && a->m * a->n / per > COLUMNS_EACH * wave;
}

// The specialised kernel for this call, or -1. Its results are bitwise those of the general one.
static int lean_kernel(const SolContext *ctx, const Columns *a, int64_t xs, int64_t ys) {
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  int per = elementwise_chunk(a->dtype, out_of(a)), weight = ops_size(weight_of(a));
  bool flat = elementwise_flat(a->m, a->n, a->y_stride, a->x_stride), odd = a->n % per != 0;
  int64_t most = odd ? ELEMENTWISE_SMALL - per : ELEMENTWISE_SMALL;
  bool dense = odd && flat && is_large(ctx, a, per);
  bool other = in == out && a->dtype != out_of(a); // fp16 to bf16, and back
  if ((other && odd && !dense) || a->n > most || (odd ? a->n : a->n / per) > most / a->m) return -1;
  if (!elementwise_aligned(a->x, flat ? 0 : xs * in, per * in)) return -1;
  if (!elementwise_aligned(a->y, flat ? 0 : ys * out, per * out)) return -1;
  int whole = per * weight > 16 ? 16 : per * weight, part = 4 * weight;
  if (a->vector && !elementwise_aligned(a->vector, 0, odd ? part : whole)) return -1;
  if (dense) return KERNEL_DENSE_2_2 + 2 * (in == 4) + (out == 4);
  if (odd) return flat && in == out ? by_kind(a, KERNEL_odd_fp32, KERNEL_odd_fp16, KERNEL_odd_bf16) : -1;
  if (in != out) return in == 2 ? KERNEL_wider : KERNEL_narrower;
  if (other) return KERNEL_other;
  if (in == 4 && flat && elementwise_two(ctx, a->m * a->n / per)) return KERNEL_fp32_two;
  return by_kind(a, KERNEL_fp32, KERNEL_fp16, KERNEL_bf16);
}

static SolStatus launch_lean(SolContext *ctx, const OpsDef *def, const Columns *a, int kernel,
                             SolStream stream) {
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  int64_t per = elementwise_chunk(a->dtype, out_of(a)), all = a->m * a->n;
  bool odd = a->n % per != 0;
  ColumnsLean p = {.y = a->y,
                   .x = a->x,
                   .vector = a->vector,
                   .y_stride = (ops_stride(a->y_stride, a->n)) * out,
                   .x_stride = (ops_stride(a->x_stride, a->n)) * in,
                   .chunks = (uint32_t)((all + per - 1) / per),
                   .total = odd ? (uint32_t)all : 0,
                   .whole = (uint32_t)(all / per),
                   .divider = elementwise_divider32((uint32_t)(odd ? a->n : a->n / per)),
                   .x_kind = ops_kind(a->dtype),
                   .y_kind = ops_kind(out_of(a)),
                   .vector_kind = ops_kind(weight_of(a)),
                   .ends = ends_bytes(a->y, a->x, ops_stride(a->y_stride, a->n) * out, a->n * out),
                   .scale = a->scale};
  bool two = kernel == KERNEL_fp32_two;
  uint64_t threads = odd ? p.whole + (uint64_t)(all % per) : p.chunks;
  if (kernel >= KERNEL_DENSE_2_2) {
    int64_t shared = a->n & -a->n; // what n and per, a power of two, have in common
    p.period = elementwise_divider32((uint32_t)(a->n / shared));
    threads = (uint64_t)ops_ceil_div(p.chunks, COLUMNS_EACH * a->n / shared) * p.period.by;
  }
  OpsLaunch l = {.kernel = kernel, .block = two ? 128 : 256, .early = true, .params = &p, .bytes = sizeof p};
  ops_grid(l.grid, threads, 256);
  return ops_launch(ctx, def, &l, stream);
}

// Whether every chunk of y, of `per` elements on its own boundary, starts where one of x does.
static bool is_alike(const Columns *a, int64_t xs, int64_t ys, bool flat, int per) {
  uintptr_t x = (uintptr_t)a->x / (uintptr_t)ops_size(a->dtype),
            y = (uintptr_t)a->y / (uintptr_t)ops_size(out_of(a));
  return (x - y) % (uintptr_t)per == 0 && (flat || (xs - ys) % per == 0);
}

SolStatus columns_launch(SolContext *ctx, const OpsDef *def, const Columns *a, SolStream stream) {
  int64_t ys = ops_stride(a->y_stride, a->n), xs = ops_stride(a->x_stride, a->n);
  int lean = lean_kernel(ctx, a, xs, ys);
  bool small = elementwise_small(ctx, a->m, a->n);
  if (small && lean >= KERNEL_odd_fp32) lean = -1;
  if (lean >= 0) return launch_lean(ctx, def, a, lean, stream);
  enum { THREADS = 256 };
  bool flat = elementwise_flat(a->m, a->n, a->y_stride, a->x_stride);
  bool wide_in = a->dtype == SOL_FP32, wide_out = out_of(a) == SOL_FP32;
  int per = elementwise_chunk(a->dtype, out_of(a));
  bool alike = is_alike(a, xs, ys, flat, per);
  // Of a thread's rows, COLUMNS_APART apart, only the first counts.
  int64_t rows = flat ? a->m : ops_ceil_div(a->m, COLUMNS_ROWS * COLUMNS_APART) * COLUMNS_APART;
  ColumnsParams p = {
      .y = a->y,
      .x = a->x,
      .vector = a->vector,
      .spread = elementwise_spread(a->y, rows, a->n, a->y_stride, per, wide_out ? 4 : 2, flat, THREADS),
      .n = a->n,
      .y_stride = ys,
      .x_stride = xs,
      .x_kind = ops_kind(a->dtype),
      .y_kind = ops_kind(out_of(a)),
      .vector_kind = ops_kind(weight_of(a)),
      .flat = flat,
      .pieces = a->n >= 16 && a->n <= ELEMENTWISE_SMALL - 8,
      .scale = a->scale};
  p.spread.last = flat ? 0 : a->m - 1;
  OpsLaunch l = {.kernel = KERNEL_2_2_0 + 4 * wide_in + 2 * wide_out + alike,
                 .block = THREADS,
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  uint32_t each = 1; // chunks of a thread
  int in = ops_size(a->dtype), out = wide_out ? 4 : 2;
  Spread singles = elementwise_rows((uint64_t)a->n, (uint64_t)a->m, a->n);
  bool several = !small && elementwise_several(&singles, xs * in, ys * out);
  bool pairs = several && !flat && ys == a->n && elementwise_aligned(a->y, 0, 2 * out);
  if (small || pairs || elementwise_single(a->n, out, flat)) {
    p.spread = singles;
    p.spread.ends = ends_bytes(a->y, a->x, ys * out, a->n * out);
    l.kernel =
        several ? (pairs ? KERNEL_PAIRS_2_2 : KERNEL_SHORT_2_2) + 2 * wide_in + wide_out : KERNEL_SINGLE;
    each = several ? ELEMENTWISE_SINGLES * (pairs ? 2 : 1) : 1;
  }
  ops_grid(l.grid, p.spread.chunks, l.block * each);
  return ops_launch(ctx, def, &l, stream);
}

void columns_reference(const Columns *a, double *const *at, ColumnsReference *f, double none) {
  for (int64_t row = 0; row < a->m; row++)
    for (int64_t c = 0; c < a->n; c++)
      at[0][row * a->n + c] = f(at[1][row * a->n + c], at[2] ? at[2][c] : none, (double)a->scale);
}

void columns_cost(const Columns *a, SolOpArgs *op) {
  *op = (SolOpArgs){OPS_MATRIX_COST(a), .weight_dtype = a->weight_dtype};
}

const char *const columns_options[COLUMNS_OPTIONS] = {"", "two strides"};

// Rows shorter than a chunk, chunks that hold parts of several rows, several blocks, one row over many
// blocks.
const int64_t columns_shapes[COLUMNS_SHAPES][4] = {
    {1, 1},   {5, 1},    {5, 2},    {3, 3},    {40, 7},   {33, 31},   {7, 128}, {300, 9},
    {2, 769}, {3, 1023}, {4, 4096}, {2, 5125}, {1, 8191}, {1, 65536}, {0, 64},  {3, 0}};
