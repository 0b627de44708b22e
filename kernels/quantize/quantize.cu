// y = x / scale in int8, fp8 (e4m3) or fp4 (e2m1), with a scale for each group of columns or each row, by the largest
// magnitude in it; NaN aside.
#include "quantize.h"

#include "bytes.cuh"
#include "chunks.cuh"
#include "fp8.cuh"
#include "held.cuh"
#include "narrow.cuh"
#include "packed.cuh"
#include "parts.cuh"
#include "pieces.cuh"

// What the blocks of a row in shared memory exchange.
typedef struct QuantizeHeld {
  ClusterExchange exchange;
  uint32_t tops[HELD_THREADS / 32];
} QuantizeHeld;

// Columns of a piece, bytes of its results, and the lanes that share a group of columns. how: a literal.
INLINE int columns_of(int in) { return QUANTIZE_PIECE / in; }
INLINE int bytes_of(int how, int columns) { return how == QUANTIZE_NVFP4 ? columns / 2 : columns; }
INLINE int lanes_of(int how, int in) {
  int group = how == QUANTIZE_NVFP4 ? 16 : how == QUANTIZE_MXFP8 ? 32 : 128;
  return group / columns_of(in);
}

// most / by, to the nearest, of by's reciprocal to the nearest: a product and its remainder are enough but for the largest and the smallest (tried for all
// mantissas, by 448 and by 127). Those take double precision, in which no quotient of two floats is too near the middle of two others; a division would call a function.
INLINE float most_over(float most, float by, float inverse) {
  if (most >= 0x1p-60f && most <= 0x1p60f && by >= 0x1p-30f && by <= 0x1p30f) {
    float q = __fmul_rn(most, inverse);
    return __fmaf_rn(__fmaf_rn(-by, q, most), inverse, q);
  }
  double r = (double)inverse;
#pragma unroll 1
  for (int i = 0; i < 3 && inverse <= 0x1.fffffep127f; i++) r = r * (2 - (double)by * r);
  return (float)((double)most * r);
}

// 1 / scale to the nearest, where the scale is that of finite values: 0 for one that is 0 or infinite. What __frcp_rn does, without a call for others.
INLINE float scale_inverse(float scale) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(scale));
  r = __fmaf_rn(r, __fmaf_rn(-scale, r, 1), r);
  return scale >= 0x1p-126f && scale < 0x1p126f ? r : 0;
}

