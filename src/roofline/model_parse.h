// The values of a config.json, found, checked and placed: what model_keys.c hands to the rules in
// model_config.c.
#ifndef SOL_ROOFLINE_MODEL_PARSE_H
#define SOL_ROOFLINE_MODEL_PARSE_H

#include "base/json_read.h"
#include "roofline/model_parts.h"

typedef enum SolConfigKey {
#define KEY(id, ...) SOL_KEY_##id,
#include "roofline/model_keys.def"
  SOL_CONFIG_KEYS
} SolConfigKey;

typedef struct SolConfigSlot {
  bool found;
  int rank;      // which of the key's names the file uses
  char name[40]; // that name
  SolJson value;
  double number; // of a count or fraction; of a flag 0 or 1
} SolConfigSlot;

typedef struct SolConfigText {
  SolJson object; // the one whose members are read
  SolError *err;
  SolConfigSlot slot[SOL_CONFIG_KEYS];
} SolConfigText;

// Finds the keys among the object's members, in one pass. Null counts as absent.
void sol_config_collect(SolConfigText *t, SolJson object);
// Checks what was found against its kind and limits, and fills the fields that a key fills directly.
SolStatus sol_config_read(SolConfigText *t, SolModelConfig *c);

bool sol_config_has(const SolConfigText *t, SolConfigKey key);
int64_t sol_config_count(const SolConfigText *t, SolConfigKey key, int64_t fallback);
bool sol_config_flag(const SolConfigText *t, SolConfigKey key, bool fallback);
// Always printable ASCII; empty where the key is absent.
void sol_config_text(SolJson value, char *out, size_t cap);

SolStatus sol_config_fail(SolConfigText *t, SolJson at, SolStatus status, const char *format, ...)
    SOL_PRINTF(4, 5);
SolStatus sol_config_missing(SolConfigText *t, SolConfigKey key);

#endif
