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

  // Chunks of a warp that sums up: of a slot that has so many, of a part.
  INLINE_METHOD static int slot_of_warp(int chunks, int warp) { return chunks / STREAM_WORKERS * 32 + min(max(chunks % STREAM_WORKERS - 32 * warp, 0), 32); }
  INLINE_METHOD int warp_chunks(const StreamItem &t, int warp) const {
    int whole = t.chunks / p.stream.slot_chunks;
    return whole * slot_of_warp(p.stream.slot_chunks, warp) + slot_of_warp(t.chunks - whole * p.stream.slot_chunks, warp);
  }

  typedef struct Sum {
    Running r;
    int count; // chunks
  } Sum;

  INLINE_METHOD void begin(Sum &s, const uint4 *chunks, int thread, int count) const {
    Vec v;
    v.v = thread < count ? chunks[thread] : make_uint4(0, 0, 0, 0);
    s.r = {chunk_mean(v, kind, in), {0, 0}, {0, 0}}, s.count = 0;
  }

  INLINE_METHOD void sum(Sum &s, const uint4 *chunks, int thread, int count) const {
#pragma unroll 2
    for (int k = thread; k < count; k += STREAM_WORKERS, s.count++) {
      Vec v;
      v.v = chunks[k];
      run_chunk(s.r, v, kind, in);
    }
  }

  INLINE_METHOD void end(const Sum &a, const StreamItem &t, int thread, float2 *to) const {
    Stats s = run_end(a.r, a.count * (16 / in));
    float mean = warp_sum(s.mean * __fdividef((float)a.count, (float)max(warp_chunks(t, thread / 32), 1))), apart = s.mean - mean;
    float squares = warp_sum(a.count ? fmaf(s.count * apart, apart, s.squares) : 0);
    if (thread % 32 == 0) *to = make_float2(mean, squares);
  }

  // Of lanes that have any number of elements each, together `count`.
  INLINE_METHOD static float2 of_lanes(Stats s, float count) {
    float mean = warp_sum(s.mean * __fdividef(s.count, count)), apart = s.mean - mean;
    return make_float2(mean, warp_sum(s.count > 0 ? fmaf(s.count * apart, apart, s.squares) : 0));
  }

  INLINE_METHOD float2 join(const StreamItem &t, bool has_edge, float edge) const {
    int lane = threadIdx.x % 32;
    Stats s = {0, 0, 0};
    if (lane < STREAM_WARPS) s.count = (float)(warp_chunks(t, lane) * (16 / in)), s.mean = t.warps[lane].x, s.squares = t.warps[lane].y;
    if (has_edge) s = stats_more(s, 1, edge, 0);
    return of_lanes(s, (float)(t.chunks * (16 / in) + __popc(__ballot_sync(~0u, has_edge))));
  }

  INLINE_METHOD static Stats stats_more(Stats s, float count, float mean, float squares) {
    float apart = mean - s.mean, all = s.count + count, part = __fdividef(count, all);
    s.squares += fmaf(apart * apart, s.count * part, squares);
    s.mean = fmaf(apart, part, s.mean), s.count = all;
    return s;
  }

  INLINE_METHOD float2 collect(const float2 *v, int head) const {
    float mean = 0, squares = 0, count[STREAM_EACH];
#pragma unroll
    for (int i = 0; i < STREAM_EACH; i++) {
      uint32_t part = threadIdx.x % 32 + 32 * i;
      count[i] = part < p.stream.parts.parts ? (float)(stream_begin(p.stream, part + 1, head, in) - stream_begin(p.stream, part, head, in)) : 0;
      mean = fmaf(v[i].x, __fdividef(count[i], (float)p.n), mean);
    }
    mean = warp_sum(mean);
#pragma unroll
    for (int i = 0; i < STREAM_EACH; i++) squares += fmaf(count[i] * (v[i].x - mean), v[i].x - mean, v[i].y);
    return make_float2(mean, warp_sum(squares));
  }

  INLINE_METHOD float2 finish(const StreamPart &, float2 sums, bool, char *) const { return make_float2(sums.x, rsqrtf(sums.y / (float)p.n + p.eps)); }

  INLINE_METHOD Piece piece(const StreamItem &t, char *room) const {
    Piece a;
    a.y = t.y, a.affines = (float2 *)room, a.first_end = t.more;
    a.mean = t.sums.x, a.over = t.sums.y;
    return a;
  }

  // Cells of 16 bytes, or, where y's elements are larger, of 8: threads next to each other write what lies next to each other. From one cell of a thread to the next it is the same number of columns,
  // so that the channel is found by sums.
  template <class Cell> INLINE_METHOD void put_cells(const StreamItem &t, const Cell *cells, int first, int count, char *room, int thread, int workers) const {
    const int per = (int)sizeof(Cell) / in;
    if (thread >= count) return;
    Piece a = piece(t, room);
    int column = t.head + (first + thread) * per, length = (int)p.divider32.by;
    Channel c = channel_of(p, a, column);
    int inside = c.inside, left = c.end - column, further = (int)divide32((uint32_t)(workers * per), p.divider32), rest = workers * per - further * length;
#pragma unroll 2
    for (int k = thread; k < count; k += workers, column += workers * per) {
      Vec v;
      float f[8];
      *(Cell *)&v = cells[k];
      to_floats(v.u, per, kind, f);
      float2 by = affine_of(a, inside);
      if (left >= per) {
#pragma unroll
        for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - a.mean, by.x, by.y);
      } else {
        float2 next = affine_of(a, inside + 1);
#pragma unroll
        for (int j = 0; j < per; j++) f[j] = fmaf(f[j] - a.mean, j < left ? by.x : next.x, j < left ? by.y : next.y);
      }
      put_chunk(p, per, a.y, column, f);
      left -= rest, inside += further;
      if (left <= 0) left += length, inside++;
    }
  }
  INLINE_METHOD void put(const StreamItem &t, const uint4 *chunks, int first, int count, char *room, int thread, int workers) const {
    if (in == 2 && p.y_kind == KIND_FP32) put_cells(t, (const uint2 *)chunks, 2 * first, 2 * count, room, thread, workers);
    else put_cells(t, chunks, first, count, room, thread, workers);
  }

  INLINE_METHOD void put_edge(const StreamItem &t, char *room, int column, float edge) const {
    Piece a = piece(t, room);
    float2 by = channel_of(p, a, column).by;
    store_one(a.y, column, p.y_kind, fmaf(edge - a.mean, by.x, by.y));
  }

  INLINE_METHOD void range(uint64_t row, float2 sums, int64_t begin, int64_t end) const { group_range(p, row, sums, begin, end, in, kind); }
};

#endif
