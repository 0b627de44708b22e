// The stencil of 2-byte elements by tensor cores: any radius up to 8, rows of any length at any address.
//
// What is added along a row is x times a band matrix, along a column a band matrix times x: for 16 rows by 16 columns of y eight
// products of the warp's mma, whose other operand is constant. A coefficient is split into two or three pieces of x's type, whose
// sum it is; products of the pieces are exact and are added as fp32. Multiply-adds of the CUDA cores, 4 radius + 1 for an
// element of 4 bytes in and out, would take longer than memory from radius 6 on.
//
// A block walks down a strip of columns, 16 rows at a time, and then goes on with another one. Rows come into shared memory by
// asynchronous copies of the buffer's own 16-byte chunks, several steps ahead, so that a row lies there as far off 16 bytes as in x: what
// a lane needs of it are words, cut out of two where they start at an odd element. Results go back through shared memory, which
// lies as y does.
//
// An mma of x along columns has to have two rows in a register, which words of two columns give for even and for odd columns: so one
// mma has the even columns of 16, another the odd ones, and a lane gets four neighbouring results.
//
// A band matrix has zeros, and zero times infinity is NaN. So results that are not finite are computed again, one by one.
#ifndef SOL_KERNELS_STENCIL_TENSOR_CUH
#define SOL_KERNELS_STENCIL_TENSOR_CUH

#include "stencil_stages.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

// Beyond the distance of two elements that a band has.
enum { TENSOR_FAR = 24, TENSOR_BANDS = 2 * TENSOR_FAR };

// The band matrices of a piece, as operands of mma. along: for even and odd columns of y, 32 columns of x; the others: rows before, at
// and after the diagonal, without the centre, which counts once.
typedef struct TensorBands {
  uint32_t along[2][4], before, down, after;
} TensorBands;
enum { TENSOR_HELD = 2 }; // pieces whose bands are in registers

// Pairs of neighbouring distances, in shared memory: lanes want different ones, and constant memory gives a warp one at a time.
INLINE void tensor_pairs(const StencilWalkParams *p, uint32_t *pairs) {
#pragma unroll 1
  for (int k = 0; k < STENCIL_PIECES; k++)
#pragma unroll 1
    for (int at = threadIdx.x; at < TENSOR_BANDS; at += blockDim.x) {
      int d = at - TENSOR_FAR;
      uint32_t low = 0, high = 0;
#pragma unroll
      for (int i = 0; i < STENCIL_DISTANCES; i++) {
        uint32_t piece = p->piece[k][i];
        low = abs(d) == i ? piece : low, high = abs(d + 1) == i ? piece : high;
      }
      pairs[k * TENSOR_BANDS + at] = low | high << 16;
    }
}

// bits: of the number of rows that belong together.
INLINE TensorBands tensor_bands(const uint32_t *pairs, int piece, int bits) {
  const int g = (threadIdx.x % 32) >> 2, t = threadIdx.x & 3;
  const uint32_t *at = pairs + piece * TENSOR_BANDS + TENSOR_FAR + 2 * t;
  TensorBands b;
#pragma unroll
  for (int e = 0; e < 2; e++)
#pragma unroll
    for (int i = 0; i < 4; i++) b.along[e][i] = at[8 * i - 8 - 2 * g - e];
  b.before = at[-8 - g], b.after = at[8 - g];
  b.down = at[-g] & ((2 * t == g || g >> bits != 2 * t >> bits ? 0 : 0xffffu) | (2 * t + 1 == g || g >> bits != 2 * t + 1 >> bits ? 0 : 0xffff0000u));
  return b;
}

// sum: 16 rows by the even and the odd columns of 16, of 32 columns. g, h: those columns with 8 rows above and below; apart: h alone, which has
// the rows. What multiplies is the same for all columns: the registers that mma wants next to each other are put there once.
INLINE void tensor_down(const TensorBands &b, bool apart, const uint32_t (&g)[2][4], const uint32_t (&h)[2][4], int kind, float (&sum)[2][2][4]) {
  const uint32_t above[4] = {b.before, 0, b.down, b.before}, below[4] = {b.after, b.down, 0, b.after}, own[4] = {b.down, 0, 0, b.down};
#pragma unroll
  for (int i = 0; i < 4 && !apart; i++) multiply_16x8(sum[i / 2][i % 2], above, g[i / 2][i % 2 * 2], g[i / 2][i % 2 * 2 + 1], kind);
#pragma unroll
  for (int i = 0; i < 4; i++) multiply_16x8(sum[i / 2][i % 2], apart ? own : below, h[i / 2][i % 2 * 2], h[i / 2][i % 2 * 2 + 1], kind);
}

