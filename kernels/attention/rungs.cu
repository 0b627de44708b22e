// The rungs of the attention ladder: src/ladder/ladder_attention.c describes them. Queries and keys are multiples of 128.
#include "attention/rungs.h"

#include "attention/attention_mma.cuh"

#if __CUDA_ARCH__ >= 800
typedef AttentionMma<KIND_BF16, RUNG_D> Mma;

INLINE const uint16_t *head_of(const void *tensor, int64_t row, int64_t rows_before, int head) {
  return (const uint16_t *)tensor + rows_before * row + head * RUNG_D;
}

INLINE uint8_t *rung_memory(void) {
  extern __shared__ __align__(1024) uint8_t memory[];
  return memory;
}

INLINE void load_tile(uint8_t *tile, const uint16_t *from, int64_t row) {
  Mma::load(tile, from, row, {0, 64, 64, (int)threadIdx.x, Mma::THREADS}, true);
}

// ---- scores in memory ----

// Blocks: keys, queries, heads. 64 by 64 scores, as they are.
KERNEL __launch_bounds__(ATTENTION_THREADS) attention_scores(const __grid_constant__ AttentionRung p) {
  __shared__ __align__(1024) uint8_t q[64 * Mma::ROW_BYTES], k[64 * Mma::ROW_BYTES];
  int lane = threadIdx.x % 32, head = blockIdx.z, row = blockIdx.y * 64 + threadIdx.x / 32 * 16 + lane / 4;
  Mma::Scores sc;
  load_tile(q, head_of(p.all.q, p.all.q_row, blockIdx.y * 64, head), p.all.q_row);
  load_tile(k, head_of(p.all.k, p.all.k_row, blockIdx.x * 64, head), p.all.k_row);
  copy_commit(), copy_wait<0>();
  __syncthreads();
  Mma::scores(sc, tile_address(q), tile_address(k), Mma::TILES);
  float *to = p.scores + ((int64_t)head * p.all.queries + row) * p.all.keys + blockIdx.x * 64 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < Mma::TILES; i++) {
    *(float2 *)(to + i * 8) = make_float2(sc[i][0], sc[i][1]);
    *(float2 *)(to + (int64_t)8 * p.all.keys + i * 8) = make_float2(sc[i][2], sc[i][3]);
  }
}

// A warp for each row of scores: read for the largest, for the sum, and to be written as weights.
KERNEL __launch_bounds__(ATTENTION_THREADS) attention_softmax(const __grid_constant__ AttentionRung p) {
  int64_t row = (int64_t)blockIdx.x * (ATTENTION_THREADS / 32) + threadIdx.x / 32;
  const float *from = p.scores + row * p.all.keys;
  uint16_t *to = p.weights + row * p.all.keys;
  float unit = score_unit(p.all.scale, 0).unit, most = -INFINITY, sum = 0;
  for (int i = threadIdx.x % 32; i < p.all.keys; i += 32) most = fmaxf(most, from[i] * unit);
  for (int lanes = 16; lanes; lanes /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, lanes));
  for (int i = threadIdx.x % 32; i < p.all.keys; i += 32) sum += exp_two(from[i] * unit - most);
  for (int lanes = 16; lanes; lanes /= 2) sum += __shfl_xor_sync(~0u, sum, lanes);
  for (int i = threadIdx.x % 32; i < p.all.keys; i += 32) to[i] = narrow_one(exp_two(from[i] * unit - most) / sum, KIND_BF16);
}

// Weights come from memory as they are: the left operand of 16 keys is four words of a lane.
INLINE void left_from(uint32_t (&a)[4], const uint16_t *at, int keys) {
  a[0] = *(const uint32_t *)at, a[1] = *(const uint32_t *)(at + (int64_t)8 * keys);
  a[2] = *(const uint32_t *)(at + 8), a[3] = *(const uint32_t *)(at + (int64_t)8 * keys + 8);
}

