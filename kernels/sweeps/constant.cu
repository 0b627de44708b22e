// Lookups in a small table, in constant memory and in global memory.
#include "rungs.h"

#define WORD(i)  (float)((i)*37 % 61)
#define WORDS(i) WORD(i), WORD(i + 1), WORD(i + 2), WORD(i + 3), WORD(i + 4), WORD(i + 5), WORD(i + 6), WORD(i + 7)
#define LINE(i)                                                                                              \
  WORDS(i), WORDS(i + 8), WORDS(i + 16), WORDS(i + 24), WORDS(i + 32), WORDS(i + 40), WORDS(i + 48), WORDS(i + 56)
#define LINES(i) LINE(i), LINE(i + 64), LINE(i + 128), LINE(i + 192)
__constant__ float constant_table[SWEEP_TABLE] = {LINES(0), LINES(256), LINES(512), LINES(768)};

// `distinct` neighbouring words for the lanes of a warp, elsewhere in the table each time.
static __device__ __forceinline__ void look_up(const SweepConstant &p, const float *table) {
  uint64_t i = (uint64_t)blockIdx.x * SWEEP_BLOCK + threadIdx.x;
  uint32_t at = threadIdx.x % p.distinct;
  float sum = 0;
#pragma unroll 8
  for (uint32_t k = 0; k < SWEEP_LOOKUPS; k++, at += 53) sum += table[at % SWEEP_TABLE];
  if (i < p.n) p.y[i] = sum;
}

extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) constant_read(const __grid_constant__ SweepConstant p) {
  look_up(p, constant_table);
}

// The same table in global memory: it stays in L1.
extern "C" __global__ void __launch_bounds__(SWEEP_BLOCK) constant_global(const __grid_constant__ SweepConstant p) {
  look_up(p, p.table);
}