// Writes the scale number `g` (where `write` is set) and gives what its elements are multiplied by.
INLINE float scale_group(const QuantizeParams &p, int how, float most, uint64_t g, bool write) {
  if (how == QUANTIZE_MXFP8) {
    uint32_t code = quantize_e8m0(__float_as_uint(most_over(most, 448, 1.f / 448)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    return code == 254 ? __uint_as_float(0x400000u) : __uint_as_float((254 - code) << 23); // 2^(127 - code)
  }
  if (how == QUANTIZE_NVFP4) {
    float all = p.tensor_scale ? __ldg(p.tensor_scale) : 1, six = __fmul_rn(6, all);
    uint32_t code = e4m3_code(most_over(most, six, __frcp_rn(six)));
    if (write) ((uint8_t *)p.scales)[g] = (uint8_t)code;
    float scale = __fmul_rn(e4m3_pair(code).x, all);
    return scale > 0 ? __frcp_rn(scale) : 0;
  }
  float scale = how == QUANTIZE_INT8 ? most_over(most, 127, 1.f / 127) : most_over(most, 448, 1.f / 448);
  if (scale < 0x1p-126f) scale = 0;
  if (write) ((float *)p.scales)[g] = scale;
  return scale_inverse(scale);
}

// `count` elements, a multiple of 4, packed, 8 bits each.
INLINE void pack(int how, int count, const float *f, float times, uint32_t *w) {
#pragma unroll
  for (int j = 0; j < count; j += 4) {
    float g[4];
#pragma unroll
    for (int i = 0; i < 4; i++) g[i] = __fmul_rn(f[j + i], times);
    w[j / 4] = how == QUANTIZE_INT8 ? int8_four(g) : fp8_pair(g[0], g[1]) | fp8_pair(g[2], g[3]) << 16;
  }
}

// The signs of the 8 elements of words x, where those of eight codes of 4 bits are.
INLINE uint32_t fp4_signs(const uint32_t *x, int in) {
  uint32_t even, odd;
  if (in == 2) {
    uint32_t low = __byte_perm(x[0], x[1], 0x7351), high = __byte_perm(x[2], x[3], 0x7351);
    even = __byte_perm(low, high, 0x5410), odd = __byte_perm(low, high, 0x7632);
  } else {
    even = __byte_perm(__byte_perm(x[0], x[2], 0x0073), __byte_perm(x[4], x[6], 0x0073), 0x5410);
    odd = __byte_perm(__byte_perm(x[1], x[3], 0x0073), __byte_perm(x[5], x[7], 0x0073), 0x5410);
  }
  return (even >> 4 & 0x08080808u) | (odd & 0x80808080u);
}

// A piece's elements in fp4. nans: a bit for each that is NaN, whose magnitude is 0 in x.
INLINE void pack_fp4(const uint32_t *x, int in, int kind, float times, uint32_t nans, uint32_t *w) {
  const int columns = QUANTIZE_PIECE / in;
#pragma unroll
  for (int k = 0; k < columns / 8; k++) {
    uint32_t plain[8];
    float f[8];
#pragma unroll
    for (int i = 0; i < 2 * in; i++) plain[i] = x[2 * in * k + i] & (in == 2 ? 0x7fff7fffu : 0x7fffffffu);
    to_floats(plain, 8, kind, f);
    w[k] = -(QUANTIZE_BASE + (QUANTIZE_BASE << 4) + (QUANTIZE_BASE << 8)); // later bases are beyond the word
#pragma unroll
    for (int j = 0; j < 8; j++) w[k] += quantize_code(__fmul_rn(f[j], times)) << 4 * j;
    w[k] |= fp4_signs(x + 2 * in * k, in);
  }
  if (nans)
#pragma unroll
    for (int j = 0; j < columns; j++) w[j / 8] |= nans & 1u << j ? 7u << 4 * (j % 8) : 0;
}

// What is beyond the row's end, which has `left` columns from the piece on, becomes 0.
INLINE void piece_end(uint32_t *x, int left, int in) {
  if (left >= columns_of(in)) return;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    int here = left - 4 / in * i;
    x[i] = here <= 0 ? 0 : in == 2 && here == 1 ? x[i] & 0xffffu : x[i];
  }
}

// Stores a piece's results at `column` of the row at y. follows, followed: see give_piece; the latter where the row goes on.
INLINE void put_piece(const QuantizeParams &p, int how, char *y, int64_t column, int left, int in, bool follows,
                      bool followed, const uint32_t *w, const uint32_t *before) {
  const int columns = columns_of(in), words = bytes_of(how, columns) / 4;
  int bytes = bytes_of(how, left < columns ? (left > 0 ? left : 0) : columns);
  char *at = y + (how == QUANTIZE_NVFP4 ? column / 2 : column);
  if (p.shifted) give_piece(at, bytes, follows, followed && left > columns, words, w, before);
  else if (bytes == 4 * words) store_aligned(at, words, w);
  else if (bytes) store_part(at, 0, bytes, words, 1, w);
}

INLINE Extent quantize_extent(const QuantizeParams &p, int in) {
  Extent e;
  e.begin = (const char *)p.x;
  e.end = e.begin + (int64_t)(p.m - 1) * p.x_stride + p.n * in;
  return e;
}

// Groups of 16, 32 or 128 columns: neighbouring lanes share one, and a row has whole groups of lanes.
typedef struct QuantizePlace {
  uint64_t row;
  int64_t number; // of the piece in the row
  int left;       // columns from there on, or QUANTIZE_PIECE of them
} QuantizePlace;

INLINE QuantizePlace quantize_place(const QuantizeParams &p, uint64_t i, int in) {
  QuantizePlace a;
  if (p.small.by) {
    uint32_t row = divide32((uint32_t)i, p.small);
    a.row = row, a.number = (uint32_t)i - row * p.small.by;
  } else {
    a.row = divide(i, p.divider), a.number = (int64_t)(i - a.row * p.divider.by);
  }
  a.left = a.row < p.m ? (int)min(p.n - a.number * columns_of(in), (int64_t)QUANTIZE_PIECE) : 0;
  return a;
}

// The largest magnitude of two words of elements, or of one and of what was found before; of 2-byte elements two at a time.
INLINE uint32_t most_word(uint32_t most, uint32_t w, int in, int kind) {
  if (in == 2) return larger2(most, w & 0x7fff7fffu, kind);
  return __float_as_uint(fmaxf(__uint_as_float(most), fabsf(__uint_as_float(w))));
}
INLINE void most_chunk(uint32_t *most, const Vec &v, int in, int kind) {
#pragma unroll
  for (int j = 0; j < 4; j++) most[j % 2] = most_word(most[j % 2], v.u[j], in, kind);
}
INLINE uint32_t most_bits(const uint32_t *most, int in, int kind) {
  uint32_t all = most_word(most[0], most[1], in, kind);
  if (in == 4) return all;
  float2 two = widen2(all, kind);
  return __float_as_uint(fmaxf(two.x, two.y));
}

// The largest magnitude of a piece. A NaN is passed over, but of fp4, where it is above all.
INLINE uint32_t piece_most(const uint32_t *x, int in, int kind, bool see_nans) {
  uint32_t most[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 8; i++) {
    if (in == 4) most[i % 2] = see_nans ? max(most[i % 2], x[i] & 0x7fffffffu) : most_word(most[i % 2], x[i], in, kind);
    else if (see_nans) most[i % 2] = higher2(most[i % 2], x[i] & 0x7fff7fffu, kind);
    else most[i % 2] = most_word(most[i % 2], x[i], in, kind);
  }
  if (!see_nans) return most_bits(most, in, kind);
  if (in == 4) return max(most[0], most[1]);
  float2 two = widen2(higher2(most[0], most[1], kind), kind);
  return max(__float_as_uint(two.x), __float_as_uint(two.y));
}

// Which elements are NaN, a bit each: their magnitudes become 0.
INLINE uint32_t piece_nans(uint32_t *x, int in, int kind) {
  const int columns = columns_of(in);
  uint32_t nans = 0;
#pragma unroll
  for (int j = 0; j < columns; j++) {
    uint32_t at = in == 4 ? 0 : j % 2 * 16, one = in == 4 ? x[j] : x[j / 2] >> at & 0xffffu;
    uint32_t sign = in == 4 ? 1u << 31 : 1u << 15, most = in == 4 ? 0x7f800000u : kind == KIND_FP16 ? 0x7c00u : 0x7f80u;
    if ((one & (sign - 1)) <= most) continue;
    nans |= 1u << j;
    x[in == 4 ? j : j / 2] &= ~((sign - 1) << at);
  }
  return nans;
}

// What a warp's last lane has, for the first lane of the next: by turns and warps, after a place that is not used.
typedef struct QuantizeEdges {
  uint32_t w[QUANTIZE_EACH * QUANTIZE_BLOCK / 32 + 1][4];
} QuantizeEdges;

INLINE void quantize_blocks(const QuantizeParams &p, int in, int kind, int how, QuantizeEdges *edges) {
  const int columns = columns_of(in), lanes = lanes_of(how, in), each = QUANTIZE_EACH, words = bytes_of(how, columns) / 4, warps = QUANTIZE_BLOCK / 32;
  uint64_t first = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) * (QUANTIZE_BLOCK * each) + threadIdx.x;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  QuantizePlace a[each];
  Piece piece[each];
  uint32_t w[each][4];
  begin_kernel();
#pragma unroll
  for (int k = 0; k < each; k++) {
    a[k] = quantize_place(p, first + k * QUANTIZE_BLOCK, in);
    const char *x = (const char *)p.x + (int64_t)a[k].row * p.x_stride + a[k].number * QUANTIZE_PIECE;
    load_piece(quantize_extent(p, in), x, a[k].left, in, &piece[k]);
  }
#pragma unroll
  for (int k = 0; k < each; k++) {
    uint32_t *x = piece[k].w, nans = 0;
    cut_piece(&piece[k], in);
    piece_end(x, a[k].left, in);
    uint32_t most = lanes_top(piece_most(x, in, kind, how == QUANTIZE_NVFP4), lanes);
    if (how == QUANTIZE_NVFP4 && __any_sync(~0u, most > 0x7f800000u)) {
      nans = piece_nans(x, in, kind);
      most = lanes_top(piece_most(x, in, kind, true), lanes);
    }
    float times = scale_group(p, how, __uint_as_float(most), a[k].row * (uint64_t)p.groups + (uint64_t)(a[k].number / lanes),
                              a[k].left > 0 && a[k].number % lanes == 0);
    if (how == QUANTIZE_NVFP4) {
      pack_fp4(x, in, kind, times, nans, w[k]);
    } else {
      float f[16];
      to_floats(x, columns, kind, f);
      pack(how, columns, f, times, w[k]);
    }
#pragma unroll
    for (int i = 0; i < words; i++)
      if (p.shifted && lane == 31) edges->w[k * warps + warp + 1][i] = w[k][i];
  }
  if (p.shifted) __syncthreads();
#pragma unroll
  for (int k = 0; k < each; k++) {
    int at = k * warps + warp; // the block's first piece has none before it, and its last none after it
    put_piece(p, how, (char *)p.y + (int64_t)a[k].row * p.y_stride, a[k].number * columns, a[k].left, in,
              at + lane > 0 && a[k].number > 0, at < each * warps - 1 || lane < 31, w[k], edges->w[at]);
  }
}

