// The rungs of the GEMM ladder: src/ladder/ladder_gemm.c describes them. M and N are multiples of 128, N too of 256, K of 64.
#include "gemm/rungs.h"

#include "gemm/gemm_any.cuh"

INLINE float one(uint16_t x) {
  return __uint_as_float((uint32_t)x << 16);
}

INLINE void sum_alone(const GemmRung &p, int row, int column) {
  float sum = 0;
  for (int k = 0; k < p.k; k++) sum += one(p.a[(int64_t)row * p.k + k]) * one(p.b[(int64_t)k * p.n + column]);
  p.c[(int64_t)row * p.n + column] = narrow_one(sum, KIND_BF16);
}

// Neighbouring threads have neighbouring rows: each loads another line of A.
KERNEL gemm_naive(const __grid_constant__ GemmRung p) {
  int64_t i = (int64_t)blockIdx.x * RUNG_THREADS + threadIdx.x;
  sum_alone(p, (int)(i % p.m), (int)(i / p.m));
}

// Neighbouring columns: a warp loads 64 contiguous bytes of B and one element of A.
KERNEL gemm_coalesced(const __grid_constant__ GemmRung p) {
  int64_t i = (int64_t)blockIdx.x * RUNG_THREADS + threadIdx.x;
  sum_alone(p, (int)(i / p.n), (int)(i % p.n));
}

// 32 by 32 elements of C a block, one a thread: what it needs of A and B is in shared memory, 32 k at a time.
KERNEL __launch_bounds__(1024) gemm_tile(const __grid_constant__ GemmRung p) {
  __shared__ float a[RUNG_SMALL][RUNG_SMALL], b[RUNG_SMALL][RUNG_SMALL];
  int x = threadIdx.x % RUNG_SMALL, y = threadIdx.x / RUNG_SMALL, row = blockIdx.y * RUNG_SMALL + y, column = blockIdx.x * RUNG_SMALL + x;
  float sum = 0;
  for (int k0 = 0; k0 < p.k; k0 += RUNG_SMALL) {
    a[y][x] = one(p.a[(int64_t)row * p.k + k0 + x]), b[y][x] = one(p.b[(int64_t)(k0 + y) * p.n + column]);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < RUNG_SMALL; k++) sum += a[y][k] * b[k][x];
    __syncthreads();
  }
  p.c[(int64_t)row * p.n + column] = narrow_one(sum, KIND_BF16);
}

// ---- 128 by 128 elements a block, 8 by 8 a thread ----

enum { DEEP = 16, EACH = 8 };
typedef float RungTile[DEEP][RUNG_TILE]; // k by k

INLINE void multiply_8x8(float (&sum)[EACH][EACH], const RungTile &a, const RungTile &b) {
  int x = threadIdx.x % 16 * EACH, y = threadIdx.x / 16 * EACH;
#pragma unroll
  for (int k = 0; k < DEEP; k++) {
    float of_a[EACH], of_b[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) of_a[i] = a[k][y + i], of_b[i] = b[k][x + i];
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
      for (int j = 0; j < EACH; j++) sum[i][j] += of_a[i] * of_b[j];
  }
}

