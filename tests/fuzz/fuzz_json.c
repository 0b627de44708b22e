// JSON reading (src/base/json_read.c): check a text, then walk everything in it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "fuzz.h"

static void check_string(SolJson value) {
  char text[64], small[3];
  MUST(sol_json_string(value, text, sizeof text) && strlen(text) < sizeof text);
  MUST(sol_json_string(value, small, sizeof small) && strlen(small) < sizeof small);
  MUST(strncmp(text, small, strlen(small)) == 0);
}

// Each kind answers to its own reader and to no other.
static void walk(SolJson value, int depth) {
  MUST(value.at < value.length);
  MUST(depth <= SOL_JSON_MAX_DEPTH);
  SolJsonKind kind = sol_json_kind(value);
  double number = 0;
  bool truth = false;
  char text[8];
  SolJson member;
  bool is_number = sol_json_number(value, &number);
  MUST(!is_number || (kind == SOL_JSON_NUMBER && isfinite(number)));
  MUST(sol_json_bool(value, &truth) == (kind == SOL_JSON_BOOL));
  MUST(sol_json_string(value, text, sizeof text) == (kind == SOL_JSON_STRING));
  MUST(kind == SOL_JSON_OBJECT || !sol_json_get(value, "a", &member));
  if (kind == SOL_JSON_STRING) check_string(value);
  SolJsonIter it = {value, 0};
  SolJson key = {0}, child;
  size_t last = value.at;
  while (sol_json_next(&it, &key, &child)) {
    MUST(kind == SOL_JSON_ARRAY || kind == SOL_JSON_OBJECT);
    MUST(child.at > last);
    last = child.at;
    if (kind == SOL_JSON_OBJECT) {
      check_string(key);
      char name[128];
      MUST(sol_json_string(key, name, sizeof name));
      // Every name that fits is found, though an equal one may stand further on.
      if (strlen(name) < 32) MUST(sol_json_get(value, name, &member));
    }
    walk(child, depth + 1);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SolJson root = {0};
  SolError err = {0};
  SolStatus status = sol_json_check((const char *)data, size, &root, &err);
  if (status) {
    MUST(status == SOL_ERR_SYNTAX && err.message[0]);
    MUST(err.offset >= 0 && (size_t)err.offset <= size && err.line >= 1 && err.column >= 1);
    return 0;
  }
  walk(root, 0);
  return 0;
}
