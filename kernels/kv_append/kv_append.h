#ifndef SOL_KERNELS_KV_APPEND_H
#define SOL_KERNELS_KV_APPEND_H

#include "../elementwise.h"

enum { KV_UNITS = 4 }; // of a thread, where rows are moved by 8 bytes

typedef struct KvParams {
  void *k_cache, *v_cache;
  const void *k, *v, *slots;
  uint64_t items; // threads in all
  Divider token;  // by a token's items, which are 16 bytes of k and v; any: by as many as a row may touch
  int64_t places; // of the cache
  int64_t length, last; // any: elements of a token; the last token's number
  int64_t k_stride, v_stride; // from token to token, in items; any: in elements
  float k_scale, v_scale;     // fp8
  int32_t kind, wide_ids;
} KvParams;

#endif
