// sol devices --measure: the ceilings of this machine, compared with the datasheet, stored for the other commands.
#define _POSIX_C_SOURCE 200809L

#include <time.h>

#include "base/error.h"
#include "base/format.h"
#include "cli/cli_ceilings.h"
#include "cli/devices.h"

static void put_date(Ceilings *c) {
  time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc)) strftime(c->date, sizeof c->date, "%Y-%m-%d", &utc);
}

static SolStatus measure(Ceilings *c, char *why, size_t cap, SolError *err) {
  SolDriverOptions options = {.backend = SOL_BACKEND_CUDA};
  SolDriver *driver = NULL;
  SolError no_gpu = {0};
  if (sol_driver_open(&options, &driver, &no_gpu)) {
    sol_format(why, cap, "No GPU: %s. These are the CPU's.", no_gpu.message);
    return ceilings_measure_cpu(0, c, err);
  }
  SolStatus status = ceilings_measure(driver, 0, c, err);
  sol_driver_close(driver);
  SolError alone = {0};
  if (!status && ceilings_measure_links(0, c, &alone))
    sol_format(why, cap, "Between GPUs %s was measured: %s.", c->gpus ? "not all" : "nothing", alone.message);
  return status;
}

static void row(Fact *list, const Ceilings *c, Ceiling which, const SolDevice *device) {
  const CeilingInfo *info = ceiling_info(which);
  SolFigure published = ceiling_published(which, device);
  if (which == CEILING_dram_copy && device) published = device->mem_bandwidth;
  if ((which == CEILING_dram_read || which == CEILING_dram_write) && device)
    published = device->mem_bandwidth;
  if (which == CEILING_tensor && device) published = device->peak_fp16;
  if (which == CEILING_nccl_sum && device) published = device->link_bandwidth;
  if (which == CEILING_clock && device) published = device->boost_clock;
  double value = c->values[which];
  if (value != value) return;
  char text[48], other[48] = "";
  Fact *line = fact_object(list, 0, 0);
  fact_write_number(text, sizeof text, cli_devices_unit(info->unit), value);
  if (sol_known(published))
    fact_write_number(other, sizeof other, cli_devices_unit(info->unit), published.value);
  fact_text(line, 0, "figure", info->label);
  fact_text(line, 0, "measured", text);
  fact_textf(line, 0, "spread", "%.1f%%", c->spreads[which] * 100);
  if (c->cpu) return;
  fact_text(line, 0, "published", other);
  if (sol_known(published) && published.value > 0)
    fact_textf(line, 0, "share", "%.0f%%", value / published.value * 100);
  else
    fact_text(line, 0, "share", "");
}

static void facts(Fact *root, const Ceilings *c, const SolDevice *device) {
  fact_title(root, "%s, %d %s, measured", c->name, c->units, c->cpu ? "threads" : "SMs");
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  fact_text(root, c->cpu ? "cpu" : "gpu", 0, c->name);
  fact_text(root, "uuid", 0, c->uuid[0] ? c->uuid : NULL);
  fact_text(root, "driver", 0, c->driver[0] ? c->driver : NULL);
  fact_text(root, "date", 0, c->date);
  fact_text(root, "device", 0, device ? device->id : NULL);
  fact_number(root, c->cpu ? "threads" : "sms", 0, UNIT_PLAIN, BASIS_NONE, c->units);
  if (c->gpus) fact_number(root, "gpus", 0, UNIT_PLAIN, BASIS_NONE, c->gpus);
  fact_number(root, "seconds", 0, UNIT_PLAIN, BASIS_MEASURED, c->seconds);
  Fact *measured = fact_object(root, "measured", 0), *spread = fact_object(root, "spread", 0);
  Fact *published = fact_object(root, "published", 0);
  static const FactColumn columns[] = {{"figure", FIT_CUT}, {"measured", 0}, {"published", 0},
                                       {"share", 0},        {"spread", 0},   {0}};
  Fact *list = fact_list(root, 0, "");
  fact_columns(list, columns);
  for (int i = 0; i < CEILINGS; i++) {
    const char *key = ceiling_info((Ceiling)i)->key;
    SolFigure figure = ceiling_published((Ceiling)i, device);
    if (c->values[i] == c->values[i]) {
      fact_number(measured, key, 0, UNIT_PLAIN, BASIS_MEASURED, c->values[i]);
      fact_number(spread, key, 0, UNIT_PLAIN, BASIS_MEASURED, c->spreads[i]);
    } else {
      fact_unknown(measured, key, 0);
    }
    if (sol_known(figure)) fact_number(published, key, 0, UNIT_PLAIN, BASIS_PUBLISHED, figure.value);
    row(list, c, (Ceiling)i, device);
  }
}

bool devices_this_cpu(Cli *cli, int *code) {
  Ceilings c;
  if (cli_ceilings_find("", "", &c) || !cli_ceilings_find_cpu(&c)) return false;
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  facts(root, &c, NULL);
  fact_note(root, "No GPU of this machine was measured: these are its CPU's, of %s.", c.date);
  *code = cli_print(cli, root);
  return true;
}

int cli_devices_measure(Cli *cli, const DevicesArgs *args) {
  if (args->common.positional_count) return cli_fail(cli, "--measure is of this machine: no device is named");
  Ceilings c;
  SolError err = {0};
  char why[300] = "", path[4096] = "";
  const SolDevice *device = NULL;
  if (measure(&c, why, sizeof why, &err)) return cli_error(cli, &err, 0, 0, 0);
  put_date(&c);
  if (!c.cpu) sol_device_find(c.name, &device, NULL);
  Fact *root = facts_root(&cli->arena, FACT_OBJECT);
  facts(root, &c, device);
  bool kept = cli_ceilings_store(&c, path, sizeof path, &err) == SOL_OK;
  fact_text(root, "kept", 0, kept ? path : NULL);
  if (why[0]) fact_note(root, "%s", why);
  fact_note(root, "Took %.1f s. Spread: the middle half of the samples over their median.%s", c.seconds,
            c.cpu ? "" : " Launches: from one kernel to the next, when many are queued.");
  if (kept)
    fact_note(root, "Kept in %s%s.", path, c.cpu ? "" : "; '--device this' and sol profile use them");
  else
    fact_note(root, "Not kept: %s.", err.message);
  return cli_print(cli, root);
}
