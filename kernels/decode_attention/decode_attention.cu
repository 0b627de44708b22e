// Attention of new tokens to a paged cache, in parts, and the parts' sum. README.md says how.
#include "decode_attention/decode_attention_combine.cuh"
#if __CUDA_ARCH__ >= 800
#define SPLIT(kind, fp8, d, v)                                                                               \
  KERNEL __launch_bounds__(DECODE_THREADS, d == DECODE_LATENT ? 1 : 2)                                       \
      sol_decode_attention_##kind##_##fp8##_##d(const __grid_constant__ DecodeParams p) {                    \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    DecodeSplit<kind, fp8, d, v>::run(p);                                                                    \
  }
#define MANY(kind, fp8, d, v)                                                                                \
  KERNEL __launch_bounds__(DECODE_THREADS * DECODE_MANY_GROUPS, 1)                                           \
      sol_decode_attention_many_##kind##_##fp8##_##d(const __grid_constant__ DecodeParams p) {               \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    DecodeSplit<kind, fp8, d, v, DECODE_KEYS(d, 2 - fp8), DECODE_STAGES, DECODE_MANY_GROUPS, DECODE_MANY_TALL>::run(p); \
  }
#define COMBINE(v)                                                                                           \
  KERNEL __launch_bounds__(DECODE_THREADS) sol_decode_attention_combine_##v(const __grid_constant__ DecodeParams p) { \
    let_successor_start();                                                                                   \
    wait_for_predecessor();                                                                                  \
    DecodeCombine<v>::run(p);                                                                                \
  }
#else
#define SPLIT(kind, fp8, d, v)
#define MANY(kind, fp8, d, v)
#define COMBINE(v)
#endif
#include "decode_attention/decode_attention.def"
