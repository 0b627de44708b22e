// sol devices --model: the constants that predictions for a GPU rest on.
#include "cli/devices.h"
#include "report/report_model.h"

static void in_full(Fact *root, const SolDevice *d) {
  char text[200];
  Fact *row = fact_object(root, 0, 0);
  fact_title(row, "%s", d->name);
  fact_number(row, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(row, "id", 0, d->id);
  report_model_facts(row, d);
  report_model_table(row, d);
  report_model_sentence(text, sizeof text, d);
  fact_note(row, "%s", text);
}

static void in_brief(Fact *root, const SolDevice *d) {
  MachineTally t = machine_tally(d);
  Fact *row = fact_object(root, 0, 0);
  fact_number(row, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(row, "id", "id", d->id);
  fact_text(row, 0, "arch", d->arch);
  for (int b = 0; b < MACHINE_BASES; b++)
    fact_number(row, 0, machine_basis_name((MachineBasis)b), UNIT_PLAIN, BASIS_NONE, t.of[b]);
  report_model_facts(row, d);
}

int cli_devices_model(Cli *cli, const DevicesArgs *args) {
  static const FactColumn columns[] = {
      {"id", 0}, {"arch", 0}, {"published", 0}, {"measured", 0}, {"compiler", 0}, {"assumed", 0}, {0}};
  Fact *root = facts_root(&cli->arena, FACT_LIST);
  fact_columns(root, columns);
  return cli_devices_show(cli, args, root, in_brief, in_full);
}