// Blocks: queries, heads.
KERNEL __launch_bounds__(ATTENTION_THREADS) attention_values(const __grid_constant__ AttentionRung p) {
  __shared__ __align__(1024) uint8_t v[64 * Mma::ROW_BYTES];
  int lane = threadIdx.x % 32, head = blockIdx.y, row = blockIdx.x * 64 + threadIdx.x / 32 * 16 + lane / 4;
  const uint16_t *weights = p.weights + ((int64_t)head * p.all.queries + row) * p.all.keys + lane % 4 * 2;
  float o[RUNG_D / 8][4] = {};
  for (int key = 0; key < p.all.keys; key += 64) {
    load_tile(v, head_of(p.all.v, p.all.v_row, key, head), p.all.v_row);
    copy_commit(), copy_wait<0>();
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 4; step++) {
      uint32_t a[4], b[4];
      left_from(a, weights + key + step * 16, p.all.keys);
#pragma unroll
      for (int i = 0; i < RUNG_D / 8; i += 2) {
        load_matrices_turned(b, tile_address(v) + tile_place<Mma::ROW_BYTES>(step * 16 + lane % 16, i + lane / 16));
        multiply_16x8(o[i], a, b[0], b[1], KIND_BF16);
        multiply_16x8(o[i + 1], a, b[2], b[3], KIND_BF16);
      }
    }
    __syncthreads();
  }
  Softmax whole = {{0, 0}, {lane % 4 ? 0.0f : 1.0f, lane % 4 ? 0.0f : 1.0f}}; // the weights' sum is 1
  Mma::store(p.all, {0, head, row - lane / 4, attention_sequence(p.all, 0), 0, 0}, o, whole, 1);
}

// ---- fused: scores stay in registers ----

KERNEL __launch_bounds__(ATTENTION_THREADS) attention_fused(const __grid_constant__ AttentionParams p) {
  Mma::Shared *s = (Mma::Shared *)rung_memory();
  int head = blockIdx.y, first = blockIdx.x * 64;
  float unit = score_unit(p.scale, 0).unit, by[2];
  Mma::Sums o = {};
  Mma::Scores sc;
  Softmax x = softmax_start();
  load_tile(s->q, head_of(p.q, p.q_row, first, head), p.q_row);
  for (int key = 0; key < p.keys; key += 64) {
    load_tile(s->k[0], head_of(p.k, p.k_row, key, head), p.k_row);
    load_tile(s->v[0], head_of(p.v, p.v_row, key, head), p.v_row);
    copy_commit(), copy_wait<0>();
    __syncthreads();
    Mma::scores(sc, tile_address(s->q), tile_address(s->k[0]), Mma::TILES);
    softmax_tile(sc, &x, unit, by);
#pragma unroll
    for (int i = 0; i < RUNG_D / 8; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) o[i][j] *= by[j / 2];
    Mma::add_values(o, sc, tile_address(s->v[0]), Mma::TILES);
    __syncthreads();
  }
  Mma::store(p, {0, head, first + (int)threadIdx.x / 32 * 16, attention_sequence(p, 0), 0, 0}, o, x, unit);
}

// The library's kernel for GPUs before Hopper: the next tiles are copied while these are multiplied.
KERNEL __launch_bounds__(ATTENTION_THREADS, ATTENTION_BLOCKS(RUNG_D)) attention_async(const __grid_constant__ AttentionParams p) {
  Mma::run(p);
}
#endif

#if __CUDA_ARCH_FEAT_SM90_ALL
#include "attention/attention_wgmma.cuh"
typedef AttentionWgmma<KIND_BF16, RUNG_D, 0> Tiles;

// ---- wgmma and tensor copies: two warpgroups of 64 queries; all threads meet after each tile ----

INLINE void copy_queries(Tiles::Shared *s, const AttentionTiledParams &p, int first, int head) {
  barrier_expect(&s->q_full[0], 2 * Tiles::Q_BYTES);
  for (int i = 0; i < 2 * Tiles::BOXES; i++)
    tensor_load_4d(s->q[i / Tiles::BOXES] + i % Tiles::BOXES * Tiles::Q_BOX, &p.q, &s->q_full[0], i % Tiles::BOXES * 64,
                   first + i / Tiles::BOXES * 64, head, 0);
}

