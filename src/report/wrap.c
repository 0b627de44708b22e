#include "report/wrap.h"

#include <string.h>

void report_wrap(SolBuffer *b, const char *text, size_t indent, size_t width) {
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
}
