// Compares measured with emulated counters.
#include "base/format.h"
#include "report/report_profile.h"

static void number(Fact *o, const char *key, FactBasis basis, double value) {
  if (profile_known(value))
    fact_number(o, key, 0, UNIT_PLAIN, basis, value);
  else
    fact_unknown(o, key, 0);
}

static void cell_text(char *out, size_t cap, AgainstUnit unit, double v) {
  static const FactUnit units[] = {UNIT_PLAIN, UNIT_BYTES, UNIT_US, UNIT_SHARE};
  if (!profile_known(v))
    sol_format(out, cap, "%s", "not counted");
  else if (unit == AGAINST_COUNT)
    sol_format(out, cap, "%.0f", v);
  else
    fact_write_number(out, cap, units[unit], v);
}

static void difference_text(char *out, size_t cap, const AgainstRow *r) {
  double difference = r->measured - r->emulated;
  out[0] = 0;
  if (!profile_known(difference)) return;
  if (difference == 0)
    sol_format(out, cap, "%s", "equal");
  else if (r->emulated == 0)
    sol_format(out, cap, "%s", "emulated has none");
  else
    sol_format(out, cap, "%s%.2f%%", difference > 0 ? "+" : "", difference / r->emulated * 100);
}

void report_against_facts(Fact *root, const Against *a) {
  Fact *machine = fact_list(root, "against", 0);
  for (uint32_t i = 0; i < a->kernel_count; i++) {
    const AgainstKernel *k = &a->kernels[i];
    Fact *o = fact_object(machine, 0, 0), *rows = NULL;
    fact_text(o, "kernel", 0, k->title);
    number(o, "launches", BASIS_EXACT, k->launches);
    number(o, "emulated_launches", BASIS_EXACT, k->emulated_launches);
    rows = fact_list(o, "counters", 0);
    static const FactColumn columns[] = {{"counter", FIT_CUT}, {"measured", 0},    {"emulated", 0},
                                         {"difference", 0},    {"emulated is", 0}, {0}};
    Fact *people = fact_list(root, 0, k->title);
    fact_columns(people, columns);
    for (int r = 0; r < k->row_count; r++) {
      const AgainstRow *row = &k->rows[r];
      char m[48], e[48], d[48];
      Fact *line = fact_object(rows, 0, 0), *shown = fact_object(people, 0, 0);
      fact_text(line, "counter", 0, row->key);
      number(line, "measured", BASIS_MEASURED, row->measured);
      number(line, "emulated", row->exact ? BASIS_EXACT : BASIS_MODELLED, row->emulated);
      number(line, "difference", BASIS_NONE, row->measured - row->emulated);
      cell_text(m, sizeof m, row->unit, row->measured);
      cell_text(e, sizeof e, row->unit, row->emulated);
      difference_text(d, sizeof d, row);
      fact_text(shown, 0, "counter", row->label);
      fact_text(shown, 0, "measured", m);
      fact_text(shown, 0, "emulated", e);
      fact_text(shown, 0, "difference", d);
      fact_text(shown, 0, "emulated is", row->exact ? "counted" : "modelled");
    }
    if (k->launches != k->emulated_launches)
      fact_note(root,
                "%s: %.0f launches measured, %.0f emulated; the emulated counts are scaled to the measured "
                "launches.",
                k->title, k->launches, k->emulated_launches);
  }
}
