#ifndef SOL_KERNELS_KV_APPEND_H
#define SOL_KERNELS_KV_APPEND_H

#include "../elementwise.h"

enum { KV_UNITS = 4 }; // of a thread, where rows are moved by units of up to 8 bytes

typedef struct KvScale { // Fp8Scale of kernels/fp8.cuh
  float up, over;
} KvScale;

typedef struct KvParams {
  void *k_cache, *v_cache;
  const void *k, *v, *slots;
  uint64_t items; // threads in all
  Divider token;  // by a token's items, which are 16 bytes of k and v; any: by as many as a row may touch
  int64_t places; // of the cache
  int64_t length, last; // any: elements of a token; the last token's number
  int64_t k_stride, v_stride; // from token to token, in items; any: in elements
  KvScale k_scale, v_scale;   // fp8
  int32_t kind, wide_ids;
} KvParams;

// Short rows, by units: pieces of the cache as wide as the alignment of all its rows allows.
typedef struct KvShortParams {
  void *k_cache, *v_cache;
  const void *k, *v, *slots;
  int64_t last;              // the last token's number
  Divider token;             // by a token's units
  Divider32 units;           // the same
  uint32_t k_step, v_step;   // bytes from token to token
  uint32_t row, places;      // bytes of a token in the cache, which has so many places: up to 2^31
  int32_t unit, whole;       // bytes of a unit; whether its elements can be loaded together
  int32_t kind, id_bytes;
  float k_over, v_over;      // fp8: KvScale's, whose `up` is 1
} KvShortParams;

#endif
