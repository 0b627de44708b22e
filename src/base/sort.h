// Sorting, without the C library.
#ifndef SOL_BASE_SORT_H
#define SOL_BASE_SORT_H

#include "base/port.h"

// Shell sort of `count` items of `size` bytes: for few, or nearly in order. Equal ones may change places, in the same
// way each time.
void sol_sort(void *items, size_t count, size_t size, bool (*before)(const void *a, const void *b));

#endif
