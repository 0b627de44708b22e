#include "report/report_model.h"

#include <string.h>

#include "base/format.h"

void report_model_facts(Fact *parent, const SolDevice *device) {
  Fact *o = fact_object(parent, "model", 0);
  MachineTally t = machine_tally(device);
  MachineConstant c;
  for (int b = 0; b < MACHINE_BASES; b++)
    fact_number(o, machine_basis_name((MachineBasis)b), 0, UNIT_PLAIN, BASIS_NONE, t.of[b]);
  Fact *list = fact_list(o, "constants", 0);
  for (int i = 0; machine_constant(device, i, &c); i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, "name", 0, c.name);
    fact_number(row, "value", 0, UNIT_PLAIN, BASIS_NONE, c.value);
    fact_text(row, "unit", 0, c.unit);
    fact_text(row, "basis", 0, machine_basis_name(c.basis));
    if (c.from) fact_text(row, "from", 0, c.from);
    fact_text(row, "source", 0, c.source);
  }
}

void report_model_sentence(char *out, size_t cap, const SolDevice *device) {
  MachineTally t = machine_tally(device);
  sol_format(
      out, cap,
      "Model: of %d constants %d are published, %d measured on this GPU, %d the compiler's, %d assumed "
      "(sol devices %s --model).",
      t.all, t.of[MACHINE_PUBLISHED], t.of[MACHINE_MEASURED], t.of[MACHINE_COMPILER], t.of[MACHINE_ASSUMED],
      device->id);
}

static void write_value(char *out, size_t cap, const MachineConstant *c) {
  if (strcmp(c->unit, "B/s") == 0)
    fact_write_number(out, cap, UNIT_BYTES_PER_S, c->value);
  else
    sol_format(out, cap, *c->unit && *c->unit != '/' ? "%g %s" : "%g%s", c->value, c->unit);
}

static void write_source(char *out, size_t cap, const MachineConstant *c) {
  if (c->from)
    sol_format(out, cap, "%s; of %s: %s", c->label, c->from, c->source);
  else
    sol_format(out, cap, "%s; %s", c->label, c->source);
}

void report_model_table(Fact *parent, const SolDevice *device) {
  static const FactColumn columns[] = {
      {"constant", 0}, {"value", 0}, {"basis", 0}, {"what it is, and its source", FIT_WRAP}, {0}};
  Fact *list = fact_list(parent, 0, "");
  fact_columns(list, columns);
  MachineConstant c;
  char text[400];
  for (int i = 0; machine_constant(device, i, &c); i++) {
    Fact *row = fact_object(list, 0, 0);
    fact_text(row, 0, "constant", c.name);
    write_value(text, sizeof text, &c);
    fact_text(row, 0, "value", text);
    fact_text(row, 0, "basis", machine_basis_name(c.basis));
    write_source(text, sizeof text, &c);
    fact_text(row, 0, "what it is, and its source", text);
  }
}
