// Decode attention of MLA for up to 16 heads on sm_90a: one row of the cache is K, and its first 512 elements are V. Tensor copies of 16 tokens,
// which never lie in two pages, bring three tiles of 64 tokens to a ring in shared memory. Of a tile each of eight warps has the scores of eight
// tokens, for which it holds Q in registers, and 64 of V's columns.
#ifndef SOL_KERNELS_DECODE_ATTENTION_FEW_CUH
#define SOL_KERNELS_DECODE_ATTENTION_FEW_CUH

#include "decode_attention/decode_attention_boxes.cuh"
#include "decode_attention/decode_attention_items.cuh"
#include "mma.cuh"

template <int KIND> struct DecodeFew {
  enum {
    D = DECODE_LATENT,
    V = DECODE_LATENT_V,
    ROW = D * 2,
    BOX = 16 * ROW, // bytes of a copy, 128 of every token after the other
    WARPS = 8,
    THREADS = WARPS * 32,
    ROWS = DECODE_ROWS,
    KEYS = 8 * WARPS,
    COPIES = KEYS / 16,
    STAGES = DECODE_STAGES,
    STEPS = D / 16,
    COLUMNS = V / WARPS, // of a warp
    O_TILES = COLUMNS / 8,
    P_PITCH = KEYS * 2 + 16
  };
  struct Shared {
    uint8_t stage[STAGES][COPIES][BOX], p[ROWS * P_PITCH];
    float most[ROWS][WARPS], sum[ROWS][WARPS];
    uint64_t full[STAGES];
    uint16_t there[STAGES][COPIES]; // a bit for each token
    int before[DECODE_SEQUENCES + 16];
  };
  struct State {
    float o[O_TILES][4], most[2], sum[2]; // of heads g and g + 8, g = lane / 4; sum: of the thread's tokens
  };
  typedef uint32_t Queries[STEPS][4];

  // Where 16 bytes number `piece` of a token are in a copy of 16.
  static __device__ __forceinline__ uint32_t place_in(int token, int piece) {
    return piece / 8 * 16 * 128 + tile_place<128>(token, piece % 8);
  }

  // ---- copies: the first threads have one each ----

  struct Copy {
    DecodePlace place;
    uint32_t there; // of its tokens
  };

  static __device__ __forceinline__ Copy look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item) {
    int first = item->key & -16, from = first + threadIdx.x * 16;
    uint32_t after = item->to - from >= 16 ? 0xffff : (1u << max(item->to - from, 0)) - 1;
    Copy x = {decode_look_up(plan, p, *item, from), from < item->key ? after & ~0u << (item->key - from) : after};
    item->key = first + KEYS;
    if (item->key >= item->to && item->index < plan.end) decode_next(plan, p, item);
    return x;
  }

  static __device__ __forceinline__ void copy(Shared *s, const DecodeBoxParams &p, const Copy &x, int stage) {
    bool good = x.place.there && (unsigned)x.place.page < (unsigned)p.all.pages;
    s->there[stage][threadIdx.x] = good ? (uint16_t)x.there : 0;
    barrier_expect(&s->full[stage], good ? (int)BOX : 0);
    if (good) tensor_load_5d(s->stage[stage][threadIdx.x], &p.k, &s->full[stage], 0, x.place.in_page, 0, x.place.kv, x.place.page);
  }

  // Zeros for the tokens that are not there, whose weight is zero.
  static __device__ __noinline__ void clear_others(Shared *s, int stage, uint64_t there) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS) {
      int token = i / (D / 8);
      if (!(there >> token & 1)) *(uint4 *)(s->stage[stage][token / 16] + place_in(token % 16, i % (D / 8))) = {};
    }
    async_fence();
    __syncthreads();
  }

  // ---- products ----

  // Pieces of 16 bytes come from memory whole, and through the weights' place, 64 columns at a time, into each warp's registers.
  static __device__ __forceinline__ void load_queries(Shared *s, Queries &q, const DecodeParams &p, const DecodeItem &item) {
    enum { PIECES = ROWS * 8, GROUPS = THREADS / PIECES, EACH = (D / 64 + GROUPS - 1) / GROUPS };
    int row = threadIdx.x % PIECES / 8, in_group = item.tile * ROWS + row, mine = threadIdx.x / PIECES, lane = threadIdx.x % 32;
    const uint16_t *from = (const uint16_t *)p.q + item.b * p.q_row + (int64_t)(item.kv * p.group + in_group) * D + threadIdx.x % 8 * 8;
    uint32_t at = tile_address(s->p) + lane % 16 * P_PITCH + lane / 16 * 16;
    Vec x[EACH] = {};
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      int box = i * GROUPS + mine;
      if (in_group >= p.group || box >= D / 64) continue;
      if (p.q_aligned) x[i] = *(const Vec *)(from + box * 64);
      else
        for (int j = 0; j < 8; j++) x[i].h[j] = from[box * 64 + j];
    }
