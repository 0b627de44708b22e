// Pieces of rows that start anywhere, through the shared memory of a warp: bulk copies bring the buffer's own 16-byte chunks around a piece, so
// that it lies there as far beyond 16 bytes as in memory, and results that lie so are sent back as whole chunks.
#ifndef SOL_KERNELS_AROUND_CUH
#define SOL_KERNELS_AROUND_CUH

#include "funnel.cuh"
#include "hopper.cuh"

// The chunks around `bytes` at `from` that are all between begin and end, which hold a tensor: `place` bytes from where those around `from` start.
typedef struct AroundCopy {
  const char *first;
  int bytes, place;
} AroundCopy;

INLINE AroundCopy around_copy(const char *from, int bytes, const void *begin, const void *end) {
  AroundCopy c;
  const char *last = from + bytes + (-(uint32_t)(uintptr_t)(from + bytes) & 15);
  c.first = from - ((uintptr_t)from & 15), c.place = 0;
  if (c.first < (const char *)begin) c.first += 16, c.place = 16;
  if (last > (const char *)end) last -= 16;
  c.bytes = max((int)(last - c.first), 0);
  return c;
}

// One thread, after barrier_expect of the bytes of all copies.
INLINE void around_fetch(AroundCopy c, char *to, uint64_t *full) {
  if (!c.bytes) return;
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to + c.place)),
               "l"(__cvta_generic_to_global(c.first)), "r"(c.bytes), "r"(shared_address(full))
               : "memory");
}

// A warp loads what the copy left out, whose chunks are partly outside of the tensor: at: where the piece's first element is. False: nothing was.
INLINE bool around_mend(const char *from, int bytes, const void *begin, const void *end, char *at, int size) {
  const int lane = threadIdx.x % 32 * size;
  int head = from - ((uintptr_t)from & 15) < (const char *)begin ? min((int)(-(uint32_t)(uintptr_t)from & 15), bytes) : 0;
  int tail = (int)((uint32_t)(uintptr_t)(from + bytes) & 15);
  if (from + bytes - tail + (tail ? 16 : 0) <= (const char *)end) tail = 0;
  tail = min(tail, bytes);
  if (!head && !tail) return false;
  if (lane < head) move_one(at + lane, from + lane, size);
  if (lane < tail) move_one(at + bytes - size - lane, from + bytes - size - lane, size);
  return true;
}

// A warp sends `bytes` from shared memory, where the first lies as far beyond `from` as `to` beyond 16 bytes: whole chunks, and single elements at both ends.
INLINE void around_send(char *to, const char *from, int bytes, int size) {
  const int lane = threadIdx.x % 32, shift = (int)((uintptr_t)to & 15), all = shift + bytes, first = shift ? 16 : 0, end = max(all & -16, first);
  to -= shift;
#pragma unroll 2
  for (int k = first + lane * 16; k < end; k += 512) *(uint4 *)(to + k) = *(const uint4 *)(from + k);
  int before = shift + lane * size, after = end + lane * size;
  if (before < min(first, all)) move_one(to + before, from + before, size);
  if (after < all) move_one(to + after, from + after, size);
}

#endif
