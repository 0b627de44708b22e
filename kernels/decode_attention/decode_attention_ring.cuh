// Decode attention for heads of 64, 128 and 256 on sm_90a. Four warps copy: tiles of KEYS tokens into shared memory, by tensor copies of
// 16 tokens, which never lie in two pages; they go on to the next item while the others are still at this one. WARPS warps have every
// WARPS-th tile of an item each, and at its end leave their sums in shared memory, where they are added up.
//
// Each warp has a ring of its own. In one ring for all a warp could come to a place whose tile before, another warp's, has not arrived: the
// barrier would be two phases behind what the warp waits for, which looks the same as done.
//
// The products are those of decode_attention_warps.cuh: scores are K Q^T, 16 tokens by 8 heads, and O^T is V^T P^T, K and V by ldmatrix.
#ifndef SOL_KERNELS_DECODE_ATTENTION_RING_CUH
#define SOL_KERNELS_DECODE_ATTENTION_RING_CUH

#include "decode_attention/decode_attention_warps.cuh"
#include "hopper.cuh"

INLINE void tensor_load_5d(void *to, const void *map, uint64_t *bar, int x, int y, int z, int v, int w) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z), "r"(v), "r"(w)
      : "memory");
}

template <int KIND, int FP8, int D, int TILES, int KEYS, int WARPS> struct DecodeRing {
  typedef DecodeWarps<KIND, FP8, D, TILES, KEYS, WARPS, 1> Base;
  typedef typename Base::Kept Kept;
  typedef typename Base::State State;
  typedef typename Base::Scores Scores;
  typedef uint32_t Queries[TILES][D / 16][2];
  enum {
    ROW = Base::ROW,
    WIDE = ROW < 128 ? ROW : 128, // bytes of a row of a copy
    THREADS = (WARPS + DECODE_RING_COPIES) * 32,
    GROUPS = KEYS / 16,
    BOX = 16 * ROW, // bytes of a copy
    HEADS = TILES * 8,
    STEPS = FP8 ? 2 : 1, // products of what ldmatrix brings
    AHEAD = D < 256,     // queries of the next item are loaded ahead: there are registers for them
    DEPTH = DECODE_RING_DEPTH(TILES, D, KEYS, Base::BYTES, WARPS),
    STAGES = DEPTH * WARPS
  };
  static constexpr uint32_t ALL = Base::ALL;
  struct Shared {
    uint8_t stage[STAGES][2][GROUPS][BOX]; // of K, then of V
    Kept kept;
    uint64_t full[STAGES], empty[STAGES];
    uint32_t there[STAGES]; // a bit for each token
    int before[DECODE_SEQUENCES + WARPS];
  };

  // Where 16 bytes number `piece` of a token are in a copy of 16.
  static __device__ __forceinline__ uint32_t place_in(int token, int piece) {
    return piece / (WIDE / 16) * 16 * WIDE + tile_place<WIDE>(token, piece % (WIDE / 16));
  }

  // ---- the warps that copy ----

  // Copies of an item, one a lane, whose pages' numbers are on their way from memory.
  struct Batch {
    DecodePlace place;
    uint32_t there; // of the lane's 16 tokens
    int copies;
  };

  // Up to 32 copies from where `item` is, which goes on to those after them. There are none at the plan's end.
  static __device__ __forceinline__ Batch look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item) {
    Batch x = {{-1, 0, 0, false}, 0, 0};
    if (item->index >= plan.end) return x;
    int first = item->key & -16, from = first + threadIdx.x % 32 * 16;
    x.place = decode_look_up(plan, p, *item, from);
    uint32_t after = item->to - from >= 16 ? 0xffff : (1u << max(item->to - from, 0)) - 1;
    x.there = from < item->key ? after & ~0u << (item->key - from) : after;
    x.copies = min((item->to - first + 15) / 16, 32);
    item->key = first + 32 * 16;
    if (item->key >= item->to) decode_next(plan, p, item);
    return x;
  }

  // A warp that copies has every DECODE_RING_COPIES-th tile. count: of the lane's warp, tiles so far.
  static __device__ __forceinline__ void copy_items(Shared *s, const DecodePlan &plan, const DecodeRingParams &p, uint32_t &count) {
    int lane = threadIdx.x % 32, mine = threadIdx.x / 32 - WARPS;
    DecodeItem ahead = decode_find(plan, p.all, plan.begin);
    Batch next = look_up(plan, p.all, &ahead);
    for (bool more = true; more;) {
      Batch x = next;
      more = ahead.index < plan.end;
      if (more) next = look_up(plan, p.all, &ahead);
      bool good = x.place.there && (unsigned)x.place.page < (unsigned)p.all.pages;
      uint32_t copied = __ballot_sync(~0u, good), there = good ? x.there : 0;
      for (int i = mine * GROUPS; i < x.copies; i += GROUPS * DECODE_RING_COPIES) {
        static_assert(32 / GROUPS % WARPS == 0 && WARPS % DECODE_RING_COPIES == 0, "each look-up begins with the first warp's tile");
        int warp = i / GROUPS % WARPS;
        uint32_t before = __shfl_sync(~0u, count, warp), all = __shfl_sync(~0u, there, i), now = copied >> i & ((1 << GROUPS) - 1);
        if (GROUPS == 2) all |= __shfl_sync(~0u, there, i + 1) << 16;
        int stage = warp * DEPTH + before % DEPTH;
        count += lane == warp;
        barrier_wait(&s->empty[stage], before / DEPTH + 1 & 1);
        if (lane == i) {
          s->there[stage] = all;
          barrier_expect(&s->full[stage], __popc(now) * 2 * BOX);
        }
        __syncwarp();
        if (lane / GROUPS == i / GROUPS && good) {
          tensor_load_5d(s->stage[stage][0][lane % GROUPS], &p.k, &s->full[stage], 0, x.place.in_page, 0, x.place.kv, x.place.page);
          tensor_load_5d(s->stage[stage][1][lane % GROUPS], &p.v, &s->full[stage], 0, x.place.in_page, 0, x.place.kv, x.place.page);
        }
      }
    }
  }

  // ---- the others ----

  // A lane has of head g = lane / 4 the elements that meet its ones of K: of every 16 with c = lane % 4 numbers 2c, 2c + 1, 2c + 8 and 2c + 9,
  // with fp8 4c to 4c + 3.
  static __device__ __forceinline__ void load_queries(Queries &q, const DecodeParams &p, const DecodeItem &item) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      int in_group = item.tile * HEADS + t * 8 + lane / 4;
      const uint16_t *from = (const uint16_t *)p.q + item.b * p.q_row + (int64_t)(item.kv * p.group + in_group) * D + lane % 4 * (FP8 ? 4 : 2);
