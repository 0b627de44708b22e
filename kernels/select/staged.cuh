// Short rows, one a thread, that are close to each other: a warp copies the chunks of 16 bytes that its rows span into shared memory, neighbouring lanes
// neighbouring chunks, and then each thread takes the chunks of its row. If threads loaded their rows themselves, each load would touch a line for every lane.
#ifndef SOL_KERNELS_SELECT_STAGED_CUH
#define SOL_KERNELS_SELECT_STAGED_CUH

#include "rounds.cuh"
#include "select.h"

// Where a chunk lies among those of a warp: chunks that are 8, 16, 24 ... apart do not meet in a bank.
INLINE int staged_place(int chunk) { return chunk ^ (chunk >> 3 & 7); }

// Copies the chunks that a warp's rows span, `from` is in the first of them. Where some are not all within the tensor, as those of its first and last rows, they are loaded by elements.
template <int size> INLINE void stage_rows(const SampleParams &p, const char *from, int rows, uint4 *to) {
  const char *begin = (const char *)p.x, *end = begin + (int64_t)(p.m - 1) * p.x_stride + p.n * size;
  const int before = (int)((uint32_t)(uintptr_t)from & 15), lane = threadIdx.x % 32;
  const int chunks = rows > 0 ? (before + (rows - 1) * (int)p.x_stride + (int)p.n * size + 15) / 16 : 0;
  from -= before;
  if (from >= begin && from + 16 * chunks <= end) {
    uint4 *even = to + staged_place(lane), *odd = to + staged_place(32 + lane);
    from += 16 * lane;
#pragma unroll 2
    for (int c = lane; c < chunks; c += 64, from += 64 * 16, even += 64, odd += 64) {
      fetch16(even, from);
      if (c + 32 < chunks) fetch16(odd, from + 32 * 16);
    }
  } else {
#pragma unroll 1
    for (int c = lane; c < chunks; c += 32) to[staged_place(c)] = load_singly(from + 16 * c, begin, end, size);
  }
  wait_for_fetches();
  __syncwarp();
}

// What load_rounds does for a lane that has all of row `row`. memory: p.room chunks for this warp.
template <class R> INLINE void take_staged(R &s, const SampleParams &p, uint64_t row, uint4 *memory, uint32_t fill) {
  const int bytes = (int)p.n * R::size, whole = bytes / 16; // whole: rounds of every row, wherever it starts
  const uint64_t first = row - threadIdx.x % 32;
  const char *from = (const char *)p.x + (int64_t)first * p.x_stride;
  const int rows = first < p.m ? (int)min(p.m - first, (uint64_t)32) : 0, own = min((int)(threadIdx.x % 32), max(rows - 1, 0));
  stage_rows<R::size>(p, from, rows, memory);
  const int at = (int)((uint32_t)(uintptr_t)from & 15) + own * (int)p.x_stride, before = at & 15, chunk = at / 16;
  const int used = rows ? s.used : 0;
  s.n = row < p.m ? (int)p.n : 0;
  s.first = -before / R::size;
#pragma unroll
  for (int r = 0; r < R::rounds; r++) {
    if (r >= used) continue;
    if (r < whole) {
      s.v[r].v = memory[staged_place(chunk + r)];
      continue;
    }
    const int left = before + bytes - 16 * r;
    s.v[r].v = make_uint4(fill, fill, fill, fill);
    if (left > 0) s.v[r].v = memory[staged_place(chunk + r)];
    mask_after(s.v[r], left, fill);
  }
  if (before) mask_before(s.v[0], before, fill);
  if (s.n) return;
#pragma unroll
  for (int r = 0; r < R::rounds; r++) s.v[r].v = make_uint4(fill, fill, fill, fill);
}

#endif
