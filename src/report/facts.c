#include "report/facts.h"

#include "base/format.h"

static Fact *add(Fact *parent, FactKind kind, const char *key, const char *label) {
  if (!parent) return 0;
  Fact *f = sol_arena_alloc(parent->arena, sizeof *f);
  if (!f) return 0;
  *f = (Fact){.key = key, .label = label, .kind = kind, .arena = parent->arena};
  if (parent->last)
    parent->last->next = f;
  else
    parent->first = f;
  parent->last = f;
  return f;
}

Fact *facts_root(SolArena *arena, FactKind kind) {
  Fact *f = sol_arena_alloc(arena, sizeof *f);
  if (f) *f = (Fact){.kind = kind, .arena = arena};
  return f;
}

Fact *fact_object(Fact *parent, const char *key, const char *label) {
  return add(parent, FACT_OBJECT, key, label);
}

Fact *fact_list(Fact *parent, const char *key, const char *label) {
  return add(parent, FACT_LIST, key, label);
}

void fact_number(Fact *parent, const char *key, const char *label, FactUnit unit, FactBasis basis,
                 double value) {
  Fact *f = add(parent, FACT_NUMBER, key, label);
  if (!f) return;
  f->unit = unit;
  f->basis = basis;
  f->number = value;
}

static void set_text(Fact *f, const char *format, va_list args) {
  if (!f) return;
  va_list again;
  va_copy(again, args);
  size_t n = sol_vformat(0, 0, format, args) + 1;
  char *copy = sol_arena_alloc(f->arena, n);
  if (copy) sol_vformat(copy, n, format, again);
  va_end(again);
  f->text = copy ? copy : "";
}

void fact_textf(Fact *parent, const char *key, const char *label, const char *format, ...) {
  va_list args;
  va_start(args, format);
  set_text(add(parent, FACT_TEXT, key, label), format, args);
  va_end(args);
}

void fact_text(Fact *parent, const char *key, const char *label, const char *text) {
  if (text)
    fact_textf(parent, key, label, "%s", text);
  else
    fact_unknown(parent, key, label);
}

void fact_bool(Fact *parent, const char *key, const char *label, bool value) {
  Fact *f = add(parent, FACT_BOOL, key, label);
  if (f) f->number = value;
}

void fact_unknown(Fact *parent, const char *key, const char *label) {
  add(parent, FACT_UNKNOWN, key, label);
}

#define DEFINE_PROSE(function, kind)                                                                         \
  void function(Fact *parent, const char *format, ...) {                                                     \
    va_list args;                                                                                            \
    va_start(args, format);                                                                                  \
    set_text(add(parent, kind, 0, ""), format, args);                                                        \
    va_end(args);                                                                                            \
  }
DEFINE_PROSE(fact_title, FACT_TITLE)
DEFINE_PROSE(fact_note, FACT_NOTE)
static void prose_block(Fact *parent, const char *format, ...) SOL_PRINTF(2, 3);
static DEFINE_PROSE(prose_block, FACT_BLOCK)

    void fact_block(Fact *parent, const char *text) {
  prose_block(parent, "%s", text);
}

void fact_picture(Fact *parent, const char *text) {
  Fact *last = parent ? parent->last : 0;
  prose_block(parent, "%s", text);
  if (parent && parent->last && parent->last != last) parent->last->kind = FACT_PICTURE;
}

void fact_line(Fact *parent, int indent, bool strong, const char *format, ...) {
  Fact *f = add(parent, strong ? FACT_STRONG : FACT_LINE, 0, "");
  va_list args;
  va_start(args, format);
  set_text(f, format, args);
  va_end(args);
  if (f) f->number = indent;
}

void fact_code(Fact *parent, const char *text, size_t length) {
  Fact *f = add(parent, FACT_CODE, 0, "");
  char *copy = f ? sol_arena_alloc(f->arena, length + 1) : 0;
  if (f) f->text = copy ? memcpy(copy, text, length) : "";
}

void fact_columns(Fact *list, const FactColumn *columns) {
  if (list) list->columns = columns;
}

const char *fact_basis_name(FactBasis basis) {
  switch (basis) {
  case BASIS_NONE: break;
  case BASIS_EXACT: return "exact";
  case BASIS_MODELLED: return "modelled";
  case BASIS_PUBLISHED: return "published";
  case BASIS_MEASURED: return "measured";
  }
  return 0;
}

// ---- numbers as people read them ----

