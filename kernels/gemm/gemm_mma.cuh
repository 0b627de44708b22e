// wgmma of more widths than kernels/hopper.cuh has: 16, 32 and 192 columns. sm_90a alone.
#ifndef SOL_KERNELS_GEMM_MMA_CUH
#define SOL_KERNELS_GEMM_MMA_CUH

#include "hopper.cuh"

#define WGMMA_16(k, type, turns, extra)                                                                      \
  asm volatile(                                                                                              \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %10, 0;\n"                                                     \
      "wgmma.mma_async.sync.aligned.m64n16k" k ".f32." type "." type " {"                                    \
      "%0, %1, %2, %3, %4, %5, %6, %7 "                                                                      \
      "}, %8, %9, adds, 1, 1" turns ";\n}"                                                                   \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])       \
      : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_32(k, type, turns, extra)                                                                      \
  asm volatile(                                                                                              \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %18, 0;\n"                                                     \
      "wgmma.mma_async.sync.aligned.m64n32k" k ".f32." type "." type " {"                                    \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 "                                \
      "}, %16, %17, adds, 1, 1" turns ";\n}"                                                                 \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),                  \
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),              \
        "+f"(d[14]), "+f"(d[15])                                                                             \
      : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_192(k, type, turns, extra)                                                                     \
  asm volatile(                                                                                              \
      "{\n.reg .pred adds;\nsetp.ne.b32 adds, %98, 0;\n"                                                     \
      "wgmma.mma_async.sync.aligned.m64n192k" k ".f32." type "." type " {"                                   \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, "      \
      "%21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "      \
      "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, "      \
      "%59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, "      \
      "%78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95 "            \
      "}, %96, %97, adds, 1, 1" turns ";\n}"                                                                 \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),                  \
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),              \
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),           \
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),           \
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),           \
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),           \
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),           \
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),           \
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),           \
        "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]),           \
        "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]),           \
        "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]),           \
        "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]),           \
        "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])                                      \
      : "l"(a), "l"(b), "r"(adds)extra)
#define WGMMA_TURNED , "n"(a_turned), "n"(b_turned)
#define WGMMA_NONE
#define WGMMA_HALF(n, type, turns) WGMMA_##n("16", type, turns, WGMMA_TURNED)
#define WGMMA_KINDS(n, turns)                                                                                \
  do {                                                                                                       \
    if constexpr (kind == KIND_BF16) WGMMA_HALF(n, "bf16", turns);                                           \
    else if constexpr (kind == KIND_FP16) WGMMA_HALF(n, "f16", turns);                                       \
    else WGMMA_##n("32", "e4m3", "", WGMMA_NONE);                                                            \
  } while (0)

// As wgmma of kernels/hopper.cuh.
template <int regs, int kind, int a_turned, int b_turned>
INLINE void gemm_wgmma(float (&d)[regs], uint64_t a, uint64_t b, int adds) {
  if constexpr (regs == 8) WGMMA_KINDS(16, ", %11, %12");
  else if constexpr (regs == 16) WGMMA_KINDS(32, ", %19, %20");
  else if constexpr (regs == 96) WGMMA_KINDS(192, ", %99, %100");
  else wgmma<regs, kind, a_turned, b_turned>(d, a, b, adds);
}
#undef WGMMA_KINDS
#undef WGMMA_HALF
#undef WGMMA_TURNED
#undef WGMMA_NONE
#undef WGMMA_16
#undef WGMMA_32
#undef WGMMA_192

#endif
