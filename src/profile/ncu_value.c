#include "profile/ncu_value.h"

#include "base/format.h"
#include "base/text.h"

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static CsvField trimmed(CsvField f) {
  while (f.length && (f.text[0] == ' ' || f.text[0] == '\t')) f.text++, f.length--;
  while (f.length && (f.text[f.length - 1] == ' ' || f.text[f.length - 1] == '\t')) f.length--;
  return f;
}

// Digits parted by something that is not a comma or a point: spaces (also those of several bytes),
// apostrophes, or commas and points in places where English has none.
static NcuNumber no_number(CsvField f) {
  size_t digits = 0;
  for (size_t i = 0; i < f.length; i++) {
    unsigned char c = (unsigned char)f.text[i];
    bool mark = c == ' ' || c == '\'' || c == ',' || c == '.' || c >= 0x80;
    if (is_digit(f.text[i]))
      digits++;
    else if (!mark && !(c == '-' && i == 0))
      return NCU_BAD;
  }
  return digits && is_digit(f.text[f.length - 1]) ? NCU_FOREIGN : NCU_BAD;
}

NcuNumber ncu_number(CsvField field, double *out, bool *fraction) {
  static const char *const none[] = {"", "n/a", "N/A", "nan", "-nan", "no data", "(!) n/a"};
  CsvField f = trimmed(field);
  for (size_t i = 0; i < SOL_COUNT(none); i++)
    if (csv_is(f, none[i])) return NCU_NONE;
  char plain[64];
  size_t n = 0, group = 0, groups = 0, at = 0, whole = 0;
  if (f.length >= sizeof plain) return NCU_BAD;
  for (; at < f.length && (is_digit(f.text[at]) || f.text[at] == ','); at++) {
    if (f.text[at] == ',') {
      if (!group || group > 3 || (groups && group != 3)) return no_number(f);
      groups++, group = 0;
    } else {
      plain[n++] = f.text[at], group++, whole++;
    }
  }
  if (!whole || (groups && group != 3)) return no_number(f);
  bool point = at < f.length && f.text[at] == '.';
  if (point) {
    plain[n++] = f.text[at++];
    size_t from = at;
    while (at < f.length && is_digit(f.text[at])) plain[n++] = f.text[at++];
    if (at == from) return no_number(f);
  }
  if (at < f.length && (f.text[at] | 0x20) == 'e') {
    plain[n++] = f.text[at++];
    if (at < f.length && (f.text[at] == '+' || f.text[at] == '-')) plain[n++] = f.text[at++];
    while (at < f.length && is_digit(f.text[at])) plain[n++] = f.text[at++];
  }
  if (at != f.length) return no_number(f);
  if (fraction) *fraction = point;
  return sol_parse_number(plain, n, out, NULL) ? NCU_BAD : NCU_NUMBER;
}

typedef struct Unit {
  const char *name;
  double scale;
} Unit;

static double scale_of(CsvField unit, const Unit *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (csv_is(unit, list[i].name)) return list[i].scale;
  return 0;
}

static const Unit times[] = {{"ns", 1},        {"nsecond", 1},  {"us", 1e3},
                             {"usecond", 1e3}, {"ms", 1e6},     {"msecond", 1e6},
                             {"s", 1e9},       {"second", 1e9}, {"\xc2\xb5s", 1e3}};
static const Unit bytes[] = {{"byte", 1},     {"B", 1},         {"Kbyte", 1e3},
                             {"Mbyte", 1e6},  {"Gbyte", 1e9},   {"Tbyte", 1e12},
                             {"KB", 1e3},     {"MB", 1e6},      {"GB", 1e9},
                             {"TB", 1e12},    {"Kibyte", 1024}, {"Mibyte", 1048576},
                             {"KiB", 1024.0}, {"MiB", 1048576}, {"Gibyte", 1073741824.0}};

// "Kbyte/block" is Kbyte, "Gbyte/s" and "Gbyte/second" a rate.
static CsvField before_slash(CsvField unit, CsvField *after) {
  for (size_t i = 0; i < unit.length; i++)
    if (unit.text[i] == '/') {
      *after = (CsvField){unit.text + i + 1, unit.length - i - 1};
      return (CsvField){unit.text, i};
    }
  *after = (CsvField){"", 0};
  return unit;
}

// Counts carry the name of what is counted, with K, M or G before it where ncu made them short.
static double count_scale(CsvField unit) {
  static const char *const counted[] = {"sector", "request", "inst",  "instruction", "cycle", "warp",
                                        "thread", "block",   "event", "conflict",    "op",    "register"};
  static const char prefixes[] = "KMGT";
  if (!unit.length) return 1;
  double scale = 1;
  for (size_t p = 0; prefixes[p]; p++) {
    scale *= 1000;
    if (unit.text[0] != prefixes[p]) continue;
    CsvField rest = {unit.text + 1, unit.length - 1};
    for (size_t i = 0; i < SOL_COUNT(counted); i++)
      if (csv_is(rest, counted[i])) return scale;
  }
  return 1;
}

double ncu_unit(CsvField unit, const char *wanted, bool *rounded) {
  CsvField per, what = before_slash(trimmed(unit), &per);
  double scale = 0;
  if (strcmp(wanted, "ns") == 0) {
    scale = per.length ? 0 : scale_of(what, times, SOL_COUNT(times));
  } else if (strcmp(wanted, "B") == 0) {
    bool rate = csv_is(per, "s") || csv_is(per, "second");
    scale = rate ? 0 : scale_of(what, bytes, SOL_COUNT(bytes));
  } else if (strcmp(wanted, "B/s") == 0) {
    double by = csv_is(per, "s") || csv_is(per, "second")     ? 1
                : csv_is(per, "ns") || csv_is(per, "nsecond") ? 1e9
                                                              : 0;
    scale = by * scale_of(what, bytes, SOL_COUNT(bytes));
  } else if (strcmp(wanted, "%") == 0) {
    scale = csv_is(what, "%") || !what.length ? 1 : 0;
  } else {
    scale = csv_is(what, "%") ? 0 : count_scale(trimmed(unit));
  }
  if (rounded) *rounded = scale > 1;
  return scale;
}

bool ncu_shape(CsvField field, uint32_t out[3]) {
  CsvField f = trimmed(field);
  size_t at = 0;
  if (f.length < 5 || f.text[0] != '(' || f.text[f.length - 1] != ')') return false;
  for (int i = 0; i < 3; i++) {
    uint64_t value = 0;
    at++; // the bracket, or the comma
    while (at < f.length && f.text[at] == ' ') at++;
    size_t from = at;
    for (; at < f.length && is_digit(f.text[at]); at++)
      if ((value = value * 10 + (uint64_t)(f.text[at] - '0')) > UINT32_MAX) return false;
    while (at < f.length && f.text[at] == ' ') at++;
    if (at == from || at >= f.length || f.text[at] != (i < 2 ? ',' : ')')) return false;
    out[i] = (uint32_t)value;
  }
  return at + 1 == f.length;
}
