// What the kernels of row normalisations have in common: a row's addresses, the arithmetic on a chunk of it, and
// reductions.
//
// NormKernel holds compile-time constants that fold away: short rows are bound by instruction issue.
#ifndef SOL_KERNELS_NORM_ROW_CUH
#define SOL_KERNELS_NORM_ROW_CUH

#include "elementwise.cuh"
#include "ends.cuh"
#include "norm.h"
#include "row.cuh"

enum { NORM_RMS, NORM_RMS_FP8, NORM_ADD, NORM_EMBED, NORM_LAYER };
enum { TYPE_f = KIND_FP32, TYPE_h = KIND_FP16, TYPE_b = KIND_BF16 };

typedef struct NormKernel {
  int op, kind;
  int chunks; // that a thread holds in registers; big: whose weights it loads at once
  int lanes;  // that share a row; 0: a whole block does
  int early;  // weights are loaded with the row, not after the reduction; big: the first of them
  int striped; // neighbouring lanes have neighbouring words (norm_place.cuh)
  int wide;    // layernorm's big: vectors are of 4 bytes, elements of 2
} NormKernel;

INLINE int norm_bytes(NormKernel c) { // of an element
  return c.kind == KIND_FP32 ? 4 : 2;
}

INLINE uint64_t block_index(void) {
  return (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
}

// ---- One row

// stream: evicted from L2 first, which then keeps more of embed_rmsnorm's table.
template <typename V> INLINE void norm_put(NormKernel c, bool stream, void *to, V v) {
  if (c.op == NORM_EMBED && stream) __stcs((V *)to, v);
  else *(V *)to = v;
}

typedef struct NormRow {
  const char *x, *residual;
  char *y, *second; // NULL: not wanted
  bool stream;      // norm_put
  bool known;       // embed: the id is one of the table's
} NormRow;

// Addresses of a row's first elements. from: the row of x.
INLINE NormRow norm_row_of(NormKernel c, const NormParams *p, uint64_t row, int64_t from) {
  NormRow r;
  int64_t at = (int64_t)row;
  r.known = true, r.stream = p->stream;
  r.x = (const char *)p->x + from * p->x_stride;
  r.y = (char *)p->y + at * p->y_stride;
  r.residual = c.op == NORM_ADD ? (const char *)p->residual + at * p->residual_stride : nullptr;
  r.second = nullptr;
  if (c.op == NORM_ADD || (c.op == NORM_EMBED && p->second)) r.second = (char *)p->second + at * p->second_stride;
  return r;
}

// The same, with the id looked up. Rows at m and beyond are not there: nothing may be accessed.
INLINE NormRow norm_row(NormKernel c, const NormParams *p, uint64_t row, bool first_thread) {
  if (c.op != NORM_EMBED) return norm_row_of(c, p, row, (int64_t)row);
  int64_t from = row < p->m ? load_id(p->ids, row, p->wide_ids) : 0;
  bool known = (uint64_t)from < (uint64_t)p->vocab;
  if (!known && p->bad && first_thread) *p->bad = 1;
  NormRow r = norm_row_of(c, p, row, known ? from : 0);
  r.known = known;
  return r;
}

INLINE Vec load16(const char *at, bool there) {
  Vec v;
  v.v = make_uint4(0, 0, 0, 0);
  if (there) v.v = *(const uint4 *)at;
  return v;
}

// The same, but volatile, so that the compiler does not move the load down to where its value is first used.
INLINE Vec load16_now(const char *at, bool there) {
  Vec v;
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %5, 0;\n mov.b32 %0, 0;\n mov.b32 %1, 0;\n mov.b32 %2, 0;\n"
               " mov.b32 %3, 0;\n @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
               : "=&r"(v.u[0]), "=&r"(v.u[1]), "=&r"(v.u[2]), "=&r"(v.u[3])
               : "l"(__cvta_generic_to_global(at)), "r"((int)there));
  return v;
}

// Keeps a chunk packed in registers as it was loaded: converted to floats it would take twice as many.
INLINE void keep_packed(Vec *v) {
  asm volatile("" : "+r"(v->u[0]), "+r"(v->u[1]), "+r"(v->u[2]), "+r"(v->u[3]));
}

// s + t, rounded to the type.
INLINE Vec norm_add(NormKernel c, Vec s, Vec t) {
  const int bytes = norm_bytes(c);
  float f[8], g[8];
  Vec v;
  widen(&s, c.kind, bytes, f);
  widen(&t, c.kind, bytes, g);
#pragma unroll
  for (int j = 0; j < 16 / bytes; j++) f[j] += g[j];
  narrow(&v, c.kind, bytes, f);
  return v;
}

