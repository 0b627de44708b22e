// Group norm of groups whose parts pass through the shared memory of blocks that stay (kernels/stream.cuh). The output is aligned as the input is, and channels have at
// least a chunk's elements.
#ifndef SOL_KERNELS_GROUP_NORM_STREAM_CUH
#define SOL_KERNELS_GROUP_NORM_STREAM_CUH

#include "group_ring.cuh"
#include "stream.cuh"

struct GroupStream {
  const GroupNormParams &p;
  const int kind, in;
  int out; // bytes of an element of y

  INLINE_METHOD float load(const char *at, int64_t i) const { return load_one(at, i, kind); }

  // Weights and biases of the part's channels. Returns the column where the second channel starts.
  INLINE_METHOD int prepare(const StreamPart &a, char *room) const {
    uint64_t first = divide((uint64_t)a.begin, p.divider), from = first_channel(p, a.row) + first;
    int channels = (int)(divide((uint64_t)(a.begin + a.x.n - 1), p.divider) - first) + 1;
    for (int i = threadIdx.x % 32; i < channels; i += 32) ((float2 *)room)[i] = affine_load(p, from + i);
    return (int)min((int64_t)((first + 1) * p.divider.by) - a.begin, (int64_t)INT32_MAX);
  }

  // Chunks of a warp that sums up.
  INLINE_METHOD static int warp_chunks(const StreamSlot &t, int warp) {
    return t.chunks / STREAM_ITEM_THREADS * 32 + min(max(t.chunks % STREAM_ITEM_THREADS - 32 * warp, 0), 32);
  }

  INLINE_METHOD void sum(const StreamSlot &t, const uint4 *chunks, int thread, float2 *to) const {
    int of_all = warp_chunks(t, thread / 32);
    Vec v;
    v.v = thread < t.chunks ? chunks[thread] : make_uint4(0, 0, 0, 0);
    Running r = {chunk_mean(v, kind, in), {0, 0}, {0, 0}};
    int count = 0;
#pragma unroll 2
    for (int k = thread; k < t.chunks; k += STREAM_ITEM_THREADS, count++) {
      v.v = chunks[k];
      run_chunk(r, v, kind, in);
    }
    Stats s = run_end(r, count * (16 / in));
    float mean = warp_sum(s.mean * __fdividef((float)count, (float)max(of_all, 1))), apart = s.mean - mean;
    float squares = warp_sum(count ? fmaf(s.count * apart, apart, s.squares) : 0);
    if (thread % 32 == 0) *to = make_float2(mean, squares);
  }

  INLINE_METHOD float2 join(const StreamSlot &t, bool has_edge, float edge) const {
    int lane = threadIdx.x % 32;
    Stats s = {0, 0, 0};
    if (lane < STREAM_WARPS) s.count = (float)(warp_chunks(t, lane) * (16 / in)), s.mean = t.warps[lane].x, s.squares = t.warps[lane].y;
    if (has_edge) s = stats_more(s, 1, edge, 0);
    s = warp_stats(s);
    return make_float2(s.mean, s.squares);
  }

  INLINE_METHOD static Stats stats_more(Stats s, float count, float mean, float squares) {
    float apart = mean - s.mean, all = s.count + count, part = __fdividef(count, all);
    s.squares += fmaf(apart * apart, s.count * part, squares);
    s.mean = fmaf(apart, part, s.mean), s.count = all;
    return s;
  }

  INLINE_METHOD float2 collect(uint64_t row, int head) const {
    Stats s = {0, 0, 0};
    stream_posts(p.stream, row, head, out, [&](uint32_t part, float2 v) { s = stats_more(s, stream_count(p.stream, part, head), v.x, v.y); });
    s = warp_stats(s);
    return make_float2(s.mean, s.squares);
  }

  INLINE_METHOD float2 finish(const StreamPart &, float2 sums, bool) const { return make_float2(sums.x, rsqrtf(sums.y / (float)p.n + p.eps)); }

  INLINE_METHOD Piece piece(const StreamSlot &t, char *room) const {
    Piece a;
    a.y = t.y, a.affines = (float2 *)room, a.first_end = t.more;
    a.mean = t.sums.x, a.over = t.sums.y;
    return a;
  }

  INLINE_METHOD void put(const StreamSlot &t, const uint4 *chunks, char *room, int thread) const {
    const int per = 16 / in;
    Piece a = piece(t, room);
    Channel c = {0, 0, {0, 0}};
    int head = t.head;
#pragma unroll 2
    for (int k = thread; k < t.chunks; k += STREAM_ITEM_THREADS) {
      int column = head + k * per;
      Vec v;
      float f[8];
      v.v = chunks[k];
      widen(&v, kind, in, f);
      if (column >= c.end) c = channel_of(p, a, column);
      finish_chunk(a, c, per, f, column);
      put_chunk(p, per, a.y, column, f);
    }
  }

  INLINE_METHOD void put_edge(const StreamSlot &t, char *room, int column, float edge) const {
    Piece a = piece(t, room);
    float2 by = channel_of(p, a, column).by;
    store_one(a.y, column, p.y_kind, fmaf(edge - a.mean, by.x, by.y));
  }

  INLINE_METHOD void range(uint64_t row, float2 sums, int64_t begin, int64_t end) const { group_range(p, row, sums, begin, end, in, kind); }
};

#endif