INLINE void pack_chunk(int how, int in, int kind, const Vec &v, float times, uint32_t *w) {
  float f[8];
  widen(&v, kind, in, f);
  pack(how, 16 / in, f, times, w);
}

// The largest over the threads of a block, whose warps have `tops`.
INLINE uint32_t block_top(uint32_t top, uint32_t *tops) {
  top = lanes_top(top, 32);
  if (threadIdx.x % 32 == 0) tops[threadIdx.x / 32] = top;
  __syncthreads();
  return lanes_top(threadIdx.x % 32 < blockDim.x / 32 ? tops[threadIdx.x % 32] : 0, 32);
}

// A scale for each row, which lanes of a warp, or a block, hold in registers (chunks.cuh), `count` turns.
INLINE void quantize_rows(const QuantizeParams &p, int in, int kind, int how, int count) {
  __shared__ uint32_t tops[QUANTIZE_ROW(2) / 32];
  const int words = 4 / in;
  RowLanes a = row_lanes(p.lane_bits);
  int n = a.row < p.m ? (int)p.n : 0;
  RowChunks r = row_chunks(a, quantize_extent(p, in), p.x_stride, n, in, count);
  Vec v[6];
  uint32_t most[2] = {0, 0}, w[2];
  begin_kernel();
  chunks_load(r, count, in, v);
#pragma unroll
  for (int k = 0; k < count; k++) {
    chunk_mask(r, k, 0, v[k]);
    most_chunk(most, v[k], in, kind);
  }
  uint32_t top = most_bits(most, in, kind);
  if (p.lane_bits < 0) top = block_top(top, tops);
  else
    for (int o = a.lanes / 2; o; o /= 2) top = max(top, __shfl_xor_sync(~0u, top, o));
  float times = scale_group(p, how, __uint_as_float(top), a.row, r.first == 0 && n);
  Cells c = cells_of((char *)p.y + (int64_t)a.row * p.y_stride, r.begin, r.end, r.column, a.lane, a.lanes, words);
#pragma unroll
  for (int k = 0; k < count; k++) {
    pack_chunk(how, in, kind, v[k], times, w);
    cells_put(c, r.column + k * r.turn, words, w);
  }
  cells_end(c, r.column + count * r.turn, words);
}

