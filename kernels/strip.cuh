// A strip of columns, a row or a part of it, by chunks of 16 bytes of input whose output starts on as many bytes as it
// has, and single elements ("edges") before the first and after the last: up to 2 per - 1, per the elements of a chunk.
// Inputs are alike: theirs start on 16 bytes where the output's do. What a chunk has of a vector of the columns that
// starts on 16 bytes is in two such blocks of it, both whole.
#ifndef SOL_KERNELS_STRIP_CUH
#define SOL_KERNELS_STRIP_CUH

#include "common.cuh"

typedef struct Strip {
  int head, chunks, edges; // head: edges before the first chunk
} Strip;

// Columns before the first chunk of a row, whichever its part: fp8 output.
INLINE int strip_head(const void *y, int per) {
  return (int)(-(uint32_t)(uintptr_t)y & (per - 1));
}

INLINE Strip strip_of(int head, int n, int per) {
  Strip s;
  s.head = head;
  s.chunks = max(0, n / per - (head != 0));
  s.edges = n - s.chunks * per;
  return s;
}

INLINE int strip_edge(Strip s, int e, int per) { // column of edge e
  return e < s.head ? e : s.chunks * per + e;
}

#endif
