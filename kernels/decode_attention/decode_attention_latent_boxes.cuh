// Decode attention of MLA on sm_90a for more than 16 heads: the products of decode_attention_latent.cuh, by two warpgroups, and a third, of which one warp
// fills two stages of 64 tokens by tensor copies of eight, which never lie in two pages. A stage is copied anew as soon as its values were
// multiplied, while the other's scores are. With an fp8 cache (FP8) all of the third warpgroup fills them, by decode_attention_latent_bytes.cuh.
#ifndef SOL_KERNELS_DECODE_ATTENTION_LATENT_BOXES_CUH
#define SOL_KERNELS_DECODE_ATTENTION_LATENT_BOXES_CUH

#include "attention/attention_hopper.cuh"
#include "decode_attention/decode_attention_boxes.cuh"
#include "decode_attention/decode_attention_latent_bytes.cuh"

template <int KIND, int FP8> struct DecodeLatentBoxes {
  typedef DecodeLatent<KIND, FP8> Base;
  typedef typename Base::Sums Sums;
  typedef typename Base::Scores Scores;
  enum { D = Base::D, KEYS = Base::KEYS, THREADS = Base::THREADS, STAGES = 2, EACH = FP8 ? 1 : DECODE_WIDE_BOX, COPIES = KEYS / EACH, FILLERS = FP8 ? LatentBytes::THREADS : COPIES };
  struct Shared : Base::Shared {
    uint64_t full[STAGES], empty[STAGES];
  };
  struct Ring {
    int stage = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  };

  // ---- copies: the first lanes have one each ----

  struct Copy {
    DecodePlace place;
    uint32_t there; // of its tokens
  };

  static __device__ __forceinline__ int first_of(const DecodeItem &item) { // with a window a part may begin within a copy
    return item.key & -EACH;
  }

  static __device__ __forceinline__ Copy look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item) {
    int first = first_of(*item), from = first + threadIdx.x % 32 * EACH, after = min(max(item->to - from, 0), (int)EACH);
    Copy x = {decode_look_up(plan, p, *item, from), (1u << after) - 1};
    if (from < item->key) x.there &= ~0u << (item->key - from);
    item->key = first + KEYS;
    if (item->key >= item->to) decode_next(plan, p, item);
    return x;
  }

  static __device__ __forceinline__ void copy(Shared *s, const DecodeBoxParams &p, const Copy &x, int stage) {
    int lane = threadIdx.x % 32;
    bool good = x.place.there && (unsigned)x.place.page < (unsigned)p.all.pages;
    ((uint8_t *)&s->there[stage])[lane] = good ? (uint8_t)x.there : 0;
    barrier_expect(&s->full[stage], good ? (int)Base::EIGHT : 0);
    if (good) tensor_load_5d(s->stage[stage] + lane * Base::EIGHT, &p.k, &s->full[stage], 0, x.place.in_page, 0, x.place.kv, x.place.page);
  }

  static __device__ __forceinline__ void copy_items(Shared *s, const DecodePlan &plan, const DecodeBoxParams &p, Ring *ring) {
    DecodeItem ahead = decode_find(plan, p.all, plan.begin);
    Copy next = look_up(plan, p.all, &ahead);
    for (bool more = true; more; ring->next()) {
      Copy now = next;
      more = ahead.index < plan.end;
      if (more) next = look_up(plan, p.all, &ahead); // pages' numbers come while the stage is waited for
      barrier_wait(&s->empty[ring->stage], ring->parity ^ 1);
      if (threadIdx.x % 32 < COPIES) copy(s, p, now, ring->stage);
    }
  }

  static __device__ __forceinline__ void convert_items(Shared *s, const DecodePlan &plan, const DecodeParams &p, Ring *ring) {
    DecodeItem ahead = decode_find(plan, p, plan.begin);
    LatentBytes bytes;
    bytes.start(p, decode_row(p, LatentBytes::look_up(plan, p, &ahead)));
    bool more = true, after = ahead.index < plan.end; // after this tile, after the next
    for (DecodePlace next = LatentBytes::look_up(plan, p, &ahead); more; ring->next()) {
      uint32_t row = decode_row(p, next);
      more = after, after = ahead.index < plan.end;
      next = LatentBytes::look_up(plan, p, &ahead);
      barrier_wait(&s->empty[ring->stage], ring->parity ^ 1);
      bytes.convert(p, s->stage[ring->stage], &s->there[ring->stage], row);
      async_fence();
      barrier_arrive(&s->full[ring->stage], 0);
    }
  }

  // ---- products ----

  // Zeros for the tokens that are not there, whose weight is zero.
  static __device__ __noinline__ void clear_others(uint8_t *stage, uint64_t there) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
      int token = i / (D / 8);
      if (!(there >> token & 1)) *(uint4 *)(stage + Base::place_in(token, i % (D / 8))) = {};
    }
    async_fence();
    Base::sync_both();
  }

  static __device__ __forceinline__ void attend_tile(Shared *s, const ScoreUnit &u, Softmax *x, Sums &o, const Ring &ring) {
    barrier_wait(&s->full[ring.stage], ring.parity);
    if (!FP8 && ~s->there[ring.stage]) clear_others(s->stage[ring.stage], s->there[ring.stage]);
    Scores sc;
    float by[2];
    if (threadIdx.x < 128) Base::weigh(s, u, x, sc, by, ring.stage);
    Base::sync_both(); // the other warpgroup has read the weights of the tile before
    if (threadIdx.x < 128) Base::leave_weights(s, sc, by);
    Base::sync_both(); // the weights are there
    Base::add_values(s, o, ring.stage);
    barrier_arrive(&s->empty[ring.stage], 0); // all lanes: racecheck does not follow one that arrives for its warp
  }

  static __device__ __forceinline__ void attend_items(Shared *s, const DecodePlan &plan, const DecodeParams &p, Ring *ring) {
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    DecodeItem next = decode_find(plan, p, plan.begin);
    Base::load_queries(s, p, next);
    while (next.index < plan.end) {
      DecodeItem now = next;
      Sums o = {};
      Softmax x = softmax_start();
      copy_wait<0>();
      async_fence();
      Base::sync_both(); // the queries are there
      for (int key = first_of(now), more = 1; more; ring->next()) { // an empty part has one tile too, as in look_up
        attend_tile(s, u, &x, o, *ring);
        key += KEYS, more = key < now.to;
      }
      decode_next(plan, p, &next);
      if (next.index < plan.end) Base::load_queries(s, p, next); // while this item's results are written
      Base::finish(s, p, now, o, x);
    }
  }

  // Of all sequences; fills: stages, not sums.
  static __device__ __forceinline__ void run_items(Shared *s, const DecodeParams &p, const DecodeBoxParams *boxes, bool fills) {
    Ring ring;
    for (int first = 0; first < p.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<THREADS>(s->before, p, first);
      if (plan.begin < plan.end && !fills) attend_items(s, plan, p, &ring);
      if (FP8 && plan.begin < plan.end && fills) convert_items(s, plan, p, &ring);
      if (!FP8 && plan.begin < plan.end && fills && threadIdx.x < THREADS + 32) copy_items(s, plan, *boxes, &ring);
      __syncthreads();
    }
  }

  // The registers of those that fill and of those that multiply, of which a block of 384 threads has 168 each.
  static __device__ __forceinline__ void share_registers(bool fills) {
    if (FP8 && fills) asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    else if (FP8) asm volatile("setmaxnreg.inc.sync.aligned.u32 200;");
    else if (fills) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    else asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  }

  // boxes: where tensor copies fill the stages.
  static __device__ __forceinline__ void run(const DecodeParams &p, const DecodeBoxParams *boxes) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= DECODE_WIDE_SHARED, "as the launcher has it");
    if (threadIdx.x < STAGES) barrier_init(&s->full[threadIdx.x], FILLERS), barrier_init(&s->empty[threadIdx.x], THREADS);
    barrier_init_done();
    decode_hint<THREADS>(s->before, p, FP8 ? D : D * 2);
    wait_for_predecessor();
    if (threadIdx.x < THREADS) {
      share_registers(false);
      run_items(s, p, boxes, false);
    } else {
      share_registers(true);
      run_items(s, p, boxes, true);
    }
  }
};

#endif