// The row's sum of squares, or for layernorm its sum, over one chunk; two chains of additions.
INLINE float2 norm_sum(NormKernel c, Vec v, float2 s) {
  const int bytes = norm_bytes(c);
  float f[8];
  widen(&v, c.kind, bytes, f);
#pragma unroll
  for (int j = 0; j < 16 / bytes; j += 2) {
    s.x = c.op == NORM_LAYER ? s.x + f[j] : fmaf(f[j], f[j], s.x);
    s.y = c.op == NORM_LAYER ? s.y + f[j + 1] : fmaf(f[j + 1], f[j + 1], s.y);
  }
  return s;
}

INLINE float2 norm_squares(NormKernel c, Vec v, float mean, float2 s) {
  const int bytes = norm_bytes(c);
  float f[8];
  widen(&v, c.kind, bytes, f);
#pragma unroll
  for (int j = 0; j < 16 / bytes; j += 2) {
    s.x = fmaf(f[j] - mean, f[j] - mean, s.x);
    s.y = fmaf(f[j + 1] - mean, f[j + 1] - mean, s.y);
  }
  return s;
}

// The output of one chunk: scale is 1 / deviation.
INLINE void norm_affine(NormKernel c, const NormParams *p, float *f, const float *w, const float *b, float mean, float scale) {
  float shift = scale * p->offset;
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j++) {
    float by = fmaf(w[j], scale, shift); // scale * (weight + offset)
    f[j] = c.op == NORM_LAYER ? fmaf(f[j] - mean, by, b[j]) : f[j] * by;
  }
}

INLINE Vec norm_output(NormKernel c, const NormParams *p, Vec v, Vec weight, Vec bias, float mean, float scale) {
  const int bytes = norm_bytes(c);
  float f[8], w[8], b[8];
  widen(&v, c.kind, bytes, f);
  widen(&weight, c.kind, bytes, w);
  if (c.op == NORM_LAYER) widen(&bias, c.kind, bytes, b);
  norm_affine(c, p, f, w, b, mean, scale);
  narrow(&v, c.kind, bytes, f);
  return v;
}

// ---- Reductions: the same order for every row.

// A chunk's results, to the type of the output; they start on 16 bytes of it, or on as many as they have.
INLINE void norm_store(NormKernel c, const NormParams *p, char *y, int column, const float *f) {
  const int per = 16 / norm_bytes(c);
  uint32_t w[8];
  if (p->y_kind == c.kind) {
    Vec v;
    narrow(&v, c.kind, norm_bytes(c), f);
    *(uint4 *)(y + (int64_t)column * norm_bytes(c)) = v.v;
  } else if (p->y_kind == KIND_FP32) {
    from_floats(f, per, KIND_FP32, w);
    store_aligned(y + (int64_t)column * 4, 4, w);
    if (per == 8) store_aligned(y + (int64_t)column * 4 + 16, 4, w + 4);
  } else {
    from_floats(f, per, p->y_kind, w);
    store_aligned(y + (int64_t)column * 2, per / 2, w);
  }
}

// Turns a chunk into its result, and stores it.
INLINE void norm_give(NormKernel c, const NormParams *p, Vec v, Vec weight, Vec bias, float mean, float scale, char *y, int column) {
  const int bytes = norm_bytes(c);
  if (p->y_kind == c.kind) {
    *(uint4 *)(y + (int64_t)column * bytes) = norm_output(c, p, v, weight, bias, mean, scale).v;
    return;
  }
  float f[8], w[8], b[8];
  keep_packed(&v), keep_packed(&weight); // not widened before the branch: there are no registers for that
  widen(&v, c.kind, bytes, f);
  widen(&weight, c.kind, bytes, w);
  if (c.op == NORM_LAYER) widen(&bias, c.kind, bytes, b);
  norm_affine(c, p, f, w, b, mean, scale);
  norm_store(c, p, y, column, f);
}

// Weights or biases of four columns, as floats.
INLINE void norm_vector4(NormKernel c, const NormParams *p, const void *vector, int column, float *f) {
  if (norm_bytes(c) == 4 || p->weight_kind != c.kind) {
    *(float4 *)f = *(const float4 *)((const char *)vector + (int64_t)column * 4);
  } else {
    uint2 two = *(const uint2 *)((const char *)vector + (int64_t)column * 2);
    float2 low = widen2(two.x, c.kind), high = widen2(two.y, c.kind);
    f[0] = low.x, f[1] = low.y, f[2] = high.x, f[3] = high.y;
  }
}

