// Row normalisations at the speed of a copy: rows of whole, aligned 16-byte chunks, one element type throughout.
// A row is loaded once, held, reduced over and written once. Some lanes of a warp, a block, or a cluster of blocks
// take a row; which of them depends on the row's length alone, so that its result does not depend on the number of
// rows. norm_any.cuh has everything else.
//
// What is known when a kernel is compiled (NormKernel) folds away: on short rows the time goes into instructions.
#ifndef SOL_KERNELS_NORM_CUH
#define SOL_KERNELS_NORM_CUH

#include "elementwise.cuh"
#include "norm.h"
#include "row.cuh"

enum { NORM_RMS, NORM_RMS_FP8, NORM_ADD, NORM_EMBED, NORM_LAYER };
enum { TYPE_f = KIND_FP32, TYPE_h = KIND_FP16, TYPE_b = KIND_BF16 };

typedef struct NormKernel {
  int op, kind;
  int chunks; // that a thread holds in registers; big: whose weights it asks for at once
  int lanes;  // that share a row; 0: a whole block does
  int ahead;  // weights are loaded with the row, not after the reduction; big: the first of them
  int beside; // neighbouring threads have neighbouring words (norm_place.cuh)
} NormKernel;

INLINE int norm_bytes(NormKernel c) { // of an element
  return c.kind == KIND_FP32 ? 4 : 2;
}

INLINE uint64_t block_index(void) {
  return (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
}

// ---- One row

typedef struct NormRow {
  const char *x, *residual;
  char *y, *second; // NULL: not wanted
  bool known;       // embed: the id is one of the table's
} NormRow;

// Addresses of a row's first elements. from: the row of x.
INLINE NormRow norm_row_of(NormKernel c, const NormParams *p, uint64_t row, int64_t from) {
  NormRow r;
  int64_t at = (int64_t)row;
  r.known = true;
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

// The same, here and now: compilers put off loads whose values are needed late.
INLINE Vec load16_now(const char *at, bool there) {
  Vec v;
  asm volatile("{\n .reg .pred p;\n setp.ne.s32 p, %5, 0;\n mov.b32 %0, 0;\n mov.b32 %1, 0;\n mov.b32 %2, 0;\n"
               " mov.b32 %3, 0;\n @p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
               : "=&r"(v.u[0]), "=&r"(v.u[1]), "=&r"(v.u[2]), "=&r"(v.u[3])
               : "l"(__cvta_generic_to_global(at)), "r"((int)there));
  return v;
}

// Keeps a chunk as it is loaded: as floats, for later use, it takes twice the registers.
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
INLINE Vec norm_output(NormKernel c, const NormParams *p, Vec v, Vec weight, Vec bias, float mean, float scale) {
  const int bytes = norm_bytes(c);
  float f[8], w[8], b[8], shift = scale * p->offset;
  widen(&v, c.kind, bytes, f);
  widen(&weight, c.kind, bytes, w);
  if (c.op == NORM_LAYER) widen(&bias, c.kind, bytes, b);
#pragma unroll
  for (int j = 0; j < 16 / bytes; j++) {
    float by = fmaf(w[j], scale, shift); // scale * (weight + offset)
    f[j] = c.op == NORM_LAYER ? fmaf(f[j] - mean, by, b[j]) : f[j] * by;
  }
  narrow(&v, c.kind, bytes, f);
  return v;
}

// ---- Reductions: the same order for every row.

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

INLINE float group_sum(NormKernel c, float v, float *part) {
  return c.lanes ? lanes_sum(v, c.lanes) : block_sum(v, part);
}

// ---- To fp8, by tensor, by row or by block of 128 columns

#if __CUDA_ARCH__ >= 890
INLINE
#else
static __device__ __noinline__ // many instructions
#endif
uint32_t fp8_pair(float a, float b) {
  return __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3);
}

INLINE float lanes_highest(float v, int lanes) {
#pragma unroll
  for (int o = 16; o; o >>= 1)
    if (o < lanes) v = higher(v, __shfl_xor_sync(~0u, v, o));
  return v;
}

// The largest over a row, beside its sum: what warps have before the barrier of block_sum, and what all have after it.
INLINE void highest_give(NormKernel c, float v, float *part) {
  if (c.lanes) return;
  v = lanes_highest(v, 32);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
}

INLINE float highest_take(NormKernel c, float v, const float *part) {
  return lanes_highest(c.lanes ? v : part[min(threadIdx.x % 32, blockDim.x / 32 - 1)], c.lanes ? c.lanes : 32);
}

// A chunk's x * (weight + offset), and the largest of their magnitudes.
INLINE float fp8_product(NormKernel c, const NormParams *p, Vec v, Vec weight, float *f) {
  float w[8], top = 0;
  widen(&v, c.kind, norm_bytes(c), f);
  widen(&weight, c.kind, norm_bytes(c), w);
  if (p->offset != 0)
#pragma unroll
    for (int j = 0; j < 16 / norm_bytes(c); j++) w[j] += p->offset;
#pragma unroll
  for (int j = 0; j < 16 / norm_bytes(c); j++) {
    f[j] *= w[j];
    top = higher(top, fabsf(f[j]));
  }
  return top;
}

// What divides by a scale: f / scale is f * up * over. The reciprocal alone could overflow.
typedef struct Fp8Scale {
  float up, over;
} Fp8Scale;

INLINE Fp8Scale fp8_scale(float scale) {
  Fp8Scale s;
  s.up = fabsf(scale) < 0x1p-60f ? 0x1p80f : 1;
  s.over = 1 / (scale * s.up);
  return s;
}

// A scale that is chosen here, for values of magnitudes up to top. All of them, and so the scale, are to be multiplied
// by `times`, which does not matter to what they are once divided. Nothing but zeros stay zeros.
INLINE Fp8Scale fp8_choose(float top, float times, float *at, bool write) {
  float scale = top * times * (1 / 448.f);
  Fp8Scale s;
  if (write) *at = scale;
  s.up = top < 0x1p-60f ? 0x1p80f : 1;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(s.over) : "f"(top * s.up * (1 / 448.f)));
  if (!(scale > 0)) s.over = scale * 0; // 0, or NaN; of an infinite one it is 0 already
  return s;
}

