#include "report/wrap.h"

#include <string.h>

enum { LEAST = 8 }; // columns of a line, however far in it starts

static size_t word_at(const char *text) {
  return strcspn(text, " \n");
}

size_t report_line(const char *text, size_t columns) {
  size_t n = 0;
  for (;;) {
    size_t spaces = strspn(text + n, " "), newline = text[n + spaces] == '\n';
    if (newline && strspn(text + n + spaces, "\n") > 1) break; // a paragraph ends
    size_t end = n + spaces + newline + word_at(text + n + spaces + newline);
    if (end == n || sol_text_columns(text, end) > columns) break;
    n = end;
  }
  if (n) return n;
  n = sol_text_prefix(text, word_at(text), columns);
  return n ? n : 1;
}

static void put_line(SolBuffer *out, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++) sol_buffer_put(out, text[i] == '\n' ? " " : &text[i], 1);
}

void report_wrap(SolBuffer *out, const char *text, size_t indent, size_t at, size_t width, const char *end) {
  size_t room = width - strlen(end);
  for (size_t column = at; *text; column = indent) {
    size_t left = room > column + LEAST ? room - column : LEAST, n = report_line(text, left);
    // A word that is too long for the rest of the first line has the second for itself.
    bool next = at > indent && column == at && sol_text_columns(text, word_at(text)) > left;
    if (!next) {
      put_line(out, text, n);
      text += n;
    }
    bool paragraph = !next && strspn(text + strspn(text, " "), "\n") > 1;
    if (!next) text += strspn(text, " \n");
    if (!*text) break;
    sol_buffer_format(out, paragraph ? "\n\n" : "%s\n", end);
    sol_buffer_fill(out, ' ', indent);
  }
}
