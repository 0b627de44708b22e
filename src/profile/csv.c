#include "profile/csv.h"

#include "base/error.h"
#include "base/heap.h"

enum { MOST_FIELDS = 1 << 16 };

CsvField csv_line(const Csv *csv, size_t *next) {
  size_t end = csv->at;
  while (end < csv->length && csv->text[end] != '\n') end++;
  *next = end < csv->length ? end + 1 : end;
  size_t n = end - csv->at;
  if (n && csv->text[end - 1] == '\r') n--;
  return (CsvField){csv->text + csv->at, n};
}

static bool add_field(Csv *csv, size_t from, size_t to) {
  if (csv->count == csv->cap) {
    size_t cap = csv->cap ? csv->cap * 2 : 64;
    CsvField *more = cap > MOST_FIELDS ? NULL : sol_heap_realloc(csv->fields, cap * sizeof *more);
    if (!more) return false;
    csv->fields = more;
    csv->cap = cap;
  }
  csv->fields[csv->count++] = (CsvField){csv->text + from, to - from};
  return true;
}

static bool ends(const Csv *csv, size_t at) {
  return at >= csv->length || csv->text[at] == '\n' || csv->text[at] == ',' ||
         (csv->text[at] == '\r' && (at + 1 == csv->length || csv->text[at + 1] == '\n'));
}

// One field from `at`; *end is where its comma or line end is.
static SolStatus read_field(Csv *csv, size_t at, size_t *end, SolError *err) {
  size_t from = at, to;
  if (at < csv->length && csv->text[at] == '"') {
    for (at++;; at++) {
      if (at >= csv->length) {
        sol_fail_at(err, SOL_ERR_SYNTAX, csv->text, csv->length, from,
                    "the file ends inside of a quoted field that starts here");
        sol_hint(err, "it is cut off: write it again, in full");
        return SOL_ERR_SYNTAX;
      }
      if (csv->text[at] != '"') continue;
      if (at + 1 < csv->length && csv->text[at + 1] == '"')
        at++;
      else
        break;
    }
    from++, to = at++;
    if (!ends(csv, at))
      return sol_fail_at(err, SOL_ERR_SYNTAX, csv->text, csv->length, at,
                         "a comma or the end of the line has to follow a quoted field");
  } else {
    while (!ends(csv, at)) at++;
    to = at;
  }
  *end = at;
  if (add_field(csv, from, to)) return SOL_OK;
  return sol_fail_at(err, SOL_ERR_NO_SPACE, csv->text, csv->length, from,
                     "out of memory, or more than %d fields", (int)MOST_FIELDS);
}

SolStatus csv_read(Csv *csv, SolError *err) {
  size_t at = csv->at;
  csv->count = 0;
  for (;; at++) {
    SolStatus status = read_field(csv, at, &at, err);
    if (status) return status;
    if (at >= csv->length || csv->text[at] != ',') break;
    if (at + 1 < csv->length) continue;
    sol_fail_at(err, SOL_ERR_SYNTAX, csv->text, csv->length, at, "the file ends after a comma");
    sol_hint(err, "it is cut off: write it again, in full");
    return SOL_ERR_SYNTAX;
  }
  if (at < csv->length && csv->text[at] == '\r') at++;
  csv->at = at < csv->length ? at + 1 : at;
  return SOL_OK;
}

void csv_free(Csv *csv) {
  sol_heap_free(csv->fields);
  csv->fields = NULL;
  csv->count = csv->cap = 0;
}

bool csv_is(CsvField field, const char *text) {
  return strlen(text) == field.length && memcmp(field.text, text, field.length) == 0;
}

bool csv_starts(CsvField field, const char *text) {
  size_t n = strlen(text);
  return field.length >= n && memcmp(field.text, text, n) == 0;
}

void csv_copy(CsvField field, char *out, size_t cap) {
  size_t n = 0;
  for (size_t i = 0; i < field.length && n + 1 < cap; i++) {
    if (field.text[i] == '"') i++; // the second of two
    if (i < field.length) out[n++] = field.text[i];
  }
  if (cap) out[n] = 0;
}
