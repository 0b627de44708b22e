// Rows that are cut into parts over blocks all over the GPU. Blocks post what their part adds up to, and take the others' posts.
//
// A block keeps its part in shared memory until all posts of the row are there, and writes it. Blocks of a row run at the same time
// where the GPU is free; where it is not, they do not wait for long: a block that has waited in vain gives its part up. Each row has one
// more block, further on in the grid, which writes the parts that were given up. It waits without end, but only for blocks that come before it in the grid
// and that do end: so the kernel ends whatever the number of blocks that run at a time.
//
// Posts are at the start of the row's output, which is written last, when all of them were read. Words that carry the launch's sign
// were posted; all of them are overwritten by results before the kernel ends. So the output must not be an input.
//
// How a row is cut follows from its length and start alone, and with it the order of every sum.
#ifndef SOL_KERNELS_PARTS_CUH
#define SOL_KERNELS_PARTS_CUH

#include "parts.h"
#include "span.cuh"

typedef struct Part {
  uint64_t row;
  uint32_t part;
  bool last; // the row's last block
} Part;

// A row's parts, then the last block of the row before.
INLINE Part part_of_block(const PartShape &s) {
  uint64_t part;
  Part p;
  split((uint64_t)blockIdx.y * gridDim.x + blockIdx.x, s.parts + 1, &p.row, &part);
  p.part = (uint32_t)part;
  p.last = part == s.parts || p.row == s.rows;
  p.row -= p.last;
  return p;
}

// The part's columns: from part_begin(part) to part_begin(part + 1). They begin on 16 bytes; head: columns of the row before the first of those.
INLINE int64_t part_begin(const PartShape &s, uint32_t part, int head, int64_t n) {
  return part == 0 ? 0 : part == s.parts ? n : head + part * s.length;
}

// Where the row's posts are: its output begins at y.
INLINE unsigned long long *posts_of(const void *y) { return (unsigned long long *)(((uintptr_t)y + 15) & ~(uintptr_t)15); }

// By one thread.
INLINE void post(const PartShape &s, unsigned long long *posts, uint32_t part, float2 v) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(posts + 2 * part)),
               "l"((unsigned long long)__float_as_uint(v.x) << 32 | s.sign[0]),
               "l"((unsigned long long)__float_as_uint(v.y) << 32 | s.sign[1])
               : "memory");
}

// Part `part`'s, if it is there.
INLINE bool post_get(const PartShape &s, const unsigned long long *posts, uint32_t part, float2 *v) {
  unsigned long long x, y;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(x), "=l"(y)
               : "l"(__cvta_generic_to_global(posts + 2 * part))
               : "memory");
  *v = make_float2(__uint_as_float((uint32_t)(x >> 32)), __uint_as_float((uint32_t)(y >> 32)));
  return (uint32_t)x == s.sign[0] && (uint32_t)y == s.sign[1];
}

// All threads of a block: thread i gets part i's post. False: one of them has not come within `polls` looks; 0: there is no end to it.
INLINE bool posts_take(const PartShape &s, const unsigned long long *posts, int polls, float2 *v) {
  bool there = threadIdx.x >= s.parts;
  *v = make_float2(0, 0);
  for (int i = 0; !there && (!polls || i < polls); i++) there = post_get(s, posts, threadIdx.x, v);
  __syncwarp();
  return __syncthreads_and(there);
}

// What has become of a part, after its posts: given up, or its block has read the posts.
enum { PART_READ, PART_LEFT };
INLINE unsigned long long part_word(const PartShape &s, int what) {
  return ((unsigned long long)s.sign[0] << 32 | s.sign[1]) + (uint32_t)what;
}
INLINE void part_tell(const PartShape &s, unsigned long long *posts, uint32_t part, int what) { // by one thread, after a barrier
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(posts + 2 * s.parts + part)),
               "l"(part_word(s, what))
               : "memory");
}
INLINE int part_ask(const PartShape &s, const unsigned long long *posts, uint32_t part) { // waits
  unsigned long long seen;
  do {
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];"
                 : "=l"(seen)
                 : "l"(__cvta_generic_to_global(posts + 2 * s.parts + part))
                 : "memory");
  } while (seen != part_word(s, PART_READ) && seen != part_word(s, PART_LEFT));
  return seen == part_word(s, PART_READ) ? PART_READ : PART_LEFT;
}

// By a whole block: which parts were given up.
INLINE void parts_left(const PartShape &s, const unsigned long long *posts, bool *left) {
  if (threadIdx.x < s.parts) left[threadIdx.x] = part_ask(s, posts, threadIdx.x) == PART_LEFT;
  __syncwarp();
  __syncthreads();
}

// The sum over a block of whole warps, in every thread. `part`: 32 places, used once.
INLINE float parts_sum(float v, float *part) {
  int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  v = warp_sum(v);
  if (lane == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  return warp_sum(lane < warps ? part[lane] : 0);
}

#endif
