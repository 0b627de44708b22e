// Attention on sm_90a where all keys that a tile's queries see fit into the tile, of 64 or 128 queries and keys: short sequences, and long ones of
// which a query sees a few keys alone. It is bound by memory, and by what a block does for each tile beside its products. One thread copies the
// next tile's queries, keys and values by tensor copies while four warps multiply by wgmma, 16 queries each, and of 128 queries one half after
// the other; several blocks share an SM.
//
// Of sequences of up to 32 or 16 tokens a tile has two or four heads (p.all.pack), one after the other in all three tensors' tiles. Their scores
// with each other's keys are masked.
#ifndef SOL_KERNELS_ATTENTION_BRIEF_CUH
#define SOL_KERNELS_ATTENTION_BRIEF_CUH

#include "attention/attention_hopper.cuh"
#include "attention/attention_odd.cuh"
#include "attention/attention_parts.cuh"
#include "mma.cuh"

// HALVES: of 64 queries, and as many keys, that a tile has. ODD: rows begin at any element, and warps copy them by loads.
template <int KIND, int D, int HALVES, int ODD = 0> struct AttentionBrief {
  enum {
    COPY_THREADS = ODD ? ATTENTION_ODD_COPY_THREADS(D) : 32,
    PIECES = D / 8,
    ROWS = ATTENTION_BRIEF_ROWS * HALVES,
    STAGES = ATTENTION_BRIEF_STAGES,
    BOXES = D / 64,
    TILES = ROWS / 8,
    O_TILES = D / 8,
    BOX = ROWS * 128,
    BYTES = BOXES * BOX
  };
  struct Shared { // tiles begin at multiples of 1024
    uint8_t q[STAGES][BYTES], k[STAGES][BYTES], v[STAGES][BYTES];
    uint64_t full[STAGES], empty[STAGES];
  };
  struct Ring {
    int stage = 0;
    uint32_t parity = 0;
    __device__ __forceinline__ void next() {
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
  };
  struct Head {
    int b, head, first, end, key; // the tile's queries, `first` to `end` - 1, and first key
    Sequence q;
  };

  // Head number i of a tile, of p.each or one more in the first ones. There is none after the tile's last: that is copied again, and has no queries.
  static __device__ __forceinline__ Head head_at(const AttentionTiledParams &p, int tile, int i) {
    int count = p.each + (tile < p.more), at = tile * p.each + min(tile, p.more) + min(i, count - 1), part = 0;
    if (p.rows > 1) part = at % p.rows, at /= p.rows;
    Head h = {at / p.all.heads, 0, part * p.span, 0, 0, {}};
    h.head = at - h.b * p.all.heads, h.q = attention_sequence(p.all, h.b);
    h.key = attention_seen(p.all, h.q, h.first).from, h.end = i < count ? min(h.first + p.span, h.q.queries) : 0;
    return h;
  }

  // ---- copies ----

  static __device__ __forceinline__ void produce(Shared *s, const AttentionTiledParams &p) {
    Ring ring;
    for (int tile = blockIdx.x; tile < p.all.tiles; tile += gridDim.x, ring.next()) {
      uint64_t *full = &s->full[ring.stage];
      barrier_wait(&s->empty[ring.stage], ring.parity ^ 1);
      barrier_expect(full, 3 * BYTES);
      for (int i = 0; i < p.all.pack; i++) {
        Head h = head_at(p, tile, i);
        int kv = h.head / p.all.group, above = i * (ROWS / p.all.pack) * 128, q_b = p.all.q_starts ? 0 : h.b, kv_b = p.all.kv_starts ? 0 : h.b;
#pragma unroll
        for (int j = 0; j < BOXES; j++) {
          tensor_load_4d(s->q[ring.stage] + j * BOX + above, &p.q, full, j * 64, h.q.q_first + h.first, h.head, q_b);
          tensor_load_4d(s->k[ring.stage] + j * BOX + above, &p.k, full, j * 64, h.q.k_first + h.key, kv, kv_b);
          tensor_load_4d(s->v[ring.stage] + j * BOX + above, &p.v, full, j * 64, h.q.k_first + h.key, kv, kv_b);
        }
      }
    }
  }

  // What of a tensor a head's rows of a tile are copied from, and how many are there.
  struct Rows {
    const char *from;
    int there;
  };
  static __device__ __forceinline__ Rows rows_of(const Extent &e, const Head &h, int64_t batch, int64_t row, int token, int head, int there) {
    return {e.first + (h.b * batch + token * row + (int64_t)head * D) * 2, min(there, (int)ROWS)};
  }

  // A tensor's rows of a tile. mine: of the tile's head number lane.
  static __device__ __forceinline__ void copy_rows(uint8_t *to, const AttentionTiledParams &p, const Extent &e, int64_t stride, const Rows &mine) {
    enum { STEP = COPY_THREADS / PIECES };
    static_assert(STEP <= ROWS / 4, "a thread's piece number i is of the same head in all threads");
    int thread = threadIdx.x - 128, piece = thread % PIECES, first = thread / PIECES, each = ROWS / p.all.pack;
    load_pieces<ROWS / STEP>(
        e,
        [&](int i) {
          int which = i * STEP / each, row = first + i * STEP - which * each;
          const char *from = (const char *)__shfl_sync(~0u, (uint64_t)mine.from, which);
          return row < __shfl_sync(~0u, mine.there, which) ? from + row * stride * 2 + piece * 16 : NULL;
        },
        [&](int i) {
          int row = first + i * STEP;
          return shared_address(to) + piece / 8 * BOX + row * 128 + (piece % 8 ^ row % 8) * 16;
        });
  }

  static __device__ __forceinline__ void produce_odd(Shared *s, const AttentionTiledParams &p) {
    const AttentionParams &a = p.all;
    Extent q = extent_of_queries(a, D), k = extent_of_keys(a, a.k, a.k_batch, a.k_row, D), v = extent_of_keys(a, a.v, a.v_batch, a.v_row, D);
    int lane = threadIdx.x % 32;
    Ring ring;
    for (int tile = blockIdx.x; tile < a.tiles; tile += gridDim.x, ring.next()) {
      Head h = head_at(p, tile, min(lane, a.pack - 1));
      int kv = h.head / a.group, keys = h.end ? h.q.keys - h.key : 0;
      Rows of_q = rows_of(q, h, a.q_batch, a.q_row, h.q.q_first + h.first, h.head, h.end - h.first);
      Rows of_k = rows_of(k, h, a.k_batch, a.k_row, h.q.k_first + h.key, kv, keys), of_v = rows_of(v, h, a.v_batch, a.v_row, h.q.k_first + h.key, kv, keys);
      barrier_wait(&s->empty[ring.stage], ring.parity ^ 1);
      copy_rows(s->q[ring.stage], p, q, a.q_row, of_q);
      copy_rows(s->k[ring.stage], p, k, a.k_row, of_k);
      copy_rows(s->v[ring.stage], p, v, a.v_row, of_v);
      async_fence();
      __syncwarp();
      if (lane == 0) barrier_arrive(&s->full[ring.stage], 0);
    }
  }

  // ---- products ----

  typedef float Scores[TILES][4];
  typedef float Sums[O_TILES][4];
  template <int tiles> static __device__ __forceinline__ float (&flat(float (&x)[tiles][4]))[tiles * 4] {
    return *(float(*)[tiles * 4]) &x;
  }

  static __device__ __forceinline__ void multiply_keys(const Shared *s, Scores &sc, int stage, int half) {
    uint64_t q = matrix_descriptor(shared_address(s->q[stage] + half * 64 * 128), 0), k = matrix_descriptor(shared_address(s->k[stage]), 0);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < D / 16; i++) wgmma<TILES * 4, KIND, 0, 0>(flat(sc), q + (i / 4 * BOX + i % 4 * 32) / 16, k + (i / 4 * BOX + i % 4 * 32) / 16, i);
    wgmma_commit();
    wgmma_wait<0>();
    settle(flat(sc));
  }

  static __device__ __forceinline__ void multiply_values(const Shared *s, Sums &o, const Scores &sc, int stage) {
    uint64_t v = matrix_descriptor(shared_address(s->v[stage]), BOX);
    uint32_t left[TILES / 2][4];
#pragma unroll
    for (int i = 0; i < TILES / 2; i++) as_left_operand(left[i], sc[i * 2], sc[i * 2 + 1], KIND);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < TILES / 2; i++) wgmma_left<O_TILES * 4, KIND>(flat(o), left[i], v + i * 2048 / 16);
    wgmma_commit();
    wgmma_wait<0>();
    settle(flat(o));
  }

  // row: of its head, the thread's first; first: the column of the tile where the head's first key would be.
  static __device__ __forceinline__ void softmax(const AttentionParams &p, const Head &h, Scores &sc, const ScoreUnit &u, Softmax *x, int row, int first) {
    Seen seen[2] = {attention_seen(p, h.q, row), attention_seen(p, h.q, row + 8)};
    int left = first - threadIdx.x % 4 * 2;
    int from[2] = {seen[0].from + left, seen[1].from + left}, to[2] = {seen[0].to + left, seen[1].to + left};
    float by[2];
    if (u.cap != 0) cap_scores(sc, u.before, u.cap);
    mask_scores(sc, from, to);
    softmax_tile(sc, x, u.unit, by);
  }

  // ---- results ----

  // 16 rows as far as they are there, aligned pieces of them, and then the elements before the first and after the last of these: eight a row.
  static __device__ __forceinline__ void store_odd(uint16_t *to, int64_t stride, const uint8_t *from, int box, int there) {
    auto place = [&](int row, int piece) { return from + piece / 8 * box + row * 128 + (piece % 8 ^ row % 8) * 16; };
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 16 * PIECES / 32; i++) {
      int n = i * 32 + lane, row = n / PIECES, piece = n % PIECES;
      char *at = (char *)(to + row * stride);
      uint32_t shift = (uintptr_t)at & 15;
      uint4 v = *(const uint4 *)place(row, piece);
      if (shift) v = funnel(*(const uint4 *)place(row, max(piece - 1, 0)), v, 16 - shift, 2);
      if (row < there && (piece || !shift)) *(uint4 *)(at - shift + piece * 16) = v;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int n = i * 32 + lane, row = n / 8;
      uint16_t *at = to + row * stride;
      int before = 8 - (int)((uintptr_t)at & 15) / 2, element = n % 8 < before ? n % 8 : D - 8 + n % 8;
      if (row < there && before < 8) at[element] = *(const uint16_t *)(place(row, element / 8) + element % 8 * 2);
    }
  }

  // Through the queries' place in shared memory, whose boxes of 64 columns have `box` bytes, a warp its own rows, so that rows are written whole. top: the
  // warp's first row there; first: which query that is. All warps have read the queries.
  static __device__ __forceinline__ void store(uint8_t *queries, int box, const AttentionParams &p, const Head &h, const Sums &o, const Softmax &x, float unit, int top,
                                               int first) {
    int lane = threadIdx.x % 32;
    uint8_t *place = queries + top * 128;
    float by[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
      float sum = quad_sum(x.sum[half]);
      int row = first + half * 8 + lane / 4;
      by[half] = sum == 0 ? 0 : 1 / sum;
      if (p.lse && lane % 4 == 0 && row < h.end)
        p.lse[h.b * p.lse_batch + h.head * p.lse_head + h.q.q_first + row] = log_sum(x.most[half], unit, sum);
    }
#pragma unroll
    for (int i = 0; i < O_TILES; i += 2) { // 16 columns
      uint32_t at = shared_address(place) + i / 8 * box + lane % 16 * 128 + ((i % 8 + lane / 16) ^ lane % 8) * 16;
      asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(narrow2(o[i][0] * by[0], o[i][1] * by[0], KIND)),
                   "r"(narrow2(o[i][2] * by[1], o[i][3] * by[1], KIND)), "r"(narrow2(o[i + 1][0] * by[0], o[i + 1][1] * by[0], KIND)),
                   "r"(narrow2(o[i + 1][2] * by[1], o[i + 1][3] * by[1], KIND))
                   : "memory");
    }
    __syncwarp();
    uint16_t *to = (uint16_t *)p.o + h.b * p.o_batch + (h.q.q_first + first) * p.o_row + h.head * D;
    if constexpr (ODD) store_odd(to, p.o_row, place, box, h.end - first);
    else
