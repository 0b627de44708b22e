// Text formatting without libc or locale: a printf subset whose floating-point output is exactly rounded.
#ifndef SOL_BASE_FORMAT_H
#define SOL_BASE_FORMAT_H

#include <stdarg.h>

#include "base/port.h"

// Like snprintf: returns the length the whole text has, writes at most cap bytes, NUL included.
// Takes %s %c %d %i %u %x %f %e %g %% with flags '-' and '0', width, precision ('*' too) and l, ll, z.
size_t sol_format(char *out, size_t cap, const char *format, ...) SOL_PRINTF(3, 4);
size_t sol_vformat(char *out, size_t cap, const char *format, va_list args) SOL_PRINTF(3, 0);

#endif
