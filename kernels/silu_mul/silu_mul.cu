// y = silu(gate) * up, also as fp8 with a scale for the tensor, for each row or for each 128 columns of a row.
#include "silu_mul.h"

#include "chunks.cuh"
#include "elementwise.cuh"
#include "few.cuh"
#include "fp8.cuh"
#include "funnel.cuh"
#include "parts.cuh"
#include "pieces.cuh"
#include "single.cuh"
#include "strip.cuh"

INLINE float silu_mul(float gate, float up) {
  return __fmul_rn(over_one_plus_exp2(gate, __fmul_rn(gate, -1.4426950409f)), up);
}

// Lean: rows of whole chunks on 16-byte boundaries.
INLINE void lean_chunk(int in, int out, int x_kind, int y_kind, SiluLean p, uint32_t i) {
  const int per = CHUNK_OF(in, out);
  uint32_t a[4], b[4];
  float f[8], g[8];
  uint32_t row = p.divider.by ? divide32(i, p.divider) : 0, c = i - row * p.divider.by;
  unit_ends((const char *)p.y + row * p.y_stride, p.ends, c, p.divider.by);
  load_aligned((const char *)p.gate + row * p.gate_stride + (uint64_t)c * (per * in), per * in / 4, 0, a);
  load_aligned((const char *)p.up + row * p.up_stride + (uint64_t)c * (per * in), per * in / 4, 0, b);
  float scale = out == 1 ? __ldg(p.scales) : 1, inverse = out == 1 ? __frcp_rn(scale) : 1;
  to_floats(a, per, x_kind, f);
  to_floats(b, per, x_kind, g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    if (out == 1) f[j] = over_scale(f[j], scale, inverse);
  }
  from_floats(f, per, y_kind, a);
  store_aligned((char *)p.y + row * p.y_stride + (uint64_t)c * (per * out), per * out / 4, a);
}

INLINE void silu_lean(int in, int out, SiluLean p) {
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  begin_kernel();
  if (i >= p.chunks) return;
  if (in == 4 && out == 2) {
    if (p.y_kind == KIND_FP16) lean_chunk(in, out, KIND_FP32, KIND_FP16, p, i);
    else lean_chunk(in, out, KIND_FP32, KIND_BF16, p, i);
  } else if (in == 4) {
    lean_chunk(in, out, KIND_FP32, kind_of(out, 0), p, i);
  } else if (p.x_kind == KIND_FP16) {
    lean_chunk(in, out, KIND_FP16, kind_of(out, KIND_FP16), p, i);
  } else {
    lean_chunk(in, out, KIND_BF16, kind_of(out, KIND_BF16), p, i);
  }
}

INLINE void silu_any(int in, int out, SiluParams p) {
  const int per = CHUNK_OF(in, out);
  Chunk c;
  begin_kernel();
  if (!take_chunk(p.spread, p.flat, p.y, p.y_stride, per, out, &c)) return;
  const char *gate = (const char *)p.gate + (int64_t)c.row * p.gate_stride * in;
  const char *up = (const char *)p.up + (int64_t)c.row * p.up_stride * in;
  char *y = (char *)p.y + (int64_t)c.row * p.y_stride * out;
  float scale = out == 1 ? __ldg(p.scales) : 1, inverse = out == 1 ? __frcp_rn(scale) : 1;
  float f[8], g[8];
  Raw a, b;
  chunk_ends(p.spread, y, c, per);
  load_chunk(extent_of(p.gate, p.gate_stride, p.spread, in), gate, c, p.spread.length, per, in, &a);
  load_chunk(extent_of(p.up, p.up_stride, p.spread, in), up, c, p.spread.length, per, in, &b);
  cut_chunk(&a, per, in);
  cut_chunk(&b, per, in);
  to_floats(a.w, per, kind_of(in, p.x_kind), f);
  to_floats(b.w, per, kind_of(in, p.x_kind), g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    if (out == 1) f[j] = over_scale(f[j], scale, inverse);
  }
  store_within(y, c, p.spread.length, per, out, p.y_kind, f);
}

