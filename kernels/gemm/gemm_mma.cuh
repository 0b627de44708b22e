// wgmma of more widths than kernels/hopper.cuh has: 16, 32, 96, 160, 192 and 224 columns. sm_90a alone.
#ifndef SOL_KERNELS_GEMM_MMA_CUH
#define SOL_KERNELS_GEMM_MMA_CUH

#include "hopper.cuh"

// The accumulators' names in the instruction, and themselves: the first few of ten, whose tens digit is t, or nothing.
#define WGMMA_N2(t)  "%" #t "0, %" #t "1"
#define WGMMA_N6(t)  WGMMA_N2(t) ", %" #t "2, %" #t "3, %" #t "4, %" #t "5"
#define WGMMA_N8(t)  WGMMA_N6(t) ", %" #t "6, %" #t "7"
#define WGMMA_N10(t) WGMMA_N8(t) ", %" #t "8, %" #t "9"
#define WGMMA_D2(t)  "+f"(d[t##0]), "+f"(d[t##1])
#define WGMMA_D6(t)  WGMMA_D2(t), "+f"(d[t##2]), "+f"(d[t##3]), "+f"(d[t##4]), "+f"(d[t##5])
#define WGMMA_D8(t)  WGMMA_D6(t), "+f"(d[t##6]), "+f"(d[t##7])
#define WGMMA_D10(t) WGMMA_D8(t), "+f"(d[t##8]), "+f"(d[t##9])
#define WGMMA_N30    WGMMA_N10() ", " WGMMA_N10(1) ", " WGMMA_N10(2)
#define WGMMA_D30    WGMMA_D10(), WGMMA_D10(1), WGMMA_D10(2)
#define WGMMA_N80    WGMMA_N30 ", " WGMMA_N10(3) ", " WGMMA_N10(4) ", " WGMMA_N10(5) ", " WGMMA_N10(6) ", " WGMMA_N10(7)
#define WGMMA_D80    WGMMA_D30, WGMMA_D10(3), WGMMA_D10(4), WGMMA_D10(5), WGMMA_D10(6), WGMMA_D10(7)
#define WGMMA_N110   WGMMA_N80 ", " WGMMA_N10(8) ", " WGMMA_N10(9) ", " WGMMA_N10(10)
#define WGMMA_D110   WGMMA_D80, WGMMA_D10(8), WGMMA_D10(9), WGMMA_D10(10)

// x, y, z, t, u: the numbers of the operands behind the accumulators; the last argument: the accumulators.
#define WGMMA(n, k, type, x, y, z, turns, extra, names, ...)                                                 \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #z ", 0;\n"                                        \
               "wgmma.mma_async.sync.aligned.m64n" #n "k" k ".f32." type "." type " {" names "}, %" #x ", %" #y \
               ", adds, 1, 1" turns ";\n}"                                                                   \
               : __VA_ARGS__                                                                                 \
               : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_TURNED , "n"(a_turned), "n"(b_turned)
#define WGMMA_NONE
#define WGMMA_KINDS(n, x, y, z, t, u, names, ...)                                                            \
  do {                                                                                                       \
    if constexpr (kind == KIND_BF16)                                                                         \
      WGMMA(n, "16", "bf16", x, y, z, ", %" #t ", %" #u, WGMMA_TURNED, names, __VA_ARGS__);                  \
    else if constexpr (kind == KIND_FP16)                                                                    \
      WGMMA(n, "16", "f16", x, y, z, ", %" #t ", %" #u, WGMMA_TURNED, names, __VA_ARGS__);                   \
    else WGMMA(n, "32", "e4m3", x, y, z, "", WGMMA_NONE, names, __VA_ARGS__);                                \
  } while (0)

// As wgmma of kernels/hopper.cuh.
template <int regs, int kind, int a_turned, int b_turned>
INLINE void gemm_wgmma(float (&d)[regs], uint64_t a, uint64_t b, int adds) {
  if constexpr (regs == 8) WGMMA_KINDS(16, 8, 9, 10, 11, 12, WGMMA_N8(), WGMMA_D8());
  else if constexpr (regs == 16)
    WGMMA_KINDS(32, 16, 17, 18, 19, 20, WGMMA_N10() ", " WGMMA_N6(1), WGMMA_D10(), WGMMA_D6(1));
  else if constexpr (regs == 48)
    WGMMA_KINDS(96, 48, 49, 50, 51, 52, WGMMA_N30 ", " WGMMA_N10(3) ", " WGMMA_N8(4), WGMMA_D30, WGMMA_D10(3), WGMMA_D8(4));
  else if constexpr (regs == 80) WGMMA_KINDS(160, 80, 81, 82, 83, 84, WGMMA_N80, WGMMA_D80);
  else if constexpr (regs == 96)
    WGMMA_KINDS(192, 96, 97, 98, 99, 100, WGMMA_N80 ", " WGMMA_N10(8) ", " WGMMA_N6(9), WGMMA_D80, WGMMA_D10(8), WGMMA_D6(9));
  else if constexpr (regs == 112)
    WGMMA_KINDS(224, 112, 113, 114, 115, 116, WGMMA_N110 ", " WGMMA_N2(11), WGMMA_D110, WGMMA_D2(11));
  else wgmma<regs, kind, a_turned, b_turned>(d, a, b, adds);
}
#undef WGMMA
#undef WGMMA_KINDS
#undef WGMMA_TURNED
#undef WGMMA_NONE
#undef WGMMA_N2
#undef WGMMA_N6
#undef WGMMA_N8
#undef WGMMA_N10
#undef WGMMA_N30
#undef WGMMA_N80
#undef WGMMA_N110
#undef WGMMA_D2
#undef WGMMA_D6
#undef WGMMA_D8
#undef WGMMA_D10
#undef WGMMA_D30
#undef WGMMA_D80
#undef WGMMA_D110

#endif
