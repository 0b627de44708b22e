// Decode attention of MLA on sm_90a: one row of the cache is K, and its first 512 elements are V. A block has 64 heads, which are the rows
// of wgmma, and two warpgroups, each of which has half of V's columns. Of a tile of 64 tokens the first warpgroup does the scores
// and the softmax and leaves the weights in shared memory; both then multiply them with their columns. The next tile's copies, of the next
// item too, are under way meanwhile.
#ifndef SOL_KERNELS_DECODE_ATTENTION_LATENT_CUH
#define SOL_KERNELS_DECODE_ATTENTION_LATENT_CUH

#include "decode_attention/decode_attention_items.cuh"
#include "mma.cuh"
#include "wgmma.cuh"

// KIND: of the products; FP8: the cache is, and Q and O are of p.kind.
template <int KIND, int FP8 = 0> struct DecodeLatent {
  enum {
    D = DECODE_LATENT,
    V = DECODE_LATENT_V,
    THREADS = 256,
    ROWS = DECODE_WIDE_ROWS,
    KEYS = 64,
    ATOM = 8 * 128,       // bytes of eight rows of 64 columns, within which 16 bytes are swizzled
    EIGHT = D / 64 * ATOM, // of eight tokens, or heads
    TILE = KEYS / 8 * EIGHT,
    SHARES = THREADS / KEYS, // threads of a token's row
    TILES = KEYS / 8,
    HALF = V / 2
  };
  struct Shared { // tiles begin at multiples of 1024
    uint8_t stage[2][TILE], q[TILE], p[KEYS / 8 * ATOM];
    float by[ROWS];
    uint64_t there[2]; // a bit for each token
    int before[DECODE_SEQUENCES + 16];
  };
  typedef float Sums[HALF / 2];
  typedef float Scores[TILES][4];

  // Where 16 bytes number `piece` of a token, or a head, are in a tile.
  static __device__ __forceinline__ uint32_t place_in(int row, int piece) {
    return (uint32_t)(row / 8 * EIGHT + piece / 8 * ATOM + tile_place<128>(row % 8, piece % 8));
  }

  static __device__ __forceinline__ int kind_of(const DecodeParams &p) {
    return FP8 ? p.kind : KIND;
  }

  // Of all that multiply.
  static __device__ __forceinline__ void sync_both(void) {
    named_sync(1, THREADS);
  }

  // ---- copies ----

  static __device__ __forceinline__ DecodePlace look_up(const DecodePlan &plan, const DecodeParams &p, DecodeItem *item) {
    DecodePlace x = decode_look_up(plan, p, *item, item->key + threadIdx.x / SHARES);
    item->key += KEYS;
    if (item->key >= item->to && item->index < plan.end) decode_next(plan, p, item);
    return x;
  }

  static __device__ __forceinline__ void copy(Shared *s, const DecodeParams &p, const DecodePlace &x, int stage) {
    uint32_t row = decode_row(p, x), to = shared_address(s->stage[stage]);
    bool there = row != ~0u;
    const char *from = (const char *)p.k_cache + (there ? (int64_t)row : 0) * (D * 2);
#pragma unroll
    for (int i = 0; i < D / 8 / SHARES; i++) {
      int piece = i * SHARES + threadIdx.x % SHARES;
      if (p.aligned) copy_async(to + place_in(threadIdx.x / SHARES, piece), from + piece * 16, there);
      else copy_elements(to + place_in(threadIdx.x / SHARES, piece), from + piece * 16, there, 2);
    }
    copy_commit();
    uint32_t all = __ballot_sync(~0u, there), bits = 0;
#pragma unroll
    for (int i = 0; i < 32 / SHARES; i++) bits |= (all >> i * SHARES & 1) << i;
    if (threadIdx.x % 32 == 0) ((uint8_t *)&s->there[stage])[threadIdx.x / 32] = (uint8_t)bits;
  }

  // Eight elements of Q as fp16, where they are bf16.
  static __device__ __noinline__ void load_converted(Shared *s, const DecodeParams &p, uint32_t to, int64_t from) {
    uint32_t x[4];
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = narrow2(load_one(p.q, from + i * 2, p.kind), load_one(p.q, from + i * 2 + 1, p.kind), KIND);
    *(uint4 *)(s->q + to) = {x[0], x[1], x[2], x[3]};
  }

  static __device__ __forceinline__ void load_queries(Shared *s, const DecodeParams &p, const DecodeItem &item) {
#pragma unroll 6
    for (int i = threadIdx.x; i < ROWS * D / 8; i += THREADS) {
      int row = i / (D / 8), chunk = i % (D / 8), in_group = item.tile * ROWS + row;
      bool there = in_group < p.group;
      int64_t from = (there ? item.b * p.q_row + (int64_t)(item.kv * p.group + in_group) * D : 0) + chunk * 8;
      uint32_t to = shared_address(s->q) + place_in(row, chunk);
      if (FP8 && p.kind != KIND && there) load_converted(s, p, place_in(row, chunk), from);
      else if (p.q_aligned) copy_async(to, (const uint16_t *)p.q + from, there);
      else copy_elements(to, (const uint16_t *)p.q + from, there, 2);
    }
    copy_commit();
  }

  // ---- products ----

  static __device__ __forceinline__ int row_of(void) { // the thread's first; the other is 8 further
    return threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
  }

  // Weights of a tile; by: what was added before is to be multiplied by.
  static __device__ __forceinline__ void weigh(const Shared *s, const ScoreUnit &u, Softmax *x, Scores &sc, float (&by)[2], int stage) {
    uint64_t q = matrix_descriptor(shared_address(s->q), 0, EIGHT), k = matrix_descriptor(shared_address(s->stage[stage]), 0, EIGHT);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < D / 16; i++) {
      int at = (i / 4 * ATOM + i % 4 * 32) / 16;
      wgmma<TILES * 4, KIND, 0, 0>(*(float(*)[TILES * 4]) & sc, q + at, k + at, i);
    }
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < TILES * 4; i++) asm volatile("" : "+f"(sc[i / 4][i % 4])::"memory");
    if (u.cap != 0) cap_scores(sc, u.before, u.cap);
