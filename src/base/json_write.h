// Writing JSON into a buffer, indented. Names are NULL inside arrays and at the top.
#ifndef SOL_BASE_JSON_WRITE_H
#define SOL_BASE_JSON_WRITE_H

#include "base/buffer.h"

typedef struct SolJsonWriter {
  SolBuffer *out;
  int depth;
  bool some; // the container that is open has a member already
} SolJsonWriter;

void sol_json_open(SolJsonWriter *w, const char *name, char bracket);         // '{' or '['
void sol_json_close(SolJsonWriter *w, char bracket);                          // '}' or ']'
void sol_json_put_text(SolJsonWriter *w, const char *name, const char *text); // NULL: null
// Whole numbers up to 2^53 in full, others with 15 significant digits; not finite: null.
void sol_json_put_number(SolJsonWriter *w, const char *name, double value);
void sol_json_put_bool(SolJsonWriter *w, const char *name, bool value);

// One value by itself, for lines that are not built as a tree. NULL: "".
void sol_json_add_text(SolBuffer *out, const char *text);
void sol_json_add_number(SolBuffer *out, double value);

#endif