#pragma unroll
      for (int i = 0; i < D / 8; i++) {
        const uint16_t *at = from + i / 2 * 16 + i % 2 * (FP8 ? 2 : 8);
        uint32_t x = in_group >= p.group ? 0 : p.q_aligned ? *(const uint32_t *)at : at[0] | (uint32_t)at[1] << 16;
        if (FP8 && p.kind != KIND_FP16) {
          float2 wide = widen2(x, p.kind);
          x = narrow2(wide.x, wide.y, KIND_FP16);
        }
        q[t][i / 2][i % 2] = x;
      }
    }
  }

  static __device__ __forceinline__ void multiply_keys(Scores &sc, const Queries &q, uint32_t keys) {
    enum { CHAINS = TILES * GROUPS < 4 ? 2 : 1 };
    float d[CHAINS][TILES][GROUPS][4] = {};
    int lane = threadIdx.x % 32;
    uint32_t from = keys + place_in(lane % 16, lane / 16);
#pragma unroll
    for (int j = 0; j < ROW / 32; j++)
#pragma unroll
      for (int i = 0; i < GROUPS; i++) {
        uint32_t k[4];
        load_matrices(k, (from ^ (j % (WIDE / 32) * 32)) + j / (WIDE / 32) * 16 * WIDE + i * BOX);
#pragma unroll
        for (int t = 0; t < TILES; t++) {
#pragma unroll
          for (int h = 0; h < STEPS; h++) {
            uint32_t a[4] = {k[0], k[1], k[2], k[3]}, low = k[h * 2], high = k[h * 2 + 1];
            int step = j * STEPS + h;
            if (FP8) a[0] = Base::halves(low & 0xffff), a[1] = Base::halves(high & 0xffff), a[2] = Base::halves(low >> 16), a[3] = Base::halves(high >> 16);
            multiply_16x8(d[step % CHAINS][t][i], a, q[t][step][0], q[t][step][1], KIND);
          }
        }
      }
#pragma unroll
    for (int i = 0; i < TILES * GROUPS * 4; i++) {
      int t = i / (GROUPS * 4), g = i / 4 % GROUPS;
      sc[t][g][i % 4] = d[0][t][g][i % 4] + (CHAINS == 2 ? d[CHAINS - 1][t][g][i % 4] : 0);
    }
  }

  // The rows of product i are columns 16 i + g and 16 i + g + 8 of V, with fp8 16 i + 2g and 16 i + 2g + 1.
  static __device__ __forceinline__ void add_values(State *x, const Scores &sc, uint32_t values) {
    int lane = threadIdx.x % 32;
    uint32_t from = values + (FP8 ? place_in(lane % 16, lane / 16) : place_in(lane % 8 + lane / 16 * 8, lane / 8 % 2));
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
      uint32_t b[TILES][2][2];
#pragma unroll
      for (int t = 0; t < TILES; t++) Base::as_right_operand(b[t], sc[t][i]);
#pragma unroll
      for (int j = 0; j < ROW / 32; j++) {
        uint32_t v[4];
        load_matrices_turned(v, (from ^ (j % (WIDE / 32) * 32)) + j / (WIDE / 32) * 16 * WIDE + i * BOX);
#pragma unroll
        for (int h = 0; h < STEPS; h++) {
          uint32_t a[4] = {v[0], v[1], v[2], v[3]};
          if (FP8) {
            uint32_t low = __byte_perm(v[h * 2], 0, 0x3120), high = __byte_perm(v[h * 2 + 1], 0, 0x3120);
            a[0] = Base::halves(low & 0xffff), a[1] = Base::halves(low >> 16), a[2] = Base::halves(high & 0xffff), a[3] = Base::halves(high >> 16);
          }
#pragma unroll
          for (int t = 0; t < TILES; t++) {
            float(&o)[4] = x->o[t][j * STEPS + h];
            multiply_16x8(o, a, b[t][0][0], b[t][0][1], KIND);
            if (KIND == KIND_BF16) multiply_16x8(o, a, b[t][1][0], b[t][1][1], KIND);
          }
        }
      }
    }
  }

  // Zeros for the tokens that are not there, which have a weight of zero, but may have NaN in their place.
  static __device__ __noinline__ void clear_others(uint8_t *stage, uint32_t there) {
    for (int i = threadIdx.x % 32; i < 2 * KEYS * ROW / 16; i += 32) {
      int token = i / (ROW / 16);
      if (!(there >> token % KEYS & 1)) *(uint4 *)(stage + token / 16 * BOX + place_in(token % 16, i % (ROW / 16))) = {};
    }
    async_fence(); // before the next copy to this place
    __syncwarp();
  }

  static __device__ __forceinline__ void keep(Kept *s, const State &x, int heads) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int head = t * 8 + lane % 4 * 2 + h;
        float sum = x.sum[t][h];
