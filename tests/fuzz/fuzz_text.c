// Numbers, counts, shapes and names as people type them (src/base/text.c).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "fuzz.h"

// A refusal says what and where, within the text.
static void check_error(const SolError *err, SolStatus status, size_t size) {
  MUST(err->status == status);
  MUST(err->message[0] && strlen(err->message) < sizeof err->message);
  MUST(err->offset >= 0 && (size_t)err->offset <= size);
  MUST(err->line >= 1 && err->column >= 1 && err->column <= err->offset + 1);
}

// Where the C library reads the whole text as a plain decimal number too, both must mean the same.
static void check_value(const char *text, size_t size, double v) {
  char copy[256];
  if (size >= sizeof copy) return;
  memcpy(copy, text, size);
  copy[size] = 0;
  if (strlen(copy) != size || strspn(copy, "0123456789.eE+-") != size) return;
  char *end;
  double want = strtod(copy, &end);
  MUST(*end == 0);
  MUST(fabs(v - want) <= 1e-14 * want + 1e-307);
}

static void check_number(const char *text, size_t size) {
  double v = -1;
  SolError err = {0};
  SolStatus status = sol_parse_number(text, size, &v, &err);
  MUST(sol_parse_number(text, size, &(double){0}, 0) == status);
  if (status) {
    check_error(&err, status, size);
  } else {
    MUST(isfinite(v) && v >= 0);
    check_value(text, size, v);
  }
}

static void check_count(const char *text, size_t size) {
  int64_t n = -1;
  SolError err = {0};
  SolStatus status = sol_parse_count(text, size, 3, &n, &err);
  if (status)
    check_error(&err, status, size);
  else
    MUST(n >= 3 && n <= (int64_t)SOL_EXACT);
}

static void check_shape(const char *text, size_t size) {
  int64_t dims[4] = {0};
  int rank = -1;
  SolError err = {0};
  SolStatus status = sol_parse_shape(text, size, 4, dims, &rank, &err);
  if (status) {
    check_error(&err, status, size);
    return;
  }
  MUST(rank >= 1 && rank <= 4);
  for (int i = 0; i < rank; i++) MUST(dims[i] >= 1 && dims[i] <= (int64_t)SOL_EXACT);
}

static const char *name_at(const void *ctx, int i) {
  return ((const char *const *)ctx)[i];
}

// The text split at its first newline: two names.
static void check_names(const char *text, size_t size) {
  char *a = malloc(size + 1), *b = malloc(size + 1);
  MUST(a && b);
  const char *newline = size ? memchr(text, '\n', size) : 0;
  size_t n = newline ? (size_t)(newline - text) : size;
  memcpy(a, text, n);
  a[n] = 0;
  size_t m = newline ? size - n - 1 : 0;
  memcpy(b, text + (newline ? n + 1 : 0), m);
  b[m] = 0;
  MUST(sol_same_name(a, a) && sol_same_name(a, b) == sol_same_name(b, a));
  MUST(sol_name_distance(a, b) >= 0);
  sol_name_in_list(a, b);
  const char *names[] = {b, "rmsnorm", a, "h100-sxm", ""};
  SolError err = {0};
  MUST(sol_fail_unknown(&err, "device", a, name_at, names, 5) == SOL_ERR_NOT_FOUND);
  MUST(strlen(err.message) < sizeof err.message && strlen(err.hint) < sizeof err.hint);
  free(a);
  free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  check_number(text, size);
  check_count(text, size);
  check_shape(text, size);
  check_names(text, size);
  return 0;
}
