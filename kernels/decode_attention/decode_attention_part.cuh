// Decode attention for heads of 64, 128 and 256 on sm_90a. A block of four warps has one part of a sequence at a time, and several blocks
// share an SM. What one block waits for at its begin (lengths, pages' numbers, the first tokens) and at its end (sums of four warps) the others
// hide; and where there are more parts than blocks run at a time the hardware gives the next one to whichever SM is done first: SMs do not get
// equal shares of the memory.
//
// Each warp has every fourth tile of KEYS tokens of the part, and a ring of PLACES places, of K and of V by turns, that it fills itself by tensor
// copies of 16 tokens, which never lie in two pages: as soon as a place was read the copy of what comes PLACES later is under way. Where more heads
// share one of K than a warp has registers for, teams of two warps have a ring together, and half of the heads each.
//
// The products are those of decode_attention_warps.cuh: scores are K Q^T, 16 tokens by 8 heads, and O^T is V^T P^T; K and V by ldmatrix. Queries
// are in shared memory, in the order in which lanes take them, once for all warps.
#ifndef SOL_KERNELS_DECODE_ATTENTION_PART_CUH
#define SOL_KERNELS_DECODE_ATTENTION_PART_CUH

#include "decode_attention/decode_attention_boxes.cuh"
#include "decode_attention/decode_attention_warps.cuh"

