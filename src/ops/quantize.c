// y = x / scale in int8, fp8 or fp4, with scales of groups of columns
#include <math.h>

#include "base/error.h"
#include "emu/isa/num_cvt.h"
#include "kernels/quantize/quantize.h"
#include "ops/chunks.h"
#include "ops/cpu.h"
#include "ops/elementwise.h"
#include "ops/held.h"
#include "ops/narrow.h"
#include "ops/parts.h"
#include "ops/stream.h"

// Those of 2-byte elements, then those of 4-byte elements.
enum {
  KERNEL_BLOCKS,
  KERNEL_ROWS_2,
  KERNEL_ROWS_3,
  KERNEL_ROWS_4,
  KERNEL_ROWS_6,
  KERNEL_WHOLE_2,
  KERNEL_WHOLE_3,
  KERNEL_WHOLE_4,
  KERNEL_WHOLE_6,
  KERNEL_HELD,
  KERNEL_PARTS,
  KERNEL_NARROW,
  KERNEL_STREAM,
  KERNEL_CLUSTER,
  KERNELS,
  KERNEL_COUNT = 2 * KERNELS
};
#define NAMES(in)                                                                                            \
  "sol_quantize_blocks_" in, "sol_quantize_rows_" in "_2", "sol_quantize_rows_" in "_3",                     \
      "sol_quantize_rows_" in "_4", "sol_quantize_rows_" in "_6", "sol_quantize_whole_" in "_2",             \
      "sol_quantize_whole_" in "_3", "sol_quantize_whole_" in "_4", "sol_quantize_whole_" in "_6",           \
      "sol_quantize_held_" in, "sol_quantize_parts_" in, "sol_quantize_narrow_" in,                          \
      "sol_quantize_stream_" in, "sol_quantize_cluster_" in
static const char *const kernel_names[KERNEL_COUNT] = {NAMES("2"), NAMES("4")};
static const uint32_t kernel_shared[KERNEL_COUNT] = {
    [KERNEL_HELD] = HELD_SHARED,           [KERNEL_PARTS] = PARTS_SHARED,
    [KERNEL_STREAM] = STREAM_SHARED,       [KERNELS + KERNEL_STREAM] = STREAM_SHARED,
    [KERNELS + KERNEL_HELD] = HELD_SHARED, [KERNELS + KERNEL_PARTS] = PARTS_SHARED};

// By SolQuant: how the kernels call it, the columns of a group (0: the row), the types of y and of the scales. e2m1 is in
// bytes of two, and e8m0 in bytes; tests read both as int8.
typedef struct Format {
  const char *name;
  int how, group;
  SolDtype y, scales;
} Format;
static const Format formats[] = {
    {"int8 by rows", QUANTIZE_INT8, 0, SOL_INT8, SOL_FP32},
    {"int8 by blocks", QUANTIZE_INT8, 128, SOL_INT8, SOL_FP32},
    {"fp8 by rows", QUANTIZE_FP8, 0, SOL_FP8, SOL_FP32},
    {"fp8 by blocks", QUANTIZE_FP8, 128, SOL_FP8, SOL_FP32},
    {"mxfp8", QUANTIZE_MXFP8, 32, SOL_FP8, SOL_INT8},
    {"nvfp4", QUANTIZE_NVFP4, 16, SOL_INT8, SOL_FP8},
};
static const char *const option_names[] = {"int8 by rows",  "int8 by blocks", "fp8 by rows",
                                           "fp8 by blocks", "mxfp8",          "nvfp4"};

static const Format *format_of(const SolQuantize *a) {
  return &formats[(unsigned)a->format < SOL_COUNT(formats) ? a->format : 0];
}
static bool is_packed(const SolQuantize *a) { // two columns a byte
  return a->format == SOL_QUANT_NVFP4;
}
static int64_t groups_in(const Format *f, int64_t n) { // of a row
  return f->group ? ops_ceil_div(n, f->group) : 1;
}
static int64_t groups_of(const SolQuantize *a) {
  return groups_in(format_of(a), a->n);
}

int64_t sol_quantize_scales(SolQuant format, int64_t n) {
  return (unsigned)format < SOL_COUNT(formats) ? groups_in(&formats[format], n) : -1;
}

