// rmsnorm of table[ids[row]], rows that start anywhere in the table and lie side by side in y and in the rows themselves, which both start at 16 bytes:
// so many rows as are whole chunks of 16 bytes are joined. A block copies its rows into shared memory, by the table's chunks, sums their
// squares there, and writes by the outputs' chunks. A thread has the same chunk of some joined rows, so that its columns, and the weights
// under them, are the same for all.
#ifndef SOL_KERNELS_EMBED_JOINED_CUH
#define SOL_KERNELS_EMBED_JOINED_CUH

#include "embed_rows.cuh"

// In shared memory: where each row comes from, where its first element is there, its scale; then the rows.
typedef struct JoinedRows {
  const char **from; // NULL: zeros
  int *place;        // bytes
  float *scale;
  char *memory;
  int rows;
} JoinedRows;

INLINE JoinedRows joined_rows(const EmbedParams *p, uint64_t first) {
  JoinedRows t = {(const char **)narrow_memory};
  t.place = (int *)(t.from + p->staged);
  t.scale = (float *)(t.place + p->staged);
  t.memory = narrow_memory + (p->staged * 16 + 4 + 15) / 16 * 16;
  t.rows = (int)min((uint64_t)p->staged, p->m - first);
  return t;
}

INLINE void joined_find(const EmbedParams *p, const JoinedRows &t, uint64_t first) {
  for (int i = threadIdx.x; i < t.rows; i += blockDim.x) {
    const char *x = embed_from(p, first + i);
    t.from[i] = x;
    t.place[i] = i * p->pitch + (int)((uint32_t)(uintptr_t)x & 15);
  }
  if (threadIdx.x == 0) t.scale[t.rows] = 0;
}

// The chunks of the table that have a part of a row. What is beyond the table is not read.
INLINE void joined_fill(const EmbedParams *p, const JoinedRows &t, int size) {
  const int bytes = p->n * size, most = (bytes + 30) / 16;
  const uint32_t over = ~0u / most + 1;
#pragma unroll 4
  for (int i = threadIdx.x; i < t.rows * most; i += blockDim.x) {
    int row = most == 1 ? i : (int)__umulhi(i, over), chunk = (i - row * most) * 16;
    const char *x = t.from[row], *at = x - ((uintptr_t)x & 15) + chunk;
    char *to = t.memory + row * p->pitch + chunk;
    if (at >= x + bytes) continue;
    if (!x) *(uint4 *)to = make_uint4(0, 0, 0, 0);
    else if (at >= (const char *)p->table && at + 16 <= p->table_end) fetch16(to, at);
    else *(uint4 *)to = load_singly(at, x, x + bytes, size);
    if (at + 16 >= x + bytes) *(uint4 *)(to + 16) = make_uint4(0, 0, 0, 0); // a chunk of y is cut out of 32 bytes
  }
  wait_for_fetches();
}

