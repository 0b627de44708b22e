// Short rows, one a thread, that are close to each other: a warp copies the chunks of 16 bytes that its rows span into shared memory, neighbouring lanes
// neighbouring chunks, and then each thread takes the chunks of its row. If threads loaded their rows themselves, each load would touch a line for every lane.
#ifndef SOL_KERNELS_SELECT_STAGED_CUH
#define SOL_KERNELS_SELECT_STAGED_CUH

#include "rounds.cuh"
#include "select.h"

// Where a chunk lies among those of a warp: chunks that are 8, 16, 24 ... apart do not meet in a bank.
INLINE int staged_place(int chunk) { return chunk ^ (chunk >> 3 & 7); }

// Copies the span of the warp's rows, `from` is in its first chunk. Chunks that are not all within the tensor are loaded by elements.
template <int size> INLINE void stage_rows(const SampleParams &p, const char *from, int rows, uint4 *to) {
  const char *begin = (const char *)p.x, *end = begin + (int64_t)(p.m - 1) * p.x_stride + p.n * size;
  const int before = (int)((uint32_t)(uintptr_t)from & 15);
  const int chunks = rows > 0 ? (before + (rows - 1) * (int)p.x_stride + (int)p.n * size + 15) / 16 : 0;
  from -= before;
#pragma unroll 4
  for (int c = threadIdx.x % 32; c < chunks; c += 32) {
    const char *at = from + 16 * c;
    if (at >= begin && at + 16 <= end) fetch16(to + staged_place(c), at);
    else to[staged_place(c)] = load_singly(at, begin, end, size);
  }
  wait_for_fetches();
  __syncwarp();
}

// What load_rounds does for a lane that has all of row `row`. memory: p.room chunks for this warp.
template <class R> INLINE void take_staged(R &s, const SampleParams &p, uint64_t row, uint4 *memory, uint32_t fill) {
  const int lane = threadIdx.x % 32, bytes = (int)p.n * R::size, whole = bytes / 16; // whole: rounds of every row, wherever it starts
  const uint64_t first = row - lane;
  const char *from = (const char *)p.x + (int64_t)first * p.x_stride;
  const bool there = row < p.m;
  stage_rows<R::size>(p, from, first < p.m ? (int)min(p.m - first, (uint64_t)32) : 0, memory);
  const int at = (int)((uint32_t)(uintptr_t)from & 15) + lane * (int)p.x_stride, before = at & 15;
  s.n = there ? (int)p.n : 0;
  s.first = -before / R::size;
#pragma unroll
  for (int r = 0; r < R::rounds; r++) {
    if (r >= s.used) continue;
    const int left = before + bytes - 16 * r;
    s.v[r].v = make_uint4(fill, fill, fill, fill);
    if (there && left > 0) s.v[r].v = memory[staged_place(at / 16 + r)];
    if (r >= whole) mask_after(s.v[r], there ? left : 0, fill);
  }
  if (there && before) mask_before(s.v[0], before, fill);
}

#endif