#pragma unroll
    for (int i = 0; i < TILES * 4; i++) sc[i / 4][i % 4] *= u.unit;
    uint64_t there = s->there[stage] >> threadIdx.x % 4 * 2;
    if (~s->there[stage])
#pragma unroll
      for (int i = 0; i < TILES * 4; i++)
        if (!(there >> (i / 4 * 8 + i % 2) & 1)) sc[i / 4][i % 4] = -INFINITY;
    softmax_tile(sc, x, 1, by);
  }

  // To shared memory, where both warpgroups' products find them.
  static __device__ __forceinline__ void leave_weights(Shared *s, const Scores &sc, const float (&by)[2]) {
    int row = row_of();
#pragma unroll
    for (int i = 0; i < TILES * 2; i++)
      *(uint32_t *)(s->p + tile_place<128>(row + i % 2 * 8, i / 2) + threadIdx.x % 4 * 4) =
          narrow2(sc[i / 2][i % 2 * 2], sc[i / 2][i % 2 * 2 + 1], KIND);
    if (threadIdx.x % 4 == 0) s->by[row] = by[0], s->by[row + 8] = by[1];
    async_fence();
  }

  static __device__ __forceinline__ void add_values(const Shared *s, Sums &o, int stage) {
    float by[2] = {s->by[row_of()], s->by[row_of() + 8]};
    if (__any_sync(~0u, by[0] != 1 || by[1] != 1))
#pragma unroll
      for (int i = 0; i < HALF / 2; i++) o[i] *= by[i % 4 / 2];
    uint64_t left = matrix_descriptor(shared_address(s->p), 0);
    uint64_t v = matrix_descriptor(shared_address(s->stage[stage] + threadIdx.x / 128 * 4 * ATOM), ATOM, EIGHT);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < KEYS / 16; i++) wgmma<HALF / 2, KIND, 0, 1>(o, left + i * 2, v + i * 2 * EIGHT / 16, 1);
    wgmma_commit();
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < HALF / 2; i++) asm volatile("" : "+f"(o[i])::"memory");
  }

  // ---- results ----

  // The only part of its sequence is finished; of more, the combining kernel does that. The first warpgroup has the sums of weights.
  static __device__ __forceinline__ void finish(Shared *s, const DecodeParams &p, const DecodeItem &item, const Sums &o, const Softmax &x) {
    int lane = threadIdx.x % 32, first = threadIdx.x / 128 * HALF + lane % 4 * 2;
    sync_both(); // what is in `by` was used
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int in_group = item.tile * ROWS + row_of() + half * 8, head = item.kv * p.group + in_group;
      float sum = quad_sum(x.sum[half]);
      if (threadIdx.x >= 128 || lane % 4) continue;
      s->by[row_of() + half * 8] = item.parts > 1 ? 1 : sum == 0 ? 0 : p.v_scale / sum;
      if (in_group >= p.group) continue;
      int64_t row = (int64_t)item.b * p.heads + head;
      if (item.parts > 1) p.mosts[row * p.parts + item.part] = x.most[half], p.weights[row * p.parts + item.part] = sum;
      else if (p.lse) p.lse[row] = log_sum(x.most[half], 1, sum);
    }
    sync_both();
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int in_group = item.tile * ROWS + row_of() + half * 8, head = item.kv * p.group + in_group;
      if (in_group >= p.group) continue;
      float by = s->by[row_of() + half * 8];
      int64_t to = item.b * p.o_row + (int64_t)head * V + first, part = (((int64_t)item.b * p.heads + head) * p.parts + item.part) * V + first;
