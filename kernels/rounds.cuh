// Short rows of any length at any address in registers: some lanes, a power of two, share a row, each with up to some 16-byte chunks.
// Chunks are the buffer's, wherever a row starts: each is one load, and what it has of other rows is overwritten. A round is a chunk of
// each lane, so rounds, lanes and elements are in the order of the columns.
#ifndef SOL_KERNELS_ROUNDS_CUH
#define SOL_KERNELS_ROUNDS_CUH

#include "funnel.cuh"

template <int size_, int rounds_> struct Rounds {
  enum { size = size_, per = 16 / size_, rounds = rounds_ };
  Vec v[rounds];
  int used;           // rounds that any lane has
  int lanes, lane, n; // of the row
  int first;          // the column of this lane's first chunk
};

// The column of this lane's chunk of a round.
template <class R> INLINE int column_of(const R &s, int round) { return s.first + round * s.lanes * R::per; }

// The bytes of a word from byte `at` on, which is below 0 where that is before the word.
INLINE uint32_t bytes_from(int at) { return __funnelshift_lc(0, ~0u, 8 * max(at, 0)); }

// Bytes of a chunk before `begin`, or from `end` on, become those of `fill`.
INLINE void mask_before(Vec &v, int begin, uint32_t fill) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
    uint32_t kept = bytes_from(begin - 4 * j);
    v.u[j] = (v.u[j] & kept) | (fill & ~kept);
  }
}
INLINE void mask_after(Vec &v, int end, uint32_t fill) {
#pragma unroll
  for (int j = 0; j < 4; j++) {
    uint32_t kept = bytes_from(end - 4 * j);
    v.u[j] = (v.u[j] & ~kept) | (fill & kept);
  }
}

// Row `row` of m rows of `columns` elements, `stride` bytes apart; s.lanes, s.lane and s.used are known. Not there: nothing but `fill`.
template <class R>
INLINE void load_rounds(R &s, const void *x, int64_t stride, uint64_t m, int columns, uint64_t row, uint32_t fill) {
  const char *begin = (const char *)x, *end = begin + (int64_t)(m - 1) * stride + columns * R::size;
  bool there = row < m, aligned = (((uint32_t)(uintptr_t)begin | (uint32_t)stride) & 15) == 0;
  const char *at = begin + (int64_t)(there ? row : 0) * stride;
  int before = aligned ? 0 : (int)((uint32_t)(uintptr_t)at & 15), chunks = there ? (before + columns * R::size + 15) / 16 : 0;
  if (aligned && columns * R::size % 16 == 0) { // nothing but whole chunks
    s.n = there ? columns : 0;
    s.first = s.lane * R::per;
#pragma unroll
    for (int r = 0; r < R::rounds; r++) {
      s.v[r].v = make_uint4(fill, fill, fill, fill);
      if (r < s.used && r * s.lanes + s.lane < chunks) s.v[r].v = ((const uint4 *)at)[r * s.lanes + s.lane];
    }
    return;
  }
  bool inside = at - before >= begin && at - before + 16 * chunks <= end;
  at -= before;
  s.n = there ? columns : 0;
  s.first = s.lane * R::per - before / R::size;
  const int whole = columns * R::size / 16 >> (__ffs(s.lanes) - 1); // rounds of every lane, wherever a row starts
  if (__all_sync(~0u, inside && there)) { // all but the buffer's first and last rows
    const char *from = at + 16 * s.lane;
    int left = chunks - s.lane, bytes = (columns - s.first) * R::size; // from the round on
#pragma unroll
    for (int r = 0; r < R::rounds; r++, from += 16 * s.lanes, left -= s.lanes, bytes -= 16 * s.lanes) {
      if (r >= s.used) continue;
      if (r < whole) {
        s.v[r].v = *(const uint4 *)from;
        continue;
      }
      s.v[r].v = make_uint4(fill, fill, fill, fill);
      if (left > 0) s.v[r].v = *(const uint4 *)from;
      mask_after(s.v[r], bytes, fill); // of the last rounds, mostly one
    }
  } else {
#pragma unroll
    for (int r = 0; r < R::rounds; r++) {
      int c = r * s.lanes + s.lane;
      s.v[r].v = make_uint4(fill, fill, fill, fill);
      const char *from = at + 16 * c;
      if (r >= s.used || c >= chunks) continue;
      if (inside || (from >= begin && from + 16 <= end)) s.v[r].v = *(const uint4 *)from;
      else s.v[r].v = load_singly(from, begin, end, R::size);
      mask_after(s.v[r], (columns - column_of(s, r)) * R::size, fill);
    }
  }
  if (!aligned) mask_before(s.v[0], s.lane ? 0 : before, fill);
}

#endif