INLINE void store_8x8(const GemmRung &p, const float (&sum)[EACH][EACH]) {
  int column = blockIdx.x * RUNG_TILE + threadIdx.x % 16 * EACH, row = blockIdx.y * RUNG_TILE + threadIdx.x / 16 * EACH;
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    uint32_t words[4];
#pragma unroll
    for (int j = 0; j < 4; j++) words[j] = narrow2(sum[i][j * 2], sum[i][j * 2 + 1], KIND_BF16);
    *(uint4 *)(p.c + (int64_t)(row + i) * p.n + column) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

KERNEL __launch_bounds__(RUNG_THREADS) gemm_registers(const __grid_constant__ GemmRung p) {
  __shared__ RungTile a, b;
  float sum[EACH][EACH] = {};
  const uint16_t *from_a = p.a + (int64_t)blockIdx.y * RUNG_TILE * p.k, *from_b = p.b + blockIdx.x * RUNG_TILE;
  for (int k0 = 0; k0 < p.k; k0 += DEEP) {
#pragma unroll
    for (int i = 0; i < RUNG_TILE * DEEP / RUNG_THREADS; i++) {
      int e = i * RUNG_THREADS + threadIdx.x;
      a[e % DEEP][e / DEEP] = one(from_a[(int64_t)(e / DEEP) * p.k + k0 + e % DEEP]);
      b[e / RUNG_TILE][e % RUNG_TILE] = one(from_b[(int64_t)(k0 + e / RUNG_TILE) * p.n + e % RUNG_TILE]);
    }
    __syncthreads();
    multiply_8x8(sum, a, b);
    __syncthreads();
  }
  store_8x8(p, sum);
}

// A thread loads 16 bytes of A and of B at once, the next ones while it multiplies.
KERNEL __launch_bounds__(RUNG_THREADS) gemm_vectorised(const __grid_constant__ GemmRung p) {
  __shared__ __align__(16) RungTile a, b;
  float sum[EACH][EACH] = {};
  int row = threadIdx.x / 2, of_row = threadIdx.x % 2 * 8, line = threadIdx.x / 16, of_line = threadIdx.x % 16 * 8;
  const uint16_t *from_a = p.a + ((int64_t)blockIdx.y * RUNG_TILE + row) * p.k + of_row;
  const uint16_t *from_b = p.b + (int64_t)line * p.n + blockIdx.x * RUNG_TILE + of_line;
  Vec x = {*(const uint4 *)from_a}, y = {*(const uint4 *)from_b};
  for (int k0 = 0; k0 < p.k; k0 += DEEP) {
#pragma unroll
    for (int i = 0; i < 8; i++) a[of_row + i][row] = one(x.h[i]), b[line][of_line + i] = one(y.h[i]);
    __syncthreads();
    if (k0 + DEEP < p.k) x.v = *(const uint4 *)(from_a + k0 + DEEP), y.v = *(const uint4 *)(from_b + (int64_t)(k0 + DEEP) * p.n);
    multiply_8x8(sum, a, b);
    __syncthreads();
  }
  store_8x8(p, sum);
}

#if __CUDA_ARCH__ >= 800
// ---- cp.async: bf16 stays bf16 in shared memory ----

enum { ASYNC_DEEP = 32, A_PITCH = ASYNC_DEEP + 8, B_PITCH = RUNG_TILE + 8 };
struct AsyncTiles { // two of each: one is copied while the other is multiplied
  uint16_t a[2][RUNG_TILE][A_PITCH], b[2][ASYNC_DEEP][B_PITCH];
};

INLINE void async_copy(void *to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}

INLINE void async_tiles(AsyncTiles *s, const GemmRung &p, int at, int k0) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int e = i * RUNG_THREADS + threadIdx.x, row = e / 4, of_row = e % 4 * 8, line = e / 16, of_line = e % 16 * 8;
    async_copy(&s->a[at][row][of_row], p.a + ((int64_t)blockIdx.y * RUNG_TILE + row) * p.k + k0 + of_row);
    async_copy(&s->b[at][line][of_line], p.b + (int64_t)(k0 + line) * p.n + blockIdx.x * RUNG_TILE + of_line);
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// The next tiles are on their way, those before have arrived for all threads.
INLINE void async_step(AsyncTiles *s, const GemmRung &p, int step) {
  if ((step + 1) * ASYNC_DEEP < p.k) {
    async_tiles(s, p, (step + 1) % 2, (step + 1) * ASYNC_DEEP);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  } else
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
}

KERNEL __launch_bounds__(RUNG_THREADS) gemm_async(const __grid_constant__ GemmRung p) {
  __shared__ __align__(16) AsyncTiles s;
  float sum[EACH][EACH] = {};
  int x = threadIdx.x % 16 * EACH, y = threadIdx.x / 16 * EACH;
  async_tiles(&s, p, 0, 0);
  for (int step = 0; step * ASYNC_DEEP < p.k; step++) {
    async_step(&s, p, step);
#pragma unroll 4
    for (int k = 0; k < ASYNC_DEEP; k++) {
      Vec b = {*(const uint4 *)&s.b[step % 2][k][x]};
#pragma unroll
      for (int i = 0; i < EACH; i++) {
        float of_a = one(s.a[step % 2][y + i][k]);
#pragma unroll
        for (int j = 0; j < EACH; j++) sum[i][j] += of_a * one(b.h[j]);
      }
    }
    __syncthreads();
  }
  store_8x8(p, sum);
}

// ---- mma.sync: a warp has 64 by 32 elements, 4 by 4 products of 16 by 8 ----

typedef float WarpSums[4][4][4];

INLINE void matrix_load_turned(uint32_t (&r)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}

INLINE void store_warp(const GemmRung &p, const WarpSums &sum, int row, int column) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  row += warp / 4 * 64 + lane / 4, column += warp % 4 * 32 + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
      for (int h = 0; h < 2; h++)
        *(uint32_t *)(p.c + (int64_t)(row + i * 16 + h * 8) * p.n + column + j * 8) =
            narrow2(sum[i][j][h * 2], sum[i][j][h * 2 + 1], KIND_BF16);
}

