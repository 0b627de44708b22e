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
    SHARE_OUT = ODD && ATTENTION_ODD_COPY_REGISTERS(D) != ATTENTION_ODD_REGISTERS(D), // registers, from those that copy to those that multiply
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

  // A tensor, and what of it a head's rows of a tile are copied from; how many are there.
  struct Tensor {
    Extent all;
    int64_t batch, row; // strides
  };
  struct Rows {
    const char *from;
    int there;
  };
  static __device__ __forceinline__ Tensor tensor_at(const AttentionParams &a, int number) {
    if (number == 0) return {extent_of_queries(a, D), a.q_batch, a.q_row};
    if (number == 1) return {extent_of_keys(a, a.k, a.k_batch, a.k_row, D), a.k_batch, a.k_row};
    return {extent_of_keys(a, a.v, a.v_batch, a.v_row, D), a.v_batch, a.v_row};
  }
  static __device__ __forceinline__ Rows rows_of(const AttentionParams &a, const Tensor &t, const Head &h, bool keys) {
    int token = keys ? h.q.k_first + h.key : h.q.q_first + h.first, there = keys ? h.q.keys - h.key : h.end - h.first;
    return {t.all.first + (h.b * t.batch + token * t.row + (int64_t)(keys ? h.head / a.group : h.head) * D) * 2, h.end ? there : 0};
  }

  // A thread's aligned pieces of a share of a tensor's tile, on their way from memory. The piece after a row's last one is another lane's, a row's each.
  enum { STEP = COPY_THREADS / PIECES, COUNT = 4, SHARES = ROWS / STEP / COUNT, WARP_ROWS = 32 / PIECES };
  struct Pieces {
    uint4 low[COUNT], beyond;
    uint32_t shifts, alone; // four bits each, where a row begins in its first piece; a bit each, whether it is at the tensor's end and read by elements
  };

  // Row number i of those that lanes with `in_warp` have, where it is; NULL where there is none.
  static __device__ __forceinline__ const char *row_at(const Rows &rows, int64_t stride, int each, int i, int in_warp) {
    static_assert(STEP <= ROWS / 4, "a head has whole steps");
    int which = i * STEP / each, row = (threadIdx.x / 32 - 4) * WARP_ROWS + in_warp + i * STEP - which * each;
    const char *from = (const char *)__shfl_sync(~0u, (uint64_t)rows.from, which);
    return row < __shfl_sync(~0u, rows.there, which) ? from + row * stride * 2 : NULL;
  }

  static __device__ __forceinline__ Pieces load_share(const Tensor &t, const Rows &rows, int share, int each) {
    int lane = threadIdx.x % 32, piece = lane % PIECES;
    Pieces x;
    x.shifts = x.alone = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      const char *row = row_at(rows, t.row, each, share * COUNT + i, lane / PIECES);
      uint32_t shift = (uint32_t)(uintptr_t)row & 15;
      const char *from = row - shift + piece * 16;
      x.low[i] = load_if(from, row && is_around(from, t.all.first, t.all.end));
      x.shifts |= shift << i * 4;
      if (row && !is_around(row + piece * 16, t.all.first, t.all.end)) x.alone |= 1u << i;
    }
    const char *row = row_at(rows, t.row, each, share * COUNT + min(lane / WARP_ROWS, COUNT - 1), lane % WARP_ROWS);
    uint32_t shift = (uint32_t)(uintptr_t)row & 15;
    const char *from = row - shift + PIECES * 16;
    x.beyond = load_if(from, row && shift && lane < WARP_ROWS * COUNT && is_around(from, t.all.first, t.all.end));
    return x;
  }

  static __device__ __forceinline__ uint4 from_lane(uint4 v, int lane) {
    return {__shfl_sync(~0u, v.x, lane), __shfl_sync(~0u, v.y, lane), __shfl_sync(~0u, v.z, lane), __shfl_sync(~0u, v.w, lane)};
  }

  static __device__ __forceinline__ void store_share(uint32_t to, const Pieces &x, const AttentionTiledParams &p, int tile, int tensor, int share, int each) {
    int lane = threadIdx.x % 32, piece = lane % PIECES, first = (threadIdx.x / 32 - 4) * WARP_ROWS + lane / PIECES + share * COUNT * STEP;
    auto place = [&](int i) {
      int row = first + i * STEP;
      return to + piece / 8 * BOX + row * 128 + (piece % 8 ^ row % 8) * 16;
    };
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      uint4 next = from_lane(x.low[i], lane + 1 & 31), beyond = from_lane(x.beyond, i * WARP_ROWS + lane / PIECES);
      store_piece(place(i), funnel(x.low[i], piece == PIECES - 1 ? beyond : next, x.shifts >> i * 4 & 15, 2));
    }
    uint32_t any = __reduce_or_sync(~0u, x.alone);
    if (!any) return;
    Tensor t = tensor_at(p.all, tensor);
    Rows rows = rows_of(p.all, t, head_at(p, tile, min(lane, p.all.pack - 1)), tensor);
