// A growing text. Start from {0}; a failed allocation sets `failed` and drops what follows, so that callers
// check once, at the end.
#ifndef SOL_BASE_BUFFER_H
#define SOL_BASE_BUFFER_H

#include "base/port.h"

typedef struct SolBuffer {
  char *text; // NUL-terminated once anything was put in; NULL before
  size_t length, cap;
  bool failed;
} SolBuffer;

void sol_buffer_put(SolBuffer *buffer, const char *text, size_t length);
void sol_buffer_puts(SolBuffer *buffer, const char *text);
void sol_buffer_fill(SolBuffer *buffer, char c, size_t count);
void sol_buffer_format(SolBuffer *buffer, const char *format, ...) SOL_PRINTF(2, 3);
void sol_buffer_free(SolBuffer *buffer);

// Columns a UTF-8 text takes on a terminal: two for East Asian wide characters and emoji, none for combining
// marks, one for every other code point (and for a byte that is no UTF-8).
size_t sol_text_columns(const char *text, size_t length);
// The longest prefix, in bytes, that takes at most `columns` columns; it never ends inside a code point.
size_t sol_text_prefix(const char *text, size_t length, size_t columns);

#endif
