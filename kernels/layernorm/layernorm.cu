// y = (x - mean) / sqrt(variance + eps) * (weight + offset) + bias. The bodies are in norm.cuh, and norm_layer.cuh.
#include "norm_shift.cuh"
#include "norm_spread.cuh"

#undef NORM_BLOCK
#undef NORM_BLOCK4
#undef NORM_ANY
#undef NORM_STRIPED
// Weights are loaded early for any number of rows, but for four chunks a thread in fp32.
#define NORM_BLOCK(name, op, T, early)  LAYER_BLOCK##early(name, op, T)
#define NORM_BLOCK4(name, op, T, early) LAYER_##T##early(name, op, T)
#define LAYER_BLOCK1(name, op, T)       NORM_KERNEL(name, 512, 2, norm_held, op, T, 2, 0, 1)
#define LAYER_TYPE_f1(name, op, T)      NORM_KERNEL(name, 512, 1, norm_held, op, T, 4, 0, 1)
#define LAYER_TYPE_f0(name, op, T)      NORM_KERNEL(name, 512, 2, norm_held, op, T, 4, 0, 0)
#define LAYER_TYPE_h1(name, op, T)      NORM_KERNEL(name, 256, 3, norm_held, op, T, 4, 0, 1)
#define LAYER_TYPE_b1(name, op, T)      NORM_KERNEL(name, 256, 3, norm_held, op, T, 4, 0, 1)
#define LAYER_BLOCK0(...)
#define LAYER_TYPE_h0(...)
#define LAYER_TYPE_b0(...)
#define NORM_ANY(name, op, T, chunks) NORM_KERNEL(name, 512, 1, layer_any, op, T, chunks, 0, 0, 0)
#define NORM_STRIPED(name, op, T, chunks)                                                                               \
  NORM_KERNEL(name, NORM_STRIPED_THREADS, 2, layer_any, op, T, chunks, 0, (T) == TYPE_f, 1)
#if __CUDA_ARCH__ >= 900
#undef NORM_ROWS
#define NORM_ROWS(name, op, T, number) LAYER_ROWS_##T(name, op, T)
#define LAYER_ROWS(name, op, T) NORM_KERNEL(name, NORM_ROWS_THREADS, NORM_ROWS_RUNNING / NORM_ROWS_THREADS, layer_rows, op, T, NORM_ROWS_CHUNKS, 0, 1)
#define LAYER_ROWS_TYPE_f(...)
#define LAYER_ROWS_TYPE_h LAYER_ROWS
#define LAYER_ROWS_TYPE_b LAYER_ROWS
#undef NORM_SHIFTED
#define NORM_SHIFTED(name, op, T, number) LAYER_SHIFTED_##T(name, op, T)
#define LAYER_SHIFTED(name, op, T) NORM_KERNEL(name, NORM_LAYER_THREADS, 4, norm_shift, op, T, 2, 0, 1)
#define LAYER_SHIFTED_TYPE_f(...)
#define LAYER_SHIFTED_TYPE_h LAYER_SHIFTED
#define LAYER_SHIFTED_TYPE_b LAYER_SHIFTED
#undef NORM_BIG
#undef NORM_WIDE
#define NORM_BIG(name, op, T, number) NORM_KERNEL(name, NORM_LAYER_THREADS, 5, layer_big, op, T, 2, 0, 1, 0, 0)
#define NORM_WIDE(name, op, T, number) LAYER_WIDE_##T(name, op, T)
#define LAYER_WIDE(name, op, T) NORM_KERNEL(name, NORM_LAYER_THREADS, 4, layer_big, op, T, 4, 0, 1, 0, 1)
#define LAYER_WIDE_TYPE_f(...)
#define LAYER_WIDE_TYPE_h LAYER_WIDE
#define LAYER_WIDE_TYPE_b LAYER_WIDE
#endif
#define NORM(T, name, how, number) NORM_##how(sol_layernorm_##T##_##name, NORM_LAYER, TYPE_##T, number)
#include "norm.def"
