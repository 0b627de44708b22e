// Sentences for people.
#ifndef SOL_REPORT_WRAP_H
#define SOL_REPORT_WRAP_H

#include "base/buffer.h"

// One after another, indented and wrapped.
void report_wrap(SolBuffer *out, const char *text, size_t indent, size_t width);

#endif
