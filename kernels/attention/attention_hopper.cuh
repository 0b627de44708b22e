// wgmma whose left operand is in registers, and tensor copies of four dimensions: what attention needs beyond hopper.cuh.
#ifndef SOL_KERNELS_ATTENTION_HOPPER_CUH
#define SOL_KERNELS_ATTENTION_HOPPER_CUH

#include "attention/attention_parts.cuh"
#include "hopper.cuh"
#include "mma.cuh"

INLINE void tensor_load_4d(void *to, const void *map, uint64_t *bar, int x, int y, int z, int w) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];" ::"r"(shared_address(to)),
      "l"(map), "r"(shared_address(bar)), "r"(x), "r"(y), "r"(z), "r"(w)
      : "memory");
}

INLINE void named_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}

// Values that wgmma wrote are not to be used before this, which stands after the wait.
template <int count> INLINE void settle(float (&d)[count]) {
#pragma unroll
  for (int i = 0; i < count; i++) asm volatile("" : "+f"(d[i])::"memory");
}

// Caps and masks scores, as cap_scores and mask_scores do, and raises the largest of each row, 32 columns at a time: those that no row of the
// warp sees (all: any does) are left alone. Returns a bit for each 32 columns looked at.
template <int tiles>
INLINE uint32_t look_at_scores(float (&s)[tiles][4], const ScoreUnit &u, const int (&from)[2], const int (&to)[2], Seen all, float (&most)[2]) {
  uint32_t seen = 0;
#pragma unroll
  for (int g = 0; g < tiles / 4; g++) {
    if (g * 32 >= all.to || g * 32 + 32 <= all.from) continue;
    seen |= 1u << g;
    if (u.cap != 0) cap_scores(*(float(*)[4][4]) & s[g * 4], u.before, u.cap);
#pragma unroll
    for (int i = g * 16; i < g * 16 + 16; i++) {
      int column = i / 4 * 8 + i % 2, row = i % 4 / 2;
      float *one = &s[i / 4][i % 4];
      *one = column >= from[row] && column < to[row] ? *one : -INFINITY;
      most[row] = fmaxf(most[row], *one);
    }
  }
  return seen;
}

// As softmax_tile, of the columns looked at; the weights of others are zero. most: of the scores.
template <int tiles> INLINE void weigh_scores(float (&s)[tiles][4], uint32_t seen, const float (&most)[2], Softmax *x, float unit, float (&by)[2]) {
  float base[2], sum[2] = {};
#pragma unroll
  for (int row = 0; row < 2; row++) {
    float all = fmaxf(x->most[row], quad_max(most[row]));
    base[row] = all == -INFINITY ? 0 : all * unit; // all left out: 2^-infinity is 0
    by[row] = exp_two(x->most[row] * unit - base[row]), x->most[row] = all;
  }
#pragma unroll
  for (int g = 0; g < tiles / 4; g++)
    if (seen >> g & 1) {
#pragma unroll
      for (int i = g * 16; i < g * 16 + 16; i++) sum[i % 4 / 2] += s[i / 4][i % 4] = exp_two(s[i / 4][i % 4] * unit - base[i % 4 / 2]);
    } else
#pragma unroll
      for (int i = g * 16; i < g * 16 + 16; i++) s[i / 4][i % 4] = 0;
#pragma unroll
  for (int row = 0; row < 2; row++) x->sum[row] = x->sum[row] * by[row] + sum[row];
}

#define WGMMA_LEFT_64(type) \
  asm volatile( \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31" \
      "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define WGMMA_LEFT_128(type) \
  asm volatile( \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63" \
      "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]) \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define WGMMA_LEFT_256(type) \
  asm volatile( \
      "wgmma.mma_async.sync.aligned.m64n256k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127" \
      "}, {%128, %129, %130, %131}, %132, 1, 1, 1, 1;" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), \
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), \
        "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), \
        "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), \
        "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), \
        "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), \
        "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), \
        "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), \
        "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), \
        "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127]) \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))

// d += A B of 64 rows, 2 * regs columns and 16 k; A in registers, B MN-major.
template <int regs, int kind> INLINE void wgmma_left(float (&d)[regs], const uint32_t (&a)[4], uint64_t b) {
  if constexpr (regs == 32 && kind == KIND_BF16) WGMMA_LEFT_64("bf16");
  else if constexpr (regs == 32) WGMMA_LEFT_64("f16");
  else if constexpr (regs == 64 && kind == KIND_BF16) WGMMA_LEFT_128("bf16");
  else if constexpr (regs == 64) WGMMA_LEFT_128("f16");
  else if constexpr (kind == KIND_BF16) WGMMA_LEFT_256("bf16");
  else WGMMA_LEFT_256("f16");
}
#undef WGMMA_LEFT_64
#undef WGMMA_LEFT_128
#undef WGMMA_LEFT_256

#endif
