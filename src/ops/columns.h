// What scale_columns, bias_relu_scale and bias_gelu share: y = f(x, vector[column]).
#ifndef SOL_OPS_COLUMNS_H
#define SOL_OPS_COLUMNS_H

#include "ops/cpu.h"
#include "ops/elementwise.h"

typedef struct Columns {
  void *y;
  const void *x, *vector;
  int64_t m, n, y_stride, x_stride;
  SolDtype dtype, out_dtype, weight_dtype;
  float scale;
  size_t vector_field; // where the arguments hold its pointer
  const char *vector_name;
  bool vector_optional;
} Columns;

// in[i] = f(in[i], vector[i], scale); `vector` is NULL where there is none.
typedef void ColumnsApply(float *restrict in, const float *restrict vector, int64_t count, float scale);
typedef double ColumnsReference(double x, double v, double scale);

// The arguments and test cases of the two that take a SolBias.
Columns bias_columns(const SolBias *a);
bool bias_make(const OpsCase *c, float scale, SolBias *a);

int columns_views(const Columns *a, OpsView *v);
SolStatus columns_check(const Columns *a, const char *op, SolError *err);
SolStatus columns_cpu(SolContext *ctx, const Columns *a, ColumnsApply *apply);
SolStatus columns_launch(SolContext *ctx, const OpsDef *def, const Columns *a, SolStream stream);
// `none`: what stands for the vector where there is none
void columns_reference(const Columns *a, double *const *at, ColumnsReference *f, double none);
SolStatus columns_cost(const Columns *a, const char *op, SolOpArgs *args, SolError *err);

// Kernels of one operation, those of kernels/columns.def.
enum { COLUMNS_KERNELS = 13, COLUMNS_OPTIONS = 2, COLUMNS_SHAPES = 16 };

// Option 1: where rows have a stride, y's is not x's.
extern const char *const columns_options[COLUMNS_OPTIONS];
extern const int64_t columns_shapes[COLUMNS_SHAPES][4];

#endif
