#include "report/wrap.h"

#include <string.h>

#include "base/plain.h"

void report_wrap(SolBuffer *b, const char *whole, size_t indent, size_t width) {
  SolBuffer plain = {0}; // it may quote names of the program's
  sol_buffer_plain(&plain, whole, strlen(whole), false);
  if (plain.failed) b->failed = true;
  const char *text = plain.text && !plain.failed ? plain.text : "";
  size_t column = indent;
  sol_buffer_fill(b, ' ', indent);
  while (*text) {
    size_t n = strcspn(text, " ");
    if (column > indent && column + 1 + n > width) {
      sol_buffer_puts(b, "\n");
      sol_buffer_fill(b, ' ', indent);
      column = indent;
    } else if (column > indent) {
      sol_buffer_puts(b, " ");
      column++;
    }
    sol_buffer_put(b, text, n);
    column += sol_text_columns(text, n);
    text += n;
    while (*text == ' ') text++;
  }
  sol_buffer_puts(b, "\n");
  sol_buffer_free(&plain);
}