INLINE void fp8_divide(Fp8Scale s, int count, float *f) {
  if (s.up != 1)
#pragma unroll
    for (int j = 0; j < count; j++) f[j] *= s.up;
#pragma unroll
  for (int j = 0; j < count; j++) f[j] *= s.over;
}

// The scale of a whole row, by tensor or by row.
INLINE Fp8Scale fp8_row(const NormParams *p, uint64_t row, float top, bool first) {
  Fp8Scale none = {1, 1};
  if (p->scaling == NORM_SCALE_TENSOR) return fp8_scale(*p->scales);
  return p->scaling == NORM_SCALE_ROW ? fp8_choose(top, 1, p->scales + row, first) : none;
}

// A block of 128 columns, neighbouring lanes' chunks. at: the number of this lane's; top: the block's.
INLINE Fp8Scale fp8_block(NormKernel c, const NormParams *p, uint64_t row, int at, bool there, float top, float times) {
  const int lanes = 8 * norm_bytes(c);
  float *scales = p->scales + (int64_t)row * ((p->chunks + lanes - 1) / lanes) + at / lanes;
  return fp8_choose(top, times, scales, there && at % lanes == 0);
}

INLINE void fp8_put(NormKernel c, char *y, int at, float *f) {
  uint32_t low = fp8_pair(f[0], f[1]) | fp8_pair(f[2], f[3]) << 16;
  if (c.kind == KIND_FP32) *(uint32_t *)(y + (int64_t)at * 4) = low;
  else *(uint2 *)(y + (int64_t)at * 8) = make_uint2(low, fp8_pair(f[4], f[5]) | fp8_pair(f[6], f[7]) << 16);
}

// The rest of a row that is held, its weights too. By row and by block all but the scales themselves is known before
// the row's sum is.
INLINE void fp8_held(NormKernel c, const NormParams *p, uint64_t row, char *y, int t, int all, const bool *there,
                     const Vec *v, const Vec *w, float (*part)[40]) {
  const int lanes = 8 * norm_bytes(c), per = 16 / norm_bytes(c);
  float f[4][8], tops[4], top = 0;
  float2 s = make_float2(0, 0);
  Fp8Scale q = {1, 1};
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    s = norm_sum(c, v[k], s);
    tops[k] = fp8_product(c, p, v[k], w[k], f[k]);
    top = higher(top, tops[k]);
    if (p->scaling == NORM_SCALE_BLOCK) tops[k] = lanes_highest(tops[k], lanes);
  }
  if (p->scaling == NORM_SCALE_TENSOR) q = fp8_scale(*p->scales);
  if (p->scaling == NORM_SCALE_ROW) highest_give(c, top, part[1]);
  float scale = rsqrtf(fmaf(group_sum(c, s.x + s.y, part[0]), p->over_n, p->eps));
  if (p->scaling == NORM_SCALE_ROW)
    q = fp8_choose(highest_take(c, top, part[1]), scale, p->scales + row, t == 0 && there[0]);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (p->scaling == NORM_SCALE_BLOCK) q = fp8_block(c, p, row, t + k * all, there[k], tops[k], scale);
    if (p->scaling == NORM_SCALE_TENSOR)