// The same along rows, of 16 columns. f, after: the rows, from 8 columns before these to 8 columns after them.
INLINE void tensor_along(const TensorBands &b, const uint32_t (&f)[4], const uint32_t (&after)[4], int kind, float (&sum)[2][4]) {
#pragma unroll
  for (int e = 0; e < 2; e++) multiply_16x8(sum[e], f, b.along[e][0], b.along[e][1], kind);
#pragma unroll
  for (int e = 0; e < 2; e++) multiply_16x8(sum[e], after, b.along[e][2], b.along[e][3], kind);
}

// Two elements at byte `at` of shared memory; odd: places may be no multiples of 4, and `pick` says which half of two words.
INLINE uint32_t tensor_word(uint32_t at, uint32_t pick, bool odd) {
  uint32_t low, high;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(low) : "r"(at) : "memory");
  if (!odd) return low;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(high) : "r"(at + 4) : "memory");
  return __byte_perm(low, high, pick);
}

// Where a lane's elements are in a stage, and its results in the tile of y.
typedef struct TensorLane {
  uint32_t row, pick_row, column[2], pick[2];
  int y;
} TensorLane;

INLINE TensorLane tensor_lane(const StencilWalkParams *p, bool apart, int out) {
  const int g = (threadIdx.x % 32) >> 2, t = threadIdx.x & 3, first = (int)(threadIdx.x / 32) * 2 * TENSOR_COLUMNS;
  const uint32_t x = (uint32_t)(uintptr_t)p->x, y = (uint32_t)(uintptr_t)p->y;
  TensorLane l;
  const int row_g = apart ? g & p->row_mask : g;
  uint32_t shift = (x + (uint32_t)(row_g * p->x_stride) * 2) & 15;
  l.row = (uint32_t)(g * p->x_pitch + first * 2 + t * 4) + (shift & 12);
  l.pick_row = shift & 2 ? 0x5432 : 0x3210;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    int row = 2 * t + i;
    shift = (x + (uint32_t)((apart ? row & p->row_mask : row) * p->x_stride) * 2) & 15;
    l.column[i] = (uint32_t)(row * p->x_pitch + (first + WALK_HALO) * 2 + g * 4) + (shift & 12);
    l.pick[i] = shift & 2 ? 0x5432 : 0x3210;
  }
  l.y = g * p->y_pitch + (int)((y + (uint32_t)(row_g * p->y_stride) * (uint32_t)out) & 15) + (first + 4 * t) * out;
  return l;
}

// 16 rows by 32 columns of a stage as right operands: of each 16 columns the even ones, two registers, and the odd ones.
INLINE void tensor_columns(const StencilWalkParams *p, const TensorLane &l, uint32_t stage, bool odd, uint32_t (&g)[2][4]) {
#pragma unroll
  for (int q = 0; q < 2; q++)
#pragma unroll
    for (int k = 0; k < 2; k++) {
      uint32_t at = stage + q * 32 + k * 8 * p->x_pitch;
      uint32_t upper = tensor_word(at + l.column[0], l.pick[0], odd), lower = tensor_word(at + l.column[1], l.pick[1], odd);
      g[q][k] = __byte_perm(upper, lower, 0x5410);
      g[q][2 + k] = __byte_perm(upper, lower, 0x7632);
    }
}

// 16 rows, eight from `upper` and eight from `lower` on, by the c-th 16 columns, counted from 8 before the warp's first, as a left operand.
INLINE void tensor_rows(const TensorLane &l, uint32_t upper, uint32_t lower, int c, bool odd, uint32_t (&f)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    f[i] = tensor_word((i & 1 ? lower : upper) + l.row + c * 32 + i / 2 * 16, l.pick_row, odd);
}

// Four neighbouring results. unit: bytes that places are multiples of.
INLINE void tensor_put(const StencilWalkParams *p, char *at, int out, const float (&f)[4]) {
  if (out == 4) {
    if (p->y_unit >= 16) {
      *(float4 *)at = make_float4(f[0], f[1], f[2], f[3]);
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) ((float *)at)[i] = f[i];
    return;
  }
  uint32_t a = narrow2(f[0], f[1], p->y_kind), b = narrow2(f[2], f[3], p->y_kind);
  if (p->y_unit >= 8) {
    *(uint2 *)at = make_uint2(a, b);
  } else if (p->y_unit == 4) {
    ((uint32_t *)at)[0] = a, ((uint32_t *)at)[1] = b;
  } else {
    ((uint16_t *)at)[0] = (uint16_t)a, ((uint16_t *)at)[1] = (uint16_t)(a >> 16);
    ((uint16_t *)at)[2] = (uint16_t)b, ((uint16_t *)at)[3] = (uint16_t)(b >> 16);
  }
}