// 16 k: `a` and `b` give the address of element (row, k) of A's tile and (k, column) of B's.
template <class A, class B> INLINE void multiply_warp(WarpSums &sum, A a, B b) {
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint32_t of_b[2][4];
#pragma unroll
  for (int j = 0; j < 2; j++) matrix_load_turned(of_b[j], b(lane % 16, warp % 4 * 32 + j * 16 + lane / 16 * 8));
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint32_t of_a[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(of_a[0]), "=r"(of_a[1]), "=r"(of_a[2]), "=r"(of_a[3])
                 : "r"(a(warp / 4 * 64 + i * 16 + lane % 16, lane / 16 * 8)));
#pragma unroll
    for (int j = 0; j < 4; j++) mma_16x8(sum[i][j], of_a, of_b[j / 2][j % 2 * 2], of_b[j / 2][j % 2 * 2 + 1], KIND_BF16);
  }
}

KERNEL __launch_bounds__(RUNG_THREADS) gemm_mma(const __grid_constant__ GemmRung p) {
  __shared__ __align__(16) AsyncTiles s;
  WarpSums sum = {};
  async_tiles(&s, p, 0, 0);
  for (int step = 0; step * ASYNC_DEEP < p.k; step++) {
    async_step(&s, p, step);
    int at = step % 2;
#pragma unroll
    for (int k = 0; k < ASYNC_DEEP; k += 16)
      multiply_warp(
          sum, [&](int row, int i) { return (uint32_t)__cvta_generic_to_shared(&s.a[at][row][k + i]); },
          [&](int i, int column) { return (uint32_t)__cvta_generic_to_shared(&s.b[at][k + i][column]); });
    __syncthreads();
  }
  store_warp(p, sum, blockIdx.y * RUNG_TILE, blockIdx.x * RUNG_TILE);
}
#endif

#if __CUDA_ARCH_FEAT_SM90_ALL
// ---- tensor copies: 64 k of A and B in a stage ----
#include "gemm/gemm_wgmma.cuh"

struct RungStage { // A: 128 rows of 128 bytes; B: two boxes of 64 columns, 64 k of 128 bytes each
  uint8_t a[RUNG_TILE * 128], b[2][64 * 128];
};

INLINE RungStage *rung_stages(void) {
  extern __shared__ __align__(1024) uint8_t memory[];
  return (RungStage *)memory;
}

INLINE void copy_stage(RungStage *s, uint64_t *full, const GemmTiledParams &p, int k) {
  barrier_expect(full, RUNG_STAGE_BYTES);
  for (int i = 0; i < 2; i++) {
    tensor_load(s->a + i * 64 * 128, &p.a, full, k, blockIdx.y * RUNG_TILE + i * 64, 0);
    tensor_load(s->b[i], &p.b, full, blockIdx.x * RUNG_TILE + i * 64, k, 0);
  }
}

INLINE void start_barriers(uint64_t *full, int count) {
  for (int i = 0; i < count && threadIdx.x == 0; i++) barrier_init(&full[i], 1);
  if (threadIdx.x == 0) barrier_init_done();
  __syncthreads();
}

// A stage's 64 k by mma.sync; rows of 128 bytes are swizzled.
INLINE void multiply_stage(WarpSums &sum, const RungStage *s) {
  uint32_t a = shared_address(s->a), b = shared_address(s->b);
#pragma unroll
  for (int k = 0; k < 64; k += 16)
    multiply_warp(
        sum, [&](int row, int i) { return a + row * 128 + ((k + i) / 8 ^ row % 8) * 16; },
        [&](int i, int column) { return b + column / 64 * 8192 + (k + i) * 128 + (column % 64 / 8 ^ (k + i) % 8) * 16; });
}

