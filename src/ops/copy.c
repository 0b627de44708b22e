// y = x
#include "kernels/copy/copy.h"
#include "base/error.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/ends.h"

enum {
#define COPY(name, bytes) KERNEL_##bytes,
#include "kernels/copy/copy.def"
  KERNEL_TWO,
  KERNEL_ANY,
#define CONVERT(in, out) KERNEL_LEAN_##in##_##out, KERNEL_ANY_##in##_##out,
#include "kernels/copy/copy.def"
  KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define COPY(name, bytes) #name,
#include "kernels/copy/copy.def"
    "sol_copy_two",
    "sol_copy_any",
#define CONVERT(in, out) "sol_copy_lean_" #in "_" #out, "sol_copy_any_" #in "_" #out,
#include "kernels/copy/copy.def"
};

static SolDtype out_of(const SolCopy *a) {
  return ops_or(a->out_dtype, a->dtype);
}

static bool make(const OpsCase *c, void *args) {
  SolCopy *a = args;
  *a = (SolCopy){OPS_MATRIX_CASE(c)};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = a->n + 2 * c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolCopy *a = args;
  v[0] = OPS_VIEW(SolCopy, y, out_of(a), OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride);
  v[1] = OPS_VIEW(SolCopy, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  return 2;
}

static SolStatus check(const void *args, SolError *err) {
  const SolCopy *a = args;
  SolDtype out = out_of(a);
  if (a->dtype == out && sol_dtype_bits(out) >= 8) return SOL_OK;
  return ops_check_reals(a->dtype, out, err);
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolCopy *a = args;
  int64_t xs = ops_stride(a->x_stride, a->n), ys = ops_stride(a->y_stride, a->n);
  int64_t size = ops_size(a->dtype);
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

// The same type: bytes are moved. Aligned rows of whole 16 bytes take one access per thread; so do short
// rows and small tensors, as wide as their alignment allows. Other rows are written in aligned vectors of 16 bytes, each put
// together from what x has there.
static int plan_bytes(const SolContext *ctx, const SolCopy *a, CopyParams *p, int64_t m, int64_t n,
                      int64_t xs, int64_t ys) {
  enum { SHORT = 64 }; // bytes of a row
  int64_t size = ops_size(a->dtype), row = n * size;
  int64_t bits = ops_align(a->x, xs * size, m) | ops_align(a->y, ys * size, m) | row | 16,
          unit = bits & -bits;
  bool small = elementwise_small(ctx, m, row / unit);
  if (unit < 16 && row >= SHORT && !small) {
    p->spread = elementwise_spread(a->y, m, row, ys * size, 16, 1, m == 1, 256);
    p->x_stride = xs * size;
    p->y_stride = ys * size;
    p->size = (int32_t)(size > 4 ? 4 : size);
    return KERNEL_ANY;
  }
  uint64_t per_row = (uint64_t)(row / unit);
  p->spread = (Spread){.chunks = per_row * (uint64_t)m,
                       .divider = elementwise_divider(per_row),
                       .ends = m > 1 ? ends_bytes(a->y, a->x, ys * size, row) : 0};
  p->x_stride = xs * size / unit;
  p->y_stride = ys * size / unit;
  return unit == 16  ? KERNEL_16
         : unit == 8 ? KERNEL_8
         : unit == 4 ? KERNEL_4
         : unit == 2 ? KERNEL_2
                     : KERNEL_1;
}

static int plan_convert(const SolCopy *a, CopyParams *p, int64_t m, int64_t n, int64_t xs, int64_t ys) {
  int in = ops_size(a->dtype), out = ops_size(out_of(a));
  int per = elementwise_chunk(a->dtype, out_of(a));
  int kernel = in == 4 ? KERNEL_LEAN_4_2 : out == 4 ? KERNEL_LEAN_2_4 : KERNEL_LEAN_2_2;
  bool lean = m == 1 && n % per == 0 && elementwise_aligned(a->x, 0, per * in) &&
              elementwise_aligned(a->y, 0, per * out);
  p->spread = elementwise_spread(a->y, m, n, ys, per, out, m == 1, 256);
  p->x_stride = xs;
  p->y_stride = ys;
  return lean ? kernel : kernel + 1;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolCopy *a = args;
  int64_t xs = ops_stride(a->x_stride, a->n), ys = ops_stride(a->y_stride, a->n);
  int64_t m = a->m, n = a->n;
  if (xs == n && ys == n) n *= m, m = 1; // dense: one long row
  CopyParams p = {a->y, a->x, .x_kind = ops_kind(a->dtype), .y_kind = ops_kind(out_of(a)), .flat = m == 1};
  int kernel =
      out_of(a) == a->dtype ? plan_bytes(ctx, a, &p, m, n, xs, ys) : plan_convert(a, &p, m, n, xs, ys);
  if (kernel == KERNEL_16 && p.flat && elementwise_two(ctx, (int64_t)p.spread.chunks)) kernel = KERNEL_TWO;
  OpsLaunch l = {.kernel = kernel,
                 .block = kernel == KERNEL_TWO ? 128 : 256,
                 .early = true,
                 .params = &p,
                 .bytes = sizeof p};
  ops_grid(l.grid, p.spread.chunks, 256);
  return ops_launch(ctx, &ops_copy, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolCopy *a = args;
  for (int64_t i = 0; i < a->m * a->n; i++) at[0][i] = at[1][i];
}

static void cost(const void *args, SolOpArgs *op) {
  const SolCopy *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a)};
}

static const int64_t bench[][4] = {{512, 4096}, {2048, 4096}, {8192, 4096}, {16384, 8192}, {3001, 5125}};

const OpsDef ops_copy = {
    .name = "copy",
    OPS_ARGS(SolCopy, "MxN"),
    OPS_OWN_ROWS,
    OPS_CASES(ops_row_shapes, bench),
    OPS_KERNELS("copy", kernel_names),
};
