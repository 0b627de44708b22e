// Video instructions, as the PTX manual defines them: sources are parts of words, extended to 33 bits by their types;
// the result is clamped to the part that is written, and then combined with c or merged into it.
//
//   num_video(&v, a, b, c)   all of them but vmad
//   num_vmad(&v, a, b, c)
#ifndef SOL_EMU_NUM_VIDEO_H
#define SOL_EMU_NUM_VIDEO_H

#include "base/port.h"

typedef enum NumVideoOp {
  NUM_VIDEO_ADD,
  NUM_VIDEO_SUB,
  NUM_VIDEO_AVERAGE,
  NUM_VIDEO_ABSDIFF,
  NUM_VIDEO_MIN,
  NUM_VIDEO_MAX,
  NUM_VIDEO_SHL,
  NUM_VIDEO_SHR,
  NUM_VIDEO_EQ, // and the other comparisons
  NUM_VIDEO_NE,
  NUM_VIDEO_LT,
  NUM_VIDEO_LE,
  NUM_VIDEO_GT,
  NUM_VIDEO_GE
} NumVideoOp;
typedef enum NumVideoThen {
  NUM_VIDEO_MERGE,
  NUM_VIDEO_THEN_ADD,
  NUM_VIDEO_THEN_MIN,
  NUM_VIDEO_THEN_MAX
} NumVideoThen;

typedef struct NumVideo {
  uint8_t op, then;
  uint8_t count;                        // results: 1, 2 or 4
  uint8_t a_bit[4], b_bit[4], d_bit[4]; // where each source begins in b:a, and each result in d
  uint8_t a_bits, b_bits, d_bits;       // their widths: 8, 16 or 32
  uint8_t written;                      // a bit for each result
  bool a_signed, b_signed, d_signed, sat, wrap;
  bool plus_one, negate_product, negate_c; // vmad
  uint8_t scale;                           // vmad: bits to shift right by
} NumVideo;

static inline int64_t num_video_part(uint64_t word, uint32_t bit, uint32_t bits, bool is_signed) {
  uint64_t up = word << (64 - bits - bit);
  return is_signed ? (int64_t)up >> (64 - bits) : (int64_t)(up >> (64 - bits));
}

static inline int64_t num_video_clamp(int64_t v, uint32_t bits, bool is_signed) {
  int64_t most = ((int64_t)1 << (bits - is_signed)) - 1, least = is_signed ? -most - 1 : 0;
  return v < least ? least : v > most ? most : v;
}

// 32 places need 65 bits: of those the sign and the low 33 matter, and that it is beyond the range of every type.
static inline int64_t num_video_shl(int64_t x, uint32_t by) {
  if (by == 32 && x) x = (x & 1) + (x > 0 ? 2 : -2);
  return (int64_t)((uint64_t)x << by);
}

static inline int64_t num_video_primary(const NumVideo *v, int64_t x, int64_t y) {
  uint32_t by = (uint32_t)(v->wrap ? y & 31 : y > 32 ? 32 : y); // of shifts, whose count is not negative
  switch (v->op) {
  case NUM_VIDEO_ADD: return x + y;
  case NUM_VIDEO_SUB: return x - y;
  case NUM_VIDEO_AVERAGE: return (x + y + (x + y >= 0)) >> 1;
  case NUM_VIDEO_ABSDIFF: return x > y ? x - y : y - x;
  case NUM_VIDEO_MIN: return x < y ? x : y;
  case NUM_VIDEO_MAX: return x > y ? x : y;
  case NUM_VIDEO_SHL: return num_video_shl(x, by);
  case NUM_VIDEO_SHR: return x >> by;
  case NUM_VIDEO_EQ: return x == y;
  case NUM_VIDEO_NE: return x != y;
  case NUM_VIDEO_LT: return x < y;
  case NUM_VIDEO_LE: return x <= y;
  case NUM_VIDEO_GT: return x > y;
  default: return x >= y;
  }
}

static inline int64_t num_video_then(const NumVideo *v, int64_t sum, int64_t t) {
  if (v->then == NUM_VIDEO_THEN_ADD) return sum + t;
  return (v->then == NUM_VIDEO_THEN_MIN) == (t < sum) ? t : sum;
}

static inline uint32_t num_video(const NumVideo *v, uint32_t a, uint32_t b, uint32_t c) {
  uint64_t both = (uint64_t)b << 32 | a;
  uint32_t merged = c, ones = v->d_bits == 32 ? UINT32_MAX : (1u << v->d_bits) - 1;
  int64_t sum = num_video_part(c, 0, 32, v->d_signed);
  for (uint32_t i = 0; i < v->count; i++) {
    if (!(v->written >> i & 1)) continue;
    int64_t t = num_video_primary(v, num_video_part(both, v->a_bit[i], v->a_bits, v->a_signed),
                                  num_video_part(both, v->b_bit[i], v->b_bits, v->b_signed));
    if (v->sat) t = num_video_clamp(t, v->d_bits, v->d_signed);
    t = num_video_part((uint64_t)t, 0, 33, true); // the result of the first operation has 33 bits
    sum = num_video_then(v, sum, t);
    merged = (merged & ~(ones << v->d_bit[i])) | ((uint32_t)t & ones) << v->d_bit[i];
  }
  return v->then == NUM_VIDEO_MERGE ? merged : (uint32_t)sum;
}

// The sum has 65 bits and a sign, kept in two words: `high` is all zeros, all ones, or a carry.
static inline uint32_t num_vmad(const NumVideo *v, uint32_t a, uint32_t b, uint32_t c) {
  bool is_signed = v->a_signed || v->b_signed || v->negate_product || v->negate_c;
  int64_t x = num_video_part(a, v->a_bit[0], v->a_bits, v->a_signed);
  int64_t y = num_video_part(b, v->b_bit[0], v->b_bits, v->b_signed);
  uint64_t low = (uint64_t)x * (uint64_t)y, high = x && y && (x < 0) != (y < 0) ? UINT64_MAX : 0;
  if (v->negate_product) low = ~low, high = ~high;
  uint64_t add = (uint64_t)num_video_part(v->negate_c ? ~c : c, 0, 32, is_signed);
  uint64_t one = v->plus_one || v->negate_product || v->negate_c;
  uint64_t sum = low + add, whole = sum + one;
  high += (is_signed ? 0 - (add >> 63) : 0) + (sum < low) + (whole < sum);
  uint64_t r = v->scale ? whole >> v->scale | high << (64 - v->scale) : whole;
  if (!v->sat) return (uint32_t)r;
  if (is_signed) return (uint32_t)num_video_clamp((int64_t)r, 32, true);
  return r > UINT32_MAX ? UINT32_MAX : (uint32_t)r;
}

#endif