KERNEL __launch_bounds__(256, 8) sol_silu_mul_single(const __grid_constant__ SiluParams p) {
  int64_t row, column;
  bool there = single_place(p.spread, &row, &column);
  int64_t at = row * p.gate_stride + column, beside = row * p.up_stride + column;
  if (there) single_hint(p.gate, at, column, p.x_kind == KIND_FP32 ? 4 : 2), single_hint(p.up, beside, column, p.x_kind == KIND_FP32 ? 4 : 2);
  begin_kernel();
  if (!there) return;
  const int size = p.y_kind == KIND_FP32 ? 4 : p.y_kind == KIND_FP8 ? 1 : 2;
  unit_ends((const char *)p.y + row * p.y_stride * size, p.spread.ends, (uint64_t)column, (uint64_t)p.spread.length);
  uint32_t gate = single_load(p.gate, at, p.x_kind), up = single_load(p.up, beside, p.x_kind);
  float scale = p.y_kind == KIND_FP8 ? __ldg(p.scales) : 1, f = silu_mul(single_float(gate, p.x_kind), single_float(up, p.x_kind));
  if (p.y_kind == KIND_FP8) f = over_scale(f, scale, __frcp_rn(scale));
  store_one(p.y, row * p.y_stride + column, p.y_kind, f);
}

// fp8 with scales that the kernel computes. A thread holds `count` pieces of a row, `step` apart: vectors where all rows are whole
// vectors on 16 bytes, otherwise (but for silu_strip) single elements, coalesced: neighbouring threads have neighbouring
// elements. Types are compile-time constants: a branch between two loads would keep them from being in flight together.
typedef struct SiluRow {
  const char *gate, *up;
  uint8_t *y;
  int n; // columns, as many as matter
} SiluRow;

INLINE SiluRow silu_row_from(const SiluParams *p, uint64_t row, int64_t column, int in) {
  int64_t left = p->spread.length - column;
  SiluRow r;
  r.gate = (const char *)p->gate + ((int64_t)row * p->gate_stride + column) * in;
  r.up = (const char *)p->up + ((int64_t)row * p->up_stride + column) * in;
  r.y = (uint8_t *)p->y + (int64_t)row * p->y_stride + column;
  r.n = left < INT32_MAX ? (int)left : INT32_MAX;
  return r;
}

// Their results, 0 beyond the row's end. Returns the largest magnitude, NaN aside.
INLINE float silu_take(const SiluRow *r, int first, int step, int per, int count, int in, int kind, float (*f)[8]) {
  Vec a[8], b[8];
  float g[8], most = 0;
#pragma unroll
  for (int k = 0; k < count; k++) {
    int at = first + k * step;
    if (per > 1) {
      a[k].v = load_if(r->gate + at * in, at < r->n);
      b[k].v = load_if(r->up + at * in, at < r->n);
    } else {
      a[k].f[0] = at < r->n ? load_one(r->gate, at, kind) : 0;
      b[k].f[0] = at < r->n ? load_one(r->up, at, kind) : 0;
    }
  }
#pragma unroll
  for (int k = 0; k < count; k++) {
    to_floats(a[k].u, per, per > 1 ? kind : KIND_FP32, f[k]);
    to_floats(b[k].u, per, per > 1 ? kind : KIND_FP32, g);
#pragma unroll
    for (int j = 0; j < per; j++) {
      f[k][j] = silu_mul(f[k][j], g[j]);
      most = fmaxf(most, fabsf(f[k][j]));
    }
  }
  return most;
}

INLINE void silu_give(const SiluRow *r, int first, int step, int per, int count, Fp8Scale scale, float (*f)[8]) {
#pragma unroll
  for (int k = 0; k < count; k++) {
    int at = first + k * step;
    if (at >= r->n) break;
    fp8_divide(scale, per, f[k]);
    if (per > 1) store_chunk(r->y, at, per, 1, KIND_FP8, f[k]);
    else store_one(r->y, at, KIND_FP8, f[k][0]);
  }
}

INLINE float lanes_most(float v, int lanes) { // NaN aside
  return lanes_fold(make_float2(v, 0), FOLD_MAX, lanes).x;
}

// Over the threads of a block.
INLINE float block_most(float v, float *shared) {
  int lane = threadIdx.x % 32;
  v = lanes_most(v, 32);
  if (lane == 0) shared[threadIdx.x / 32] = v;
  __syncthreads();
  return lanes_most(lane < blockDim.x / 32 ? shared[lane] : 0, 32);
}

