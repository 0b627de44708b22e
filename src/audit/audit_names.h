// Demangles kernel names for output.
#ifndef SOL_AUDIT_NAMES_H
#define SOL_AUDIT_NAMES_H

#include "base/port.h"

// "_ZN3foo3barIfLi4EEEvPT_" becomes "foo::bar<float,4>". A name that is not mangled, or in an unknown way, is
// copied unchanged.
void audit_title(const char *name, char *out, size_t cap);

#endif
