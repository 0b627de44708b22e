// Attention of new tokens to a paged cache, in parts, and the parts' sum. README.md says how.
#include "decode_attention/decode_attention_alone.cuh"
#include "decode_attention/decode_attention_combine.cuh"
#include "decode_attention/decode_attention_split.cuh"
#include "decode_attention/decode_attention_warps.cuh"
#if __CUDA_ARCH_FEAT_SM90_ALL
#include "decode_attention/decode_attention_few.cuh"
#include "decode_attention/decode_attention_latent_boxes.cuh"
#include "decode_attention/decode_attention_part.cuh"
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
#define HEADS(kind, fp8, d, tiles, keys, warps, blocks, places)                                       \
  DECODE(kind##_##fp8##_##d##_##tiles, warps * 32, blocks, DecodeWarps<kind, fp8, d, tiles, keys, warps, places>)
#define ALONE(kind, d, keys, warps, blocks)                                                                  \
  DECODE(alone_##kind##_##d, warps * 32, blocks, DecodeAlone<kind, d, keys, warps>)
#define LATENT_1(kind) DECODE(latent_##kind##_1, DECODE_THREADS, 1, DecodeSplit<kind, 1, 1, 1>)
#define MANY_1(kind)                                                                                         \
  DECODE(many_##kind##_1, DECODE_THREADS *DECODE_MANY_GROUPS, 1, DecodeSplit<kind, 1, DECODE_MANY_GROUPS, DECODE_MANY_TALL>)
#if __CUDA_ARCH_FEAT_SM90_ALL // FEW and WIDE are for these
#define LATENT_0(kind)
#define MANY_0(kind)
#else
#define LATENT_0(kind) DECODE(latent_##kind##_0, DECODE_THREADS, 1, DecodeSplit<kind, 0, 1, 1>)
#define MANY_0(kind)                                                                                         \
  DECODE(many_##kind##_0, DECODE_THREADS *DECODE_MANY_GROUPS, 1, DecodeSplit<kind, 0, DECODE_MANY_GROUPS, DECODE_MANY_TALL>)
#endif
#define LATENT(kind, fp8) LATENT_##fp8(kind)
#define MANY(kind, fp8)   MANY_##fp8(kind)
#if __CUDA_ARCH_FEAT_SM90_ALL
#define FEW(kind)                                                                                            \
  KERNEL __launch_bounds__(256, 1) sol_decode_attention_few_##kind(const __grid_constant__ DecodeBoxParams p) { \
    let_successor_start();                                                                                   \
    DecodeFew<kind>::run(p);                                                                                 \
  }
#define WIDE(kind) DECODE(wide_##kind, 256, 1, DecodeLatent<kind>)
#define WIDE_BOXES(kind)                                                                                     \
  KERNEL __launch_bounds__(384, 1) sol_decode_attention_wide_boxes_##kind(const __grid_constant__ DecodeBoxParams p) { \
    let_successor_start();                                                                                   \
    DecodeLatentBoxes<kind, 0>::run(p.all, &p);                                                              \
  }
#define WIDE_BYTES(kind) DECODE(wide_bytes_##kind, 384, 1, WideBytes<kind>)
template <int KIND> struct WideBytes {
  static __device__ __forceinline__ void run(const DecodeParams &p) {
    DecodeLatentBoxes<KIND, 1>::run(p, 0);
  }
};
#define PART(kind, fp8, d, tiles, ways, keys, places, blocks)                                                \
  KERNEL __launch_bounds__(DECODE_PART_WARPS * 32, blocks)                                                   \
      sol_decode_attention_part_##kind##_##fp8##_##d##_##tiles##_##ways(const __grid_constant__ DecodeBoxParams p) {   \
    let_successor_start();                                                                                   \
    DecodePart<kind, fp8, d, tiles, ways, keys, places>::run(p);                                             \
  }
#else
#define PART(...)
#define FEW(kind)
#define WIDE(kind)
#define WIDE_BOXES(kind)
#define WIDE_BYTES(kind)
#endif
#define COMBINE(v) DECODE(combine_##v, DECODE_SLOTS * 32, v > 64 ? 2 : 3, DecodeCombine<v>)
#include "decode_attention/decode_attention.def"
