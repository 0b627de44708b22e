// What Nsight Compute's names mean.
#ifndef SOL_PROFILE_NCU_NAMES_H
#define SOL_PROFILE_NCU_NAMES_H

#include "profile/csv.h"
#include "profile/profile.h"

// Facts of a launch or of the GPU that are no counters.
typedef enum NcuField {
#define ALIAS(key, name)
#define LABEL(key, section, label)
#define RATE(key, name)
#define FIELD(field, name, section, label) NCU_##field,
#include "profile/ncu.def"
#undef FIELD
#undef LABEL
#undef RATE
#undef ALIAS
  NCU_FIELDS
} NcuField;
const char *ncu_field_name(NcuField field);

typedef struct NcuThing {
  ProfileMetric metric; // PROFILE_METRICS: none of the counters used
  NcuField field;       // NCU_FIELDS: no fact either
  bool exact;           // the counter's own name, not an alias
  bool rate;            // the counter per clock
} NcuThing;

// A metric by its name, or by what the details page calls it in that section (empty: the raw page).
NcuThing ncu_thing(CsvField section, CsvField name);

#endif
