// GEMM on the CPU: panels of A and B as floats, whatever their layout, so that one loop serves all of them.
#include <math.h>

#include "ops/cpu.h"
#include "ops/gemm_parts.h"

enum { ROWS = 16, COLUMNS = 128, DEEP = GEMM_GROUP }; // of a panel

typedef struct Panels {
  float a[ROWS][DEEP], b[DEEP][COLUMNS], sum[ROWS][COLUMNS], part[ROWS][COLUMNS]; // part: of int4, DEEP k
} Panels;

// Into `to`, whose rows are `pitch` apart, from element (row, column) on; turned: the matrix lies column by column.
static void load_panel(SolDtype dtype, const void *from, int64_t first, int64_t stride, bool turned,
                       int64_t rows, int64_t columns, float *to, int64_t pitch) {
  float line[COLUMNS];
  for (int64_t i = 0; i < rows && !turned; i++)
    cpu_load(dtype, from, first + i * stride, columns, to + i * pitch);
  for (int64_t i = 0; i < columns && turned; i++) {
    cpu_load(dtype, from, first + i * stride, rows, line);
    for (int64_t j = 0; j < rows; j++) to[j * pitch + i] = line[j];
  }
}

// The same of int4 weights, which lie by columns.
static void load_int4(const SolGemm *a, int64_t z, int64_t row, int64_t column, int64_t rows, int64_t columns,
                      float *to) {
  for (int64_t j = 0; j < columns; j++) {
    const uint8_t *line = (const uint8_t *)a->b + (z * a->b_batch_stride + (column + j) * a->b_stride) / 2;
    for (int64_t k = row; k < row + rows; k++) {
      int four = line[k / 2] >> k % 2 * 4 & 15;
      to[(k - row) * COLUMNS + j] = (float)(four > 7 ? four - 16 : four);
    }
  }
}

static int64_t place(bool turned, int64_t row, int64_t column, int64_t stride) {
  return turned ? column * stride + row : row * stride + column;
}

static void multiply(Panels *p, float (*to)[COLUMNS], int64_t rows, int64_t columns, int64_t deep) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < deep; k++) {
      float x = p->a[i][k], *restrict sum = to[i];
      const float *restrict y = p->b[k];
      for (int64_t j = 0; j < columns; j++) sum[j] += x * y[j];
    }
}

// The part of the sums from k on, times the columns' scales.
static void add_scaled(const SolGemm *a, Panels *p, int64_t z, int64_t k, int64_t column, int64_t rows,
                       int64_t columns) {
  const float *scales = a->b_scales + (z * gemm_b_width(a) + column) * gemm_groups(a) + k / GEMM_GROUP;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) p->sum[i][j] += p->part[i][j] * scales[j * gemm_groups(a)];
  memset(p->part, 0, sizeof p->part);
}

// The sums of `rows` by `columns` of A B from (i, j) on.
static void sum_panel(const SolGemm *a, Panels *p, int64_t z, int64_t i, int64_t j, int64_t rows,
                      int64_t columns) {
  bool int4 = a->weights == SOL_WEIGHTS_INT4;
  memset(p->sum, 0, sizeof p->sum);
  if (int4) memset(p->part, 0, sizeof p->part);
  for (int64_t k = 0; k < a->k; k += DEEP) {
    int64_t deep = cpu_min(DEEP, a->k - k);
    load_panel(a->dtype, a->a, z * a->a_batch_stride + place(a->a_columns, i, k, a->a_stride), a->a_stride,
               a->a_columns, rows, deep, p->a[0], DEEP);
    SolDtype of_b = a->weights == SOL_WEIGHTS_FP8 ? SOL_FP8 : a->dtype;
    if (int4)
      load_int4(a, z, k, j, deep, columns, p->b[0]);
    else
      load_panel(of_b, a->b, z * a->b_batch_stride + place(a->b_columns, k, j, a->b_stride), a->b_stride,
                 a->b_columns, deep, columns, p->b[0], COLUMNS);
    multiply(p, int4 ? p->part : p->sum, rows, columns, deep);
    if (int4) add_scaled(a, p, z, k, j, rows, columns);
  }
}

static float silu(float x) {
  return x / (1 + expf(-x));
}

static float activate(float x, SolActivation activation) {
  if (activation == SOL_ACTIVATION_RELU) return x < 0 ? 0 : x;
  if (activation != SOL_ACTIVATION_GELU) return x;
  return x / (1 + expf(-2 * 0.7978845608f * (x + 0.044715f * x * x * x)));
}

// One row's sums become alpha times them plus what is added before the activation.
static void add_before(const SolGemm *a, float *sum, int64_t row, int64_t column, int64_t count) {
  float other[COLUMNS];
  float alpha = a->alpha * (a->a_scale ? *a->a_scale : 1) * (a->b_scale ? *a->b_scale : 1);
  for (int64_t j = 0; j < count; j++) sum[j] *= alpha;
  if (a->beta != 0) {
    cpu_load(gemm_out(a), a->c, row + column, count, other);
    for (int64_t j = 0; j < count; j++) sum[j] += a->beta * other[j];
  }
  if (!a->bias) return;
  cpu_load(gemm_bias_type(a), a->bias, column, count, other);
  for (int64_t j = 0; j < count; j++) sum[j] += other[j];
}

static void write_row(const SolGemm *a, float *sum, int64_t to, int64_t residual, int64_t count) {
  float other[COLUMNS];
  if (a->residual) {
    cpu_load(gemm_out(a), a->residual, residual, count, other);
    for (int64_t j = 0; j < count; j++) sum[j] += other[j];
  }
  cpu_store(gemm_out(a), a->c, to, count, sum);
}

static void write_panel(const SolGemm *a, Panels *p, const Panels *up, int64_t z, int64_t i0, int64_t j0,
                        int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++) {
    int64_t row = z * a->c_batch_stride + (i0 + i) * a->c_stride;
    float *sum = p->sum[i];
    add_before(a, sum, row, j0, columns);
    for (int64_t j = 0; j < columns; j++)
      sum[j] = up ? silu(sum[j]) * up->sum[i][j] : activate(sum[j], a->activation);
    write_row(a, sum, row + j0, z * a->residual_batch_stride + (i0 + i) * a->residual_stride + j0, columns);
  }
}

static void strips(const void *args, int64_t begin, int64_t end) {
  SolGemm a = gemm_filled(args);
  Panels p, up;
  bool gated = a.activation == SOL_ACTIVATION_SILU_MUL;
  int64_t each = ops_ceil_div(a.m, ROWS);
  for (int64_t strip = begin; strip < end; strip++) {
    int64_t z = strip / each, i = strip % each * ROWS, rows = cpu_min(ROWS, a.m - i);
    for (int64_t j = 0; j < a.n; j += COLUMNS) {
      int64_t columns = cpu_min(COLUMNS, a.n - j);
      if (gated) {
        sum_panel(&a, &up, z, i, j + a.n, rows, columns);
        for (int64_t r = 0; r < rows; r++) add_before(&a, up.sum[r], 0, j + a.n, columns);
      }
      sum_panel(&a, &p, z, i, j, rows, columns);
      write_panel(&a, &p, gated ? &up : NULL, z, i, j, rows, columns);
    }
  }
}

SolStatus gemm_cpu(SolContext *ctx, const void *args) {
  SolGemm a = gemm_filled(args);
  cpu_parallel(ctx, a.batch * ops_ceil_div(a.m, ROWS), a.batch * a.m * a.n, strips, args);
  return SOL_OK;
}