// The same for rows of whole chunks on 16 bytes, y's on a chunk's results: each chunk is one load and one store, and threads next to each
// other have chunks next to each other. It takes few registers, so that many rows are under way.
INLINE void quantize_whole(const QuantizeParams &p, int in, int kind, int how, int count) {
  __shared__ uint32_t tops[QUANTIZE_ROW(2) / 32];
  const int per = 16 / in;
  RowLanes a = row_lanes(p.lane_bits);
  const bool alone = p.lane_bits < 0;
  int lane = alone ? threadIdx.x : a.lane, turn = alone ? blockDim.x : a.lanes, left = a.row < p.m ? (int)p.n / per - lane : 0;
  const char *x = (const char *)p.x + (int64_t)a.row * p.x_stride + lane * 16;
  char *y = (char *)p.y + (int64_t)a.row * p.y_stride + lane * per;
  Vec v[6];
  uint32_t most[2] = {0, 0}, w[2];
  begin_kernel();
#pragma unroll
  for (int k = 0; k < count; k++) v[k].v = load_if(x + k * turn * 16, k * turn < left);
#pragma unroll
  for (int k = 0; k < count; k++) most_chunk(most, v[k], in, kind);
  uint32_t top = most_bits(most, in, kind);
  if (alone) top = block_top(top, tops);
  else
    for (int o = a.lanes / 2; o; o /= 2) top = max(top, __shfl_xor_sync(~0u, top, o));
  float times = scale_group(p, how, __uint_as_float(top), a.row, lane == 0 && left > 0);
#pragma unroll
  for (int k = 0; k < count; k++) {
    if (k * turn >= left) continue;
    pack_chunk(how, in, kind, v[k], times, w);
    store_aligned(y + k * turn * per, per / 4, w);
  }
}

