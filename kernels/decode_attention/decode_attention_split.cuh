// Decode attention of MLA: one row of the cache is K, and its first 512 elements are V. Up to 16 heads are the 16 rows of mma.sync. A block
// goes over its items' tokens a tile at a time, copies of the next tiles, of the next item too, under way.
//
// Of a tile each warp has the scores of a fourth of the tokens, and, once they are in shared memory, a fourth of the columns of V; each
// does the whole softmax. A token of which nothing is to be read (past the end, a bad page) has row -1. Where many heads share one row, a
// block has GROUPS times four warps, each of which has TALL times 16 heads.
#ifndef SOL_KERNELS_DECODE_ATTENTION_SPLIT_CUH
#define SOL_KERNELS_DECODE_ATTENTION_SPLIT_CUH

#include "decode_attention/decode_attention_items.cuh"
#include "mma.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

// KIND: of the products; FP8: the cache is. With an fp8 cache the products are of fp16, which holds every value of it, and Q and O may be
// either (p.kind); otherwise they are KIND.
template <int KIND, int FP8, int GROUPS, int TALL> struct DecodeSplit {
  enum {
    BYTES = FP8 ? 1 : 2,
    D = DECODE_LATENT,
    V = DECODE_LATENT_V,
    KEYS = DECODE_LATENT_KEYS(BYTES),
    STAGES = DECODE_STAGES,
    THREADS = DECODE_THREADS * GROUPS,
    WARPS = DECODE_THREADS / 32, // of a group
    ROWS = DECODE_ROWS * GROUPS * TALL,
    ROW = D * BYTES,
    STAGE_BYTES = KEYS * ROW,
    Q_ROW = D * 2,
    PITCH = KEYS + 8,
    TILES = KEYS / 8,
    COLUMNS = V / WARPS, // of V, of a warp
    O_TILES = COLUMNS / 8
  };
  struct Shared {
    uint8_t stage[STAGES][STAGE_BYTES], q[ROWS * Q_ROW];
    float scores[ROWS * PITCH];
    int rows[STAGES + 1][KEYS];
    int parts[DECODE_SEQUENCES + 16]; // before sequence i; after the last one the warps' sums
  };

  static __device__ __forceinline__ int kind_of(const DecodeParams &p) {
    return FP8 ? p.kind : KIND;
  }

  typedef DecodeItem Item;
  static __device__ __forceinline__ void next(const DecodePlan &plan, const DecodeParams &p, Item *item) {
    item->key += KEYS;
    if (item->key >= item->to && item->index < plan.end) decode_next(plan, p, item);
  }

  // ---- copies ----

  // Where token `key` is, in rows of the cache's heads.
  static __device__ __forceinline__ int row_of(const DecodePlan &plan, const DecodeParams &p, const Item &item, int key) {
    return (int)decode_row(p, decode_look_up(plan, p, item, key));
  }

  static __device__ __forceinline__ void copy(Shared *s, const DecodeParams &p, int stage, const int *rows) {
    enum { PIECES = ROW / 16 };
    uint32_t to = tile_address(s->stage[stage]);
#pragma unroll 8
    for (int i = threadIdx.x; i < KEYS * PIECES; i += THREADS) {
      int key = i / PIECES, piece = i % PIECES, row = rows[key];
      const char *from = (const char *)p.k_cache + (row == -1 ? 0 : (int64_t)(uint32_t)row) * ROW + piece * 16;
      if (p.aligned) copy_async(to + tile_place<ROW>(key, piece), from, row != -1);
      else copy_elements(to + tile_place<ROW>(key, piece), from, row != -1, BYTES);
    }
  }

  // Where element d of a head of Q is in a row of its tile: fp8 elements come four at a time, two of each half of 16 k.
  static __device__ __forceinline__ int q_column(int d) {
    return FP8 ? d / 16 * 16 + d % 4 / 2 * 8 + d % 16 / 4 * 2 + d % 2 : d;
  }

  static __device__ __forceinline__ void load_queries(Shared *s, const DecodeParams &p, const Item &item) {
    for (int i = threadIdx.x; i < ROWS * D; i += THREADS) {
      int row = i / D, d = i % D, in_group = item.tile * ROWS + row, at = q_column(d);
      float x = in_group < p.group ? load_one(p.q, item.b * p.q_row + (int64_t)(item.kv * p.group + in_group) * D + d, kind_of(p)) : 0;
      *(uint16_t *)(s->q + tile_place<Q_ROW>(row, at / 8) + at % 8 * 2) = narrow_one(x, KIND);
    }
  }

  // ---- products ----

  // This warp's, among those of its group; and the first row of Q that the group has.
  static __device__ __forceinline__ int warp_of(void) {
    return threadIdx.x / 32 % WARPS;
  }
  static __device__ __forceinline__ int first_row(void) {
    return threadIdx.x / DECODE_THREADS * TALL * DECODE_ROWS;
  }

  static __device__ __forceinline__ void load_q(uint32_t (&a)[4], const Shared *s, int row, int step, int lane) {
    load_matrices(a, tile_address(s->q) + tile_place<Q_ROW>(row + lane % 16, step * 2 + lane / 16));
  }

  // Scores of this warp's tokens, in units of log 2, to shared memory.
  static __device__ __forceinline__ void score(Shared *s, const ScoreUnit &u, int stage, const int *rows) {
    // STEPS: of 16 k that one ldmatrix has. CHAINS: sums of which none waits for another, where a warp has but one tile.
    enum { MINE = TILES / WARPS, STEPS = FP8 ? 4 : 2, CHAINS = MINE == 1 ? 4 / TALL : 1 };
    int lane = threadIdx.x % 32, first = warp_of() * MINE * 8, top = first_row();
    uint32_t k = tile_address(s->stage[stage]);
    float d[TALL][CHAINS][MINE][4] = {};
#pragma unroll
    for (int i = 0; i < D / 16; i += STEPS) {
      uint32_t a[TALL][STEPS][4];
#pragma unroll
      for (int j = 0; j < STEPS * TALL; j++) load_q(a[j / STEPS][j % STEPS], s, top + j / STEPS * DECODE_ROWS, i + j % STEPS, lane);
#pragma unroll
      for (int t = 0; t < MINE; t++) {
        uint32_t b[4];
        load_matrices(b, k + tile_place<ROW>(first + t * 8 + lane % 8, i / STEPS * 4 + lane / 8));
#pragma unroll
        for (int j = 0; j < STEPS; j++) {
          uint32_t b0 = b[j * 2 % 4], b1 = b[(j * 2 + 1) % 4];
          if (FP8) halves_of_fp8(b[j], &b0, &b1);
#pragma unroll
          for (int m = 0; m < TALL; m++) multiply_16x8(d[m][(i + j) % CHAINS][t], a[m][j], b0, b1, KIND);
        }
      }
    }
#pragma unroll
    for (int m = 0; m < TALL * MINE; m++) {
      int t = m % MINE, column = first + t * 8 + lane % 4 * 2, row = top + m / MINE * DECODE_ROWS + lane / 4;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        float sum = 0;
#pragma unroll
        for (int c = 0; c < CHAINS; c++) sum += d[m / MINE][c][t][j];
        float x = (u.cap != 0 ? soft_capped(sum * u.before, u.cap) : sum) * u.unit;
        s->scores[(row + j / 2 * 8) * PITCH + column + j % 2] = rows[column + j % 2] == -1 ? -INFINITY : x;
      }
    }
  }

  typedef float Sums[TALL][O_TILES][4];
  static __device__ __forceinline__ void add_values(const Shared *s, Sums &o, float (&x)[TALL][TILES][4], int stage) {
    int lane = threadIdx.x % 32, piece = warp_of() * COLUMNS * BYTES / 16;
    uint32_t v = tile_address(s->stage[stage]);
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
      uint32_t a[TALL][4];
#pragma unroll
      for (int m = 0; m < TALL; m++) as_left_operand(a[m], x[m][step * 2], x[m][step * 2 + 1], KIND);
#pragma unroll
      for (int i = 0; i < O_TILES; i += 2) {
        if (FP8) {
          uint32_t b[2];
          load_two_turned(b, v + tile_place<ROW>(step * 16 + lane % 16, piece + i / 2));
          uint32_t low = __byte_perm(b[0], 0, 0x3120), high = __byte_perm(b[1], 0, 0x3120); // even columns, then odd ones
          uint32_t wide[2][2];
          halves_of_fp8(low, &wide[0][0], &wide[1][0]), halves_of_fp8(high, &wide[0][1], &wide[1][1]);
#pragma unroll
          for (int m = 0; m < TALL; m++) {
            multiply_16x8(o[m][i], a[m], wide[0][0], wide[0][1], KIND);
            multiply_16x8(o[m][i + 1], a[m], wide[1][0], wide[1][1], KIND);
          }
        } else {
          uint32_t b[4];
          load_matrices_turned(b, v + tile_place<ROW>(step * 16 + lane % 16, piece + i + lane / 16));
#pragma unroll
          for (int m = 0; m < TALL; m++) {
            multiply_16x8(o[m][i], a[m], b[0], b[1], KIND);
            multiply_16x8(o[m][i + 1], a[m], b[2], b[3], KIND);
          }
        }
      }
    }
  }

  static __device__ __forceinline__ void attend(const Shared *s, Sums &o, Softmax (&x)[TALL], int stage) {
    int lane = threadIdx.x % 32, top = first_row() + lane / 4;
    float p[TALL][TILES][4], by[2];
#pragma unroll
    for (int m = 0; m < TALL; m++) {
#pragma unroll
      for (int t = 0; t < TILES * 2; t++) {
        float2 two = *(const float2 *)&s->scores[(top + m * DECODE_ROWS + t % 2 * 8) * PITCH + t / 2 * 8 + lane % 4 * 2];
        p[m][t / 2][t % 2 * 2] = two.x, p[m][t / 2][t % 2 * 2 + 1] = two.y;
      }
      softmax_tile(p[m], &x[m], 1, by);
#pragma unroll
      for (int i = 0; i < O_TILES * 4; i++) o[m][i / 4][i % 4] *= by[i % 4 / 2];
    }
    add_values(s, o, p, stage);
  }

  // ---- results ----

  // The only part of its sequence is finished; of more, the combining kernel does that.
  static __device__ __forceinline__ void finish(const DecodeParams &p, const Item &item, const float (&o)[O_TILES][4], const Softmax &x, int top) {
    int lane = threadIdx.x % 32, first = warp_of() * COLUMNS;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      int in_group = item.tile * ROWS + top + lane / 4 + half * 8, head = item.kv * p.group + in_group;
      float sum = quad_sum(x.sum[half]), by = item.parts > 1 ? 1 : sum == 0 ? 0 : p.v_scale / sum;
      if (in_group >= p.group) continue;
      int64_t to = item.b * p.o_row + (int64_t)head * V, part = ((int64_t)item.b * p.heads + head) * p.parts + item.part;
#pragma unroll
      for (int i = 0; i < O_TILES; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
          int n = lane % 4 * 2 + j, column = first + (FP8 ? i / 2 * 16 + n * 2 + i % 2 : i * 8 + n);
          float value = o[i][half * 2 + j] * by;
          if (item.parts > 1) p.sums[part * V + column] = value;
          else store_one(p.o, to + column, kind_of(p), value);
        }
      if (warp_of() || lane % 4) continue;
      if (item.parts > 1) p.mosts[part] = x.most[half], p.weights[part] = sum;
      else if (p.lse) p.lse[(int64_t)item.b * p.heads + head] = log_sum(x.most[half], 1, sum);
    }
  }

  // ---- all of it ----

  // Tiles one after the other: `now` is multiplied, `ahead` is copied, STAGES - 1 further on; the tile after that has its rows
  // looked up.
  static __device__ __forceinline__ void run_items(Shared *s, const DecodePlan &plan, const DecodeParams &p) {
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    Item now, ahead, later;
    now = decode_find(plan, p, plan.begin);
    ahead = later = now;
    Sums o;
    Softmax x[TALL];
    int turn = 0; // of the tile after the copied one, among the rows
    for (int i = 0; i < STAGES; i++) { // the first rows, and copies of all but the last of them
      if (later.index < plan.end)
        for (int k = threadIdx.x; k < KEYS; k += THREADS) s->rows[i][k] = row_of(plan, p, later, later.key + k);
      next(plan, p, &later);
    }
    __syncthreads();
    for (int i = 0; i < STAGES - 1; i++) {
      if (ahead.index < plan.end) copy(s, p, i, s->rows[i]);
      copy_commit();
      next(plan, p, &ahead);
    }
    bool starts = true;
    for (int stage = 0; now.index < plan.end; stage = stage == STAGES - 1 ? 0 : stage + 1, turn = turn == STAGES ? 0 : turn + 1) {
      copy_wait<STAGES - 2>();
      __syncthreads(); // the tile is there, and what the one before had is free
      int to = stage == 0 ? STAGES - 1 : stage - 1, place = turn >= 2 ? turn - 2 : turn + STAGES - 1; // of the rows: of `ahead`
      if (ahead.index < plan.end) copy(s, p, to, s->rows[place]);
      copy_commit();
      next(plan, p, &ahead);
      if (starts) {
        load_queries(s, p, now);
#pragma unroll
        for (int m = 0; m < TALL; m++) {
          x[m] = softmax_start();
#pragma unroll
          for (int i = 0; i < O_TILES * 4; i++) o[m][i / 4][i % 4] = 0;
        }
        __syncthreads();
      }
      int row = -1, after = turn ? turn - 1 : STAGES; // the place of the rows of `later`
      if (later.index < plan.end && threadIdx.x < KEYS) row = row_of(plan, p, later, later.key + threadIdx.x);
      score(s, u, stage, s->rows[turn]);
      if (threadIdx.x < KEYS) s->rows[after][threadIdx.x] = row;
      next(plan, p, &later);
      __syncthreads(); // the scores are there
      attend(s, o, x, stage);
      Item done = now;
      next(plan, p, &now);
      starts = now.index != done.index;
      if (starts)
#pragma unroll
        for (int m = 0; m < TALL; m++) finish(p, done, o[m], x[m], first_row() + m * DECODE_ROWS);
    }
    copy_wait<0>();
  }

  static __device__ __forceinline__ void run(const DecodeParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    Shared *s = (Shared *)memory;
    static_assert(KEYS <= THREADS && sizeof(Shared) <= DECODE_LATENT_SHARED(ROWS, BYTES), "as the launcher has it");
    decode_hint<THREADS>(s->parts, p, ROW);
    wait_for_predecessor();
    for (int first = 0; first < p.batch; first += DECODE_SEQUENCES) {
      DecodePlan plan = decode_plan<THREADS>(s->parts, p, first);
      if (plan.begin < plan.end) run_items(s, plan, p);
      __syncthreads();
    }
  }
};
#endif

#endif
