// y = x / sqrt(mean(x^2) + eps) * (weight + offset). The bodies are in norm.cuh, norm_any.cuh, norm_span.cuh and norm_spread.cuh.
#include "norm_shift.cuh"
#include "norm_spread_fp8.cuh"
#include "norm_odd.cuh"

#if __CUDA_ARCH__ >= 900
#undef NORM_SHIFTED
#define NORM_SHIFTED(name, op, T, number) NORM_KERNEL(name, NORM_LAYER_THREADS, 5, norm_shift, op, T, 2, 0, 1)
#endif
#define NORM(T, name, how, number) NORM_##how(sol_rmsnorm_##T##_##name, NORM_RMS, TYPE_##T, number)
#include "norm.def"

// To fp8.
#define NORM(T, name, how, number) FP8_##how(sol_rmsnorm_fp8_##T##_##name, NORM_RMS_FP8, TYPE_##T, number)
#if __CUDA_ARCH__ >= 900
#define FP8_LANES  NORM_LANES
#define FP8_WARP(name, op, T, chunks) FP8_WARP##chunks(name, op, T)
#define FP8_WARP4(name, op, T) NORM_KERNEL(name, 128, 8, norm_held, op, T, 4, 32, 0)
#define FP8_WARP3(...)
#define FP8_WARP5(...)
#define FP8_BLOCK  NORM_BLOCK
#define FP8_BLOCK4 NORM_BLOCK4
#define FP8_BIG    NORM_BIG
#define ODD_FEWER (__CUDA_ARCH__ >= 1000) // registers would spill there
#define ODD(T, name, scales, lanes, chunks, threads, blocks)                                                           \
  NORM_KERNEL(sol_rmsnorm_odd_##T##_##name, threads, (blocks) - ((lanes) ? 0 : ODD_FEWER), norm_odd_##scales,          \
              NORM_RMS_FP8, TYPE_##T, chunks, lanes, 1)
#include "norm_odd.def"
#define FP8_SPREAD NORM_SPREAD_FP8
#else // where fp8 takes many instructions, the others take all rows
#define FP8_SPREAD(...)
#define FP8_LANES(...)
#define FP8_WARP(...)
#define FP8_BLOCK(...)
#define FP8_BLOCK4(...)
#define FP8_BIG(...)
#endif
#define FP8_ROWS   NORM_ROWS
#define FP8_WIDE   NORM_WIDE
#define FP8_SHIFTED(...)
#define FP8_CLUSTERED(...)
#define FP8_NARROW NORM_NARROW
#define FP8_DIRECT NORM_DIRECT
#define FP8_PACKED(...)
#define FP8_WORDS(...)
#define FP8_ANY    NORM_ANY
#define FP8_STRIPED NORM_STRIPED
#define FP8_LOOP   NORM_LOOP
#include "norm.def"
