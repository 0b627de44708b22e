#include "image/numbers.h"

static const char mark[] = ".numbers differences\n"; // no comment: fatbinary takes those out
enum { MARK = sizeof mark - 1, PLACES = 256 };

typedef struct Numbers {
  char *to; // NULL: bytes are only counted
  size_t done;
  uint32_t last[PLACES];
} Numbers;

static void put(Numbers *n, const char *from, size_t bytes) {
  if (n->to) memcpy(n->to + n->done, from, bytes);
  n->done += bytes;
}

static void put_number(Numbers *n, int64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  uint64_t left = (uint64_t)(value < 0 ? -value : value);
  do digits[--at] = (char)('0' + left % 10);
  while (left /= 10);
  if (value < 0) digits[--at] = '-';
  put(n, digits + at, sizeof digits - at);
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

// Rewrites the number at `at`, of which the first byte is a digit or a minus, and returns what follows it.
static const char *rewrite_number(Numbers *n, uint8_t place, const char *at, const char *end, bool packs) {
  bool minus = *at == '-';
  uint32_t value = 0, last = n->last[place];
  for (at += minus; at < end && is_digit(*at); at++) value = value * 10 + (uint32_t)(*at - '0');
  if (minus) value = 0 - value;
  n->last[place] = packs ? value : last + value;
  put_number(n, packs ? (int64_t)(int32_t)(value - last) : (int64_t)n->last[place]);
  return at;
}

// The letters of a word up to the number are its place, by a sum of them: two that fall together pack worse, and unpack all the same.
static void rewrite(Numbers *n, const char *at, const char *end, bool packs) {
  const char *copied = at;
  while (at < end) {
    if (*at != '%' && *at != '$') {
      at++;
      continue;
    }
    uint8_t place = (uint8_t)*at++;
    while (at < end) {
      bool negative = !packs && *at == '-' && at + 1 < end && is_digit(at[1]);
      if (is_digit(*at) || negative) {
        put(n, copied, (size_t)(at - copied));
        copied = at = rewrite_number(n, place, at, end, packs);
      } else if (is_word(*at))
        place = (uint8_t)(place * 31 + *at++);
      else
        break;
    }
  }
  put(n, copied, (size_t)(end - copied));
}

size_t sol_numbers_pack(const char *text, size_t size, char *to) {
  Numbers n = {.to = to};
  put(&n, mark, MARK);
  rewrite(&n, text, text + size, true);
  return n.done;
}

bool sol_numbers_packed(const char *text, size_t size) {
  return size >= MARK && !memcmp(text, mark, MARK);
}

size_t sol_numbers_unpack(const char *packed, size_t size, char *to) {
  Numbers n = {.to = to};
  rewrite(&n, packed + MARK, packed + size, false);
  return n.done;
}
