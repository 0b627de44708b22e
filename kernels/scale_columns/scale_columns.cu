// y = x * scale[column]
#include "columns.cuh"

#define COLUMNS_LEAN(name, in, out, x_kind, y_kind, odd, each)                                               \
  KERNEL __launch_bounds__(256 / each, 8 * each) sol_scale_columns_##name(ColumnsLean p) {                   \
    columns_lean(SCALE_COLUMNS, in, out, x_kind, y_kind, odd, each, p);                                      \
  }
#define COLUMNS_DENSE(in, out)                                                                               \
  KERNEL __launch_bounds__(256, 4) sol_scale_columns_dense_##in##_##out(const __grid_constant__ ColumnsLean p) { \
    columns_dense_by_kind(SCALE_COLUMNS, in, out, p);                                                    \
  }
#define COLUMNS_ANY(in, out, alike)                                                                          \
  KERNEL __launch_bounds__(256, !alike ? 3 : in == 2 && out == 2 ? 4 : 5) sol_scale_columns_##in##_##out##_##alike(const __grid_constant__ ColumnsParams p) { \
    columns_any_by_kind(SCALE_COLUMNS, in, out, alike, p);                                                                         \
  }
#define COLUMNS_SHORT(in, out)                                                                               \
  KERNEL __launch_bounds__(SINGLE_THREADS, 6) sol_scale_columns_short_##in##_##out(const __grid_constant__ ColumnsParams p) { \
    COLUMNS_BY_KIND(columns_short, SCALE_COLUMNS, in, out, p)                                                           \
  }
#define COLUMNS_PAIRS(in, out)                                                                               \
  KERNEL __launch_bounds__(SINGLE_THREADS, 5) sol_scale_columns_pairs_##in##_##out(const __grid_constant__ ColumnsParams p) { \
    COLUMNS_BY_KIND(columns_pairs, SCALE_COLUMNS, in, out, p)                                                           \
  }
#define COLUMNS_SINGLE()                                                                                     \
  KERNEL __launch_bounds__(256, 8) sol_scale_columns_single(const __grid_constant__ ColumnsParams p) { columns_single(SCALE_COLUMNS, p); }
#include "columns.def"
