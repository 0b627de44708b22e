// y = silu(gate) * up, also as fp8
#include <math.h>

#include "base/error.h"
#include "kernels/silu_mul/silu_mul.h"
#include "ops/chunks.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/ends.h"
#include "ops/narrow.h"
#include "ops/parts.h"

enum {
#define SILU(in, out)                                    KERNEL_LEAN_##in##_##out, KERNEL_ANY_##in##_##out,
#define SILU_BLOCK(in, wide)                             KERNEL_BLOCK_##in##_##wide,
#define SILU_ROW(in, wide, threads, rows, count, blocks) KERNEL_ROW_##in##_##wide##_##threads##_##count,
#define SILU_NARROW(in, wide, blocks)                    KERNEL_NARROW_##in##_##wide,
#define SILU_CHUNKS(in, count, blocks)                   KERNEL_CHUNKS_##in##_##count,
#define SILU_PARTS(in)                                   KERNEL_PARTS_##in,
#define SILU_STRIP(in, blocks, threads, count, per_sm)   KERNEL_STRIP_##in##_##blocks##_##count,
#include "kernels/silu_mul/silu_mul.def"
  KERNEL_SINGLE,
  KERNEL_COUNT
};
static const char *const kernel_names[KERNEL_COUNT] = {
#define SILU(in, out)        "sol_silu_mul_lean_" #in "_" #out, "sol_silu_mul_any_" #in "_" #out,
#define SILU_BLOCK(in, wide) "sol_silu_mul_block_" #in "_" #wide,
#define SILU_ROW(in, wide, threads, rows, count, blocks)                                                     \
  "sol_silu_mul_row_" #in "_" #wide "_" #threads "_" #count,
#define SILU_NARROW(in, wide, blocks)                  "sol_silu_mul_narrow_" #in "_" #wide,
#define SILU_CHUNKS(in, count, blocks)                 "sol_silu_mul_chunks_" #in "_" #count,
#define SILU_PARTS(in)                                 "sol_silu_mul_parts_" #in,
#define SILU_STRIP(in, blocks, threads, count, per_sm) "sol_silu_mul_strip_" #in "_" #blocks "_" #count,
#include "kernels/silu_mul/silu_mul.def"
    "sol_silu_mul_single"};

static const uint32_t kernel_shared[KERNEL_COUNT] = {
    [KERNEL_PARTS_2] = PARTS_SHARED, [KERNEL_PARTS_4] = PARTS_SHARED};