INLINE void silu_block(int in, int wide, int kind, const SiluParams *p) {
  const int per = wide ? 16 / in : 1, lanes = wide ? 128 / per : 32, count = wide ? 1 : 4;
  uint64_t i = thread_index(), block = i / lanes, row = divide(block, p->spread.divider);
  int first = (int)(threadIdx.x % lanes) * per;
  float f[4][8];
  begin_kernel();
  SiluRow r = silu_row_from(p, row, (int64_t)(block - row * p->spread.divider.by) * 128, in);
  if (block >= p->spread.chunks) r.n = 0;
  float most = lanes_most(silu_take(&r, first, 32, per, count, in, kind, f), lanes);
  Fp8Scale scale = fp8_choose(most, 1, p->scales + block, i % lanes == 0 && r.n);
  silu_give(&r, first, 32, per, count, scale, f);
}

// `threads`: of a row where a block has several rows; otherwise it has as many as the row needs. No count: the row is computed
// twice.
INLINE void silu_row(int in, int wide, int threads, int rows, int count, int kind, const SiluParams *p) {
  __shared__ float shared[32];
  const int per = wide ? 16 / in : 1;
  int of = rows > 1 ? threads : blockDim.x, thread = rows > 1 ? threadIdx.x % threads : threadIdx.x;
  uint64_t row = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * rows + (rows > 1 ? threadIdx.x / threads : 0);
  int first = thread * per, step = of * per;
  float f[8][8], most = 0;
  begin_kernel();
  if (rows == 1 && row >= p->rows) return; // a whole block
  SiluRow r = silu_row_from(p, row, 0, in);
  if (row >= p->rows) r.n = 0;
  if (count) most = silu_take(&r, first, step, per, count, in, kind, f);
  else
    for (int64_t at = 0; at < p->spread.length; at += step) {
      r = silu_row_from(p, row, at, in);
      most = fmaxf(most, silu_take(&r, first, step, per, 1, in, kind, f));
    }
  most = rows > 1 ? lanes_most(most, threads) : block_most(most, shared);
  Fp8Scale scale = fp8_choose(most, 1, p->scales + row, thread == 0 && row < p->rows);
  if (count) silu_give(&r, first, step, per, count, scale, f);
  else
    for (int64_t at = 0; at < p->spread.length; at += step) {
      r = silu_row_from(p, row, at, in);
      silu_take(&r, first, step, per, 1, in, kind, f);
      silu_give(&r, first, step, per, 1, scale, f);
    }
}

// The results of a chunk, and their largest magnitude, NaN aside.
INLINE float silu_chunk(const Vec &gate, const Vec &up, int per, int kind, float *f) {
  float g[8], most = 0;
  to_floats(gate.u, per, kind, f);
  to_floats(up.u, per, kind, g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    most = fmaxf(most, fabsf(f[j]));
  }
  return most;
}

// The same where rows start anywhere, but gate, up and y have the same alignment (strip.cuh). A warp has 32 * count chunks next to each
// other, a block a row.
INLINE void silu_strip_row(int in, int count, int kind, const SiluParams *p) {
  __shared__ float shared[32];
  const int per = 16 / in;
  uint64_t row = (uint64_t)blockIdx.y * gridDim.x + blockIdx.x;
  int t = threadIdx.x, lane = t % 32, first = (t - lane) * count + lane;
  begin_kernel();
  if (row >= p->rows) return; // a whole block
  SiluRow r = silu_row_from(p, row, 0, in);
  Strip s = strip_of(strip_head(r.y, per), r.n, per);
  const char *gate = r.gate + (s.head + first * per) * in, *up = r.up + (s.head + first * per) * in;
  int column = strip_edge(s, t, per);
  bool edge = t < s.edges;
  Vec a[4], b[4];
  float f[4][8], most = 0;
#pragma unroll
  for (int k = 0; k < count; k++) {
    a[k].v = load_if(gate + k * 512, first + k * 32 < s.chunks);
    b[k].v = load_if(up + k * 512, first + k * 32 < s.chunks);
  }
  float e = edge ? load_one(r.gate, column, kind) : 0, d = edge ? load_one(r.up, column, kind) : 0;
#pragma unroll
  for (int k = 0; k < count; k++) most = fmaxf(most, silu_chunk(a[k], b[k], per, kind, f[k]));
  e = silu_mul(e, d), most = fmaxf(most, fabsf(e));
  Fp8Scale scale = fp8_choose(block_most(most, shared), 1, p->scales + row, t == 0);
#pragma unroll
  for (int k = 0; k < count; k++) {
    fp8_divide(scale, per, f[k]);
    if (first + k * 32 < s.chunks) store_chunk(r.y, s.head + (first + k * 32) * per, per, 1, KIND_FP8, f[k]);
  }
  fp8_divide(scale, 1, &e);
  if (edge) store_one(r.y, column, KIND_FP8, e);
}

