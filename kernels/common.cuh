// Pieces that every kernel uses. Few templates: constant arguments of forced-inline functions fold away.
#ifndef SOL_KERNELS_COMMON_CUH
#define SOL_KERNELS_COMMON_CUH

#include <stdint.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "common.h"

#define KERNEL extern "C" __global__ void
#define INLINE static __device__ __forceinline__

// 16 bytes of elements as they are stored in memory, and as floats.
typedef union Vec {
  uint4 v;
  uint32_t u[4];
  uint16_t h[8];
  uint8_t b[16];
  float f[4];
} Vec;

// One element. The kind is the same for a whole launch: a branch on it costs next to nothing.
INLINE float load_one(const void *p, int64_t i, int kind) {
  if (kind == KIND_FP32) return ((const float *)p)[i];
  if (kind == KIND_FP16) return __half2float(((const __half *)p)[i]);
  return __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

INLINE uint16_t narrow_one(float f, int kind) {
  return kind == KIND_FP16 ? __half_as_ushort(__float2half_rn(f)) : __bfloat16_as_ushort(__float2bfloat16_rn(f));
}

INLINE void store_one(void *p, int64_t i, int kind, float f) {
  if (kind == KIND_FP32) ((float *)p)[i] = f;
  else if (kind == KIND_FP8) ((__nv_fp8_storage_t *)p)[i] = __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
  else ((uint16_t *)p)[i] = narrow_one(f, kind);
}

// Two elements that share a 32-bit word.
INLINE float2 widen2(uint32_t u, int kind) {
  if (kind == KIND_FP16) return __half22float2(*(const __half2 *)&u);
  return make_float2(__uint_as_float(u << 16), __uint_as_float(u & 0xffff0000u));
}

INLINE uint32_t narrow2(float a, float b, int kind) {
  if (kind == KIND_FP16) {
    __half2 h = __floats2half2_rn(a, b);
    return *(uint32_t *)&h;
  }
  __nv_bfloat162 h = __floats2bfloat162_rn(a, b);
  return *(uint32_t *)&h;
}

// 8 elements of 2 bytes or 4 of 4, as they were loaded, as floats; and back.
INLINE void widen(const Vec *v, int kind, int bytes, float *f) {
  if (bytes == 4) {
#pragma unroll
    for (int i = 0; i < 4; i++) f[i] = v->f[i];
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float2 two = widen2(v->u[i], kind);
      f[2 * i] = two.x, f[2 * i + 1] = two.y;
    }
  }
}

INLINE void narrow(Vec *v, int kind, int bytes, const float *f) {
  if (bytes == 4) {
#pragma unroll
    for (int i = 0; i < 4; i++) v->f[i] = f[i];
  } else {
#pragma unroll
    for (int i = 0; i < 4; i++) v->u[i] = narrow2(f[2 * i], f[2 * i + 1], kind);
  }
}

INLINE float warp_sum(float s) {
#pragma unroll
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  return s;
}

// index = row * per_row + column; the division is 32 bits wide wherever that is enough.
INLINE void split(uint64_t index, uint64_t per_row, uint64_t *row, uint64_t *column) {
  if ((index | per_row) >> 32) {
    *row = index / per_row;
    *column = index - *row * per_row;
  } else {
    *row = (uint32_t)index / (uint32_t)per_row;
    *column = (uint32_t)index - (uint32_t)*row * (uint32_t)per_row;
  }
}

// Starts an asynchronous copy of 16 bytes into shared memory, both aligned to 16; before sm_80 the thread copies them itself.
// near: through L1, for what many threads of an SM copy: one place in L2 would have to give it to all of them.
template <bool near = false> INLINE void fetch16(void *to, const void *from) {
#if __CUDA_ARCH__ >= 800
  uint32_t there = (uint32_t)__cvta_generic_to_shared(to);
  if (near) asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(there), "l"(__cvta_generic_to_global(from)) : "memory");
  else asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(there), "l"(__cvta_generic_to_global(from)) : "memory");
#else
  *(uint4 *)to = *(const uint4 *)from;
#endif
}

INLINE void wait_for_fetches(void) { // those of this thread
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// This thread's place in a one-dimensional grid of any size: block x first, then y.
INLINE uint64_t thread_index(void) {
  uint64_t block = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  return block * blockDim.x + threadIdx.x;
}

// Programmatic dependent launch: wait for the kernel before this one before touching memory.
INLINE void wait_for_predecessor(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

INLINE void prefetch_l2(const void *at) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(at)));
}

// Whether a kernel should prefetch its inputs into L2 while it waits for its predecessor. Where blocks are few, all of
// them are resident before the predecessor ends; in a larger grid most start after it. A prefetch is a hint and no access:
// what the predecessor writes meanwhile goes to L2, too, so later loads see it.
INLINE bool may_hint(void) {
#if __CUDA_ARCH__ >= 900
  return gridDim.x * gridDim.y * gridDim.z <= 1024;
#else
  return false;
#endif
}

INLINE void let_successor_start(void) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#endif
