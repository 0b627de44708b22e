// Rows of any length at any address staged in the shared memory of a block, 16 bytes at a time: boundaries are those of the
// buffer, not of the rows. Each row lies in shared memory as far beyond 16 bytes as it does in global memory; rows that follow
// each other without a gap are one.
#ifndef SOL_KERNELS_TILE_CUH
#define SOL_KERNELS_TILE_CUH

#include "funnel.cuh"

typedef struct Tile {
  const char *at; // its first row in global memory
  int64_t stride; // from row to row, in bytes
  int rows, bytes; // of a row
  int pitch;       // from row to row in shared memory; 0: there is no gap between rows
} Tile;

// Where a row starts in the tile's shared memory.
INLINE int tile_place(const Tile &t, int row) {
  uint32_t at = (uint32_t)(uintptr_t)t.at;
  if (!t.pitch) return (int)(at & 15) + row * t.bytes;
  return row * t.pitch + (int)((at + (uint32_t)row * (uint32_t)t.stride) & 15);
}

// One row, by `threads` threads of which this is number `thread`: whole 16 bytes, and what is before and after them.
INLINE void row_fill(const char *first, int bytes, char *memory, int thread, int threads, int size) {
  int head = (int)(-(uint32_t)(uintptr_t)first & 15), whole = bytes < head ? 0 : (bytes - head) / 16;
  const char *from = first + head + 16 * thread;
  char *to = memory + (head ? 16 : 0) + 16 * thread;
#pragma unroll 4
  for (int k = thread; k < whole; k += threads, from += 16 * threads, to += 16 * threads) fetch16(to, from);
  const char *end = first + bytes;
  if (thread == 0 && head) *(uint4 *)memory = load_singly(first + head - 16, first, end, size);
  const char *after = first + head + 16 * whole;
  if (thread == threads - 1 && after < end) *(uint4 *)(memory + (head ? 16 : 0) + 16 * whole) = load_singly(after, first, end, size);
}

// All threads of the block; a barrier is left to the caller. Beyond the rows' ends there are zeros up to 16 bytes.
INLINE void tile_fill(const Tile &t, char *memory, int size) {
  if (!t.pitch) {
    row_fill(t.at, t.rows * t.bytes, memory, threadIdx.x, blockDim.x, size);
  } else {
    for (int row = threadIdx.x / 8; row < t.rows; row += blockDim.x / 8)
      row_fill(t.at + row * t.stride, t.bytes, memory + row * t.pitch, threadIdx.x % 8, 8, size);
  }
  wait_for_fetches();
}

// The same way back: the rows' bytes in shared memory, and no others, to global memory.
INLINE void tile_drain(const Tile &t, const char *memory, int size) {
  int rows = t.pitch ? t.rows : 1, bytes = t.pitch ? t.bytes : t.rows * t.bytes;
  int most = (bytes + 30) / 16;
#pragma unroll 4
  for (int i = threadIdx.x; i < rows * most; i += blockDim.x) {
    int row = rows == 1 ? 0 : i / most, k = i - row * most;
    const char *first = t.at + row * t.stride, *end = first + bytes;
    char *to = (char *)first - ((uintptr_t)first & 15) + 16 * k;
    const char *from = memory + row * t.pitch + 16 * k;
    if (to >= first && to + 16 <= end) {
      *(uint4 *)to = *(const uint4 *)from;
    } else {
#pragma unroll 1
      for (int j = 0; j < 16; j += size)
        if (to + j >= first && to + j < end) move_one(to + j, from + j, size);
    }
  }
}

// `words` 32-bit words from byte `at` of shared memory on, a multiple of the elements' size. Four at most.
INLINE void tile_words(const char *memory, int at, int words, int size, uint32_t *w) {
  const uint32_t *from = (const uint32_t *)(memory + (at & ~3));
  if (words == 4 && (at & 15) == 0) {
    uint4 v = *(const uint4 *)from;
    w[0] = v.x, w[1] = v.y, w[2] = v.z, w[3] = v.w;
  } else if (words == 2 && (at & 7) == 0) {
    uint2 v = *(const uint2 *)from;
    w[0] = v.x, w[1] = v.y;
  } else if (size == 4 || (at & 3) == 0) {
#pragma unroll
    for (int i = 0; i < words; i++) w[i] = from[i];
  } else {
    uint32_t before = from[0];
#pragma unroll
    for (int i = 0; i < words; i++) {
      uint32_t after = from[i + 1];
      w[i] = __funnelshift_r(before, after, (at & 3) * 8);
      before = after;
    }
  }
}

#endif