// The chunk's elements that are of columns 0 to n; the others are zeros. column: of its first.
INLINE uint4 joined_mask(uint4 v, int column, int n, int size) {
  const int per = 16 / size;
  uint32_t w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
  for (int j = 0; j < per; j++) {
    if ((uint32_t)(column + j) < (uint32_t)n) continue;
    if (size == 4) w[j] = 0;
    else w[j / 2] &= j % 2 ? 0xffff : 0xffff0000u;
  }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

INLINE float joined_squares(uint4 v, int kind, int size, float sum) {
  Vec w;
  float f[8];
  w.v = v;
  widen(&w, kind, size, f);
#pragma unroll
  for (int j = 0; j < 16 / size; j++) sum = fmaf(f[j], f[j], sum);
  return sum;
}

// `lanes` lanes have a row: its scale, and behind it the first elements of the next row, which a chunk of y may have as well.
INLINE void joined_sums(const EmbedParams *p, const JoinedRows &t, int kind, int lanes) {
  const int size = kind == KIND_FP32 ? 4 : 2, per = 16 / size;
  int lane = threadIdx.x % lanes, turns = (t.rows + (int)blockDim.x / lanes - 1) / ((int)blockDim.x / lanes);
#pragma unroll 1
  for (int i = 0, row = threadIdx.x / lanes; i < turns; i++, row += blockDim.x / lanes) {
    bool there = row < t.rows;
    int place = there ? t.place[row] : 0, column = lane * per - (place & 15) / size;
    const char *at = t.memory + (place & -16) + lane * 16;
    float sum = 0;
    for (; there && column < p->n; column += lanes * per, at += lanes * 16) {
      uint4 v = *(const uint4 *)at;
      if (column < 0 || column + per > p->n) v = joined_mask(v, column, p->n, size);
      sum = joined_squares(v, kind, size, sum);
    }
#pragma unroll
    for (int o = lanes / 2; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    __syncwarp(); // what is put behind a row may be in the chunk that its last lane has just read
    if (!there) continue;
    if (lane == 0) t.scale[row] = rsqrtf(fmaf(sum, p->over_n, p->eps));
    if (row + 1 == t.rows) continue;
    const char *next = t.memory + t.place[row + 1];
    for (int e = lane; e < per - 1; e += lanes) move_one(t.memory + place + (p->n + e) * size, next + e * size, size);
  }
}

// Chunk `unit` of joined rows: the row and the column that it starts at, the elements up to that row's end, and the weights under it.
typedef struct JoinedChunk {
  int row, column, left;
  float weight[8];
} JoinedChunk;

INLINE JoinedChunk joined_chunk(const EmbedParams *p, int unit, int per) {
  JoinedChunk c;
  c.row = unit * per / p->n;
  c.column = unit * per - c.row * p->n;
  c.left = p->n - c.column;
  int column = c.column;
#pragma unroll
  for (int j = 0; j < per; j++) {
    c.weight[j] = p->weight ? load_one(p->weight, column, p->weight_kind) + p->offset : 1;
    column = column + 1 == p->n ? 0 : column + 1;
  }
  return c;
}

INLINE uint4 joined_result(const JoinedChunk &c, uint4 v, float scale, float next, int kind) {
  const int size = kind == KIND_FP32 ? 4 : 2, per = 16 / size;
  Vec w;
  float f[8];
  w.v = v;
  widen(&w, kind, size, f);
#pragma unroll
  for (int j = 0; j < per; j++) f[j] *= c.weight[j] * (j < c.left ? scale : next);
  narrow(&w, kind, size, f);
  return w.v;
}

// Of the last row's last chunk `count` elements alone.
INLINE void joined_store(char *to, uint4 v, int count, int size) {
  const uint32_t w[4] = {v.x, v.y, v.z, v.w};
  if (count >= 16 / size) *(uint4 *)to = v;
  else
#pragma unroll
    for (int j = 0; j < 16 / size; j++) {
      if (j < count && size == 4) ((uint32_t *)to)[j] = w[j];
      if (j < count && size == 2) ((uint16_t *)to)[j] = (uint16_t)(w[j / 2] >> j % 2 * 16);
    }
}

INLINE void joined_write(const EmbedParams *p, const JoinedRows &t, uint64_t first, int kind) {
  const int size = kind == KIND_FP32 ? 4 : 2, per = 16 / size;
  int groups = max((int)blockDim.x / p->units, 1), group = groups == 1 ? 0 : threadIdx.x / p->units;
  if (group >= groups) return;
  char *y = (char *)p->y + (int64_t)first * p->y_stride, *second = (char *)p->second + (int64_t)first * p->y_stride;
#pragma unroll 1
  for (int unit = threadIdx.x - group * p->units; unit < p->units; unit += blockDim.x) {
    JoinedChunk c = joined_chunk(p, unit, per);
    int at = (group * p->units + unit) * 16;
#pragma unroll 2
    for (int row = c.row + group * p->joined; row < t.rows; row += groups * p->joined, at += groups * p->units * 16) {
      int place = t.place[row] + c.column * size, count = row + 1 < t.rows ? per : c.left;
      const uint4 *from = (const uint4 *)(t.memory + (place & -16));
      uint4 v = funnel(from[0], from[1], place & 15, size);
      if (p->second) joined_store(second + at, v, count, size);
      joined_store(y + at, joined_result(c, v, t.scale[row], t.scale[row + 1], kind), count, size);
    }
  }
}

INLINE void joined_hint(const EmbedParams *p, const JoinedRows &t, uint64_t first, int size) {
  int lines = (p->n * size + 127) / 128 + 1;
  for (int i = threadIdx.x; i < t.rows * lines; i += blockDim.x) {
    int row = i / lines;
    const char *x = embed_likely(p, first + row);
    if (x) prefetch_l2(x + min((i - row * lines) * 128, p->n * size - 1));
  }
  embed_hint_weights(p);
}

INLINE void embed_joined(const EmbedParams *p, int kind) {
  const int size = kind == KIND_FP32 ? 4 : 2;
  uint64_t first = block_index() * p->staged;
  JoinedRows t = joined_rows(p, first);
  if (may_hint()) joined_hint(p, t, first, size);
  begin_kernel();
  joined_find(p, t, first);
  __syncthreads();
  joined_fill(p, t, size);
  __syncthreads();
  if (p->lanes == 4) joined_sums(p, t, kind, 4);
  else if (p->lanes == 8) joined_sums(p, t, kind, 8);
  else joined_sums(p, t, kind, 32);
  __syncthreads();
  joined_write(p, t, first, kind);
}

#endif