#pragma unroll
      for (int i = 0; i < 16 * PIECES / 32; i++) {
        int n = i * 32 + lane, row = n / PIECES, piece = n % PIECES;
        uint4 v = *(const uint4 *)(place + piece / 8 * box + row * 128 + (piece % 8 ^ row % 8) * 16);
        if (first + row < h.end) *(uint4 *)(to + row * p.o_row + piece * 8) = v;
      }
  }

  static __device__ __forceinline__ void compute(Shared *s, const AttentionTiledParams &p) {
    ScoreUnit u = score_unit(p.all.scale, p.all.soft_cap);
    // The same in all lanes, said so that the compiler knows it.
    int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0), warps = 4 / p.all.pack, lane = threadIdx.x % 32;
    int mine = warp / warps, in_tile = warp % warps * 16; // of the tile's heads; query
    Ring ring;
    for (int tile = blockIdx.x; tile < p.all.tiles; tile += gridDim.x, ring.next()) {
      Head h = head_at(p, tile, mine);
      barrier_wait(&s->full[ring.stage], ring.parity);
#pragma unroll 1
      for (int half = 0; half < HALVES && (!half || h.first + half * 64 < h.end); half++) {
        int first = h.first + half * 64 + in_tile;
        Scores sc;
        Sums o = {};
        Softmax x = softmax_start();
        multiply_keys(s, sc, ring.stage, half);
        softmax(p.all, h, sc, u, &x, first + lane / 4, mine * (ROWS / p.all.pack) - h.key);
        multiply_values(s, o, sc, ring.stage);
        named_sync(1, 128); // the queries have been read
        store(s->q[ring.stage], BOX, p.all, h, o, x, u.unit, half * 64 + warp * 16, first);
      }
      async_fence();
      __syncwarp();
      if (lane == 0) barrier_arrive(&s->empty[ring.stage], 0);
    }
  }

  static __device__ __forceinline__ void run(const AttentionTiledParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(sizeof(Shared) <= ATTENTION_BRIEF_SHARED(D, HALVES), "as the launcher has it");
    if (threadIdx.x == 128) {
      if (!ODD) tensor_prefetch_map(&p.q), tensor_prefetch_map(&p.k), tensor_prefetch_map(&p.v);
      for (int i = 0; i < STAGES; i++) barrier_init(&s->full[i], ODD ? COPY_THREADS / 32 : 1), barrier_init(&s->empty[i], 4);
      barrier_init_done();
    }
    __syncthreads();
    let_successor_start();
    wait_for_predecessor();
    if (ODD && threadIdx.x >= 128) {
      asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(ATTENTION_ODD_COPY_REGISTERS(D)));
      produce_odd(s, p);
    } else if (threadIdx.x < 128) {
      if (ODD) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(ATTENTION_ODD_REGISTERS(D)));
      compute(s, p);
    } else if (threadIdx.x == 128)
      produce(s, p);
  }
};

#endif