// TILES: of 8 heads, which share one of K, of a warp; WAYS: warps of a team, 1 or 2.
template <int KIND, int FP8, int D, int TILES, int WAYS, int KEYS, int PLACES> struct DecodePart {
  enum { WARPS = DECODE_PART_WARPS, THREADS = WARPS * 32, TEAMS = WARPS / WAYS, STEP = TEAMS * KEYS }; // STEP: tokens of all teams' tiles
  typedef DecodeWarps<KIND, FP8, D, TILES, KEYS, TEAMS, 1> Base;
  typedef DecodeWarps<KIND, FP8, D, TILES * WAYS, KEYS, TEAMS, 1> Whole; // of all heads
  typedef typename Base::State State;
  typedef typename Base::Scores Scores;
  typedef typename Whole::Kept Kept;
  enum {
    ROW = Base::ROW,
    WIDE = ROW < 128 ? ROW : 128, // bytes of a row of a copy
    GROUPS = KEYS / 16,
    BOX = 16 * ROW, // bytes of a copy
    HEADS = WAYS * TILES * 8
  };
  static constexpr uint32_t ALL = Base::ALL;
  struct Shared {
    union {
      uint8_t place[TEAMS][PLACES][GROUPS][BOX];
      Kept kept; // of the teams, when all places were read
    };
    uint4 q[WAYS * TILES * D]; // of 8 heads, 32 elements and a lane each
    uint64_t full[TEAMS][PLACES];
    DecodeItem item; // what is not needed while products go on is not in registers
    int lengths[DECODE_SEQUENCES], before[DECODE_SEQUENCES + WARPS];
  };
  struct Turn { // the place that is read next
    int place;
    uint32_t parity;
    __device__ __forceinline__ void next() {
      if (++place == PLACES) place = 0, parity ^= 1;
    }
  };

  static __device__ __forceinline__ int team() {
    return threadIdx.x / 32 / WAYS;
  }
  static __device__ __forceinline__ int way() {
    return threadIdx.x / 32 % WAYS;
  }
  static __device__ __forceinline__ void team_sync() {
    if (WAYS == 1) __syncwarp();
    else named_sync(1 + team(), WAYS * 32);
  }

  // ---- copies ----

  // The team's tiles of an item, and where the lane's 16 tokens are: of tile number lane / GROUPS.
  struct Boxes {
    DecodePlace place; // its page's number is on its way from memory
    int first, tiles;  // first: token of the team's first tile
    uint32_t copied;   // lanes whose tokens are; when the numbers are there
  };

  static __device__ __forceinline__ Boxes look_up(const DecodePlan &plan, const DecodeParams &p, const DecodeItem &item) {
    int lane = threadIdx.x % 32;
    Boxes x = {{}, (item.key & -16) + team() * KEYS, 0, 0};
    x.tiles = max(item.to - x.first + STEP - 1, 0) / STEP;
    x.place = decode_look_up(plan, p, item, x.first + lane / GROUPS * STEP + lane % GROUPS * 16, true);
    return x;
  }

  // Copy number n of the team's, K and V by turns, by its first warp.
  static __device__ __forceinline__ void copy(Shared *s, const DecodeBoxParams &p, const Boxes &x, int n, int place) {
    int lane = threadIdx.x % 32;
    if (lane / GROUPS != n / 2 || n / 2 >= x.tiles || way()) return;
    bool mine = x.copied >> lane & 1;
    uint64_t *full = &s->full[team()][place];
    barrier_expect(full, mine ? (int)BOX : 0);
    if (mine) tensor_load_5d(s->place[team()][place][lane % GROUPS], n % 2 ? &p.v : &p.k, full, 0, x.place.in_page, 0, x.place.kv, x.place.page);
  }

  // Starts to fill the ring from a place on. Returns how many places are.
  static __device__ __forceinline__ int fill(Shared *s, const DecodeBoxParams &p, Boxes *x, Turn to) {
    x->copied = __ballot_sync(~0u, x->place.there && (unsigned)x->place.page < (unsigned)p.all.pages);
#pragma unroll
    for (int i = 0; i < PLACES; i++, to.next()) copy(s, p, *x, i, to.place);
    return min(x->tiles * 2, (int)PLACES);
  }

  // Whether what was read of memory before the predecessor's end, which may have written it, is the same now: lengths, and the pages' numbers.
  static __device__ __forceinline__ bool same_as_before(Shared *s, const DecodePlan &plan, const DecodeParams &p, const DecodeItem &item, const Boxes &x) {
    bool same = look_up(plan, p, item).place.page == x.place.page;
    for (int i = threadIdx.x; i < plan.count; i += THREADS) same &= decode_length(p, plan.first + i) == s->lengths[i];
    return __syncthreads_and(same);
  }

  // ---- products ----

  static __device__ __forceinline__ uint32_t two_of(const DecodeParams &p, const uint16_t *at) {
    uint32_t x = p.q_aligned ? *(const uint32_t *)at : at[0] | (uint32_t)at[1] << 16;
    if (!FP8 || p.kind == KIND_FP16) return x;
    float2 wide = widen2(x, p.kind);
    return narrow2(wide.x, wide.y, KIND_FP16);
  }

  // A lane takes of head g = lane / 4 the elements that meet its ones of K: of every 16 with c = lane % 4 numbers 2c, 2c + 1, 2c + 8 and 2c + 9,
  // with fp8 4c to 4c + 3.
  static __device__ __forceinline__ void load_queries(Shared *s, const DecodeParams &p, const DecodeItem &item) {
    enum { ALL_Q = WAYS * TILES * D, EACH = (ALL_Q + THREADS - 1) / THREADS, APART = FP8 ? 2 : 8 };
    uint4 x[EACH] = {}; // all on their way together
#pragma unroll
    for (int n = 0; n < EACH; n++) {
      int i = threadIdx.x + n * THREADS, lane = i % 32, in_group = item.tile * HEADS + i / D * 8 + lane / 4;
      if (in_group >= p.group || i >= ALL_Q) continue;
      const uint16_t *at = (const uint16_t *)p.q + item.b * p.q_row + (int64_t)(item.kv * p.group + in_group) * D + i % D / 32 * 32 + lane % 4 * (FP8 ? 4 : 2);
      x[n] = {two_of(p, at), two_of(p, at + APART), two_of(p, at + 16), two_of(p, at + 16 + APART)};
    }
#pragma unroll
    for (int n = 0; n < EACH; n++)
      if (threadIdx.x + n * THREADS < ALL_Q) s->q[threadIdx.x + n * THREADS] = x[n];
  }

  // Where 16 bytes number `piece` of a token are in a copy of 16.
  static __device__ __forceinline__ uint32_t place_in(int token, int piece) {
    return piece / (WIDE / 16) * 16 * WIDE + tile_place<WIDE>(token, piece % (WIDE / 16));
  }
  // Matrices of 32 bytes of 16 tokens, number i of a row; from: where the lane's of number 0 are.
  static __device__ __forceinline__ uint32_t matrices_at(uint32_t from, int i, int group) {
    return (from ^ (i % (WIDE / 32) * 32)) + i / (WIDE / 32) * 16 * WIDE + group * BOX;
  }

  static __device__ __forceinline__ void multiply_keys(Scores &sc, const uint4 *q, uint32_t keys) {
    enum { CHAINS = TILES * GROUPS < 4 ? 2 : 1, LOADS = FP8 ? 1 : 2 }; // LOADS: of 32 elements
    float d[CHAINS][TILES][GROUPS][4] = {};
    int lane = threadIdx.x % 32;
    uint32_t from = keys + place_in(lane % 16, lane / 16);
#pragma unroll
    for (int j = 0; j < D / 32; j++) {
      uint32_t k[LOADS][GROUPS][4];
#pragma unroll
      for (int i = 0; i < LOADS * GROUPS; i++) load_matrices(k[i / GROUPS][i % GROUPS], matrices_at(from, j * LOADS + i / GROUPS, i % GROUPS));
#pragma unroll
      for (int t = 0; t < TILES; t++) {
        uint4 b = q[t * D + j * 32 + lane];
#pragma unroll
        for (int i = 0; i < GROUPS; i++)
#pragma unroll
          for (int h = 0; h < 2; h++) { // 16 elements
            const uint32_t(&x)[4] = k[FP8 ? 0 : h][i];
            uint32_t a[4] = {x[0], x[1], x[2], x[3]}, low = x[h * 2], high = x[h * 2 + 1];
            if (FP8) halves_of_fp8(low, &a[0], &a[2]), halves_of_fp8(high, &a[1], &a[3]);
            multiply_16x8(d[h % CHAINS][t][i], a, h ? b.z : b.x, h ? b.w : b.y, KIND);
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
    enum { STEPS = FP8 ? 2 : 1 }; // products of what ldmatrix brings
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
        load_matrices_turned(v, matrices_at(from, j, i));
#pragma unroll
        for (int h = 0; h < STEPS; h++) {
          uint32_t a[4] = {v[0], v[1], v[2], v[3]};
          if (FP8) {
            uint32_t low = __byte_perm(v[h * 2], 0, 0x3120), high = __byte_perm(v[h * 2 + 1], 0, 0x3120);
            halves_of_fp8(low, &a[0], &a[1]), halves_of_fp8(high, &a[2], &a[3]);
          }
#pragma unroll
          for (int n = 0; n < (KIND == KIND_BF16 ? 2 : 1) * TILES; n++) { // none waits for the product before it
            int t = n % TILES;
            multiply_16x8(x->o[t][j * STEPS + h], a, b[t][n / TILES][0], b[t][n / TILES][1], KIND);
          }
        }
      }
    }
  }

  // Zeros for the tokens that are not there, which have a weight of zero, but may have NaN in their place.
  static __device__ __noinline__ void clear_others(uint8_t *place, uint32_t there) {
    for (int i = threadIdx.x % 32; i < KEYS * ROW / 16; i += 32) {
      int token = i / (ROW / 16);
      if (!(there >> token & 1)) *(uint4 *)(place + token / 16 * BOX + place_in(token % 16, i % (ROW / 16))) = {};
    }
    async_fence(); // before the next copy to this place
    __syncwarp();
  }

  // Which tokens of the team's tile number i are the item's, and copied.
  static __device__ __forceinline__ uint32_t tokens_there(const DecodeItem &item, const Boxes &x, int i) {
    int from = x.first + i * STEP, after = item.to - from;
    uint32_t there = after >= KEYS ? ALL : (1u << after) - 1;
    if (from < item.key) there &= ~0u << (item.key - from); // by less than 16
    if (!(x.copied >> i * GROUPS & 1)) there &= ~0xffffu;
    if (GROUPS == 2 && !(x.copied >> (i * 2 + 1) & 1)) there &= 0xffffu;
    return there;
  }

  static __device__ __forceinline__ void attend(Shared *s, const DecodeBoxParams &p, const DecodeItem &item, const Boxes &boxes, Turn *turn, State *x) {
    const uint4 *q = s->q + way() * TILES * D;
    ScoreUnit u = score_unit(p.all.scale, p.all.soft_cap);
    Base::start(x);
#pragma unroll 1
    for (int i = 0; i < boxes.tiles; i++) {
      Scores scores;
      uint32_t there = tokens_there(item, boxes, i);
      barrier_wait(&s->full[team()][turn->place], turn->parity);
      if (!(there & 0xffff) || (GROUPS == 2 && !(there >> 16))) clear_others(s->place[team()][turn->place][0], there); // not copied
      multiply_keys(scores, q, shared_address(s->place[team()][turn->place]));
      team_sync();
      copy(s, p, boxes, i * 2 + PLACES, turn->place);
      turn->next();
      Base::in_units(scores, u, there);
      Base::weigh(scores, x);
      barrier_wait(&s->full[team()][turn->place], turn->parity);
      if (there != ALL) clear_others(s->place[team()][turn->place][0], there);
      add_values(x, scores, shared_address(s->place[team()][turn->place]));
      team_sync();
      copy(s, p, boxes, i * 2 + 1 + PLACES, turn->place);
      turn->next();
    }
  }

  // ---- results ----

  static __device__ __forceinline__ void keep(Kept *s, const State &x, int heads) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        int head = (way() * TILES + t) * 8 + lane % 4 * 2 + h;
        float sum = x.sum[t][h];
#pragma unroll
        for (int o = 4; o < 32; o *= 2) sum += __shfl_xor_sync(~0u, sum, o);
        if (head >= heads) continue;
        if (lane < 4) s->most[team()][head] = x.most[t][h], s->sum[team()][head] = sum;
#pragma unroll
        for (int i = 0; i < D / 16; i++) {
          float *to = &s->o[team()][head][i * 16];
          if (FP8) *(float2 *)&to[lane / 4 * 2] = {x.o[t][i][h], x.o[t][i][h + 2]};
          else to[lane / 4] = x.o[t][i][h], to[lane / 4 + 8] = x.o[t][i][h + 2];
        }
      }
  }

  // Adds up what the teams have.
  static __device__ __forceinline__ void finish(Shared *s, const DecodeParams &p, const State &x) {
    __syncthreads(); // all places have been read
    DecodeItem item = s->item;
    keep(&s->kept, x, min(p.group - item.tile * HEADS, HEADS));
    __syncthreads();
    Whole::template add_up<WARPS>(&s->kept, p, item.b, item.part, item.parts, item.kv * p.tiles + item.tile);
    async_fence(); // before the next copies
    __syncthreads();
  }

  // ---- all of it ----

  // What was looked up while the predecessor still ran is copied as soon as it has ended, and compared meanwhile. Where it was written in
  // between, returns false.
  static __device__ __forceinline__ bool start(Shared *s, const DecodeBoxParams &p, const DecodePlan &plan, const DecodeItem &item, Boxes *boxes, Turn *turn) {
    wait_for_predecessor();
    int filled = fill(s, p, boxes, *turn);
    bool same = same_as_before(s, plan, p.all, item, *boxes);
    for (int i = 0; !same && i < filled; i++, turn->next()) barrier_wait(&s->full[team()][turn->place], turn->parity);
    return same;
  }

  // The block's items of some sequences. early: the predecessor may still run. Returns false where all begins again.
  static __device__ __forceinline__ bool attend_items(Shared *s, const DecodeBoxParams &p, int first, bool early, Turn *turn) {
    DecodePlan plan = decode_plan<THREADS, true>(s->before, p.all, first, s->lengths);
    for (int64_t index = plan.begin; early || index < plan.end; index++) {
      bool any = index < plan.end;
      DecodeItem item = decode_find<true>(plan, p.all, any ? index : 0, s->lengths);
      if (!any) item.key = item.to = 0; // not where a window begins within a copy, which nothing would wait for
      Boxes boxes = look_up(plan, p.all, item);
      if (!early) fill(s, p, &boxes, *turn);
      else if (!start(s, p, plan, item, &boxes, turn)) return false;
      early = false;
      if (!any) break;
      load_queries(s, p.all, item);
      if (threadIdx.x == 0) s->item = item;
      __syncthreads();
      State x;
      attend(s, p, item, boxes, turn, &x);
      finish(s, p.all, x);
    }
    return true;
  }

  static __device__ __forceinline__ void run(const DecodeBoxParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= DECODE_PART_SHARED(TILES, WAYS, D, KEYS, Base::BYTES, PLACES), "as the launcher has it");
    for (int i = threadIdx.x; i < TEAMS * PLACES; i += THREADS) barrier_init(&s->full[0][0] + i, GROUPS);
    barrier_init_done();
    Turn turn = {0, 0};
    bool early = true;
    for (int first = 0; first < p.all.batch; early = false) {
      __syncthreads();
      if (attend_items(s, p, first, early, &turn)) first += DECODE_SEQUENCES;
    }
  }
};

#endif
