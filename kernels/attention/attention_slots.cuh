// What attention_pair.cuh and attention_items.cuh share: a slot of a ring, and the product with two times 64 values.
#ifndef SOL_KERNELS_ATTENTION_SLOTS_CUH
#define SOL_KERNELS_ATTENTION_SLOTS_CUH

#include "attention/attention_brief.cuh"

template <int KIND, int D, int HALVES, int ODD> struct AttentionSlots {
  typedef AttentionBrief<KIND, D, HALVES, ODD> Brief;
  typedef OddTile<D> Odd;
  typedef typename Brief::Head Head;
  typedef typename Brief::Sums Sums;
  typedef float Scores[16][4];
  enum { BOXES = D / 64, O_TILES = D / 8 };
  struct Slot {
    uint8_t *at;
    uint64_t *full, *empty, *fetched; // fetched, ends: of rows that begin at any element
    uint32_t parity;
    uint8_t *ends;
  };

  // Warps of a slot's copy that arrive when it is there.
  enum { ARRIVALS = ODD ? Odd::SHIFTERS / 32 : 1 };

  // A slot's rows that begin at any element: of the `count` first ones `there`.
  static __device__ __forceinline__ void bring(const Slot &x, const AttentionParams &p, int which, int b, int token, int head, int count, int there) {
    Odd to = {shared_address(x.at), shared_address(x.ends), (uint32_t)count * 128};
    Odd::take(x.fetched, x.empty, x.parity);
    to.bring(Odd::rows_of(p, which, b, token, head, count, there));
    Odd::give(x.fetched, x.full);
  }

  static __device__ __forceinline__ void leave(const Slot &x) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(x.empty, 0);
  }

  static __device__ __forceinline__ void multiply_values(const AttentionTiledParams &p, Sums &o, const Scores &sc, const Slot &of_v, int last) {
    uint64_t v = matrix_descriptor(shared_address(of_v.at), p.box * 128);
    uint32_t left[8][4];
#pragma unroll
    for (int i = 0; i < 8; i++) as_left_operand(left[i], sc[i * 2], sc[i * 2 + 1], KIND);
    barrier_wait(of_v.full, of_v.parity);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 8; i++) wgmma_left<O_TILES * 4, KIND>(Brief::flat(o), left[i], v + i % 4 * 128 + i / 4 * last * 8);
    wgmma_commit();
    wgmma_wait<0>();
    settle(Brief::flat(o));
    leave(of_v);
  }
};

#endif