// 16 rows of y, this warp's 32 columns. upper, lower: where these rows are; g, h: columns of two stages. Returns whether some result is not finite.
INLINE bool tensor_compute(const StencilWalkParams *p, const TensorLane &l, const TensorBands (&b)[TENSOR_HELD], const uint32_t *pairs, uint32_t upper, uint32_t lower,
                           const uint32_t (&g)[2][4], const uint32_t (&h)[2][4], char *to, int out, bool odd, bool apart, int kind) {
  uint32_t f[3][4];
  float rare = 0;
  float all[2][2][4] = {};
#pragma unroll
  for (int k = 0; k < TENSOR_HELD; k++)
    if (k < p->pieces) tensor_down(b[k], apart, g, h, kind, all);
  if (p->pieces > TENSOR_HELD) tensor_down(tensor_bands(pairs, TENSOR_HELD, p->group_bits), apart, g, h, kind, all);
  tensor_rows(l, upper, lower, 0, odd, f[0]);
#pragma unroll
  for (int q = 0; q < 2; q++) {
    float(&sum)[2][4] = all[q];
    tensor_rows(l, upper, lower, q + 1, odd, f[q + 1]);
#pragma unroll
    for (int k = 0; k < TENSOR_HELD; k++)
      if (k < p->pieces) tensor_along(b[k], f[q], f[q + 1], kind, sum);
    if (p->pieces > TENSOR_HELD) tensor_along(tensor_bands(pairs, TENSOR_HELD, p->group_bits), f[q], f[q + 1], kind, sum);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (kind == KIND_FP16) sum[0][i] *= p->scale, sum[1][i] *= p->scale; // bf16 needs no scale
      rare = fmaf(sum[0][i], 0, fmaf(sum[1][i], 0, rare));                 // NaN, if one is not finite
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      float four[4] = {sum[0][2 * i], sum[1][2 * i], sum[0][2 * i + 1], sum[1][2 * i + 1]};
      tensor_put(p, to + l.y + i * 8 * p->y_pitch + q * TENSOR_COLUMNS * out, out, four);
    }
  }
  return rare != 0;
}

// One result, all accesses checked, in the order of the other kernels.
INLINE float tensor_exact(const StencilWalkParams *p, int64_t row, int64_t column, int kind) {
  int64_t i = row * p->x_stride + column;
  float sum = 0;
#pragma unroll 1
  for (int d = p->radius; d > 0; d--)
    if (row >= d) sum = fmaf(p->side[d - 1], load_one(p->x, i - d * p->x_stride, kind), sum);
  sum = fmaf(p->centre, load_one(p->x, i, kind), sum);
#pragma unroll 1
  for (int d = 1; d <= p->radius; d++) {
    if (column >= d) sum = fmaf(p->side[d - 1], load_one(p->x, i - d, kind), sum);
    if (column + d < p->n) sum = fmaf(p->side[d - 1], load_one(p->x, i + d, kind), sum);
  }
#pragma unroll 1
  for (int d = 1; d <= p->radius; d++)
    if (row + d < p->m) sum = fmaf(p->side[d - 1], load_one(p->x, i + d * p->x_stride, kind), sum);
  return sum;
}

// Where 16 rows of results lie, each row as far beyond 16 bytes as in y.
INLINE char *tensor_result(const StencilWalkParams *p, int64_t row, int64_t column, int out) {
  return (char *)p->y + (row * p->y_stride + column) * out;
}

// This thread's row of results. (Where the unit is is computed again: kept until here, it would take registers from all that comes before.)
INLINE void tensor_mend(const StencilWalkParams *p, bool apart, uint32_t unit, int stage, char *memory, int out, int kind) {
  const StencilStage t = stencil_stage(p, 2, apart, unit);
  int64_t row = apart ? t.mine : t.row + (stage - 1) * WALK_ROWS + walk_row();
  char *at = memory + ((uint32_t)(uintptr_t)tensor_result(p, row, t.column, out) & 15);
#pragma unroll 1
  for (int c = walk_first() / 16; c < t.columns; c += (int)blockDim.x / WALK_ROWS)
    if (!isfinite(load_one(at, c, p->y_kind))) store_one(at, c, p->y_kind, tensor_exact(p, row, t.column + c, kind));
}