#pragma unroll 1
    for (int i = 0; any >> i; i++) {
      const char *row = row_at(rows, t.row, each, share * COUNT + i, lane / PIECES);
      if (x.alone >> i & 1) copy_elements(place(i), row + piece * 16, true, 2);
    }
  }

  // Brings a tile's rows to L2, so that the loads that follow, which registers hold the place for, do not take long.
  static __device__ __forceinline__ void prefetch_tile(const AttentionTiledParams &p, const Head &h, int each) {
    for (int n = threadIdx.x - 128; n < 3 * ROWS; n += COPY_THREADS) {
      Tensor t = tensor_at(p.all, n / ROWS);
      Rows rows = rows_of(p.all, t, h, n >= ROWS);
      int which = n % ROWS / each, row = n % ROWS - which * each;
      const char *from = (const char *)__shfl_sync(~0u, (uint64_t)rows.from, which) + row * t.row * 2;
      const char *aligned = from - ((uintptr_t)from & 15);
      if (row < __shfl_sync(~0u, rows.there, which) && is_around(aligned, t.all.first, t.all.end) && is_around(from + D * 2, t.all.first, t.all.end))
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(aligned)), "r"(D * 2 + (from == aligned ? 0 : 16)) : "memory");
    }
  }

  // While a share is shifted the next one is on its way, of the next tile too.
  static __device__ __forceinline__ void produce_odd(Shared *s, const AttentionTiledParams &p) {
    static_assert(STAGES * BYTES == sizeof s->q && STAGES * BYTES == sizeof s->k, "tensors' places follow each other");
    const AttentionParams &a = p.all;
    int lane = threadIdx.x % 32, mine = min(lane, a.pack - 1), each = ROWS / a.pack;
    auto load = [&](const Head &h, int share) {
      Tensor t = tensor_at(a, share / SHARES);
      return load_share(t, rows_of(a, t, h, share >= SHARES), share % SHARES, each);
    };
    Head h = head_at(p, blockIdx.x, mine);
    Pieces next = load(h, 0);
    Ring ring;
    for (int tile = blockIdx.x; tile < a.tiles; tile += gridDim.x, ring.next()) {
      int after = tile + (int)gridDim.x;
      if (after < a.tiles && !p.nearby) prefetch_tile(p, head_at(p, after, mine), each);
      barrier_wait(&s->empty[ring.stage], ring.parity ^ 1);
#pragma unroll 1
      for (int share = 0; share < 3 * SHARES; share++) {
        Pieces x = next;
        bool last = share == 3 * SHARES - 1;
        if (last && after < a.tiles) h = head_at(p, after, mine);
        if (!last || after < a.tiles) next = load(h, last ? 0 : share + 1);
        int tensor = share / SHARES;
        store_share(shared_address(s->q) + (tensor * STAGES + ring.stage) * BYTES, x, p, tile, tensor, share % SHARES, each);
      }
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

  // row: of its head, the warp's first; first: the column of the tile where the head's first key would be.
  static __device__ __forceinline__ void softmax(const AttentionParams &p, const Head &h, Scores &sc, const ScoreUnit &u, Softmax *x, int row, int first) {
    int mine = row + threadIdx.x % 32 / 4, left = first - threadIdx.x % 4 * 2;
    Seen seen[2] = {attention_seen(p, h.q, mine), attention_seen(p, h.q, mine + 8)}, all = attention_all_seen(p, h.q, row, 16, h.end);
    int from[2] = {seen[0].from + left, seen[1].from + left}, to[2] = {seen[0].to + left, seen[1].to + left};
    float by[2], most[2] = {-INFINITY, -INFINITY};
    uint32_t looked = look_at_scores(sc, u, from, to, {all.from + first, all.to + first}, most);
    weigh_scores(sc, looked, most, x, u.unit, by);
  }

  // ---- results ----

  // 16 rows as far as they are there, aligned pieces of them, and then the elements before the first and after the last of these: eight a row.
  static __device__ __forceinline__ void store_odd(uint16_t *to, int64_t stride, const uint8_t *from, int there) {
    auto place = [&](int row, int piece) { return from + piece / 8 * BOX + row * 128 + (piece % 8 ^ row % 8) * 16; };
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
    if constexpr (ODD) store_odd(to, p.o_row, place, h.end - first);
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
        softmax(p.all, h, sc, u, &x, first, mine * (ROWS / p.all.pack) - h.key);
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
      if (SHARE_OUT) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(ATTENTION_ODD_COPY_REGISTERS(D)));
      produce_odd(s, p);
    } else if (threadIdx.x < 128) {
      if (SHARE_OUT) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(ATTENTION_ODD_REGISTERS(D)));
      compute(s, p);
    } else if (threadIdx.x == 128)
      produce(s, p);
  }
};

#endif