// With a scale per block of columns each of these is a strip of its own, of 128 / per lanes. A warp has `count` turns one after another, in
// each the strips of 32 * per columns of a row: rows of a few strips leave few lanes without one.
INLINE void silu_strip_blocks(int in, int count, int kind, const SiluParams *p) {
  const int per = 16 / in, lanes = 128 / per;
  int mine = threadIdx.x % lanes;
  uint64_t turn = thread_index() / 32 * count;
  uint8_t *y[2];
  float *scales[2];
  Strip s[2];
  Vec a[2], b[2];
  float f[2][8], e[2], d[2];
  begin_kernel();
#pragma unroll
  for (int k = 0; k < count; k++) {
    uint64_t part, row = spread_divide(turn + k, p->spread, &part);
    int64_t block = (int64_t)part * (32 / lanes) + threadIdx.x % 32 / lanes;
    SiluRow r = silu_row_from(p, row, block * 128, in);
    if (turn + k >= p->spread.chunks) r.n = 0;
    s[k] = strip_of(strip_head(r.y, per), max(0, min(128, r.n)), per);
    y[k] = r.y, scales[k] = p->scales + row * (uint64_t)((p->spread.length + 127) / 128) + block;
    bool there = mine < s[k].chunks, edge = mine < s[k].edges;
    int chunk = s[k].head + mine * per, column = strip_edge(s[k], mine, per);
    a[k].v = load_if(r.gate + chunk * in, there), b[k].v = load_if(r.up + chunk * in, there);
    e[k] = edge ? load_one(r.gate, column, kind) : 0, d[k] = edge ? load_one(r.up, column, kind) : 0;
  }
#pragma unroll
  for (int k = 0; k < count; k++) {
    bool edge = mine < s[k].edges;
    float most = silu_chunk(a[k], b[k], per, kind, f[k]);
    e[k] = silu_mul(e[k], d[k]), most = lanes_most(fmaxf(most, fabsf(e[k])), lanes);
    Fp8Scale scale = fp8_choose(most, 1, scales[k], mine == 0 && s[k].chunks + s[k].edges > 0);
    fp8_divide(scale, per, f[k]), fp8_divide(scale, 1, &e[k]);
    if (mine < s[k].chunks) store_chunk(y[k], s[k].head + mine * per, per, 1, KIND_FP8, f[k]);
    if (edge) store_one(y[k], strip_edge(s[k], mine, per), KIND_FP8, e[k]);
  }
}

// The results of a turn, before they are scaled, and their largest magnitude.
INLINE float silu_turn(const RowChunks &r, int k, int in, int kind, const Vec &v, Raw *raw, float *f) {
  const int per = 16 / in;
  Vec gate = v;
  float g[8], most = 0;
  chunk_mask(r, k, 0, gate);
  cut_chunk(raw, per, in);
  to_floats(gate.u, per, kind, f);
  to_floats(raw->w, per, kind, g);
#pragma unroll
  for (int j = 0; j < per; j++) {
    f[j] = silu_mul(f[j], g[j]);
    most = fmaxf(most, fabsf(f[j])); // beside the row it is 0, or NaN
  }
  return most;
}

// Loads what up, the row's, has beside the chunks of `count` turns from r's first on.
INLINE void silu_load(const SiluParams *p, const RowChunks &r, const char *up, int n, int count, int in, Raw *raw) {
  const int per = 16 / in;
  Extent e = extent_of(p->up, p->up_stride, p->spread, in);
#pragma unroll
  for (int k = 0; k < count; k++) {
    int column = r.column + k * r.turn;
    const char *at = up + (int64_t)column * in, *from = at - ((uint32_t)(uintptr_t)at & 15);
    bool there = r.first + k * r.lanes < r.chunks;
    raw[k].beyond = (uint32_t)(uintptr_t)at & 15;
    bool around = from >= e.begin && from + (raw[k].beyond ? 32 : 16) <= e.end;
    Vec lo, hi;
    lo.v = load_if(from, there && around), hi.v = load_if(from + 16, there && around && raw[k].beyond);
#pragma unroll
    for (int i = 0; i < 4; i++) raw[k].w[i] = lo.u[i], raw[k].w[4 + i] = hi.u[i];
    if (there && !around) { // at the tensor's ends
      load_some(up, column, n, per, in, &raw[k]);
      raw[k].beyond = 0;
    }
  }
}

