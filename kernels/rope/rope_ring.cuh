// Heads of any width at any address: a warp takes some heads of a token, the next ones while others are on their way. Bulk copies bring what is around
// them, and their rows of the tables, into a ring of slots of the warp (around.cuh); lanes take words of it. There are no barriers of blocks.
#ifndef SOL_KERNELS_ROPE_RING_CUH
#define SOL_KERNELS_ROPE_RING_CUH

#include "around.cuh"

#if !defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 900

enum { RING_WARPS = ROPE_RING_THREADS / 32 };

// Some heads of a token.
typedef struct RopePiece {
  uint32_t token;
  int head, heads;
} RopePiece;

INLINE RopePiece rope_piece(const RopeParams &p, uint32_t i) {
  RopePiece a;
  a.token = divide32(i, p.groups32);
  a.head = (int)(i - a.token * p.groups32.by) * p.lanes;
  a.heads = min(p.lanes, (int)p.heads - a.head);
  return a;
}

INLINE int64_t rope_place(const RopePiece &a, const RopeParams &p, int64_t stride) { return (int64_t)a.token * stride + (int64_t)a.head * p.d; }

// The position of a piece's token, loaded but not looked at: that would wait for it. Lane 0 alone has one.
typedef struct RopeAhead {
  uint32_t piece, low, high;
} RopeAhead;

INLINE void rope_ahead(const RopeParams &p, RopeAhead *a) {
  a->low = a->high = 0;
  if (a->piece >= p.items || !p.positions) return;
  uint32_t token = divide32(a->piece, p.groups32);
  if (p.wide_ids) a->high = ((const uint32_t *)p.positions)[2 * (uint64_t)token + 1];
  a->low = ((const uint32_t *)p.positions)[p.wide_ids ? 2 * (uint64_t)token : token];
}

INLINE int64_t rope_position(const RopeParams &p, const RopeAhead &a, uint32_t token) {
  int64_t row = !p.positions ? token : p.wide_ids ? (int64_t)((uint64_t)a.high << 32 | a.low) : (int32_t)a.low;
  return row >= 0 && row < p.rows ? row : -1;
}

// Two tables of `bytes` bytes.
INLINE void rope_fetch_piece(const RopeParams &p, RopeAhead *a, char *slot, uint64_t *full, int in, int weight, int64_t table) {
  if (a->piece >= p.items) return;
  RopePiece t = rope_piece(p, a->piece);
  int64_t row = rope_position(p, *a, t.token);
  const char *x = (const char *)p.x + rope_place(t, p, p.x_stride) * in;
  AroundCopy c[3] = {around_copy(x, t.heads * (int)p.d * in, p.x, (const char *)p.x + (p.last * p.x_stride + p.heads * p.d) * in)};
#pragma unroll
  for (int k = 0; k < 2; k++) {
    const char *at = (const char *)(k ? p.sin : p.cos);
    c[k + 1] = around_copy(at + row * p.half * weight, row < 0 ? 0 : (int)p.half * weight, at, at + table);
    if (row < 0) c[k + 1].bytes = 0;
  }
  *(int64_t *)(slot + p.row_place) = row;
  barrier_expect(full, c[0].bytes + c[1].bytes + c[2].bytes);
  around_fetch(c[0], slot, full);
  around_fetch(c[1], slot + p.cos_place, full);
  around_fetch(c[2], slot + p.sin_place, full);
  a->piece += gridDim.x * RING_WARPS;
  rope_ahead(p, a);
}

// Cosines and sines of a unit, from shared memory.
INLINE RopeUnit rope_ring_unit(int in, int neighbours, int weight_kind, const RopeParams &p, bool turned, const char *c, const char *s, int j) {
  RopeUnit u = rope_unit(in, neighbours, weight_kind, p, -1, j);
  if (!u.turns || !turned) return u;
  const int pairs = in == 2 && !neighbours ? 2 : 1;
  u.c[0] = load_one(c, j * pairs, weight_kind), u.s[0] = load_one(s, j * pairs, weight_kind);
  if (pairs == 2) u.c[1] = load_one(c, j * pairs + u.both, weight_kind), u.s[1] = load_one(s, j * pairs + u.both, weight_kind);
  return u;
}