// The largest over the blocks of a cluster.
INLINE uint32_t cluster_top(uint32_t top, int blocks, ClusterExchange *exchange) {
  exchange_all(exchange, blocks, make_float2(__uint_as_float(top), 0));
  for (int i = 0; i < blocks; i++) top = max(top, __float_as_uint(exchange->from[i].x));
  return top;
}

// An element beside the row's chunks.
INLINE void put_edge(char *y, int how, float edge, float times) {
  float f[4] = {edge, 0, 0, 0};
  uint32_t w;
  pack(how, 4, f, times, &w);
  *(uint8_t *)y = (uint8_t)w;
}

// A row that no registers hold is held in shared memory, of several blocks if need be.
INLINE void quantize_held(const QuantizeParams &p, int in, int kind, int how, QuantizeHeld *shared, uint4 *memory) {
  const int per = 16 / in, words = per / 4;
  Held h = held_of(p.x, p.x_stride, p.n, in, memory, p.held);
  held_fill(h);
  uint32_t most[2] = {0, 0}, w[2];
  Vec v;
#pragma unroll 4
  for (int k = 0; k < h.count; k++) {
    v.v = held_vector(h, k);
    most_chunk(most, v, in, kind);
  }
  uint32_t top = most_bits(most, in, kind);
  int64_t at;
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++)
    top = __float_as_uint(fmaxf(__uint_as_float(top), fabsf(load_one(h.x.at, at, kind))));
  top = block_top(top, shared->tops);
  if (h.blocks > 1) top = cluster_top(top, h.blocks, &shared->exchange);
  float times = scale_group(p, how, __uint_as_float(top), h.row, h.rank == 0 && threadIdx.x == 0);
  char *y = (char *)p.y + (int64_t)h.row * p.y_stride;
  int turns = __shfl_sync(~0u, h.count, 0); // the first lane's; those after it have as many, or one less
  int chunks = turns ? 32 * (turns - 1) + __popc(__ballot_sync(~0u, h.count == turns)) : 0, mine = h.lane * per;
  Cells c = cells_of(y + h.x.head + (h.first - h.lane) * per, 0, chunks * per, mine, h.lane, 32, words);
#pragma unroll 2
  for (int k = 0; k < turns; k++) {
    if (k < h.count) v.v = held_vector(h, k);
    pack_chunk(how, in, kind, v, times, w);
    cells_put(c, mine + k * 32 * per, words, w);
  }
  cells_end(c, mine + turns * 32 * per, words);
  for (int i = 0; (at = held_edge(h, i)) >= 0; i++) put_edge(y + at, how, load_one(h.x.at, at, kind), times);
}

// A part of a row (parts.cuh) in shared memory: warps have consecutive segments of its chunks.
typedef struct QuantizePart {
  const uint4 *from; // its first chunk
  int64_t column;    // of that
  int chunks, turns; // turns: of a warp, a chunk a lane each
} QuantizePart;

// Of parts that have of_part chunks each.
INLINE QuantizePart quantize_cut(const Span &x, int part, int64_t of_part, int threads, int in) {
  const int per = 16 / in;
  int64_t first = part * of_part;
  QuantizePart a;
  a.from = (const uint4 *)x.body + first;
  a.column = x.head + first * per;
  a.chunks = (int)max(min(x.chunks - first, of_part), (int64_t)0);
  a.turns = (a.chunks + threads - 1) / threads;
  return a;
}