// This thread's row, from shared memory to y: whole cells, and single elements before and after them.
INLINE void tensor_send(char *to, const char *memory, int bytes, int out) {
  const int first = walk_first(), lane = first / 16 * out;
  int beyond = (int)((uint32_t)(uintptr_t)to & 15), head = min(-beyond & 15, bytes), cells = (bytes - head) & -16, last = head + cells;
  const char *from = memory + beyond;
#pragma unroll 1
  for (int i = lane; i < head; i += (int)blockDim.x / 16 * out) move_one(to + i, from + i, out);
#pragma unroll 1
  for (int i = last + lane; i < bytes; i += (int)blockDim.x / 16 * out) move_one(to + i, from + i, out);
  to += head, from += head;
#pragma unroll 2
  for (int k = first; k < cells; k += blockDim.x) *(uint4 *)(to + k) = *(const uint4 *)(from + k);
}

INLINE void stencil_tensor(const StencilWalkParams *p, int out, bool odd, bool apart, int kind) {
  __shared__ uint32_t pairs[STENCIL_PIECES * TENSOR_BANDS];
  StencilStage now = stencil_stage(p, 2, apart, blockIdx.x), later = now;
  char *results = walk_memory + p->y_place, *mine = walk_memory + stage_place(p), *row = results + walk_row() * p->y_pitch, *y;
  tensor_pairs(p, pairs);
#pragma unroll 1
  for (int i = 0; i < TENSOR_RING - 2; i++) {
    stage_fetch(p, later, 2, mine + i * p->stage_bytes);
    if (later.stages) stencil_next(p, 2, apart, &later);
  }
  __syncthreads();
  const TensorBands b[TENSOR_HELD] = {tensor_bands(pairs, 0, p->group_bits), tensor_bands(pairs, 1, p->group_bits)};
  const TensorLane l = tensor_lane(p, apart, out);
  uint32_t g[2][4], h[2][4];
  int slot = 0; // where the stage is
#pragma unroll 1
  while (now.stages) {
    copy_wait<TENSOR_RING - 3>();
    stage_cut(now, mine + slot);
    __syncthreads();
    stage_fetch(p, later, 2, mine + stage_before(p, slot, 2, TENSOR_RING));
    if (later.stages) stencil_next(p, 2, apart, &later);
    uint32_t stage = tile_address(walk_memory) + slot;
    tensor_columns(p, l, stage, odd, h);
    if (now.stage == 0) y = tensor_result(p, apart ? now.mine : now.row + walk_row(), now.column, out);
    if (now.stage || apart) {
      uint32_t upper = apart ? stage : tile_address(walk_memory) + stage_before(p, slot, 1, TENSOR_RING) + 8 * p->x_pitch;
      uint32_t lower = apart ? stage + 8 * p->x_pitch : stage;
      bool rare = tensor_compute(p, l, b, pairs, upper, lower, g, h, results, out, odd, apart, kind);
      bool there = apart ? now.mine < p->m : walk_row() < now.rows - (now.stage - 1) * WALK_ROWS;
      if (__syncthreads_or(rare)) {
        if (there) tensor_mend(p, apart, now.unit, now.stage, row, out, kind);
        __syncthreads();
      }
      if (there) tensor_send(y, row, now.columns * out, out);
      y += p->y_step;
    }
#pragma unroll
    for (int i = 0; i < 8 && !apart; i++) g[i / 4][i % 4] = h[i / 4][i % 4];
    slot = stage_before(p, slot, TENSOR_RING - 1, TENSOR_RING);
    stencil_next(p, 2, apart, &now);
  }
}

KERNEL __launch_bounds__(STENCIL_THREADS, 2) sol_stencil_2_tensor(const __grid_constant__ StencilWalkParams p) {
  let_successor_start();
  wait_for_predecessor();
  const bool half = p.x_kind == KIND_FP16;
  const int out = p.y_kind == KIND_FP32 ? 4 : 2;
  if (half && p.row_mask) stencil_tensor(&p, out, true, true, KIND_FP16);
  else if (half && p.odd) stencil_tensor(&p, out, true, false, KIND_FP16);
  else if (half) stencil_tensor(&p, out, false, false, KIND_FP16);
  else if (p.row_mask) stencil_tensor(&p, out, true, true, KIND_BF16);
  else if (p.odd) stencil_tensor(&p, out, true, false, KIND_BF16);
  else stencil_tensor(&p, out, false, false, KIND_BF16);
}

#endif
#endif