#pragma unroll
        for (int o = 4; o < 32; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
        if (head >= heads) continue;
        if (lane < 4) s->most[warp][head] = x.most[t][h], s->sum[warp][head] = sum;
#pragma unroll
        for (int i = 0; i < D / 16; i++) {
          float *to = &s->o[warp][head][i * 16];
          if (FP8) *(float2 *)&to[lane / 4 * 2] = {x.o[t][i][h], x.o[t][i][h + 2]};
          else to[lane / 4] = x.o[t][i][h], to[lane / 4 + 8] = x.o[t][i][h + 2];
        }
      }
  }

  static __device__ __forceinline__ void attend_items(Shared *s, const DecodePlan &plan, const DecodeParams &p, uint32_t &count) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    DecodeItem now = decode_find(plan, p, plan.begin);
    Queries q, ahead;
    load_queries(q, p, now);
    while (now.index < plan.end) {
      DecodeItem next = now;
      decode_next(plan, p, &next);
      if (AHEAD && next.index < plan.end) load_queries(ahead, p, next);
      State x;
      Base::start(&x);
      for (int key = (now.key & -16) + warp * KEYS; key < now.to; key += WARPS * KEYS, count++) {
        int stage = warp * DEPTH + count % DEPTH;
        Scores scores;
        barrier_wait(&s->full[stage], count / DEPTH & 1);
        uint32_t there = s->there[stage];
        if (there != ALL) clear_others(s->stage[stage][0][0], there);
        multiply_keys(scores, q, shared_address(s->stage[stage][0]));
        Base::in_units(scores, u, there);
        Base::weigh(scores, &x);
        add_values(&x, scores, shared_address(s->stage[stage][1]));
        __syncwarp();
        if (lane == 0) barrier_arrive(&s->empty[stage], 0);
      }
      named_sync(1, WARPS * 32); // what was kept before has been added up
      keep(&s->kept, x, min(p.group - now.tile * HEADS, HEADS));
      named_sync(1, WARPS * 32);
      Base::add_up(&s->kept, p, now.b, now.part, now.parts, now.kv * p.tiles + now.tile);
      now = next;
      if (!AHEAD && now.index < plan.end) load_queries(ahead, p, now);
#pragma unroll
      for (int i = 0; i < TILES * D / 8; i++) (&q[0][0][0])[i] = (&ahead[0][0][0])[i];
    }
  }

  static __device__ __forceinline__ void run(const DecodeRingParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) == DECODE_RING_SHARED(TILES, D, KEYS, Base::BYTES, WARPS) && DEPTH, "as the launcher has it");
    for (int i = threadIdx.x; i < STAGES; i += THREADS) barrier_init(&s->full[i], 1), barrier_init(&s->empty[i], 1);
    barrier_init_done();
    decode_hint<WARPS * 32>(s->before, p.all, ROW);
    wait_for_predecessor();
    uint32_t count = 0;
    for (int first = 0; first < p.all.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<WARPS * 32>(s->before, p.all, first);
      if (plan.begin < plan.end) {
        if (threadIdx.x < WARPS * 32) attend_items(s, plan, p.all, count);
        else copy_items(s, plan, p, count);
      }
      __syncthreads();
    }
  }
};

#endif