// This thread's chunk of turn k, in its part.
INLINE int part_chunk(const QuantizePart &a, int k) { return (threadIdx.x / 32 * a.turns + k) * 32 + threadIdx.x % 32; }

INLINE void part_fill(const QuantizePart &a, uint4 *memory) { // a thread reads what it has copied itself
#pragma unroll 8
  for (int k = 0; k < a.turns; k++) {
    int c = part_chunk(a, k);
    if (c < a.chunks) fetch16(memory + c, a.from + c);
  }
  wait_for_fetches();
}

INLINE uint32_t part_top(const QuantizePart &a, const uint4 *memory, int in, int kind) {
  uint32_t most[2] = {0, 0};
#pragma unroll 4
  for (int k = 0; k < a.turns; k++) {
    int c = part_chunk(a, k);
    Vec v;
    v.v = c < a.chunks ? memory[c] : make_uint4(0, 0, 0, 0);
    most_chunk(most, v, in, kind);
  }
  return most_bits(most, in, kind);
}

// Writes a part's chunks from number `first` on.
INLINE void part_put(const QuantizePart &a, char *y, int first, const uint4 *memory, int in, int kind, int how, float times) {
  const int per = 16 / in, words = per / 4;
  int lane = threadIdx.x % 32, begin = part_chunk(a, 0) - lane, end = min(begin + 32 * a.turns, a.chunks);
  Cells c = cells_of(y + a.column, max(begin, first) * per, end * per, (begin + lane) * per, lane, 32, words);
  uint32_t w[2];
#pragma unroll 2
  for (int k = 0; k < a.turns; k++) {
    Vec v;
    v.v = part_chunk(a, k) < a.chunks ? memory[part_chunk(a, k)] : make_uint4(0, 0, 0, 0);
    pack_chunk(how, in, kind, v, times, w);
    cells_put(c, part_chunk(a, k) * per, words, w);
  }
  cells_end(c, part_chunk(a, a.turns) * per, words);
}

// A row that no registers hold, each block of a cluster a part of it in shared memory. It takes few registers, so that many blocks share an SM.
[[maybe_unused]] INLINE void quantize_cluster(const QuantizeParams &p, int in, int kind, int how, QuantizeHeld *shared, uint4 *memory) {
  int blocks = cluster_blocks(), rank = blocks > 1 ? (int)cluster_rank() : 0, t = threadIdx.x;
  uint64_t row = ((uint64_t)blockIdx.y * gridDim.x + blockIdx.x) / blocks;
  Span x = span_of((const char *)p.x + (int64_t)row * p.x_stride, p.n, in);
  QuantizePart a = quantize_cut(x, rank, p.of_block, blockDim.x, in);
  part_fill(a, memory);
  float most = __uint_as_float(part_top(a, memory, in, kind));
  if (rank == 0 && t < x.edges) most = fmaxf(most, fabsf(load_one(x.at, span_edge(&x, t), kind)));
  uint32_t top = block_top(__float_as_uint(most), shared->tops);
  if (blocks > 1) top = cluster_top(top, blocks, &shared->exchange);
  float times = scale_group(p, how, __uint_as_float(top), row, rank == 0 && t == 0);
  char *y = (char *)p.y + (int64_t)row * p.y_stride;
  if (rank == 0 && t < x.edges) put_edge(y + span_edge(&x, t), how, load_one(x.at, span_edge(&x, t), kind), times);
  part_put(a, y, 0, memory, in, kind, how, times);
}

