#include "profile/ncu_launch.h"

#include "base/error.h"
#include "base/format.h"
#include "profile/ncu_value.h"

SolStatus import_fail(const Csv *csv, SolError *err, CsvField place, const char *message, const char *hint) {
  size_t offset = (size_t)(place.text - csv->text);
  sol_fail_at(err, SOL_ERR_SYNTAX, csv->text, csv->length, offset, "%s", message);
  sol_hint(err, "%s", hint);
  return SOL_ERR_SYNTAX;
}

void ncu_launch_clear(NcuLaunch *m) {
  profile_launch_clear(&m->launch);
  memset(m->rank, 0, sizeof m->rank);
  for (int i = 0; i < PROFILE_METRICS; i++) m->rates[i] = PROFILE_UNKNOWN;
}

static SolStatus read_number(NcuLaunch *m, CsvField text, CsvField unit, const char *wanted, const char *what,
                             bool whole, double *out, SolError *err) {
  char message[256];
  bool fraction = false, rounded = false;
  *out = PROFILE_UNKNOWN;
  double value = 0, scale = ncu_unit(unit, wanted, &rounded);
  switch (ncu_number(text, &value, &fraction)) {
  case NCU_NONE: m->uncounted++; return SOL_OK;
  case NCU_FOREIGN:
    sol_format(message, sizeof message, "'%.*s' of %.120s is not written as English does: 1,234.5",
               (int)(text.length < 40 ? text.length : 40), text.text, what);
    return import_fail(m->csv, err, text, message,
                       "run ncu with LC_ALL=C in its environment, and take its output as it is");
  case NCU_BAD:
    sol_format(message, sizeof message, "'%.*s' of %.120s is no number",
               (int)(text.length < 40 ? text.length : 40), text.text, what);
    return import_fail(m->csv, err, text, message, WRITE_AGAIN);
  case NCU_NUMBER: break;
  }
  if (scale <= 0) {
    sol_format(message, sizeof message, "'%.*s' is no unit of %.120s that is known here",
               (int)(unit.length < 40 ? unit.length : 40), unit.text, what);
    return import_fail(m->csv, err, text, message, "run ncu with --print-units base");
  }
  if (whole && fraction && !rounded) {
    sol_format(message, sizeof message, "'%.*s': %.120s is a count, and cannot have a fraction",
               (int)(text.length < 40 ? text.length : 40), text.text, what);
    return import_fail(m->csv, err, text, message,
                       "where the point separates thousands: run ncu with LC_ALL=C in its environment");
  }
  if (rounded && fraction) m->rounded = true;
  *out = value * scale;
  return SOL_OK;
}

static bool is_sum(const char *name) {
  size_t n = strlen(name);
  return n > 7 && (strcmp(name + n - 4, ".sum") == 0 || memcmp(name, "memory_", 7) == 0);
}

static SolStatus take_counter(NcuLaunch *m, ProfileMetric metric, bool exact, CsvField text, CsvField unit,
                              SolError *err) {
  const ProfileMetricInfo *info = profile_metric(metric);
  double value;
  bool whole = !info->unit[0] && info->fold == PROFILE_SUM && is_sum(info->name);
  SolStatus status = read_number(m, text, unit, info->unit, info->name, whole, &value, err);
  if (status || !profile_known(value)) return status;
  unsigned char rank = exact ? 2 : 1;
  if (rank <= m->rank[metric]) return SOL_OK;
  m->rank[metric] = rank;
  m->launch.values[metric] = value;
  return SOL_OK;
}

static SolStatus take_rate(NcuLaunch *m, NcuThing thing, CsvField text, SolError *err) {
  const char *name = profile_metric(thing.metric)->name;
  return read_number(m, text, (CsvField){"", 0}, "", name, false, &m->rates[thing.metric], err);
}

// What the file has only per clock.
void ncu_use_rates(NcuLaunch *m) {
  double cycles = m->launch.values[PROFILE_cycles];
  for (int i = 0; i < PROFILE_METRICS; i++)
    if (!m->rank[i] && profile_known(m->rates[i]) && profile_known(cycles))
      m->launch.values[i] = m->rates[i] * cycles, m->rounded |= m->rates[i] > 0;
}

static SolStatus take_field(NcuLaunch *m, NcuField field, CsvField text, CsvField unit, SolError *err) {
  ProfileLaunch *l = &m->launch;
  ProfileGpu *gpu = &m->profile->gpu;
  double value = 0;
  if (field == NCU_GPU_NAME) {
    char name[sizeof gpu->name];
    csv_copy(text, name, sizeof name);
    if (gpu->name[0] && name[0] && strcmp(gpu->name, name) != 0) m->mixed_gpus = true;
    if (!gpu->name[0]) memcpy(gpu->name, name, sizeof name);
    return SOL_OK;
  }
  bool bytes = field == NCU_STATIC_SHARED || field == NCU_DYNAMIC_SHARED;
  SolStatus status = read_number(m, text, unit, bytes ? "B" : "", ncu_field_name(field), !bytes, &value, err);
  if (status || !profile_known(value)) return status;
  switch (field) {
  case NCU_REGISTERS: l->registers = value; break;
  case NCU_STATIC_SHARED: l->static_shared = value; break;
  case NCU_DYNAMIC_SHARED: l->dynamic_shared = value; break;
  case NCU_SMS:
    if (gpu->sms && gpu->sms != (int)value) m->mixed_gpus = true;
    if (!gpu->sms && value < 1e6) gpu->sms = (int)value;
    break;
  default: break;
  }
  return SOL_OK;
}

SolStatus ncu_take(NcuLaunch *m, NcuThing thing, CsvField text, CsvField unit, SolError *err) {
  if (thing.field != NCU_FIELDS) return take_field(m, thing.field, text, unit, err);
  if (thing.rate) return take_rate(m, thing, text, err);
  if (thing.metric != PROFILE_METRICS) return take_counter(m, thing.metric, thing.exact, text, unit, err);
  return SOL_OK;
}
