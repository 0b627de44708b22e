// y[i] = column of the largest element of row i
#include <math.h>

#include "base/error.h"
#include "kernels/argmax/argmax.h"
#include "kernels/common.h"
#include "ops/cpu.h"
#include "ops/narrow.h"
#include "ops/select.h"

// Kernels come in pairs, for elements of 2 and of 4 bytes, those for short rows by their kind.
#define ROWS_90(threads, depth, rows, cluster, upto) ROWS(threads, depth, rows, cluster, upto)
static const char *const kernel_names[] = {
#define SERIAL(in, kind)                "sol_argmax_serial_" #kind,
#define SHORT(in, kind, rounds, blocks) "sol_argmax_short_" #kind "_" #rounds,
#define ROWS(threads, depth, rows, cluster, upto)                                                            \
  "sol_argmax_2_rows_" #threads "x" #depth "x" #cluster,                                                     \
      "sol_argmax_4_rows_" #threads "x" #depth "x" #cluster,
#include "kernels/argmax/argmax.def"
};
typedef struct Variant {
  int kind,
      in; // kind: of kernels for short rows, which have one thread or none in this table; in: of the others
  uint32_t threads, rows, cluster;
  int64_t upto; // chunks of a row; of kernels for short rows those of a lane
} Variant;
#define ROWS_90(threads, depth, rows, cluster, upto) ROWS(threads, depth, rows, cluster, upto)
static const Variant variants[SOL_COUNT(kernel_names)] = {
#define SERIAL(in, kind)                {KIND_##kind, 0, 1, 1, 1, 0},
#define SHORT(in, kind, rounds, blocks) {KIND_##kind, 0, 0, 0, 0, rounds},
#define ROWS(threads, depth, rows, cluster, upto)                                                            \
  {0, 2, threads, rows, cluster, upto}, {0, 4, threads, rows, cluster, upto},
#include "kernels/argmax/argmax.def"
};

static SolDtype id_of(const SolArgmax *a) {
  return ops_or(a->id_dtype, SOL_INT32);
}

static bool make(const OpsCase *c, void *args) {
  SolArgmax *a = args;
  *a = (SolArgmax){.m = c->dim[0], .n = c->dim[1], .dtype = c->dtype, .id_dtype = c->id_dtype};
  if (c->pad) a->x_stride = a->n + c->pad;
  return !c->out_dtype || c->out_dtype == c->dtype;
}

static int views(const void *args, OpsView *v) {
  const SolArgmax *a = args;
  v[0] = OPS_VIEW(SolArgmax, y, id_of(a), OPS_OUT, .rows = 1, .cols = a->n ? a->m : 0);
  v[1] = OPS_VIEW(SolArgmax, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  return 2;
}

static SolStatus check(const void *args, SolError *err) {
  const SolArgmax *a = args;
  if (!ops_is_real(a->dtype))
    return sol_fail(err, SOL_ERR_ARGUMENT, "x must be fp32, fp16 or bf16, not %s", sol_dtype_name(a->dtype));
  if (id_of(a) == SOL_INT32 && a->n > INT32_MAX)
    return sol_fail(err, SOL_ERR_RANGE, "rows this long need an int64 y");
  return ops_check_ids("y", id_of(a), err);
}

static int64_t cpu_row(const SolArgmax *a, int64_t start) {
  float best = -INFINITY, f[CPU_CHUNK];
  int64_t column = 0;
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, start + at, c, f);
    float top = -INFINITY;
    bool nan = false;
    for (int64_t i = 0; i < c; i++) {
      top = f[i] > top ? f[i] : top;
      nan |= f[i] != f[i];
    }
    if (!nan && !(top > best)) continue;
    for (int64_t i = 0; i < c; i++) {
      if (f[i] != f[i]) return at + i;
      if (f[i] > best) best = f[i], column = at + i;
    }
  }
  return column;
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolArgmax *a = args;
  int64_t xs = ops_stride(a->x_stride, a->n);
  for (int64_t row = begin; row < end; row++) {
    cpu_store_id(id_of(a), a->y, row, cpu_row(a, row * xs));
  }
}

// Whether rows are short, or do not start on 16 bytes, so that their ends would be read one by one; then lanes that share a
// row and hold it in registers: as few as can, so that what a row costs besides its elements is paid by few.
static bool short_plan(ArgmaxParams *p, int in, OpsLaunch *l) {
  enum { FEW = 64, THREADS = 128, LANE_BITS = 5 }; // FEW: bytes
  bool aligned = (((uintptr_t)p->x | (uintptr_t)p->x_stride) & 15) == 0;
  int64_t chunks = ops_ceil_div(p->n * in + (aligned ? 0 : 16 - in), 16);
  if (chunks > ARGMAX_ROUNDS << LANE_BITS || (aligned && p->n * in % 16 == 0 && p->n * in >= FEW))
    return false;
  while (chunks > ARGMAX_ROUNDS << p->lane_bits) p->lane_bits++;
  p->rounds = (int32_t)ops_ceil_div(chunks, 1 << p->lane_bits);
  l->block = THREADS, l->cluster = 1;
  ops_grid(l->grid, (uint64_t)ops_ceil_div((int64_t)p->m, THREADS >> p->lane_bits), 1);
  return true;
}

