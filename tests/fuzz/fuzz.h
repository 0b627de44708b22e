// What every fuzz target has: libFuzzer's entry, and a check that stops at the input that breaks it.
#ifndef SOL_TESTS_FUZZ_H
#define SOL_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                                      \
  do {                                                                                                       \
    if (!(condition)) {                                                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                        \
      abort();                                                                                               \
    }                                                                                                        \
  } while (0)

#endif
