// Long rows whose parts pass through the shared memory of blocks that stay (stream.cuh). y is aligned as x is.
#ifndef SOL_KERNELS_SOFTMAX_STREAM_CUH
#define SOL_KERNELS_SOFTMAX_STREAM_CUH

#include "softmax/softmax_row.cuh"
#include "stream.cuh"

#if __CUDA_ARCH__ >= 900
struct SoftmaxStream {
  const SoftmaxParams &p;
  const int in;
  int out; // bytes of an element of y

  INLINE_METHOD int kind() const { return in == 4 ? (int)KIND_FP32 : p.x_kind; }
  INLINE_METHOD float load(const char *at, int64_t i) const { return load_one(at, i, kind()); }

  // The row's label, in its room: its column, and its element.
  INLINE_METHOD Label label_of_row(uint64_t row) const {
    Label l = {target_at(&p, row), 0};
    if (l.at < 0 || l.at >= p.n) l.at = NO_LABEL;
    else l.x = load((const char *)p.x + (int64_t)row * p.x_stride, l.at);
    return l;
  }
  // Returns the label's column in the part, which may be one of another part.
  INLINE_METHOD int prepare(const StreamPart &a, char *room) const {
    if (!LABELS) return LABEL_OF_ANOTHER;
    Label l = label_of_row(a.row);
    if (threadIdx.x % 32 == 0) *(Label *)room = l;
    return l.at < a.begin ? (int)LABEL_OF_ANOTHER : (int)(l.at - a.begin);
  }

  typedef struct Sum {
    float top, sums[2];
  } Sum;
  INLINE_METHOD void begin(Sum &s, const uint4 *, int, int) const { s.top = -INFINITY, s.sums[0] = s.sums[1] = 0; }

  INLINE_METHOD void sum_kind(Sum &s, const uint4 *chunks, int thread, int count, int kind) const {
    const RowShape shape = {STREAM_WORKERS, 1, 1, 1, in, in, 1};
    int mine = count > thread ? (count - thread + STREAM_WORKERS - 1) / STREAM_WORKERS : 0;
    float top = fmaxf(s.top, top_shared(chunks + thread, shape, mine, kind)), start = start_of(top);
    float again = top == s.top ? 1 : ex2((s.top - start) * LOG2E);
    s.top = top, s.sums[0] *= again, s.sums[1] *= again;
#pragma unroll 2
    for (int k = thread; k < count; k += STREAM_WORKERS) {
      float f[8];
      reread(chunks + k, kind, in, f);
#pragma unroll
      for (int j = 0; j < 16 / in; j++) s.sums[j % 2] += ex2((f[j] - start) * LOG2E);
    }
  }
  INLINE_METHOD void sum(Sum &s, const uint4 *chunks, int thread, int count) const {
    if (in == 4) sum_kind(s, chunks, thread, count, KIND_FP32);
    else if (p.x_kind == KIND_FP16) sum_kind(s, chunks, thread, count, KIND_FP16);
    else sum_kind(s, chunks, thread, count, KIND_BF16);
  }
  INLINE_METHOD void end(const Sum &s, const StreamItem &, int thread, float2 *to) const {
    float2 all = lanes_fold(make_float2(s.top, s.sums[0] + s.sums[1]), FOLD_SOFTMAX, 32);
    if (thread % 32 == 0) *to = all;
  }

  INLINE_METHOD float2 join(const StreamItem &t, bool has_edge, float edge) const {
    int lane = threadIdx.x % 32;
    float2 v = lane < STREAM_WARPS ? t.warps[lane] : make_float2(-INFINITY, 0);
    if (has_edge) v = ::join(v, &edge, 1);
    return lanes_fold(v, FOLD_SOFTMAX, 32);
  }

  INLINE_METHOD float2 collect(const float2 *v, int) const {
    float2 all = make_float2(-INFINITY, 0);
#pragma unroll
    for (int i = 0; i < STREAM_EACH; i++)
      if (threadIdx.x % 32 + 32 * i < p.stream.parts.parts) all = fold(all, v[i], FOLD_SOFTMAX);
    return lanes_fold(all, FOLD_SOFTMAX, 32);
  }

  INLINE_METHOD Finish finish_row(float2 row, Label *l) const {
    Finish z = finish_of(row, row.x, asks_log(&p));
    if (!LABELS) return z;
    z.times = l->at == NO_LABEL ? 0 : z.times * p.scale;
    l->x = (__fdividef(ex2((l->x - row.x) * LOG2E), row.y) - 1) * p.scale;
    return z;
  }
  INLINE_METHOD void put_loss(uint64_t row, float2 sums, Label l) const { p.loss[row] = l.at == NO_LABEL ? 0 : logf(sums.y) - (l.x - sums.x); }

