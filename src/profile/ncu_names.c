#include "profile/ncu_names.h"

static const struct {
  const char *name, *section, *label;
} fields[] = {
#define ALIAS(key, name)
#define LABEL(key, section, label)
#define RATE(key, name)
#define FIELD(field, name, section, label) {name, section, label},
#include "profile/ncu.def"
#undef FIELD
#undef RATE
};

static const struct {
  ProfileMetric metric;
  const char *name;
} rates[] = {
#define RATE(key, name) {PROFILE_##key, name},
#define FIELD(field, name, section, label)
#include "profile/ncu.def"
#undef RATE
#undef LABEL
};

static const struct {
  ProfileMetric metric;
  const char *section, *label;
} labels[] = {
#define RATE(key, name)
#define LABEL(key, section, label) {PROFILE_##key, section, label},
#include "profile/ncu.def"
#undef FIELD
#undef LABEL
#undef RATE
#undef ALIAS
};

const char *ncu_field_name(NcuField field) {
  return fields[field].name;
}

NcuThing ncu_thing(CsvField section, CsvField name) {
  NcuThing none = {PROFILE_METRICS, NCU_FIELDS, false, false};
  ProfileMetric metric = profile_metric_find(name.text, name.length);
  if (metric != PROFILE_METRICS)
    return (NcuThing){metric, NCU_FIELDS, csv_is(name, profile_metric(metric)->name), false};
  for (int i = 0; i < NCU_FIELDS; i++) {
    bool labelled = fields[i].label[0] && csv_is(section, fields[i].section) && csv_is(name, fields[i].label);
    if (labelled || csv_is(name, fields[i].name))
      return (NcuThing){PROFILE_METRICS, (NcuField)i, true, false};
  }
  for (size_t i = 0; i < SOL_COUNT(rates); i++)
    if (csv_is(name, rates[i].name)) return (NcuThing){rates[i].metric, NCU_FIELDS, false, true};
  if (!section.length) return none;
  for (size_t i = 0; i < SOL_COUNT(labels); i++) {
    bool here = !labels[i].section || csv_starts(section, labels[i].section);
    if (here && csv_is(name, labels[i].label)) return (NcuThing){labels[i].metric, NCU_FIELDS, true, false};
  }
  return none;
}
