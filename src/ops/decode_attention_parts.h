// What the files of decode_attention share.
#ifndef SOL_OPS_DECODE_ATTENTION_PARTS_H
#define SOL_OPS_DECODE_ATTENTION_PARTS_H

#include "kernels/decode_attention/decode_attention.h"
#include "ops/operation.h"

enum {
#define HEADS(kind, fp8, d, tiles, keys, warps, blocks, places) DECODE_HEADS_##kind##_##fp8##_##d##_##tiles,
#define ALONE(kind, d, keys, warps, blocks)                     DECODE_ALONE_##kind##_##d,
#define LATENT(kind, fp8)                                       DECODE_LATENT_##kind##_##fp8,
#define MANY(kind, fp8)                                         DECODE_MANY_##kind##_##fp8,
#define FEW(kind)                                               DECODE_FEW_##kind,
#define WIDE(kind)                                              DECODE_WIDE_##kind,
#define PART(kind, fp8, d, tiles, ways, keys, places, blocks)   DECODE_PART_##kind##_##fp8##_##d##_##ways,
#define COMBINE(v)                                              DECODE_COMBINE_##v,
#include "kernels/decode_attention/decode_attention.def"
  DECODE_KERNELS
};
extern const char *const decode_kernels[DECODE_KERNELS];
extern const uint32_t decode_shared[DECODE_KERNELS]; // bytes

// The arguments with every default filled in; max_length is then the most tokens of a sequence. Only after the checks.
SolDecodeAttention decode_filled(const SolDecodeAttention *args);
static inline SolDtype decode_cache_type(const SolDecodeAttention *a) {
  return ops_or(a->kv_dtype, a->dtype);
}
int64_t decode_workspace(const SolDecodeAttention *filled); // bytes
SolStatus decode_launch(SolContext *ctx, const void *args, SolStream stream);

#endif