INLINE void copy_tile(Tiles::Shared *s, const AttentionTiledParams &p, int tile, int head) {
  int stage = tile % ATTENTION_STAGES(RUNG_D), keys = ATTENTION_TILED_KEYS(RUNG_D);
  barrier_expect(&s->k_full[stage], 2 * Tiles::KV_BYTES);
  for (int i = 0; i < Tiles::BOXES; i++) {
    tensor_load_4d(s->k[stage] + i * Tiles::KV_BOX, &p.k, &s->k_full[stage], i * 64, tile * keys, head, 0);
    tensor_load_4d(s->v[stage] + i * Tiles::KV_BOX, &p.v, &s->k_full[stage], i * 64, tile * keys, head, 0);
  }
}

INLINE void multiply_tile(Tiles::Shared *s, Tiles::Sums &o, Softmax *x, float unit, int stage, int group) {
  uint64_t q = matrix_descriptor(shared_address(s->q[group]), 0), k = matrix_descriptor(shared_address(s->k[0]), 0);
  uint64_t v = matrix_descriptor(shared_address(s->v[0]), Tiles::KV_BOX);
  Tiles::Scores sc;
  uint32_t left[Tiles::TILES / 2][4];
  float by[2];
  wgmma_fence();
  Tiles::start_scores(sc, q, k, stage);
  wgmma_wait<0>();
  settle(Tiles::flat(sc));
  softmax_tile(sc, x, unit, by);
#pragma unroll
  for (int i = 0; i < Tiles::O_TILES; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) o[i][j] *= by[j / 2];
  Tiles::as_left(left, sc);
  Tiles::start_values(o, left, v, stage);
  wgmma_wait<0>();
  settle(Tiles::flat(o));
}

KERNEL __launch_bounds__(256, 1) attention_warpgroups(const __grid_constant__ AttentionTiledParams p) {
  Tiles::Shared *s = (Tiles::Shared *)rung_memory();
  int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0), tiles = p.all.keys / ATTENTION_TILED_KEYS(RUNG_D);
  Tiles::Item t = {0, (int)blockIdx.y, (int)blockIdx.x * ATTENTION_TILED_ROWS, 0, tiles, attention_sequence(p.all, 0)};
  Tiles::Sums o = {};
  Softmax x = softmax_start();
  float unit = score_unit(p.all.scale, 0).unit;
  if (threadIdx.x == 0) {
    barrier_init(&s->q_full[0], 1);
    for (int i = 0; i < ATTENTION_STAGES(RUNG_D); i++) barrier_init(&s->k_full[i], 1);
    barrier_init_done();
  }
  __syncthreads();
  if (threadIdx.x == 0) copy_queries(s, p, t.first, t.head);
  for (int i = 0; i < ATTENTION_STAGES(RUNG_D) && i < tiles && threadIdx.x == 0; i++) copy_tile(s, p, i, t.head);
  barrier_wait(&s->q_full[0], 0);
  for (int tile = 0; tile < tiles; tile++) {
    barrier_wait(&s->k_full[tile % ATTENTION_STAGES(RUNG_D)], tile / ATTENTION_STAGES(RUNG_D) % 2);
    multiply_tile(s, o, &x, unit, tile % ATTENTION_STAGES(RUNG_D), group);
    __syncthreads();
    if (threadIdx.x == 0 && tile + ATTENTION_STAGES(RUNG_D) < tiles) copy_tile(s, p, tile + ATTENTION_STAGES(RUNG_D), t.head);
  }
  Tiles::store(s, p, t, o, x, unit, group, threadIdx.x % 128);
}

// The library's kernel, but its warpgroups do not take turns.
KERNEL __launch_bounds__(ATTENTION_TILED_THREADS, 1) attention_specialised(const __grid_constant__ AttentionTiledParams p) {
  Tiles::run(p);
}
#endif
