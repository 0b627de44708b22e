// C = f(alpha A B + beta C + bias) + residual. README.md says which kernel is for what.
#include "gemm/gemm_few_held.cuh"
#if __CUDA_ARCH_FEAT_SM90_ALL
#include "gemm/gemm_split.cuh"
#include "gemm/gemm_wgmma.cuh"
#define TILED(kind, a, b, rows, wide, stages, per_sm)                                                        \
  KERNEL __launch_bounds__(GEMM_THREADS(rows, per_sm), per_sm)                                               \
      sol_gemm_##kind##_##a##b##_##rows##x##wide##x##stages(const __grid_constant__ GemmTiledParams p) {     \
    GemmWgmma<kind, a, b, rows, wide, stages, per_sm>::run(p);                                               \
  }
#define SPLIT(kind, a, b, wide, stages, per_sm)                                                              \
  KERNEL __launch_bounds__(GEMM_THREADS(128, per_sm), per_sm)                                                \
      sol_gemm_##kind##_##a##b##_split_##wide##x##stages(const __grid_constant__ GemmTiledParams p) {       \
    GemmSplit<kind, a, b, wide, stages>::run(p);                                                             \
  }
#else
#define TILED(kind, a, b, rows, wide, stages, per_sm)
#define SPLIT(kind, a, b, wide, stages, per_sm)
#endif
#if __CUDA_ARCH__ >= 800
#define FEW(kind, bits)                                                                                      \
  KERNEL __launch_bounds__(256, 1) sol_gemm_##kind##_few_##bits(const __grid_constant__ GemmFewParams p) {   \
    gemm_few<kind, bits>(p);                                                                                 \
  }
#else
#define FEW(kind, bits)
#endif
#if __CUDA_ARCH__ >= 890
#define FEW_89(kind, bits) FEW(kind, bits)
#else
#define FEW_89(kind, bits)
#endif
#define ANY(kind)                                                                                            \
  KERNEL __launch_bounds__(GEMM_ANY_THREADS) sol_gemm_##kind##_any(const __grid_constant__ GemmAnyParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    gemm_any(p, kind, kind, NULL, 0);                                                                        \
  }
#define ANY_WEIGHTS(kind, bits)                                                                              \
  KERNEL __launch_bounds__(GEMM_ANY_THREADS)                                                                 \
      sol_gemm_##kind##_any_weights_##bits(const __grid_constant__ GemmAnyWeightsParams p) {                 \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    gemm_any(p.any, kind, bits == 4 ? GEMM_INT4 : KIND_FP8, p.scales, p.groups);                             \
  }
#include "gemm/gemm.def"