static int short_kernel(int kind, uint32_t threads, int64_t rounds) {
  int i = 0;
  while (variants[i].kind != kind || variants[i].threads != threads || variants[i].upto < rounds) i++;
  return i;
}

// Rows of a few elements, dense or so close to each other that their sectors are all there is: as many as fill a block's shared memory, one thread a row. Rows that are whole 16 bytes
// apart would all lie in the same banks. Blocks of long ones have fewer threads, so that an SM has several; where each SM has fewer than BLOCKS, lanes that share a row take less long.
static bool serial_plan(SolContext *ctx, ArgmaxParams *p, int in, OpsLaunch *l) {
  enum { SERIAL_BYTES = 512, LONG = 256, FEW = 64, BLOCKS = 4, SECTOR = 32 };
  int64_t stride = p->x_stride;
  if (stride < p->n * in || stride - p->n * in >= SECTOR || stride % 16 == 0 || stride > SERIAL_BYTES)
    return false;
  if (stride > LONG && p->m < (uint64_t)(FEW * BLOCKS * ctx->sms)) return false;
  NarrowTensor t[NARROW_TENSORS] = {[NARROW_X] = {p->x, stride, in}};
  p->narrow = (NarrowShape){.n = (int32_t)(stride / in)};
  narrow_fill(ctx, t, p->m, stride / in, &p->narrow, l);
  if (stride <= LONG) return true;
  p->narrow.rows = FEW;
  l->block = FEW, l->shared = narrow_places(t, &p->narrow);
  ops_grid(l->grid, (uint64_t)ops_ceil_div((int64_t)p->m, FEW), 1);
  return true;
}

// The choice depends on the rows' length and alignment, never on their number.
static void plan_rows(SolContext *ctx, int64_t rows, int64_t n, int in, OpsLaunch *l) {
  int64_t chunks = n / (16 / in);
  int i = 0;
  for (int k = 0; k < (int)SOL_COUNT(variants); k++) {
    if (variants[k].in != in) continue;
    i = k;
    if (chunks <= variants[k].upto && ops_has_kernel(ctx, &ops_argmax, k)) break;
  }
  const Variant *v = &variants[i];
  l->kernel = i;
  l->block = v->threads * v->rows;
  l->cluster = v->cluster;
  ops_grid(l->grid, (uint64_t)ops_ceil_div(rows, v->rows) * v->cluster, 1);
}

SolStatus argmax_launch(SolContext *ctx, const SolArgmax *a, int64_t y_stride, void *values,
                        int64_t values_stride, bool skip_nan, SolStream stream) {
  int in = ops_size(a->dtype);
  ArgmaxParams p = {.y = a->y,
                    .values = values,
                    .y_stride = y_stride,
                    .values_stride = values_stride,
                    .x = a->x,
                    .m = (uint64_t)a->m,
                    .n = a->n,
                    .x_stride = (ops_stride(a->x_stride, a->n)) * in,
                    .x_kind = ops_kind(a->dtype),
                    .wide = id_of(a) == SOL_INT64,
                    .skip_nan = skip_nan};
  OpsLaunch l = {.early = true, .params = &p, .bytes = sizeof p};
  if (serial_plan(ctx, &p, in, &l)) {
    l.kernel = short_kernel(p.x_kind, 1, 0);
  } else if (short_plan(&p, in, &l)) {
    l.kernel = short_kernel(p.x_kind, 0, p.rounds);
  } else {
    plan_rows(ctx, a->m, a->n, in, &l);
  }
  return ops_launch(ctx, &ops_argmax, &l, stream);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  return argmax_launch(ctx, args, 1, NULL, 0, false, stream);
}

static void reference(const void *args, double *const *at) {
  const SolArgmax *a = args;
  for (int64_t row = 0; row < a->m; row++) {
    const double *x = at[1] + row * a->n;
    int64_t best = 0;
    for (int64_t i = 1; i < a->n && !isnan(x[best]); i++)
      if (isnan(x[i]) || x[i] > x[best]) best = i;
    at[0][row] = (double)best;
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolArgmax *a = args;
  *op = (SolOpArgs){.dim = {a->m, a->n}, .dtype = a->dtype, .id_dtype = a->id_dtype};
}

static const int64_t shapes[][4] = {
    {1, 1},     {5, 2},     {3, 3},     {70, 7},     {33, 31},    {35, 128}, {17, 250},
    {67, 40},   {70, 80},   {9, 770},   {3, 1023},   {5, 2048},   {4, 4096}, {2, 5125},
    {1, 16384}, {1, 30001}, {2, 65536}, {1, 131072}, {1, 131100}, {0, 64},
};
static const int64_t bench[][4] = {{1, 131072}, {64, 131072}, {8192, 4096}, {32768, 1024}, {262144, 128}};

const OpsDef ops_argmax = {
    .name = "argmax",
    OPS_ARGS(SolArgmax, "MxN"),
    OPS_OWN_ROWS,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("argmax", kernel_names),
};