INLINE void silu_scale(Cells &c, int column, int per, Fp8Scale scale, float *f) {
  uint32_t w[2];
  fp8_divide(scale, per, f);
  from_floats(f, per, KIND_FP8, w);
  cells_put(c, column, per / 4, w);
}

// A scale per row, whatever the alignment of gate, up and y (chunks.cuh): chunks are gate's, `count` turns; what up has beside them is cut out of two
// accesses, and results are stored on y's boundaries.
INLINE void silu_chunks(int in, int count, int kind, const SiluParams *p) {
  __shared__ float shared[32];
  const int per = 16 / in;
  RowLanes a = row_lanes(p->lane_bits);
  int n = a.row < p->rows ? (int)p->spread.length : 0;
  RowChunks r = row_chunks(a, extent_of(p->gate, p->gate_stride, p->spread, in), p->gate_stride * in, n, in, count);
  const char *up = (const char *)p->up + (n ? (int64_t)a.row : 0) * p->up_stride * in;
  Vec v[3];
  Raw raw[3];
  float f[3][8], most = 0;
  begin_kernel();
  row_ends(a, p->rows, p->y, p->y_stride, p->spread.ends);
  chunks_load(r, count, in, v);
  silu_load(p, r, up, n, count, in, raw);
#pragma unroll
  for (int k = 0; k < count; k++) most = fmaxf(most, silu_turn(r, k, in, kind, v[k], &raw[k], f[k]));
  if (p->lane_bits < 0) most = block_most(most, shared);
  else
    for (int o = a.lanes / 2; o; o /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, o));
  Fp8Scale scale = fp8_choose(most, 1, p->scales + a.row, r.first == 0 && a.row < p->rows);
  Cells c = cells_of((char *)p->y + (int64_t)a.row * p->y_stride, r.begin, r.end, r.column, a.lane, a.lanes, per / 4);
#pragma unroll
  for (int k = 0; k < count; k++) silu_scale(c, r.column + k * r.turn, per, scale, f[k]);
  cells_end(c, r.column + count * r.turn, per / 4);
}

// A part of a long row (parts.cuh): this thread's chunks, and their results as floats in shared memory, which it alone reads.
typedef struct SiluPart {
  RowChunks r;
  const char *up;
  int n, turns;
  float4 *mine; // of a turn per / 4 of them, a block's threads apart
} SiluPart;

INLINE SiluPart silu_part(const SiluParams *p, uint64_t row, uint32_t part, int in, float4 *memory) {
  RowLanes a = {row, (int)threadIdx.x % 32, 32, (int)(part * (PARTS_THREADS / 32) + threadIdx.x / 32)};
  SiluPart s;
  s.n = (int)p->spread.length;
  s.turns = (int)p->parts.length / (16 / in * PARTS_THREADS);
  s.r = row_chunks(a, extent_of(p->gate, p->gate_stride, p->spread, in), p->gate_stride * in, s.n, in, s.turns);
  s.up = (const char *)p->up + (int64_t)row * p->up_stride * in;
  s.mine = memory + threadIdx.x;
  return s;
}

// Computes a part, some turns' loads at a time, and gives its largest magnitude.
INLINE float silu_fill(const SiluParams *p, const SiluPart &s, int in, int kind) {
  const int per = 16 / in, batch = 2, four = per / 4;
  float most = 0;
  RowChunks r = s.r;
#pragma unroll 1
  for (int k = 0; k < s.turns; k += batch) { // a multiple of it
    Vec v[batch];
    Raw raw[batch];
    chunks_load(r, batch, in, v);
    silu_load(p, r, s.up, s.n, batch, in, raw);
#pragma unroll
    for (int i = 0; i < batch; i++) {
      float f[8];
      most = fmaxf(most, silu_turn(r, i, in, kind, v[i], &raw[i], f));
#pragma unroll
      for (int j = 0; j < four; j++)
        s.mine[((k + i) * four + j) * PARTS_THREADS] = make_float4(f[4 * j], f[4 * j + 1], f[4 * j + 2], f[4 * j + 3]);
    }
    r.at += batch * 32 * 16, r.first += batch * 32, r.column += batch * r.turn;
  }
  return most;
}

