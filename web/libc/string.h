// The few functions of <string.h> that src/report uses, for the freestanding build of the page (src/page/page_libc_wasm.c).
#ifndef SOL_WEB_STRING_H
#define SOL_WEB_STRING_H

#include "base/port.h"

void *memchr(const void *memory, int byte, size_t n);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);
size_t strcspn(const char *s, const char *stops);
char *strstr(const char *s, const char *part);

#endif
