// wgmma: products of 64 rows by the 128 threads of a warpgroup. sm_90a alone.
#ifndef SOL_KERNELS_WGMMA_CUH
#define SOL_KERNELS_WGMMA_CUH

#include "hopper.cuh"

// The accumulators' names in the instruction (N), and themselves (D): the first few of ten, whose tens digit is t, or nothing.
#define WGMMA_N2(t)  "%" #t "0, %" #t "1"
#define WGMMA_N4(t)  WGMMA_N2(t) ", %" #t "2, %" #t "3"
#define WGMMA_N6(t)  WGMMA_N4(t) ", %" #t "4, %" #t "5"
#define WGMMA_N8(t)  WGMMA_N6(t) ", %" #t "6, %" #t "7"
#define WGMMA_N10(t) WGMMA_N8(t) ", %" #t "8, %" #t "9"
#define WGMMA_D2(t)  "+f"(d[t##0]), "+f"(d[t##1])
#define WGMMA_D4(t)  WGMMA_D2(t), "+f"(d[t##2]), "+f"(d[t##3])
#define WGMMA_D6(t)  WGMMA_D4(t), "+f"(d[t##4]), "+f"(d[t##5])
#define WGMMA_D8(t)  WGMMA_D6(t), "+f"(d[t##6]), "+f"(d[t##7])
#define WGMMA_D10(t) WGMMA_D8(t), "+f"(d[t##8]), "+f"(d[t##9])
// All of them, by their number.
#define WGMMA_N16    WGMMA_N10() ", " WGMMA_N6(1)
#define WGMMA_D16    WGMMA_D10(), WGMMA_D6(1)
#define WGMMA_N30    WGMMA_N10() ", " WGMMA_N10(1) ", " WGMMA_N10(2)
#define WGMMA_D30    WGMMA_D10(), WGMMA_D10(1), WGMMA_D10(2)
#define WGMMA_N32    WGMMA_N30 ", " WGMMA_N2(3)
#define WGMMA_D32    WGMMA_D30, WGMMA_D2(3)
#define WGMMA_N48    WGMMA_N30 ", " WGMMA_N10(3) ", " WGMMA_N8(4)
#define WGMMA_D48    WGMMA_D30, WGMMA_D10(3), WGMMA_D8(4)
#define WGMMA_N60    WGMMA_N30 ", " WGMMA_N10(3) ", " WGMMA_N10(4) ", " WGMMA_N10(5)
#define WGMMA_D60    WGMMA_D30, WGMMA_D10(3), WGMMA_D10(4), WGMMA_D10(5)
#define WGMMA_N64    WGMMA_N60 ", " WGMMA_N4(6)
#define WGMMA_D64    WGMMA_D60, WGMMA_D4(6)
#define WGMMA_N80    WGMMA_N60 ", " WGMMA_N10(6) ", " WGMMA_N10(7)
#define WGMMA_D80    WGMMA_D60, WGMMA_D10(6), WGMMA_D10(7)
#define WGMMA_N96    WGMMA_N80 ", " WGMMA_N10(8) ", " WGMMA_N6(9)
#define WGMMA_D96    WGMMA_D80, WGMMA_D10(8), WGMMA_D6(9)
#define WGMMA_N110   WGMMA_N80 ", " WGMMA_N10(8) ", " WGMMA_N10(9) ", " WGMMA_N10(10)
#define WGMMA_D110   WGMMA_D80, WGMMA_D10(8), WGMMA_D10(9), WGMMA_D10(10)
#define WGMMA_N112   WGMMA_N110 ", " WGMMA_N2(11)
#define WGMMA_D112   WGMMA_D110, WGMMA_D2(11)
#define WGMMA_N128   WGMMA_N110 ", " WGMMA_N10(11) ", " WGMMA_N8(12)
#define WGMMA_D128   WGMMA_D110, WGMMA_D10(11), WGMMA_D8(12)