#pragma unroll
    for (int box = 0; box < D / 64; box++) {
      __syncthreads(); // what was there has been read
      if (mine == box % GROUPS) *(uint4 *)(s->p + row * P_PITCH + threadIdx.x % 8 * 16) = x[box / GROUPS].v;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < 4; i++) load_matrices(q[box * 4 + i], at + i * 32);
    }
    __syncthreads();
  }

  // Of heads g and g + 8 and two of the warp's tokens.
  static __device__ __forceinline__ void multiply_keys(float (&s)[4], const Queries &q, uint32_t stage) {
    float d[2][4] = {};
    int token = threadIdx.x / 32 * 8 + threadIdx.x % 8;
    uint32_t from = stage + token / 16 * BOX + place_in(token % 16, threadIdx.x % 32 / 8);
#pragma unroll
    for (int i = 0; i < STEPS; i += 2) {
      uint32_t b[4];
      load_matrices(b, (from ^ (i % 4 * 32)) + i / 4 * 16 * 128);
      multiply_16x8(d[0], q[i], b[0], b[1], KIND);
      multiply_16x8(d[1], q[i + 1], b[2], b[3], KIND);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) s[i] = d[0][i] + d[1][i];
  }

  static __device__ __forceinline__ void in_units(float (&s)[4], const ScoreUnit &u, uint64_t there) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (u.cap != 0) s[i] = soft_capped(s[i] * u.before, u.cap);
      s[i] = there >> (threadIdx.x / 32 * 8 + threadIdx.x % 4 * 2 + i % 2) & 1 ? s[i] * u.unit : -INFINITY;
    }
  }

  static __device__ __forceinline__ float largest(const float (&x)[WARPS], float most) {
#pragma unroll
    for (int i = 0; i < WARPS; i++) most = fmaxf(most, x[i]);
    return most;
  }

  // Scores become weights in shared memory, relative to the largest of all warps' tokens, and what was added before is scaled to it.
  static __device__ __forceinline__ void weigh(Shared *s, const float (&sc)[4], State *x) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int head = lane / 4 + h * 8;
      float most = largest(s->most[head], x->most[h]), base = most == -INFINITY ? 0 : most, by = exp_two(x->most[h] - base);
      float a = exp_two(sc[h * 2] - base), b = exp_two(sc[h * 2 + 1] - base);
      *(uint32_t *)(s->p + head * P_PITCH + warp * 16 + lane % 4 * 4) = narrow2(a, b, KIND);
      x->sum[h] = x->sum[h] * by + a + b, x->most[h] = most;
      if (__any_sync(~0u, by != 1))
#pragma unroll
        for (int i = 0; i < O_TILES * 2; i++) x->o[i / 2][h * 2 + i % 2] *= by;
    }
  }

  static __device__ __forceinline__ void add_values(const Shared *s, State *x, uint32_t stage) {
    int lane = threadIdx.x % 32;
    uint32_t weights = tile_address(s->p) + lane % 16 * P_PITCH + lane / 16 * 16;
    uint32_t from = stage + place_in(lane % 16, threadIdx.x / 32 * (COLUMNS / 8) + lane / 16);
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
      uint32_t a[4], b[4];
      load_matrices(a, weights + step * 32);
#pragma unroll
      for (int i = 0; i < O_TILES; i += 2) {
        load_matrices_turned(b, (from ^ (i * 16)) + step * BOX);
        multiply_16x8(x->o[i], a, b[0], b[1], KIND);
        multiply_16x8(x->o[i + 1], a, b[2], b[3], KIND);
      }
    }
  }

  // ---- results ----

  // The only part of its sequence is finished; of more, the combining kernel does that.
  static __device__ __forceinline__ void finish(Shared *s, const DecodeParams &p, const DecodeItem &item, const State &x) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float sum = quad_sum(x.sum[h]);
      if (lane % 4 == 0) s->sum[lane / 4 + h * 8][warp] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      int in_group = item.tile * ROWS + lane / 4 + h * 8;
      if (in_group >= p.group) continue;
      float sum = 0;
