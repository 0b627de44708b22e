#include "base/sort.h"

static void swap(char *a, char *b, size_t size) {
  for (; size; size--, a++, b++) {
    char kept = *a;
    *a = *b;
    *b = kept;
  }
}

void sol_sort(void *items, size_t count, size_t size, bool (*before)(const void *a, const void *b)) {
  char *first = items;
  for (size_t gap = count / 2; gap; gap /= 2)
    for (size_t i = gap; i < count; i++)
      for (size_t at = i; at >= gap && before(first + at * size, first + (at - gap) * size); at -= gap)
        swap(first + at * size, first + (at - gap) * size, size);
}
