// Attention on sm_90a: a persistent grid of blocks that each have one thread copying queries, keys and values by tensor
// copies, and two warpgroups of 64 queries each that multiply by wgmma. A warpgroup starts the next tile's scores and the product of
// this one's with V, and does the next softmax while the tensor cores work; the two warpgroups take turns at starting their
// products, so that one's softmax goes on beside the other's products.
//
// Tiles of keys go from the last that is seen to the first. Barriers of a stage: `full` completes when its bytes have arrived,
// `empty` when both warpgroups have read it.
#ifndef SOL_KERNELS_ATTENTION_WGMMA_CUH
#define SOL_KERNELS_ATTENTION_WGMMA_CUH

#include "attention/attention_hopper.cuh"
#include "attention/attention_parts.cuh"
#include "mma.cuh"

template <int KIND, int D, int TURNS = 1, int KEYS = ATTENTION_TILED_KEYS(D), int STAGES = ATTENTION_STAGES(D)> struct AttentionWgmma {
  enum {
    ROWS = 64,  // of a warpgroup
    BOXES = D / 64,
    TILES = KEYS / 8,
    O_TILES = D / 8,
    Q_BOX = ROWS * 128,
    KV_BOX = KEYS * 128,
    Q_BYTES = BOXES * Q_BOX,
    KV_BYTES = BOXES * KV_BOX,
    OWN_PLACE = D < 256 // of results in shared memory; otherwise the queries'
  };
  struct Shared { // tiles begin at multiples of 1024
    uint8_t q[2][Q_BYTES], k[STAGES][KV_BYTES], v[STAGES][KV_BYTES], o[OWN_PLACE ? 2 * Q_BYTES : 16];
    uint64_t q_full[2], q_empty[2], k_full[STAGES], k_empty[STAGES], v_full[STAGES], v_empty[STAGES];
    int before[ATTENTION_SEQUENCES + 16]; // packed: tiles of the sequences before each
  };
  struct Ring {
    int stage = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  };
  struct Item {
    int b, head, first; // first: query
    int low, high;      // tiles of keys: low to high - 1
    Sequence q;
  };

  // Items: some heads, all their tiles of queries, the last first since with `causal` they see most; then the next heads. Every other
  // round of the grid goes backwards, which evens out what blocks have to do.
  static __device__ __forceinline__ void find_item(const AttentionTiledParams &p, int index, Item *item) {
    int band = index / (p.nearby * p.rows), in_band = index - band * p.nearby * p.rows;
    int heads = min(p.nearby, p.all.batch * p.all.heads - band * p.nearby), all = band * p.nearby + in_band % heads;
    item->b = all / p.all.heads, item->head = all % p.all.heads;
    item->first = (p.rows - 1 - in_band / heads) * 2 * ROWS;
    item->q = attention_sequence(p.all, item->b);
  }

  // Packed: all heads of a tile of a sequence, its last tile first, and then the next one's.
  static __device__ __forceinline__ int tiles_of(const Sequence &q) {
    return (q.queries + 2 * ROWS - 1) / (2 * ROWS);
  }
  static __device__ __forceinline__ int count_packed(Shared *s, const AttentionTiledParams &p) {
    return count_before<ATTENTION_TILED_THREADS, ATTENTION_SEQUENCES>(
        s->before, p.all.batch, [&](int i) { return tiles_of(attention_sequence(p.all, i)); }, [](int, int tiles) { return tiles; });
  }
  static __device__ __forceinline__ void find_packed(const Shared *s, const AttentionTiledParams &p, int index, Item *item) {
    int tile = index / p.all.heads;
    item->b = last_before(s->before, p.all.batch, tile), item->head = index - tile * p.all.heads;
    item->q = attention_sequence(p.all, item->b);
    item->first = (tiles_of(item->q) - 1 - (tile - s->before[item->b])) * 2 * ROWS;
  }

  // false: there is nothing to do.
  static __device__ __forceinline__ bool item_at(const Shared *s, const AttentionTiledParams &p, int round, int total, Item *item) {
    int grid = gridDim.x, index = round * grid + (round % 2 ? grid - 1 - blockIdx.x : blockIdx.x);
    if (index >= total) return false;
    if (p.packed) find_packed(s, p, index, item);
    else find_item(p, index, item);
    if (item->first >= item->q.queries) return false;
    int last = min(item->first + 2 * ROWS, item->q.queries) - 1;
    Seen top = attention_seen(p.all, item->q, item->first), bottom = attention_seen(p.all, item->q, last);
    item->low = top.from / KEYS, item->high = (bottom.to + KEYS - 1) / KEYS;
    return true;
  }

  // ---- copies ----

  static __device__ __forceinline__ void load_queries(Shared *s, const AttentionTiledParams &p, const Item &t, int group, uint32_t parity) {
    barrier_wait(&s->q_empty[group], parity ^ 1);
    barrier_expect(&s->q_full[group], Q_BYTES);
    for (int i = 0; i < BOXES; i++)
      tensor_load_4d(s->q[group] + i * Q_BOX, &p.q, &s->q_full[group], i * 64, t.q.q_first + t.first + group * ROWS, t.head,
                     p.all.q_starts ? 0 : t.b);
  }

  static __device__ __forceinline__ void load_keys(uint8_t *to, const AttentionTiledParams &p, const AttentionMap *map, uint64_t *full,
                                                   uint64_t *empty, const Item &t, int tile, uint32_t parity) {
    barrier_wait(empty, parity ^ 1);
    barrier_expect(full, KV_BYTES);
    for (int i = 0; i < BOXES; i++)
      tensor_load_4d(to + i * KV_BOX, map, full, i * 64, t.q.k_first + tile * KEYS, t.head / p.all.group, p.all.kv_starts ? 0 : t.b);
  }

  static __device__ __forceinline__ void produce(Shared *s, const AttentionTiledParams &p, int total) {
    Ring ring;
    uint32_t parity = 0;
    Item t;
    for (int round = 0; round * (int)gridDim.x < total; round++) {
      if (!item_at(s, p, round, total, &t)) continue;
      load_queries(s, p, t, 0, parity); // where no keys are seen too: their place may be the results'
      if (t.low >= t.high) load_queries(s, p, t, 1, parity);
      for (int tile = t.high - 1; tile >= t.low; tile--, ring.next()) {
        load_keys(s->k[ring.stage], p, &p.k, &s->k_full[ring.stage], &s->k_empty[ring.stage], t, tile, ring.parity);
        if (tile == t.high - 1) load_queries(s, p, t, 1, parity);
        load_keys(s->v[ring.stage], p, &p.v, &s->v_full[ring.stage], &s->v_empty[ring.stage], t, tile, ring.parity);
      }
      parity ^= 1;
    }
  }

  // ---- products ----

  typedef float Scores[TILES][4];
  typedef float Sums[O_TILES][4];
  template <int tiles> static __device__ __forceinline__ float (&flat(float (&x)[tiles][4]))[tiles * 4] {
    return *(float(*)[tiles * 4]) &x;
  }

  static __device__ __forceinline__ void start_scores(Scores &sc, uint64_t q, uint64_t k, int stage) {
#pragma unroll
    for (int i = 0; i < D / 16; i++)
      wgmma<TILES * 4, KIND, 0, 0>(flat(sc), q + (i / 4 * Q_BOX + i % 4 * 32) / 16,
                                   k + (stage * KV_BYTES + i / 4 * KV_BOX + i % 4 * 32) / 16, i);
    wgmma_commit();
  }

  static __device__ __forceinline__ void start_values(Sums &o, const uint32_t (&left)[TILES / 2][4], uint64_t v, int stage) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < TILES / 2; i++) wgmma_left<O_TILES * 4, KIND>(flat(o), left[i], v + (stage * KV_BYTES + i * 2048) / 16);
    wgmma_commit();
  }

  static __device__ __forceinline__ void as_left(uint32_t (&left)[TILES / 2][4], const Scores &sc) {
#pragma unroll
    for (int i = 0; i < TILES / 2; i++) as_left_operand(left[i], sc[i * 2], sc[i * 2 + 1], KIND);
  }

  static __device__ __forceinline__ void release(uint64_t *bar, int thread) {
    if (thread == 0) barrier_arrive(bar, 0);
  }

  // Which tiles need no look at single keys, and what each of the thread's rows sees.
  struct Sight {
    int whole_from, whole_to;
    Seen seen[2], all; // all: by any of the warp's rows
    ScoreUnit unit;
  };

  static __device__ __forceinline__ Sight sight_of(const AttentionTiledParams &p, const Item &t, int first, int thread) {
    int top = first + __shfl_sync(~0u, thread / 32, 0) * 16, row = top + thread % 32 / 4;
    Sight x = {attention_seen(p.all, t.q, first + ROWS - 1).from, attention_seen(p.all, t.q, first).to,
               {attention_seen(p.all, t.q, row), attention_seen(p.all, t.q, row + 8)}, attention_all_seen(p.all, t.q, top, 16, t.q.queries),
               score_unit(p.all.scale, p.all.soft_cap)};
    if (p.all.soft_cap != 0 || top >= t.q.queries) x.whole_to = 0;
    return x;
  }

  static __device__ __forceinline__ void softmax(Scores &sc, const Sight &w, Softmax *x, float (&by)[2], int tile, int thread) {
    if (tile * KEYS < w.whole_from || (tile + 1) * KEYS > w.whole_to) {
      int first = tile * KEYS + thread % 4 * 2;
      int from[2] = {w.seen[0].from - first, w.seen[1].from - first}, to[2] = {w.seen[0].to - first, w.seen[1].to - first};
      float most[2] = {-INFINITY, -INFINITY};
      Seen all = {w.all.from - tile * KEYS, w.all.to - tile * KEYS};
      if (D == 256) all = {0, KEYS}; // there are no registers for more
      uint32_t looked = look_at_scores(sc, w.unit, from, to, all, most);
      weigh_scores(sc, looked, most, x, w.unit.unit, by);
    } else
      softmax_tile(sc, x, w.unit.unit, by);
  }

  // A warpgroup's turn to start products; it hands over to the other.
  static __device__ __forceinline__ void take_turn(int group) {
    if (TURNS) named_sync(3 + group, 256);
  }
  static __device__ __forceinline__ void give_turn(int group) {
    if (TURNS) named_arrive(3 + (group ^ 1), 256);
  }

  static __device__ __forceinline__ void attend(Shared *s, const Item &t, const Sight &w, Sums &o, Softmax *x, Ring &ring, int group, int thread) {
    uint64_t q = matrix_descriptor(shared_address(s->q[group]), 0), k = matrix_descriptor(shared_address(s->k[0]), 0);
    uint64_t v = matrix_descriptor(shared_address(s->v[0]), KV_BOX);
    Scores sc;
    uint32_t left[TILES / 2][4];
    float by[2];
    barrier_wait(&s->k_full[ring.stage], ring.parity);
    wgmma_fence();
    start_scores(sc, q, k, ring.stage);
    wgmma_wait<0>();
    settle(flat(sc));
    release(&s->k_empty[ring.stage], thread);
    softmax(sc, w, x, by, t.high - 1, thread);
    for (int tile = t.high - 2; tile >= t.low; tile--) {
      Ring before = ring;
      ring.next();
      as_left(left, sc);
      barrier_wait(&s->k_full[ring.stage], ring.parity);
      take_turn(group);
      wgmma_fence();
      start_scores(sc, q, k, ring.stage);
      barrier_wait(&s->v_full[before.stage], before.parity);
      start_values(o, left, v, before.stage);
      give_turn(group);
      wgmma_wait<1>();
      settle(flat(sc));
      release(&s->k_empty[ring.stage], thread);
      softmax(sc, w, x, by, tile, thread);
      wgmma_wait<0>();
      settle(flat(o));
      release(&s->v_empty[before.stage], thread);
#pragma unroll
      for (int i = 0; i < O_TILES; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) o[i][j] *= by[j / 2];
    }
    if (OWN_PLACE) release(&s->q_empty[group], thread);
    as_left(left, sc);
    barrier_wait(&s->v_full[ring.stage], ring.parity);
    start_values(o, left, v, ring.stage);
    wgmma_wait<0>();
    settle(flat(o));
    release(&s->v_empty[ring.stage], thread);
    ring.next();
  }

  // ---- results ----

  // Through shared memory, so that rows are written whole.
  static __device__ __forceinline__ void store(Shared *s, const AttentionTiledParams &p, const Item &t, Sums &o, const Softmax &x,
                                               float unit, int group, int thread) {
    int warp = thread / 32, lane = thread % 32, first = t.first + group * ROWS;
    uint8_t *place = OWN_PLACE ? s->o + group * Q_BYTES : s->q[group];
    named_sync(1 + group, 128); // what was there has been written, or, of queries, read
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float sum = quad_sum(x.sum[half]), by = sum == 0 ? 0 : 1 / sum;
      int row = first + warp * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int i = 0; i < O_TILES; i++) o[i][half * 2] *= by, o[i][half * 2 + 1] *= by;
      if (p.all.lse && lane % 4 == 0 && row < t.q.queries)
        p.all.lse[t.b * p.all.lse_batch + t.head * p.all.lse_head + t.q.q_first + row] = log_sum(x.most[half], unit, sum);
    }