#pragma unroll
      for (int j = 0; j < per; j++) f[k][j] *= scale;
    fp8_divide(q, per, f[k]);
    if (there[k]) fp8_put(c, y, t + k * all, f[k]);
  }
}

// ----

INLINE void prefetch_far(const void *at, int bytes) { // whole sixteens, that start on one
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(at)), "r"(bytes) : "memory");
#endif
}

// Asks L2 for a part of the row that is p->ahead rows further on: `from` bytes into it, `bytes` long. One thread does
// it for a block: its loads then find much of their row there. odd: rows do not start on 16 bytes, or bytes are not
// whole sixteens: what of them is.
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

// ---- Rows in registers: two chunks a thread, or four where a warp has a longer row to itself

// While the predecessor is still at work. The row of x that will most likely be wanted; -1: unknown. Ids may be the
// predecessor's to write: a wrong one costs some lines in L2, nothing else.
INLINE int64_t norm_guess(NormKernel c, const NormParams *p, uint64_t row) {
  if (c.op != NORM_EMBED) return (int64_t)row;
  if (!may_hint() || row >= p->m) return -1;
  // past L1, which would keep it
  int64_t id = p->wide_ids ? __ldcg((const long long *)p->ids + row) : __ldcg((const int *)p->ids + row);
  return (uint64_t)id < (uint64_t)p->vocab ? id : -1;
}

INLINE void norm_hint(NormKernel c, const NormParams *p, NormRow r, int t, int step, int only, const bool *mine) {
  if (!may_hint()) return;
  if (c.op == NORM_EMBED && c.chunks == 4) { // measured: one thread for all; with two chunks a thread it is none better
    int from = only < 0 ? 0 : only * step, bytes = min(p->chunks * 16 - from, only < 0 ? 4 * step : step);
    if (t || bytes <= 0) return;
    if (r.known) prefetch_far(r.x + from, bytes);
    if (blockIdx.x < 4) prefetch_far((const char *)p->weight + from, bytes);
    return;
  }
  if (t % 8) return; // a line of 128 bytes is eight threads'
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    if (!mine[k]) continue;
    int from = t * 16 + k * step;
    if (r.known) prefetch_l2(r.x + t * 16 + k * step);
    if (c.op == NORM_ADD) prefetch_l2(r.residual + t * 16 + k * step);
    if (blockIdx.x >= 4) continue; // some blocks are enough for what all of them need
    prefetch_l2((const char *)p->weight + from);
    if (c.op == NORM_LAYER) prefetch_l2((const char *)p->bias + from);
  }
}

INLINE void norm_weights(NormKernel c, const NormParams *p, int t, int step, const bool *mine, Vec *w, Vec *b) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    w[k] = load16_now((const char *)p->weight + t * 16 + k * step, mine[k]);
    if (c.op == NORM_LAYER) b[k] = load16_now((const char *)p->bias + t * 16 + k * step, mine[k]);
  }
}

INLINE void held_second(NormKernel c, NormRow r, int t, int step, const bool *mine, const Vec *v) {
#pragma unroll
  for (int k = 0; k < c.chunks; k++)
    if (r.second && mine[k]) *(uint4 *)(r.second + t * 16 + k * step) = v[k].v;
}

