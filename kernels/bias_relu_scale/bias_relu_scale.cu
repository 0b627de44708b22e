// y = max(x + bias[column], 0) * scale, and y = gelu(x + bias[column])
#include "columns.cuh"

#define COLUMNS_LEAN(name, in, out, x_kind, y_kind, odd, each)                                               \
  KERNEL __launch_bounds__(256 / each, 8 * each) sol_bias_relu_scale_##name(ColumnsLean p) {                 \
    columns_lean(BIAS_RELU_SCALE, in, out, x_kind, y_kind, odd, each, p);                                    \
  }
#define COLUMNS_DENSE(in, out)                                                                               \
  KERNEL __launch_bounds__(256, 4) sol_bias_relu_scale_dense_##in##_##out(const __grid_constant__ ColumnsLean p) { \
    columns_dense_by_kind(BIAS_RELU_SCALE, in, out, p);                                                    \
  }
#define COLUMNS_ANY(in, out, alike)                                                                          \
  KERNEL __launch_bounds__(256, !alike ? 3 : in == 2 && out == 2 ? 4 : 5) sol_bias_relu_scale_##in##_##out##_##alike(const __grid_constant__ ColumnsParams p) { \
    columns_any_by_kind(BIAS_RELU_SCALE, in, out, alike, p);                                                                         \
  }
#define COLUMNS_SHORT(in, out)                                                                               \
  KERNEL __launch_bounds__(SINGLE_THREADS, 6) sol_bias_relu_scale_short_##in##_##out(const __grid_constant__ ColumnsParams p) { \
    COLUMNS_BY_KIND(columns_short, BIAS_RELU_SCALE, in, out, p)                                                           \
  }
#define COLUMNS_PAIRS(in, out)                                                                               \
  KERNEL __launch_bounds__(SINGLE_THREADS, 5) sol_bias_relu_scale_pairs_##in##_##out(const __grid_constant__ ColumnsParams p) { \
    COLUMNS_BY_KIND(columns_pairs, BIAS_RELU_SCALE, in, out, p)                                                           \
  }
#define COLUMNS_SINGLE()                                                                                     \
  KERNEL __launch_bounds__(256, 8) sol_bias_relu_scale_single(const __grid_constant__ ColumnsParams p) { columns_single(BIAS_RELU_SCALE, p); }
#include "columns.def"

#define COLUMNS_LEAN(name, in, out, x_kind, y_kind, odd, each)                                               \
  KERNEL __launch_bounds__(256 / each, 8 * each) sol_bias_gelu_##name(ColumnsLean p) {                       \
    columns_lean(BIAS_GELU, in, out, x_kind, y_kind, odd, each, p);                                          \
  }
#define COLUMNS_DENSE(in, out)                                                                               \
  KERNEL __launch_bounds__(256, 4) sol_bias_gelu_dense_##in##_##out(const __grid_constant__ ColumnsLean p) { \
    columns_dense_by_kind(BIAS_GELU, in, out, p);                                                    \
  }
#define COLUMNS_ANY(in, out, alike)                                                                          \
  KERNEL __launch_bounds__(256, !alike ? 3 : in == 2 && out == 2 ? 4 : 5) sol_bias_gelu_##in##_##out##_##alike(const __grid_constant__ ColumnsParams p) { \
    columns_any_by_kind(BIAS_GELU, in, out, alike, p);                                                                         \
  }
#define COLUMNS_SHORT(in, out)                                                                               \
  KERNEL __launch_bounds__(SINGLE_THREADS, 6) sol_bias_gelu_short_##in##_##out(const __grid_constant__ ColumnsParams p) { \
    COLUMNS_BY_KIND(columns_short, BIAS_GELU, in, out, p)                                                           \
  }
#define COLUMNS_PAIRS(in, out)                                                                               \
  KERNEL __launch_bounds__(SINGLE_THREADS, 5) sol_bias_gelu_pairs_##in##_##out(const __grid_constant__ ColumnsParams p) { \
    COLUMNS_BY_KIND(columns_pairs, BIAS_GELU, in, out, p)                                                           \
  }
#define COLUMNS_SINGLE()                                                                                     \
  KERNEL __launch_bounds__(256, 8) sol_bias_gelu_single(const __grid_constant__ ColumnsParams p) { columns_single(BIAS_GELU, p); }
#include "columns.def"