// A row that a cluster does not hold is cut into parts, which are in the shared memory of blocks all over the GPU. Its last block writes what the others left:
// the start of the row, where they have posted, single elements at its ends, and parts that were given up.
[[maybe_unused]] INLINE void quantize_parts(const QuantizeParams &p, int in, int kind, int how, uint4 *memory) {
  __shared__ uint32_t tops[2][PARTS_THREADS / 32];
  __shared__ bool left[PARTS_MOST];
  const int t = threadIdx.x;
  Part at = part_of_block(p.parts);
  if (at.row >= p.m) return; // the first row has none before it
  Span x = span_of((const char *)p.x + (int64_t)at.row * p.x_stride, p.n, in);
  QuantizePart a = quantize_cut(x, at.part, p.parts.length / (16 / in), PARTS_THREADS, in);
  char *y = (char *)p.y + (int64_t)at.row * p.y_stride;
  unsigned long long *posts = posts_of(y);
  float edge = t < x.edges ? load_one(x.at, span_edge(&x, t), kind) : 0;
  float2 v;
  if (at.last) {
    parts_left(p.parts, posts, left);
    posts_take(p.parts, posts, 0, &v);
  } else {
    part_fill(a, memory);
    uint32_t top = part_top(a, memory, in, kind);
    if (at.part == 0) top = __float_as_uint(fmaxf(__uint_as_float(top), fabsf(edge)));
    top = block_top(top, tops[0]);
    if (t == 0) post(p.parts, posts, at.part, make_float2(__uint_as_float(top), 0));
    bool there = posts_take(p.parts, posts, p.parts.polls, &v);
    if (t == 0) part_tell(p.parts, posts, at.part, there ? PART_READ : PART_LEFT);
    if (!there) return;
  }
  float times = scale_group(p, how, __uint_as_float(block_top(__float_as_uint(v.x), tops[1])), at.row, at.last && t == 0);
  if (!at.last) {
    part_put(a, y, at.part ? 0 : p.parts.front, memory, in, kind, how, times);
    return;
  }
  for (uint32_t part = 0; part < p.parts.parts; part++) {
    if (part && !left[part]) continue;
    __syncthreads(); // others may still read what they have of the part before
    a = quantize_cut(x, part, p.parts.length / (16 / in), PARTS_THREADS, in);
    if (!left[part]) a.chunks = min(a.chunks, p.parts.front), a.turns = (a.chunks + PARTS_THREADS - 1) / PARTS_THREADS;
    part_fill(a, memory);
    part_put(a, y, 0, memory, in, kind, how, times);
  }
  if (t < x.edges) put_edge(y + span_edge(&x, t), how, edge, times);
}

#include "quantize_narrow.cuh"
#include "quantize_stream.cuh"

// body(how, kind): both are literals. Rows have few instructions to spare for a choice between kinds.
#define QUANTIZE_BY_KIND(body, how)                                                                          \
  if (in == 4) body(how, KIND_FP32);                                                                         \
  else if (p.x_kind == KIND_FP16) body(how, KIND_FP16);                                                      \
  else body(how, KIND_BF16);
#define QUANTIZE_ALL(body)                                                                                   \
  if (p.how == QUANTIZE_INT8) {                                                                              \
    QUANTIZE_BY_KIND(body, QUANTIZE_INT8)                                                                    \
  } else {                                                                                                   \
    QUANTIZE_BY_KIND(body, QUANTIZE_FP8)                                                                     \
  }
#define QUANTIZE_BY_HOW(body)                                                                                \
  if (p.how == QUANTIZE_MXFP8) {                                                                             \
    QUANTIZE_BY_KIND(body, QUANTIZE_MXFP8)                                                                   \
  } else if (p.how == QUANTIZE_NVFP4) {                                                                      \
    QUANTIZE_BY_KIND(body, QUANTIZE_NVFP4)                                                                   \
  } else {                                                                                                   \
    QUANTIZE_ALL(body)                                                                                       \
  }
#define BLOCKS(how, kind) quantize_blocks(p, in, kind, how, &edges)
#define ROWS(how, kind)  quantize_rows(p, in, kind, how, count)
#define WHOLE(how, kind) quantize_whole(p, in, kind, how, count)
#define HELD(how, kind)  quantize_held(p, in, kind, how, &shared, memory)
#define CLUSTER(how, kind) quantize_cluster(p, in, kind, how, &shared, memory)
#define PARTS(how, kind) quantize_parts(p, in, kind, how, memory)
#define NARROW(how, kind) quantize_narrow(p, in, kind, how)
#define QUANTIZE_ROWS(in_, count_)                                                                           \
  KERNEL __launch_bounds__(QUANTIZE_ROW(count_), 2)                                                          \
  sol_quantize_rows_##in_##_##count_(const __grid_constant__ QuantizeParams p) {                             \
    const int in = in_, count = count_;                                                                      \
    QUANTIZE_ALL(ROWS)                                                                                       \
  }
