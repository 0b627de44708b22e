// Demangles kernel names for output.
#ifndef SOL_AUDIT_NAMES_H
#define SOL_AUDIT_NAMES_H

#include "base/port.h"

// "_ZN3foo3barIfLi4EEEvPT_" becomes "foo::bar<float,4>". A name that is not mangled, or in an unknown way, is
// copied unchanged.
void audit_title(const char *name, char *out, size_t cap);
// Whether a title or mangled name is the one that n characters of a pattern select: all of it, what comes before its
// template arguments, or its start where the pattern ends with '*'.
bool audit_selects(const char *pattern, size_t n, const char *text);

#endif
