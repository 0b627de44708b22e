// Rows at any address into shared memory by TMA (cp.async.bulk), which copies aligned 16 bytes. sm_90a alone.
#ifndef SOL_KERNELS_BULK_CUH
#define SOL_KERNELS_BULK_CUH

#include "funnel.cuh"
#include "hopper.cuh"

INLINE void bulk_copy(void *to, const void *from, int bytes, uint64_t *bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(bar))
               : "memory");
}

// A copy of all aligned 16 bytes that have a part of a row. 0 bytes: there is nothing to do.
typedef struct BulkRow {
  const char *from;
  char *to;
  int bytes;
} BulkRow;

// The row is `bytes` long and begins (from & 15) bytes after `to`. What is not between first and last, the table's ends, is not read: the 16 bytes there are
// put in place at once, by elements of `in` bytes.
INLINE BulkRow bulk_row(char *to, const char *from, int bytes, const char *first, const char *last, int in) {
  const char *end = from + bytes, *begin = from - ((uintptr_t)from & 15), *stop = end + (-(uintptr_t)end & 15);
  BulkRow r = {begin, to, (int)(stop - begin)};
  if (begin >= first && stop <= last) return r;
  if (begin < first) {
    *(uint4 *)to = load_singly(begin, from, end, in);
    r.from += 16, r.to += 16, r.bytes -= 16;
  }
  if (stop > last && r.bytes) {
    *(uint4 *)(to + (stop - begin) - 16) = load_singly(stop - 16, from, end, in);
    r.bytes -= 16;
  }
  async_fence(); // before a later copy to the same place
  return r;
}

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
// By a warp: a row of each lane, `pitch` bytes apart, the first 16 bytes after `memory`. from: NULL: none. place: where its first byte is; 0: nowhere.
INLINE void bulk_rows(char *memory, int pitch, uint64_t *full, int *place, const char *from, int bytes, const char *first, const char *last, int in) {
  int lane = threadIdx.x % 32, at = 16 + lane * pitch;
  BulkRow r = {NULL, NULL, 0};
  if (from) r = bulk_row(memory + at, from, bytes, first, last, in);
  place[lane] = from ? at + (int)((uint32_t)(uintptr_t)from & 15) : 0;
  int all = __reduce_add_sync(~0u, r.bytes);
  if (lane == 0) barrier_expect(full, all);
  __syncwarp();
  if (r.bytes) bulk_copy(r.to, r.from, r.bytes, full);
}
#endif

#endif
