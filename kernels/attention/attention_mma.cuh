// Attention from sm_80 on, for any alignment: a block has 64 queries of one head, 16 a warp, and goes over the keys they see, a
// tile at a time, the next tile's copies under way. Scores stay in the registers that the product with V takes them from.
#ifndef SOL_KERNELS_ATTENTION_MMA_CUH
#define SOL_KERNELS_ATTENTION_MMA_CUH

#include "attention/attention_parts.cuh"
#include "mma.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800
template <int KIND, int D> struct AttentionMma {
  enum { KEYS = ATTENTION_KEYS(D), ROWS = ATTENTION_ROWS, THREADS = ATTENTION_THREADS, TILES = KEYS / 8, ROW_BYTES = D * 2, PIECES = D / 8 };
  struct Shared {
    uint8_t q[ROWS * ROW_BYTES], k[2][KEYS * ROW_BYTES], v[2][KEYS * ROW_BYTES];
  };

  template <int count> static __device__ __noinline__ void load_elements(uint32_t to, const void *from, int64_t stride, int there) {
#pragma unroll 1
    for (int i = threadIdx.x; i < count * PIECES; i += THREADS) {
      int row = i / PIECES, piece = i % PIECES;
      const uint16_t *at = (const uint16_t *)from + (row < there ? row * stride + piece * 8 : 0);
      copy_elements(to + tile_place<ROW_BYTES>(row, piece), at, row < there, 2);
    }
  }

  // `count` rows, of which the first `there` exist.
  template <int count> static __device__ __forceinline__ void load(uint8_t *tile, const void *from, int64_t stride, int there, bool aligned) {
    uint32_t to = tile_address(tile);
    if (!aligned) return load_elements<count>(to, from, stride, there);
#pragma unroll 4
    for (int i = threadIdx.x; i < count * PIECES; i += THREADS) {
      int row = i / PIECES, piece = i % PIECES;
      const uint16_t *at = (const uint16_t *)from + (row < there ? row * stride + piece * 8 : 0);
      copy_async(to + tile_place<ROW_BYTES>(row, piece), at, row < there);
    }
  }

  static __device__ __forceinline__ void scores(float (&s)[TILES][4], uint32_t q, uint32_t k, int lane) {
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) s[i][j] = 0;
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
      uint32_t a[4], b[4];
      load_matrices(a, q + tile_place<ROW_BYTES>(threadIdx.x / 32 * 16 + lane % 16, step * 2 + lane / 16));
#pragma unroll
      for (int i = 0; i < TILES; i += 2) {
        load_matrices(b, k + tile_place<ROW_BYTES>(i * 8 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
        multiply_16x8(s[i], a, b[0], b[1], KIND);
        multiply_16x8(s[i + 1], a, b[2], b[3], KIND);
      }
    }
  }

  static __device__ __forceinline__ void add_values(float (&o)[D / 8][4], float (&s)[TILES][4], uint32_t v, int lane) {
#pragma unroll
    for (int step = 0; step < KEYS / 16; step++) {
      uint32_t a[4], b[4];
      as_left_operand(a, s[step * 2], s[step * 2 + 1], KIND);
#pragma unroll
      for (int i = 0; i < D / 8; i += 2) {
        load_matrices_turned(b, v + tile_place<ROW_BYTES>(step * 16 + lane % 16, i + lane / 16));
        multiply_16x8(o[i], a, b[0], b[1], KIND);
        multiply_16x8(o[i + 1], a, b[2], b[3], KIND);
      }
    }
  }

  // Caps scores and leaves out those of keys that a row does not see. first: the tile's first key, of this thread.
  static __device__ __forceinline__ void mask(float (&s)[TILES][4], const ScoreUnit &u, const Seen (&seen)[2], int first) {
    int from[2] = {seen[0].from - first, seen[1].from - first}, to[2] = {seen[0].to - first, seen[1].to - first};
    if (u.cap != 0) cap_scores(s, u.before, u.cap);
    mask_scores(s, from, to);
  }

  static __device__ __forceinline__ void store(const AttentionParams &p, const Sequence &q, const float (&o)[D / 8][4], const Softmax &x,
                                               float unit, int b, int head, int row, int lane) {
#pragma unroll
    for (int half = 0; half < 2; half++, row += 8) {
      float sum = quad_sum(x.sum[half]), by = sum == 0 ? 0 : 1 / sum;
      if (row >= q.queries) continue;
      uint16_t *to = (uint16_t *)p.o + b * p.o_batch + (q.q_first + row) * p.o_row + head * D + lane % 4 * 2;
#pragma unroll
      for (int i = 0; i < D / 8; i++) {
        uint32_t two = narrow2(o[i][half * 2] * by, o[i][half * 2 + 1] * by, KIND);
        if (p.aligned) *(uint32_t *)(to + i * 8) = two;
        else to[i * 8] = (uint16_t)two, to[i * 8 + 1] = (uint16_t)(two >> 16);
      }
      if (p.lse && lane % 4 == 0) p.lse[b * p.lse_batch + head * p.lse_head + q.q_first + row] = log_sum(x.most[half], unit, sum);
    }
  }

  static __device__ __forceinline__ void attend(Shared *s, const AttentionParams &p, const Sequence &q, int b, int head, int first) {
    int lane = threadIdx.x % 32, row = first + threadIdx.x / 32 * 16 + lane / 4, kv = head / p.group;
    const uint16_t *k = (const uint16_t *)p.k + b * p.k_batch + q.k_first * p.k_row + kv * D;
    const uint16_t *v = (const uint16_t *)p.v + b * p.v_batch + q.k_first * p.v_row + kv * D;
    Seen top = attention_seen(p, q, first), bottom = attention_seen(p, q, min(first + ROWS, q.queries) - 1);
    Seen seen[2] = {attention_seen(p, q, row), attention_seen(p, q, row + 8)};
    ScoreUnit u = score_unit(p.scale, p.soft_cap);
    Softmax x = softmax_start();
    float o[D / 8][4] = {}, sc[TILES][4], by[2];
    int from = top.from / KEYS * KEYS, to = bottom.to;
    load<ROWS>(s->q, (const uint16_t *)p.q + b * p.q_batch + (q.q_first + first) * p.q_row + head * D, p.q_row, q.queries - first, p.aligned);
    if (from < to) {
      load<KEYS>(s->k[0], k + from * p.k_row, p.k_row, to - from, p.aligned);
      load<KEYS>(s->v[0], v + from * p.v_row, p.v_row, to - from, p.aligned);
    }
    copy_commit();
    for (int key = from, turn = 0; key < to; key += KEYS, turn ^= 1) {
      copy_wait<0>();
      __syncthreads(); // the tile is there, and the one before has been read
      if (key + KEYS < to) {
        load<KEYS>(s->k[turn ^ 1], k + (key + KEYS) * p.k_row, p.k_row, to - key - KEYS, p.aligned);
        load<KEYS>(s->v[turn ^ 1], v + (key + KEYS) * p.v_row, p.v_row, to - key - KEYS, p.aligned);
        copy_commit();
      }
      scores(sc, tile_address(s->q), tile_address(s->k[turn]), lane);
      if (key + KEYS > top.to || key < bottom.from || u.cap != 0) mask(sc, u, seen, key + lane % 4 * 2);
      softmax_tile(sc, &x, u.unit, by);
#pragma unroll
      for (int i = 0; i < D / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) o[i][j] *= by[j / 2];
      add_values(o, sc, tile_address(s->v[turn]), lane);
    }
    copy_wait<0>();
    store(p, q, o, x, u.unit, b, head, row, lane);
  }

  // Blocks: queries, the last first, since with `causal` they see most keys; heads; sequences.
  static __device__ __forceinline__ void run(const AttentionParams &p) {
    extern __shared__ __align__(1024) uint8_t memory[];
    uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x, rows = (p.queries + ROWS - 1) / ROWS, rest, head, row, b;
    split(block, rows, &rest, &row);
    split(rest, p.heads, &b, &head);
    if (b >= p.batch) return;
    Sequence q = attention_sequence(p, (int)b);
    int first = ((int)rows - 1 - (int)row) * ROWS;
    if (first < q.queries) attend((Shared *)memory, p, q, (int)b, (int)head, first);
  }
};
#endif

#endif