static bool make(const OpsCase *c, void *args) {
  SolQuantize *a = args;
  *a = (SolQuantize){.m = c->dim[0], .n = c->dim[1], .dtype = c->dtype, .format = (SolQuant)c->option};
  if (c->pad) a->x_stride = a->n + c->pad, a->y_stride = (is_packed(a) ? a->n / 2 : a->n) + c->pad;
  return (!is_packed(a) || a->n % 2 == 0) && (!c->out_dtype || c->out_dtype == c->dtype || is_packed(a));
}

static int views(const void *args, OpsView *v) {
  const SolQuantize *a = args;
  const Format *f = format_of(a);
  v[0] = OPS_VIEW(SolQuantize, y, f->y, OPS_OUT, .rows = a->m, .cols = is_packed(a) ? a->n / 2 : a->n,
                  .stride = a->y_stride);
  v[1] = OPS_VIEW(SolQuantize, x, a->dtype, OPS_IN, .rows = a->m, .cols = a->n, .stride = a->x_stride);
  v[2] = OPS_VIEW(SolQuantize, scales, f->scales, OPS_OUT, .rows = a->m, .cols = a->n ? groups_of(a) : 0);
  v[3] = OPS_VIEW(SolQuantize, tensor_scale, SOL_FP32, OPS_IN, .rows = 1, .cols = 1, .optional = true,
                  .fill = OPS_FILL_POSITIVE);
  return is_packed(a) ? 4 : 3;
}

static SolStatus check(const void *args, SolError *err) {
  const SolQuantize *a = args;
  if ((unsigned)a->format >= SOL_COUNT(formats))
    return sol_fail(err, SOL_ERR_ARGUMENT, "no such format: %d", (int)a->format);
  if (!ops_is_real(a->dtype))
    return sol_fail(err, SOL_ERR_ARGUMENT, "x must be fp32, fp16 or bf16, not %s", sol_dtype_name(a->dtype));
  if (is_packed(a) && a->n % 2)
    return sol_fail(err, SOL_ERR_ARGUMENT, "rows of %lld columns do not fill bytes of two", (long long)a->n);
  if (a->tensor_scale && !is_packed(a))
    return sol_fail(err, SOL_ERR_ARGUMENT, "tensor_scale is for nvfp4 alone");
  return SOL_OK;
}

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

// The scale of a group by its largest magnitude: as it is stored (a code, or a number), and what elements are multiplied
// by.
typedef struct Scale {
  double stored;
  float times;
} Scale;

static Scale scale_of(const SolQuantize *a, float most, float all) {
  float scale = most / (format_of(a)->how == QUANTIZE_INT8 ? 127.0f : 448.0f);
  if (a->format == SOL_QUANT_MXFP8) {
    uint32_t code = quantize_e8m0(bits_of(scale));
    return (Scale){(double)code, (float)ldexp(1, 127 - (int)code)};
  }
  if (is_packed(a)) {
    float six = 6 * all;
    uint32_t code = num_cvt_small_f32(most / six, NUM_E4M3, false);
    scale = num_cvt_f32_small(code, NUM_E4M3) * all;
    return (Scale){(double)code, scale > 0 ? 1 / scale : 0};
  }
  if (scale < 0x1p-126f) scale = 0;
  return (Scale){(double)scale, scale > 0 ? 1 / scale : 0};
}

static float tensor_scale_of(const SolQuantize *a) {
  return a->tensor_scale ? *a->tensor_scale : 1;
}

static uint32_t e2m1(float v) {
  return quantize_e2m1(v) & 15;
}

static void store_group(const SolQuantize *a, int64_t row, int64_t at, int64_t c, float *f, Scale s) {
  int64_t ys = ops_stride(a->y_stride, is_packed(a) ? a->n / 2 : a->n);
  for (int64_t i = 0; i < c; i++) f[i] *= s.times;
  if (!is_packed(a)) {
    cpu_store(format_of(a)->y, a->y, row * ys + at, c, f);
    return;
  }
  uint8_t *y = (uint8_t *)a->y + row * ys + at / 2;
  for (int64_t i = 0; i < c; i += 2) y[i / 2] = (uint8_t)(e2m1(f[i]) | e2m1(f[i + 1]) << 4);
}

