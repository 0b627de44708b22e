// y = x
#include "kernels/copy/copy.h"
#include "base/error.h"
#include "ops/cpu.h"

enum {
#define COPY(name, bytes) KERNEL_##bytes,
#include "kernels/copy/copy.def"
  KERNEL_CONVERT,
  KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define COPY(name, bytes) #name,
#include "kernels/copy/copy.def"
    "sol_copy_convert"};

static SolDtype out_of(const SolCopy *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static bool make(const OpsCase *c, void *args) {
  SolCopy *a = args;
  *a = (SolCopy){.m = c->dim[0], .n = c->dim[1], .dtype = c->dtype, .out_dtype = c->out_dtype};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + 2 * c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolCopy *a = args;
  v[0] = (OpsView){"y",     offsetof(SolCopy, y), a->y,         out_of(a),
                   OPS_OUT, .rows = a->m,         .cols = a->n, .stride = a->y_stride};
  v[1] = (OpsView){"x",    offsetof(SolCopy, x), a->x,         a->dtype,
                   OPS_IN, .rows = a->m,         .cols = a->n, .stride = a->x_stride};
  return 2;
}

static SolStatus check(const void *args, SolError *err) {
  const SolCopy *a = args;
  SolDtype out = out_of(a);
  if (a->dtype == out && sol_dtype_bits(out) >= 8) return SOL_OK;
  if (ops_is_real(a->dtype) && ops_is_real(out)) return SOL_OK;
  return sol_fail(err, SOL_ERR_ARGUMENT, "copy: cannot turn %s into %s", sol_dtype_name(a->dtype),
                  sol_dtype_name(out));
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolCopy *a = args;
  int64_t xs = a->x_stride ? a->x_stride : a->n, ys = a->y_stride ? a->y_stride : a->n;
  int64_t size = sol_dtype_bits(a->dtype) / 8;
  for (int64_t row = begin; row < end; row++) {
    if (out_of(a) == a->dtype) {
      memcpy((char *)a->y + row * ys * size, (const char *)a->x + row * xs * size, (size_t)(a->n * size));
      continue;
    }
    CPU_CHUNKS(at, c, a->n) {
      float f[CPU_CHUNK];
      cpu_load(a->dtype, a->x, row * xs + at, c, f);
      cpu_store(out_of(a), a->y, row * ys + at, c, f);
    }
  }
}

static SolStatus cpu(SolContext *ctx, const void *args) {
  const SolCopy *a = args;
  cpu_parallel(ctx, a->m, a->m * a->n, cpu_rows, a);
  return SOL_OK;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolCopy *a = args;
  int64_t xs = a->x_stride ? a->x_stride : a->n, ys = a->y_stride ? a->y_stride : a->n;
  int64_t m = a->m, n = a->n, size = sol_dtype_bits(a->dtype) / 8;
  if (xs == n && ys == n) n *= m, m = 1; // dense: one long row
  CopyParams p = {a->y, a->x, .x_kind = ops_kind(a->dtype), .y_kind = ops_kind(out_of(a))};
  int kernel = KERNEL_CONVERT;
  int64_t unit = size;
  if (out_of(a) == a->dtype) {
    int64_t bits = ops_align(a->x, xs * size, m) | ops_align(a->y, ys * size, m) | (n * size);
    unit = bits & -bits;
    unit = unit > 16 ? 16 : unit;
    kernel = unit == 16  ? KERNEL_16
             : unit == 8 ? KERNEL_8
             : unit == 4 ? KERNEL_4
             : unit == 2 ? KERNEL_2
                         : KERNEL_1;
  }
  p.per_row = (uint64_t)(n * size / unit);
  p.total = p.per_row * (uint64_t)m;
  p.x_stride = xs * size / unit;
  p.y_stride = ys * size / unit;
  OpsLaunch l = {.kernel = kernel, .block = 256, .params = &p, .bytes = sizeof p};
  ops_grid(l.grid, p.total, l.block);
  return ops_launch(ctx, &ops_copy, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolCopy *a = args;
  for (int64_t i = 0; i < a->m * a->n; i++) at[0][i] = at[1][i];
}

static SolStatus cost(const void *args, SolOpArgs *op, SolError *err) {
  const SolCopy *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype, .out_dtype = a->out_dtype};
  return ops_cost_op("copy", op, err);
}

static const int64_t bench[][4] = {{512, 4096}, {2048, 4096}, {8192, 4096}, {16384, 8192}, {3001, 5125}};

const OpsDef ops_copy = {
    .name = "copy",
    .shape = "MxN",
    .args_bytes = sizeof(SolCopy),
    .make = make,
    .views = views,
    .check = check,
    .cpu = cpu,
    .launch = launch,
    .reference = reference,
    .cost = cost,
    .shapes = ops_row_shapes,
    .shape_count = OPS_ROW_SHAPES,
    .bench = bench,
    .bench_count = (int)SOL_COUNT(bench),
    .module = "copy",
    .kernels = kernel_names,
    .kernel_count = KERNEL_COUNT,
};

SolStatus sol_copy(SolContext *context, const SolCopy *args, SolStream stream) {
  return ops_call(context, &ops_copy, args, stream);
}

SolStatus sol_copy_cost(const SolCopy *args, SolCost *out, SolError *err) {
  return ops_cost(&ops_copy, args, out, err);
}