#pragma unroll
      for (int i = 0; i < WARPS; i++) sum += s->sum[lane / 4 + h * 8][i];
      int64_t row = (int64_t)item.b * p.heads + item.kv * p.group + in_group, part = row * p.parts + item.part;
      int column = warp * COLUMNS + lane % 4 * 2;
      float by = item.parts > 1 ? 1 : sum == 0 ? 0 : p.v_scale / sum;
#pragma unroll
      for (int i = 0; i < O_TILES; i++) {
        float a = x.o[i][h * 2] * by, b = x.o[i][h * 2 + 1] * by;
        if (item.parts > 1) store_neighbours(p.sums, part * V + column + i * 8, KIND_FP32, a, b);
        else store_neighbours(p.o, item.b * p.o_row + (int64_t)(item.kv * p.group + in_group) * V + column + i * 8, KIND, a, b);
      }
      if (warp || lane % 4) continue;
      if (item.parts > 1) p.mosts[part] = x.most[h], p.weights[part] = sum;
      else if (p.lse) p.lse[row] = log_sum(x.most[h], 1, sum);
    }
  }

  // ---- all of it ----

  struct Ring {
    int stage = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  };

  static __device__ __forceinline__ void attend_tile(Shared *s, const DecodeBoxParams &p, const ScoreUnit &u, const Queries &q, State *x, const Ring &ring,
                                                     const Copy &next, bool copies) {
    int lane = threadIdx.x % 32;
    uint32_t stage = tile_address(s->stage[ring.stage]);
    float sc[4];
    barrier_wait(&s->full[ring.stage], ring.parity);
    uint64_t there = *(const uint64_t *)s->there[ring.stage];
    if (~there) clear_others(s, ring.stage, there);
    multiply_keys(sc, q, stage);
    in_units(sc, u, there);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float most = quad_max(fmaxf(sc[h * 2], sc[h * 2 + 1]));
      if (lane % 4 == 0) s->most[lane / 4 + h * 8][threadIdx.x / 32] = most;
    }
    __syncthreads(); // the largest of each warp are there, and the tile before was read
    if (copies) copy(s, p, next, ring.stage ? ring.stage - 1 : STAGES - 1);
    weigh(s, sc, x);
    __syncthreads(); // the weights are there
    add_values(s, x, stage);
  }

  static __device__ __forceinline__ void run_items(Shared *s, const DecodePlan &plan, const DecodeBoxParams &all, Ring &ring) {
    const DecodeParams &p = all.all;
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    DecodeItem now = decode_find(plan, p, plan.begin), ahead = now;
    bool copies = threadIdx.x < COPIES;
    Ring to = ring;
    for (int i = 0; i < STAGES - 1; i++, to.next()) {
      Copy x = look_up(plan, p, &ahead);
      if (copies) copy(s, all, x, to.stage);
    }
    Copy next = look_up(plan, p, &ahead);
    while (now.index < plan.end) {
      Queries q;
      State x = {{}, {-INFINITY, -INFINITY}, {}};
      load_queries(s, q, p, now);
      for (int key = now.key & -16, more = 1; more; ring.next()) { // an empty part has one tile too, as in look_up
        attend_tile(s, all, u, q, &x, ring, next, copies);
        next = look_up(plan, p, &ahead);
        key += KEYS, more = key < now.to;
      }
      finish(s, p, now, x);
      decode_next(plan, p, &now);
    }
    for (int i = 0; i < STAGES - 1; i++, ring.next()) barrier_wait(&s->full[ring.stage], ring.parity); // of no tokens
  }

  static __device__ __forceinline__ void run(const DecodeBoxParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= DECODE_FEW_SHARED, "as the launcher has it");
    if (threadIdx.x < STAGES) barrier_init(&s->full[threadIdx.x], COPIES);
    barrier_init_done();
    decode_hint<THREADS>(s->before, p.all, ROW);
    wait_for_predecessor();
    Ring ring;
    for (int first = 0; first < p.all.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<THREADS>(s->before, p.all, first);
      if (plan.begin < plan.end) run_items(s, plan, p, ring);
      __syncthreads();
    }
  }
};

#endif
