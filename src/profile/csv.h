// Records of comma-separated text (RFC 4180), in place: fields may be quoted, hold line ends and doubled
// quotes.
#ifndef SOL_PROFILE_CSV_H
#define SOL_PROFILE_CSV_H

#include "base/port.h"
#include "sol/status.h"

typedef struct CsvField {
  const char *text; // within the quotes, where there are any; doubled ones are still doubled
  size_t length;
} CsvField;

typedef struct Csv {
  const char *text;
  size_t length, at; // at: start of the next record
  CsvField *fields;  // of the record last read
  size_t count, cap;
} Csv;

// The line at csv->at, without its end; *next is where the following one starts.
CsvField csv_line(const Csv *csv, size_t *next);
// Reads the record at csv->at and moves on. SOL_ERR_SYNTAX with the place.
SolStatus csv_read(Csv *csv, SolError *err);
void csv_free(Csv *csv);

bool csv_is(CsvField field, const char *text);
bool csv_starts(CsvField field, const char *text);
// The field with doubled quotes made single, cut to cap - 1 bytes.
void csv_copy(CsvField field, char *out, size_t cap);

#endif