#pragma unroll
    for (int i = 0; i < O_TILES; i += 2) { // 16 columns
      int row = warp * 16 + lane % 16;
      uint32_t at = shared_address(place) + i / 8 * Q_BOX + row * 128 + ((i % 8 + lane / 16) ^ row % 8) * 16;
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(narrow2(o[i][0], o[i][1], KIND)),
                   "r"(narrow2(o[i][2], o[i][3], KIND)), "r"(narrow2(o[i + 1][0], o[i + 1][1], KIND)),
                   "r"(narrow2(o[i + 1][2], o[i + 1][3], KIND))
                   : "memory");
    }
    named_sync(1 + group, 128);
    uint16_t *to = (uint16_t *)p.all.o + t.b * p.all.o_batch + (t.q.q_first + first) * p.all.o_row + t.head * D;
#pragma unroll 4
    for (int i = thread; i < ROWS * D / 8; i += 128) {
      int row = i / (D / 8), piece = i % (D / 8);
      uint4 v = *(const uint4 *)(place + piece / 8 * Q_BOX + row * 128 + (piece % 8 ^ row % 8) * 16);
      if (first + row < t.q.queries) *(uint4 *)(to + row * p.all.o_row + piece * 8) = v;
    }
  }

  static __device__ __forceinline__ void compute(Shared *s, const AttentionTiledParams &p, int total) {
    // The same in all lanes, said so that the compiler knows it.
    int group = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0), thread = threadIdx.x % 128;
    uint32_t parity = 0;
    Ring ring;
    Item t;
    if (TURNS && group) named_arrive(3, 256); // the first turn is the first warpgroup's
    for (int round = 0; round * (int)gridDim.x < total; round++) {
      if (!item_at(s, p, round, total, &t)) continue;
      Sight w = sight_of(p, t, t.first + group * ROWS, thread);
      Sums o = {};
      Softmax x = softmax_start();
      bool any = t.low < t.high;
      barrier_wait(&s->q_full[group], parity);
      if (any) attend(s, t, w, o, &x, ring, group, thread);
      else if (OWN_PLACE) release(&s->q_empty[group], thread);
      parity ^= 1;
      store(s, p, t, o, x, w.unit.unit, group, thread);
      if (!OWN_PLACE) {
        async_fence();
        named_sync(1 + group, 128);
        release(&s->q_empty[group], thread);
      }
    }
    if (TURNS && !group) named_sync(3, 256); // the turn that is left
  }

  static __device__ __forceinline__ void run(const AttentionTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(KEYS != ATTENTION_TILED_KEYS(D) || STAGES != ATTENTION_STAGES(D) || sizeof(Shared) <= ATTENTION_TILED_SHARED(D), "as the launcher has it");
    if (threadIdx.x == 0) {
      tensor_prefetch_map(&p.q), tensor_prefetch_map(&p.k), tensor_prefetch_map(&p.v);
      for (int i = 0; i < 2; i++) barrier_init(&s->q_full[i], 1), barrier_init(&s->q_empty[i], 1);
      for (int i = 0; i < STAGES; i++) {
        barrier_init(&s->k_full[i], 1), barrier_init(&s->v_full[i], 1);
        barrier_init(&s->k_empty[i], 2), barrier_init(&s->v_empty[i], 2);
      }
      barrier_init_done();
    }
    __syncthreads();
    let_successor_start();
    wait_for_predecessor();
    int total = (p.packed ? count_packed(s, p) : p.rows * p.all.batch) * p.all.heads;
    if (threadIdx.x < 128) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
      if (threadIdx.x == 0) produce(s, p, total);
      __syncwarp();
    } else {
      asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
      compute(s, p, total);
    }
  }
};

#endif
