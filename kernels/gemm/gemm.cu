// C = f(alpha A B + beta C + bias) + residual. README.md says which kernel is for what.
#include "gemm/gemm_skinny.cuh"
#if __CUDA_ARCH_FEAT_SM90_ALL
#include "gemm/gemm_weights.cuh"
#include "gemm/gemm_wgmma.cuh"
#define TILED(kind, a, b, tall, wide, stages, down, across, per_sm)                                          \
  KERNEL __launch_bounds__(GEMM_THREADS(per_sm), per_sm)                                                             \
      sol_gemm_##kind##_##a##b##_##tall##x##wide##x##stages##_##down##x##across(                             \
          const __grid_constant__ GemmTiledParams p) {                                                       \
    GemmWgmma<kind, a, b, tall, wide, stages, down, across, per_sm>::run(p);                                 \
  }
#define SPLIT(kind, a, b, wide, stages, swapped, per_sm)                                                     \
  KERNEL __launch_bounds__(GEMM_THREADS(per_sm), per_sm)                                                             \
      sol_gemm_##kind##_##a##b##_split_##wide##x##stages##_##swapped(const __grid_constant__ GemmTiledParams p) { \
    GemmSplit<kind, swapped ? b : a, swapped ? a : b, wide, stages, swapped>::run(p);                        \
  }
#define WEIGHTS(kind, bits, stages)                                                                           \
  KERNEL __launch_bounds__(GEMM_THREADS(2), 2) sol_gemm_##kind##_weights_##bits(const __grid_constant__ GemmWeightsParams p) { \
    GemmWeights<kind, bits, stages>::run(p);                                                                 \
  }
#else
#define WEIGHTS(kind, bits, stages)
#define TILED(kind, a, b, tall, wide, stages, down, across, per_sm)
#define SPLIT(kind, a, b, wide, stages, swapped, per_sm)
#endif
#if __CUDA_ARCH__ >= 800
#define SKINNY(kind, eights, warps, deep)                                                                           \
  KERNEL __launch_bounds__(warps * 32) sol_gemm_##kind##_skinny_##eights(const __grid_constant__ GemmAnyParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    gemm_skinny<eights, warps, deep>(p, kind);                                                                            \
  }
#else
#define SKINNY(kind, eights, warps, deep)
#endif
#if __CUDA_ARCH__ >= 890
#define SKINNY_89(kind, eights, warps, deep) SKINNY(kind, eights, warps, deep)
#else
#define SKINNY_89(kind, eights, warps, deep)
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
