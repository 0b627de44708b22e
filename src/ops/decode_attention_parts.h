// What the files of decode_attention share.
#ifndef SOL_OPS_DECODE_ATTENTION_PARTS_H
#define SOL_OPS_DECODE_ATTENTION_PARTS_H

#include "kernels/decode_attention/decode_attention.h"
#include "ops/operation.h"

enum {
#define ROW(id, ...) DECODE_##id,
#include "ops/decode_attention_kernels.def"
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
