// O = softmax(scores) V. README.md says which kernel is for what.
#include "attention/attention_mma.cuh"
#if __CUDA_ARCH_FEAT_SM90_ALL
#include "attention/attention_brief.cuh"
#include "attention/attention_items.cuh"
#include "attention/attention_pair.cuh"
#include "attention/attention_wgmma.cuh"
#define TILED(kind, d)                                                                                       \
  KERNEL __launch_bounds__(ATTENTION_TILED_THREADS, 1)                                                       \
      sol_attention_tiled_##kind##_##d(const __grid_constant__ AttentionTiledParams p) {                     \
    AttentionWgmma<kind, d>::run(p);                                                                         \
  }
#define BRIEF(kind, d, halves)                                                                               \
  KERNEL __launch_bounds__(ATTENTION_BRIEF_THREADS, ATTENTION_BRIEF_BLOCKS(d, halves))                       \
      sol_attention_brief_##kind##_##d##_##halves(const __grid_constant__ AttentionTiledParams p) {          \
    AttentionBrief<kind, d, halves>::run(p);                                                                         \
  }
#define ODD(kind, d)                                                                                         \
  KERNEL __launch_bounds__(128 + ATTENTION_ODD_COPY_THREADS(d), ATTENTION_ODD_BLOCKS(d))                     \
      sol_attention_odd_##kind##_##d(const __grid_constant__ AttentionTiledParams p) {                       \
    AttentionBrief<kind, d, 1, 1>::run(p);                                                                   \
  }
#define PAIR(kind, d, odd)                                                                                   \
  KERNEL __launch_bounds__(ATTENTION_PAIR_THREADS, 1)                                                        \
      sol_attention_pair_##kind##_##d##_##odd(const __grid_constant__ AttentionTiledParams p) {              \
    AttentionPair<kind, d, odd>::run(p);                                                                     \
  }
#define ITEMS(kind, d, odd)                                                                                  \
  KERNEL __launch_bounds__(ATTENTION_ITEMS_THREADS, 1)                                                       \
      sol_attention_items_##kind##_##d##_##odd(const __grid_constant__ AttentionTiledParams p) {             \
    AttentionItems<kind, d, odd>::run(p);                                                                    \
  }
#else
#define ITEMS(kind, d, odd)
#define TILED(kind, d)
#define PAIR(kind, d, odd)
#define BRIEF(kind, d, halves)
#define ODD(kind, d)
#endif
#if __CUDA_ARCH__ >= 800
#define MMA(kind, d)                                                                                         \
  KERNEL __launch_bounds__(ATTENTION_THREADS, ATTENTION_BLOCKS(d)) sol_attention_##kind##_##d(const __grid_constant__ AttentionParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    AttentionMma<kind, d>::run(p);                                                                           \
  }
#else
#define MMA(kind, d)
#endif
#include "attention/attention.def"
