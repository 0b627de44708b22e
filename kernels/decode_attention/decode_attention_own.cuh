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
    DecodeItem items[WARPS][DECODE_OWN_ITEMS]; // that are looked up, and not done
    uint16_t there[WARPS][DEPTH][2];           // of the tiles that are looked up, a bit for each token
    int taken, lengths[DECODE_SEQUENCES], before[DECODE_SEQUENCES + 16];
  };

  // ---- copies ----

  // What comes next: copy `at` of `batch`, and the batch after it, whose pages' numbers are on their way; `ahead`, unless it is the plan's
  // end, is the item after that, from where it is.
  struct Feed {
    DecodeItem ahead;
    Batch batch, next;
    int at;
    bool more, ended; // more: there is a next batch
    uint32_t tiles, items;
  };

  // The block's next item, which may be another warp's as well: at any time the warps have neighbouring heads, whose rows lie side by side.
  static __device__ __forceinline__ void take_item(Shared *s, const DecodePlan &plan, const DecodeParams &p, Feed *f) {
    int lane = threadIdx.x % 32, taken = 0;
    if (lane == 0) taken = atomicAdd(&s->taken, 1);
    f->ahead.index = plan.begin + __shfl_sync(~0u, taken, 0);
    if (f->ahead.index >= plan.end) return;
    f->ahead = decode_find(plan, p, f->ahead.index, s->lengths);
    if (lane == 0) s->items[threadIdx.x / 32][f->items % DECODE_OWN_ITEMS] = f->ahead;
    f->items++;
  }

  // Up to 32 copies from where the item is, one a lane; an empty item has one, of nothing.
  static __device__ __forceinline__ void look_up(Shared *s, const DecodePlan &plan, const DecodeParams &p, Feed *f) {
    DecodeItem &item = f->ahead;
    f->more = item.index < plan.end;
    if (!f->more) return;
    int first = item.key & -16, from = first + threadIdx.x % 32 * 16;
    uint32_t after = item.to - from >= 16 ? 0xffff : (1u << max(item.to - from, 0)) - 1;
    f->next.place = decode_look_up(plan, p, item, from, true);
    f->next.there = from < item.key ? after & ~0u << (item.key - from) : after;
    f->next.copies = max(min((item.to - first + 15) / 16, 32), 1);
    item.key = first + 32 * 16;
    if (item.key >= item.to) take_item(s, plan, p, f);
  }

  // To the next tile.
  static __device__ __forceinline__ void next_tile(Shared *s, const DecodePlan &plan, const DecodeParams &p, Feed *f) {
    int lane = threadIdx.x % 32;
    f->at += GROUPS;
    if (f->at >= f->batch.copies) {
      f->ended = !f->more;
      if (f->ended) return;
      f->batch = f->next, f->at = 0;
      look_up(s, plan, p, f);
    }
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

  // The block's items of some sequences, and the warp's first.
  static __device__ __forceinline__ DecodePlan prepare(Shared *s, const DecodeParams &p, int first, Feed *f) {
    if (threadIdx.x == 0) s->taken = 0;
    DecodePlan plan = decode_plan<THREADS>(s->before, p, first, s->lengths);
    f->batch.copies = f->at = 0, f->ended = f->next.place.there = false, f->tiles = f->items = 0;
    take_item(s, plan, p, f);
    look_up(s, plan, p, f);
    return plan;
  }

  // Starts to fill the ring. Returns the places that are.
  static __device__ __forceinline__ int fill(Shared *s, const DecodePlan &plan, const DecodeRingParams &p, Feed *f, Turn to) {
    int i = 0;
#pragma unroll 1
    for (; i < DEPTH; i++, to.next()) {
      if (i % 2 == 0) next_tile(s, plan, p.all, f);
      if (f->ended) break;
      copy(s, p, *f, i % 2 ? &p.v : &p.k, to.place);
    }
    return i;
  }

  // Where in the table the lane's page of an item's first copies is.
  static __device__ __forceinline__ int64_t page_index(const DecodeParams &p, const DecodeItem &item) {
    unsigned key = (unsigned)(item.key & -16) + threadIdx.x % 32 * 16;
    return (int64_t)item.b * p.table_pages + (p.page_shift >= 0 ? key >> p.page_shift : key / (unsigned)p.page_size);
  }

  // Whether what was read of memory before the predecessor's end, which may have written it, is the same now: lengths and `page`, of the table.
  static __device__ __forceinline__ bool same_as_before(Shared *s, const DecodePlan &plan, const DecodeParams &p, const DecodePlace &page, const int32_t *at) {
    bool same = !p.table || !page.there || __ldcg(at) == page.page;
    for (int i = threadIdx.x; i < plan.count; i += THREADS) same &= decode_length(p, plan.first + i) == s->lengths[i];
    return __syncthreads_and(same);
  }

  static __device__ __forceinline__ void attend_items(Shared *s, const DecodePlan &plan, const DecodeRingParams &p, Feed *f, Turn &turn) {
    int warp = threadIdx.x / 32;
    ScoreUnit u = score_unit(p.all.scale, p.all.soft_cap);
    uint32_t tiles = 0;
    Queries q;
    __syncwarp();
    if (f->items) Ring::load_queries(q, p.all, s->items[warp][0]);
    for (uint32_t count = 0; count < f->items; count++) {
      int key = s->items[warp][count % DECODE_OWN_ITEMS].key & -16, to = s->items[warp][count % DECODE_OWN_ITEMS].to;
      State x;
      Base::start(&x);
      do {
        Scores scores;
        barrier_wait(&s->full[warp][turn.place], turn.parity);
        uint32_t there = s->there[warp][tiles % DEPTH][0];
        if (GROUPS == 2) there |= (uint32_t)s->there[warp][tiles % DEPTH][1] << 16;
        if (!(there & 0xffff) || (GROUPS == 2 && !(there >> 16))) clear_others(s->place[warp][turn.place][0], there); // not copied
        Ring::multiply_keys(scores, q, shared_address(s->place[warp][turn.place]));
        __syncwarp();
        if (DEPTH % 2 == 0) next_tile(s, plan, p.all, f);
        copy(s, p, *f, DEPTH % 2 ? &p.v : &p.k, turn.place);
        turn.next();
        Base::in_units(scores, u, there);
        Base::weigh(scores, &x);
        barrier_wait(&s->full[warp][turn.place], turn.parity);
        if (there != ALL) clear_others(s->place[warp][turn.place][0], there);
        Ring::add_values(&x, scores, shared_address(s->place[warp][turn.place]));
        __syncwarp();
        if (DEPTH % 2) next_tile(s, plan, p.all, f);
        copy(s, p, *f, DEPTH % 2 ? &p.k : &p.v, turn.place);
        turn.next();
        key += KEYS, tiles++;
      } while (key < to);
      __syncwarp();
      if (count + 1 < f->items) Ring::load_queries(q, p.all, s->items[warp][(count + 1) % DECODE_OWN_ITEMS]);
      store(p.all, x, s->items[warp][count % DECODE_OWN_ITEMS]);
      __syncwarp(); // the item was read
    }
  }

  // While the predecessor still runs the block looks up its first tokens, and copies them as soon as it has ended; what was read before is
  // compared then, while they are on their way. Where it was written meanwhile all begins again.
  static __device__ __forceinline__ void run(const DecodeRingParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= DECODE_OWN_SHARED(D, KEYS, Base::BYTES, WARPS), "as the launcher has it");
    for (int i = threadIdx.x; i < WARPS * DEPTH; i += THREADS) barrier_init(&s->full[0][0] + i, GROUPS);
    barrier_init_done();
    bool early = true;
    Turn turn = {0, 0};
    Feed f;
    for (int first = 0; first < p.all.batch;) {
      __syncthreads();
      DecodePlan plan = prepare(s, p.all, first, &f);
      DecodePlace page = f.next.place;
      __syncwarp();
      const int32_t *at = page.there ? p.all.table + page_index(p.all, s->items[threadIdx.x / 32][0]) : 0;
      if (early) wait_for_predecessor();
      int filled = fill(s, plan, p, &f, turn);
      if (early && !same_as_before(s, plan, p.all, page, at)) {
        for (int i = 0; i < filled; i++, turn.next()) barrier_wait(&s->full[threadIdx.x / 32][turn.place], turn.parity);
        early = false;
        continue;
      }
      early = false;
      attend_items(s, plan, p, &f, turn);
      first += DECODE_SEQUENCES;
    }
  }
};

#endif
