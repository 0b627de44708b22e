// Words into lines.
#ifndef SOL_REPORT_WRAP_H
#define SOL_REPORT_WRAP_H

#include "base/buffer.h"

// Puts the words of `text` into lines of at most `width` columns, the first starting at column `at`, the
// others at `indent`. A word longer than a line is broken; an empty line in the text stays one. `end` is put
// after each line but the last: " \\" for a shell's. No newline follows the last.
void report_wrap(SolBuffer *out, const char *text, size_t indent, size_t at, size_t width, const char *end);

// How many bytes of `text` go into a line of `columns`: whole words, or a part of one that is longer.
size_t report_line(const char *text, size_t columns);

#endif
