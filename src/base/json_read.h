// Reading JSON in place: check a text once, then look values up in it. Allocates nothing.
#ifndef SOL_BASE_JSON_READ_H
#define SOL_BASE_JSON_READ_H

#include "base/port.h"
#include "sol/status.h"

enum { SOL_JSON_MAX_DEPTH = 64 };

// A value inside a checked text: its first byte is text[at].
typedef struct SolJson {
  const char *text;
  size_t length, at;
} SolJson;

// Checks the whole text against RFC 8259 (strings as bytes; nesting up to SOL_JSON_MAX_DEPTH).
SolStatus sol_json_check(const char *text, size_t length, SolJson *root, SolError *err);

typedef enum SolJsonKind {
  SOL_JSON_NULL,
  SOL_JSON_BOOL,
  SOL_JSON_NUMBER,
  SOL_JSON_STRING,
  SOL_JSON_ARRAY,
  SOL_JSON_OBJECT
} SolJsonKind;
SolJsonKind sol_json_kind(SolJson value);

// The member's value; false where `object` is none or lacks it. Of equal keys the last counts.
bool sol_json_get(SolJson object, const char *key, SolJson *value);
// Steps through an array or an object's values: start with *it = the container, stop at false.
// For an object `key` (may be NULL) receives the member's name as a string value.
typedef struct SolJsonIter {
  SolJson container;
  size_t next; // 0: not started
} SolJsonIter;
bool sol_json_next(SolJsonIter *it, SolJson *key, SolJson *value);

bool sol_json_number(SolJson value, double *out); // false where it is no number, or not finite as a double
bool sol_json_bool(SolJson value, bool *out);
// Copies a string, escapes decoded (beyond ASCII as UTF-8), cut to cap - 1 bytes; false where it is none.
bool sol_json_string(SolJson value, char *out, size_t cap);

// Whether the object's member is that text (of up to 95 characters).
bool sol_json_text_is(SolJson object, const char *key, const char *want);

#endif
