// The stencil of fp32 rows by multiply-adds: a block walks down a strip of columns, 16 rows at a time (stencil_stages.cuh). A thread computes four
// columns of eight rows: every row that it reads is added to all sums it contributes to. Rows that are not whole vectors (any, a literal) are copied
// element by element, so that every row's first column lies at a multiple of 16 bytes, and results change lanes before they are stored.
#ifndef SOL_KERNELS_STENCIL_WALK_CUH
#define SOL_KERNELS_STENCIL_WALK_CUH

#include "stencil_stages.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

enum { WALK_EACH = 8 }; // rows of a thread

// Starts to copy an element, or sets it to zero.
INLINE void walk_copy(uint32_t to, const float *from, bool wanted) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(wanted ? 4 : 0) : "memory");
}

// Starts to copy a row of a stage, of `all` elements: those from `low` on and before `high` are x. All lanes of a warp; at, from: the lane's first.
INLINE void walk_row_fetch(uint32_t at, const float *from, int low, int high, int all) {
  enum { WARP = 32, TURNS = 4 };
  const int lane = threadIdx.x % WARP;
  int k = WARP;
  walk_copy(at, from, lane >= low && lane < high);
#pragma unroll 1
  for (; k + TURNS * WARP <= high; k += TURNS * WARP)
#pragma unroll
    for (int i = 0; i < TURNS; i++) walk_copy(at + (k + i * WARP) * 4, from + k + i * WARP, true);
#pragma unroll 1
  for (; k < all; k += WARP)
    if (k + lane < all) walk_copy(at + k * 4, from + k, k + lane < high);
}

// Starts to copy a stage, some rows a warp: what is not x is zero. to: the stage.
INLINE void walk_fetch(const StencilWalkParams *p, const StencilStage &t, char *to) {
  if (t.stages) {
    const int warps = blockDim.x / 32, lane = threadIdx.x % 32, all = p->columns + 2 * WALK_HALO;
    const int low = t.column ? 0 : WALK_HALO, high = (int)min((int64_t)all, p->n - t.column + WALK_HALO);
    int r = threadIdx.x / 32;
    int64_t row = t.row + (t.stage * WALK_ROWS - WALK_HALO) + r;
    uint32_t at = tile_address(to) + r * p->x_pitch + lane * 4;
    const float *from = (const float *)p->x + row * p->x_stride + (t.column - WALK_HALO + lane);
#pragma unroll 1
    for (; r < WALK_ROWS; r += warps, row += warps, at += warps * p->x_pitch, from += warps * p->x_stride)
      walk_row_fetch(at, from, low, (uint64_t)row < (uint64_t)p->m ? high : 0, all);
  }
  copy_commit();
}

INLINE float4 walk_load(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at) : "memory");
  return v;
}

// Whether distance d has a part in it: the radius is 5, or more, up to `most`.
INLINE bool walk_has(int most, const StencilWalkParams *p, int d) { return d <= min(most, 5) || d <= p->radius; }

