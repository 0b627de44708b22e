#include "base/buffer.h"

#include "base/format.h"
#include "base/heap.h"

static bool reserve(SolBuffer *b, size_t more) {
  if (b->failed) return false;
  if (more < b->cap - b->length) return true; // room for the NUL too
  size_t cap = b->cap ? b->cap : 256;
  while (cap - b->length <= more) {
    if (cap > SIZE_MAX / 2) return b->failed = true, false;
    cap *= 2;
  }
  char *text = sol_heap_realloc(b->text, cap);
  if (!text) return b->failed = true, false;
  b->text = text;
  b->cap = cap;
  return true;
}

void sol_buffer_put(SolBuffer *b, const char *text, size_t length) {
  if (!reserve(b, length)) return;
  memcpy(b->text + b->length, text, length);
  b->length += length;
  b->text[b->length] = 0;
}

void sol_buffer_puts(SolBuffer *b, const char *text) {
  sol_buffer_put(b, text, strlen(text));
}

void sol_buffer_fill(SolBuffer *b, char c, size_t count) {
  if (!reserve(b, count)) return;
  memset(b->text + b->length, c, count);
  b->length += count;
  b->text[b->length] = 0;
}

void sol_buffer_format(SolBuffer *b, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  size_t n = sol_vformat(0, 0, format, args);
  va_end(args);
  if (reserve(b, n)) {
    sol_vformat(b->text + b->length, n + 1, format, again);
    b->length += n;
  }
  va_end(again);
}

void sol_buffer_free(SolBuffer *b) {
  sol_heap_free(b->text);
  *b = (SolBuffer){0};
}

// The code point at the start of a text; *bytes is how long it is.
static uint32_t code_point(const char *text, size_t length, size_t *bytes) {
  unsigned char c = (unsigned char)*text;
  size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
  uint32_t code = n == 1 ? c : c & (0xffu >> (n + 1));
  *bytes = 1;
  if (n > length) return c;
  for (size_t i = 1; i < n; i++) {
    if (((unsigned char)text[i] & 0xc0) != 0x80) return c;
    code = code << 6 | ((unsigned char)text[i] & 0x3f);
  }
  *bytes = n;
  return code;
}

// By Unicode's East Asian Width and general category, in blocks.
static size_t code_columns(uint32_t code) {
  static const struct {
    uint32_t first, last, columns;
  } ranges[] = {{0x300, 0x36f, 0},    {0x200b, 0x200f, 0},   {0x20d0, 0x20ff, 0},   {0xfe00, 0xfe0f, 0},
                {0xfe20, 0xfe2f, 0},  {0x1100, 0x115f, 2},   {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},
                {0xac00, 0xd7a3, 2},  {0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},
                {0xffe0, 0xffe6, 2},  {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2},
                {0x20000, 0x3fffd, 2}};
  for (size_t i = 0; i < SOL_COUNT(ranges); i++)
    if (code >= ranges[i].first && code <= ranges[i].last) return ranges[i].columns;
  return 1;
}

size_t sol_text_columns(const char *text, size_t length) {
  size_t columns = 0;
  for (size_t i = 0, n; i < length; i += n) columns += code_columns(code_point(text + i, length - i, &n));
  return columns;
}

size_t sol_text_prefix(const char *text, size_t length, size_t columns) {
  size_t i = 0, used = 0;
  for (size_t n; i < length; i += n) {
    used += code_columns(code_point(text + i, length - i, &n));
    if (used > columns) break;
  }
  return i;
}
