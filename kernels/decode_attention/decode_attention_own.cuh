// Decode attention on sm_90a for up to 8 heads that share one of K. Each warp has items of its own, and a ring of tiles in shared memory that it
// fills itself, by tensor copies of 16 tokens, which never lie in two pages: as soon as a place was read the copy of what comes DEPTH places
// later is under way, of the next item too. No warp waits for another, and all of shared memory is on its way from memory nearly all the time.
//
// A place holds KEYS tokens of K or of V. The products are those of decode_attention_ring.cuh.
#ifndef SOL_KERNELS_DECODE_ATTENTION_OWN_CUH
#define SOL_KERNELS_DECODE_ATTENTION_OWN_CUH

#include "decode_attention/decode_attention_ring.cuh"

template <int KIND, int FP8, int D, int KEYS, int WARPS> struct DecodeOwn {
  typedef DecodeWarps<KIND, FP8, D, 1, KEYS, WARPS, 1> Base;
  typedef DecodeRing<KIND, FP8, D, 1, KEYS, WARPS> Ring;
  typedef typename Base::State State;
  typedef typename Base::Scores Scores;
  typedef typename Ring::Batch Batch;
  typedef typename Ring::Queries Queries;
  enum { ROW = Base::ROW, THREADS = WARPS * 32, GROUPS = KEYS / 16, BOX = Ring::BOX, DEPTH = DECODE_OWN_DEPTH(D, KEYS, Base::BYTES, WARPS) };
  static constexpr uint32_t ALL = Base::ALL;
  struct Shared {
    uint8_t place[WARPS][DEPTH][GROUPS][BOX];
    uint64_t full[WARPS][DEPTH];
    uint16_t there[WARPS][DEPTH][2]; // of the tiles that are looked up, a bit for each token
    int before[DECODE_SEQUENCES + 16];
  };

  // ---- copies ----

  // What comes next: copy `at` of `batch`, and the batch after it, whose pages' numbers are on their way.
  struct Feed {
    DecodeItem ahead;
    Batch batch, next;
    int at;
    bool more, ended; // more: there is a next batch
    uint32_t tiles;
  };

  static __device__ __forceinline__ void look_further(const DecodePlan &plan, const DecodeParams &p, Feed *f) {
    f->batch = f->next, f->at = 0;
    f->more = f->ahead.index < plan.end;
    if (f->more) f->next = Ring::look_up(plan, p, &f->ahead);
  }

  // To the next tile. Some items have none.
  static __device__ __forceinline__ void next_tile(Shared *s, const DecodePlan &plan, const DecodeParams &p, Feed *f) {
    int lane = threadIdx.x % 32;
    f->at += GROUPS;
#pragma unroll 1
    while (f->at >= f->batch.copies && !f->ended) {
      if (f->more) look_further(plan, p, f);
      else f->ended = true;
    }
    if (f->ended) return;
    bool good = f->batch.place.there && (unsigned)f->batch.place.page < (unsigned)p.pages;
    if (lane / GROUPS == f->at / GROUPS) s->there[threadIdx.x / 32][f->tiles % DEPTH][lane % GROUPS] = good ? (uint16_t)f->batch.there : 0;
    f->tiles++;
  }

  // Copies the tile's K, or its V, to a place that all lanes have read.
  static __device__ __forceinline__ void copy(Shared *s, const DecodeRingParams &p, const Feed &f, const void *map, int place) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (f.ended || lane / GROUPS != f.at / GROUPS) return;
    const DecodePlace &x = f.batch.place;
    bool good = x.there && (unsigned)x.page < (unsigned)p.all.pages;
    barrier_expect(&s->full[warp][place], good ? (int)BOX : 0);
    if (good) tensor_load_5d(s->place[warp][place][lane % GROUPS], map, &s->full[warp][place], 0, x.in_page, 0, x.kv, x.page);
  }

  // ---- results ----

  // The only part of its sequence is finished; of more, the combining kernel does that. A lane has of heads 2c and 2c + 1 columns 16 i + g and
  // 16 i + g + 8, with fp8 16 i + 2g and 16 i + 2g + 1.
  static __device__ __forceinline__ void store(const DecodeParams &p, const State &x, const DecodeItem &item) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int in_group = lane % 4 * 2 + h, head = item.kv * p.group + in_group;
      float sum = x.sum[0][h], most = x.most[0][h];
