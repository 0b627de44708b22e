// The page's questions asked of the native build (tests/page.py): one on each line of standard input, and a line
// "LENGTH" before each answer.
#define _POSIX_C_SOURCE 200809L // getline

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"

int main(void) {
  char *line = NULL;
  size_t cap = 0;
  for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
    const char *answer = page_ask(line, (size_t)n - (line[n - 1] == '\n'));
    printf("%zu\n%s\n", strlen(answer), answer);
    fflush(stdout);
  }
  free(line);
  return 0;
}
