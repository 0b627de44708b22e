// Kernel names for people.
#ifndef SOL_AUDIT_NAMES_H
#define SOL_AUDIT_NAMES_H

#include "base/port.h"

// "_ZN3foo3barIfLi4EEEvPT_" is "foo::bar<float,4>"; what is not mangled, or in a way not known here, stays as
// it is.
void audit_title(const char *name, char *out, size_t cap);

#endif