// n: columns, for which a thread has `count` accumulators. x, y, z, t, u: the numbers of the operands behind these.
#define WGMMA(n, count, k, type, x, y, z, turns, extra)                                                      \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #z ", 0;\n"                                        \
               "wgmma.mma_async.sync.aligned.m64n" #n "k" k ".f32." type "." type " {" WGMMA_N##count "}, %" #x ", %" #y \
               ", adds, 1, 1" turns ";\n}"                                                                   \
               : WGMMA_D##count                                                                              \
               : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_TURNED , "n"(a_turned), "n"(b_turned)
#define WGMMA_NONE
#define WGMMA_KINDS(n, count, x, y, z, t, u)                                                                 \
  do {                                                                                                       \
    if constexpr (kind == KIND_BF16) WGMMA(n, count, "16", "bf16", x, y, z, ", %" #t ", %" #u, WGMMA_TURNED); \
    else if constexpr (kind == KIND_FP16) WGMMA(n, count, "16", "f16", x, y, z, ", %" #t ", %" #u, WGMMA_TURNED); \
    else WGMMA(n, count, "32", "e4m3", x, y, z, "", WGMMA_NONE);                                             \
  } while (0)

// d = A B + (adds ? d : 0) of 64 rows, 2 * regs columns and 32 bytes of k. kind: of A and B. turned: MN-major, which fp8
// has not.
template <int regs, int kind, int a_turned, int b_turned>
INLINE void wgmma(float (&d)[regs], uint64_t a, uint64_t b, int adds) {
  static_assert(kind != KIND_FP8 || (!a_turned && !b_turned), "fp8 lies along k");
  if constexpr (regs == 8) WGMMA_KINDS(16, 8(), 8, 9, 10, 11, 12);
  else if constexpr (regs == 16) WGMMA_KINDS(32, 16, 16, 17, 18, 19, 20);
  else if constexpr (regs == 32) WGMMA_KINDS(64, 32, 32, 33, 34, 35, 36);
  else if constexpr (regs == 48) WGMMA_KINDS(96, 48, 48, 49, 50, 51, 52);
  else if constexpr (regs == 64) WGMMA_KINDS(128, 64, 64, 65, 66, 67, 68);
  else if constexpr (regs == 80) WGMMA_KINDS(160, 80, 80, 81, 82, 83, 84);
  else if constexpr (regs == 96) WGMMA_KINDS(192, 96, 96, 97, 98, 99, 100);
  else if constexpr (regs == 112) WGMMA_KINDS(224, 112, 112, 113, 114, 115, 116);
  else WGMMA_KINDS(256, 128, 128, 129, 130, 131, 132);
}

#define WGMMA_LEFT(n, count, type, w, x, y, z, b_at)                                                         \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" WGMMA_N##count           \
               "}, {%" #w ", %" #x ", %" #y ", %" #z "}, %" #b_at ", 1, 1, 1, 1;"                            \
               : WGMMA_D##count                                                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define WGMMA_LEFT_KINDS(n, count, w, x, y, z, b_at)                                                         \
  do {                                                                                                       \
    if constexpr (kind == KIND_BF16) WGMMA_LEFT(n, count, "bf16", w, x, y, z, b_at);                         \
    else WGMMA_LEFT(n, count, "f16", w, x, y, z, b_at);                                                      \
  } while (0)

// d += A B of 64 rows, 2 * regs columns and 16 k; A in registers, B MN-major.
template <int regs, int kind> INLINE void wgmma_left(float (&d)[regs], const uint32_t (&a)[4], uint64_t b) {
  if constexpr (regs == 32) WGMMA_LEFT_KINDS(64, 32, 32, 33, 34, 35, 36);
  else if constexpr (regs == 64) WGMMA_LEFT_KINDS(128, 64, 64, 65, 66, 67, 68);
  else WGMMA_LEFT_KINDS(256, 128, 128, 129, 130, 131, 132);
}

#endif