INLINE void norm_held(NormKernel c, const NormParams *p) {
  __shared__ __align__(16) float part[2][40];
  int t = threadIdx.x, all = blockDim.x, chunks = p->chunks;
  uint64_t row = block_index();
  if (c.lanes) {
    row = row * (128 / c.lanes) + t / c.lanes;
    t %= c.lanes;
    all = c.lanes;
    if (row >= p->m) chunks = 0;
  }
  // Few long rows: each has several blocks, which all read it and write a part of it each. The same sums, in less time:
  // an SM takes a while to read a row, its weights, and to write it.
  int only = -1;
  if (!c.lanes && c.ahead && p->split) only = (int)(row % c.chunks), row /= c.chunks;
  bool there[4], mine[4];
  Vec v[4], w[4], b[4], more[4];
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    there[k] = t + k * all < chunks;
    mine[k] = there[k] && (only < 0 || only == k);
  }
  int step = all * 16;
  // Where latency counts a row's load does not wait for its id's.
  bool soon = c.ahead && !c.lanes;
  int64_t id = c.ahead ? norm_guess(c, p, row) : (int64_t)row;
  bool known = c.op != NORM_EMBED || id >= 0;
  NormRow r = norm_row_of(c, p, row, known ? id : 0);
  r.known = known;
  if (c.ahead) norm_hint(c, p, r, t, step, only, mine);
  begin_kernel();
  if (c.ahead && c.lanes) norm_weights(c, p, t, step, mine, w, b);
  if (!soon) r = norm_row(c, p, row, t == 0);
  char *y = r.y + t * 16;
  if (c.ahead) asm volatile("" : "+l"(y)); // kept, not worked out again at the end
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    const char *x = r.x + t * 16 + k * step;
    v[k] = soon ? load16_now(x, there[k] && r.known) : load16(x, there[k] && r.known);
  }
#pragma unroll
  for (int k = 0; k < c.chunks && c.op == NORM_ADD; k++) more[k] = load16(r.residual + t * 16 + k * step, there[k]);
  bool late = !c.ahead && c.op != NORM_RMS_FP8;
  if (soon || (!c.ahead && !late)) norm_weights(c, p, t, step, mine, w, b);
  if (soon && c.op == NORM_EMBED && (!r.known || load_id(p->ids, row, p->wide_ids) != id)) { // another id, or none
    r = norm_row(c, p, row, t == 0);
#pragma unroll
    for (int k = 0; k < c.chunks; k++) v[k] = load16(r.x + t * 16 + k * step, there[k] && r.known);
  }
#pragma unroll
  for (int k = 0; k < c.chunks && c.op == NORM_ADD; k++) v[k] = norm_add(c, v[k], more[k]);
  if (!c.lanes && t == 0) norm_prefetch(c, p, row, 0, chunks * 16, false);
  const bool after = c.op == NORM_ADD && !c.lanes && !c.ahead;
  if (!after) held_second(c, r, t, step, mine, v);
  if (c.op == NORM_RMS_FP8) {
    fp8_held(c, p, row, r.y, t, all, there, v, w, part);
    return;
  }
  float2 s = make_float2(0, 0);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) s = norm_sum(c, v[k], s);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) keep_packed(&v[k]);
  float sum = group_sum(c, s.x + s.y, part[0]), mean = 0;
  if (c.op == NORM_LAYER) {
    mean = sum * p->over_n;
    s = make_float2(0, 0);
#pragma unroll
    for (int k = 0; k < c.chunks; k++)
      if (there[k]) s = norm_squares(c, v[k], mean, s);
#pragma unroll
    for (int k = 0; k < c.chunks; k++) keep_packed(&v[k]);
    sum = group_sum(c, s.x + s.y, part[1]);
  }
  // Where there are many rows sums that are stored before the reduction are in its way: 1%. Looked-up rows gain that.
  if (after) held_second(c, r, t, step, mine, v);
  float scale = rsqrtf(fmaf(sum, p->over_n, p->eps)); // in one step, wherever compilers put it: early and late agree
  if (late) norm_weights(c, p, t, step, mine, w, b);
#pragma unroll
  for (int k = 0; k < c.chunks; k++) {
    Vec out = norm_output(c, p, v[k], w[k], b[k], mean, scale);
    if (mine[k]) *(uint4 *)(y + k * step) = out.v;
  }
}

// ---- Rows in shared memory, of one block or of several that form a cluster. Layernorm's are in norm_layer.cuh.

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
// What a thread has of its row: chunks begin, begin + lap, ... before end. The blocks of a cluster take turns, so that
// together they walk along the row; with two inputs each has a part of the row to itself. (Measured: README.md.)
typedef struct NormShare {
  uint64_t row;
  int begin, lap, end, count; // count: of these chunks
} NormShare;

