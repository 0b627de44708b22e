// Attention of new tokens to a paged cache, in parts. README.md says how.
#include "decode_attention/decode_attention_split.cuh"
#include "decode_attention/decode_attention_warps.cuh"
#if __CUDA_ARCH_FEAT_SM90_ALL
#include "decode_attention/decode_attention_few.cuh"
#include "decode_attention/decode_attention_latent.cuh"
#endif

#if __CUDA_ARCH__ >= 800
#define DECODE(name, threads, blocks, ...)                                                                   \
  KERNEL __launch_bounds__(threads, blocks) sol_decode_attention_##name(const __grid_constant__ DecodeParams p) { \
    let_successor_start();                                                                                   \
    __VA_ARGS__::run(p);                                                                                     \
  }
#else
#define DECODE(...)
#endif
#define HEADS(kind, fp8, d, tiles, keys, warps, stages)                                                      \
  DECODE(kind##_##fp8##_##d##_##tiles, DECODE_HEADS_THREADS(DECODE_WARPS_ON(__CUDA_ARCH__ / 10, warps)), 1,                  \
         DecodeWarps<kind, fp8, d, tiles, keys, DECODE_WARPS_ON(__CUDA_ARCH__ / 10, warps), DECODE_RING_ON(__CUDA_ARCH__ / 10, stages)>)
#define LATENT(kind, fp8) DECODE(latent_##kind##_##fp8, DECODE_THREADS, 1, DecodeSplit<kind, fp8, 1, 1>)
#define MANY(kind, fp8)                                                                                      \
  DECODE(many_##kind##_##fp8, DECODE_THREADS *DECODE_MANY_GROUPS, 1, DecodeSplit<kind, fp8, DECODE_MANY_GROUPS, DECODE_MANY_TALL>)
#if __CUDA_ARCH_FEAT_SM90_ALL
#define FEW(kind)  DECODE(few_##kind, 256, 1, DecodeFew<kind>)
#define WIDE(kind) DECODE(wide_##kind, 256, 1, DecodeLatent<kind>)
#else
#define FEW(kind)
#define WIDE(kind)
#endif
#include "decode_attention/decode_attention.def"