#define QUANTIZE_WHOLE(in_, count_, blocks)                                                                  \
  KERNEL __launch_bounds__(QUANTIZE_ROW(count_), blocks)                                                     \
  sol_quantize_whole_##in_##_##count_(const __grid_constant__ QuantizeParams p) {                            \
    const int in = in_, count = count_;                                                                      \
    QUANTIZE_ALL(WHOLE)                                                                                      \
  }
#define QUANTIZE(in_)                                                                                        \
  KERNEL __launch_bounds__(QUANTIZE_BLOCK, 5) sol_quantize_blocks_##in_(const __grid_constant__ QuantizeParams p) { \
    __shared__ QuantizeEdges edges;                                                                          \
    const int in = in_;                                                                                      \
    QUANTIZE_BY_HOW(BLOCKS)                                                                                  \
  }                                                                                                          \
  QUANTIZE_ROWS(in_, 2)                                                                                      \
  QUANTIZE_ROWS(in_, 3)                                                                                      \
  QUANTIZE_ROWS(in_, 4)                                                                                      \
  QUANTIZE_ROWS(in_, 6)                                                                                      \
  QUANTIZE_WHOLE(in_, 2, 4)                                                                                  \
  QUANTIZE_WHOLE(in_, 3, 3)                                                                                  \
  QUANTIZE_WHOLE(in_, 4, 3)                                                                                  \
  QUANTIZE_WHOLE(in_, 6, 3)                                                                                  \
  KERNEL __launch_bounds__(HELD_THREADS, 2) sol_quantize_held_##in_(const __grid_constant__ QuantizeParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ QuantizeHeld shared;                                                                          \
    const int in = in_;                                                                                      \
    if (cluster_blocks() > 1) exchange_init(&shared.exchange);                                               \
    begin_kernel();                                                                                          \
    QUANTIZE_ALL(HELD)                                                                                       \
  }                                                                                                          \
  KERNEL __launch_bounds__(NARROW_THREADS) sol_quantize_narrow_##in_(const __grid_constant__ QuantizeParams p) { \
    const int in = in_;                                                                                      \
    if (p.how == QUANTIZE_MXFP8) {                                                                           \
      QUANTIZE_BY_KIND(NARROW, QUANTIZE_MXFP8)                                                               \
    } else {                                                                                                 \
      QUANTIZE_ALL(NARROW)                                                                                   \
    }                                                                                                        \
  }
QUANTIZE(2)
QUANTIZE(4)
#define QUANTIZE_STREAM(in)                                                                                  \
  KERNEL __launch_bounds__(STREAM_THREADS, 1) sol_quantize_stream_##in(const __grid_constant__ QuantizeParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ StreamShared shared;                                                                          \
    stream(p.stream, QuantizeStream{p, in}, &shared, memory, in);                                            \
  }
#define QUANTIZE_CLUSTER(in_)                                                                                \
  KERNEL __launch_bounds__(QUANTIZE_CLUSTER_THREADS, QUANTIZE_CLUSTER_BLOCKS)                                \
      sol_quantize_cluster_##in_(const __grid_constant__ QuantizeParams p) {                                 \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    __shared__ QuantizeHeld shared;                                                                          \
    const int in = in_;                                                                                      \
    if (cluster_blocks() > 1) exchange_init(&shared.exchange);                                               \
    begin_kernel();                                                                                          \
    QUANTIZE_ALL(CLUSTER)                                                                                    \
  }
#define QUANTIZE_PARTS(in_)                                                                                  \
  KERNEL __launch_bounds__(PARTS_THREADS, PARTS_BLOCKS) sol_quantize_parts_##in_(const __grid_constant__ QuantizeParams p) { \
    extern __shared__ __align__(128) uint4 memory[];                                                         \
    const int in = in_;                                                                                      \
    begin_kernel();                                                                                          \
    QUANTIZE_ALL(PARTS)                                                                                      \
  }
#if __CUDA_ARCH__ < 900 || !defined(__CUDA_ARCH__) // elsewhere a stream takes such rows
QUANTIZE_PARTS(2)
QUANTIZE_PARTS(4)
#endif
#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)
QUANTIZE_CLUSTER(2)
QUANTIZE_CLUSTER(4)
QUANTIZE_STREAM(2)
QUANTIZE_STREAM(4)
#endif
