// Rows that start anywhere, by words of y: neighbouring lanes have neighbouring words, whatever the address of x's row is. A word is one
// element of 4 bytes or two of 2, which are loaded singly: both loads are of the same sectors. Elements of 2 bytes at a row's ends may
// share their words with other rows; two lanes take one of them each.
#ifndef SOL_KERNELS_WORDS_CUH
#define SOL_KERNELS_WORDS_CUH

#include "common.cuh"

// Constants of a kernel, as literals: bytes of an element of x and of y, and whether it changes its type.
typedef struct WordKind {
  int in, out, convert;
  int x_kind, y_kind; // where it does; not literals
  int stream;         // y is stored so that L2 keeps x; not a literal
} WordKind;

// What a lane has of a row: words some columns apart, a constant, the first of which may lie before the row.
typedef struct WordRow {
  const char *x; // of the first word; NULL: zeros
  char *y;
  bool begins; // the first word is not before the row
  int last;    // the most columns beyond the first at which a word is within the row; negative: none
} WordRow;

// n: columns, an int where rows are short. word: counted from the boundary of `align` bytes at or before the start of y's row.
template <typename I> INLINE WordRow word_row(WordKind c, I n, const char *x, char *y, I word, int align) {
  const int per = 4 / c.out;
  I first = word * per - (int)(((uint32_t)(uintptr_t)y & (align - 1)) / c.out);
  WordRow r = {x ? x + first * c.in : NULL, y + first * c.out, first >= 0, 0};
  r.last = (int)max((I)-1, min((I)1 << 30, n - per - first));
  return r;
}

// The word that is k steps of `step` columns on. Words before the row are first ones.
INLINE bool word_inside(const WordRow &r, int k, int step) { return k * step <= r.last && (k || r.begins); }

INLINE uint32_t element_load(const char *x, int64_t column, int in) {
  return in == 4 ? ((const uint32_t *)x)[column] : ((const uint16_t *)x)[column];
}

typedef struct WordPair { // the elements of a word as they are stored
  uint32_t low, high;
} WordPair;

INLINE WordPair word_load(const WordRow &r, WordKind c, int k, int step) {
  WordPair w = {0, 0};
  bool wanted = r.x && word_inside(r, k, step);
  if (wanted) w.low = element_load(r.x, k * step, c.in);
  if (wanted && c.out == 2) w.high = element_load(r.x, k * step + 1, c.in);
  return w;
}

// All words of a lane, `steps` of them. Where the words of a warp's rows are words of x, too, each is one load, and is in `low` alone. All
// lanes of a warp call it.
INLINE void word_load_all(WordKind c, const WordRow &r, int steps, int step, WordPair *v) {
  bool words = !r.x || !(((uintptr_t)r.x ^ (uintptr_t)r.y) & 2);
  if (!c.convert && c.out == 2 && __all_sync(~0u, words)) {
#pragma unroll
    for (int k = 0; k < steps; k++) {
      bool wanted = r.x && word_inside(r, k, step);
      v[k].low = wanted ? element_load(r.x, k * step / 2, 4) : 0, v[k].high = 0;
    }
  } else {
#pragma unroll
    for (int k = 0; k < steps; k++) v[k] = word_load(r, c, k, step);
  }
}

INLINE uint32_t word_of_pair(WordKind c, WordPair w) { return c.out == 4 ? w.low : w.low | w.high << 16; }

INLINE float element_float(WordKind c, uint32_t u) {
  if (c.in == 4) return __uint_as_float(u);
  return c.x_kind == KIND_FP16 ? __half2float(__ushort_as_half((uint16_t)u)) : __uint_as_float(u << 16);
}

INLINE void word_put(WordKind c, const WordRow &r, int k, int step, uint32_t u) {
  if (word_inside(r, k, step) && c.stream) __stcs((uint32_t *)(r.y + k * step * c.out), u);
  if (word_inside(r, k, step) && !c.stream) *(uint32_t *)(r.y + k * step * c.out) = u;
}

INLINE void word_store(WordKind c, const WordRow &r, int k, int step, WordPair w) {
  uint32_t u = word_of_pair(c, w);
  if (c.convert) {
    float low = element_float(c, w.low), high = element_float(c, w.high);
    u = c.out == 4 ? __float_as_uint(low) : narrow2(low, high, c.y_kind);
  }
  word_put(c, r, k, step, u);
}

// The row's first or last element, where it has no word to itself: the column that lane `lane` takes; -1: none.
template <typename I> INLINE I word_edge(WordKind c, I n, const char *y, I lane) {
  int odd = (int)((uint32_t)(uintptr_t)y >> 1 & 1);
  if (c.out == 4 || lane > 1) return -1;
  if (lane == 0) return odd ? 0 : -1;
  return (odd ^ (int)n) & 1 ? n - 1 : -1;
}

INLINE uint32_t edge_load(WordKind c, const char *x, int64_t edge) { return x && edge >= 0 ? element_load(x, edge, c.in) : 0; }

INLINE void edge_store(WordKind c, char *y, int64_t edge, uint32_t u) {
  if (c.out == 4 || edge < 0) return;
  ((uint16_t *)y)[edge] = c.convert ? narrow_one(element_float(c, u), c.y_kind) : (uint16_t)u;
}

#endif