// sum += centre * f and the neighbours in the row, at `at`.
INLINE void walk_across(int most, const StencilWalkParams *p, uint32_t at, float4 f, float (&sum)[4]) {
  const int sides = (most + 3) / 4;
  float g[20];
#pragma unroll
  for (int q = -sides; q <= sides; q++) {
    float4 v = q ? walk_load(at + q * 16) : f;
    float *to = g + (q + sides) * 4;
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
#pragma unroll
  for (int j = 0; j < 4; j++) sum[j] = fmaf(p->centre, g[sides * 4 + j], sum[j]);
#pragma unroll
  for (int d = 1; d <= most; d++) {
    if (!walk_has(most, p, d)) continue;
#pragma unroll
    for (int j = 0; j < 4; j++)
      sum[j] = fmaf(p->side[d - 1], g[sides * 4 + j + d], fmaf(p->side[d - 1], g[sides * 4 + j - d], sum[j]));
  }
}

// octet: where the eight rows above this thread's, its own and those below are, at its columns.
INLINE void walk_compute(int most, const StencilWalkParams *p, const uint32_t (&octet)[3], float (&sum)[WALK_EACH][4]) {
#pragma unroll
  for (int k = 0; k < WALK_EACH; k++)
#pragma unroll
    for (int j = 0; j < 4; j++) sum[k][j] = 0;
#pragma unroll
  for (int i = -most; i < WALK_EACH + most; i++) {
    const int far = i < 0 ? -i : i >= WALK_EACH ? i - WALK_EACH + 1 : 0;
    if (far && !walk_has(most, p, far)) continue;
    uint32_t at = octet[(i + 8) / 8] + (i & 7) * p->x_pitch;
    float4 f = walk_load(at);
    if (!far) walk_across(most, p, at, f, sum[i & 7]);
#pragma unroll
    for (int k = 0; k < WALK_EACH; k++) {
      const int d = i > k ? i - k : k - i;
      if (d == 0 || d > most || !walk_has(most, p, d)) continue;
      float by = p->side[(d - 1) & 7];
      sum[k][0] = fmaf(by, f.x, sum[k][0]), sum[k][1] = fmaf(by, f.y, sum[k][1]);
      sum[k][2] = fmaf(by, f.z, sum[k][2]), sum[k][3] = fmaf(by, f.w, sum[k][3]);
    }
  }
}

INLINE void walk_store(const StencilWalkParams *p, int64_t at, const float (&f)[4]) {
  if (p->y_kind == KIND_FP32) *(float4 *)((float *)p->y + at) = make_float4(f[0], f[1], f[2], f[3]);
  else *(uint2 *)((uint16_t *)p->y + at) = make_uint2(narrow2(f[0], f[1], p->y_kind), narrow2(f[2], f[3], p->y_kind));
}

// A lane's part of a row of a warp's 128 results, every 32nd of them, of which there are `columns`.
INLINE void walk_put(const StencilWalkParams *p, const float *from, int64_t at, int columns) {
  const int lane = threadIdx.x % 32;
  if (columns >= 128 && p->y_kind == KIND_FP32) {
#pragma unroll
    for (int j = 0; j < 128; j += 32) ((float *)p->y)[at + lane + j] = from[lane + j];
  } else if (columns >= 128) {
#pragma unroll
    for (int j = 0; j < 128; j += 32) ((uint16_t *)p->y)[at + lane + j] = narrow_one(from[lane + j], p->y_kind);
  } else {
#pragma unroll 1
    for (int j = lane; j < 128 && j < columns; j += 32) store_one(p->y, at + j, p->y_kind, from[j]);
  }
}

// A warp's 128 columns of eight rows, of which there are `rows` and `columns`, from element `at` of y on: two rows at a time through shared memory, so
// that neighbouring lanes store neighbouring elements.
INLINE void walk_give(const StencilWalkParams *p, float *mine, int64_t at, int rows, int columns, const float (&sum)[WALK_EACH][4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int k = 0; k < WALK_EACH; k += 2, at += 2 * p->y_stride) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 2; i++) ((float4 *)mine)[32 * i + lane] = make_float4(sum[k + i][0], sum[k + i][1], sum[k + i][2], sum[k + i][3]);
    __syncwarp();
    if (k < rows) walk_put(p, mine, at, columns);
    if (k + 1 < rows) walk_put(p, mine + 128, at + p->y_stride, columns);
  }
}

INLINE void walk_stage(const StencilWalkParams *p, const StencilStage &t, bool any, char *memory) {
  if (any) walk_fetch(p, t, memory);
  else stage_fetch(p, t, 4, memory + stage_place(p));
}

// most: the largest radius.
INLINE void stencil_walk(int most, bool any, const StencilWalkParams *p) {
  const int across = p->columns / 128, warp = threadIdx.x / 32, half = warp / across, column = (warp - half * across) * 128 + threadIdx.x % 32 * 4;
  StencilStage now = stencil_stage(p, 4, false, blockIdx.x), later = now;
  float *results = (float *)(walk_memory + p->y_place) + warp * 2 * 128;
  let_successor_start();
  wait_for_predecessor();
#pragma unroll 1
  for (int i = 0; i < WALK_RING - 2; i++) {
    walk_stage(p, later, any, walk_memory + i * p->stage_bytes);
    if (later.stages) stencil_next(p, 4, false, &later);
  }
  int slot = 0; // where the stage is
#pragma unroll 1
  while (now.stages) {
    copy_wait<WALK_RING - 3>();
    __syncthreads();
    walk_stage(p, later, any, walk_memory + stage_before(p, slot, 2, WALK_RING));
    if (later.stages) stencil_next(p, 4, false, &later);
    int64_t row = now.row + (now.stage - 1) * WALK_ROWS + half * WALK_EACH;
    const int before = any ? column - threadIdx.x % 32 * 4 : column; // any: all lanes of a warp together
    if (now.stage && before < now.columns && row < now.row + now.rows) {
      uint32_t first = tile_address(walk_memory) + (column + WALK_HALO) * 4, octet[3];
#pragma unroll
      for (int i = 0; i < 3; i++) octet[i] = first + (half + i < 2 ? stage_before(p, slot, 1, WALK_RING) : slot) + (half + i & 1) * 8 * p->x_pitch;
      float sum[WALK_EACH][4];
      walk_compute(most, p, octet, sum);
      if (any) walk_give(p, results, row * p->y_stride + now.column + before, (int)(now.row + now.rows - row), now.columns - before, sum);
#pragma unroll
      for (int k = 0; k < WALK_EACH; k++)
        if (!any && row + k < now.row + now.rows) walk_store(p, (row + k) * p->y_stride + now.column + column, sum[k]);
    }
    slot = stage_before(p, slot, WALK_RING - 1, WALK_RING);
    stencil_next(p, 4, false, &now);
  }
}

#define WALK(name, most, any) \
  KERNEL __launch_bounds__(STENCIL_THREADS, 2) name(const __grid_constant__ StencilWalkParams p) { stencil_walk(most, any, &p); }
WALK(sol_stencil_4_5_walk_any, 5, true)
WALK(sol_stencil_4_8_walk_any, 8, true)
WALK(sol_stencil_4_5_walk, 5, false)
WALK(sol_stencil_4_8_walk, 8, false)

#endif
#endif
