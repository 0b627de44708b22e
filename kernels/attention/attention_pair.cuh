// Attention on sm_90a where all keys that a tile's queries see fit into the tile, of 65 to 128 queries and keys: attention_brief.cuh's scheme for
// tiles of which two would not fit into shared memory beside each other. One thread copies into a ring of slots, each of a tile's queries, keys
// or values, so that a slot that has been read is filled again while the others still are; two warpgroups have 64 queries each.
//
// A slot has p.box rows, a multiple of 16. Products are of 64 rows: the first ones, and the last, some of which are among the first too. What is
// there twice is masked (keys), or not written (queries).
#ifndef SOL_KERNELS_ATTENTION_PAIR_CUH
#define SOL_KERNELS_ATTENTION_PAIR_CUH

#include "attention/attention_slots.cuh"

// ODD: rows begin at any element.
template <int KIND, int D, int ODD> struct AttentionPair : AttentionSlots<KIND, D, 2, ODD> {
  typedef AttentionSlots<KIND, D, 2, ODD> Slots;
  typedef typename Slots::Brief Brief;
  typedef typename Slots::Head Head;
  typedef typename Slots::Scores Scores;
  typedef typename Slots::Sums Sums;
  typedef typename Slots::Slot Slot;
  typedef float Half[32]; // of the scores
  enum { BOXES = Slots::BOXES, SLOTS = ATTENTION_PAIR_SLOTS };
  struct Shared { // barriers, then slots from the next multiple of 1024 on, and their rows' ends
    uint64_t full[SLOTS], empty[SLOTS], fetched[SLOTS];
  };

  // Number `count` of those that the block fills.
  static __device__ __forceinline__ Slot slot_at(const AttentionTiledParams &p, uint32_t count) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    uint32_t round = count / (unsigned)p.slots, slot = count - round * p.slots;
    uint8_t *slots = memory + 1024, *ends = slots + p.slots * p.box * (D * 2) + slot * p.box * 16;
    return {slots + slot * p.box * (D * 2), &s->full[slot], &s->empty[slot], &s->fetched[slot], round & 1, ends};
  }

  // ---- copies ----

  static __device__ __forceinline__ void copy(const AttentionTiledParams &p, const void *map, uint32_t count, int token, int head, int b) {
    Slot x = slot_at(p, count);
    barrier_wait(x.empty, x.parity ^ 1);
    barrier_expect(x.full, p.box * D * 2);
#pragma unroll
    for (int i = 0; i < BOXES; i++) tensor_load_4d(x.at + i * p.box * 128, map, x.full, i * 64, token, head, b);
  }

  static __device__ __forceinline__ void produce(const AttentionTiledParams &p) {
    uint32_t count = 0;
    for (int tile = blockIdx.x; tile < p.all.tiles; tile += gridDim.x, count += 3) {
      Head h = Brief::head_at(p, tile, 0);
      int kv = h.head / p.all.group, q_b = p.all.q_starts ? 0 : h.b, kv_b = p.all.kv_starts ? 0 : h.b;
      copy(p, &p.q, count, h.q.q_first + h.first, h.head, q_b);
      copy(p, &p.k, count + 1, h.q.k_first + h.key, kv, kv_b);
      copy(p, &p.v, count + 2, h.q.k_first + h.key, kv, kv_b);
    }
  }

  static __device__ __forceinline__ void produce_odd(const AttentionTiledParams &p) {
    const AttentionParams &a = p.all;
    uint32_t count = 0;
    for (int tile = blockIdx.x; tile < a.tiles; tile += gridDim.x) {
      Head h = Brief::head_at(p, tile, 0);
#pragma unroll 1
      for (int which = 0; which < ODD_TENSORS; which++, count++) {
        int token = which ? h.q.k_first + h.key : h.q.q_first + h.first, there = which ? h.q.keys - h.key : h.end - h.first;
        Slots::bring(slot_at(p, count), a, which, h.b, token, which ? h.head / a.group : h.head, p.box, there);
      }
    }
  }

  // top, last: the rows where the warpgroup's queries and the second half of the keys begin.
  static __device__ __forceinline__ void multiply_keys(const AttentionTiledParams &p, Scores &sc, const Slot &of_q, const Slot &of_k, int top, int last) {
    uint64_t q = matrix_descriptor(shared_address(of_q.at + top * 128), 0), k = matrix_descriptor(shared_address(of_k.at), 0);
    barrier_wait(of_q.full, of_q.parity);
    barrier_wait(of_k.full, of_k.parity);
    wgmma_fence();
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int i = 0; i < D / 16; i++) {
        int at = (i / 4 * p.box * 128 + i % 4 * 32) / 16;
        wgmma<32, KIND, 0, 0>(*(Half *)&sc[half * 8], q + at, k + at + half * last * 8, i);
      }
    wgmma_commit();
    wgmma_wait<0>();
    settle(Brief::flat(sc));
    Slots::leave(of_k);
  }

  static __device__ __forceinline__ void softmax(const AttentionParams &p, const Head &h, Scores &sc, const ScoreUnit &u, Softmax *x, int row, int last) {
    Seen seen[2] = {attention_seen(p, h.q, row), attention_seen(p, h.q, row + 8)};
    float by[2];
    if (u.cap != 0) cap_scores(sc, u.before, u.cap);
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int left = -h.key - half * last - threadIdx.x % 4 * 2, least = half ? 64 + h.key : 0;
      int from[2] = {max(seen[0].from, least) + left, max(seen[1].from, least) + left}, to[2] = {seen[0].to + left, seen[1].to + left};
      mask_scores(*(float(*)[8][4]) &sc[half * 8], from, to);
    }
    softmax_tile(sc, x, u.unit, by);
  }

  static __device__ __forceinline__ void compute(const AttentionTiledParams &p) {
    ScoreUnit u = score_unit(p.all.scale, p.all.soft_cap);
    // The same in all lanes, said so that the compiler knows it.
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), last = p.box - 64;
    int top = warp / 4 * last, mine = top + warp % 4 * 16;
    bool twice = warp >= 4 && mine < 64; // the first warpgroup has these queries too
    uint32_t count = 0;
    for (int tile = blockIdx.x; tile < p.all.tiles; tile += gridDim.x, count += 3) {
      Head h = Brief::head_at(p, tile, 0);
      Slot of_q = slot_at(p, count);
      Scores sc;
      Sums o = {};
      Softmax x = softmax_start();
      multiply_keys(p, sc, of_q, slot_at(p, count + 1), top, last);
      softmax(p.all, h, sc, u, &x, h.first + mine + threadIdx.x % 32 / 4, last);
      Slots::multiply_values(p, o, sc, slot_at(p, count + 2), last);
      named_sync(1, 256); // the queries have been read
      if (!twice) Brief::store(of_q.at, p.box * 128, p.all, h, o, x, u.unit, mine, h.first + mine);
      async_fence();
      Slots::leave(of_q);
    }
  }

  static __device__ __forceinline__ void run(const AttentionTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    if (threadIdx.x == 256) {
      if (!ODD) tensor_prefetch_map(&p.q), tensor_prefetch_map(&p.k), tensor_prefetch_map(&p.v);
      for (int i = 0; i < SLOTS; i++) {
        barrier_init(&s->full[i], Slots::ARRIVALS), barrier_init(&s->empty[i], 8);
        if (ODD) barrier_init(&s->fetched[i], Slots::Odd::FETCHERS);
      }
      barrier_init_done();
    }
    __syncthreads();
    let_successor_start();
    wait_for_predecessor();
    if (threadIdx.x >= 256) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(ATTENTION_PAIR_COPY_REGISTERS(ODD)));
      if (ODD) produce_odd(p);
      else if (threadIdx.x == 256) produce(p);
      __syncwarp();
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(ATTENTION_PAIR_REGISTERS(ODD)));
      compute(p);
    }
  }
};

#endif
