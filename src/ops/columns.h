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
// The fields that the argument structures have alike.
#define COLUMNS_OF(a)                                                                                        \
  .y = (a)->y, .x = (a)->x, .m = (a)->m, .n = (a)->n, .y_stride = (a)->y_stride, .x_stride = (a)->x_stride,  \
  .dtype = (a)->dtype, .out_dtype = (a)->out_dtype, .weight_dtype = (a)->weight_dtype

// in[i] = f(in[i], vector[i], scale); `vector` is NULL where there is none.
typedef void ColumnsApply(float *restrict in, const float *restrict vector, int64_t count, float scale);
typedef double ColumnsReference(double x, double v, double scale);

int columns_views(const Columns *a, OpsView *v);
SolStatus columns_check(const Columns *a, SolError *err);
SolStatus columns_cpu(SolContext *ctx, const Columns *a, ColumnsApply *apply);
SolStatus columns_launch(SolContext *ctx, const OpsDef *def, const Columns *a, SolStream stream);
// `none`: the value of the vector's elements where there is no vector
void columns_reference(const Columns *a, double *const *at, ColumnsReference *f, double none);
void columns_cost(const Columns *a, SolOpArgs *op);

// The two operations on a SolBias.
Columns bias_columns(const SolBias *a);
bool bias_make(const OpsCase *c, void *args);
int bias_views(const void *args, OpsView *v);
SolStatus bias_check(const void *args, SolError *err);
void bias_cost(const void *args, SolOpArgs *op);

// Kernels of one operation, those of kernels/columns.def.
enum { COLUMNS_KERNELS = 31, COLUMNS_OPTIONS = 2, COLUMNS_SHAPES = 16 };

// Option 1: where rows have a stride, y's is not x's.
extern const char *const columns_options[COLUMNS_OPTIONS];
extern const int64_t columns_shapes[COLUMNS_SHAPES][4];
// The fields of a definition that all three have alike; cpu, launch and reference are static functions of the
// file.
#define COLUMNS_OP                                                                                           \
  OPS_OPTIONS(columns_options), .cpu = cpu, .launch = launch, .reference = reference,                        \
                                OPS_CASES(columns_shapes, ops_row_bench)
#define BIAS_OP                                                                                              \
  OPS_ARGS(SolBias, "MxN"), .make = bias_make, .views = bias_views, .check = bias_check, .cost = bias_cost,  \
                            COLUMNS_OP

#endif
