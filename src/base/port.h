// The few C library functions that base, device and roofline use. They also build freestanding (wasm32 has no
// libc headers), so they are declared here; wasm.c defines them where no libc does.
#ifndef SOL_BASE_PORT_H
#define SOL_BASE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

#define SOL_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define SOL_COUNT(array)        (sizeof(array) / sizeof((array)[0]))

static inline double sol_larger(double a, double b) {
  return a > b ? a : b;
}
static inline double sol_smaller(double a, double b) {
  return a < b ? a : b;
}
// Of values that are not negative.
static inline double sol_largest(const double *values, size_t count) {
  double most = 0;
  for (size_t i = 0; i < count; i++) most = sol_larger(most, values[i]);
  return most;
}

#endif
