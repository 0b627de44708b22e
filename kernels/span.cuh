// A row at any address and of any length: 16-byte chunks where it has them, single elements ("edges") before the
// first and after the last. The threads of a row share the chunks in turn and the edges too, one load for all of
// them, so that a row off its alignment costs little more than one on it.
#ifndef SOL_KERNELS_SPAN_CUH
#define SOL_KERNELS_SPAN_CUH

#include "common.cuh"

typedef struct Span {
  const char *at, *body; // first element, first chunk
  int64_t n, chunks;
  int head, edges; // single elements before the chunks; before and after
} Span;

// `in`: bytes of an element, 2 or 4. A row that is not there: n = 0.
INLINE Span span_of(const void *at, int64_t n, int in) {
  Span s;
  int head = (int)(-(uint32_t)(uintptr_t)at & 15) / in;
  s.at = (const char *)at;
  s.n = n;
  s.head = head < n ? head : (int)n;
  s.body = s.at + s.head * in;
  s.chunks = (uint64_t)(n - s.head) / (16 / in);
  s.edges = (int)(n - s.chunks * (16 / in));
  return s;
}

INLINE Vec span_load(const Span *s, int64_t chunk, uint32_t rest) {
  Vec v;
  v.v = make_uint4(rest, rest, rest, rest);
  if (chunk < s->chunks) v.v = ((const uint4 *)s->body)[chunk];
  return v;
}

// How many edges a thread of `all` takes at most, and the column of edge e (below s->edges).
#define SPAN_EDGES(all, in) ((2 * (16 / (in)) - 2 + (all)-1) / (all))
INLINE int64_t span_edge(const Span *s, int e) {
  return e < s->head ? e : s->n - s->edges + e;
}

// Minus infinity in every element of a word, for what is beyond the row.
INLINE uint32_t span_lowest(int kind) {
  return kind == KIND_FP32 ? 0xff800000u : kind == KIND_FP16 ? 0xfc00fc00u : 0xff80ff80u;
}

#endif