static void store_scale(const SolQuantize *a, int64_t at, Scale s) {
  if (format_of(a)->scales == SOL_FP32)
    ((float *)a->scales)[at] = (float)s.stored;
  else
    ((uint8_t *)a->scales)[at] = (uint8_t)s.stored;
}

static float largest(const float *f, int64_t c) { // magnitude; a NaN does not count
  float most = 0;
  for (int64_t i = 0; i < c; i++) most = fabsf(f[i]) > most ? fabsf(f[i]) : most;
  return most;
}

static float row_largest(const SolQuantize *a, int64_t from) {
  float f[CPU_CHUNK], most = 0;
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, from + at, c, f);
    most = fmaxf(most, largest(f, c));
  }
  return most;
}

static void cpu_row(const SolQuantize *a, int64_t row) {
  int64_t from = row * ops_stride(a->x_stride, a->n), group = format_of(a)->group;
  float f[CPU_CHUNK], all = is_packed(a) ? tensor_scale_of(a) : 1;
  Scale s = {0, 0};
  if (!group) s = scale_of(a, row_largest(a, from), all), store_scale(a, row, s);
  CPU_CHUNKS(at, c, a->n) {
    cpu_load(a->dtype, a->x, from + at, c, f);
    for (int64_t g = 0, wide; g < c; g += wide) { // groups divide a chunk
      wide = cpu_min(group ? group : c, c - g);
      if (group) s = scale_of(a, largest(f + g, wide), all);
      if (group) store_scale(a, row * groups_of(a) + (at + g) / group, s);
      store_group(a, row, at + g, wide, f + g, s);
    }
  }
}

static void cpu_rows(const void *args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; row++) cpu_row(args, row);
}

static int64_t columns_of(const SolQuantize *a) { // of a piece
  return QUANTIZE_PIECE / ops_size(a->dtype);
}

// Rows of a few columns that are one group each: through shared memory, unless they are whole pieces.
static bool is_narrow(const SolQuantize *a, bool shifted) {
  const Format *f = format_of(a);
  bool dense = (!a->x_stride || a->x_stride == a->n) && (!a->y_stride || a->y_stride == a->n);
  return dense && !is_packed(a) && a->n <= (shifted ? QUANTIZE_NARROW : columns_of(a)) &&
         (!f->group || a->n <= f->group);
}

// Lanes of a row by its columns alone. A block has whole turns of its threads, and a sixteenth of what an SM's shared memory holds.
static int plan_narrow(const SolContext *ctx, const SolQuantize *a, QuantizeParams *p, OpsLaunch *l) {
  enum { EACH = 32 }; // columns of a lane
  NarrowTensor t[NARROW_TENSORS] = {
      [NARROW_X] = {p->x, p->x_stride, ops_size(a->dtype)}, [NARROW_Y] = {p->y, p->y_stride, 1}};
  NarrowShape *s = &p->narrow;
  s->n = (int32_t)a->n;
  while (a->n > (int64_t)EACH << s->lane_bits) s->lane_bits++;
  int64_t turn = NARROW_THREADS >> s->lane_bits, few = ops_ceil_div(a->m, 4 * (int64_t)ctx->sms);
  int64_t turns = cpu_min(few, NARROW_SPAN / p->x_stride + turn / 2) / turn;
  s->rows = (int32_t)(turn * (turns > 1 ? turns : 1));
  l->block = NARROW_THREADS, l->cluster = 1, l->shared = narrow_places(t, s);
  ops_grid(l->grid, (uint64_t)ops_ceil_div(a->m, s->rows), 1);
  return KERNEL_NARROW;
}

static int plan_blocks(const SolQuantize *a, QuantizeParams *p, OpsLaunch *l) {
  uint64_t threads = (uint64_t)(p->groups * (format_of(a)->group / columns_of(a))); // of a row
  p->divider = elementwise_divider(threads);
  if (threads * p->m <= ELEMENTWISE_SMALL - QUANTIZE_BLOCK * QUANTIZE_EACH)
    p->small = elementwise_divider32((uint32_t)threads);
  l->block = QUANTIZE_BLOCK;
  ops_grid(l->grid, threads * p->m, l->block * QUANTIZE_EACH);
  return KERNEL_BLOCKS;
}

