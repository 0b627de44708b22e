// The stencil of fp32 rows of whole vectors, by multiply-adds: a block walks down a strip of columns, 16 rows at a time
// (stencil_stages.cuh). A thread computes four columns of eight rows: every row that it reads is added to all sums it contributes to.
#ifndef SOL_KERNELS_STENCIL_WALK_CUH
#define SOL_KERNELS_STENCIL_WALK_CUH

#include "stencil_stages.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

enum { WALK_EACH = 8 }; // rows of a thread

INLINE float4 walk_load(uint32_t at) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at) : "memory");
  return v;
}

INLINE bool walk_has(int most, const StencilWalkParams *p, int d) { return d <= most / 2 + 1 || d <= p->radius; }

// sum += centre * f and the neighbours in the row, at `at`.
INLINE void walk_across(int most, const StencilWalkParams *p, uint32_t at, float4 f, float (&sum)[4]) {
  const int sides = most / 4;
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

// most: the largest radius, at least half of it is added without asking.
INLINE void stencil_walk(int most, const StencilWalkParams *p) {
  const int across = p->columns / 128, warp = threadIdx.x / 32, half = warp / across, column = (warp - half * across) * 128 + threadIdx.x % 32 * 4;
  StencilStage now = stencil_stage(p, 4, false, blockIdx.x), later = now;
  char *mine = walk_memory + stage_place(p);
  let_successor_start();
  wait_for_predecessor();
#pragma unroll 1
  for (int i = 0; i < WALK_RING - 2; i++) {
    stage_fetch(p, later, 4, mine + i * p->stage_bytes);
    if (later.stages) stencil_next(p, 4, false, &later);
  }
  int slot = 0; // where the stage is
#pragma unroll 1
  while (now.stages) {
    copy_wait<WALK_RING - 3>();
    __syncthreads();
    stage_fetch(p, later, 4, mine + stage_before(p, slot, 2, WALK_RING));
    if (later.stages) stencil_next(p, 4, false, &later);
    int64_t row = now.row + (now.stage - 1) * WALK_ROWS + half * WALK_EACH;
    if (now.stage && column < now.columns && row < now.row + now.rows) {
      uint32_t first = tile_address(walk_memory) + (column + WALK_HALO) * 4, octet[3];
#pragma unroll
      for (int i = 0; i < 3; i++) octet[i] = first + (half + i < 2 ? stage_before(p, slot, 1, WALK_RING) : slot) + (half + i & 1) * 8 * p->x_pitch;
      float sum[WALK_EACH][4];
      walk_compute(most, p, octet, sum);
#pragma unroll
      for (int k = 0; k < WALK_EACH; k++)
        if (row + k < now.row + now.rows) walk_store(p, (row + k) * p->y_stride + now.column + column, sum[k]);
    }
    slot = stage_before(p, slot, WALK_RING - 1, WALK_RING);
    stencil_next(p, 4, false, &now);
  }
}

KERNEL __launch_bounds__(STENCIL_THREADS, 2) sol_stencil_4_8_walk(const __grid_constant__ StencilWalkParams p) { stencil_walk(8, &p); }

#endif
#endif
