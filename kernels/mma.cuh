// Tensor cores of sm_80 and later, one warp at a time, and what goes with them: ldmatrix, asynchronous copies, softmax of the
// accumulators. Tiles in shared memory are rows of whole 16-byte pieces, swizzled so that eight rows' pieces of one column, which
// ldmatrix reads at a time, lie in different banks.
#ifndef SOL_KERNELS_MMA_CUH
#define SOL_KERNELS_MMA_CUH

#include "common.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800

// Where piece `piece` of row `row` is, in bytes from the tile's start; a row has ROW_BYTES, a multiple of 64.
template <int ROW_BYTES> INLINE uint32_t tile_place(int row, int piece) {
  int turn = ROW_BYTES % 128 ? (row >> 1) & 3 : row & 7;
  return (uint32_t)(row * ROW_BYTES + (piece ^ turn) * 16);
}

INLINE uint32_t tile_address(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}

// 16 bytes, or zeros where there are none.
INLINE void copy_async(uint32_t to, const void *from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(there ? 16 : 0)
               : "memory");
}
INLINE void copy_commit(void) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Until all but `left` of this thread's groups are there.
template <int left> INLINE void copy_wait(void) {
  asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

// The same where addresses are multiples of an element, of `bytes`, alone; zeros where there are none.
INLINE void copy_elements(uint32_t to, const void *from, bool there, int bytes) {
  Vec v = {};
  if (there)
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
      if (bytes == 2) v.h[i / 2] = ((const uint16_t *)from)[i / 2];
      else v.b[i] = ((const uint8_t *)from)[i], v.b[i + 1] = ((const uint8_t *)from)[i + 1];
    }
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.u[0]), "r"(v.u[1]), "r"(v.u[2]), "r"(v.u[3])
               : "memory");
}

// Four matrices of 8 by 8; lane i gives the address of row i % 8 of matrix i / 8.
INLINE void load_matrices(uint32_t (&r)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
INLINE void load_matrices_turned(uint32_t (&r)[4], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at)
               : "memory");
}
INLINE void load_two_turned(uint32_t (&r)[2], uint32_t at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");
}

// d += A B, 16 rows by 8 columns, k of 16. kind: fp16 or bf16, a literal.
INLINE void multiply_16x8(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1, int kind) {
#define MULTIPLY(type)                                                                                       \
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, "               \
               "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                               \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  if (kind == KIND_FP16) MULTIPLY("f16");
  else MULTIPLY("bf16");
#undef MULTIPLY
}

// Two neighbouring columns' tiles of 16 by 8 as the left operand of the next product, 16 of its k.
INLINE void as_left_operand(uint32_t (&a)[4], const float (&low)[4], const float (&high)[4], int kind) {
  a[0] = narrow2(low[0], low[1], kind), a[1] = narrow2(low[2], low[3], kind);
  a[2] = narrow2(high[0], high[1], kind), a[3] = narrow2(high[2], high[3], kind);
}

#if __CUDA_ARCH__ >= 890
// Four fp8 as two pairs of fp16. The halves of a word are named as such, so that ptxas takes the upper one without a shift.
INLINE void halves_of_fp8(uint32_t four, uint32_t *low, uint32_t *high) {
  asm("{.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.rn.f16x2.e4m3x2 %0, l;\ncvt.rn.f16x2.e4m3x2 %1, h;}" : "=r"(*low), "=r"(*high) : "r"(four));
}
#endif

INLINE float exp_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The four threads that share a row.
INLINE float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
INLINE float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

// A thread's two rows of a softmax that goes over the columns a tile at a time: the largest score so far and this thread's part
// of the sum of 2^(score - largest).
typedef struct Softmax {
  float most[2], sum[2];
} Softmax;

INLINE Softmax softmax_start(void) {
  return {{-INFINITY, -INFINITY}, {0, 0}};
}

// Scores, times `unit`, become powers of two relative to the largest; by[i]: what was summed before of row i is to be multiplied by.
template <int tiles> INLINE void softmax_tile(float (&s)[tiles][4], Softmax *x, float unit, float (&by)[2]) {
#pragma unroll
  for (int row = 0; row < 2; row++) {
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < tiles; i++) most = fmaxf(most, fmaxf(s[i][row * 2], s[i][row * 2 + 1]));
    most = fmaxf(x->most[row], quad_max(most));
    float base = most == -INFINITY ? 0 : most * unit, sum = 0; // all left out: 2^-infinity is 0
    by[row] = exp_two(x->most[row] * unit - base);
#pragma unroll
    for (int i = 0; i < tiles; i++)
#pragma unroll
      for (int j = row * 2; j < row * 2 + 2; j++) {
        s[i][j] = exp_two(s[i][j] * unit - base);
        sum += s[i][j];
      }
    x->sum[row] = x->sum[row] * by[row] + sum;
    x->most[row] = most;
  }
}

// cap * tanh(x), where `twice` is 2 x / log 2: through a power of two, which is exact enough for exponents.
INLINE float soft_capped(float twice, float cap) {
  return cap - __fdividef(2 * cap, exp_two(twice) + 1);
}

template <int tiles> INLINE void cap_scores(float (&s)[tiles][4], float before, float cap) {
#pragma unroll
  for (int i = 0; i < tiles; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) s[i][j] = soft_capped(s[i][j] * before, cap);
}
// Leaves out scores whose column, counted from the thread's first, is not from `from` to `to` - 1 of its row.
template <int tiles> INLINE void mask_scores(float (&s)[tiles][4], const int (&from)[2], const int (&to)[2]) {
#pragma unroll
  for (int i = 0; i < tiles; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      int column = i * 8 + j % 2;
      s[i][j] = column >= from[j / 2] && column < to[j / 2] ? s[i][j] : -INFINITY;
    }
}

#endif
#endif
