// What web/libc/string.h declares, for the freestanding wasm32 build alone.
#include "base/port.h"

void *memchr(const void *memory, int byte, size_t n) {
  const unsigned char *at = memory;
  for (; n && *at != (unsigned char)byte; n--) at++;
  return n ? (void *)(uintptr_t)at : NULL;
}

int strncmp(const char *a, const char *b, size_t n) {
  for (; n && *a && *a == *b; n--) a++, b++;
  return n ? (unsigned char)*a - (unsigned char)*b : 0;
}

char *strchr(const char *s, int c) {
  for (; *s != (char)c; s++)
    if (!*s) return NULL;
  return (char *)(uintptr_t)s;
}

char *strrchr(const char *s, int c) {
  const char *last = NULL;
  do
    if (*s == (char)c) last = s;
  while (*s++);
  return (char *)(uintptr_t)last;
}

size_t strcspn(const char *s, const char *stops) {
  size_t n = 0;
  while (s[n] && !strchr(stops, s[n])) n++;
  return n;
}

char *strstr(const char *s, const char *part) {
  size_t n = strlen(part);
  for (; strncmp(s, part, n) != 0; s++)
    if (!*s) return NULL;
  return (char *)(uintptr_t)s;
}