// A cluster of as many blocks as the row asks for; a thread has eight chunks.
static int plan_cluster(const SolQuantize *a, QuantizeParams *p, OpsLaunch *l) {
  enum { EACH = 8 };
  int64_t chunks = ops_ceil_div(a->n, 16 / ops_size(a->dtype)), blocks = 1;
  while (chunks * 16 > blocks * QUANTIZE_CLUSTER_SHARED) blocks *= 2;
  p->of_block = (int32_t)ops_ceil_div(chunks, blocks);
  l->block = (uint32_t)(ops_ceil_div(p->of_block, 32 * EACH) * 32);
  l->cluster = (uint32_t)blocks, l->shared = (uint32_t)p->of_block * 16;
  ops_grid(l->grid, (uint64_t)(a->m * blocks), 1);
  return KERNEL_CLUSTER;
}

// Rows that no registers hold, in the shared memory of a cluster, or of blocks all over the GPU, in turn where these have asynchronous copies; what neither holds is read twice.
static int plan_long(const SolContext *ctx, const SolQuantize *a, QuantizeParams *p, OpsLaunch *l) {
  enum { OF_BLOCK = 32 << 10, MOST = 16, EACH = 8, STREAM_LEAST = 320 << 10 };
  _Static_assert(STREAM_LEAST <= QUANTIZE_CLUSTER_MOST * QUANTIZE_CLUSTER_SHARED,
                 "a cluster holds the others");
  int in = ops_size(a->dtype);
  p->stream =
      (StreamShape){.x = a->x, .y = a->y, .n = a->n, .x_stride = p->x_stride, .y_stride = p->y_stride};
  int64_t bytes = a->n * in;
  if (ctx->cc >= 90 && bytes < STREAM_LEAST) return plan_cluster(a, p, l);
  if (bytes >= STREAM_LEAST && stream_shape(ctx, a->m, in, 1, NULL, NULL, &p->stream, l))
    return KERNEL_STREAM;
  int64_t parts = bytes > MOST * HELD_SHARED && ctx->cc < 90 ? parts_held(ctx, bytes, PARTS_SHARED) : 0;
  if (!parts) {
    p->held = held_blocks(ctx, a->m, ops_ceil_div(a->n, 16 / in), OF_BLOCK, MOST, EACH, l);
    return KERNEL_HELD;
  }
  p->parts = parts_shape(a->y, a->m, a->n, in, 1, parts);
  l->shared = (uint32_t)(p->parts.length * in);
  parts_launch(&p->parts, l);
  return KERNEL_PARTS;
}

// A scale for each row. Lanes of a warp or a block hold it in registers: of the kernels the one that leaves the fewest places
// empty, and then the one with the fewest threads. Longer rows are held in shared memory. It depends on the row's length
// and alignment alone, and results do not depend on it.
static int plan_rows(const SolContext *ctx, const SolQuantize *a, QuantizeParams *p, OpsLaunch *l) {
  enum { SIZES = 4 };
  static const int counts[SIZES] = {6, 4, 3, 2},
                   kernels[SIZES] = {KERNEL_ROWS_6, KERNEL_ROWS_4, KERNEL_ROWS_3, KERNEL_ROWS_2};
  int in = ops_size(a->dtype), per = 16 / in;
  bool whole = a->n % per == 0 && elementwise_aligned(p->x, p->x_stride, 16) &&
               elementwise_aligned(p->y, p->y_stride, per);
  int64_t chunks = chunks_of(p->x, p->x_stride, a->n, in), least = INT64_MAX;
  int kernel = KERNEL_HELD;
  for (int i = 0; i < SIZES; i++) {
    int64_t threads = chunks_threads(chunks, counts[i]);
    if (threads > QUANTIZE_ROW(counts[i]) || threads * counts[i] >= least) continue;
    least = threads * counts[i];
    kernel = kernels[i];
    p->lane_bits = chunks_launch(threads, a->m, l);
  }
  if (kernel == KERNEL_HELD) return plan_long(ctx, a, p, l);
  return whole ? kernel + KERNEL_WHOLE_2 - KERNEL_ROWS_2 : kernel;
}