// `stages` of the ring are filled at the start; one is filled again when all threads have read it.
template <int STAGES> INLINE void by_tensor_copies(const GemmTiledParams &p) {
  RungStage *s = rung_stages();
  uint64_t *full = (uint64_t *)(s + STAGES);
  GemmRung to = {(uint16_t *)p.end.c, nullptr, nullptr, p.m, p.n, p.k};
  WarpSums sum = {};
  start_barriers(full, STAGES);
  for (int i = 0; i < STAGES && threadIdx.x == 0 && i * 64 < p.k; i++) copy_stage(&s[i], &full[i], p, i * 64);
  for (int step = 0; step * 64 < p.k; step++) {
    barrier_wait(&full[step % STAGES], step / STAGES % 2);
    multiply_stage(sum, &s[step % STAGES]);
    __syncthreads();
    if (threadIdx.x == 0 && (step + STAGES) * 64 < p.k) copy_stage(&s[step % STAGES], &full[step % STAGES], p, (step + STAGES) * 64);
  }
  store_warp(to, sum, blockIdx.y * RUNG_TILE, blockIdx.x * RUNG_TILE);
}

KERNEL __launch_bounds__(RUNG_THREADS) gemm_tensor_copies(const __grid_constant__ GemmTiledParams p) {
  by_tensor_copies<1>(p);
}

KERNEL __launch_bounds__(RUNG_THREADS) gemm_stages(const __grid_constant__ GemmTiledParams p) {
  by_tensor_copies<RUNG_STAGES>(p);
}

// ---- wgmma: two warpgroups of 64 by 128 elements ----

INLINE void store_warpgroup(const GemmTiledParams &p, const float (&d)[64], int row, int column) {
  uint16_t *to = (uint16_t *)p.end.c + (int64_t)(row + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4) * p.n + column + threadIdx.x % 4 * 2;
#pragma unroll
  for (int i = 0; i < 64; i += 2) *(uint32_t *)(to + i / 2 % 2 * 8 * p.n + i / 4 * 8) = narrow2(d[i], d[i + 1], KIND_BF16);
}

KERNEL __launch_bounds__(RUNG_THREADS) gemm_warpgroups(const __grid_constant__ GemmTiledParams p) {
  RungStage *s = rung_stages();
  uint64_t *full = (uint64_t *)(s + RUNG_STAGES);
  int group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
  float d[64];
  start_barriers(full, RUNG_STAGES);
  for (int i = 0; i < RUNG_STAGES && threadIdx.x == 0 && i * 64 < p.k; i++) copy_stage(&s[i], &full[i], p, i * 64);
  for (int step = 0; step * 64 < p.k; step++) {
    RungStage *at = &s[step % RUNG_STAGES];
    uint64_t a = matrix_descriptor(shared_address(at->a) + group * 64 * 128, 0), b = matrix_descriptor(shared_address(at->b), 64 * 128);
    barrier_wait(&full[step % RUNG_STAGES], step / RUNG_STAGES % 2);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 4; i++) wgmma<64, KIND_BF16, 0, 1>(d, a + i * 2, b + i * 128, step || i);
    wgmma_commit();
    wgmma_wait<0>();
    __syncthreads();
    if (threadIdx.x == 0 && (step + RUNG_STAGES) * 64 < p.k) copy_stage(at, &full[step % RUNG_STAGES], p, (step + RUNG_STAGES) * 64);
  }
  store_warpgroup(p, d, blockIdx.y * RUNG_TILE + group * 64, blockIdx.x * RUNG_TILE);
}

// ---- the library's kernel; a grid of as many clusters as tiles, or of as many as there are SMs for ----

KERNEL __launch_bounds__(GEMM_THREADS(128, 1), 1) gemm_specialised(const __grid_constant__ GemmTiledParams p) {
  GemmWgmma<KIND_BF16, 0, 1, 128, 256, 4>::run(p);
}

KERNEL __launch_bounds__(GEMM_THREADS(128, 1), 1) gemm_cluster(const __grid_constant__ GemmTiledParams p) {
  GemmWgmma<KIND_BF16, 0, 1, 128, 256, 4>::run(p);
}
#endif
