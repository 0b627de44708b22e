#include "base/plain.h"

size_t sol_utf8_next(const char *text, size_t length, uint32_t *code) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800,
                                   0x10000}; // shorter ones are another spelling: not valid
  if (!length) return 0;
  unsigned char first = (unsigned char)text[0];
  size_t n = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : 4;
  *code = n == 1 ? first : first & (0x7fu >> n);
  if (n > length || first > 0xf4 || (first >= 0x80 && first < 0xc2)) return 0;
  for (size_t i = 1; i < n; i++) {
    if (((unsigned char)text[i] & 0xc0) != 0x80) return 0;
    *code = *code << 6 | ((unsigned char)text[i] & 0x3f);
  }
  bool surrogate = *code >= 0xd800 && *code < 0xe000;
  return surrogate || *code < least[n] || *code > 0x10ffff ? 0 : n;
}

bool sol_code_is_hidden(uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return true;
  if (c == 0x61c || c == 0x200e || c == 0x200f) return true; // marks of direction
  if ((c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f))
    return true; // separators, overrides, isolates
  return c == 0x200b || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe007f);
}

// How much of text stays as it is: one character, or 0.
static size_t shown(const char *text, size_t length, bool lines, uint32_t *code, size_t *n) {
  *n = sol_utf8_next(text, length, code);
  bool kept = lines && *n == 1 && *code == '\n';
  return *n && (kept || !sol_code_is_hidden(*code)) ? *n : 0;
}

void sol_buffer_plain(SolBuffer *out, const char *text, size_t length, bool lines) {
  for (size_t at = 0, n; at < length; at += n) {
    uint32_t code;
    if (shown(text + at, length - at, lines, &code, &n)) {
      sol_buffer_put(out, text + at, n);
    } else if (n > 1) {
      sol_buffer_format(out, "\\u%04x", code);
    } else {
      sol_buffer_format(out, "\\x%02x", (unsigned char)text[at]);
      n = 1;
    }
  }
}

bool sol_text_is_plain(const char *text, size_t length, bool lines) {
  for (size_t at = 0, n; at < length; at += n) {
    uint32_t code;
    if (!shown(text + at, length - at, lines, &code, &n)) return false;
  }
  return true;
}

size_t sol_text_cut(const char *text, size_t most) {
  size_t n = strlen(text);
  if (n <= most) return n;
  size_t cut = most;
  while (cut && most - cut < 3 && ((unsigned char)text[cut] & 0xc0) == 0x80) cut--;
  return ((unsigned char)text[cut] & 0xc0) == 0x80 ? most : cut;
}
