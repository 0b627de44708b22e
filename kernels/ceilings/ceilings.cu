// What a GPU gives at most: bandwidths, arithmetic, launches, latencies. src/measure/ceilings.c times them.
#include "ceilings.h"

#include <cuda_fp16.h>

#define KERNEL extern "C" __global__ void

static __device__ __forceinline__ uint4 fold(uint4 a, uint4 b) {
  return make_uint4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}

// Keeps the compiler from removing loads whose values are not used.
static __device__ __forceinline__ void use(uint4 v, uint4 *out, uint32_t keep) {
  if (keep || (v.x & v.y & v.z & v.w) == 0xffffffffu) *out = v;
}

static __device__ __forceinline__ uint64_t thread(void) {
  return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

static __device__ __forceinline__ uint64_t nanoseconds(void) {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

// ---- memory, one access a thread, blocks in order ----

KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_read_once(CeilingStream p) {
  uint64_t i = thread();
  if (i < p.n) use(__ldcs((const uint4 *)p.in + i), (uint4 *)p.out + i, p.keep);
}

KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_write_once(CeilingStream p) {
  uint64_t i = thread();
  if (i < p.n) ((uint4 *)p.out)[i] = make_uint4((uint32_t)i, 1, 2, 3);
}

KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_copy_once(CeilingStream p) {
  uint64_t i = thread();
  if (i < p.n) ((uint4 *)p.out)[i] = ((const uint4 *)p.in)[i];
}

// ---- memory and L2, a persistent grid, four accesses in flight ----

enum { UNDER_WAY = 4 };

KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_read(CeilingStream p) {
  uint64_t first = thread(), step = (uint64_t)gridDim.x * blockDim.x;
  const uint4 *in = (const uint4 *)p.in;
  uint4 sum = make_uint4(0, 0, 0, 0);
  for (uint32_t r = 0; r < p.repeat; r++) {
    uint64_t i = first;
    for (; i + (UNDER_WAY - 1) * step < p.n; i += UNDER_WAY * step) {
      uint4 v[UNDER_WAY];
#pragma unroll
      for (int k = 0; k < UNDER_WAY; k++) v[k] = __ldcg(in + i + k * step);
#pragma unroll
      for (int k = 0; k < UNDER_WAY; k++) sum = fold(sum, v[k]);
    }
    for (; i < p.n; i += step) sum = fold(sum, __ldcg(in + i));
  }
  if (first < p.n) use(sum, (uint4 *)p.out + first, p.keep);
}

KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_write(CeilingStream p) {
  uint64_t first = thread(), step = (uint64_t)gridDim.x * blockDim.x;
  for (uint32_t r = 0; r < p.repeat; r++)
    for (uint64_t i = first; i < p.n; i += step) ((uint4 *)p.out)[i] = make_uint4((uint32_t)i, r, 2, 3);
}

KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_copy(CeilingStream p) {
  uint64_t first = thread(), step = (uint64_t)gridDim.x * blockDim.x;
  const uint4 *in = (const uint4 *)p.in;
  uint4 *out = (uint4 *)p.out;
  for (uint32_t r = 0; r < p.repeat; r++) {
    uint64_t i = first;
    for (; i + (UNDER_WAY - 1) * step < p.n; i += UNDER_WAY * step) {
      uint4 v[UNDER_WAY];
#pragma unroll
      for (int k = 0; k < UNDER_WAY; k++) v[k] = __ldcg(in + i + k * step);
#pragma unroll
      for (int k = 0; k < UNDER_WAY; k++) out[i + k * step] = v[k];
    }
    for (; i < p.n; i += step) out[i] = __ldcg(in + i);
  }
}

// ---- shared memory: 16 bytes a lane, no conflicts ----

KERNEL __launch_bounds__(CEILING_SHARED_THREADS) ceiling_shared(CeilingWork p) {
  __shared__ uint4 data[CEILING_SHARED_THREADS];
  uint32_t t = threadIdx.x;
  data[t] = make_uint4(t, t + 1, t + 2, t + 3);
  __syncthreads();
  uint4 sum = make_uint4(0, 0, 0, 0);
  uint64_t start_ns = nanoseconds();
  long long start = clock64();
#pragma unroll CEILING_SHARED_UNROLL
  for (uint32_t i = 0; i < p.steps; i++) sum = fold(sum, data[(t + 32 * i) % CEILING_SHARED_THREADS]);
  __syncthreads();
  long long end = clock64();
  uint64_t end_ns = nanoseconds();
  if (t == 0) {
    uint64_t *clocks = (uint64_t *)p.clocks + 4 * blockIdx.x;
    clocks[0] = (uint64_t)(end - start);
    clocks[1] = end_ns - start_ns;
  }
  use(sum, (uint4 *)p.out + (uint64_t)blockIdx.x * blockDim.x + t, p.keep);
}

// ---- arithmetic ----

KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_fma(CeilingWork p) {
  float x[CEILING_FMA_CHAINS];
#pragma unroll
  for (int k = 0; k < CEILING_FMA_CHAINS; k++) x[k] = (float)k;
#pragma unroll 4
  for (uint32_t i = 0; i < p.steps; i++)
#pragma unroll
    for (int k = 0; k < CEILING_FMA_CHAINS; k++) x[k] = fmaf(x[k], p.scale, p.add);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < CEILING_FMA_CHAINS; k++) sum += x[k];
  if (p.keep || sum == -1.0f) ((float *)p.out)[thread()] = sum;
}

// fp16 in, fp32 sums, all of A and B ones: each step adds K to every sum.
KERNEL __launch_bounds__(CEILING_BLOCK) ceiling_mma(CeilingWork p) {
  const uint32_t ones = 0x3c003c00u;
  float d[CEILING_MMA_CHAINS][4] = {};
  uint32_t a = p.scale == 1.0f ? ones : 0; // not known to the compiler
#pragma unroll 2
  for (uint32_t i = 0; i < p.steps; i++)
#pragma unroll
    for (int k = 0; k < CEILING_MMA_CHAINS; k++) {
#if __CUDA_ARCH__ >= 800
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, "
                   "{%0,%1,%2,%3};"
                   : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3])
                   : "r"(a), "r"(ones));
