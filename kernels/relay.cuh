// Long rows, read twice: once for their sums, and again, out of L2, to be written. Some blocks sum parts of rows up, and between them in the grid are blocks
// that write parts of rows some MB before: by then their sums are there, and their elements still in L2. So blocks hardly wait for others of their row, and
// reads and writes mix all the time.
//
// Sums are posted at the start of the row's output (parts.cuh). Each block that writes counts itself in the first post once it has read them all; the last of
// a row to do so writes that start. A block waits only for blocks before it in the grid, and those wait for none. So the output must not be an input.
#ifndef SOL_KERNELS_RELAY_CUH
#define SOL_KERNELS_RELAY_CUH

#include "parts.cuh"

// What a block does with a part of a row: sums it up, writes it.
typedef struct Relay {
  uint64_t row;
  uint32_t part;
  bool sums, puts;
} Relay;

// Rows are written `lag` rows after they were summed up. Those that are not there have numbers beyond the last.
INLINE Relay relay_of_block(const PartShape &s, uint32_t lag) {
  uint64_t part;
  Relay r;
  split((uint64_t)blockIdx.y * gridDim.x + blockIdx.x, 2 * s.parts, &r.row, &part);
  r.part = (uint32_t)part / 2, r.puts = part % 2, r.sums = !r.puts;
  if (r.puts) r.row -= lag;
  return r;
}

// What is read for the first time should stay in L2, and leave it once it was read again.
INLINE uint64_t relay_policy(bool again) {
  uint64_t policy = 0;
#if __CUDA_ARCH__ >= 800
  if (again) asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  else asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
#endif
  return policy;
}

INLINE void relay_fetch(void *to, const void *from, uint64_t policy) { // as fetch16
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
               "l"(__cvta_generic_to_global(from)), "l"(policy)
               : "memory");
#endif
}

// Waits for the posts of all parts; thread i gets part i's. The first has the number of its readers beside its sign.
INLINE float2 relay_take(const PartShape &s, const unsigned long long *posts) {
  const uint32_t part = threadIdx.x, readers = part ? 0 : s.parts;
  float2 v = make_float2(0, 0);
  for (bool there = part >= s.parts; !there;) {
    unsigned long long x, y;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(x), "=l"(y)
                 : "l"(__cvta_generic_to_global(posts + 2 * part))
                 : "memory");
    v = make_float2(__uint_as_float((uint32_t)(x >> 32)), __uint_as_float((uint32_t)(y >> 32)));
    there = (uint32_t)x == s.sign[0] && (uint32_t)y - s.sign[1] <= readers;
  }
  __syncwarp();
  return v;
}

// By one thread, after a barrier that follows the last look: counts this block among those that write the row and have read the posts. How many had.
INLINE uint32_t relay_count(unsigned long long *posts) {
  uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(__cvta_generic_to_global(posts + 1)) : "memory");
  return before;
}
INLINE bool relay_is_last(const PartShape &s, uint32_t before) { return before - s.sign[1] == s.parts - 1; }

#endif
