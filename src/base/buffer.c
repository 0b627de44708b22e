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

size_t sol_text_columns(const char *text, size_t length) {
  size_t n = 0;
  for (size_t i = 0; i < length; i++) n += ((unsigned char)text[i] & 0xc0) != 0x80;
  return n;
}
