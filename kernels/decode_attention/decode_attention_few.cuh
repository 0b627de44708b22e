// Decode attention of MLA for up to 16 heads on sm_90: one row of the cache is K, and its first 512 elements are V. Each token's row is one
// bulk copy to shared memory, three tiles of 64 tokens in a ring. Of a tile each of eight warps has the scores of eight tokens, for which
// it holds Q in registers, and 64 of V's columns.
//
// Rows in shared memory are 16 bytes further apart than they are long, so that ldmatrix finds eight of them in different banks.
#ifndef SOL_KERNELS_DECODE_ATTENTION_FEW_CUH
#define SOL_KERNELS_DECODE_ATTENTION_FEW_CUH

#include "decode_attention/decode_attention_items.cuh"
#include "hopper.cuh"
#include "mma.cuh"

// `bytes` and both addresses are multiples of 16.
INLINE void bulk_load(void *to, const void *from, int bytes, uint64_t *bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(bar))
               : "memory");
}

template <int KIND> struct DecodeFew {
  enum {
    D = DECODE_LATENT,
    V = DECODE_LATENT_V,
    ROW = D * 2,
    PITCH = ROW + 16,
    WARPS = 8,
    THREADS = WARPS * 32,
    ROWS = DECODE_ROWS,
    KEYS = 8 * WARPS,
    STAGES = DECODE_STAGES,
    STEPS = D / 16,
    COLUMNS = V / WARPS, // of a warp
    O_TILES = COLUMNS / 8,
    P_PITCH = KEYS * 2 + 16
  };
  struct Shared {
    uint8_t stage[STAGES][KEYS * PITCH], p[ROWS * P_PITCH];
    float most[ROWS][WARPS], sum[ROWS][WARPS];
    uint64_t full[STAGES];
    uint32_t there[STAGES][KEYS / 32]; // a bit for each token
    int before[DECODE_SEQUENCES + 16];
  };
  struct State {
    float o[O_TILES][4], most[2], sum[2]; // of heads g and g + 8, g = lane / 4; sum: of the thread's tokens
  };
  typedef uint32_t Queries[STEPS][4];

  // ---- copies: the first threads have a token each ----

  static __device__ __forceinline__ DecodePlace look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item) {
    DecodePlace x = decode_look_up(plan, p, *item, item->key + threadIdx.x);
    item->key += KEYS;
    if (item->key >= item->to && item->index < plan.end) decode_next(plan, p, item);
    return x;
  }

  static __device__ __forceinline__ void copy(Shared *s, const DecodeParams &p, const DecodePlace &x, int stage) {
    uint32_t row = decode_row(p, x), there = __ballot_sync(~0u, row != ~0u);
    if (threadIdx.x % 32 == 0) {
      s->there[stage][threadIdx.x / 32] = there;
      barrier_expect(&s->full[stage], __popc(there) * ROW);
    }
    __syncwarp();
    if (row != ~0u)
      bulk_load(s->stage[stage] + threadIdx.x * PITCH, (const char *)p.k_cache + (int64_t)row * ROW, ROW, &s->full[stage]);
  }

  // Zeros for the tokens that are not there, whose weight is zero.
  static __device__ __noinline__ void clear_others(Shared *s, int stage, uint64_t there) {
    for (int i = threadIdx.x; i < KEYS * D / 8; i += THREADS)
      if (!(there >> i / (D / 8) & 1)) *(uint4 *)(s->stage[stage] + i / (D / 8) * PITCH + i % (D / 8) * 16) = {};
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
    uint32_t from = stage + threadIdx.x / 32 * 8 * PITCH + threadIdx.x % 8 * PITCH + threadIdx.x % 32 / 8 * 16;
#pragma unroll
    for (int i = 0; i < STEPS; i += 2) {
      uint32_t b[4];
      load_matrices(b, from + i * 32);
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
    uint32_t from = stage + lane % 16 * PITCH + threadIdx.x / 32 * COLUMNS * 2 + lane / 16 * 16;
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
      uint32_t a[4], b[4];
      load_matrices(a, weights + step * 32);
#pragma unroll
      for (int i = 0; i < O_TILES; i += 2) {
        load_matrices_turned(b, from + step * 16 * PITCH + i * 16);
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
        if (item.parts > 1) {
          float *to = &p.sums[part * V + column + i * 8]; // the workspace may begin at any float
          if ((uintptr_t)to % 8 == 0) *(float2 *)to = {a, b};
          else to[0] = a, to[1] = b;
        } else {
          int64_t to = item.b * p.o_row + (int64_t)(item.kv * p.group + in_group) * V + column + i * 8;
          store_one(p.o, to, KIND, a), store_one(p.o, to + 1, KIND, b);
        }
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

  static __device__ __forceinline__ void attend_tile(Shared *s, const DecodeParams &p, const ScoreUnit &u, const Queries &q, State *x, const Ring &ring,
                                                     const DecodePlace &next, bool copies) {
    int lane = threadIdx.x % 32;
    uint32_t stage = tile_address(s->stage[ring.stage]);
    float sc[4];
    barrier_wait(&s->full[ring.stage], ring.parity);
    uint64_t there = s->there[ring.stage][0] | (uint64_t)s->there[ring.stage][1] << 32;
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

  static __device__ __forceinline__ void run_items(Shared *s, const DecodePlan &plan, const DecodeParams &p, Ring &ring) {
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    DecodeItem now = decode_find(plan, p, plan.begin), ahead = now;
    bool copies = threadIdx.x < KEYS;
    Ring to = ring;
    for (int i = 0; i < STAGES - 1; i++, to.next()) {
      DecodePlace x = look_up(plan, p, &ahead);
      if (copies) copy(s, p, x, to.stage);
    }
    DecodePlace next = look_up(plan, p, &ahead);
    while (now.index < plan.end) {
      Queries q;
      State x = {{}, {-INFINITY, -INFINITY}, {}};
      load_queries(s, q, p, now);
      for (int key = now.key, more = 1; more; ring.next()) { // an empty part has one tile too, as in look_up
        attend_tile(s, p, u, q, &x, ring, next, copies);
        next = look_up(plan, p, &ahead);
        key += KEYS, more = key < now.to;
      }
      finish(s, p, now, x);
      decode_next(plan, p, &now);
    }
    for (int i = 0; i < STAGES - 1; i++, ring.next()) barrier_wait(&s->full[ring.stage], ring.parity); // of no tokens
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= DECODE_FEW_SHARED, "as the launcher has it");
    if (threadIdx.x < STAGES) barrier_init(&s->full[threadIdx.x], KEYS / 32);
    barrier_init_done();
    decode_hint<THREADS>(s->before, p, ROW);
    wait_for_predecessor();
    Ring ring;
    for (int first = 0; first < p.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<THREADS>(s->before, p, first);
      if (plan.begin < plan.end) run_items(s, plan, p, ring);
      __syncthreads();
    }
  }
};

#endif
