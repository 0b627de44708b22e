// Reading what Nsight Compute prints with --csv: the details page (one line a metric) and the raw page (one
// line a launch, a line of units before), what the program printed before it, several tables one after
// another.
#ifndef SOL_PROFILE_IMPORT_H
#define SOL_PROFILE_IMPORT_H

#include "profile/profile.h"

// Adds the launches that the filter (may be NULL) takes. What the file does not have stays unknown. Anything
// that cannot be read for sure is an error with its place and what to do; the profile is then the caller's to
// free.
SolStatus profile_import_csv(Profile *profile, const char *text, size_t length, ProfileFilter *filter,
                             SolError *err);

#endif