INLINE float lanes_sum(float v, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) v += __shfl_xor_sync(~0u, v, o);
  return v;
}

INLINE float eight(const float *part) {
  float4 a = *(const float4 *)part, b = *(const float4 *)(part + 4);
  return ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
}

// Over a block, every thread gets the sum. `part` has 40 places and is used once.
INLINE float block_sum(float v, float *part) {
  int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  v = lanes_sum(v, 32);
  // Partial sums are read eight at a time: the last warp fills the last eight up.
  if (lane == 0 || (lane < 8 && warp == warps - 1)) part[warp + lane] = lane ? 0 : v;
  __syncthreads();
  v = eight(part);
#pragma unroll 1
  for (int i = 8; i < warps; i += 8) v += eight(part + i);
  return v;
}

// The same, of one chunk a thread or of two, added in the same order, so that both kernels give the same bits: with one
// chunk the upper half of a warp continues from the sums of the lower half; with two, half a warp has the chunks that a
// whole warp has otherwise.
INLINE float fixed_order_sum(NormKernel c, const Vec *v, float *part) {
  const int each = c.chunks == 1 ? 16 : 8;
  int warps = blockDim.x / 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32 - (c.chunks == 1 ? 16 : 0);
  float2 s = norm_sum(c, v[0], make_float2(0, 0));
  if (c.chunks == 1) s = make_float2(__shfl_xor_sync(~0u, s.x, 16), __shfl_xor_sync(~0u, s.y, 16));
  s = norm_sum(c, v[c.chunks - 1], s);
  float sum = lanes_sum(s.x + s.y, 16);
  if (c.chunks == 2) sum += __shfl_xor_sync(~0u, sum, 16);
  bool fill = warp == warps - 1 && lane >= 0 && warp + lane < (warps + each - 1) / each * each;
  if (lane == 0 || fill) part[warp + lane] = lane ? 0 : sum;
  __syncthreads();
  sum = 0;
#pragma unroll 1
  for (int i = 0; i < warps; i += each) sum += each == 8 ? eight(part + i) : eight(part + i) + eight(part + i + 8);
  return sum;
}

INLINE float group_sum(NormKernel c, float v, float *part) {
  return c.lanes ? lanes_sum(v, c.lanes) : block_sum(v, part);
}

// ---- Prefetches

// The ends of what is written of a row, by `all` threads, of which this is number t. Called while the predecessor still runs: a store waits for the sector.
INLINE void norm_ends(NormKernel c, const NormParams *p, uint64_t row, int t, int all) {
  if (row >= p->m || !(p->ends | p->second_ends)) return;
  NormRow r = norm_row_of(c, p, row, 0);
  if (p->ends) ends_prefetch(r.y, 0, p->ends, 1, t, all);
  if ((c.op == NORM_ADD || c.op == NORM_EMBED) && p->second_ends) ends_prefetch(r.second, 0, p->second_ends, 1, t, all);
}

INLINE void prefetch_far(const void *at, int bytes) { // both multiples of 16
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(bytes) : "memory");
#endif
}

// Prefetches into L2 a part of the row that is p->ahead rows further on: `from` bytes into it, `bytes` long. One thread
// does it for a block; the loads of a later block then hit in L2. odd: the row's start or length is not a multiple of 16
// bytes, and only the whole aligned 16 bytes within it are prefetched.
INLINE void norm_prefetch(NormKernel c, const NormParams *p, uint64_t row, int64_t from, int bytes, bool odd) {
#if __CUDA_ARCH__ >= 900
  int64_t at = (int64_t)row + p->ahead, id = at;
  if (!p->ahead || (uint64_t)at >= p->m) return;
  if (c.op == NORM_EMBED) {
    id = load_id(p->ids, (uint64_t)at, p->wide_ids);
    if ((uint64_t)id >= (uint64_t)p->vocab) return;
  }
#pragma unroll
  for (int k = 0; k < (c.op == NORM_ADD ? 2 : 1); k++) {
    const char *x = k ? (const char *)p->residual + at * p->residual_stride : (const char *)p->x + id * p->x_stride;
    int size = bytes;
    x += from;
    if (odd) {
      int head = (int)(-(uintptr_t)x & 15);
      x += head, size = (size - head) & ~15;
    }
    if (size > 0) prefetch_far(x, size);
  }
#endif
}

#endif