typedef struct Scale {
  const char *prefixes; // one character a step, ' ' for none
  double step;
  const char *unit;
} Scale;

static const Scale scales[] = {
    [UNIT_PLAIN] = {0, 1, ""},
    [UNIT_COUNT] = {" kMBT", 1000, ""},
    [UNIT_BYTES] = {" kMGTP", 1000, "B"},
    [UNIT_SIZE] = {" KMGTP", 1024, "iB"},
    [UNIT_FLOPS] = {" kMGTPE", 1000, "FLOP"},
    [UNIT_US] = {0, 1, "us"},
    [UNIT_BYTES_PER_S] = {" kMGTP", 1000, "B/s"},
    [UNIT_FLOPS_PER_S] = {" kMGTPE", 1000, "FLOP/s"},
    [UNIT_INTENSITY] = {0, 1, "FLOP/byte"},
    [UNIT_TIMES] = {0, 1, ""},
    [UNIT_SHARE] = {0, 1, ""},
    [UNIT_HZ] = {" kMG", 1000, "Hz"},
    [UNIT_CLOCKS] = {0, 1, "clocks"},
    [UNIT_BITS] = {0, 1, "bit"},
    [UNIT_BYTES_PER_CLOCK] = {0, 1, "B/clock"},
};

// Four significant digits, never an exponent for what a person would read out in full.
static size_t write_plain(char *out, size_t cap, double v) {
  double magnitude = v < 0 ? -v : v;
  bool whole = v == __builtin_floor(v);
  if (whole && magnitude < 1e7) return sol_format(out, cap, "%.0f", v);
  if (magnitude >= 1000 && magnitude < 1e7) return sol_format(out, cap, "%.0f", v);
  return sol_format(out, cap, "%.4g", v);
}

// How many steps of its prefix, or (us, ms, s) which unit of time, a value is written in.
static int steps_of(FactUnit unit, double v) {
  double magnitude = v < 0 ? -v : v;
  if (unit == UNIT_US) return magnitude >= 10e6 ? 2 : magnitude >= 10000;
  int steps = 0;
  const Scale *s = &scales[unit];
  for (; s->prefixes && s->prefixes[steps + 1] && magnitude >= s->step; steps++) magnitude /= s->step;
  return steps;
}

static double divisor(FactUnit unit, int steps) {
  double by = 1;
  for (int i = 0; i < steps; i++) by *= unit == UNIT_US ? 1000 : scales[unit].step;
  return by;
}

double fact_like(FactUnit unit, double least, double most) {
  if (most / divisor(unit, steps_of(unit, least)) < 1e5) return least;
  return least / divisor(unit, steps_of(unit, most)) >= 0.01 ? most : __builtin_nan("");
}

static void write_unit(char *out, size_t cap, FactUnit unit, int steps) {
  static const char *const times[] = {" us", " ms", " s"};
  const Scale *s = &scales[unit];
  if (unit == UNIT_US)
    sol_format(out, cap, "%s", times[steps]);
  else if (unit == UNIT_COUNT && steps) // as people write it: 8.03B, no space
    sol_format(out, cap, "%c", s->prefixes[steps]);
  else if (steps)
    sol_format(out, cap, " %c%s", s->prefixes[steps], s->unit);
  else if (*s->unit)
    sol_format(out, cap, " %s", unit == UNIT_SIZE ? "B" : s->unit);
}

void fact_write_number_like(char *out, size_t cap, FactUnit unit, double v, double like) {
  if (!__builtin_isfinite(v)) {
    sol_format(out, cap, "%s", v != v ? "-" : v > 0 ? "infinite" : "-infinite");
    return;
  }
  if (unit == UNIT_SHARE) {
    sol_format(out, cap, "%.1f%%", v * 100);
    return;
  }
  if (unit == UNIT_TIMES) {
    sol_format(out, cap, v < 100 ? "%.2fx" : "%.0fx", v);
    return;
  }
  int steps = steps_of(unit, like);
  if (unit == UNIT_US && !steps && v > 0 && v < 0.001) {
    sol_format(out, cap, "<0.001 us");
    return;
  }
  size_t n = write_plain(out, cap, v / divisor(unit, steps));
  if (n < cap) write_unit(out + n, cap - n, unit, v == 0 && unit == UNIT_COUNT ? 0 : steps);
}

void fact_write_number(char *out, size_t cap, FactUnit unit, double v) {
  fact_write_number_like(out, cap, unit, v, __builtin_isfinite(v) ? v : 0);
}