INLINE NormShare norm_share(NormKernel c, const NormParams *p) {
  NormShare s;
  int all = blockDim.x, rank = p->cluster_bits ? (int)cluster_rank() : 0;
  s.row = block_index() >> p->cluster_bits;
  if (c.op == NORM_ADD) {
    s.begin = rank * p->span, s.lap = all, s.end = min(p->chunks, s.begin + p->span);
  } else {
    s.begin = rank * all, s.lap = all << p->cluster_bits, s.end = p->chunks;
  }
  s.begin += threadIdx.x;
  s.count = s.end > s.begin ? (s.end - s.begin - 1) / s.lap + 1 : 0;
  return s;
}

// Sum, and for FP8 the largest, over the blocks of a cluster. v: of this block's elements.
INLINE float2 cluster_fold(NormKernel c, const NormParams *p, ClusterMail *mail, float2 v) {
  int blocks = 1 << p->cluster_bits;
  mail_exchange(mail, blocks, v);
  v = make_float2(0, 0);
  for (int i = 0; i < blocks; i++) {
    v.x += mail->from[i].x;
    if (c.op == NORM_RMS_FP8) v.y = higher(v.y, mail->from[i].y);
  }
  return v;
}

enum { BATCH = 4 }; // chunks whose weights a thread has at once

// Chunks of a row come by themselves, while the thread does other things,
INLINE void big_fetch(const char *from, int step, int count, uint4 *to) {
  for (int k = 0; k < count; k++, from += step)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(to + k * blockDim.x)),
                 "l"(__cvta_generic_to_global(from))
                 : "memory");
}

// and are summed when they are there. With two inputs their sums take the first's place. second: NULL, or where they go.
INLINE float2 big_sum(NormKernel c, bool known, int count, uint4 *held, const uint4 *other, char *second, int step,
                      float2 s) {
  asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll 2
  for (int k = 0; k < count; k++) {
    Vec a, more;
    if (!known) held[k * blockDim.x] = make_uint4(0, 0, 0, 0);
    a.v = held[k * blockDim.x];
    if (c.op == NORM_ADD) {
      more.v = other[k * blockDim.x];
      a = norm_add(c, a, more);
      held[k * blockDim.x] = a.v;
    }
    if (second) *(uint4 *)(second + k * step) = a.v;
    s = norm_sum(c, a, s);
  }
  return s;
}

// Weights of chunks k and on.
INLINE void big_weights(NormKernel c, const NormParams *p, NormShare share, int k, Vec *w) {
  int64_t from = ((int64_t)share.begin + (int64_t)k * share.lap) * 16;
  int step = share.lap * 16;
#pragma unroll
  for (int i = 0; i < c.chunks; i++)
    w[i] = load16_now((const char *)p->weight + from + i * step, k + i < share.count);
}

// Sums, and the largest |x * weight|, of a row that has come. w: the first weights.
INLINE float2 big_sum_top(NormKernel c, const NormParams *p, NormShare share, const uint4 *held, Vec *w, float *top) {
  float2 s = make_float2(0, 0);
  asm volatile("cp.async.wait_all;" ::: "memory");
#pragma unroll 1
  for (int k = 0; k < share.count; k += c.chunks) {
    if (k) big_weights(c, p, share, k, w);
#pragma unroll
    for (int i = 0; i < c.chunks; i++) {
      Vec a;
      if (k + i >= share.count) continue;
      a.v = held[(k + i) * blockDim.x];
      s = norm_sum(c, a, s);
      float f[8];
      *top = higher(*top, fp8_product(c, p, a, w[i], f));
    }
  }
  return s;
}

// The output in fp8.
INLINE void big_put_fp8(NormKernel c, const NormParams *p, NormShare share, NormRow r, const uint4 *held, Vec *w,
                        float scale, Fp8Scale q) {
  int laps = __shfl_sync(~0u, share.count, 0); // a warp's first lane has as many as any
#pragma unroll 1
  for (int k = 0; k < laps; k += c.chunks) {
    if (k || p->scaling == NORM_SCALE_ROW) big_weights(c, p, share, k, w);
#pragma unroll
    for (int i = 0; i < c.chunks; i++) {
      if (k + i >= laps) continue;
      float f[8];
      Vec a;
      bool there = k + i < share.count;
      a.v = there ? held[(k + i) * blockDim.x] : make_uint4(0, 0, 0, 0);
      float top = fp8_product(c, p, a, w[i], f);
      int at = share.begin + (k + i) * share.lap;
      if (p->scaling == NORM_SCALE_BLOCK)
        q = fp8_block(c, p, share.row, at, there, lanes_highest(top, 8 * norm_bytes(c)), scale);
      if (p->scaling == NORM_SCALE_TENSOR)
#pragma unroll
        for (int j = 0; j < 16 / norm_bytes(c); j++) f[j] *= scale;
      fp8_divide(q, 16 / norm_bytes(c), f);
      if (there) fp8_put(c, r.y, at, f);
    }
  }
}