#pragma unroll
      for (int o = 4; o < 32; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
      if (in_group >= p.group) continue;
      int64_t row = (int64_t)item.b * p.heads + head, part = row * p.parts + item.part, o = item.b * p.o_row + (int64_t)head * D;
      float by = sum == 0 ? 0 : p.v_scale / sum;
#pragma unroll
      for (int i = 0; i < D / 8; i++) {
        int column = i / 2 * 16 + (FP8 ? lane / 4 * 2 + i % 2 : lane / 4 + i % 2 * 8);
        float value = x.o[0][i / 2][h + i % 2 * 2];
        if (item.parts > 1) p.sums[part * D + column] = value;
        else store_one(p.o, o + column, Base::kind_of(p), value * by);
      }
      if (lane >= 4) continue;
      if (item.parts > 1) p.mosts[part] = most, p.weights[part] = sum;
      else if (p.lse) p.lse[row] = log_sum(most, 1, sum);
    }
  }

  // Zeros for the tokens that are not there, which have a weight of zero, but may have NaN in their place.
  static __device__ __noinline__ void clear_others(uint8_t *place, uint32_t there) {
    for (int i = threadIdx.x % 32; i < KEYS * ROW / 16; i += 32) {
      int token = i / (ROW / 16);
      if (!(there >> token & 1)) *(uint4 *)(place + token / 16 * BOX + Ring::place_in(token % 16, i % (ROW / 16))) = {};
    }
    async_fence(); // before the next copy to this place
    __syncwarp();
  }

  // ---- all of it ----

  struct Turn { // the place that is read next
    int place;
    uint32_t parity;
    __device__ __forceinline__ void next() {
      if (++place == DEPTH) place = 0, parity ^= 1;
    }
  };

  static __device__ __forceinline__ void run_items(Shared *s, const DecodePlan &plan, const DecodeRingParams &p, Turn &turn) {
    int warp = threadIdx.x / 32;
    stamp(p.all, 3);
    ScoreUnit u = score_unit(p.all.scale, p.all.soft_cap);
    DecodeItem now = decode_find(plan, p.all, plan.begin);
    Feed f = {now, {}, {}, 0, true, false, 0};
    f.next = Ring::look_up(plan, p.all, &f.ahead);
    Turn to = turn;
#pragma unroll 1
    for (int i = 0; i < DEPTH; i++, to.next()) {
      if (i % 2 == 0) next_tile(s, plan, p.all, &f);
      copy(s, p, f, i % 2 ? &p.v : &p.k, to.place);
    }
    uint32_t tiles = 0;
    Queries q;
    stamp(p.all, 4);
    Ring::load_queries(q, p.all, now);
    while (now.index < plan.end) {
      DecodeItem next = now;
      decode_next(plan, p.all, &next);
      State x;
      Base::start(&x);
      for (int key = now.key & -16; key < now.to; key += KEYS, tiles++) {
        Scores scores;
        barrier_wait(&s->full[warp][turn.place], turn.parity);
        if (tiles == 0) stamp(p.all, 5);
        if (tiles == 4) stamp(p.all, 6);
        uint32_t there = s->there[warp][tiles % DEPTH][0];
        if (GROUPS == 2) there |= (uint32_t)s->there[warp][tiles % DEPTH][1] << 16;
        if (!(there & 0xffff) || (GROUPS == 2 && !(there >> 16))) clear_others(s->place[warp][turn.place][0], there); // not copied
        if (p.all.apart & 2) {
#pragma unroll
          for (int i = 0; i < GROUPS * 4; i++) scores[0][i / 4][i % 4] = 0;
        } else Ring::multiply_keys(scores, q, shared_address(s->place[warp][turn.place]));
        __syncwarp();
        if (DEPTH % 2 == 0) next_tile(s, plan, p.all, &f);
        copy(s, p, f, DEPTH % 2 ? &p.v : &p.k, turn.place);
        turn.next();
        if (!(p.all.apart & 2)) {
        Base::in_units(scores, u, there);
        Base::weigh(scores, &x);
        }
        barrier_wait(&s->full[warp][turn.place], turn.parity);
        if (there != ALL) clear_others(s->place[warp][turn.place][0], there);
        if (!(p.all.apart & 2)) Ring::add_values(&x, scores, shared_address(s->place[warp][turn.place]));
        __syncwarp();
        if (DEPTH % 2) next_tile(s, plan, p.all, &f);
        copy(s, p, f, DEPTH % 2 ? &p.k : &p.v, turn.place);
        turn.next();
      }
      if (next.index < plan.end) Ring::load_queries(q, p.all, next);
      stamp(p.all, 7);
      store(p.all, x, now);
      stamp(p.all, 8);
      now = next;
    }
  }

  // While the predecessor still runs each warp's first tokens are brought to L2, as decode_hint's.
  static __device__ __forceinline__ void hint(const DecodePlan &plan, const DecodeParams &p) {
    if (!p.hint || plan.begin >= plan.end) return;
    DecodeItem item = decode_find(plan, p, plan.begin);
    for (int i = threadIdx.x % 32; i < p.hint / WARPS; i += 32) {
      uint32_t row = decode_row(p, decode_look_up(plan, p, item, item.key + i, true));
      if (row == ~0u) continue;
      prefetch_row((const char *)p.k_cache + (int64_t)row * ROW, ROW);
      prefetch_row((const char *)p.v_cache + (int64_t)row * ROW, ROW);
    }
  }

  static __device__ __forceinline__ DecodePlan plan_of_warp(Shared *s, const DecodeParams &p, int first) {
    DecodePlan plan = decode_plan<THREADS>(s->before, p, first);
    int64_t all = plan.per_tile * p.tiles, worker = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32, workers = (int64_t)gridDim.x * WARPS;
    plan.begin = all * worker / workers, plan.end = all * (worker + 1) / workers;
    if (p.apart & 1) plan.begin = worker, plan.end = all, plan.step = workers;
    return plan;
  }

  static __device__ __forceinline__ void run(const DecodeRingParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= DECODE_OWN_SHARED(D, KEYS, Base::BYTES, WARPS), "as the launcher has it");
    for (int i = threadIdx.x; i < WARPS * DEPTH; i += THREADS) barrier_init(&s->full[0][0] + i, GROUPS);
    barrier_init_done();
    stamp(p.all, 0);
    if (p.all.hint) hint(plan_of_warp(s, p.all, 0), p.all);
    stamp(p.all, 1);
    wait_for_predecessor();
    stamp(p.all, 2);
    Turn turn = {0, 0};
    for (int first = 0; first < p.all.batch; first += DECODE_SEQUENCES) {
      __syncthreads();
      DecodePlan plan = plan_of_warp(s, p.all, first);
      if (plan.begin < plan.end) run_items(s, plan, p, turn);
      __syncthreads();
    }
  }
};

#endif