// Stores the columns from `begin` to `end` of what of a part this warp has.
INLINE void silu_put(const SiluParams *p, const SiluPart &s, uint64_t row, int begin, int end, int in, Fp8Scale scale) {
  const int per = 16 / in, four = per / 4;
  Cells c = cells_of((char *)p->y + (int64_t)row * p->y_stride, max(s.r.begin, begin), min(s.r.end, end), s.r.column, threadIdx.x % 32, 32, four);
#pragma unroll 2
  for (int k = 0; k < s.turns; k++) {
    float f[8];
#pragma unroll
    for (int j = 0; j < four; j++) {
      float4 v = s.mine[(k * four + j) * PARTS_THREADS];
      f[4 * j] = v.x, f[4 * j + 1] = v.y, f[4 * j + 2] = v.z, f[4 * j + 3] = v.w;
    }
    silu_scale(c, s.r.column + k * s.r.turn, per, scale, f);
  }
  cells_end(c, s.r.column + s.turns * s.r.turn, four);
}

// A row that no registers hold, in parts all over the GPU. Its last block writes what the others left: the start of the row, where they have posted, and parts
// that were given up.
INLINE void silu_parts(int in, int kind, const SiluParams *p) {
  extern __shared__ __align__(128) float4 silu_memory[];
  __shared__ float tops[2][32];
  __shared__ bool left[PARTS_MOST];
  const int t = threadIdx.x, front = p->parts.front * 4; // columns: its chunks are of floats
  begin_kernel();
  Part at = part_of_block(p->parts);
  if (at.row >= p->rows) return; // the first row has none before it
  unsigned long long *posts = posts_of((char *)p->y + (int64_t)at.row * p->y_stride);
  SiluPart s = silu_part(p, at.row, at.last ? 0 : at.part, in, silu_memory);
  float2 v;
  if (at.last) {
    parts_left(p->parts, posts, left);
    posts_take(p->parts, posts, 0, &v);
  } else {
    float most = block_most(silu_fill(p, s, in, kind), tops[0]);
    if (t == 0) post(p->parts, posts, at.part, make_float2(most, 0));
    bool there = posts_take(p->parts, posts, p->parts.polls, &v);
    if (t == 0) part_tell(p->parts, posts, at.part, there ? PART_READ : PART_LEFT);
    if (!there) return;
  }
  Fp8Scale scale = fp8_choose(block_most(v.x, tops[1]), 1, p->scales + at.row, at.last && t == 0);
  if (!at.last) {
    silu_put(p, s, at.row, at.part ? 0 : front, s.n, in, scale);
    return;
  }
  for (uint32_t part = 0; part < p->parts.parts; part++) {
    if (part && !left[part]) continue;
    s = silu_part(p, at.row, part, in, silu_memory);
    silu_fill(p, s, in, kind);
    silu_put(p, s, at.row, 0, left[part] ? s.n : front, in, scale);
  }
}

// The rows of a block that this thread has, in shared memory: one at a time, in registers (few.cuh). scales: of the block's rows.
INLINE void silu_few_rows(int kind, int pairs, const NarrowTile &gate, const NarrowTile &up, const NarrowTile &y, float *scales) {
  const bool even = y.bytes % 2 == 0;
#pragma unroll 1
  for (int row = threadIdx.x; row < y.rows; row += NARROW_THREADS) {
    float f[FEW_WIDE], g[FEW_WIDE], most = 0;
    few_load(kind, gate.place + row * gate.pitch, even, pairs, f);
    few_load(kind, up.place + row * up.pitch, even, pairs, g);
#pragma unroll
    for (int k = 0; k < 2 * pairs; k++) {
      f[k] = silu_mul(f[k], g[k]);
      most = fmaxf(most, fabsf(f[k]));
    }
    fp8_divide(fp8_choose(most, 1, scales + row, true), 2 * pairs, f);
    few_store_fp8(y.place + row * y.pitch, even, pairs, f);
  }
}