static SolStatus launch(SolContext *ctx, const void *args, SolStream stream) {
  const SolQuantize *a = args;
  const Format *f = format_of(a);
  int in = ops_size(a->dtype), bytes = (int)columns_of(a) / (is_packed(a) ? 2 : 1);
  QuantizeParams p = {.y = a->y,
                      .scales = a->scales,
                      .x = a->x,
                      .tensor_scale = is_packed(a) ? a->tensor_scale : NULL,
                      .m = (uint64_t)a->m,
                      .n = a->n,
                      .y_stride = ops_stride(a->y_stride, is_packed(a) ? a->n / 2 : a->n),
                      .x_stride = ops_stride(a->x_stride, a->n) * in,
                      .groups = groups_of(a),
                      .x_kind = ops_kind(a->dtype),
                      .how = f->how};
  OpsLaunch l = {.early = true, .params = &p, .bytes = sizeof p};
  p.shifted = !elementwise_aligned(a->y, a->m > 1 ? p.y_stride : 0, bytes);
  l.kernel = is_narrow(a, p.shifted) ? plan_narrow(ctx, a, &p, &l)
             : f->group              ? plan_blocks(a, &p, &l)
                                     : plan_rows(ctx, a, &p, &l);
  if (in == 4) l.kernel += KERNELS;
  return ops_launch(ctx, &ops_quantize, &l, stream);
}

// One group. Scales and fp4 are exact, with single roundings in fp32 by definition; int8 and fp8 are not rounded here.
static void reference_group(const SolQuantize *a, double *const *at, int64_t row, int64_t begin, int64_t end,
                            int64_t g) {
  const double *x = at[1] + row * a->n;
  double most = 0;
  for (int64_t c = begin; c < end; c++) most = fmax(most, fabs(x[c])); // passes over NaN
  Scale s = scale_of(a, (float)most, is_packed(a) && at[3] ? (float)at[3][0] : 1);
  double *scale = &at[2][row * groups_of(a) + g];
  *scale = is_packed(a)                   ? (double)num_cvt_f32_small((uint32_t)s.stored, NUM_E4M3)
           : a->format == SOL_QUANT_MXFP8 ? (double)(int8_t)(uint8_t)s.stored
                                          : s.stored;
  for (int64_t c = begin; c < end && !is_packed(a); c++) at[0][row * a->n + c] = x[c] * (double)s.times;
  for (int64_t c = begin; c < end && is_packed(a); c += 2) {
    uint32_t low = e2m1((float)x[c] * s.times), high = e2m1((float)x[c + 1] * s.times);
    at[0][(row * a->n + c) / 2] = (double)(int8_t)(uint8_t)(low | high << 4);
  }
}

static void reference(const void *args, double *const *at) {
  const SolQuantize *a = args;
  int64_t group = format_of(a)->group ? format_of(a)->group : a->n;
  for (int64_t row = 0; row < a->m; row++)
    for (int64_t begin = 0, g = 0; begin < a->n; begin += group, g++)
      reference_group(a, at, row, begin, cpu_min(begin + group, a->n), g);
}

static void cost(const void *args, SolOpArgs *op) {
  const SolQuantize *a = args;
  *op = (SolOpArgs){
      .dim = {a->m, a->n}, .dtype = a->dtype, .out_dtype = is_packed(a) ? SOL_FP4 : format_of(a)->y};
}

static void cost_more(const void *args, SolCost *out) {
  const SolQuantize *a = args;
  out->bytes_written += (double)a->m * (double)groups_of(a) * ops_size(format_of(a)->scales);
}

// Rows of each kernel: a few columns, lanes of a warp, blocks, a cluster, blocks all over the GPU.
static const int64_t shapes[][4] = {{1, 1},     {5, 2},     {3, 15},     {33, 32},  {300, 6},  {7, 128},
                                    {9, 333},   {70, 37},   {40, 135},   {3, 1024}, {2, 4098}, {2, 9001},
                                    {1, 32768}, {1, 70002}, {1, 600002}, {0, 64},   {3, 0}};

const OpsDef ops_quantize = {
    .name = "quantize",
    OPS_ARGS(SolQuantize, "MxN"),
    OPS_OPTIONS(option_names),
    OPS_OWN_ROWS,
    .cost_more = cost_more,
    .slack = 8,
    OPS_CASES(shapes, ops_row_bench),
    OPS_KERNELS("quantize", kernel_names),
    .shared = kernel_shared,
};
