// The gate: limits from the command line, and an earlier bill that no line may be worse than.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/json_read.h"
#include "cli/cli_audit.h"

enum { MAX_BILL = 256 << 20, TEXT = 256 };
// Counts are compared as they are; what is modelled may move a little with them.
#define EXACT_ROOM    1.0005
#define MODELLED_ROOM 1.02

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

static void check_limits(AuditRun *r, const AuditKernel *k) {
  double most = r->args->max_sectors;
  if (cli_given(r->cli, "max-tax") && k->tax > r->args->max_tax)
    cli_audit_complain(r, k, k->line_count ? &k->lines[0] : NULL,
                       "tax is %.2f, more than --max-tax %g: %.2f us, light %.2f us", k->tax,
                       r->args->max_tax, k->time.total * 1e6, k->light * 1e6);
  if (!cli_given(r->cli, "max-sectors-per-request")) return;
  for (uint32_t i = 0; i < k->line_count; i++) {
    const AuditLine *line = &k->lines[i];
    if (line->worst == UINT32_MAX) continue;
    const SolEmuCounts *c = &k->insts[line->worst].counts;
    double sectors = ratio((double)c->sectors, (double)c->requests);
    if (sectors > most)
      cli_audit_complain(r, k, line, "%.2f sectors a request, more than --max-sectors-per-request %g",
                         sectors, most);
  }
}

// ---- the baseline ----

static double number_of(SolJson object, const char *key) {
  SolJson value;
  double number = 0;
  return sol_json_get(object, key, &value) && sol_json_number(value, &number) ? number : 0;
}

static bool text_is(SolJson object, const char *key, const char *text) {
  SolJson value;
  char old[TEXT], now[TEXT];
  if (!text || !sol_json_get(object, key, &value) || !sol_json_string(value, old, sizeof old)) return false;
  sol_format(now, sizeof now, "%s", text);
  return strcmp(old, now) == 0;
}

static bool find_kernel(SolJson bill, const AuditKernel *k, SolJson *out) {
  SolJson list, row;
  if (!sol_json_get(bill, "kernels", &list)) return false;
  for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row);)
    if (text_is(row, "symbol", k->name)) return *out = row, true;
  for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row);)
    if (text_is(row, "name", k->title)) return *out = row, true;
  return false;
}

static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static bool same_file(SolJson row, const char *file) {
  SolJson value;
  char old[1024];
  return sol_json_get(row, "file", &value) && sol_json_string(value, old, sizeof old) &&
         strcmp(base_name(old), base_name(file)) == 0;
}

// The line of before: the one that reads the same, of several the nearest; else the one at the same place.
static bool find_line(SolJson kernel, const AuditLine *line, SolJson *out) {
  SolJson list, row;
  double nearest = -1;
  if (!sol_json_get(kernel, "lines", &list)) return false;
  for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row);) {
    if (!same_file(row, line->file) || !text_is(row, "source", line->source)) continue;
    double apart = number_of(row, "line") - line->line;
    if (apart < 0) apart = -apart;
    if (nearest < 0 || apart < nearest) nearest = apart, *out = row;
  }
  if (nearest >= 0) return true;
  for (SolJsonIter it = {.container = list}; sol_json_next(&it, NULL, &row);)
    if (same_file(row, line->file) && number_of(row, "line") == line->line) return *out = row, true;
  return false;
}

static void worse(AuditRun *r, const AuditKernel *k, const AuditLine *line, const char *what, double now,
                  double before, double room) {
  if (now > before * room + 1e-9)
    cli_audit_complain(r, k, line, "%s: %.4g, was %.4g in the baseline", what, now, before);
}

static void compare_line(AuditRun *r, const AuditKernel *k, const AuditLine *line, SolJson old) {
  const SolEmuCounts *c = &line->counts;
  double requests = (double)c->requests, shared = (double)c->shared_requests;
  double old_requests = number_of(old, "requests"), old_shared = number_of(old, "shared_requests");
  if (requests > 0)
    worse(r, k, line, "sectors a request", ratio((double)c->sectors, requests),
          ratio(number_of(old, "sectors"), old_requests), EXACT_ROOM);
  if (shared > 0)
    worse(r, k, line, "wavefronts a shared request", ratio((double)c->wavefronts, shared),
          ratio(number_of(old, "wavefronts"), old_shared), EXACT_ROOM);
  double executions = (double)c->executions, old_executions = number_of(old, "instructions");
  worse(r, k, line, "local sectors an instruction", ratio((double)line->local.sectors, executions),
        ratio(number_of(old, "local_sectors"), old_executions), EXACT_ROOM);
}

static void compare_kernel(AuditRun *r, const AuditKernel *k, SolJson old) {
  for (uint32_t i = 0; i < k->line_count; i++) {
    SolJson line = {0};
    const SolEmuCounts *c = &k->lines[i].counts;
    if (!c->requests && !c->shared_requests) continue;
    if (find_line(old, &k->lines[i], &line)) compare_line(r, k, &k->lines[i], line);
  }
  worse(r, k, NULL, "tax", k->tax, number_of(old, "tax"), MODELLED_ROOM);
  worse(r, k, NULL, "DRAM bytes over the floor",
        ratio(k->work.dram_read + k->work.dram_write, k->floor_bytes),
        ratio(number_of(old, "dram_bytes"), number_of(old, "floor_bytes")), MODELLED_ROOM);
}

// The bill of this device, where the file holds several.
static bool pick_bill(SolJson root, const char *device, SolJson *out) {
  if (sol_json_kind(root) == SOL_JSON_OBJECT) return *out = root, true;
  SolJson row;
  for (SolJsonIter it = {.container = root}; sol_json_next(&it, NULL, &row);)
    if (text_is(row, "device", device)) return *out = row, true;
  return false;
}

static int check_baseline(AuditRun *r, const AuditProgram *p, const AuditView *view) {
  SolError err = {0};
  size_t length = 0;
  const char *path = r->args->baseline;
  char *text = cli_read_file(path, MAX_BILL, &length, &err);
  if (!text) return cli_error(r->cli, &err, "--baseline", 0, 0);
  SolJson root, bill, old;
  int code = EXIT_OK;
  if (sol_json_check(text, length, &root, &err)) {
    code = cli_error(r->cli, &err, path, text, length);
  } else if (!pick_bill(root, p->device->id, &bill) || !sol_json_get(bill, "kernels", &old)) {
    code = cli_fail(r->cli, "--baseline: '%.120s' is no bill of %s; make one with sol audit --json", path,
                    p->device->id);
  } else if (!text_is(bill, "device", p->device->id)) {
    code = cli_fail(r->cli, "--baseline: '%.120s' is the bill of another GPU than %s; name it with --device",
                    path, p->device->id);
  } else {
    for (uint32_t i = 0; i < p->kernel_count; i++) {
      const AuditKernel *k = &p->kernels[i];
      if (!report_audit_wanted(view, k)) continue;
      if (find_kernel(bill, k, &old))
        compare_kernel(r, k, old);
      else
        cli_audit_note(r, "%s is not in the baseline, and not compared.", k->title);
    }
  }
  free(text);
  return code;
}

int cli_audit_gate(AuditRun *r, const AuditProgram *p, const AuditView *view) {
  for (uint32_t i = 0; i < p->kernel_count; i++)
    if (report_audit_wanted(view, &p->kernels[i])) check_limits(r, &p->kernels[i]);
  return r->args->baseline ? check_baseline(r, p, view) : EXIT_OK;
}