// Dense rows of up to FEW_MOST columns, or of more, up to FEW_WIDE: spans of many of them go through shared memory.
INLINE void silu_narrow(int in, bool wide, int kind, const SiluParams *p) {
  const NarrowShape *s = &p->narrow;
  int rows = narrow_rows(s, p->rows);
  NarrowTile gate = narrow_tile(s, NARROW_X, p->gate, p->gate_stride * in, in, rows);
  NarrowTile up = narrow_tile(s, NARROW_RESIDUAL, p->up, p->up_stride * in, in, rows);
  NarrowTile y = narrow_tile(s, NARROW_Y, p->y, p->y_stride, 1, rows);
  float *scales = p->scales + ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * s->rows;
  begin_kernel();
  narrow_fetch(gate, in);
  narrow_fetch(up, in);
  narrow_arrived();
#define SILU_FEW(pairs) silu_few_rows(kind, pairs, gate, up, y, scales)
  if (wide) {
    FEW_PAIRS_WIDE(s->n, SILU_FEW)
  } else {
    FEW_PAIRS(s->n, SILU_FEW)
  }
#undef SILU_FEW
  __syncthreads();
  narrow_send(y, 1);
}

#define SILU(in, out)                                                                                        \
  KERNEL __launch_bounds__(256, 8) sol_silu_mul_lean_##in##_##out(SiluLean p) { silu_lean(in, out, p); }     \
  KERNEL __launch_bounds__(256) sol_silu_mul_any_##in##_##out(SiluParams p) { silu_any(in, out, p); }
#define SILU_BY_KIND(call, in, ...)                                                                          \
  if (in == 4) call(in, __VA_ARGS__, KIND_FP32, &p);                                                         \
  else if (p.x_kind == KIND_FP16) call(in, __VA_ARGS__, KIND_FP16, &p);                                      \
  else call(in, __VA_ARGS__, KIND_BF16, &p);
#define SILU_ANY_KIND(call, in)                                                                              \
  if (in == 4) call(in, KIND_FP32, &p);                                                                      \
  else if (p.x_kind == KIND_FP16) call(in, KIND_FP16, &p);                                                   \
  else call(in, KIND_BF16, &p);
#define SILU_BLOCK(in, wide)                                                                                 \
  KERNEL __launch_bounds__(256) sol_silu_mul_block_##in##_##wide(const __grid_constant__ SiluParams p) {     \
    SILU_BY_KIND(silu_block, in, wide)                                                                       \
  }
#define SILU_ROW(in, wide, threads, rows, count, blocks)                                                     \
  KERNEL __launch_bounds__(threads * rows, blocks)                                                           \
  sol_silu_mul_row_##in##_##wide##_##threads##_##count(const __grid_constant__ SiluParams p) {               \
    SILU_BY_KIND(silu_row, in, wide, threads, rows, count)                                                   \
  }
#define SILU_NARROW(in, wide, blocks)                                                                        \
  KERNEL __launch_bounds__(NARROW_THREADS, blocks)                                                           \
  sol_silu_mul_narrow_##in##_##wide(const __grid_constant__ SiluParams p) {                                  \
    SILU_BY_KIND(silu_narrow, in, wide)                                                                      \
  }
#define SILU_CHUNKS(in, count, blocks)                                                                       \
  KERNEL __launch_bounds__(SILU_CHUNKS_THREADS, blocks)                                                      \
  sol_silu_mul_chunks_##in##_##count(const __grid_constant__ SiluParams p) {                                 \
    SILU_BY_KIND(silu_chunks, in, count)                                                                     \
  }
#define SILU_PARTS(in)                                                                                       \
  KERNEL __launch_bounds__(PARTS_THREADS, PARTS_BLOCKS) sol_silu_mul_parts_##in(const __grid_constant__ SiluParams p) { \
    SILU_ANY_KIND(silu_parts, in)                                                                            \
  }
#define SILU_STRIP(in, blocks, threads, count, per_sm)                                                       \
  KERNEL __launch_bounds__(threads, per_sm)                                                                  \
  sol_silu_mul_strip_##in##_##blocks##_##count(const __grid_constant__ SiluParams p) {                       \
    if (blocks) { SILU_BY_KIND(silu_strip_blocks, in, count) }                                                \
    else { SILU_BY_KIND(silu_strip_row, in, count) }                                                         \
  }
#include "silu_mul.def"