#else
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4}, {%5}, {%0,%1,%2,%3};"
                   : "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3])
                   : "r"(a), "r"(ones));
#endif
    }
  float sum = 0;
#pragma unroll
  for (int k = 0; k < CEILING_MMA_CHAINS; k++) sum += d[k][0] + d[k][1] + d[k][2] + d[k][3];
  if (p.keep || sum == -1.0f) ((float *)p.out)[thread()] = sum;
}

// ---- latency: every load waits for the one before ----

static __device__ __forceinline__ void walked(const CeilingWork &p, long long clocks, uint32_t at) {
  ((uint64_t *)p.clocks)[0] = (uint64_t)clocks;
  ((uint64_t *)p.clocks)[2] = at;
}

// The clock, read once `at` is there: loads are not moved across it.
static __device__ __forceinline__ long long clock_after(uint32_t &at) {
  asm volatile("" : "+r"(at) : : "memory");
  return clock64();
}

// Goes on where clocks[2] says; `warm` steps first that are not timed.
KERNEL ceiling_chase_l1(CeilingWork p) {
  const uint32_t *next = (const uint32_t *)p.in;
  uint32_t at = (uint32_t)((uint64_t *)p.clocks)[2];
  for (uint32_t i = 0; i < p.warm; i++) at = next[at];
  long long start = clock_after(at);
  for (uint32_t i = 0; i < p.steps; i++) at = next[at];
  walked(p, clock_after(at) - start, at);
}

KERNEL ceiling_chase_l2(CeilingWork p) {
  const uint32_t *next = (const uint32_t *)p.in;
  uint32_t at = (uint32_t)((uint64_t *)p.clocks)[2];
  for (uint32_t i = 0; i < p.warm; i++) at = __ldcg(next + at);
  long long start = clock_after(at);
  for (uint32_t i = 0; i < p.steps; i++) at = __ldcg(next + at);
  walked(p, clock_after(at) - start, at);
}

KERNEL ceiling_chase_shared(CeilingWork p) {
  __shared__ uint32_t next[256];
  for (uint32_t i = 0; i < 256; i++) next[i] = (i + 33) % 256;
  uint32_t at = (uint32_t)((uint64_t *)p.clocks)[2];
  long long start = clock_after(at);
  for (uint32_t i = 0; i < p.steps; i++) at = next[at];
  walked(p, clock_after(at) - start, at);
}

// ---- launches ----

// The least that a kernel does: wait for memory once.
static __device__ __forceinline__ void touch(const CeilingWork &p) {
  volatile uint64_t *word = (uint64_t *)p.clocks + 3;
  if (threadIdx.x == 0) *word = *word + 1;
}

KERNEL ceiling_least(CeilingWork p) {
  touch(p);
}

// May start while the one before it ends, and lets the next do so.
KERNEL ceiling_early(CeilingWork p) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  touch(p);
}
