// What a libc would give, for the freestanding wasm32 build alone. -fno-builtin keeps the compiler from
// turning these loops into calls to themselves.
#include "base/port.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  unsigned char *t = to;
  const unsigned char *f = from;
  for (size_t i = 0; i < n; i++) t[i] = f[i];
  return to;
}

void *memmove(void *to, const void *from, size_t n) {
  unsigned char *t = to;
  const unsigned char *f = from;
  if ((uintptr_t)t < (uintptr_t)f)
    for (size_t i = 0; i < n; i++) t[i] = f[i];
  else
    for (size_t i = n; i > 0; i--) t[i - 1] = f[i - 1];
  return to;
}

void *memset(void *to, int byte, size_t n) {
  unsigned char *t = to;
  for (size_t i = 0; i < n; i++) t[i] = (unsigned char)byte;
  return to;
}

int memcmp(const void *a, const void *b, size_t n) {
  const unsigned char *p = a, *q = b;
  for (size_t i = 0; i < n; i++)
    if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
  return 0;
}

size_t strlen(const char *s) {
  size_t n = 0;
  while (s[n]) n++;
  return n;
}

int strcmp(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return (unsigned char)*a - (unsigned char)*b;
}
