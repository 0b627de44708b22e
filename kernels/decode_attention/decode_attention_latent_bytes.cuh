// An fp8 cache of MLA on sm_90a, as fp16 in the tiles of decode_attention_latent.cuh: a warpgroup that does not multiply loads 64 tokens,
// converts them and stores them where tensor copies put 16-bit ones. Two threads have a token, and every other 16 bytes of it each; while a tile
// is converted the next one's bytes are on their way, in the same registers.
#ifndef SOL_KERNELS_DECODE_ATTENTION_LATENT_BYTES_CUH
#define SOL_KERNELS_DECODE_ATTENTION_LATENT_BYTES_CUH

#include "decode_attention/decode_attention_latent.cuh"

struct LatentBytes {
  typedef DecodeLatent<KIND_FP16, 1> Tile;
  enum { THREADS = 128, CHUNKS = Tile::D / 32 }; // of a thread
  uint4 chunk[CHUNKS];
  uint32_t row; // of the cache; ~0: none

  // Eight neighbouring lanes have as many tokens, whose places in a tile are in different banks.
  static __device__ __forceinline__ int token(void) {
    return threadIdx.x % THREADS / 32 * 16 + threadIdx.x % 32 / 16 * 8 + threadIdx.x % 8;
  }
  static __device__ __forceinline__ int half(void) {
    return threadIdx.x / 8 % 2;
  }

  static __device__ __forceinline__ DecodePlace look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item) {
    DecodePlace x = decode_look_up(plan, p, *item, item->key + token());
    item->key += Tile::KEYS;
    if (item->key >= item->to && item->index < plan.end) decode_next(plan, p, item);
    return x;
  }

  // What is not there is zero: its weight is, too.
  static __device__ __forceinline__ uint4 load(const DecodeParams &p, uint32_t row, int i) {
    if (row == ~0u) return {};
    return __ldcs((const uint4 *)((const char *)p.k_cache + (int64_t)row * Tile::D) + i * 2 + half());
  }

  __device__ __forceinline__ void start(const DecodeParams &p, uint32_t first) {
    row = first;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) chunk[i] = load(p, row, i);
  }

  // The tile to `stage`, and the token's next row on its way.
  __device__ __forceinline__ void convert(const DecodeParams &p, uint8_t *stage, uint64_t *there, uint32_t next) {
    uint32_t all = __ballot_sync(~0u, row != ~0u), at = Tile::place_in(token(), half() * 2);
    if (threadIdx.x % 32 == 0) ((uint16_t *)there)[threadIdx.x % THREADS / 32] = (uint16_t)((all & 0xff) | (all >> 8 & 0xff00));
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
      uint4 x = chunk[i];
      uint8_t *to = stage + i / 2 * Tile::ATOM;
      uint32_t place = at ^ (uint32_t)i % 2 * 64; // four pieces of 16 bytes further
      uint4 low, high;
      halves_of_fp8(x.x, &low.x, &low.y), halves_of_fp8(x.y, &low.z, &low.w), halves_of_fp8(x.z, &high.x, &high.y), halves_of_fp8(x.w, &high.z, &high.w);
      *(uint4 *)(to + place) = low, *(uint4 *)(to + (place ^ 16)) = high;
      chunk[i] = load(p, next, i);
    }
    row = next;
  }
};

#endif
