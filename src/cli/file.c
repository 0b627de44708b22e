// Reading whole files, with errors a person can act on.
#define _POSIX_C_SOURCE 200809L // fileno

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/cli.h"

// The text so far and its room; grows by doubling, since pipes do not say how long they are.
static char *read_all(FILE *f, const char *path, size_t most, size_t *length, SolError *err) {
  size_t cap = 1 << 16;
  char *text = malloc(cap);
  for (*length = 0; text;) {
    size_t n = fread(text + *length, 1, cap - 1 - *length, f);
    *length += n;
    if (*length > most) {
      sol_fail(err, SOL_ERR_RANGE, "'%.120s' is larger than %zu MiB", path, most >> 20);
      break;
    }
    if (n == 0) {
      if (ferror(f)) break;
      text[*length] = 0;
      return text;
    }
    if (*length < cap - 1) continue;
    char *more = realloc(text, cap *= 2);
    if (!more) break;
    text = more;
  }
  if (err && !err->status) {
    if (ferror(f))
      sol_fail(err, SOL_ERR_IO, "cannot read '%.120s': %s", path, strerror(errno));
    else
      sol_fail(err, SOL_ERR_NO_SPACE, "out of memory");
  }
  free(text);
  return NULL;
}

char *cli_read_file(const char *path, size_t most, size_t *length, SolError *err) {
  FILE *f = fopen(path, "rb");
  struct stat st;
  if (!f || fstat(fileno(f), &st)) {
    sol_fail(err, SOL_ERR_NOT_FOUND, "cannot open '%.120s': %s", path, strerror(errno));
    if (f) fclose(f);
    return NULL;
  }
  char *text = NULL;
  if (S_ISDIR(st.st_mode))
    sol_fail(err, SOL_ERR_ARGUMENT, "'%.120s' is a folder; name the file in it", path);
  else
    text = read_all(f, path, most, length, err);
  fclose(f);
  return text;
}
