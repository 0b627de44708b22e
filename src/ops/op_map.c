#include "ops/op_map.h"

#include <math.h>

#include "base/error.h"
#include "kernels/common.h"
#include "ops/ends.h"

enum {
#define MAP_LEAN(in, out, inputs, blocks) KERNEL_##in##_##out##_##inputs,
#define MAP_ANY(in, out, inputs, blocks)  KERNEL_ANY_##in##_##out##_##inputs,
#define MAP_SHORT(in, out, inputs)        KERNEL_SHORT_##in##_##out##_##inputs,
#define MAP_PAIRS(in, out, inputs)        KERNEL_PAIRS_##in##_##out##_##inputs,
#define MAP_EXACT(in, out)                KERNEL_EXACT_LEAN_##in##_##out, KERNEL_EXACT_ANY_##in##_##out,
#include "kernels/map/map.def"
  KERNEL_WIDE,
  KERNEL_COUNT
};
_Static_assert((int)KERNEL_COUNT == (int)MAP_KERNELS, "op_map.h and kernels/map/map.def disagree");
const char *const map_kernels[MAP_KERNELS] = {
#define MAP_LEAN(in, out, inputs, blocks) "sol_map_lean_" #in "_" #out "_" #inputs,
#define MAP_ANY(in, out, inputs, blocks)  "sol_map_any_" #in "_" #out "_" #inputs,
#define MAP_SHORT(in, out, inputs)        "sol_map_short_" #in "_" #out "_" #inputs,
#define MAP_PAIRS(in, out, inputs)        "sol_map_pairs_" #in "_" #out "_" #inputs,
#define MAP_EXACT(in, out)                "sol_map_exact_lean_" #in "_" #out, "sol_map_exact_any_" #in "_" #out,
#include "kernels/map/map.def"
    "sol_map_wide"};

const int64_t map_shapes[MAP_SHAPES][4] = {{1, 1},   {5, 2},    {40, 7},   {33, 31},   {7, 128}, {300, 9},
                                           {2, 769}, {4, 4096}, {1, 8191}, {1, 65536}, {0, 64},  {3, 0}};

static SolDtype out_of(const Map *m) {
  return ops_or(m->out_dtype, m->dtype);
}

bool map_is_narrow(SolDtype d) {
  return ops_is_real(d) || d == SOL_FP8 || d == SOL_INT8;
}

bool map_takes(SolDtype d) {
  return map_is_narrow(d) || d == SOL_FP64 || d == SOL_INT32 || d == SOL_INT64;
}

static int kind_of(SolDtype d) {
  return d == SOL_INT8    ? KIND_INT8
         : d == SOL_FP64  ? KIND_FP64
         : d == SOL_INT32 ? KIND_INT32
         : d == SOL_INT64 ? KIND_INT64
                          : ops_kind(d);
}

// CPU
static void apply(int f, float *restrict a, const float *restrict b, int64_t c) {
  switch (f) {
  case MAP_ADD:
    for (int64_t i = 0; i < c; i++) a[i] += b[i];
    break;
  case MAP_RELU:
    for (int64_t i = 0; i < c; i++) a[i] = a[i] < 0 ? 0 : a[i]; // a NaN is not below 0
    break;
  case MAP_GELU_MUL:
    for (int64_t i = 0; i < c; i++) {
      float z = 0.79788456080f * a[i] * (1 + 0.044715f * a[i] * a[i]);
      a[i] = a[i] / (1 + elementwise_exp(-2 * z)) * b[i];
    }
    break;
  case MAP_RELU_MUL:
    for (int64_t i = 0; i < c; i++) a[i] = (a[i] < 0 ? 0 : a[i]) * b[i];
    break;
  case MAP_SIGMOID_MUL:
    for (int64_t i = 0; i < c; i++) a[i] = 1 / (1 + elementwise_exp(-a[i])) * b[i];
    break;
  case MAP_SILU_MUL:
    for (int64_t i = 0; i < c; i++) a[i] = a[i] / (1 + elementwise_exp(-a[i])) * b[i];
    break;
  default: break;
  }
}

static void narrow_chunk(const Map *m, int64_t a_at, int64_t b_at, int64_t y_at, int64_t c) {
  float f[CPU_CHUNK], g[CPU_CHUNK];
  cpu_load(m->dtype, m->a, a_at, c, f);
  if (m->b) cpu_load(m->dtype, m->b, b_at, c, g);
  for (int64_t i = 0; m->a_scale && i < c; i++) f[i] *= *m->a_scale;
  apply(m->f, f, g, c);
  for (int64_t i = 0; m->y_scale && i < c; i++) f[i] /= *m->y_scale;
  cpu_store(out_of(m), m->y, y_at, c, f);
}

static double wide_load(const Map *m, int64_t i) {
  float f;
  if (m->dtype == SOL_FP64) return ((const double *)m->a)[i];
  if (m->dtype == SOL_INT32) return ((const int32_t *)m->a)[i];
  if (m->dtype == SOL_INT64) return (double)((const int64_t *)m->a)[i];
  cpu_load(m->dtype, m->a, i, 1, &f);
  return (double)f;
}

