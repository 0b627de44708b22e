// Attention from sm_80 on, for any alignment: a tile is 64 queries of one head, 16 a warp, which go over the keys they see a tile at a time.
// The next step's copies are under way, of the block's next tile of queries too: where sequences are short a block has many of them.
// Scores stay in the registers that the product with V takes them from.
//
// A warp leaves out what none of its queries sees, in steps of 16 keys, and queries that are not there. Of sequences of up to 32 or 16
// tokens a tile has two or four heads (p.pack), each with its share of the block's warps and of the tiles of keys and values.
#ifndef SOL_KERNELS_ATTENTION_MMA_CUH
#define SOL_KERNELS_ATTENTION_MMA_CUH

#include "attention/attention_odd.cuh"
#include "attention/attention_parts.cuh"
#include "mma.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800
template <int KIND, int D> struct AttentionMma {
  enum {
    KEYS = ATTENTION_KEYS(D),
    ROWS = ATTENTION_ROWS,
    THREADS = ATTENTION_THREADS,
    TILES = KEYS / 8,
    O_TILES = D / 8,
    STEPS = D / 16,
    ROW_BYTES = D * 2,
    PIECES = D / 8
  };
  struct Shared {
    uint8_t q[ROWS * ROW_BYTES], k[2][KEYS * ROW_BYTES], v[2][KEYS * ROW_BYTES];
  };
  typedef float Scores[TILES][4];
  typedef float Sums[O_TILES][4];

  // ---- tiles of queries ----

  // A warp's share of a tile: of which of its heads, from which query on; where its head's keys are in their tile.
  struct Share {
    int head, query, key;
  };
  static __device__ __forceinline__ Share share_of(const AttentionParams &p) {
    int warp = threadIdx.x / 32, warps = THREADS / 32 / p.pack;
    return {warp / warps, warp % warps * 16, warp / warps * (KEYS / p.pack)};
  }

  struct Item {
    int b, head, first; // first: query of the warp
    Sequence q;
    int from, to; // keys that the tile's queries see; from: where a tile begins
  };
  // Where a block is: its round of the grid, the tile, and the next key.
  struct Place {
    unsigned round;
    Item item;
    int key;
    bool there;
  };

  // Queries first, the last of them at the start, since with `causal` they see most keys; then heads, sequences. Whether there are any queries.
  static __device__ __forceinline__ bool item_at(const AttentionParams &p, const Share &mine, uint64_t index, Item *x) {
    uint64_t rows = (p.queries + ROWS - 1) / ROWS, rest, head, row, b;
    split(index * p.pack + mine.head, rows, &rest, &row);
    split(rest, p.heads, &b, &head);
    *x = {};
    if (b >= p.batch) return false;
    int first = ((int)rows - 1 - (int)row) * ROWS;
    x->b = (int)b, x->head = (int)head, x->first = first + mine.query;
    x->q = attention_sequence(p, x->b);
    if (first >= x->q.queries) return false;
    x->from = attention_seen(p, x->q, first).from / KEYS * KEYS;
    x->to = attention_seen(p, x->q, min(first + ROWS, x->q.queries) - 1).to;
    return true;
  }

  // Every other round of the grid goes backwards, so that no block has the same tile of every sequence. Where a tile has several heads
  // some may have no queries.
  static __device__ __forceinline__ void find_item(const AttentionParams &p, const Share &mine, Place *x) {
    uint64_t grid = (uint64_t)gridDim.x * gridDim.y, block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
    for (; x->round * grid < (uint64_t)p.tiles; x->round++) {
      uint64_t index = x->round * grid + (x->round % 2 ? grid - 1 - block : block);
      bool any = item_at(p, mine, index, &x->item);
      x->there = p.pack > 1 ? index < (uint64_t)p.tiles : any;
      x->key = x->item.from;
      if (x->there) return;
    }
    x->there = false;
  }

  static __device__ __forceinline__ void next_step(const AttentionParams &p, const Share &mine, Place *x) {
    x->key += KEYS;
    if (x->key < x->item.to) return;
    x->round++;
    find_item(p, mine, x);
  }

  // ---- copies ----

  // What threads of a group copy: `count` rows to row `first` of a tile, zeros from `there` on.
  struct Rows {
    int first, count, there, thread, threads;
  };

  // Where rows begin at any element. Not inlined: it is long, and is called in several places.
  static __device__ __noinline__ void load_shifted(uint32_t to, const char *from, int64_t stride, Rows x, Extent e) {
    enum { AT_ONCE = D == 128 ? 4 : 2 }; // as many as there are registers for
    int piece = x.thread % PIECES, step = x.threads / PIECES;
#pragma unroll 1
    for (int top = x.thread / PIECES; top < x.count; top += AT_ONCE * step)
      load_pieces<AT_ONCE>(
          e, [&](int i) { return top + i * step < x.there ? from + (top + i * step) * stride + piece * 16 : NULL; },
          [&](int i) { return to + tile_place<ROW_BYTES>(x.first + top + i * step, piece); });
  }

  static __device__ __forceinline__ void load(uint8_t *tile, const uint16_t *from, int64_t stride, const Rows &x, bool aligned, const Extent &e = {}) {
    uint32_t to = tile_address(tile);
    if (!aligned) return load_shifted(to, (const char *)from, stride * 2, x, e);
    int piece = x.thread % PIECES;
#pragma unroll 4
    for (int row = x.thread / PIECES; row < x.count; row += x.threads / PIECES)
      copy_async(to + tile_place<ROW_BYTES>(x.first + row, piece), from + (row < x.there ? row * stride + piece * 8 : 0), row < x.there);
  }

  // By all warps of a head.
  static __device__ __forceinline__ void load_keys(Shared *s, const AttentionParams &p, const Share &mine, const Place &x, int turn) {
    const Item &t = x.item;
    int kv = t.head / p.group, there = min(t.to - x.key, (int)KEYS), threads = THREADS / p.pack;
    const uint16_t *k = (const uint16_t *)p.k + t.b * p.k_batch + (t.q.k_first + x.key) * p.k_row + kv * D;
    const uint16_t *v = (const uint16_t *)p.v + t.b * p.v_batch + (t.q.k_first + x.key) * p.v_row + kv * D;
    Rows rows = {mine.key, (there + 15) / 16 * 16, there, (int)threadIdx.x & (threads - 1), threads};
    load(s->k[turn], k, p.k_row, rows, p.aligned, extent_of_keys(p, p.k, p.k_batch, p.k_row, D));
    load(s->v[turn], v, p.v_row, rows, p.aligned, extent_of_keys(p, p.v, p.v_batch, p.v_row, D));
    copy_commit();
  }

  // By each warp those that it will multiply.
  static __device__ __forceinline__ void load_queries(Shared *s, const AttentionParams &p, const Item &t) {
    const uint16_t *q = (const uint16_t *)p.q + t.b * p.q_batch + (t.q.q_first + t.first) * p.q_row + t.head * D;
    Rows rows = {(int)threadIdx.x / 32 * 16, 16, t.q.queries - t.first, (int)threadIdx.x % 32, 32};
    if (rows.there > 0) load(s->q, q, p.q_row, rows, p.aligned, extent_of_queries(p, D));
    copy_commit();
  }

  // ---- products: of the first `tiles` of eight keys each, an even number ----

  static __device__ __forceinline__ void scores(Scores &s, uint32_t q, uint32_t k, int tiles) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < TILES * 4; i++) s[i / 4][i % 4] = 0;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
      uint32_t a[4], b[4];
      load_matrices(a, q + tile_place<ROW_BYTES>(threadIdx.x / 32 * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
      for (int i = 0; i < TILES; i += 2) {
        if (i >= tiles) continue;
        load_matrices(b, k + tile_place<ROW_BYTES>(i * 8 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
        multiply_16x8(s[i], a, b[0], b[1], KIND);
        multiply_16x8(s[i + 1], a, b[2], b[3], KIND);
      }
    }
  }

  static __device__ __forceinline__ void add_values(Sums &o, const Scores &s, uint32_t v, int tiles) {
    int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
      if (step * 2 >= tiles) continue;
      uint32_t a[4], b[4];
      as_left_operand(a, s[step * 2], s[step * 2 + 1], KIND);
#pragma unroll
      for (int i = 0; i < O_TILES; i += 2) {
        load_matrices_turned(b, v + tile_place<ROW_BYTES>(step * 16 + lane % 16, i + lane / 16));
        multiply_16x8(o[i], a, b[0], b[1], KIND);
        multiply_16x8(o[i + 1], a, b[2], b[3], KIND);
      }
    }
  }

  // As softmax_tile, of the first tiles.
  static __device__ __forceinline__ void softmax(Scores &s, Softmax *x, float unit, float (&by)[2], int tiles) {
#pragma unroll
    for (int row = 0; row < 2; row++) {
      float most = x->most[row], sum = 0;
#pragma unroll
      for (int i = 0; i < TILES; i += 2)
        if (i < tiles) most = fmaxf(fmaxf(most, fmaxf(s[i][row * 2], s[i][row * 2 + 1])), fmaxf(s[i + 1][row * 2], s[i + 1][row * 2 + 1]));
      most = quad_max(most);
      float base = most == -INFINITY ? 0 : most * unit; // all left out: 2^-infinity is 0
      by[row] = exp_two(x->most[row] * unit - base);
#pragma unroll
      for (int i = 0; i < TILES; i += 2)
        if (i < tiles)
#pragma unroll
          for (int j = 0; j < 4; j++) {
            float *one = &s[i + j / 2][row * 2 + j % 2];
            sum += *one = exp_two(*one * unit - base);
          }
      x->sum[row] = x->sum[row] * by[row] + sum, x->most[row] = most;
    }
  }

  // A warp's queries: what each of the thread's two sees, and all of them.
  struct Sight {
    Seen seen[2], all, every; // all: by any of them; every: by each
    ScoreUnit unit;
  };

  static __device__ __forceinline__ Sight sight_of(const AttentionParams &p, const Item &t) {
    int row = t.first + threadIdx.x % 32 / 4;
    Seen top = attention_seen(p, t.q, t.first), bottom = attention_seen(p, t.q, min(t.first + 16, t.q.queries) - 1);
    return {{attention_seen(p, t.q, row), attention_seen(p, t.q, row + 8)}, {top.from, bottom.to}, {bottom.from, top.to},
            score_unit(p.scale, p.soft_cap)};
  }

  // How many tiles of eight keys from `key` on a warp multiplies.
  static __device__ __forceinline__ int tiles_of(const Sight &w, int key) {
    return key + KEYS <= w.all.from ? 0 : max(min((w.all.to - key + 15) / 16 * 2, (int)TILES), 0);
  }

  static __device__ __forceinline__ void attend(const Sight &w, Scores &sc, Sums &o, Softmax *x, uint32_t v, int key, int tiles) {
    int first = key + threadIdx.x % 4 * 2;
    float by[2];
    if (w.unit.cap != 0) cap_scores(sc, w.unit.before, w.unit.cap);
    if (key + tiles * 8 > w.every.to || key < w.every.from)
#pragma unroll
      for (int i = 0; i < TILES * 4; i++) {
        int column = first + i / 4 * 8 + i % 2;
        Seen seen = w.seen[i % 4 / 2];
        if (i / 8 * 2 < tiles && (column < seen.from || column >= seen.to)) sc[i / 4][i % 4] = -INFINITY;
      }
    softmax(sc, x, w.unit.unit, by, tiles);
#pragma unroll
    for (int i = 0; i < O_TILES * 4; i++) o[i / 4][i % 4] *= by[i % 4 / 2];
    add_values(o, sc, v, tiles);
  }

  // ---- results ----

  // Lane c of four has word c of each of four tiles, and gets all of tile c.
  static __device__ __forceinline__ void turn_quad(uint32_t (&w)[4]) {
#pragma unroll
    for (int o = 1; o < 4; o *= 2) {
      bool upper = threadIdx.x & o;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        int low = o == 1 ? i * 2 : i;
        uint32_t other = __shfl_xor_sync(~0u, upper ? w[low] : w[low + o], o);
        if (upper) w[low] = other;
        else w[low + o] = other;
      }
    }
  }

  static __device__ __forceinline__ void store(const AttentionParams &p, const Item &t, const Sums &o, const Softmax &x, float unit) {
    int lane = threadIdx.x % 32, row = t.first + lane / 4;
#pragma unroll
    for (int half = 0; half < 2; half++, row += 8) {
      float sum = quad_sum(x.sum[half]), by = sum == 0 ? 0 : 1 / sum;
      uint16_t *to = (uint16_t *)p.o + t.b * p.o_batch + (t.q.q_first + row) * p.o_row + t.head * D + lane % 4 * 8;
#pragma unroll
      for (int i = 0; i < O_TILES; i += 4) {
        Vec v;
#pragma unroll
        for (int j = 0; j < 4; j++) v.u[j] = narrow2(o[i + j][half * 2] * by, o[i + j][half * 2 + 1] * by, KIND);
        turn_quad(v.u);
        if (row >= t.q.queries) continue;
        if (p.aligned) *(uint4 *)(to + i * 8) = v.v;
        else
#pragma unroll
          for (int j = 0; j < 8; j++) to[i * 8 + j] = v.h[j];
      }
      if (p.lse && lane % 4 == 0 && row < t.q.queries)
        p.lse[t.b * p.lse_batch + t.head * p.lse_head + t.q.q_first + row] = log_sum(x.most[half], unit, sum);
    }
  }

  // A tile that sees no keys has one step too.
  static __device__ __forceinline__ void run(const AttentionParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    Share mine = share_of(p);
    uint32_t above = mine.key * ROW_BYTES; // the head's place in a tile of keys
    Place ahead = {};
    find_item(p, mine, &ahead);
    if (ahead.there) load_queries(s, p, ahead.item), load_keys(s, p, mine, ahead, 0);
    for (int turn = 0; ahead.there;) {
      Item now = ahead.item;
      Sight w = sight_of(p, now);
      bool any = now.first < now.q.queries;
      Sums o = {};
      Softmax x = softmax_start();
      for (int key = now.from, more = 1; more; turn ^= 1) {
        int tiles = any ? tiles_of(w, key) : 0;
        Scores sc;
        copy_wait<0>();
        __syncthreads(); // the step's tiles are there, and those before have been read
        next_step(p, mine, &ahead);
        if (ahead.there) load_keys(s, p, mine, ahead, turn ^ 1);
        if (tiles) scores(sc, tile_address(s->q), tile_address(s->k[turn]) + above, tiles);
        more = key + KEYS < now.to;
        __syncwarp();
        if (!more && ahead.there) load_queries(s, p, ahead.item); // to where those multiplied last were
        if (tiles) attend(w, sc, o, &x, tile_address(s->v[turn]) + above, key, tiles);
        key += KEYS;
      }
      if (any) store(p, now, o, x, w.unit.unit);
    }
  }
};
#endif

#endif