  // What elements need: the row's largest, and a factor or, for the logarithm, what is added.
  INLINE_METHOD float2 finish(const StreamPart &a, float2 row, bool there, char *room) const {
    Label l = {LABEL_OF_ANOTHER, 0};
    __syncwarp();
    if (LABELS) l = *(Label *)room;
    if (LABELS && there && a.part == 0 && threadIdx.x % 32 == 0) put_loss(a.row, row, l);
    Finish z = finish_row(row, &l);
    __syncwarp();
    if (LABELS && threadIdx.x % 32 == 0) ((Label *)room)->x = l.x;
    return make_float2(row.x, asks_log(&p) ? z.plus : z.times);
  }
  INLINE_METHOD Finish finish_again(float2 by) const {
    Finish z = {by.y, by.y};
    return z;
  }

  // Chunks, or, where y's elements are larger, halves of them, so that threads next to each other write what lies next to each other.
  INLINE_METHOD void put_kind(const StreamItem &t, const uint4 *chunks, int first, int count, int thread, int workers, int kind, int log) const {
    const int per = 16 / in;
    float2 row = t.sums;
    Finish z = finish_again(row);
    Target y = {t.y, p.y_kind, 1};
    int head = t.head + first * per;
    if (in == 2 && p.y_kind == KIND_FP32) {
#pragma unroll 4
      for (int k = thread; k < 2 * count; k += workers) {
        uint2 half = ((const uint2 *)chunks)[k];
        float2 a = widen2(half.x, kind), b = widen2(half.y, kind);
        float f[4] = {result(a.x, row, z, log), result(a.y, row, z, log), result(b.x, row, z, log), result(b.y, row, z, log)};
        store_chunk(y, head + k * 4, 4, f);
      }
      return;
    }
    if (in == 4 && p.y_kind == KIND_FP32) y.kind = KIND_FP32;
#pragma unroll 2
    for (int k = thread; k < count; k += workers) {
      float f[8];
      reread(chunks + k, kind, in, f);
#pragma unroll
      for (int j = 0; j < per; j++) f[j] = result(f[j], row, z, log);
      store_chunk(y, head + k * per, in, f);
    }
  }
  INLINE_METHOD void put_log(const StreamItem &t, const uint4 *chunks, int first, int count, int thread, int workers, int log) const {
    if (in == 4) put_kind(t, chunks, first, count, thread, workers, KIND_FP32, log);
    else if (p.x_kind == KIND_FP16) put_kind(t, chunks, first, count, thread, workers, KIND_FP16, log);
    else put_kind(t, chunks, first, count, thread, workers, KIND_BF16, log);
  }
  INLINE_METHOD void put(const StreamItem &t, const uint4 *chunks, int first, int count, char *room, int thread, int workers) const {
    if (asks_log(&p)) put_log(t, chunks, first, count, thread, workers, 1);
    else put_log(t, chunks, first, count, thread, workers, 0);
    if (!LABELS) return;
    const int per = 16 / in;
    int column = t.more - t.head - first * per, cells = in < out ? 2 : 1, cell = column * cells / per; // of the slot
    if (column >= 0 && column < count * per && cell % workers == thread) store_one(t.y, t.more, p.y_kind, ((Label *)room)->x);
  }

  INLINE_METHOD void put_edge(const StreamItem &t, char *room, int column, float edge) const {
    float f = LABELS && column == t.more ? ((Label *)room)->x : result(edge, t.sums, finish_again(t.sums), asks_log(&p));
    store_one(t.y, column, p.y_kind, f);
  }

  INLINE_METHOD void range(uint64_t row, float2 sums, int64_t begin, int64_t end) const {
    Label l = {LABEL_OF_ANOTHER, 0};
    if (LABELS) l = label_of_row(row);
    if (LABELS && begin == 0 && threadIdx.x % 32 == 0) put_loss(row, sums, l);
    Finish z = finish_row(sums, &l);
    const char *x = (const char *)p.x + (int64_t)row * p.x_stride;
    char *y = (char *)p.y + (int64_t)row * p.y_stride;
#pragma unroll 1
    for (int64_t c = begin + threadIdx.x % 32; c < end; c += 32)
      store_one(y, c, p.y_kind, LABELS && c == l.at ? l.x : result(load(x, c), sums, z, asks_log(&p)));
  }
};
#endif

#endif