INLINE void rope_ring(int in, int out, int neighbours, int kind, int weight_kind, int y_kind, const RopeParams &p) {
  extern __shared__ __align__(128) char memory[];
  __shared__ uint64_t barriers[RING_WARPS][ROPE_RING];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, weight = weight_kind == KIND_FP32 ? 4 : 2;
  const int units = (int)p.head32.by, groups = max(32 / units, 1), group = units < 32 ? (int)divide32(lane, p.head32) : 0;
  const int64_t table = p.rows * p.half * weight;
  char *ring = memory + warp * p.warp_bytes, *results = ring + p.ring * p.pitch;
  uint64_t *full = barriers[warp];
  RopeAhead ahead;
  ahead.piece = blockIdx.x * RING_WARPS + warp;
  for (int i = lane * 16; i < p.warp_bytes; i += 512) *(uint4 *)(ring + i) = make_uint4(0, 0, 0, 0); // words at a piece's ends have other bytes, too
  async_fence();
  __syncwarp();
  if (lane == 0) {
    for (int i = 0; i < p.ring; i++) barrier_init(full + i, 1);
    barrier_init_done();
  }
  begin_kernel();
  if (lane == 0) {
    rope_ahead(p, &ahead);
#pragma unroll 1
    for (int i = 0; i < p.ring; i++) rope_fetch_piece(p, &ahead, ring + i * p.pitch, full + i, in, weight, table);
  }
  __syncwarp();
  int slot = 0;
  uint32_t parity = 0;
#pragma unroll 1
  for (uint32_t i = blockIdx.x * RING_WARPS + warp; i < p.items; i += gridDim.x * RING_WARPS) {
    const RopePiece t = rope_piece(p, i);
    char *at = ring + slot * p.pitch, *y = (char *)p.y + rope_place(t, p, p.y_stride) * out;
    const char *x = (const char *)p.x + rope_place(t, p, p.x_stride) * in;
    const int64_t row = *(const int64_t *)(at + p.row_place);
    const char *cos = (const char *)p.cos + row * p.half * weight, *sin = (const char *)p.sin + row * p.half * weight;
    char *c = at + p.cos_place + ((uintptr_t)cos & 15), *s = at + p.sin_place + ((uintptr_t)sin & 15);
    const int from = (int)(at - memory) + (int)((uintptr_t)x & 15), to = (int)(results - memory) + (int)((uintptr_t)y & 15);
    barrier_wait(full + slot, parity);
    bool mended = around_mend(x, t.heads * (int)p.d * in, p.x, (const char *)p.x + (p.last * p.x_stride + p.heads * p.d) * in, memory + from, in);
    if (row >= 0) {
      mended |= around_mend(cos, (int)p.half * weight, p.cos, (const char *)p.cos + table, c, weight);
      mended |= around_mend(sin, (int)p.half * weight, p.sin, (const char *)p.sin + table, s, weight);
    }
    if (mended) {
      async_fence();
      __syncwarp();
    }
    const bool whole = p.x_unit >= 4 && !(((uint32_t)from | (uint32_t)to) & 3);
    const int step = groups * (int)p.d, count = (t.heads - group + groups - 1) / groups;
    if (group < groups) {
#pragma unroll 1
      for (int j = lane - group * units; j < units; j += 32) {
        RopeUnit u = rope_ring_unit(in, neighbours, weight_kind, p, row >= 0, c, s, j);
        int a = from + (group * (int)p.d + u.first) * in, b = to + (group * (int)p.d + u.first) * out;
        if (!u.turns && whole) rope_heads(in, out, neighbours, u, false, true, memory, a, b, count, step, kind, y_kind);
        else if (row >= 0 && whole) rope_heads(in, out, neighbours, u, true, true, memory, a, b, count, step, kind, y_kind);
        else if (row >= 0) rope_heads(in, out, neighbours, u, true, false, memory, a, b, count, step, kind, y_kind);
        else rope_heads(in, out, neighbours, u, false, false, memory, a, b, count, step, kind, y_kind);
      }
    }
    __syncwarp();
    if (lane == 0) rope_fetch_piece(p, &ahead, at, full + slot, in, weight, table);
    if (++slot == p.ring) slot = 0, parity ^= 1;
    around_send(y, results, t.heads * (int)p.d * out, out);
    __syncwarp();
  }
}

#endif
#endif