static const struct StripKernel {
  int kernel, in, blocks, threads, count;
} strip_kernels[] = {
#define SILU_STRIP(in, blocks, threads, count, per_sm)                                                       \
  {KERNEL_STRIP_##in##_##blocks##_##count, in, blocks, threads, count},
#include "kernels/silu_mul/silu_mul.def"
};

static const struct ChunksKernel {
  int kernel, in, count;
} chunks_kernels[] = {
#define SILU_CHUNKS(in, count, blocks) {KERNEL_CHUNKS_##in##_##count, in, count},
#include "kernels/silu_mul/silu_mul.def"
};

// Kernels with a scale per row, of each kind the narrowest first; the last of a kind takes any length.
static const struct RowKernel {
  int kernel, in, wide, threads, rows, count;
} row_kernels[] = {
#define SILU_ROW(in, wide, threads, rows, count, blocks)                                                     \
  {KERNEL_ROW_##in##_##wide##_##threads##_##count, in, wide, threads, rows, count},
#include "kernels/silu_mul/silu_mul.def"
};

enum { PLAIN, FP8_TENSOR, FP8_ROW, FP8_BLOCK, OPTIONS, BLOCK = 128 };
static const char *const option_names[OPTIONS] = {"", "fp8", "fp8 by rows", "fp8 by blocks"};

static SolDtype out_of(const SolSiluMul *a) {
  return ops_or(a->out_dtype, a->dtype);
}
static int64_t blocks_of(const SolSiluMul *a) { // in a row
  return a->n / BLOCK + (a->n % BLOCK != 0);
}

static bool make(const OpsCase *c, void *args) {
  SolSiluMul *a = args;
  *a = (SolSiluMul){OPS_MATRIX_CASE(c)};
  if (c->option != PLAIN) {
    a->out_dtype = SOL_FP8;
    a->scaling = (SolScaling)(c->option - FP8_TENSOR);
  }
  if (c->pad) a->y_stride = a->n + c->pad, a->gate_stride = a->n + 2 * c->pad, a->up_stride = a->n + c->pad;
  return true;
}

static int views(const void *args, OpsView *v) {
  const SolSiluMul *a = args;
  bool written = a->scaling != SOL_SCALE_TENSOR;
  v[0] = OPS_VIEW(SolSiluMul, y, out_of(a), OPS_OUT, .rows = a->m, .cols = a->n, .stride = a->y_stride);
  v[1] = OPS_VIEW(SolSiluMul, gate, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->gate_stride);
  v[2] = OPS_VIEW(SolSiluMul, up, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->up_stride);
  if (out_of(a) != SOL_FP8) return 3;
  v[3] = OPS_VIEW(SolSiluMul, scales, SOL_FP32, written ? OPS_OUT : OPS_IN, .rows = written ? a->m : 1,
                  .cols = a->scaling == SOL_SCALE_BLOCK ? blocks_of(a) : 1, .fill = OPS_FILL_POSITIVE);
  return 4;
}

static SolStatus check(const void *args, SolError *err) {
  const SolSiluMul *a = args;
  SolDtype out = out_of(a);
  if (out == SOL_FP8 && (unsigned)a->scaling > SOL_SCALE_BLOCK)
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such scaling: %d", (int)a->scaling);
  return ops_check_reals(a->dtype, out == SOL_FP8 ? a->dtype : out, err);
}

// f = silu(gate) * up for `c` columns from `at` on
static void cpu_chunk(const SolSiluMul *a, int64_t row, int64_t at, int64_t c, float *restrict f) {
  int64_t gs = ops_stride(a->gate_stride, a->n), us = ops_stride(a->up_stride, a->n);
  float up[CPU_CHUNK];
  cpu_load(a->dtype, a->gate, row * gs + at, c, f);
  cpu_load(a->dtype, a->up, row * us + at, c, up);
  for (int64_t i = 0; i < c; i++) f[i] = f[i] / (1 + elementwise_exp(-f[i])) * up[i];
}

static float largest(const float *f, int64_t c) { // magnitude; a NaN does not count
  float most = 0;
  for (int64_t i = 0; i < c; i++) most = fabsf(f[i]) > most ? fabsf(f[i]) : most;
  return most;
}

static void divide(float *f, int64_t c, float scale) {
  for (int64_t i = 0; i < c; i++) f[i] = f[i] / scale;
}

// Where all elements are 0 the scale is 0; dividing by 1 keeps them 0.
static float divisor(float scale) {
  return scale == 0 ? 1 : scale;
}

static void cpu_blocks(const SolSiluMul *a, int64_t row, int64_t at, int64_t c, float *f) {
  _Static_assert(CPU_CHUNK % BLOCK == 0, "blocks must not straddle chunks");
  for (int64_t b = 0; b < c; b += BLOCK) {
    int64_t columns = cpu_min(BLOCK, c - b);
    float scale = largest(f + b, columns) / 448;
    a->scales[row * blocks_of(a) + (at + b) / BLOCK] = scale;
    divide(f + b, columns, divisor(scale));
  }
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  const SolSiluMul *a = args;
  int64_t ys = ops_stride(a->y_stride, a->n);
  bool fp8 = out_of(a) == SOL_FP8;
  for (int64_t row = begin; row < end; row++) {
    float f[CPU_CHUNK], scale = fp8 && a->scaling == SOL_SCALE_TENSOR ? *a->scales : 1;
    if (fp8 && a->scaling == SOL_SCALE_ROW) {
      float most = 0;
      CPU_CHUNKS(at, c, a->n) {
        cpu_chunk(a, row, at, c, f);
        most = fmaxf(most, largest(f, c));
      }
      a->scales[row] = most / 448;
      scale = divisor(most / 448);
    }
    CPU_CHUNKS(at, c, a->n) {
      cpu_chunk(a, row, at, c, f);
      if (fp8 && a->scaling == SOL_SCALE_BLOCK)
        cpu_blocks(a, row, at, c, f);
      else if (fp8)
        divide(f, c, scale);
      cpu_store(out_of(a), a->y, row * ys + at, c, f);
    }
  }
}

typedef struct Shape {
  int in, out, per; // bytes of an element; elements of a chunk
  int64_t gate_stride, up_stride, y_stride;
  bool flat;
} Shape;

static Shape shape_of(const SolSiluMul *a) {
  Shape s = {ops_size(a->dtype),
             ops_size(out_of(a)),
             elementwise_chunk(a->dtype, out_of(a)),
             ops_stride(a->gate_stride, a->n),
             ops_stride(a->up_stride, a->n),
             ops_stride(a->y_stride, a->n),
             false};
  s.flat =
      elementwise_flat(a->m, a->n, s.gate_stride, s.up_stride) && elementwise_flat(a->m, a->n, s.y_stride, 0);
  return s;
}

// Aligned rows of whole chunks (dense: all rows as one), and not two different 16-bit types.
static bool is_lean(const SolSiluMul *a, Shape s) {
  int64_t all = s.flat ? a->m * a->n : a->n, strides = !s.flat;
  if (s.in == 2 && s.out == 2 && a->dtype != out_of(a)) return false;
  if (all % s.per || a->n > ELEMENTWISE_SMALL || a->m > ELEMENTWISE_SMALL / a->n) return false;
  return elementwise_aligned(a->gate, strides * s.gate_stride * s.in, s.per * s.in) &&
         elementwise_aligned(a->up, strides * s.up_stride * s.in, s.per * s.in) &&
         elementwise_aligned(a->y, strides * s.y_stride * s.out, s.per * s.out);
}

static SolStatus launch_lean(SolContext *ctx, const SolSiluMul *a, Shape s, int kernel, SolStream stream) {
  SiluLean p = {.y = a->y,
                .gate = a->gate,
                .up = a->up,
                .scales = a->scales,
                .y_stride = s.y_stride * s.out,
                .gate_stride = s.gate_stride * s.in,
                .up_stride = s.up_stride * s.in,
                .chunks = (uint32_t)(a->m * a->n / s.per),
                .x_kind = ops_kind(a->dtype),
                .y_kind = ops_kind(out_of(a))};
  if (!s.flat) {
    p.divider = elementwise_divider32((uint32_t)(a->n / s.per));
    p.ends = ends_bytes(a->y, NULL, p.y_stride, a->n * s.out);
  }
  OpsLaunch l = {.kernel = kernel, .block = 256, .early = true, .params = &p, .bytes = sizeof p};
  ops_grid(l.grid, p.chunks, l.block);
  return ops_launch(ctx, &ops_silu_mul, &l, stream);
}

// Aligned rows of whole vectors of 16 bytes.
static bool is_wide(const SolSiluMul *a, Shape s) {
  return a->n % s.per == 0 && elementwise_aligned(a->gate, s.gate_stride * s.in, 16) &&
         elementwise_aligned(a->up, s.up_stride * s.in, 16) && elementwise_aligned(a->y, s.y_stride, s.per);
}

// Whether x is aligned as y is, in every row: whole chunks of both start at the same columns.
static bool is_alike(const void *x, int64_t stride, const SolSiluMul *a, Shape s) {
  return ((uintptr_t)x / (uintptr_t)s.in - (uintptr_t)a->y) % (uintptr_t)s.per == 0 &&
         (stride - s.y_stride) % s.per == 0;
}

// The kernel for unaligned rows whose tensors are aligned alike. NULL: another kernel is faster, or holds a
// row.
static const struct StripKernel *strip_kernel(const SolSiluMul *a, Shape s, bool blocks) {
  enum { SHORT = 256 };
  if (is_wide(a, s) || !is_alike(a->gate, s.gate_stride, a, s) || !is_alike(a->up, s.up_stride, a, s))
    return NULL;
  const struct StripKernel *k = strip_kernels;
  while (k->in != s.in || k->blocks != blocks) k++;
  return blocks || (a->n > SHORT && a->n <= (int64_t)k->threads * k->count * s.per) ? k : NULL;
}

// The first kernel that holds a row in registers, or the one that computes it twice; a block of as many
// threads as the row needs.
static const struct RowKernel *row_kernel(const SolSiluMul *a, Shape s, uint32_t *block) {
  bool wide = is_wide(a, s);
  int64_t pieces = wide ? a->n / s.per : a->n;
  const struct RowKernel *r = row_kernels;
  while (r->in != s.in || r->wide != wide || (r->count && pieces > (int64_t)r->threads * r->count)) r++;
  *block = (uint32_t)(r->threads * r->rows);
  if (r->count && r->rows == 1) *block = (uint32_t)((pieces + r->count - 1) / r->count + 31) / 32 * 32;
  return r;
}

// Rows of any alignment in registers: the kernel that leaves the fewest places empty, and then the one with the
// fewest threads. False: none holds them.
static bool plan_chunks(const SolSiluMul *a, Shape s, SiluParams *p, OpsLaunch *l) {
  int64_t chunks = chunks_of(a->gate, s.gate_stride * s.in, a->n, s.in), least = INT64_MAX;
  for (size_t i = 0; i < SOL_COUNT(chunks_kernels); i++) {
    const struct ChunksKernel *k = &chunks_kernels[i];
    int64_t threads = chunks_threads(chunks, k->count);
    if (k->in != s.in || threads > SILU_CHUNKS_THREADS || threads * k->count > least) continue;
    least = threads * k->count;
    l->kernel = k->kernel;
    p->lane_bits = chunks_launch(threads, a->m, l);
  }
  p->spread = (Spread){.length = a->n, .last = a->m - 1, .ends = ends_bytes(a->y, NULL, s.y_stride, a->n)};
  return least != INT64_MAX;
}

// Longer rows, in parts all over the GPU: results are held as floats, in as many columns as whole turns of a block have. False: this
// GPU has no such kernel, or does not hold a row.
static bool plan_parts(const SolContext *ctx, const SolSiluMul *a, Shape s, SiluParams *p, OpsLaunch *l) {
  enum { FLOAT = 4, TURNS = 2048 }; // TURNS: columns, two turns of fp32, one of 2-byte elements
  int64_t parts = parts_held(ctx, (a->n + s.per) * FLOAT, PARTS_SHARED), whole = TURNS * 2 * parts;
  if (!parts) return false;
  p->parts = parts_shape(a->y, a->m, ops_ceil_div(a->n + s.per, whole) * whole, FLOAT, 1, parts);
  if (ctx->polls) p->parts.polls = ctx->polls;
  p->spread = (Spread){.length = a->n, .last = a->m - 1};
  l->shared = (uint32_t)(p->parts.length * FLOAT);
  l->kernel = s.in == 4 ? KERNEL_PARTS_4 : KERNEL_PARTS_2;
  parts_launch(&p->parts, l);
  return true;
}

// Dense rows of so few columns that a thread has a whole one.
enum { FEW = 16, WIDE = 32 }; // columns, of the two kernels: few.cuh
static bool is_narrow(const SolSiluMul *a, Shape s) {
  return a->n > 0 && a->n <= (is_wide(a, s) ? FEW : WIDE) && s.gate_stride == a->n && s.up_stride == a->n &&
         s.y_stride == a->n;
}

static int plan_narrow(const SolContext *ctx, const SolSiluMul *a, Shape s, SiluParams *p, OpsLaunch *l) {
  int64_t row = a->n * s.in;
  NarrowTensor t[NARROW_TENSORS] = {[NARROW_X] = {a->gate, row, s.in},
                                    [NARROW_RESIDUAL] = {a->up, row, s.in},
                                    [NARROW_Y] = {a->y, a->n, 1}};
  p->narrow.n = (int32_t)a->n; // a row a lane
  narrow_fill(ctx, t, p->rows, a->n, &p->narrow, l);
  return (s.in == 4 ? KERNEL_NARROW_4_0 : KERNEL_NARROW_2_0) + (a->n > FEW);
}

// By gated_mul's kernels, which have some for rows that are apart and short, and for those that are apart of the inputs alone.
static SolStatus launch_gated(SolContext *ctx, const SolSiluMul *a, SolStream stream) {
  SolGatedMul gated = {.y = a->y,
                       .gate = a->gate,
                       .up = a->up,
                       .scale = out_of(a) == SOL_FP8 ? a->scales : NULL,
                       .m = a->m,
                       .n = a->n,
                       .y_stride = a->y_stride,
                       .gate_stride = a->gate_stride,
                       .up_stride = a->up_stride,
                       .dtype = a->dtype,
                       .out_dtype = out_of(a),
                       .activation = SOL_GATE_SILU};
  return ops_gated_mul.launch(ctx, &gated, stream);
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolSiluMul *a = args;
  Shape s = shape_of(a);
  SiluParams p = {.y = a->y,
                  .gate = a->gate,
                  .up = a->up,
                  .scales = a->scales,
                  .y_stride = s.y_stride,
                  .gate_stride = s.gate_stride,
                  .up_stride = s.up_stride,
                  .rows = (uint64_t)a->m,
                  .x_kind = ops_kind(a->dtype),
                  .y_kind = ops_kind(out_of(a)),
                  .flat = s.flat};
  OpsLaunch l = {.block = 256, .early = true, .params = &p, .bytes = sizeof p};
  const struct StripKernel *strip = NULL;
  bool own = s.out == 1 && a->scaling != SOL_SCALE_TENSOR; // scales that the kernel computes
  bool by_row =
      own && (a->scaling == SOL_SCALE_ROW || (a->n <= BLOCK && !is_wide(a, s))); // a short row is one block
  bool narrow = own && is_narrow(a, s);
  if (own && !narrow) strip = strip_kernel(a, s, !by_row);
  if (narrow) {
    l.kernel = plan_narrow(ctx, a, s, &p, &l);
  } else if (strip && strip->blocks) {
    // Turns of a row, and of a warp.
    uint64_t turns = (uint64_t)ops_ceil_div(a->n, 32 * s.per), count = (uint64_t)strip->count;
    p.spread = elementwise_rows(turns, (uint64_t)a->m, a->n);
    l.kernel = strip->kernel;
    ops_grid(l.grid, (p.spread.chunks + count - 1) / count * 32, l.block);
  } else if (strip) {
    int64_t of_warp = 32 * strip->count * s.per;
    p.spread = (Spread){.length = a->n};
    l.kernel = strip->kernel;
    l.block = (uint32_t)((a->n + of_warp - 1) / of_warp * 32);
    ops_grid(l.grid, (uint64_t)a->m, 1);
  } else if (by_row && !is_wide(a, s) && plan_chunks(a, s, &p, &l)) {
  } else if (by_row && !row_kernel(a, s, &l.block)->count && plan_parts(ctx, a, s, &p, &l)) {
  } else if (by_row) {
    const struct RowKernel *r = row_kernel(a, s, &l.block);
    p.spread = (Spread){.length = a->n};
    l.kernel = r->kernel;
    ops_grid(l.grid, ((uint64_t)a->m + (uint64_t)r->rows - 1) / (uint64_t)r->rows, 1);
  } else if (own) {
    bool wide = is_wide(a, s);
    p.spread = (Spread){.chunks = (uint64_t)(blocks_of(a) * a->m),
                        .length = a->n,
                        .divider = elementwise_divider((uint64_t)blocks_of(a))};
    l.kernel = s.in == 4 ? (wide ? KERNEL_BLOCK_4_1 : KERNEL_BLOCK_4_0)
                         : (wide ? KERNEL_BLOCK_2_1 : KERNEL_BLOCK_2_0);
    ops_grid(l.grid, p.spread.chunks * (uint64_t)(wide ? BLOCK / s.per : 32), l.block);
  } else {
    int lean = s.in == 2 ? (s.out == 2   ? KERNEL_LEAN_2_2
                            : s.out == 4 ? KERNEL_LEAN_2_4
                                         : KERNEL_LEAN_2_1)
                         : (s.out == 2   ? KERNEL_LEAN_4_2
                            : s.out == 4 ? KERNEL_LEAN_4_4
                                         : KERNEL_LEAN_4_1);
    if (is_lean(a, s)) return launch_lean(ctx, a, s, lean, stream);
    bool single = elementwise_small(ctx, a->m, a->n);
    if (!single && (elementwise_single(a->n, s.out, s.flat) || (!s.flat && s.y_stride == a->n)))
      return launch_gated(ctx, a, stream);
    p.spread = single ? elementwise_rows((uint64_t)a->n, (uint64_t)a->m, a->n)
                      : elementwise_spread(a->y, a->m, a->n, s.y_stride, s.per, s.out, s.flat, 256);
    if (single) p.spread.ends = ends_bytes(a->y, NULL, s.y_stride * s.out, a->n * s.out);
    l.kernel = single ? KERNEL_SINGLE : lean + 1;
    ops_grid(l.grid, p.spread.chunks, l.block);
  }
  return ops_launch(ctx, &ops_silu_mul, &l, stream);
}

static void reference(const void *args, double *const *at) {
  const SolSiluMul *a = args;
  bool fp8 = out_of(a) == SOL_FP8;
  for (int64_t i = 0; i < a->m * a->n; i++) at[0][i] = at[1][i] / (1 + exp(-at[1][i])) * at[2][i];
  if (!fp8) return;
  if (a->scaling == SOL_SCALE_TENSOR) {
    for (int64_t i = 0; i < a->m * a->n; i++) at[0][i] /= at[3][0];
    return;
  }
  int64_t width = a->scaling == SOL_SCALE_ROW ? a->n : BLOCK, groups = a->n ? (a->n + width - 1) / width : 0;
  for (int64_t g = 0; g < a->m * groups; g++) {
    int64_t row = g / groups, begin = g % groups * width, end = begin + width < a->n ? begin + width : a->n;
    double *y = at[0] + row * a->n, most = 0;
    for (int64_t c = begin; c < end; c++) most = fmax(most, fabs(y[c]));
    at[3][g] = most / 448;
    for (int64_t c = begin; c < end && most > 0; c++) y[c] /= most / 448;
  }
}

static void cost(const void *args, SolOpArgs *op) {
  const SolSiluMul *a = args;
  *op = (SolOpArgs){OPS_MATRIX_COST(a)};
}

// Rows for each kernel with a scale per row, too.
static const int64_t shapes[][4] = {{1, 1},    {5, 2},     {3, 3},     {33, 31},   {19, 128},
                                    {2, 500},  {2, 769},   {3, 1023},  {2, 4096},  {2, 5125},
                                    {3, 8192}, {1, 14336}, {1, 32768}, {1, 65537}, {2, 40001},
                                    {300, 16}, {200, 17},  {0, 64},    {3, 0}};
static const int64_t bench[][4] = {{1, 4096},    {8, 14336},    {512, 4096},   {2048, 11008},
                                   {8192, 4096}, {4096, 14336}, {16384, 8192}, {3001, 5125}};

const OpsDef ops_silu_mul = {
    .name = "silu_mul",
    OPS_ARGS(SolSiluMul, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_ROWS,
    .slack = 16,
    OPS_CASES(shapes, bench),
    OPS_KERNELS("silu_mul", kernel_names),
    .shared = kernel_shared,
};
