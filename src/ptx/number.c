// Decimal text to the nearest double, without libc: exact integer arithmetic on a short array of limbs.
#include "ptx/lex.h"

// Digits past the 40th only decide ties, so they are kept as one "something follows" bit.
enum { MAX_DIGITS = 40, MAX_LIMBS = 48, EXPONENT_LIMIT = 400 };

typedef struct Big {
  uint32_t limb[MAX_LIMBS]; // least significant first
  int count;
} Big;

static void multiply_add(Big *b, uint32_t by, uint32_t plus) {
  uint64_t carry = plus;
  for (int i = 0; i < b->count; i++) {
    carry += (uint64_t)b->limb[i] * by;
    b->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
  if (carry) b->limb[b->count++] = (uint32_t)carry;
}

static uint32_t divide(Big *b, uint32_t by) {
  uint64_t rest = 0;
  for (int i = b->count - 1; i >= 0; i--) {
    rest = rest << 32 | b->limb[i];
    b->limb[i] = (uint32_t)(rest / by);
    rest %= by;
  }
  while (b->count && !b->limb[b->count - 1]) b->count--;
  return (uint32_t)rest;
}

// Makes room for `words` whole limbs below.
static void shift_words(Big *b, int words) {
  for (int i = b->count - 1; i >= 0; i--) b->limb[i + words] = b->limb[i];
  for (int i = 0; i < words; i++) b->limb[i] = 0;
  b->count += words;
}

static int bit_length(const Big *b) {
  return b->count ? b->count * 32 - __builtin_clz(b->limb[b->count - 1]) : 0;
}

static bool bit(const Big *b, int i) {
  return b->limb[i / 32] >> (i % 32) & 1;
}

static double from_bits(uint64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

// b * 2^exponent, rounded to nearest even; `more`: plus something less than b's last bit.
static double round_big(const Big *b, int exponent, bool more) {
  int length = bit_length(b);
  if (!length) return 0;
  int top = length - 1 + exponent; // exponent of the leading bit
  int keep = top >= -1022 ? 53 : top + 1075;
  if (keep < 0) return 0;
  uint64_t mantissa = 0;
  int low = length - keep; // lowest bit kept, may be below the number's last
  for (int i = length - 1; i >= low; i--) mantissa = mantissa << 1 | (i >= 0 && bit(b, i));
  bool half = low > 0 && bit(b, low - 1);
  for (int i = 0; i < low - 1 && !more; i++) more = bit(b, i);
  if (half && (more || (mantissa & 1))) mantissa++;
  // A carry out of the mantissa falls into the exponent, as it should.
  uint64_t bits = top >= -1022 ? ((uint64_t)(top + 1022) << 52) + mantissa : mantissa;
  return bits >= 0x7ff0000000000000 ? from_bits(0x7ff0000000000000) : from_bits(bits);
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

double sol_ptx_read_decimal(const char *text, size_t length) {
  Big b = {{0}, 0};
  int digits = 0, exponent = 0;
  bool more = false, point = false;
  size_t i = 0;
  for (; i < length && (is_digit(text[i]) || text[i] == '.'); i++) {
    if (text[i] == '.') {
      point = true;
      continue;
    }
    if (digits < MAX_DIGITS) {
      if (digits || text[i] != '0') digits++, multiply_add(&b, 10, (uint32_t)(text[i] - '0'));
      if (point) exponent--;
    } else {
      more |= text[i] != '0';
      if (!point) exponent++;
    }
    if (exponent > 100000 || exponent < -100000) break;
  }
  if (i < length && (text[i] == 'e' || text[i] == 'E')) {
    bool minus = false;
    int written = 0;
    if (++i < length && (text[i] == '-' || text[i] == '+')) minus = text[i++] == '-';
    for (; i < length && is_digit(text[i]); i++)
      if (written < 1000000) written = written * 10 + (text[i] - '0');
    exponent += minus ? -written : written;
  }
  if (!b.count) return 0;
  if (exponent > EXPONENT_LIMIT) return from_bits(0x7ff0000000000000);
  if (exponent < -EXPONENT_LIMIT) return 0;
  int binary = 0;
  for (; exponent >= 9; exponent -= 9) multiply_add(&b, 1000000000, 0);
  for (; exponent > 0; exponent--) multiply_add(&b, 10, 0);
  if (exponent < 0) { // 32 bits for each nine digits divided off, and the 53 of the result
    int words = (-exponent + 8) / 9 + 3;
    if (words + b.count > MAX_LIMBS) words = MAX_LIMBS - b.count;
    shift_words(&b, words);
    binary = -32 * words;
  }
  for (; exponent <= -9; exponent += 9) more |= divide(&b, 1000000000) != 0;
  for (; exponent < 0; exponent++) more |= divide(&b, 10) != 0;
  return round_big(&b, binary, more);
}