#pragma unroll
      for (int i = 0; i < HALF / 8; i++) {
        float a = o[i * 4 + half * 2] * by, b = o[i * 4 + half * 2 + 1] * by;
        if (item.parts > 1) store_neighbours(p.sums, part + i * 8, KIND_FP32, a, b);
        else store_neighbours(p.o, to + i * 8, kind_of(p), a, b);
      }
    }
  }

  // ---- all of it ----

  static __device__ __forceinline__ void run_items(Shared *s, const DecodePlan &plan, const DecodeParams &p) {
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    DecodeItem now = decode_find(plan, p, plan.begin), ahead = now;
    DecodePlace next = look_up(plan, p, &ahead);
    copy(s, p, next, 0);
    next = look_up(plan, p, &ahead);
    int stage = 0;
    while (now.index < plan.end) {
      Sums o;
#pragma unroll
      for (int i = 0; i < HALF / 2; i++) o[i] = 0;
      Softmax x = softmax_start();
      load_queries(s, p, now);
      for (int key = now.key, more = 1; more;) { // an empty part has one tile too, as in look_up
        copy_wait<0>();
        async_fence();
        __syncthreads(); // the tile is there, and what the one before had is free
        copy(s, p, next, stage ^ 1);
        next = look_up(plan, p, &ahead);
        if (threadIdx.x < 128) {
          Scores sc;
          float by[2];
          weigh(s, u, &x, sc, by, stage);
          leave_weights(s, sc, by);
        }
        __syncthreads(); // the weights are there
        add_values(s, o, stage);
        key += KEYS, more = key < now.to;
        stage ^= 1;
      }
      finish(s, p, now, o, x);
      decode_next(plan, p, &now);
    }
    copy_wait<0>();
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= DECODE_WIDE_SHARED, "as the launcher has it");
    decode_hint<THREADS>(s->before, p, D * 2);
    wait_for_predecessor();
    for (int first = 0; first < p.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<THREADS>(s->before, p, first);
      if (plan.begin < plan.end) run_items(s, plan, p);
      __syncthreads();
    }
  }
};

#endif