// To the nearest, ties to even, saturated; a NaN is 0. As doubles: INT64_MAX itself is none.
static double whole(double x, double low, double high) {
  return isnan(x) ? 0 : x <= low ? low : x >= high ? high : rint(x);
}

static void wide_store(const Map *m, int64_t i, double x) {
  float f = (float)x;
  if (out_of(m) == SOL_FP64)
    ((double *)m->y)[i] = x;
  else if (out_of(m) == SOL_INT32)
    ((int32_t *)m->y)[i] = (int32_t)whole(x, INT32_MIN, INT32_MAX);
  else if (out_of(m) == SOL_INT64)
    ((int64_t *)m->y)[i] = x >= 0x1p63 ? INT64_MAX : (int64_t)whole(x, -0x1p63, 0x1p63);
  else
    cpu_store(out_of(m), m->y, i, 1, &f);
}

static void wide_chunk(const Map *m, int64_t a_at, int64_t y_at, int64_t c) {
  double times = m->a_scale ? (double)*m->a_scale : 1, over = m->y_scale ? (double)*m->y_scale : 1;
  for (int64_t i = 0; i < c; i++) wide_store(m, y_at + i, wide_load(m, a_at + i) * times / over);
}

static void cpu_rows(const void *arg, int64_t begin, int64_t end) {
  const Map *m = arg;
  int64_t ys = ops_stride(m->y_stride, m->n), as = ops_stride(m->a_stride, m->n),
          bs = ops_stride(m->b_stride, m->n);
  bool narrow = map_is_narrow(m->dtype) && map_is_narrow(out_of(m));
  for (int64_t row = begin; row < end; row++) CPU_CHUNKS(at, c, m->n) {
      if (narrow)
        narrow_chunk(m, row * as + at, row * bs + at, row * ys + at, c);
      else
        wide_chunk(m, row * as + at, row * ys + at, c);
    }
}

SolStatus map_cpu(SolContext *ctx, const Map *m) {
  cpu_parallel(ctx, m->m, m->m * m->n, cpu_rows, m);
  return SOL_OK;
}

// GPU
static MapParams params_of(const Map *m) {
  return (MapParams){.y = m->y,
                     .a = m->a,
                     .b = m->b,
                     .a_scale = m->a_scale,
                     .y_scale = m->y_scale,
                     .y_stride = ops_stride(m->y_stride, m->n),
                     .a_stride = ops_stride(m->a_stride, m->n),
                     .b_stride = ops_stride(m->b_stride, m->n),
                     .a_kind = kind_of(m->dtype),
                     .y_kind = kind_of(out_of(m)),
                     .f = m->f};
}

static int step_of(SolDtype d) { // in map.def's order of sizes
  return ops_size(d) == 4 ? 2 : ops_size(d) - 1;
}

// Whether fp32 holds what the kernels compute: an int32 that is only converted is rounded to it in any case, and one that is scaled
// becomes a type with a third of its digits or fewer.
static bool in_floats(const Map *m) {
  SolDtype out = out_of(m);
  bool scaled = m->a_scale || m->y_scale, coarse = out == SOL_FP16 || out == SOL_BF16 || out == SOL_FP8;
  return (map_is_narrow(m->dtype) || (m->dtype == SOL_INT32 && (!scaled || coarse))) &&
         (map_is_narrow(out) || (out == SOL_INT32 && !scaled));
}

// Whether every row of the tensor starts at a chunk. Dense: they are one row.
static bool starts_at_chunks(const void *x, int64_t stride, bool flat, int bytes) {
  return elementwise_aligned(x, flat ? 0 : stride, bytes);
}

static bool is_lean(const Map *m, const MapParams *p, int per) {
  int in = ops_size(m->dtype), out = ops_size(out_of(m));
  bool whole = p->flat || (m->n % per == 0 && m->n / per <= ELEMENTWISE_SMALL / m->m);
  return whole && starts_at_chunks(m->a, p->a_stride * in, p->flat, per * in) &&
         starts_at_chunks(m->y, p->y_stride * out, p->flat, per * out) &&
         (!m->b || starts_at_chunks(m->b, p->b_stride * in, p->flat, per * in));
}

// Rows that are apart, of both sides and short or of the inputs alone: several elements of a thread, or pairs of them. step: of the types
// and inputs. False: it is another kernel's.
static bool plan_singles(const Map *m, MapParams *p, OpsLaunch *l, int step) {
  int64_t in = ops_size(m->dtype), out = ops_size(out_of(m));
  Spread spread = elementwise_rows((uint64_t)m->n, (uint64_t)m->m, m->n);
  bool pairs = !p->flat && p->y_stride == m->n && elementwise_aligned(m->y, 0, (int)(2 * out));
  if (!pairs && !elementwise_single(m->n, (int)out, p->flat)) return false;
  if (!elementwise_several(&spread, p->a_stride * in, p->y_stride * out) || p->b_stride * in > UINT32_MAX)
    return false;
  p->spread = spread;
  p->spread.ends = ends_bytes(m->y, m->a, p->y_stride * out, m->n * out);
  l->kernel = (pairs ? KERNEL_PAIRS_1_1_1 : KERNEL_SHORT_1_1_1) + step;
  ops_grid(l->grid, spread.chunks, l->block * ELEMENTWISE_SINGLES * (pairs ? 2 : 1));
  return true;
}

