// A scale for each row, of rows whose parts pass through the shared memory of blocks that stay (stream.cuh).
#ifndef SOL_KERNELS_QUANTIZE_STREAM_CUH
#define SOL_KERNELS_QUANTIZE_STREAM_CUH

#include "stream.cuh"

// Columns of a row, by a warp. It is rare, and not inlined, so that others have the registers.
[[maybe_unused]] static __device__ __noinline__ void quantize_range(const QuantizeParams &p, int in, uint64_t row, float top, int64_t begin, int64_t end);

struct QuantizeStream {
  const QuantizeParams &p;
  const int in;
  const int out = 1;

  INLINE_METHOD int kind() const { return in == 4 ? (int)KIND_FP32 : p.x_kind; }
  INLINE_METHOD float load(const char *at, int64_t i) const { return load_one(at, i, kind()); }
  INLINE_METHOD int prepare(const StreamPart &, char *) const { return 0; }

  typedef struct Sum {
    uint32_t most[2];
  } Sum;
  INLINE_METHOD void begin(Sum &s, const uint4 *, int, int) const { s.most[0] = s.most[1] = 0; }

  INLINE_METHOD void most_of_kind(Sum &s, const uint4 *chunks, int thread, int count, int kind) const {
#pragma unroll 2
    for (int k = thread; k < count; k += STREAM_WORKERS) {
      Vec v;
      v.v = chunks[k];
      most_chunk(s.most, v, in, kind);
    }
  }
  INLINE_METHOD void sum(Sum &s, const uint4 *chunks, int thread, int count) const {
    if (in == 4) most_of_kind(s, chunks, thread, count, KIND_FP32);
    else if (p.x_kind == KIND_FP16) most_of_kind(s, chunks, thread, count, KIND_FP16);
    else most_of_kind(s, chunks, thread, count, KIND_BF16);
  }
  INLINE_METHOD void end(const Sum &s, const StreamItem &, int thread, float2 *to) const {
    uint32_t top = lanes_top(most_bits(s.most, in, kind()), 32);
    if (thread % 32 == 0) to->x = __uint_as_float(top);
  }

  INLINE_METHOD float2 join(const StreamItem &t, bool has_edge, float edge) const {
    int lane = threadIdx.x % 32;
    float top = fmaxf(lane < STREAM_WARPS ? t.warps[lane].x : 0, has_edge ? fabsf(edge) : 0);
    return make_float2(lanes_highest(top, 32), 0);
  }

  INLINE_METHOD float2 collect(const float2 *v, int) const {
    float top = 0;
#pragma unroll
    for (int i = 0; i < STREAM_EACH; i++) top = fmaxf(top, v[i].x);
    return make_float2(lanes_highest(top, 32), 0);
  }

  INLINE_METHOD float times_of(uint64_t row, float top, bool write) const {
    return p.how == QUANTIZE_INT8 ? scale_group(p, QUANTIZE_INT8, top, row, write) : scale_group(p, QUANTIZE_FP8, top, row, write);
  }
  INLINE_METHOD float2 finish(const StreamPart &a, float2 sums, bool there, char *) const {
    return make_float2(times_of(a.row, sums.x, there && a.part == 0 && threadIdx.x % 32 == 0), 0);
  }

  // A thread has aligned cells of y, of as many elements as a chunk has. What one has is the end of a chunk and the start of the next.
  INLINE_METHOD void put_cells(const StreamItem &t, const uint4 *chunks, int first, int count, int thread, int workers, int kind, int how) const {
    const int per = 16 / in, words = per / 4;
    char *y = t.y + t.head + first * per;
    int before = (int)((uint32_t)(uintptr_t)y & (per - 1)), cells = count ? count + (before > 0) : 0;
    float times = t.sums.x;
    y -= before;
#pragma unroll 2
    for (int k = thread; k < cells; k += workers) {
      Vec v;
      uint32_t w[2];
      if (k < count) v.v = chunks[k];
      if (before) {
        uint32_t both[8];
        Vec u;
        u.v = chunks[max(k - 1, 0)];
#pragma unroll
        for (int i = 0; i < 4; i++) both[i] = u.u[i], both[4 + i] = v.u[i];
        cut_words(both, 4, (uint32_t)(16 - before * in));
#pragma unroll
        for (int i = 0; i < 4; i++) v.u[i] = both[i];
      }
      pack_chunk(how, in, kind, v, times, w);
      int lo = k == 0 ? before : 0, hi = k == count ? before : per;
      if (hi - lo == per) store_aligned(y + (uint32_t)(k * per), words, w);
      else store_part(y + (uint32_t)(k * per), lo, hi, words, 1, w);
    }
  }
  INLINE_METHOD void put_kind(const StreamItem &t, const uint4 *chunks, int first, int count, int thread, int workers, int how) const {
    if (in == 4) put_cells(t, chunks, first, count, thread, workers, KIND_FP32, how);
    else if (p.x_kind == KIND_FP16) put_cells(t, chunks, first, count, thread, workers, KIND_FP16, how);
    else put_cells(t, chunks, first, count, thread, workers, KIND_BF16, how);
  }
  INLINE_METHOD void put(const StreamItem &t, const uint4 *chunks, int first, int count, char *, int thread, int workers) const {
    if (p.how == QUANTIZE_INT8) put_kind(t, chunks, first, count, thread, workers, QUANTIZE_INT8);
    else put_kind(t, chunks, first, count, thread, workers, QUANTIZE_FP8);
  }

  INLINE_METHOD void put_one(char *y, int64_t column, float x, float times) const {
    float f[4] = {x, 0, 0, 0};
    uint32_t w;
    if (p.how == QUANTIZE_INT8) pack(QUANTIZE_INT8, 4, f, times, &w);
    else pack(QUANTIZE_FP8, 4, f, times, &w);
    ((uint8_t *)y)[column] = (uint8_t)w;
  }
  INLINE_METHOD void put_edge(const StreamItem &t, char *, int column, float edge) const { put_one(t.y, column, edge, t.sums.x); }

  INLINE_METHOD void range(uint64_t row, float2 sums, int64_t begin, int64_t end) const { quantize_range(p, in, row, sums.x, begin, end); }
};

[[maybe_unused]] static __device__ __noinline__ void quantize_range(const QuantizeParams &p, int in, uint64_t row, float top, int64_t begin, int64_t end) {
  QuantizeStream s = {p, in};
  float times = s.times_of(row, top, begin == 0 && threadIdx.x % 32 == 0);
  const char *x = (const char *)p.x + (int64_t)row * p.x_stride;
#pragma unroll 1
  for (int64_t c = begin + threadIdx.x % 32; c < end; c += 32) s.put_one((char *)p.y + (int64_t)row * p.y_stride, c, s.load(x, c), times);
}

#endif