// While the predecessor is still at work: this thread's part of the block's share of the row.
INLINE void big_hint(NormKernel c, const NormParams *p, NormShare share) {
  if (!may_hint() || c.op == NORM_EMBED || threadIdx.x % 8) return;
  for (int k = 0; k < share.count; k++) {
    int64_t at = ((int64_t)share.begin + k * share.lap) * 16;
    prefetch_l2((const char *)p->x + (int64_t)share.row * p->x_stride + at);
    if (c.op == NORM_ADD) prefetch_l2((const char *)p->residual + (int64_t)share.row * p->residual_stride + at);
  }
}

INLINE void norm_big(NormKernel c, const NormParams *p) {
  extern __shared__ __align__(128) uint4 far[]; // a thread reads what it has written itself
  __shared__ __align__(16) float part[2][40];
  __shared__ ClusterMail mail;
  if (p->cluster_bits) mail_open(&mail);
  NormShare share = norm_share(c, p);
  uint4 *held = far + threadIdx.x;
  big_hint(c, p, share);
  begin_kernel();
  if (threadIdx.x == 0) { // a part of a row further on, as long as this block's, be it this block's or not
    int64_t at = (int64_t)(p->cluster_bits ? cluster_rank() : 0) * p->span * 16;
    norm_prefetch(c, p, share.row, at, (int)min((int64_t)p->span * 16, (int64_t)p->chunks * 16 - at), false);
  }
  NormRow r = norm_row(c, p, share.row, share.begin == 0);
  Vec w[BATCH], none;
  int step = share.lap * 16, first = c.op == NORM_ADD ? min(share.count, NORM_WINDOW) : share.count;
  int64_t from = (int64_t)share.begin * 16;
  uint4 *other = held + p->aside;
  char *second = r.second ? r.second + from : nullptr;
  bool by_row = c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_ROW;
  float top = 0;
  if (r.known) big_fetch(r.x + from, step, share.count, held);
  if (c.op == NORM_ADD) big_fetch(r.residual + from, step, first, other);
  if (c.ahead) big_weights(c, p, share, 0, w);
  float2 s = by_row ? big_sum_top(c, p, share, held, w, &top)
                    : big_sum(c, r.known, first, held, other, second, step, make_float2(0, 0));
#pragma unroll 1
  for (int k = first; c.op == NORM_ADD && k < share.count; k += NORM_WINDOW) {
    int count = min(share.count - k, NORM_WINDOW);
    int64_t on = from + (int64_t)k * step;
    big_fetch(r.residual + on, step, count, other);
    s = big_sum(c, true, count, held + k * blockDim.x, other, r.second + on, step, s);
  }
  if (by_row) highest_give(c, top, part[1]);
  Fp8Scale q = {1, 1};
  if (c.op == NORM_RMS_FP8 && p->scaling == NORM_SCALE_TENSOR) q = fp8_scale(*p->scales);
  float2 total = make_float2(block_sum(s.x + s.y, part[0]), 0);
  if (by_row) total.y = highest_take(c, 0, part[1]);
  if (p->cluster_bits) total = cluster_fold(c, p, &mail, total);
  float scale = rsqrtf(total.x * p->over_n + p->eps);
  if (c.op == NORM_RMS_FP8) {
    if (by_row) q = fp8_choose(total.y, scale, p->scales + share.row, share.begin == 0);
    big_put_fp8(c, p, share, r, held, w, scale, q);
    return;
  }
  char *y = r.y + from;
#pragma unroll 1
  for (int k = 0; k < share.count; k += c.chunks, y += c.chunks * step) {
    if (k || !c.ahead) big_weights(c, p, share, k, w);
#pragma unroll
    for (int i = 0; i < c.chunks; i++) {
      Vec a;
      if (k + i >= share.count) continue;
      a.v = held[(k + i) * blockDim.x];
      *(uint4 *)(y + i * step) = norm_output(c, p, a, w[i], none, 0, scale).v;
    }
  }
}
#endif

#endif
