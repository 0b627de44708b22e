// Names and numbers as people type them.
#ifndef SOL_BASE_TEXT_H
#define SOL_BASE_TEXT_H

#include "base/port.h"
#include "sol/status.h"

// Equal but for case; '-', '_', ' ' and '.' are alike.
bool sol_same_name(const char *a, const char *b);
// Whether `name` is one of the space-separated words of `list`, by the same rule.
bool sol_name_in_list(const char *name, const char *list);
// Whether the whole text is as the pattern says, in which '*' stands for any characters and '?' for one.
bool sol_matches(const char *pattern, const char *text);
// How far apart two names are: edits (a swap of neighbours is one), case aside; a name that starts with or
// holds the other is near. Only for ranking.
int sol_name_distance(const char *a, const char *b);

// "40e6", "1.5", "64Ki", "16MiB", "5M", "3GB". Finite and not negative. SOL_ERR_SYNTAX with the place,
// SOL_ERR_RANGE beyond a double. Exact up to 15 digits and 10^22, within 10 units in the last place of the
// decimal value elsewhere.
SolStatus sol_parse_number(const char *text, size_t length, double *out, SolError *err);
// The same, and a whole number from `least` up to 2^53.
SolStatus sol_parse_count(const char *text, size_t length, int64_t least, int64_t *out, SolError *err);
// "8192x4096": up to `most` counts of at least 1 joined by 'x'.
SolStatus sol_parse_shape(const char *text, size_t length, int most, int64_t *dims, int *rank, SolError *err);

// 2^53: the largest count that stays exact in a double.
#define SOL_EXACT 9007199254740992.0

#endif
