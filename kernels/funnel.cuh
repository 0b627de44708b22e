// Rows that start at any element, read 16 bytes at a time: two aligned accesses and a shift.
#ifndef SOL_KERNELS_FUNNEL_CUH
#define SOL_KERNELS_FUNNEL_CUH

#include "common.cuh"

INLINE void move_one(void *to, const void *from, int size) {
  if (size == 1) *(uint8_t *)to = *(const uint8_t *)from;
  if (size == 2) *(uint16_t *)to = *(const uint16_t *)from;
  if (size == 4) *(uint32_t *)to = *(const uint32_t *)from;
  if (size == 8) *(uint2 *)to = *(const uint2 *)from;
  if (size == 16) *(uint4 *)to = *(const uint4 *)from;
}

// 16 bytes from byte `shift` (a multiple of the element's size) on, of the 32 that lo and hi are.
INLINE uint4 funnel(uint4 lo, uint4 hi, uint32_t shift, int size) {
  uint32_t w[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
#pragma unroll
  for (int i = 0; i < 6; i++) w[i] = shift & 8 ? w[i + 2] : w[i];
  if (size < 8) {
#pragma unroll
    for (int i = 0; i < 5; i++) w[i] = shift & 4 ? w[i + 1] : w[i];
  }
  if (size < 4) {
#pragma unroll
    for (int i = 0; i < 4; i++) w[i] = __funnelshift_r(w[i], w[i + 1], (shift & 3) * 8);
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

// Whether the 16 bytes at `from` can be read by load_around: what that reads is between first and end.
INLINE int is_around(const char *from, const char *first, const char *end) {
  int shift = (int)((uintptr_t)from & 15);
  return from - shift >= first && from - shift + (shift ? 32 : 16) <= end;
}

// 16 bytes, or zeros. A predicated load in place of a branch: several of these are in flight together. Volatile: it
// must stay after the wait for the kernel's predecessor.
INLINE uint4 load_if(const void *from, int wanted) {
  uint4 v;
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %5, 0;\n mov.u32 %0, 0;\n mov.u32 %1, 0;\n mov.u32 %2, 0;\n mov.u32 %3, 0;\n"
      " @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(__cvta_generic_to_global(from)), "r"(wanted));
  return v;
}

// The 16 bytes at `from`; those before and after them, up to aligned addresses, are read too. In two steps, so that
// all loads of a thread come before the first of them is waited for.
typedef struct Around {
  uint4 lo, hi;
} Around;

INLINE Around load_around(const char *from, int wanted) {
  const char *aligned = from - ((uintptr_t)from & 15);
  Around a;
  a.lo = load_if(aligned, wanted);
  a.hi = load_if(aligned + 16, wanted && aligned != from);
  return a;
}

INLINE uint4 take_around(Around a, const char *from, int size) {
  return funnel(a.lo, a.hi, (uint32_t)(uintptr_t)from & 15, size);
}

// The same one by one, of those from `first` on and before `end`; the rest is zero.
INLINE uint4 load_singly(const char *from, const char *first, const char *end, int size) {
  Vec v;
  v.v = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int i = 0; i < 16; i += size)
    if (from + i >= first && from + i < end) move_one(v.b + i, from + i, size);
  return v.v;
}

#endif
