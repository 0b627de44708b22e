// sol audit A --against B: two bills, or two programs that are billed first, and what changed between them.
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_read.h"
#include "cli/cli_audit.h"
#include "report/report_audit_change.h"

enum { MAX_BILL = 256 << 20 };

static bool is_bill(const char *path) {
  size_t n = strlen(path);
  return n > 5 && strcmp(path + n - 5, ".json") == 0;
}

typedef struct Side {
  char *text;
  size_t length;
  SolJson bill;
} Side;

static int read_side(AuditRun *r, const char *path, AuditBillOf *bill_of, Side *out) {
  SolError err = {0};
  if (is_bill(path)) {
    out->text = cli_read_file(path, MAX_BILL, &out->length, &err);
    if (!out->text) return cli_error(r->cli, &err, 0, 0, 0);
  } else {
    SolBuffer text = {0};
    int code = bill_of(r, path, &text);
    out->text = text.text;
    out->length = text.length;
    if (code) return code;
  }
  SolJson root;
  if (sol_json_check(out->text, out->length, &root, &err))
    return cli_error(r->cli, &err, path, out->text, out->length);
  out->bill = root;
  if (sol_json_kind(root) == SOL_JSON_ARRAY)
    return cli_fail(r->cli,
                    "'%.120s' holds the bills of several GPUs; make one of a single one with --device", path);
  return EXIT_OK;
}

static int print_change(AuditRun *r, const Side *before, const Side *after) {
  AuditChange change;
  if (!report_audit_change(before->bill, after->bill, &r->cli->arena, &change))
    return cli_fail(r->cli, "--against compares two bills with kernels; make them with sol audit --json");
  change.before = r->args->against;
  change.after = r->args->common.positional[0];
  if (r->args->markdown) {
    SolBuffer text = {0};
    report_audit_change_markdown(&text, &change);
    int code = cli_write(&text);
    sol_buffer_free(&text);
    return code;
  }
  Fact *root = facts_root(&r->cli->arena, FACT_OBJECT);
  fact_number(root, "schema", 0, UNIT_PLAIN, BASIS_NONE, 1);
  report_audit_change_facts(root, &change);
  return cli_print(r->cli, root);
}

int cli_audit_against(AuditRun *r, AuditBillOf *bill_of) {
  Side before = {0}, after = {0};
  if (!r->args->common.positional_count) return cli_fail(r->cli, "name what to compare with --against's");
  int code = read_side(r, r->args->against, bill_of, &before);
  if (!code) code = read_side(r, r->args->common.positional[0], bill_of, &after);
  SolJson a, b;
  char was[64] = "", is[64] = "";
  if (!code && sol_json_get(before.bill, "device", &a) && sol_json_get(after.bill, "device", &b) &&
      sol_json_string(a, was, sizeof was) && sol_json_string(b, is, sizeof is) && strcmp(was, is) != 0)
    code = cli_fail(r->cli, "the bills are of different GPUs, %s and %s: name one with --device", was, is);
  if (!code) code = print_change(r, &before, &after);
  free(before.text);
  free(after.text);
  return code;
}