static void plan_floats(const Map *m, MapParams *p, OpsLaunch *l) {
  int per = elementwise_chunk(m->dtype, out_of(m)), in = ops_size(m->dtype), out = ops_size(out_of(m));
  int step = 3 * step_of(m->dtype) + step_of(out_of(m));
  bool lean = is_lean(m, p, per);
  if (m->b) step += KERNEL_2_1_2 - KERNEL_2_1_1; // whose elements have more than a byte
  if (!lean && plan_singles(m, p, l, step)) return;
  p->spread = elementwise_spread(m->y, m->m, m->n, m->y_stride, per, out, p->flat,
                                 lean ? 0 : MAP_THREADS * MAP_ANY_EACH(in, out));
  if (lean && !p->flat) p->row32 = elementwise_divider32((uint32_t)(m->n / per));
  l->kernel = (lean ? KERNEL_1_1_1 : KERNEL_ANY_1_1_1) + step;
  ops_grid(l->grid, p->spread.chunks,
           l->block * (uint32_t)(lean ? MAP_EACH(in, out) : MAP_ANY_EACH(in, out)));
}

// int32 that is scaled and becomes fp32, or comes from a type of 2 or 4 bytes.
static bool is_exact(const Map *m) {
  return ops_size(out_of(m)) == 4 && (ops_size(m->dtype) == 2 || ops_size(m->dtype) == 4);
}

static void plan_exact(const Map *m, MapParams *p, OpsLaunch *l) {
  int per = elementwise_chunk(m->dtype, out_of(m)), in = ops_size(m->dtype);
  bool lean = is_lean(m, p, per);
  p->spread = elementwise_spread(m->y, m->m, m->n, m->y_stride, per, 4, p->flat,
                                 lean ? 0 : MAP_THREADS * MAP_EXACT_EACH);
  if (lean && !p->flat) p->row32 = elementwise_divider32((uint32_t)(m->n / per));
  if (in == 2)
    l->kernel = lean ? KERNEL_EXACT_LEAN_2_4 : KERNEL_EXACT_ANY_2_4;
  else
    l->kernel = lean ? KERNEL_EXACT_LEAN_4_4 : KERNEL_EXACT_ANY_4_4;
  ops_grid(l->grid, p->spread.chunks, l->block * MAP_EXACT_EACH);
}

static void plan_wide(const Map *m, MapParams *p, OpsLaunch *l) { // pairs of elements
  p->a_size = ops_size(m->dtype), p->y_size = ops_size(out_of(m));
  p->spread = elementwise_spread(m->y, m->m, m->n, m->y_stride, 2, p->y_size, p->flat, 0);
  l->kernel = KERNEL_WIDE;
  ops_grid(l->grid, p->spread.chunks, l->block * MAP_WIDE_EACH);
}

SolStatus map_launch(SolContext *ctx, const OpsDef *def, const Map *m, SolStream stream) {
  MapParams p = params_of(m);
  OpsLaunch l = {.block = MAP_THREADS, .early = true, .params = &p, .bytes = sizeof p};
  p.flat = elementwise_flat(m->m, m->n, m->y_stride, m->a_stride) &&
           (!m->b || elementwise_flat(m->m, m->n, m->b_stride, 0));
  if (in_floats(m))
    plan_floats(m, &p, &l);
  else if (is_exact(m))
    plan_exact(m, &p, &l);
  else
    plan_wide(m, &p, &l);
  return ops_launch(ctx, def, &l, stream);
}

static double one(int f, double a, double b) {
  switch (f) {
  case MAP_ADD: return a + b;
  case MAP_RELU: return a < 0 ? 0 : a;
  case MAP_GELU_MUL: return 0.5 * a * (1 + tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))) * b;
  case MAP_RELU_MUL: return (a < 0 ? 0 : a) * b;
  case MAP_SIGMOID_MUL: return b / (1 + exp(-a));
  case MAP_SILU_MUL: return a / (1 + exp(-a)) * b;
  default: return a;
  }
}

void map_reference(const Map *m, const double *a, const double *b, double times, double over, double *y) {
  for (int64_t i = 0; i < m->m * m->n; i++) {
    double x = one(m->f, a[i] * times, b ? b[i] : 0) / over;
    if (out_of(m) == SOL_INT32) x = whole(x, INT32_MIN, INT32_MAX);
    if (out_of(m) == SOL_INT64) x = whole(x, -0x1p63, 0x1p63);
    y[i] = x;
  }
}
