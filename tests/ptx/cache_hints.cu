//! alloc x 2048*4 random-u32
//! alloc y 2048*4 poison
//! alloc z 2048*4 poison
//! alloc errors 32 zero
//! launch hints grid=8 block=64 args=x,y
//! launch policies grid=8 block=64 args=x,z
//! launch hints_check grid=8 block=256 args=x,y,z,errors
//! checks 4096
// Loads and stores with cache operators and hints, prefetches, L1 and L2 eviction priorities and policies,
// discard: all move the same values as plain ones.
#include "check.cuh"

extern "C" __global__ void hints(const uint4 *x, uint4 *y) {
  unsigned i = global_thread(); // a vector each
  asm volatile("prefetch.global.L1 [%0];" ::"l"(x + i));
  asm volatile("prefetch.global.L2 [%0];" ::"l"(x + (i + 32) % 512));
  asm volatile("prefetchu.L1 [%0];" ::"l"(x));
  const uint4 *p = x + i;
  uint4 v;
  switch (i % 8) {
  case 0: v = __ldg(p); break;
  case 1: v = __ldcg(p); break;
  case 2: v = __ldca(p); break;
  case 3: v = __ldcs(p); break;
  case 4: v = __ldlu(p); break;
  case 5: v = __ldcv(p); break;
  case 6:
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(p));
    break;
  default:
    asm volatile("ld.global.L1::evict_last.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
    asm volatile("ld.volatile.global.v2.u32 {%0,%1}, [%2+8];" : "=r"(v.z), "=r"(v.w) : "l"(p));
  }
  v.x += 1;
  switch (i % 5) {
  case 0: __stwb(y + i, v); break;
  case 1: __stcg(y + i, v); break;
  case 2: __stcs(y + i, v); break;
  case 3: __stwt(y + i, v); break;
  default:
    asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(y + i), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
  }
}

extern "C" __global__ void policies(const uint4 *x, uint4 *z) {
  unsigned i = global_thread();
#if __CUDA_ARCH__ >= 800
  unsigned long long first, last;
  uint4 v;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(first));
  asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(last));
  asm volatile("ld.global.L2::cache_hint.v4.u32 {%0,%1,%2,%3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(x + i), "l"(first));
  if (i % 8 == 0) // of a whole line, whose contents are then undefined until written
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(z + i) : "memory");
  __syncwarp();
  asm volatile("st.global.L2::cache_hint.v4.u32 [%0], {%1,%2,%3,%4}, %5;" ::"l"(z + i), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w), "l"(last)
               : "memory");
  if (i % 8 == 0) asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(z + i) : "memory");
#else
  z[i] = x[i];
#endif
}

extern "C" __global__ void hints_check(const unsigned *x, const unsigned *y, const unsigned *z,
                                       unsigned *errors) {
  unsigned i = global_thread();
  EXPECT_EQ(i, y[i], x[i] + (i % 4 == 0));
  EXPECT_EQ(i, z[i], x[i]);
}
